//! Tests of `put` and `get` if a store does not answer, if a transfer is stopped, or if a disk is full.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

use ascertain_netlab::store::{Fault, Kind, Misdeed, Store};
use ascertain_sys::testing::{left_out, wait_until};

use crate::common::{Ran, ascertain, command, ran, send_signal};

/// Starts a server that accepts connections, and never answers. Returns its address.
fn silent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().map_while(Result::ok).collect::<Vec<_>>());
    address
}

/// Returns the address of a port at which no server listens.
fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn limits_of_retries_are_options() {
    let state = tempfile::tempdir().unwrap();
    let get = |address: SocketAddr, options: &[&str]| {
        let url = format!("http://{address}/x");
        ascertain(state.path(), &[&["get", &url, "b"], options].concat())
    };
    for (address, options, message) in [
        (nowhere(), &["--retries", "2"][..], "(tried 3 times)"),
        (nowhere(), &["--retries", "0"], "(tried once)"),
        (nowhere(), &["--retry-for", "1s"], "no request has succeeded for 1 s)"),
        (silent(), &["--timeout", "100ms", "--retries", "1"], "timed out without progress (tried 2 times)"),
    ] {
        let got = get(address, options);
        assert!(got.code == Some(5) && got.stderr.contains(message), "{options:?}: {}", got.stderr);
        assert!(got.stderr.contains(&address.to_string()), "{options:?}: {}", got.stderr);
    }
    for (options, message) in [
        (["--timeout", "5"], "`5` needs a unit"),
        (["--timeout", "soon"], "soon"),
        (["--retry-for", "10"], "`10` needs a unit"),
        (["--retry-for", "10 MB"], "10 MB"),
        (["--retries", "many"], "--retries"),
    ] {
        let got = get(nowhere(), &options);
        assert!(got.code == Some(2) && got.stderr.contains(message), "{options:?}: {}", got.stderr);
    }
}

/// The failure of a single file must have the same form in JSON as the failures of several files.
#[test]
fn a_single_failure_has_the_json_of_several() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), "a").unwrap();
    fs::create_dir(state.path().join("folder")).unwrap();
    let url = format!("http://user:PLANTED@{}/x?sig=PLANTED", nowhere());
    for (arguments, code, path, error) in [
        (&["get", &url, "folder", "--retries", "0"][..], 5, "folder/x", "tried once"),
        (&["put", "missing", "b"], 2, "missing", "can't read missing"),
        (&["put", "a", "folder/new/deep", "--memory", "1"], 2, "a", "memory"),
    ] {
        let text = ascertain(state.path(), arguments);
        let json = ascertain(state.path(), &[arguments, &["--format", "json"]].concat());
        assert_eq!((text.code, json.code), (Some(code), Some(code)), "{arguments:?}: {}{}", text.stderr, json.stderr);
        assert!(text.stdout.is_empty() && text.stderr == json.stderr, "{arguments:?}: {}", json.stderr);
        assert!(!json.stdout.contains("PLANTED"), "{}", json.stdout);
        let report = json.json();
        let file = &report["files"][0];
        assert_eq!((&report["way"], &file["done"]), (&arguments[0].into(), &"failed".into()), "{arguments:?}");
        assert_eq!(file["path"], path, "{arguments:?}");
        assert!(file["error"].as_str().unwrap().contains(error), "{arguments:?}: {}", file["error"]);
    }
}

/// Starts a command that transfers a file slowly. Stops it as soon as its journal records a part. SIGINT would be
/// ignored under `nohup` and `&`.
fn stopped(state: &Path, arguments: &[&str]) -> Ran {
    let mut slow = command(state, arguments);
    slow.args(["--limit", "500kB/s"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = slow.spawn().unwrap();
    let has_part = || {
        let entries = fs::read_dir(state.join("ascertain/transfers")).into_iter().flatten();
        let is_unfinished = |text: String| text.contains("\"done\"");
        entries.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok()).any(is_unfinished)
    };
    wait_until("a part is complete", has_part);
    send_signal(&child, "-TERM");
    ran(child.wait_with_output().unwrap())
}

#[test]
fn a_stop_reports_whether_the_same_command_resumes() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), vec![7; 10_000_000]).unwrap();
    for arguments in [["put", "a", "store/b"], ["get", "a", "c"]] {
        let first = stopped(state.path(), &arguments);
        assert_eq!(first.code, Some(130), "{}", first.stderr);
        assert_eq!(first.stderr.trim_end(), "interrupted; run the same command again to resume");
        let again = ascertain(state.path(), &[&arguments[..], &["--format", "json"]].concat());
        assert!(again.json()["files"][0]["resumed_bytes"].as_u64() > Some(0), "{}", again.stdout);
    }
    let mut stopped = command(state.path(), &["put", "a", "store/d", "--no-journal", "--limit", "500kB/s"]);
    let child = stopped.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = || fs::read_dir(state.path().join("store")).unwrap().count() > 1;
    wait_until("the upload has begun", begun);
    send_signal(&child, "-TERM");
    let stopped = ran(child.wait_with_output().unwrap());
    assert_eq!((stopped.code, stopped.stderr.trim_end()), (Some(130), "interrupted"));
}

/// Name of the environment variable that has the path of the small file system. The test
/// [`a_full_disk_shows_how_to_resume`] sets the variable for the process that it starts.
const SMALL: &str = "ASCERTAIN_TEST_SMALL";

#[test]
fn a_full_disk_shows_how_to_resume() {
    if let Some(folder) = std::env::var_os(SMALL) {
        return fill_and_resume(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=12m none \"${SMALL}\" && exec \"$0\" --exact outages::a_full_disk_shows_how_to_resume"
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let output = unshare.arg(std::env::current_exe().unwrap()).env(SMALL, folder.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if !output.status.success() && (printed.contains("unshare") || printed.contains("mount")) {
        return left_out(format!("no file system can be mounted: {printed}"));
    }
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

fn fill_and_resume(small: &Path) {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), vec![7; 8_000_000]).unwrap();
    let target = small.join("b");
    let target = target.to_str().unwrap();
    stopped(state.path(), &["get", "a", target]);
    // The rest of the file has no room, but a journal records the first parts.
    let filler = small.join("filler");
    fs::write(&filler, vec![1; 20_000_000]).unwrap_err();
    let hint = "; free some space, then run the same command again to resume";
    let full = ascertain(state.path(), &["get", "a", target]);
    assert!(full.code == Some(2) && full.stderr.trim_end().ends_with(hint), "{:?} {}", full.code, full.stderr);
    // Another transfer has no journal yet.
    let other = ascertain(state.path(), &["get", "a", small.join("c").to_str().unwrap()]);
    assert!(other.code == Some(2) && !other.stderr.contains("resume"), "{:?} {}", other.code, other.stderr);
    fs::remove_file(&filler).unwrap();
    let again = ascertain(state.path(), &["get", "a", target, "--format", "json"]);
    assert!(again.json()["files"][0]["resumed_bytes"].as_u64() > Some(0), "{}{}", again.stdout, again.stderr);
}

/// A page of a list has 1,000 objects. The store refuses the second page once.
#[test]
fn a_list_that_breaks_off_is_reported_and_resumed() {
    const FILES: usize = 1010;
    let state = tempfile::tempdir().unwrap();
    let store = Store::s3().start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    fs::create_dir(state.path().join("folder")).unwrap();
    (0..FILES).for_each(|number| fs::write(state.path().join(format!("folder/{number:04}")), "some").unwrap());
    let with_store = |arguments: &[&str]| {
        let mut command = command(state.path(), arguments);
        command.env("AWS_ENDPOINT_URL", store.url()).env("AWS_ACCESS_KEY_ID", &store.store().account);
        command.env("AWS_SECRET_ACCESS_KEY", &store.store().secret);
        ran(command.output().unwrap())
    };
    assert_eq!(with_store(&["put", "folder", "s3://bucket/p/"]).code, Some(0));
    let what = Misdeed::Refused { status: 403, retry_after_s: None };
    store.add_fault(Fault { on: Some(Kind::ListObjects), after: 1, times: 1, what });
    let got = with_store(&["get", "s3://bucket/p/", "back"]);
    assert_eq!(got.code, Some(5), "{}", got.stderr);
    assert!(got.stderr.contains("error: s3://bucket/p/: only the first 1000 objects were listed: "), "{}", got.stderr);
    assert!(got.stderr.contains("; run the same command again to transfer the rest"), "{}", got.stderr);
    assert_eq!(fs::read_dir(state.path().join("back")).unwrap().count(), 1000);
    let before = store.seen().len();
    let again = with_store(&["get", "s3://bucket/p/", "back"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let fetched = store.seen()[before..].iter().filter(|seen| seen.kind == Kind::GetObject).count();
    assert_eq!((fetched, fs::read_dir(state.path().join("back")).unwrap().count()), (FILES - 1000, FILES));
}
