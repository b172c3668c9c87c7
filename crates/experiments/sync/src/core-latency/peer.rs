//! The widely used tool `core-to-core-latency`.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use ascertain_engine::experiment::{TargetError, Unavailable};

use super::PEER;

/// Returns the path of the tool's program.
pub fn path() -> Result<PathBuf, Unavailable> {
    let is_executable =
        |path: &PathBuf| path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).map(|folder| folder.join(PEER)).find(is_executable);
    found.ok_or_else(|| Unavailable::Program {
        program: format!("`{PEER}` in the PATH"),
        error: format!("cargo install {PEER}"),
    })
}

/// Returns the latency of each pair of these CPUs in nanoseconds, as the tool measures it.
pub fn latencies_ns(cpus: &[usize]) -> Result<Vec<([usize; 2], f64)>, TargetError> {
    /// Number of round trips in each sample of the tool. This is the tool's default.
    const ROUND_TRIPS: u64 = 1_000;
    const SAMPLES: usize = 300;
    // The tool spends the same time on each pair, so with many pairs each one gets fewer samples.
    let pairs = cpus.len() * (cpus.len() - 1) / 2;
    let samples = (SAMPLES / pairs).max(10);
    let failed = |reason: String| TargetError::Failed(format!("{PEER}: {reason}"));
    let path = path().map_err(|error| failed(error.to_string()))?;
    let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    let output = Command::new(path)
        .args(["--csv", "--cores", &list.join(","), &ROUND_TRIPS.to_string(), &samples.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())));
    }
    let table = String::from_utf8_lossy(&output.stdout);
    read(&table, cpus).ok_or_else(|| failed(format!("the output is not the expected table: {table}")))
}

/// Reads the tool's table, which has a row and a column for each CPU. Only the cells below the diagonal have values.
fn read(table: &str, cpus: &[usize]) -> Option<Vec<([usize; 2], f64)>> {
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').map(str::trim).collect()).collect();
    let pairs = (0..cpus.len()).flat_map(|from| (from + 1..cpus.len()).map(move |to| (from, to)));
    pairs.map(|(from, to)| Some(([cpus[from], cpus[to]], rows.get(to)?.get(from)?.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_core_to_core_latency() {
        let table = ",,\n41.5,,\n100.25,99,\n";
        let expected = vec![([2, 4], 41.5), ([2, 7], 100.25), ([4, 7], 99.0)];
        assert_eq!(read(table, &[2, 4, 7]), Some(expected));
        for wrong in ["", ",\n", ",,\nx,,\n1,1,\n"] {
            assert_eq!(read(wrong, &[0, 1, 2]), None, "{wrong}");
        }
    }
}
