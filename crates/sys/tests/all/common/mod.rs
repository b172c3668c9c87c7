//! Helpers that several test modules use.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Returns whether commands are started by a launcher. If not, reports the test as left out. There is no launcher on
/// kernels before Linux 5.3 and under some filters of system calls. This process then starts the commands itself. So
/// its memory counts as memory of the commands, and the commands inherit more of its properties.
pub fn has_launcher() -> bool {
    #[cfg(target_os = "linux")]
    let is_there = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).is_ok();
    #[cfg(not(target_os = "linux"))]
    let is_there = false;
    if !is_there {
        ascertain_sys::testing::left_out("commands are started without a launcher here");
    }
    is_there
}

/// Creates a folder for programs. The usual folder for temporary files may not allow execution, but the folder of these
/// tests does.
pub fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).or_else(|_| tempfile::tempdir()).unwrap()
}

/// Creates an executable file. The kernel does not execute a file that any process has open for writing. Commands that
/// other tests start inherit the open files of this process for a moment. So this process lets another one write the
/// file.
pub fn program(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    let write = "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"";
    let status = std::process::Command::new("sh").args(["-c", write, "sh"]).arg(&path).arg(text).status();
    assert!(status.unwrap().success());
    path
}
