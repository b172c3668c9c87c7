//! Helpers that start the binary and inspect the results of a run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use ascertain_engine::evidence::Writer;
use serde_json::Value;

/// The output and the exit code of one execution of the binary.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }
}

/// Command line of a program with about five times as many page faults as `true`. Tests that need a verdict compare
/// page faults, because other load on the machine changes times but not page faults.
pub const MANY_FAULTS: &str = "sh -c 'env; env; env; env'";

/// Returns a command that starts the binary, with its evidence below `state`.
pub fn command(state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ascertain"));
    command.args(arguments).env("XDG_STATE_HOME", state).env("NO_COLOR", "1").stdin(Stdio::null()).current_dir(state);
    command
}

pub fn ascertain(state: &Path, arguments: &[&str]) -> Ran {
    ran(command(state, arguments).output().unwrap())
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Returns the folders of all runs below `state`.
pub fn runs(state: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state.join("ascertain/runs")).into_iter().flatten().flatten();
    let mut runs: Vec<_> = entries.map(|entry| entry.path()).collect();
    runs.sort();
    runs
}

/// Sends a signal such as `-TERM` to the child.
pub fn send_signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success(), "kill {signal}: {status}");
}

/// Kills the child by SIGKILL, which it cannot catch, and waits for it.
pub fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Writes an executable script through another process. If this process wrote the file itself, a child of another test
/// that is between `fork` and `exec` could still have it open. Then the script could not be started ("text file busy").
pub fn write_script(path: &Path, text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{path:?}");
}

/// Restores the JSON lines of a completed run in its folder, as a continuation does. Returns the lines.
pub fn restored_lines(run: &Path) -> String {
    drop(Writer::resume(run, None).unwrap());
    std::fs::read_to_string(run.join("trials.jsonl")).unwrap()
}
