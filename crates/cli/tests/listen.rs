//! `ascertain listen`: the far side of measurements, as a process.
#![allow(missing_docs)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use ascertain_netlab::Error;
use ascertain_netlab::throughput::{Plan, Refusal, Token, Transport, measure};
use ascertain_sys::testing::left_out;
use common::{ascertain, command};

const TOKEN: &str = "ASCERTAIN_LISTEN_TOKEN";

/// A listener of a test's own, which ends with it.
struct Running {
    process: Child,
    output: BufReader<ChildStdout>,
    address: SocketAddr,
    /// What the other side is to type.
    line: String,
}

impl Running {
    fn new(more: &[&str]) -> Self {
        let arguments = [&["listen", "--on", "127.0.0.1:0"], more].concat();
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

    /// Ends it by a signal: what it says then, and its exit code.
    fn end(mut self, signal: &str) -> (String, Option<i32>) {
        let pid = self.process.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
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
    for transport in [Transport::Tcp, udp] {
        measure(&address, &token, &Plan { transport, ..Plan::default() }, &|| false).unwrap();
    }
    let other = Token::new().unwrap();
    assert!(matches!(measure(&address, &other, &Plan::default(), &|| false), Err(Error::NoListener)));
    // SIGHUP and SIGINT are ignored below `nohup` and `&`.
    let (said, code) = running.end("-TERM");
    assert!(said.starts_with("served 2 measurements, ") && said.contains("on 1 connection without"), "{said}");
    assert_eq!(code, Some(0));
    // It has left nothing: not even its port.
    TcpListener::bind(address).unwrap();
}

#[test]
fn what_kills_it_leaves_nothing() {
    let running = Running::new(&[]);
    let (address, token) = (running.address, running.token());
    let long = Plan { interval: Duration::from_secs(60), ..Plan::default() };
    let client = std::thread::spawn(move || measure(&address, &token, &long, &|| false));
    std::thread::sleep(Duration::from_millis(200));
    let (said, code) = running.end("-KILL");
    assert_eq!((said.as_str(), code), ("", None));
    assert!(client.join().unwrap().is_err());
    TcpListener::bind(address).unwrap();
}

#[test]
fn it_stops_where_it_was_told_to() {
    let running = Running::new(&["--max-bytes", "10kB", "--token", "a-token-of-mine"]);
    assert_eq!(running.token().as_str(), "a-token-of-mine");
    let used_up = measure(&running.address, &running.token(), &Plan::default(), &|| false);
    assert!(matches!(used_up, Err(Error::Refused(Refusal::UsedUp))), "{used_up:?}");
    assert_eq!(running.end("-TERM").0, "served 0 measurements, 10.00 kB\n");
}

#[test]
fn bad_usage_of_listen() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, says) in [
        (["--on", &*taken], "in use"),
        (["--on", "192.0.2.1:5200"], "--on takes another address"),
        (["--on", "localhost"], "give an address"),
        (["--token", "short"], "a token has 8 to 64 characters"),
        (["--max-bytes", "many"], "many"),
    ] {
        let ran = ascertain(Path::new("/"), &[&["listen"][..], &arguments].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says) && ran.stdout.is_empty(), "{arguments:?}: {}", ran.stderr);
    }
}

/// As people do it; and the token is not written down.
#[test]
fn the_other_side_measures() {
    if !cfg!(target_os = "linux") {
        left_out("link-throughput needs Linux");
        return;
    }
    let running = Running::new(&[]);
    let folder = tempfile::tempdir().unwrap();
    let listener = format!("listener={}", running.address);
    let mut arguments = vec!["run", "link-throughput", "--no-claims", "--at", &listener, "--max-trials", "2"];
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
