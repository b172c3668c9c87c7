//! Tests of the daemon `ascertain barrierd` as a process, if this machine and user can run it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ascertain_sync::barrierd::{Client, Error};
use ascertain_sys::testing::{left_out, wait_until};
use tempfile::TempDir;

use crate::common::{ascertain, command, send_signal};

/// The daemon of one test. Dropping this value kills it.
struct Running {
    process: Child,
    path: PathBuf,
    _folder: TempDir,
}

impl Running {
    /// Starts the daemon, or returns `None` if the machine or user can't run it.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/barrierd");
        let mut command = command(folder.path(), &["barrierd", "--path", path.to_str().unwrap()]);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        for line in BufReader::new(process.stderr.take().unwrap()).lines() {
            said = line.unwrap();
            if said.starts_with("barrierd:") {
                return Some(Self { process, path, _folder: folder });
            }
        }
        assert_eq!(process.wait().unwrap().code(), Some(4), "{said}");
        assert!(said.starts_with("error: "), "{said}");
        left_out(said);
        None
    }

    /// Returns a field of the daemon's `/proc/PID/status`.
    fn kernel_says(&self, field: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim_start_matches(':').trim().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn at_last() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn is_root(path: &Path) -> bool {
    std::os::unix::fs::MetadataExt::uid(&fs::metadata(path).unwrap()) == 0
}

#[test]
fn it_serves_without_privileges_and_ends_in_order() {
    let Some(mut running) = Running::new() else { return };
    let client = Client::open(&running.path).unwrap();
    client.wait(client.timestamp(), None, at_last()).unwrap();
    // CPUs may be interrupted without a heartbeat, so that waits for them succeed anyway. A wait for a CPU that does
    // not exist never succeeds, so it forces the daemon to make heartbeats.
    wait_until("the daemon beats", || {
        let deadline = Instant::now() + Duration::from_millis(10);
        assert!(matches!(client.wait(client.timestamp(), Some(&[u32::MAX]), deadline), Err(Error::Late { .. })));
        client.status().beats > 0
    });
    if is_root(Path::new("/proc/self")) {
        assert_eq!(running.kernel_says("Uid"), "65534\t65534\t65534\t65534");
        assert_eq!(u64::from_str_radix(&running.kernel_says("CapPrm"), 16), Ok(1 << 39));
        assert_eq!((running.kernel_says("NoNewPrivs"), running.kernel_says("Groups")), ("1".into(), String::new()));
    }
    let path = running.path.to_str().unwrap();
    let second = ascertain(Path::new("/"), &["barrierd", "--path", path]);
    assert_eq!(second.code, Some(2), "{}", second.stderr);
    assert!(second.stderr.contains("running") && second.stderr.contains(path), "{}", second.stderr);

    let status = ascertain(Path::new("/"), &["barrierd", "--status", "--path", path]);
    assert_eq!(status.code, Some(0), "{}", status.stderr);
    assert!(status.stdout.starts_with(&format!("barrierd at {path}: process {}", running.process.id())));
    let json = ascertain(Path::new("/"), &["barrierd", "--status", "--path", path, "--format", "json"]).json();
    assert_eq!((&json["schema"], &json["path"]), (&"ascertain.barrierd/1".into(), &path.into()));
    assert!(json["beats"].as_u64() >= Some(1) && json["cpus"].as_array().unwrap().len() == client.cpus() as usize);

    send_signal(&running.process, "-TERM");
    assert_eq!(running.process.wait().unwrap().code(), Some(0));
    assert!(matches!(client.wait(client.timestamp(), Some(&[u32::MAX]), at_last()), Err(Error::Gone)));
    assert!(matches!(Client::open(&running.path), Err(Error::NotRunning { .. })));
}

#[test]
fn a_client_of_a_killed_daemon_is_told_at_once() {
    let Some(mut running) = Running::new() else { return };
    let client = Client::open(&running.path).unwrap();
    assert!(client.is_alive());
    std::thread::scope(|scope| {
        // This CPU does not exist, so the client waits until the daemon has ended.
        let waiter = scope.spawn(|| client.wait(client.timestamp(), Some(&[u32::MAX]), at_last()));
        running.process.kill().unwrap();
        running.process.wait().unwrap();
        assert!(matches!(waiter.join().unwrap(), Err(Error::Gone)));
    });
    assert!(!client.is_alive());
}

#[test]
fn a_client_of_a_stopped_daemon_waits_no_longer_than_it_said() {
    let Some(running) = Running::new() else { return };
    let client = Client::open(&running.path).unwrap();
    send_signal(&running.process, "-STOP");
    let deadline = Instant::now() + Duration::from_millis(30);
    assert!(matches!(client.wait(client.timestamp(), Some(&[u32::MAX]), deadline), Err(Error::Late { .. })));
    assert!(client.is_alive(), "stopped is not ended");
}

#[test]
fn barrierd_once() {
    let ran = ascertain(Path::new("/"), &["barrierd", "--once", "--format", "json"]);
    if ran.code == Some(4) {
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
        return left_out(ran.stderr.trim());
    }
    let json = ran.json();
    assert!(json["path"].is_null() && json["barrier_ns"].as_u64() > Some(0), "{json}");
    let text = ascertain(Path::new("/"), &["barrierd", "--once"]).stdout;
    assert!(text.contains("waiting for all CPUs took"), "{text}");
}

#[test]
fn nothing_running_and_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let none = ascertain(folder.path(), &["barrierd", "--status", "--path", "none"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(4), ""));
    assert!(none.stderr.contains("no barrierd listens at none"), "{}", none.stderr);
    let way_out = "start it as root: sudo ascertain barrierd --path none";
    assert!(none.stderr.contains(way_out), "{}", none.stderr);
    let long = "a".repeat(104);
    let wrong: [(&[&str], &str); 7] = [
        (&["--format", "csv"], "--format json"),
        (&["--format", "json"], "--once or --status"),
        (&["--once", "--status"], "--status"),
        (&["--period", "0"], "give a time such as 250us"),
        (&["--period", "1s"], "give at most 500 ms"),
        (&["--period", "fast"], "fast"),
        (&["--status", "--path", &long], "103"),
    ];
    for (wrong, why) in wrong {
        let ran = ascertain(folder.path(), &[&["barrierd"], wrong].concat());
        assert_eq!(ran.code, Some(2), "{wrong:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{wrong:?}: {}", ran.stderr);
    }
}
