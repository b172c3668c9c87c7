//! Tests of `clean`: it removes the uploads and files that `put` and `get` leave behind if they are killed.

use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ascertain_netlab::store::{Dialect, Kind, RunningStore, Store};
use ascertain_sys::testing::wait_until;

use crate::common::{Ran, command, kill, ran};

fn start(store: Store) -> (RunningStore, String) {
    let scheme = match store.dialect {
        Dialect::S3 => "s3",
        Dialect::Gcs => "gs",
        Dialect::Azure => "az",
    };
    let store = store.start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    (store, format!("{scheme}://bucket/deep/a"))
}

/// Returns a command with the credentials of a store whose endpoint contains a secret.
fn of_store(store: &RunningStore, state: &Path, arguments: &[&str]) -> Command {
    let (account, secret) = (&store.store().account, &store.store().secret);
    let mut command = command(state, arguments);
    command.env("AWS_ACCESS_KEY_ID", account).env("AWS_SECRET_ACCESS_KEY", secret);
    command.env("AZURE_STORAGE_ACCOUNT", account).env("AZURE_STORAGE_KEY", secret);
    command.env("GOOGLE_OAUTH_ACCESS_TOKEN", secret);
    command
}

/// The command searches only this folder, because the folders for temporary files may contain leftovers of other
/// programs.
const CLEAN: &[&str] = &["clean", "."];

fn clean(store: &RunningStore, state: &Path, arguments: &[&str]) -> Ran {
    ran(of_store(store, state, &[CLEAN, arguments].concat()).output().unwrap())
}

/// Creates a file that is so large that no transfer of it completes before it is killed.
fn large_file(state: &Path) {
    File::create(state.join("file")).unwrap().set_len(1 << 30).unwrap();
}

/// Starts a `put`, and waits until some of its parts are stored and others are not.
fn putting(store: &RunningStore, state: &Path, arguments: &[&str]) -> Child {
    let endpoint = store.url().replace("://", "://ann:PLANTEDUSER@") + "/?x=PLANTEDQUERY";
    let arguments = [&["put"], arguments, &["--endpoint-url", &endpoint, "--quiet"]].concat();
    let mut put = of_store(store, state, &arguments);
    let before = store.seen().len();
    let mut child = put.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    if arguments[1] == "-" {
        // The command keeps waiting for more input, because this pipe stays open.
        child.stdin.as_mut().unwrap().write_all(&vec![7; 12 << 20]).unwrap();
    }
    let is_there = || store.seen()[before..].iter().any(|seen| seen.kind == Kind::PutBlock && seen.status.is_some());
    wait_until("a block is in the store", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        is_there()
    });
    child
}

fn journals(state: &Path) -> Vec<String> {
    let entries = fs::read_dir(state.join("ascertain/transfers")).unwrap();
    entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn an_upload_that_nobody_can_go_on_with_is_given_up() {
    for served in [Store::s3(), Store::gcs()] {
        let state = tempfile::tempdir().unwrap();
        let state = state.path();
        large_file(state);
        let (store, address) = start(served);
        let from_file = ["file", &address, "--no-journal", "--limit", "8MB/s"];
        for (arguments, from) in [(&["-", &address][..], "standard input"), (&from_file, "/file")] {
            let child = putting(&store, state, arguments);
            assert_eq!(store.uploads("bucket"), 1);
            assert_eq!(clean(&store, state, &[]).stdout, "nothing to remove\n", "the upload continues");
            assert_eq!(store.uploads("bucket"), 1);
            kill(child);
            let note = journals(state).concat();
            assert!(note.contains(&address) && !note.contains("PLANTED"), "{note}");
            assert!(!note.contains(&store.store().secret), "{note}");

            // Without credentials, the command reports an error, and keeps the note of the upload.
            let refused = ran(command(state, CLEAN).output().unwrap());
            assert!(refused.code == Some(5) && refused.stderr.contains(&address), "{}", refused.stderr);
            assert_eq!((store.uploads("bucket"), journals(state).len()), (1, 1));

            let cleaned = clean(&store, state, &[]);
            let said = format!("{address}: aborted, from ");
            assert!(
                cleaned.code == Some(0) && cleaned.stdout.starts_with(&said),
                "{}{}",
                cleaned.stdout,
                cleaned.stderr
            );
            assert!(cleaned.stdout.ends_with(&format!("{from}\n")), "{}", cleaned.stdout);
            assert_eq!((store.uploads("bucket"), journals(state).len()), (0, 0));
            assert_eq!(clean(&store, state, &[]).stdout, "nothing to remove\n");
        }
    }
}

#[test]
fn a_journal_is_named_until_it_is_given_up() {
    for served in [Store::s3(), Store::azure()] {
        let state = tempfile::tempdir().unwrap();
        let state = state.path();
        large_file(state);
        let (store, address) = start(served);
        kill(putting(&store, state, &["file", &address, "--limit", "8MB/s"]));
        let is_s3 = store.store().dialect == Dialect::S3;
        for arguments in [&[][..], &["--give-up", "1h"]] {
            let named = clean(&store, state, arguments);
            let said = format!("{address}: incomplete, ");
            assert!(named.code == Some(0) && named.stdout.starts_with(&said), "{}{}", named.stdout, named.stderr);
            assert!(
                named.stdout.contains(" of 1.074 GB from ") && named.stdout.contains("--give-up"),
                "{}",
                named.stdout
            );
            assert_eq!(journals(state).len(), 1);
        }
        let given_up = clean(&store, state, &["--give-up", "1ns"]);
        let said = format!("{address}: aborted, ");
        assert!(given_up.code == Some(0) && given_up.stdout.starts_with(&said), "{}", given_up.stderr);
        assert_eq!(given_up.stdout.contains("deletes the parts within a week"), !is_s3, "{}", given_up.stdout);
        assert!(journals(state).is_empty() && (store.uploads("bucket") == 0 || !is_s3));
        assert_eq!(clean(&store, state, &[]).stdout, "nothing to remove\n");
    }
}

/// The complete files of a folder stay if the transfer is given up.
#[test]
fn a_folder_is_named_until_it_is_given_up() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    fs::create_dir(state.join("folder")).unwrap();
    (0..50).for_each(|index| fs::write(state.join(format!("folder/{index}")), vec![7; 100_000]).unwrap());
    let (store, address) = start(Store::s3());
    let arguments = ["put", "folder", &address, "--limit", "500kB/s", "--quiet", "--endpoint-url", &store.url()];
    let mut child = of_store(&store, state, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("a file is in the journal", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        state.join("ascertain/transfers").exists() && journals(state).concat().contains("done")
    });
    kill(child);
    let named = clean(&store, state, &[]).stdout;
    assert!(named.starts_with(&format!("{address}: incomplete, ")), "{named}");
    assert!(named.contains(" of 50 files (") && named.contains(" of 5.000 MB) from "), "{named}");
    let given_up = clean(&store, state, &["--give-up", "1ns"]).stdout;
    assert!(given_up.starts_with(&format!("{address}: aborted, ")), "{given_up}");
    assert!(journals(state).is_empty());
    let is_stored = |index: usize| store.object("bucket", &format!("deep/a/{index}")).is_some();
    assert!((0..50).any(is_stored));
}

/// If a download is given up, its incomplete file is removed too.
#[test]
fn a_download_is_given_up() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    large_file(state);
    let mut get = command(state, &["get", "file", "into/copy", "--limit", "4MB/s", "--quiet"]);
    let mut child = get.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let names = || {
        let names = fs::read_dir(state.join("into")).into_iter().flatten();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    wait_until("a part is in the journal", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        state.join("ascertain/transfers").exists() && journals(state).concat().contains("done")
    });
    kill(child);
    assert!(names()[0].ends_with(".part"), "{:?}", names());
    let given_up = ran(command(state, &[CLEAN, &["--give-up", "1ns"]].concat()).output().unwrap());
    assert!(given_up.code == Some(0) && given_up.stdout.contains("into/copy: aborted"), "{}", given_up.stderr);
    assert!(names().is_empty() && journals(state).is_empty(), "{:?}", names());
}
