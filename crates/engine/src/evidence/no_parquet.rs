//! The module `parquet` of a build without that feature: rows are only written and read as lines.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::error::Error;
use super::folder::PARQUET;
use super::row::RowReader;

/// The end of the message of [`Error::NoRows`], after a semicolon. It tells the user why the rows cannot be read.
pub(super) const WITHOUT_LINES: &str = "this program was built without Parquet, and can't read trials.parquet";

/// Removes a `trials.parquet` that a build with Parquet has written, because that file lacks the rows that this build
/// has added. Returns `None`, because there is no new file with a checksum.
pub(super) fn finish(run: &Path) -> Result<Option<String>, Error> {
    let path = run.join(PARQUET);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::write(&path)(error)),
        _ => Ok(None),
    }
}

/// Returns `None`, as for a file that does not exist, because this build cannot read Parquet.
pub(super) fn open(_path: &Path, _checksum: Option<&str>) -> Result<Option<Box<dyn RowReader>>, Error> {
    Ok(None)
}
