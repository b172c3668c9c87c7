//! Helpers of several test modules.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Whether commands are started by a launcher; where not, that is said. Older kernels than Linux 5.3 and some filters
/// of system calls let us have none; then a command's memory includes ours, and it keeps more of what we are.
pub fn has_launcher() -> bool {
    #[cfg(target_os = "linux")]
    let is_there = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).is_ok();
    #[cfg(not(target_os = "linux"))]
    let is_there = false;
    if !is_there {
        ascertain_sys::testing::left_out("commands have no launcher here");
    }
    is_there
}

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
