//! The JSON schema of the claims file, generated.

use crate::tools;

/// Writes `claims/schema.json`; a test compares the committed file with what would be written.
pub fn write() -> anyhow::Result<()> {
    let path = tools::root().join("claims/schema.json");
    let arguments = ["run", "--quiet", "--package", "ascertain-experiments", "--example", "claims_schema"];
    let output = tools::capture("cargo", &arguments)?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(&path, output.stdout)?;
    println!("wrote {}", path.display());
    Ok(())
}
