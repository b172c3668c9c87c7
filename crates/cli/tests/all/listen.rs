//! Tests of `ascertain listen`, the remote side of measurements, as a process.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use ascertain_netlab::Error;
use ascertain_netlab::throughput::{Measurement, Refusal, Token, TrafficSpec, Transport, measure};
use ascertain_sys::testing::{left_out, wait_until};

use crate::common::{ascertain, command, send_signal};

const TOKEN: &str = "ASCERTAIN_LISTEN_TOKEN";

/// Returns an address of this machine for one listener. On Linux, each listener gets a different address, which no
/// other program uses. The port therefore stays free after the listener has ended.
fn own_address() -> Ipv4Addr {
    static NUMBER: AtomicU8 = AtomicU8::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let [.., high, low] = std::process::id().to_be_bytes();
    if cfg!(target_os = "linux") { Ipv4Addr::new(127, 1 + high % 200, low, number) } else { Ipv4Addr::LOCALHOST }
}

/// Measures the throughput. Tries again if the machine was too busy to begin in time, and returns the number of tries
/// too.
fn measure_at_last(address: SocketAddr, token: &Token, spec: &TrafficSpec) -> (Result<Measurement, Error>, u64) {
    for tries in 1.. {
        match measure(&address, token, spec, &|| false) {
            Err(Error::Refused(Refusal::Late)) => {}
            measured => return (measured, tries),
        }
    }
    unreachable!("it is tried for ever")
}

/// The listener of one test. Dropping this value kills it.
struct Running {
    process: Child,
    output: BufReader<ChildStdout>,
    address: SocketAddr,
    /// The command line to run on the other machine, as the listener prints it.
    line: String,
}

impl Running {
    fn new(more: &[&str]) -> Self {
        let on = format!("{}:0", own_address());
        let arguments = [&["listen", "--on", &on], more].concat();
        let mut process = command(Path::new("/"), &arguments).env_remove(TOKEN).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let [mut said, mut line] = [String::new(), String::new()];
        output.read_line(&mut said).unwrap();
        output.read_line(&mut line).unwrap();
        let address = said.strip_prefix("listening on ").unwrap().split(',').next().unwrap().parse().unwrap();
        Self { process, output, address, line: line.trim().into() }
    }

    fn token(&self) -> Token {
        let rest = self.line.strip_prefix(TOKEN).unwrap().strip_prefix('=').unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    }

    /// Ends the listener with a signal. Returns its output and its exit code.
    fn end(mut self, signal: &str) -> (String, Option<i32>) {
        send_signal(&self.process, signal);
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        (said, self.process.wait().unwrap().code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn it_serves_and_says_so_in_the_end() {
    let running = Running::new(&[]);
    let (address, token) = (running.address, running.token());
    assert!(running.line.ends_with(&format!("ascertain run link-throughput --at listener={address}")));
    let udp = Transport::Udp { rate_bits_per_s: 1_000_000, datagram_bytes: 500 };
    let mut tries = 0;
    for transport in [Transport::Tcp, udp] {
        let (measured, of_this) =
            measure_at_last(address, &token, &TrafficSpec { transport, ..TrafficSpec::default() });
        measured.unwrap();
        tries += of_this;
    }
    let other = Token::new().unwrap();
    assert!(matches!(measure(&address, &other, &TrafficSpec::default(), &|| false), Err(Error::NoListener)));
    // SIGHUP and SIGINT are ignored under `nohup` and `&`.
    let (said, code) = running.end("-TERM");
    let served = said.strip_prefix("served ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert!(served.is_some_and(|served: u64| (2..=tries).contains(&served)), "{tries}: {said}");
    assert!(said.contains("rejected 1 connection without"), "{said}");
    assert_eq!(code, Some(0));
    // The listener leaves nothing behind, and frees its port.
    TcpListener::bind(address).unwrap();
}

#[test]
fn what_kills_it_leaves_nothing() {
    let running = Running::new(&[]);
    let (address, token) = (running.address, running.token());
    let long = TrafficSpec { interval: Duration::from_secs(60), ..TrafficSpec::default() };
    // The client checks for a requested stop as soon as it is connected.
    let is_connected = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_connected);
    let is_stopped = move || {
        seen.store(true, Ordering::Relaxed);
        false
    };
    let client = std::thread::spawn(move || measure(&address, &token, &long, &is_stopped));
    wait_until("the client is connected", || is_connected.load(Ordering::Relaxed));
    let (said, code) = running.end("-KILL");
    assert_eq!((said.as_str(), code), ("", None));
    assert!(client.join().unwrap().is_err());
    TcpListener::bind(address).unwrap();
}

#[test]
fn it_stops_where_it_was_told_to() {
    let running = Running::new(&["--max-bytes", "10kB", "--token", "a-token-of-mine"]);
    assert_eq!(running.token().as_str(), "a-token-of-mine");
    let (used_up, _) = measure_at_last(running.address, &running.token(), &TrafficSpec::default());
    assert!(matches!(used_up, Err(Error::Refused(Refusal::UsedUp))), "{used_up:?}");
    assert_eq!(running.end("-TERM").0, "served 0 measurements, 10.00 kB\n");
}

#[test]
fn bad_usage_of_listen() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, says) in [
        (["--on", &*taken], "in use"),
        (["--on", "192.0.2.1:5200"], "choose another address with --on"),
        (["--on", "localhost"], "give an address"),
        (["--token", "short"], "invalid token: expected 8 to 64 ASCII characters"),
        (["--max-bytes", "many"], "many"),
    ] {
        let ran = ascertain(Path::new("/"), &[&["listen"][..], &arguments].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says) && ran.stdout.is_empty(), "{arguments:?}: {}", ran.stderr);
    }
}

/// Measures in the way that users do. The token is never recorded.
#[test]
fn the_other_side_measures() {
    if !cfg!(target_os = "linux") {
        left_out("link-throughput needs Linux");
        return;
    }
    let running = Running::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let listener = format!("listener={}", running.address);
    let mut arguments = vec!["run", "link-throughput", "--no-claims", "--at", &listener, "--max-time", "10min"];
    arguments.extend(["--max-trials", "2"]);
    let short = ["left_out_ms=20", "interval_ms=20", "measured_ms=100"];
    arguments.extend(short.iter().flat_map(|level| ["--at", *level]));
    arguments.extend(["--evidence", "evidence", "--format", "json"]);
    let mut command = command(folder.path(), &arguments);
    let output = command.env(TOKEN, running.token().as_str()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = json["points"].as_array().unwrap();
    assert!(points.iter().any(|point| point["metric"] == "throughput" && point["median"].as_f64() > Some(0.0)));
    let mut folders = vec![folder.path().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            files += 1;
            let bytes = std::fs::read(&entry).unwrap();
            let token = running.token();
            let is_there = bytes.windows(token.as_str().len()).any(|window| window == token.as_str().as_bytes());
            assert!(!is_there, "the token is in {}", entry.display());
        }
    }
    assert!(files >= 2, "there is no evidence");
}
