//! The functions of this crate on systems other than Linux: each fails.

use std::path::Path;

use crate::{Changes, EnableOptions, Enabled, Error, MonitorStatus};

/// Always fails on this system.
///
/// # Errors
/// [`Error::Unavailable`].
pub fn enable(_: &Path, _: &EnableOptions) -> Result<Enabled, Error> {
    Err(Error::Unavailable)
}

/// Always fails on this system.
///
/// # Errors
/// [`Error::Unavailable`].
pub fn disable(_: &Path) -> Result<bool, Error> {
    Err(Error::Unavailable)
}

/// Always fails on this system.
///
/// # Errors
/// [`Error::Unavailable`].
pub fn status(_: &Path) -> Result<MonitorStatus, Error> {
    Err(Error::Unavailable)
}

/// Always fails on this system.
///
/// # Errors
/// [`Error::Unavailable`].
pub fn since(_: &Path, _: &[u8]) -> Result<(Vec<u8>, Changes), Error> {
    Err(Error::Unavailable)
}

/// Always fails on this system.
///
/// # Errors
/// [`Error::Unavailable`].
pub fn log(_: &Path) -> Result<String, Error> {
    Err(Error::Unavailable)
}

/// Fails with exit code 1, so that git looks at all files.
pub fn hook_main() -> ! {
    std::process::exit(1)
}
