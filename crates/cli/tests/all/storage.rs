//! Tests of `ascertain run storage` with a store at an address: the bill, and the objects after a signal or a kill.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use ascertain_netlab::store::{Kind, RunningStore, Store};
use ascertain_sys::testing::wait_until;

use crate::common::{Ran, command, kill, ran, send_signal};

fn store() -> RunningStore {
    // The store is so slow that uploads are in flight most of the time.
    let store = Store { bytes_per_s: Some(2_000_000), ..Store::s3() };
    store.start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap()
}

fn url(store: &RunningStore) -> String {
    format!("s3+http://{}/bucket/mine", store.address())
}

fn with_keys(store: &RunningStore, state: &Path, arguments: &[&str]) -> Command {
    let mut command = command(state, arguments);
    let Store { account, secret, .. } = store.store();
    command.env("AWS_ACCESS_KEY_ID", account).env("AWS_SECRET_ACCESS_KEY", secret).env("NO_PROXY", "127.0.0.1");
    command
}

fn measuring(store: &RunningStore, state: &Path) -> Command {
    let at = format!("url={}", url(store));
    let levels = ["--at", &at, "--at", "operation=upload,download", "--at", "size=20000", "--at", "object=warm,cold"];
    let run = ["run", "storage", "--no-claims", "--no-evidence", "--max-time", "5m", "--variants", "url"];
    let mut command = with_keys(store, state, &[&run[..], &levels].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn clean(store: &RunningStore, state: &Path) -> Ran {
    ran(with_keys(store, state, &["clean"]).output().unwrap())
}

/// Waits until no connection of a process that has ended is left, and so no request.
fn wait_for_quiet(store: &RunningStore) {
    // The store accepts connections in order. When it has answered this request, it has accepted all earlier ones.
    let mut last = TcpStream::connect(store.address()).unwrap();
    last.write_all(b"GET / HTTP/1.1\r\nHost: store\r\nConnection: close\r\n\r\n").unwrap();
    last.read_to_end(&mut Vec::new()).unwrap();
    drop(last);
    wait_until("no connection is left", || store.connections() == 0);
}

/// Returns the keys of the objects that exist.
fn existing(store: &RunningStore) -> Vec<String> {
    let mut keys: Vec<String> = store.seen().into_iter().map(|seen| seen.key).filter(|key| !key.is_empty()).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| store.object("bucket", key).is_some());
    keys
}

/// Stores an object that no run has written, so that no run and no `clean` may touch it.
fn put_theirs(store: &RunningStore, state: &Path) {
    std::fs::write(state.join("theirs"), "theirs").unwrap();
    let endpoint = store.url();
    let put = ["put", "theirs", "s3://bucket/mine/ascertain-theirs", "--endpoint-url", &endpoint];
    assert!(with_keys(store, state, &put).output().unwrap().status.success());
}

/// Runs are killed after different numbers of requests. Each time, `clean` deletes the objects that the run has
/// written, and no others.
#[test]
fn a_killed_run_leaves_nothing_that_clean_does_not_remove() {
    let (store, state) = (store(), tempfile::tempdir().unwrap());
    put_theirs(&store, state.path());
    let mut left_behind = 0;
    for number in 0..20_u64 {
        let before = store.seen().len();
        let requests = 2 + (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize;
        let child = measuring(&store, state.path()).spawn().unwrap();
        wait_until("the run sends requests", || store.seen().len() >= before + requests);
        kill(child);
        wait_for_quiet(&store);
        left_behind += existing(&store).len() - 1;
        let cleaned = clean(&store, state.path());
        assert_eq!(cleaned.code, Some(0), "{}{}", cleaned.stdout, cleaned.stderr);
        assert_eq!(existing(&store), ["mine/ascertain-theirs"], "after {requests} requests");
        assert_eq!(std::fs::read_dir(state.path().join("ascertain/storage-objects")).unwrap().count(), 0);
    }
    assert!(left_behind > 0, "no kill left an object");
    let deleted = store.seen().into_iter().filter(|seen| seen.kind == Kind::DeleteObject);
    assert!(
        deleted.map(|seen| seen.key).all(|key| key != "mine/ascertain-theirs" && key.starts_with("mine/ascertain-"))
    );
    assert!(store.seen().iter().all(|seen| seen.kind != Kind::ListObjects), "only single keys are listed");
}

/// When a stop is requested, a run deletes its objects before it exits.
#[test]
fn an_interrupted_run_deletes_its_objects() {
    let (store, state) = (store(), tempfile::tempdir().unwrap());
    let mut child = measuring(&store, state.path()).spawn().unwrap();
    wait_until("the run sends requests", || store.seen().len() >= 20);
    // A shell that starts CI in the background makes its processes ignore SIGINT.
    send_signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for_quiet(&store);
    assert!(existing(&store).is_empty(), "{:?}", existing(&store));
    assert_eq!(std::fs::read_dir(state.path().join("ascertain/storage-objects")).unwrap().count(), 0);
    assert!(clean(&store, state.path()).stdout.contains("nothing to remove"));
}

/// The expected bill is printed before the first request, and invalid prices prevent the run.
#[test]
fn a_bill_comes_before_the_first_request() {
    let (store, state) = (store(), tempfile::tempdir().unwrap());
    let prices = "source = 'https://example.com/prices'\ndate = '2026-11-01'\n[[store]]\naddress = 's3'\n\
                  currency = 'USD'\nper_1000_writes = 0.005\nper_1000_reads = 0.0004\nper_gb_read = 0.09\n";
    std::fs::write(state.path().join("prices.toml"), prices).unwrap();
    let at = format!("url={}", url(&store));
    let run = |more: &[&str]| {
        let run = ["run", "storage", "--no-claims", "--no-evidence", "--variants", "url", "--trials", "3", "--at", &at];
        ran(with_keys(&store, state.path(), &[&run[..], more].concat()).output().unwrap())
    };
    let refused = run(&["--at", "max_cost=1EUR", "--at", "prices=prices.toml"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("the prices are in USD"), "{}", refused.stderr);
    assert!(store.seen().is_empty());
    let done = run(&["--at", "max_cost=0.01USD", "--at", "prices=prices.toml"]);
    let bill = done.stderr.find("requests and").unwrap_or_else(|| panic!("{}{}", done.stdout, done.stderr));
    assert!(done.stderr[bill..].contains("prices of 2026-11-01, https://example.com/prices"), "{}", done.stderr);
    assert!(done.stderr.contains("never more than 5,000 requests, 2.000 GB or 0.01 USD"), "{}", done.stderr);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
}
