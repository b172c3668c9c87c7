//! Stands for `trials.parquet` where the feature `parquet` is off: rows are written and read as lines alone.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::error::Error;
use super::folder::PARQUET;
use super::trials::Trials;

/// What can be done for a run without lines.
pub(super) const WITHOUT_LINES: &str = "this program was built without Parquet, and can't read trials.parquet";

/// Leaves no such file: one that the run had when it was begun elsewhere lacks the rows that were added here.
pub(super) fn finish(run: &Path) -> Result<Option<String>, Error> {
    let path = run.join(PARQUET);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::write(&path)(error)),
        _ => Ok(None),
    }
}

/// Nothing, as where there is no such file.
pub(super) fn read(_path: &Path, _checksum: Option<&str>) -> Result<Option<Trials>, Error> {
    Ok(None)
}

/// Writes nothing, as where there is no such file.
pub(super) fn write_lines(_path: &Path, _checksum: Option<&str>, _sink: impl Write) -> Result<bool, Error> {
    Ok(false)
}
