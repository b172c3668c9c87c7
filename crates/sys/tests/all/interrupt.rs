//! Tests of signals to a separate process: this test program, which each test starts again as `helper`.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use ascertain_sys::process::{Exit, Output, Prepared, shell};
use ascertain_sys::testing::wait_until;
use ascertain_sys::{Error, clock, interrupt};

/// The exit code of the helper after an orderly interruption.
const INTERRUPTED: i32 = 42;
/// Time for which a helper stays alive if a signal is going to kill it.
const STAY: Duration = Duration::from_secs(600);

/// Not a test: runs a command that writes its process ID to a file and then sleeps.
#[test]
#[ignore = "the other tests start it"]
fn helper() {
    let Ok(folder) = std::env::var("ASCERTAIN_TEST_FOLDER") else { return };
    let folder = Path::new(&folder);
    interrupt::install().unwrap();
    interrupt::install().unwrap();
    assert!(!interrupt::requested());
    let mut command = shell("echo $$; exec sleep 3600");
    command.stdout = Output::File(folder.join("pid"));
    let prepared = Prepared::new(&command).unwrap();
    let start_ns = clock::now_ns();
    let usage = prepared.run(None).unwrap();
    assert_eq!(usage.exit, Exit::Interrupted);
    assert!((1..=clock::now_ns() - start_ns).contains(&usage.wall_ns));
    assert!(interrupt::requested());
    assert!(matches!(prepared.run(None), Err(Error::Interrupted)));
    if std::env::var("ASCERTAIN_TEST_STAYS").is_ok() {
        fs::write(folder.join("stays"), "").unwrap();
        std::thread::sleep(STAY);
    }
    std::process::exit(INTERRUPTED);
}

struct Helper {
    child: Child,
    folder: tempfile::TempDir,
}

impl Helper {
    /// Starts a helper with some signals ignored. If `stays` is true, the helper keeps running after the first signal
    /// that is not ignored.
    fn start(ignored: &'static [libc::c_int], stays: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "interrupt::helper", "--ignored", "--nocapture"]).stdout(Stdio::null());
        command.env("ASCERTAIN_TEST_FOLDER", folder.path());
        if stays {
            command.env("ASCERTAIN_TEST_STAYS", "1");
        }
        // SAFETY: `signal` may be called between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // This process may have been started with these signals ignored: by `nohup`, or by a shell with `&`.
                [libc::SIGINT, libc::SIGTERM, libc::SIGHUP]
                    .iter()
                    .for_each(|&signal| _ = libc::signal(signal, libc::SIG_DFL));
                ignored.iter().for_each(|&signal| _ = libc::signal(signal, libc::SIG_IGN));
                Ok(())
            });
        }
        Self { child: command.spawn().unwrap(), folder }
    }

    /// Waits until a file exists and its text meets a condition. Returns the text.
    fn appears(&self, name: &str, what: impl Fn(&str) -> bool) -> String {
        let path = self.folder.path().join(name);
        let mut text = String::new();
        wait_until(name, || {
            text = fs::read_to_string(&path).unwrap_or_default();
            path.exists() && what(&text)
        });
        text.trim().to_owned()
    }

    /// Returns the process ID of the command that the helper runs.
    fn command(&self) -> String {
        self.appears("pid", |text| text.ends_with('\n'))
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("sh").args(["-c", "kill -$0 $1", signal, &pid]).status().unwrap().success());
    }

    /// Returns whether the helper ignores a signal, according to the kernel.
    fn ignores(&self, signal: libc::c_int) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 << (signal - 1) != 0
    }

    fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

#[track_caller]
fn assert_gone(pid: &str) {
    let status = format!("/proc/{pid}/status");
    wait_until("it is gone", || fs::read_to_string(&status).map_or(true, |text| text.contains("Z (zombie)")));
}

#[test]
fn a_signal_ends_the_command_and_is_told() {
    for signal in ["INT", "TERM", "HUP"] {
        let mut helper = Helper::start(&[], false);
        let pid = helper.command();
        helper.signal(signal);
        assert_eq!(helper.wait().code(), Some(INTERRUPTED), "{signal}");
        assert_gone(&pid);
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let mut helper = Helper::start(&[], true);
    helper.command();
    helper.signal("INT");
    helper.appears("stays", |_| true);
    // If the second signal came sooner, it would count as the same request as the first one.
    std::thread::sleep(Duration::from_millis(300));
    helper.signal("INT");
    assert_eq!(helper.wait().code(), Some(130));
}

#[test]
fn ignored_signals_stay_ignored() {
    let mut helper = Helper::start(&[libc::SIGHUP], false);
    helper.command();
    // The command runs, so the helper has installed its handlers.
    let is_ignored = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM].map(|signal| helper.ignores(signal));
    assert_eq!(is_ignored, [true, false, false]);
    helper.signal("INT");
    assert_eq!(helper.wait().code(), Some(INTERRUPTED));
}

#[test]
fn commands_are_accounted_for_where_sigchld_was_ignored() {
    let mut helper = Helper::start(&[libc::SIGCHLD], false);
    let pid = helper.command();
    helper.signal("INT");
    assert_eq!(helper.wait().code(), Some(INTERRUPTED));
    assert_gone(&pid);
}

#[test]
#[cfg(target_os = "linux")]
fn a_command_does_not_outlive_a_killed_process() {
    if !crate::common::has_launcher() {
        return;
    }
    let mut helper = Helper::start(&[], false);
    let pid = helper.command();
    helper.child.kill().unwrap();
    assert_eq!(helper.wait().code(), None, "killed");
    assert_gone(&pid);
}
