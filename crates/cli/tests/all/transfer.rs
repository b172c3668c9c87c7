//! Tests of the experiment `transfer`, run as users run it.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use ascertain_netlab::store::{Kind, RunningStore, Store};
use ascertain_sys::testing::wait_until;

use crate::common::{ascertain, command, ran, runs, send_signal};

fn started(store: Store) -> RunningStore {
    store.start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap()
}

/// Returns a command with the environment that this store needs.
fn command_for(state: &Path, store: &RunningStore, arguments: &[&str]) -> std::process::Command {
    let mut command = command(state, arguments);
    command.env("AWS_ENDPOINT_URL", store.url()).env("AWS_ACCESS_KEY_ID", &store.store().account);
    command.env("AWS_SECRET_ACCESS_KEY", &store.store().secret);
    command
}

/// Returns the paths and the contents of all files below a folder, as one text.
fn text_below(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        text += &path.to_string_lossy();
        text +=
            &if path.is_dir() { text_below(&path) } else { String::from_utf8_lossy(&fs::read(path).unwrap()).into() };
    }
    text
}

#[test]
fn it_needs_nothing_installed() {
    let state = tempfile::tempdir().unwrap();
    let mut arguments = vec!["run", "transfer", "--no-claims", "--max-time", "1h", "-t", "2", "--format", "json"];
    let levels = ["size=2M,4M", "block=250k,500k", "connections=8", "scale=1", "rtt_ms=10", "rate_kb_s=20000"];
    arguments.extend(levels.iter().flat_map(|level| ["--at", *level]));
    let ran = ascertain(state.path(), &arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json = ran.json();
    let points = json["points"].as_array().unwrap().iter().filter(|point| point["metric"] == "time");
    let measured: Vec<_> = points.filter(|point| point["n"] == 2).collect();
    // The factor `block` applies only to the variant `blocks`.
    let of = |variant| measured.iter().filter(|point| point["variant"] == variant).count();
    assert_eq!((of("one-stream"), of("blocks"), of("model")), (2, 4, 2), "{}", ran.stdout);
    let has_blocks = |point: &&&serde_json::Value| point["at"].get("block").is_some();
    assert_eq!(measured.iter().filter(has_blocks).count(), 4, "{}", ran.stdout);
    let folder = &runs(state.path())[0];
    let evidence = text_below(folder);
    // The evidence has the fact `carrier`: a property of the connection, or the reason why there is none.
    assert!(evidence.contains("\"carrier\""), "{evidence}");
    let Store { secret, .. } = Store::azure();
    assert!(!evidence.contains(&secret));
    for metric in ["time", "rate"] {
        let plot = |factor| {
            let plot = format!("transfer-{metric}-{factor}-sweep");
            let drawn = ascertain(state.path(), &["report", "latest", "--svg", &plot]);
            assert_eq!(drawn.code, Some(0), "{}", drawn.stderr);
            drawn.stdout
        };
        assert!(plot("size").contains(">model"));
        assert!(plot("block").contains("at the level that model chose"));
    }
}

#[test]
fn somebodys_store_is_as_it_was_and_its_keys_are_nowhere() {
    let state = tempfile::tempdir().unwrap();
    let secret = "a-secret-that-is-looked-for";
    let store = started(Store { secret: secret.into(), ..Store::s3() });
    let arguments = [
        "run",
        "transfer",
        "--no-claims",
        "--max-time",
        "1h",
        "-t",
        "1",
        "--at",
        "size=12M",
        "--at",
        "block=6M",
        "--at",
    ];
    let mut command = command_for(state.path(), &store, &[&arguments[..], &["url=s3://bucket/mine"]].concat());
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let seen = store.seen();
    assert!(seen.iter().any(|seen| seen.kind == Kind::Commit && seen.key.starts_with("mine/ascertain-")), "{seen:?}");
    let names = seen.iter().map(|seen| &seen.key);
    assert!(names.into_iter().all(|name| store.object("bucket", name).is_none()) && store.uploads("bucket") == 0);
    let evidence = text_below(state.path());
    assert!(evidence.contains("s3://bucket/mine") && !evidence.contains(secret) && !ran.stderr.contains(secret));
    assert!(!ran.stdout.contains(secret));
}

#[test]
fn nothing_is_left_there_after_ctrl_c() {
    for variant in ["one-stream", "blocks", "model"] {
        let state = tempfile::tempdir().unwrap();
        // At this rate, the transfer would take an hour, so it is always interrupted.
        let store = started(Store { bytes_per_s: Some(5_000), ..Store::s3() });
        let arguments = [
            "run",
            "transfer",
            "--no-claims",
            "--max-time",
            "1h",
            "--variants",
            variant,
            "--at",
            "size=24M",
            "--at",
            "block=6M",
        ];
        let arguments = [&arguments[..], &["--at", "url=s3://bucket/mine"]].concat();
        let mut command = command_for(state.path(), &store, &arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("a byte has arrived", || store.seen().iter().any(|seen| seen.body_bytes > 0));
        // SIGINT is ignored under `nohup` and `&`.
        send_signal(&child, "-TERM");
        let ran = ran(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(130), "{variant}: {}", ran.stderr);
        let seen = store.seen();
        assert!(seen.iter().all(|seen| store.object("bucket", &seen.key).is_none()), "{variant}: {seen:?}");
        assert_eq!(store.uploads("bucket"), 0, "{variant}: {seen:?}");
    }
}

/// An interruption is reported only once, even if there are several files, and the message says how to resume.
#[test]
fn ctrl_c_among_many_files_is_said_once() {
    let state = tempfile::tempdir().unwrap();
    fs::create_dir(state.path().join("folder")).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(state.path().join("folder").join(name), vec![7; 1 << 20]).unwrap();
    }
    // The transfer would take minutes, so it is always interrupted.
    let store = started(Store { bytes_per_s: Some(1_000), ..Store::s3() });
    let mut command = command_for(state.path(), &store, &["put", "folder", "s3://bucket"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the store has received a request", || !store.seen().is_empty());
    send_signal(&child, "-TERM");
    let ran = ran(child.wait_with_output().unwrap());
    let said = "interrupted: 3 of 3 files not transferred; run the same command to resume\n";
    assert_eq!((ran.code, &*ran.stderr, &*ran.stdout), (Some(130), said, ""));
}

/// The address of a store is a level, and levels are recorded. An address that contains a secret is therefore refused,
/// without printing the secret.
#[test]
fn an_address_with_a_secret_is_refused() {
    let state = tempfile::tempdir().unwrap();
    for url in ["az://box/a?sig=planted", "s3://key:planted@bucket", "https://planted.blob.core.windows.net/box"] {
        let ran = ascertain(state.path(), &["run", "transfer", "--at", &format!("url={url}")]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("s3://") && !ran.stderr.contains("planted"), "{}", ran.stderr);
    }
    assert!(runs(state.path()).is_empty());
}
