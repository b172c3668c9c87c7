//! Baselines: recorded runs that are kept under a name.
//!
//! A baseline is the folder of a run, renamed to `GROUP@NAME`. `ascertain history` finds it by that name, never treats
//! it as the latest run, and never deletes it.

use std::fs;
use std::path::{Path, PathBuf};

#[cfg(feature = "recorded")]
use ascertain_report::{
    formats::Report,
    terminal::{Style, escape_controls},
};

use crate::error::{Error, refused};
#[cfg(feature = "recorded")]
use ascertain_report::options::Format;

/// Returns the path of the folder for the baseline `name` of a group. The folder need not exist yet.
pub(super) fn folder(runs: &Path, group: &str, name: &str) -> PathBuf {
    runs.join(format!("{}@{}", in_file_name(group), in_file_name(name)))
}

/// Escapes the name of a group or a baseline for use in a file name. Every byte other than ASCII letters, digits, `-`,
/// `_` and `.` becomes `%` and its hexadecimal value. Different names therefore have different folders.
fn in_file_name(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    name.bytes().map(byte).collect()
}

/// Renames a run's folder to a baseline. The previous baseline of this name becomes a normal run again.
///
/// # Errors
/// If a folder can't be renamed, or if the folder of the previous baseline contains no run.
pub(super) fn save(run: &Path, baseline: &Path) -> Result<(), Error> {
    // Without the feature `recorded`, the parser of the options already refuses baselines.
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

/// Returns the text or JSON that compares a run with its baseline `name`. `folders` are the folders of the baseline and
/// of the run.
///
/// # Errors
/// If one of the runs can't be read.
#[cfg(feature = "recorded")]
pub(super) fn beside(name: &str, folders: [&Path; 2], format: Format, style: &Style) -> Result<String, Error> {
    let comparison = crate::history::compare(folders)?;
    let heading = format!(
        "Compared with the baseline `{}`, which was recorded earlier and is not paired with this run:",
        escape_controls(name)
    );
    Ok(match format {
        Format::Json => comparison.json(),
        Format::Markdown => format!("{heading}\n\n{}", comparison.markdown()),
        // The parser of the options refuses CSV together with a baseline.
        Format::Table | Format::Csv => format!("{heading}\n{}", comparison.text(style)),
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
