//! Baselines: recorded runs that keep a name.
//!
//! A baseline is a run's folder like any other, but named `GROUP@NAME`: so `ascertain history` knows it by that name,
//! never takes it for the latest run, and never prunes it.

use std::fs;
use std::path::{Path, PathBuf};

#[cfg(feature = "recorded")]
use ascertain_report::{
    history::comparison,
    terminal::{Style, escape_controls},
};

#[cfg(feature = "recorded")]
use super::options::Format;
use crate::error::{Error, refused};

/// The folder of a group's baseline, whether or not there is one.
pub(super) fn folder(runs: &Path, group: &str, name: &str) -> PathBuf {
    runs.join(format!("{}@{}", in_file_name(group), in_file_name(name)))
}

/// Other characters than these as their bytes in hexadecimal, so that no two names have one folder.
fn in_file_name(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    name.bytes().map(byte).collect()
}

/// Keeps a run as a baseline. The one that was it until then goes back to the name that it was given as a run.
///
/// # Errors
/// When a folder can't be renamed, or the one that is there is no run's.
pub(super) fn save(run: &Path, baseline: &Path) -> Result<(), Error> {
    // Options refuse baselines without it.
    #[cfg(feature = "recorded")]
    if baseline.exists() {
        let former = ascertain_engine::evidence::read_header(baseline)?;
        rename(baseline, &baseline.with_file_name(former.run_id))?;
    }
    rename(run, baseline)
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    match fs::rename(from, to) {
        Ok(()) => Ok(()),
        Err(error) => refused(format!("{} can't be renamed to {}: {error}", from.display(), to.display())),
    }
}

/// A run beside its baseline.
///
/// # Errors
/// When one of them can't be read.
#[cfg(feature = "recorded")]
pub(super) fn beside(name: &str, folders: [&Path; 2], format: Format, style: &Style) -> Result<String, Error> {
    let comparison = crate::history::compare(folders)?;
    let heading = format!("Beside the baseline `{}`, recorded and not paired with this run:", escape_controls(name));
    Ok(match format {
        Format::Json => comparison::json(&comparison),
        Format::Markdown => format!("{heading}\n\n{}", comparison::markdown(&comparison)),
        // Options refuse CSV.
        Format::Table | Format::Csv => format!("{heading}\n{}", comparison::table(&comparison, style)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_baselines_share_a_folder() {
        let name = |group, name| folder(Path::new("runs"), group, name).display().to_string();
        assert_eq!(name("sums", "main"), "runs/sums@main");
        assert_eq!(name("../a b", "v1.2"), "runs/..%2fa%20b@v1.2");
        assert_ne!(name("a@b", "c"), name("a", "b@c"));
        assert_ne!(name("a%40b", "c"), name("a@b", "c"));
    }
}
