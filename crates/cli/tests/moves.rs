//! `put` and `get`, with files of this machine as the store.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
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
    // To say what would be done is to do nothing.
    let got = ascertain(state.path(), &["get", "there", "-", "--dry-run"]);
    assert!(got.code == Some(0) && !got.stdout.contains("some words"), "{}", got.stdout);
    let put = ascertain(state.path(), &["put", "-", "elsewhere", "--dry-run"]);
    assert!(put.code == Some(0) && !state.path().join("elsewhere").exists(), "{}", put.stdout);
}

#[test]
fn what_goes_wrong_has_a_code_and_a_way_out() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), "a").unwrap();
    fs::create_dir(state.path().join("folder")).unwrap();
    fs::write(state.path().join("folder/a"), "a").unwrap();
    std::os::unix::fs::symlink("a", state.path().join("link")).unwrap();
    for (arguments, code, said) in [
        (&["get", "nothing", "b"][..], 5, "there is no such object"),
        (&["put", "nothing", "b"], 2, "can't read nothing"),
        (&["put", "a", "ftp://host/a"], 2, "an address begins with"),
        (&["put", "a", "s3:bucket/a"], 2, "if a file is meant, `./s3:bucket/a`"),
        (&["put", "a", "s3:///a"], 2, "s3://BUCKET/NAME"),
        (&["put", "a", "a", "b"], 2, "ends with a slash"),
        (&["put", "-", "folder/"], 2, "give its name"),
        (&["get", "empty/", "b"], 4, "nothing of that name"),
        (&["put", "a", "b", "--limit", "0MB/s"], 2, "no rate"),
        (&["put", "a", "b", "--memory", "x"], 2, "--memory"),
        (&["put", "a", "b", "--format", "csv"], 2, "--format json"),
        (&["put", "a", "b", "--fresh", "--no-journal"], 2, "cannot be used with"),
        (&["put", "a", "b", "--anonymous", "--metadata"], 2, "cannot be used with"),
        // What is missing here is no failure of a store.
        (&["put", "a", "s3://bucket/a"], 2, "--anonymous goes without"),
        (&["put", "a", "gs://bucket/a", "--dry-run"], 2, "--metadata asks"),
        (&["put", "a", "az://box/a"], 2, "AZURE_STORAGE_ACCOUNT"),
        (&["get", "s3://bucket/", "b", "--profile", "none"], 2, "the profile none is neither"),
        (&["put", "a", "http://127.0.0.1:1/a"], 2, "can only be read from"),
        (&["put", "a", "https://127.0.0.1:1/a", "--dry-run"], 2, "can only be read from"),
        (&["get", "http://127.0.0.1:1/", "b"], 2, "no folders"),
        (&["put", "a", "./"], 2, "are the same file"),
        (&["put", "a", "link", "--dry-run"], 2, "are the same file"),
        (&["get", "./", "."], 2, "are the same file"),
        (&["put", "a", "b", "--memory", "1"], 2, "--memory 64KiB"),
        (&["put", "-", "b", "--memory", "1"], 2, "--memory 64KiB"),
        (&["put", "a", "folder/a", "other/"], 2, "would both be file:///"),
    ] {
        // Nobody's credentials.
        let ran = ran(command(state.path(), arguments).env("HOME", state.path()).output().unwrap());
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
    }
    // Whatever is in an address is not said again.
    let secret = "https://user:hunter2@127.0.0.1:1/x?sig=hunter2";
    let ran = ascertain(state.path(), &["get", secret, "b", "--no-journal"]);
    assert!(ran.code == Some(5) && !ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

/// As other commands do, whose reader has seen enough.
#[test]
fn an_output_that_nobody_reads_to_its_end_is_no_failure() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), vec![7; 1_000_000]).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let got = ran(command(state.path(), &["get", "a", "-"]).stdout(writer).output().unwrap());
    assert_eq!((got.code, &*got.stderr), (Some(0), ""));
}

/// As if nobody had written to anything in a folder for an hour.
fn age(path: &Path) {
    if path.is_symlink() {
        return;
    }
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(3601);
    fs::File::open(path).unwrap().set_modified(before).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| age(&entry.unwrap().path()));
    }
}

#[test]
fn what_a_killed_put_has_left_is_cleaned() {
    let state = tempfile::tempdir().unwrap();
    let store = state.path().join("store");
    fs::create_dir(&store).unwrap();
    let mut put = command(state.path(), &["put", "-", "store/a"]);
    let mut child = put.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&vec![7; 3 << 20]).unwrap();
    // It waits for more.
    while fs::read_dir(&store).unwrap().count() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let clean = || {
        age(&store);
        ascertain(state.path(), &["clean", "store"])
    };
    assert_eq!((clean().code, &*clean().stdout), (Some(0), "nothing is left\n"), "it is not over");
    // Rust's name for SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    let cleaned = clean();
    let said = "store/a is given up, from standard input\n";
    assert!(cleaned.code == Some(0) && cleaned.stdout.ends_with(said), "{}{}", cleaned.stdout, cleaned.stderr);
    assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
    assert_eq!(clean().stdout, "nothing is left\n");
}

#[test]
fn only_what_nobody_needs_any_more_is_cleaned() {
    let state = tempfile::tempdir().unwrap();
    // Numbers of processes end below.
    let (gone, here) = (2_000_000_000_u32, std::process::id());
    let left = [
        format!("ascertain-netlab-{gone}-0"),
        format!("ascertain-cache-{gone}-00ff00ff00ff00ff"),
        format!("deep/er/.a b.18f-{gone:x}-0.upload"),
        format!("deep/.c.0123456789abcdef-{gone}.part"),
    ];
    let kept = [
        format!("ascertain-netlab-{here}-0"),
        format!("ascertain-cache-{here}-00ff00ff00ff00ff"),
        format!("deep/.a.18f-{here:x}-0.upload"),
        format!("ascertain-mine-{gone}-0"),
        // A journal goes on with it.
        format!("deep/.b.18f-{gone:x}-1.upload"),
        // Somebody writes to it, who may be on another machine.
        format!("deep/.d.18f-{gone:x}-2.upload"),
    ];
    for name in left.iter().chain(&kept) {
        fs::create_dir_all(state.path().join("here").join(name)).unwrap();
        fs::write(state.path().join("here").join(name).join("x"), "x").unwrap();
    }
    std::os::unix::fs::symlink(state.path().join("here"), state.path().join("here/circle")).unwrap();
    fs::create_dir_all(state.path().join("ascertain/transfers")).unwrap();
    let side = r#"{"place":"/b","version":null,"bytes":9}"#;
    let begun = format!(r#"{{"version":1,"source":{side},"destination":{side},"upload":"18f-{gone:x}-1"}}"#);
    fs::write(state.path().join("ascertain/transfers/1.journal"), format!("{{\"begun\":{begun}}}\n")).unwrap();
    age(&state.path().join("here"));
    fs::write(state.path().join("here").join(&kept[5]).join("x"), "y").unwrap();
    let cleaned = ascertain(state.path(), &["clean", "here"]);
    assert_eq!((cleaned.code, cleaned.stdout.lines().count()), (Some(0), 6), "{}{}", cleaned.stdout, cleaned.stderr);
    assert!(cleaned.stdout.contains(".d.18f-77359400-2.upload stays"), "{}", cleaned.stdout);
    let is_there = |name: &String| state.path().join("here").join(name).exists();
    assert!(!left.iter().any(is_there) && kept.iter().all(is_there), "{}", cleaned.stdout);
    let missing = ascertain(state.path(), &["clean", "nowhere"]);
    assert!(missing.code == Some(5) && missing.stderr.contains("nowhere: No such file"), "{}", missing.stderr);
}

/// Answers everything with what it was told, as an error.
fn parrot() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut told = [0; 4096];
            let bytes = stream.read(&mut told).unwrap_or(0);
            let head = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length:";
            let _ = stream.write_all(format!("{head} {bytes}\r\n\r\n").as_bytes());
            let _ = stream.write_all(&told[..bytes]);
        }
    });
    address
}

/// All that is in files below a folder.
fn all_files(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        all += &entry.path().display().to_string();
        match entry.path().is_dir() {
            true => all += &all_files(&entry.path()),
            false => all += &String::from_utf8_lossy(&fs::read(entry.path()).unwrap()),
        }
    }
    all
}

#[test]
fn no_secret_is_said_or_written() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), "a").unwrap();
    let address = parrot();
    let endpoint = format!("http://ann:PLANTEDUSER@{address}/?x=PLANTEDQUERY");
    let get = format!("http://ann:PLANTEDUSER@{address}/x?sig=PLANTEDQUERY");
    for arguments in [
        &["put", "a", "s3://bucket/a", "--endpoint-url", &endpoint][..],
        &["put", "a", "s3://bucket/a", "--endpoint-url", &endpoint, "--format", "json"],
        &["put", "a", "az://bucket/", "--endpoint-url", &endpoint],
        &["get", "gs://bucket/", "b", "--endpoint-url", &endpoint],
        &["get", &get, "b"],
        &["get", &get, "nowhere/\u{1b}[2J", "--format", "csv"],
        &["put", "a", &get.replace("http", "wss")],
    ] {
        let mut command = command(state.path(), arguments);
        for (name, value) in [
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "PLANTEDKEY"),
            ("AWS_SESSION_TOKEN", "PLANTEDTOKEN"),
            ("AZURE_STORAGE_ACCOUNT", "account"),
            ("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=PLANTEDSAS"),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "PLANTEDBEARER"),
        ] {
            command.env(name, value);
        }
        let ran = ran(command.output().unwrap());
        assert!(matches!(ran.code, Some(2 | 5)) && !ran.stderr.is_empty(), "{arguments:?}: {}", ran.stderr);
        for text in [ran.stdout, ran.stderr, all_files(state.path())] {
            assert!(!text.contains("PLANTED") && !text.contains('\u{1b}'), "{arguments:?}: {text}");
        }
    }
}

/// What a disk or a journal has no place for has a code and a way out.
#[test]
fn a_journal_that_can_not_be_kept_has_a_way_out() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), vec![7; 1_000_000]).unwrap();
    fs::create_dir(state.path().join("ascertain")).unwrap();
    let journals = state.path().join("ascertain/transfers");
    fs::write(&journals, "no folder").unwrap();
    let put = ascertain(state.path(), &["put", "a", "b"]);
    assert!(put.code == Some(2) && put.stderr.contains("--no-journal moves without one"), "{}", put.stderr);
    assert!(!state.path().join("b").exists());
    let put = ascertain(state.path(), &["put", "a", "b", "--no-journal"]);
    assert!(put.code == Some(0) && state.path().join("b").exists(), "{}", put.stderr);
}
