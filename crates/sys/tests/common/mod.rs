//! What several of these tests need.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder for programs. Temporary files may lie where none are started; where these tests do, they are.
pub fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).or_else(|_| tempfile::tempdir()).unwrap()
}

/// A file that may be executed. Another process writes it: while one of ours has it open for
/// writing, be it only a command that another test is about to start, it can't be executed.
pub fn program(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    let write = "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"";
    let status = std::process::Command::new("sh").args(["-c", write, "sh"]).arg(&path).arg(text).status();
    assert!(status.unwrap().success());
    path
}
