//! Tests of `put` and `get` with a local folder as the store.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use ascertain_netlab::store::{RunningStore, Store};
use ascertain_sys::testing::wait_until;

use crate::common::{Ran, ascertain, command, kill, ran};

#[test]
fn files_go_there_and_back() {
    let state = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..2_000_000_u32).map(|index| (index % 251) as u8).collect();
    fs::write(state.path().join("a b"), &content).unwrap();
    let put = ascertain(state.path(), &["put", "a b", "store/deep/", "--verify"]);
    assert_eq!(put.code, Some(0), "{}", put.stderr);
    assert!(put.stdout.contains("2.000 MB in ") && put.stdout.contains("read back and identical"), "{}", put.stdout);
    assert_eq!(fs::read(state.path().join("store/deep/a b")).unwrap(), content);
    let url = format!("file://{}/store/deep/a b", state.path().canonicalize().unwrap().display());
    let got = ascertain(state.path(), &["get", &url, "back", "--format", "json"]);
    let json = got.json();
    assert_eq!((got.code, json["files"][0]["done"].as_str()), (Some(0), Some("moved")), "{}", got.stderr);
    assert_eq!(fs::read(state.path().join("back")).unwrap(), content);
    let again = ascertain(state.path(), &["get", &url, "back", "--no-clobber"]);
    assert!(again.code == Some(0) && again.stdout.contains("skipped, because it exists"), "{}", again.stdout);
    // Folders, with and without a trailing slash.
    let said = ascertain(state.path(), &["put", "store", "copy/", "--include", "a*", "--dry-run"]);
    assert!(said.stdout.contains("deep/a b: 2.000 MB") && !state.path().join("copy").exists(), "{}", said.stdout);
    assert_eq!(ascertain(state.path(), &["put", "store", "copy/"]).code, Some(0));
    assert_eq!(fs::read(state.path().join("copy/deep/a b")).unwrap(), content);
    assert_eq!(ascertain(state.path(), &["get", "copy/", "third"]).code, Some(0));
    assert_eq!(fs::read(state.path().join("third/deep/a b")).unwrap(), content);
    let kept = fs::read_dir(state.path().join("ascertain/transfers")).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().path()).collect();
    assert!(kept.iter().all(|path| path.extension().is_some_and(|extension| extension == "history")), "{kept:?}");
}

#[test]
fn the_size_of_parts_and_the_least_number_of_connections_can_be_chosen() {
    let state = tempfile::tempdir().unwrap();
    let store = Store::s3().start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    fs::write(state.path().join("file"), vec![7; 5_000_000]).unwrap();
    let with_store = |arguments: &[&str]| {
        let mut command = command(state.path(), arguments);
        command.env("AWS_ENDPOINT_URL", store.url()).env("AWS_ACCESS_KEY_ID", &store.store().account);
        command.env("AWS_SECRET_ACCESS_KEY", &store.store().secret);
        ran(command.output().unwrap())
    };
    assert_eq!(with_store(&["put", "file", "s3://bucket/file"]).code, Some(0));
    let get = ["get", "s3://bucket/file", "back", "--format", "json", "--block-size", "1MB", "--min-connections", "3"];
    let got = with_store(&get);
    assert_eq!(got.code, Some(0), "{}", got.stderr);
    let file = &got.json()["files"][0];
    assert_eq!((&file["blocks"], &file["plan"]["block_bytes"]), (&5.into(), &1_000_000.into()), "{file}");
    assert!(file["plan"]["connections"].as_u64() >= Some(3), "{file}");
    let refused = with_store(&["get", "s3://bucket/file", "back", "--min-connections", "9", "--connections", "8"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("minimum number of connections, 9, is above the maximum, 8"), "{}", refused.stderr);
}

/// The summary does not count skipped files as transferred. If there are many files, only the summary is printed.
#[test]
fn a_dry_run_says_what_would_be_left_alone() {
    let state = tempfile::tempdir().unwrap();
    fs::create_dir(state.path().join("folder")).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(state.path().join("folder").join(name), name).unwrap();
    }
    assert_eq!(ascertain(state.path(), &["put", "folder/a", "folder/b", "there/"]).code, Some(0));
    fs::write(state.path().join("there/b"), "longer").unwrap();
    let said = |arguments: &[&str]| {
        let ran = ascertain(state.path(), &[arguments, &["--dry-run"]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    assert!(said(&["put", "folder", "there/"]).ends_with("\n3 of 3 files would be transferred, 3 B\n"));
    let some = said(&["put", "folder", "there/", "--skip-unchanged"]);
    assert!(some.ends_with("\n2 of 3 files would be transferred, 2 B; 1 skipped\n"), "{some}");
    assert!(some.contains("there/a: skipped, because it exists and is identical\n"), "{some}");
    let one = said(&["put", "folder", "there/", "--no-clobber"]);
    assert!(one.ends_with("\n1 of 3 files would be transferred, 1 B; 2 skipped\n"), "{one}");
    let back = said(&["get", "there/", "folder", "--no-clobber"]);
    assert!(back.ends_with("\n0 of 2 files would be transferred, 0 B; 2 skipped\n"), "{back}");
    assert!(said(&["get", "there/a", "folder/a", "--no-clobber"]).contains("skipped, because it exists"));
    assert!(said(&["put", "-", "there/a", "--no-clobber"]).contains("skipped, because it exists"));
    assert_eq!(fs::read_to_string(state.path().join("there/b")).unwrap(), "longer");
    assert!(!state.path().join("there/c").exists());
}

/// If there are many files, only a summary is printed. A list of thousands of lines would be useless.
#[test]
fn of_many_files_the_sum_is_printed() {
    let state = tempfile::tempdir().unwrap();
    fs::create_dir(state.path().join("folder")).unwrap();
    (0..30).for_each(|number| fs::write(state.path().join(format!("folder/{number}")), "some").unwrap());
    let put = |more: &[&str]| ascertain(state.path(), &[&["put", "folder", "there/"], more].concat());
    let sum = put(&[]).stdout;
    assert!(sum.starts_with("30 of 30 files transferred, 120 B in ") && sum.ends_with("B/s)\n"), "{sum}");
    assert_eq!(put(&["--all"]).stdout.lines().count(), 31);
    assert_eq!(put(&["--format", "json"]).json()["files"].as_array().unwrap().len(), 30);
}

#[test]
fn what_changed_since_it_was_broken_off_is_the_sources_failure() {
    let state = tempfile::tempdir().unwrap();
    // Large enough that it takes two minutes at this rate.
    fs::File::create(state.path().join("a")).unwrap().set_len(1 << 30).unwrap();
    let mut put = command(state.path(), &["put", "a", "there", "--limit", "8MB/s"]);
    let mut child = put.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let journals = state.path().join("ascertain/transfers");
    let is_begun = || {
        fs::read_dir(&journals).is_ok_and(|mut there| {
            there.any(|one| {
                one.is_ok_and(|one| fs::read_to_string(one.path()).is_ok_and(|text| text.lines().count() > 2))
            })
        })
    };
    wait_until("a part is in the journal", || {
        assert!(child.try_wait().unwrap().is_none(), "it was faster than its limit");
        is_begun()
    });
    kill(child);
    fs::File::options().write(true).open(state.path().join("a")).unwrap().write_all(b"changed").unwrap();
    let again = ascertain(state.path(), &["put", "a", "there", "--resume", "only"]);
    let is_refused = again.code == Some(5) && again.stderr.contains("use --fresh to start from the beginning");
    assert!(is_refused, "{:?}: {}", again.code, again.stderr);
    let anew = ascertain(state.path(), &["put", "a", "there"]);
    assert!(
        anew.code == Some(0) && anew.stderr.contains("started from the beginning, because"),
        "{:?}: {}",
        anew.code,
        anew.stderr
    );
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
    // A dry run changes nothing.
    let got = ascertain(state.path(), &["get", "there", "-", "--dry-run"]);
    assert!(got.code == Some(0) && !got.stdout.contains("some words"), "{}", got.stdout);
    let put = ascertain(state.path(), &["put", "-", "elsewhere", "--dry-run"]);
    assert!(put.code == Some(0) && !state.path().join("elsewhere").exists(), "{}", put.stdout);
}

/// A closed standard stream is an error: it is neither an empty input nor an output that accepts everything.
#[test]
fn a_closed_standard_stream_is_refused() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), "a").unwrap();
    for (arguments, closed, reason) in [
        (&["put", "-", "a"][..], "<&-", "standard input is closed"),
        (&["get", "a", "-"], ">&-", "standard output is closed"),
        (&["permute", "-", "a"], "<&-", "standard input is closed"),
    ] {
        let ascertain = command(state.path(), arguments);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec \"$0\" \"$@\" {closed}")]).arg(ascertain.get_program());
        shell.args(ascertain.get_args()).current_dir(state.path());
        let ran = ran(shell.output().unwrap());
        assert!(ran.code == Some(2) && ran.stderr.contains(reason), "{arguments:?}: {:?} {}", ran.code, ran.stderr);
    }
    assert_eq!(fs::read(state.path().join("a")).unwrap(), b"a");
}

#[test]
fn what_goes_wrong_has_a_code_and_a_way_out() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), "a").unwrap();
    fs::create_dir(state.path().join("folder")).unwrap();
    fs::write(state.path().join("folder/a"), "a").unwrap();
    std::os::unix::fs::symlink("a", state.path().join("link")).unwrap();
    for (arguments, code, said) in [
        (&["get", "nothing", "b"][..], 5, "there is no such file"),
        (&["put", "nothing", "b"], 2, "can't read nothing"),
        (&["put", "a", "ftp://host/a"], 2, "expected an address with"),
        (&["put", "a", "s3:bucket/a"], 2, "write `./s3:bucket/a`"),
        (&["put", "a", "file:place/a"], 2, "write `place/a`"),
        (&["put", "a", "-"], 2, "write `./-`"),
        (&["put", "-", "a", "b/"], 2, "write `./-`"),
        (&["get", "-", "b"], 2, "write `./-`"),
        (&["get", "a", "az://box/a"], 2, "to write to az://, use `put`"),
        (&["get", "a", "s3:bucket/a"], 2, "write `./s3:bucket/a`"),
        (&["put", "a", "s3:///a"], 2, "s3://BUCKET/NAME"),
        (&["put", "a", "a", "b"], 2, "end the address with a slash"),
        (&["put", "-", "folder/"], 2, "give its name"),
        (&["get", "empty/", "b"], 4, "nothing to transfer: no file or object was found"),
        (&["put", "a", "b", "--limit", "0MB/s"], 2, "not a transfer rate"),
        (&["put", "a", "b", "--memory", "x"], 2, "--memory"),
        (&["put", "a", "b", "--format", "csv"], 2, "--format json"),
        (&["put", "a", "b", "--fresh", "--no-journal"], 2, "cannot be used with"),
        (&["put", "a", "b", "--anonymous", "--machine-credentials"], 2, "cannot be used with"),
        (&["ls", "nothing"], 4, "no object was found"),
        (&["ls", "*.zip"], 4, "no object was found"),
        (&["ls", "http://127.0.0.1:1/a/"], 2, "can't list the files of an HTTP server"),
        (&["ls", "s3:bucket"], 2, "write `./s3:bucket`"),
        (&["ls", "a", "--region", "x"], 2, "--region is not supported by a file"),
        (&["get", "folder/*.zip", "b/"], 4, "nothing to transfer: no file or object was found"),
        (&["get", "folder/*", "-"], 2, "give its name"),
        (&["put", "folder", "b", "--exclude", "[a"], 2, "`[a` is not a pattern for names: a bracket is not closed"),
        (&["put", "folder", "b", "--include", "{a"], 2, "write `\\{` for the character"),
        (&["put", "a", "b", "--metadata", "x"], 2, "give NAME=VALUE"),
        (&["put", "a", "b", "--metadata", "x=y"], 2, "--metadata is not supported by a file"),
        (&["put", "a", "b", "--content-type", "x/y"], 2, "--content-type is not supported by a file"),
        (&["put", "a", "s3://bucket/a", "--anonymous", "--metadata", "x=ü"], 2, "printable ASCII"),
        (&["put", "a", "s3://bucket/a", "--sse", "x"], 2, "aws:kms"),
        // A local file that is missing is wrong usage, not a failure of a store.
        (&["put", "a", "s3://bucket/a"], 2, "use --anonymous to send"),
        (&["put", "a", "gs://bucket/a", "--dry-run"], 2, "--machine-credentials to get them"),
        (&["put", "a", "az://box/a"], 2, "AZURE_STORAGE_ACCOUNT"),
        (&["get", "s3://bucket/", "b", "--profile", "none"], 2, "the profile none is neither"),
        (&["put", "a", "http://127.0.0.1:1/a"], 2, "which is read-only"),
        (&["put", "a", "https://127.0.0.1:1/a", "--dry-run"], 2, "which is read-only"),
        (&["get", "http://127.0.0.1:1/", "b"], 2, "no folders"),
        (&["put", "a", "./"], 2, "are the same file"),
        (&["put", "a", "link", "--dry-run"], 2, "are the same file"),
        (&["get", "./", "."], 2, "are the same file"),
        (&["put", "a", "b", "--memory", "1"], 2, "--memory 64KiB"),
        (&["put", "-", "b", "--memory", "1"], 2, "--memory 64KiB"),
        (&["put", "a", "folder/a", "other/"], 2, "would both become file:///"),
        // It is an error to give an option that would have no effect.
        (&["put", "a", "az://box/a", "--requester-pays"], 2, "--requester-pays is not supported by az://"),
        (&["put", "a", "az://box/a", "--profile", "nope"], 2, "--profile is not supported by az://"),
        (&["get", "gs://box/a", "b", "--region", "x"], 2, "--region is not supported by gs://"),
        (&["put", "a", "b", "--anonymous"], 2, "--anonymous is not supported by a file"),
        (
            &["get", "http://127.0.0.1:1/x", "b", "--machine-credentials"],
            2,
            "--machine-credentials is not supported by http[s]://",
        ),
        (
            &["put", "a", "https://x.blob.core.windows.net/box/a", "--endpoint-url", "http://127.0.0.1:1"],
            2,
            "--endpoint-url is not supported by an Azure address",
        ),
        (&["put", "-", "s3://bucket/a", "--anonymous", "--memory", "1MB"], 2, "--memory 5MiB"),
    ] {
        // The environment contains no credentials.
        let ran = ran(command(state.path(), arguments).env("HOME", state.path()).output().unwrap());
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
    }
    // A secret in an address is not printed.
    for scheme in ["http", "https"] {
        let secret = format!("{scheme}://user:hunter2@{}/x?sig=hunter2", parrot());
        let ran = ascertain(state.path(), &["get", &secret, "b", "--no-journal"]);
        assert!(ran.code == Some(5) && !ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
}

/// A wrong name of a local file is reported before missing credentials.
#[test]
fn put_looks_at_the_source_first() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), "a").unwrap();
    for (arguments, message) in [
        (&["put", "nothing", "s3://bucket/key"][..], "can't read nothing: "),
        (&["put", "nothing", "s3://bucket/"], "can't read nothing: "),
        (&["put", "nothing", "gs://bucket/key", "--dry-run"], "can't read nothing: "),
        (&["put", "folder/nothing", "az://box/key"], "can't read folder/nothing: "),
        (&["put", "a", "nothing", "s3://bucket/"], "can't read nothing: "),
        // If no named file can be read, nothing is transferred, also to a folder.
        (&["put", "nothing", "copies/"], "can't read nothing: "),
        (&["put", "nothing", "nowhere", "copies/"], "can't read nothing: "),
        (&["put", "nothing", "http://127.0.0.1:1/key"], "can't read nothing: "),
        // If the source exists, the credentials are reported.
        (&["put", "a", "s3://bucket/key"], "use --anonymous to send"),
    ] {
        let ran = ran(command(state.path(), arguments).env("HOME", state.path()).output().unwrap());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
        let names_credentials = ran.stderr.contains("credentials") || ran.stderr.contains("AZURE_");
        assert_eq!(names_credentials, message.contains("--anonymous"), "{arguments:?}: {}", ran.stderr);
    }
    // If another file can be read, it is transferred.
    let ran = ascertain(state.path(), &["put", "a", "nothing", "copies/"]);
    assert!(ran.code == Some(5) && ran.stderr.contains("can't read nothing: "), "{:?} {}", ran.code, ran.stderr);
    assert_eq!(fs::read_to_string(state.path().join("copies/a")).unwrap(), "a");
}

/// Runs a command with the address and the credentials of a running S3 store.
fn with_store(state: &Path, running: &RunningStore, arguments: &[&str]) -> Ran {
    let url = running.url();
    let Store { account, secret, .. } = running.store();
    let mut command = command(state, &[arguments, &["--endpoint-url", &url]].concat());
    ran(command.env("AWS_ACCESS_KEY_ID", account).env("AWS_SECRET_ACCESS_KEY", secret).output().unwrap())
}

#[test]
fn ls_lists_objects_for_people_and_for_programs() {
    let state = tempfile::tempdir().unwrap();
    let running = Store::s3().start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    fs::create_dir_all(state.path().join("photos/raw")).unwrap();
    for (name, bytes) in [("photos/a,b.jpg", 1500), ("photos/raw/c.raw", 7)] {
        fs::write(state.path().join(name), vec![7; bytes]).unwrap();
    }
    let own = |arguments: &[&str]| with_store(state.path(), &running, arguments);
    assert_eq!(own(&["put", "photos", "s3://bucket/photos"]).code, Some(0));
    let table = own(&["ls", "s3://bucket/photos/"]);
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert!(table.code == Some(0) && lines.len() == 3, "{}{}", table.stdout, table.stderr);
    assert!(lines[0].ends_with("  1.500 kB  s3://bucket/photos/a,b.jpg"), "{}", table.stdout);
    assert!(lines[1].ends_with("  7 B  s3://bucket/photos/raw/c.raw") && lines[2] == "2 objects, 1.507 kB");
    let json = own(&["ls", "s3://bucket/", "--format", "json"]).json();
    assert_eq!((json["schema"].as_str(), json["bytes"].as_u64()), (Some("ascertain.ls/1"), Some(1507)));
    assert_eq!(json["objects"][0]["name"], "s3://bucket/photos/a,b.jpg");
    let csv = own(&["ls", "s3://bucket/**/*.{jpg,png}", "--format", "csv"]).stdout;
    assert!(csv.starts_with("name,bytes,modified,etag\n\"s3://bucket/photos/a,b.jpg\",1500,2"), "{csv}");
    assert_eq!(csv.lines().count(), 2);
    let none = own(&["ls", "s3://bucket/none/", "--format", "json"]);
    assert!(none.code == Some(4) && none.json()["count"] == 0 && none.stderr.contains("no object was found"));
    let missing = own(&["ls", "s3://nobucket/"]);
    assert!(missing.code == Some(5) && missing.stderr.starts_with("error: s3://nobucket"), "{}", missing.stderr);
}

#[test]
fn folders_are_excluded_and_patterns_name_objects() {
    let state = tempfile::tempdir().unwrap();
    let running = Store::s3().start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    for name in [".git/config", "a.txt", "web/node_modules/x/y.js", "web/b.log", "web/c.md", "web/.git/d"] {
        fs::create_dir_all(state.path().join("site").join(name).parent().unwrap()).unwrap();
        fs::write(state.path().join("site").join(name), name).unwrap();
    }
    let own = |arguments: &[&str]| with_store(state.path(), &running, arguments);
    let put = own(&["put", "site", "s3://bucket/site", "--exclude", ".git", "--exclude", "node_modules/"]);
    assert_eq!(put.code, Some(0), "{}", put.stderr);
    let names = ["a.txt", "web/b.log", "web/c.md"].map(|name| format!("s3://bucket/site/{name}"));
    let stored = own(&["ls", "s3://bucket/", "--format", "json"]).json();
    let stored: Vec<&str> =
        stored["objects"].as_array().unwrap().iter().map(|object| object["name"].as_str().unwrap()).collect();
    assert_eq!(stored, names);
    let got = own(&["get", "s3://bucket/site/**/*.{log,md}", "some/", "--exclude", "c.*"]);
    assert_eq!(got.code, Some(0), "{}", got.stderr);
    assert!(state.path().join("some/web/b.log").exists() && !state.path().join("some/web/c.md").exists());
}

#[test]
fn times_and_metadata_are_kept_if_requested() {
    let state = tempfile::tempdir().unwrap();
    let running = Store::s3().start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 500_000_000);
    let file = fs::File::create(state.path().join("a")).unwrap();
    file.set_modified(time).unwrap();
    let own = |arguments: &[&str]| with_store(state.path(), &running, arguments);
    let attributes = ["--metadata", "owner=Ann", "--cache-control", "max-age=60", "--storage-class", "STANDARD"];
    let more = ["--sse", "AES256", "--acl", "private", "--tagging", "a=b"];
    let put = own(&[&["put", "a", "s3://bucket/a", "--preserve"], &attributes[..], &more].concat());
    assert_eq!(put.code, Some(0), "{}", put.stderr);
    for (arguments, is_kept) in
        [(&["get", "s3://bucket/a", "b", "--preserve"][..], true), (&["get", "s3://bucket/a", "c"], false)]
    {
        assert_eq!(own(arguments).code, Some(0));
        let modified = fs::metadata(state.path().join(arguments[2])).unwrap().modified().unwrap();
        assert_eq!(modified == time, is_kept, "{modified:?}");
    }
}

/// If the object does not exist, no folder is created, and the error is about the object, not the destination.
#[test]
fn get_looks_at_the_source_first() {
    let state = tempfile::tempdir().unwrap();
    let running = Store::s3().start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    fs::write(state.path().join("file"), "a file").unwrap();
    let get = |source: &str, destination: &str, more: &[&str]| {
        let url = running.url();
        let arguments = [&["get", source, destination, "--endpoint-url", &url], more].concat();
        let Store { account, secret, .. } = running.store();
        let mut get = command(state.path(), &arguments);
        ran(get.env("AWS_ACCESS_KEY_ID", account).env("AWS_SECRET_ACCESS_KEY", secret).output().unwrap())
    };
    for destination in ["new/folder/b", "new/", "file/b", "/proc/nothing/b"] {
        for more in [&[][..], &["--no-journal"], &["--dry-run"], &["--no-clobber"]] {
            let got = get("s3://bucket/missing", destination, more);
            let is_told = got.code == Some(5) && got.stderr.contains("s3://bucket/missing: there is no such object");
            assert!(is_told, "{destination} {more:?}: {:?} {}", got.code, got.stderr);
        }
        let got = get("s3://bucket/missing/", destination, &[]);
        assert!(
            got.code == Some(4) && got.stderr.contains("nothing to transfer: no file or object was found"),
            "{destination}: {}",
            got.stderr
        );
    }
    assert!(!state.path().join("new").exists(), "no folder is made for nothing");
    assert_eq!(fs::read_to_string(state.path().join("file")).unwrap(), "a file");
    assert_eq!(fs::read_dir(state.path().join("ascertain/transfers")).map_or(0, Iterator::count), 0, "no journal");
}

/// Runs the README's commands against local stores, which accept the credentials in these commands.
#[test]
fn what_the_readme_has_to_type_works() {
    let readme = include_str!("../../../transfer/README.md");
    let typed = readme.split_once("```sh\n").unwrap().1.split_once("```").unwrap().0;
    assert!(include_str!("../../../../docs/put-and-get.md").contains(typed), "the guide has it too");
    let started = |store: Store| store.start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    let value = |name: &str| {
        let rest = typed.split_once(&format!("{name}=")).unwrap().1;
        rest.split_whitespace().next().unwrap().to_string()
    };
    let minio =
        started(Store { account: value("AWS_ACCESS_KEY_ID"), secret: value("AWS_SECRET_ACCESS_KEY"), ..Store::s3() });
    let azurite = started(Store::azure());
    let Store { account, secret, .. } = azurite.store();
    let at = format!("'AccountName={account};AccountKey={secret};BlobEndpoint={}'", azurite.url());
    let script = typed
        .replace("http://127.0.0.1:9000", &minio.url())
        .replace("UseDevelopmentStorage=true", &at)
        .replace("BUCKET", "bucket")
        .replace("CONTAINER", "bucket");
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("data.tar"), vec![7; 1_000_000]).unwrap();
    // The binary replaces the installed one on the path, in the same environment.
    let binary = command(state.path(), &[]);
    let mut shell = std::process::Command::new("sh");
    let name = binary.get_program().to_str().unwrap();
    shell.args(["-ec", &format!("ascertain() {{ '{name}' \"$@\"; }}\n{script}")]).current_dir(state.path());
    shell.envs(binary.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = ran(shell.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(fs::read(state.path().join("back.tar")).unwrap(), vec![7; 1_000_000]);
    assert!(minio.object("bucket", "data.tar").is_some() && azurite.object("bucket", "data.tar").is_some());
}

/// It is not an error if the reader closes the pipe early.
#[test]
fn an_output_that_nobody_reads_to_its_end_is_no_failure() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), vec![7; 1_000_000]).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let got = ran(command(state.path(), &["get", "a", "-"]).stdout(writer).output().unwrap());
    assert_eq!((got.code, &*got.stderr), (Some(0), ""));
}

/// Changes the times of all files below `path`, as if they had not been used for an hour.
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
    // The command keeps waiting for more input, because this pipe stays open.
    wait_until("the upload has begun", || fs::read_dir(&store).unwrap().count() > 0);
    let clean = || {
        age(&store);
        ascertain(state.path(), &["clean", "store"])
    };
    assert_eq!((clean().code, &*clean().stdout), (Some(0), "nothing to remove\n"), "it is not over");
    kill(child);
    let cleaned = clean();
    let said = "store/a: aborted, from standard input\n";
    assert!(cleaned.code == Some(0) && cleaned.stdout.ends_with(said), "{}{}", cleaned.stdout, cleaned.stderr);
    assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
    assert_eq!(clean().stdout, "nothing to remove\n");
}

#[test]
fn only_what_nobody_needs_any_more_is_cleaned() {
    let state = tempfile::tempdir().unwrap();
    // No process has an id as large as `gone`.
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
        // This transfer can be resumed, because it has a journal.
        format!("deep/.b.18f-{gone:x}-1.upload"),
        // Another process, possibly on another machine, still writes to this file.
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
    assert!(cleaned.stdout.contains("kept here/deep/.d.18f-77359400-2.upload"), "{}", cleaned.stdout);
    let is_there = |name: &String| state.path().join("here").join(name).exists();
    assert!(!left.iter().any(is_there) && kept.iter().all(is_there), "{}", cleaned.stdout);
    let missing = ascertain(state.path(), &["clean", "nowhere"]);
    assert!(missing.code == Some(5) && missing.stderr.contains("nowhere: No such file"), "{}", missing.stderr);
    // A file that can't be read is reported only once.
    for name in ["2.journal", "3.note"] {
        fs::write(state.path().join("ascertain/transfers").join(name), "senseless\n").unwrap();
    }
    let unread = ascertain(state.path(), &["clean", "here"]);
    let told = |name: &str| unread.stderr.matches(name).count();
    assert_eq!((unread.code, told("2.journal"), told("3.note")), (Some(5), 1, 1), "{}", unread.stderr);
}

/// Starts a server that answers every request with an error that contains the request.
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

/// Returns the contents of all files below a folder.
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

/// If the journal can't be written, nothing is transferred. The message suggests `--no-journal`, which works.
#[test]
fn a_journal_that_can_not_be_kept_has_a_way_out() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("a"), vec![7; 1_000_000]).unwrap();
    fs::create_dir(state.path().join("ascertain")).unwrap();
    let journals = state.path().join("ascertain/transfers");
    fs::write(&journals, "no folder").unwrap();
    let put = ascertain(state.path(), &["put", "a", "b"]);
    assert!(
        put.code == Some(2) && put.stderr.contains("use --no-journal to transfer without a journal"),
        "{}",
        put.stderr
    );
    assert!(!state.path().join("b").exists());
    let put = ascertain(state.path(), &["put", "a", "b", "--no-journal"]);
    assert!(put.code == Some(0) && state.path().join("b").exists(), "{}", put.stderr);
}
