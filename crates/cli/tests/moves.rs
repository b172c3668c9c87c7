//! `put` and `get`, with files of this machine as the store.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use common::{ascertain, command, ran};

#[test]
fn files_go_there_and_back() {
    let state = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..2_000_000_u32).map(|index| (index % 251) as u8).collect();
    fs::write(state.path().join("a b"), &content).unwrap();
    let put = ascertain(state.path(), &["put", "a b", "store/deep/", "--verify"]);
    assert_eq!(put.code, Some(0), "{}", put.stderr);
    assert!(put.stdout.contains("2.000 MB in ") && put.stdout.contains("read back and the same"), "{}", put.stdout);
    assert_eq!(fs::read(state.path().join("store/deep/a b")).unwrap(), content);
    let url = format!("file://{}/store/deep/a b", state.path().canonicalize().unwrap().display());
    let got = ascertain(state.path(), &["get", &url, "back", "--format", "json"]);
    let json = got.json();
    assert_eq!((got.code, json["files"][0]["done"].as_str()), (Some(0), Some("moved")), "{}", got.stderr);
    assert_eq!(fs::read(state.path().join("back")).unwrap(), content);
    let again = ascertain(state.path(), &["get", &url, "back", "--no-clobber"]);
    assert!(again.code == Some(0) && again.stdout.contains("left alone, for it is there"), "{}", again.stdout);
    // Folders, and what of them is meant.
    let said = ascertain(state.path(), &["put", "store", "copy/", "--include", "a*", "--dry-run"]);
    assert!(said.stdout.contains("deep/a b: 2.000 MB") && !state.path().join("copy").exists(), "{}", said.stdout);
    assert_eq!(ascertain(state.path(), &["put", "store", "copy/"]).code, Some(0));
    assert_eq!(fs::read(state.path().join("copy/deep/a b")).unwrap(), content);
    assert_eq!(ascertain(state.path(), &["get", "copy/", "third"]).code, Some(0));
    assert_eq!(fs::read(state.path().join("third/deep/a b")).unwrap(), content);
    assert_eq!(fs::read_dir(state.path().join("ascertain/transfers")).unwrap().count(), 0, "nothing is left over");
}

#[test]
fn standard_input_and_output() {
    let state = tempfile::tempdir().unwrap();
    let mut put = command(state.path(), &["put", "-", "there"]);
    let mut child = put.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"some words").unwrap();
    let put = ran(child.wait_with_output().unwrap());
    assert_eq!(put.code, Some(0), "{}", put.stderr);
    let got = ascertain(state.path(), &["get", "there", "-"]);
    assert_eq!((got.code, &*got.stdout), (Some(0), "some words"));
    assert!(got.stderr.contains("10 B in "), "{}", got.stderr);
}

#[test]
fn what_goes_wrong_has_a_code_and_a_way_out() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), "a").unwrap();
    for (arguments, code, said) in [
        (&["get", "nothing", "b"][..], 5, "there is no such object"),
        (&["put", "nothing", "b"], 2, "can't read nothing"),
        (&["put", "a", "ftp://host/a"], 2, "an address begins with"),
        (&["put", "a", "s3:///a"], 2, "s3://BUCKET/NAME"),
        (&["put", "a", "a", "b"], 2, "ends with a slash"),
        (&["put", "-", "folder/"], 2, "give its name"),
        (&["get", "empty/", "b"], 4, "nothing of that name"),
        (&["put", "a", "b", "--limit", "0MB/s"], 2, "no rate"),
        (&["put", "a", "b", "--memory", "x"], 2, "--memory"),
        (&["put", "a", "b", "--format", "csv"], 2, "--format json"),
        (&["put", "a", "b", "--fresh", "--no-journal"], 2, "cannot be used with"),
    ] {
        let ran = ascertain(state.path(), arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
    }
    // Whatever is in an address is not said again.
    let secret = "https://user:hunter2@127.0.0.1:1/x?sig=hunter2";
    let ran = ascertain(state.path(), &["get", secret, "b", "--no-journal"]);
    assert!(ran.code == Some(5) && !ran.stderr.contains("hunter2"), "{}", ran.stderr);
}
