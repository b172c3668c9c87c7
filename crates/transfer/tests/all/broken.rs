//! Whole moves to and from S3, Azure and GCS, which verify signatures and sums, when something goes wrong on the way.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::web::{Web, answer};
use crate::common::{address, bytes, one_of_each, options_for, run, start};
use ascertain_netlab::store::{Dialect, Fault, Kind as Asked, Misdeed, RunningStore, Store as Served};
use ascertain_transfer::{Environment, Error, Failure, Kind, Moved, Mover, Options, Place, Stop, Terms, open};

const NAME: &str = "a b/ü";

fn terms() -> Terms {
    Terms { back_off: Duration::from_millis(1), memory_bytes: 64 << 20, ..Terms::default() }
}

fn mover(terms: Terms) -> Mover {
    Mover::new(terms, Stop::default(), Box::new(()))
}

fn place(store: &RunningStore) -> Place {
    open(&address(store, NAME), &options_for(store)).unwrap().into()
}

/// A file that takes more than one block, and as few as can be.
fn file(dialect: Dialect) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let content = bytes(if dialect == Dialect::Azure { 800_000 } else { 6_000_000 });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source");
    fs::write(&path, &content).unwrap();
    (folder, path, content)
}

/// Something that goes wrong once.
fn once(on: Asked, after: u64, what: &Misdeed) -> Fault {
    Fault { on: Some(on), after, times: 1, what: what.clone() }
}

/// What goes wrong always.
fn always(on: Asked, what: Misdeed) -> Vec<Fault> {
    vec![Fault { on: Some(on), after: 0, times: u64::MAX, what }]
}

fn count(store: &RunningStore, kind: Asked) -> usize {
    store.seen().iter().filter(|seen| seen.kind == kind).count()
}

fn failed(moved: Result<Moved, Error>) -> Failure {
    match moved.unwrap_err() {
        Error::Store(failure) => failure,
        other => panic!("{other}"),
    }
}

/// Azure takes blocks of any size, so that there are many of them.
#[test]
fn whatever_happens_to_any_block_once_is_mended() {
    let (folder, source, content) = file(Dialect::Azure);
    let target = folder.path().join("target");
    let refused = |status, retry_after_s| Misdeed::Refused { status, retry_after_s };
    for what in [
        Misdeed::CutUpload { after_bytes: 1000 },
        Misdeed::AnswerLost,
        Misdeed::FlippedUpload { byte: 7 },
        refused(429, None),
        refused(503, None),
        refused(503, Some(0)),
        refused(500, None),
    ] {
        for block in 0.. {
            let running = start(Served { faults: vec![once(Asked::PutBlock, block, &what)], ..Served::azure() });
            let moved = run(mover(terms()).put_file(&source, &place(&running))).unwrap();
            assert!(running.object("bucket", NAME).unwrap() == content, "{what:?} {block}");
            let asked = count(&running, Asked::PutBlock) as u64;
            // One block is sent once more, and no other.
            assert_eq!(asked, moved.blocks + u64::from(block < moved.blocks), "{what:?} {block}");
            if block >= moved.blocks {
                break;
            }
        }
    }
    let running = start(Served::azure());
    run(mover(terms()).put_file(&source, &place(&running))).unwrap();
    for what in [
        Misdeed::CutDownload { after_bytes: 1000 },
        Misdeed::FlippedDownload { byte: 7 },
        refused(429, None),
        refused(503, Some(0)),
    ] {
        for range in 0.. {
            let before = count(&running, Asked::GetObject) as u64;
            running.add_fault(once(Asked::GetObject, range, &what));
            let mover = mover(terms());
            let moved = run(mover.get_file(&place(&running), &target)).unwrap();
            assert!(fs::read(&target).unwrap() == content, "{what:?} {range}");
            assert_eq!(count(&running, Asked::GetObject) as u64 - before, moved.blocks + mover.retried());
            if mover.retried() == 0 {
                // It waits for a request of later.
                assert!(range >= moved.blocks, "{what:?} {range}");
                break;
            }
        }
    }
}

#[test]
fn a_commit_is_carried_out_once_whatever_is_heard_of_it() {
    for served in one_of_each() {
        let (_folder, source, content) = file(served.dialect);
        for (what, commits) in [
            (Misdeed::AnswerLost, 1),
            (Misdeed::CutUpload { after_bytes: 10 }, 2),
            (Misdeed::Refused { status: 500, retry_after_s: None }, 2),
            (Misdeed::Refused { status: 503, retry_after_s: None }, 2),
        ] {
            for is_there in [false, true] {
                let running = start(Served { faults: vec![once(Asked::Commit, 0, &what)], ..served.clone() });
                if is_there {
                    let mut other = content.clone();
                    other.reverse();
                    let old = source.with_extension("old");
                    fs::write(&old, &other).unwrap();
                    // By a single request, so that the commit that goes wrong is the other one's.
                    let whole = crate::common::block(other);
                    let options = ascertain_transfer::PutOptions::default();
                    let mut seen = ascertain_transfer::Attempt::default();
                    run(place(&running).store.put(NAME, whole, &options, &mut seen)).unwrap();
                }
                run(mover(terms()).put_file(&source, &place(&running))).unwrap();
                assert!(running.object("bucket", NAME).unwrap() == content, "{:?} {what:?}", served.dialect);
                assert_eq!(count(&running, Asked::Commit), commits, "{:?} {what:?}", served.dialect);
                assert_eq!(running.uploads("bucket"), 0);
            }
        }
    }
}

#[test]
fn a_store_that_asks_for_too_much_time_is_left() {
    for served in one_of_each() {
        let (_folder, source, _) = file(served.dialect);
        for status in [429, 503] {
            let refused = Misdeed::Refused { status, retry_after_s: Some(3600) };
            let faults = always(Asked::PutBlock, refused);
            let running = start(Served { faults, ..served.clone() });
            let failure = failed(run(mover(terms()).put_file(&source, &place(&running))));
            assert!(failure.said.contains("for 3600 s") && failure.said.contains("asked later"), "{failure}");
        }
    }
}

/// A store that refuses a block before all of it has arrived may keep the connection. The rest of the block would then
/// be in the way of the next request on that connection, for as long as the limit on bandwidth makes it take: here for
/// more than a minute.
#[test]
fn nobody_waits_for_the_rest_of_what_was_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let hears = |stream: &mut TcpStream, says: &[u8]| {
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut some = [0; 4096];
            let bytes = stream.read(&mut some).unwrap();
            assert!(bytes > 0, "it goes on");
            head.extend_from_slice(&some[..bytes]);
        }
        stream.write_all(says).unwrap();
    };
    let server = std::thread::spawn(move || {
        let mut first = listener.accept().unwrap().0;
        hears(&mut first, &answer("404 Not Found", "", b""));
        hears(&mut first, &answer("503 Slow Down", "", b""));
        // Until it is closed.
        let (mut rest, mut some) = (0, [0; 4096]);
        while let Ok(bytes) = first.read(&mut some)
            && bytes > 0
        {
            rest += bytes;
        }
        let mut second = listener.accept().unwrap().0;
        hears(&mut second, &answer("200 OK", "ETag: \"1\"\r\n", b""));
        (rest, second)
    });
    let environment = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "key")].into_iter().collect();
    let options = Options { environment, endpoint_url: Some(url), ..Options::default() };
    let place: Place = open("s3://bucket/name", &options).unwrap().into();
    let (_folder, source, _) = file(Dialect::Azure);
    let mover = mover(Terms { limit_bytes_per_s: Some(8_000), ..terms() });
    assert_eq!(run(mover.put_file(&source, &place)).unwrap().bytes, 800_000);
    assert_eq!(mover.retried(), 1);
    let (rest, _second) = server.join().unwrap();
    assert!(rest < 700_000, "{rest} bytes were sent after the refusal");
}

#[test]
fn a_store_that_is_full_keeps_nothing() {
    for served in one_of_each() {
        let (folder, source, content) = file(served.dialect);
        let journals = folder.path().join("journals");
        let capacity_bytes = content.len() as u64 - 10;
        for journals in [None, Some(journals)] {
            let running = start(Served { capacity_bytes, ..served.clone() });
            let is_kept = journals.is_some();
            let terms = Terms { journals, ..terms() };
            let failure = failed(run(mover(terms).put_file(&source, &place(&running))));
            assert!(failure.kind == Kind::Full && failure.said.contains("no room left"), "{failure}");
            assert_eq!(running.object("bucket", NAME), None);
            // What can be gone on with is kept; Azure has nothing to give up.
            let is_left = is_kept || served.dialect == Dialect::Azure;
            assert_eq!(running.uploads("bucket"), usize::from(is_left), "{:?}", served.dialect);
        }
    }
}

/// As the table in README.md says.
#[test]
fn changed_bytes_are_noticed_by_whom_it_says() {
    for served in one_of_each() {
        let dialect = served.dialect;
        let (folder, source, content) = file(dialect);
        let target = folder.path().join("target");
        let verified = || mover(Terms { verify: true, ..terms() });
        // What the store keeps is not what it was sent.
        let faults = vec![once(Asked::PutBlock, 0, &Misdeed::FlippedInStore { byte: 7 })];
        let running = start(Served { faults, ..served.clone() });
        let error = run(verified().put_file(&source, &place(&running))).unwrap_err();
        assert!(matches!(&error, Error::Corrupted { .. }), "{dialect:?}: {error}");
        assert!(error.to_string().contains("what was read back"), "{error}");
        // A byte changes on its way down.
        let running = start(served.clone());
        run(mover(terms()).put_file(&source, &place(&running))).unwrap();
        let fault = || running.add_fault(once(Asked::GetObject, 0, &Misdeed::FlippedDownload { byte: 7 }));
        fault();
        let got = run(mover(terms()).get_file(&place(&running), &target));
        match dialect {
            Dialect::S3 | Dialect::Gcs => {
                let sum = if dialect == Dialect::S3 { "CRC-64" } else { "CRC-32C" };
                let is_said =
                    |said: &str| ["what the store has", sum, "what came"].iter().all(|word| said.contains(word));
                let said = got.unwrap_err().to_string();
                assert!(is_said(&said) && !target.exists(), "{said}");
                fault();
                let said =
                    run(mover(terms()).get_stream(&place(&running), &mut std::io::sink())).unwrap_err().to_string();
                assert!(is_said(&said), "{said}");
            }
            Dialect::Azure => assert!(got.is_ok() && fs::read(&target).unwrap() == content),
        }
        // Otherwise it comes as it is there.
        let running = start(served);
        run(mover(terms()).put_file(&source, &place(&running))).unwrap();
        run(mover(terms()).get_file(&place(&running), &target)).unwrap();
        assert!(fs::read(&target).unwrap() == content, "{dialect:?}");
    }
}

/// What a move says first, which asks by HEAD: an answer without words.
#[test]
fn what_is_wrong_is_named_with_the_way_out() {
    for served in one_of_each() {
        let dialect = served.dialect;
        let (folder, source, _) = file(dialect);
        let journals = folder.path().join("journals");
        let running = start(served);
        let options = options_for(&running);
        let try_both = |address: &str, options: &Options, words: &[&str]| {
            let place: Place = open(address, options).unwrap().into();
            let mover = mover(Terms { journals: Some(journals.clone()), retries: 3, ..terms() });
            for failure in [
                failed(run(mover.put_file(&source, &place))),
                failed(run(mover.get_file(&place, &folder.path().join("target")))),
            ] {
                assert!(words.iter().all(|word| failure.said.contains(word)), "{dialect:?} {words:?}: {failure}");
            }
            // Azure hears of an upload with its first block, so that one had been begun.
            let left = fs::read_dir(&journals).map_or(0, Iterator::count);
            assert!(left == 0 || dialect == Dialect::Azure, "{dialect:?} {words:?}");
            let _ = fs::remove_dir_all(&journals);
        };
        let wrong: Environment = [
            ("AWS_ACCESS_KEY_ID", &*running.store().account),
            ("AWS_SECRET_ACCESS_KEY", "ZGlmZmVyZW50"),
            ("AZURE_STORAGE_ACCOUNT", &running.store().account),
            ("AZURE_STORAGE_KEY", "ZGlmZmVyZW50"),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "ZGlmZmVyZW50"),
        ]
        .into_iter()
        .collect();
        let at = address(&running, NAME);
        try_both(&at, &Options { environment: wrong, ..options.clone() }, &[&at, "look at"]);
        let elsewhere = at.replace("bucket", "none");
        try_both(&elsewhere, &options, &[&elsewhere, "no such", "bucket"]);
        if dialect == Dialect::S3 {
            let region = Some("eu-central-1".into());
            try_both(&at, &Options { region, ..options.clone() }, &[&at, "region"]);
        }
        // Nobody is there; and somebody who is no store.
        let nowhere = "127.0.0.1:1";
        let endpoint_url = Some(format!("http://{nowhere}/account"));
        try_both(&at, &Options { endpoint_url, ..options.clone() }, &[&at, nowhere]);
        let web = Web::start(|_, _| answer("200 OK", "Content-Type: text/html\r\n", b"<html><p>Welcome</p></html>"));
        let endpoint_url = Some(web.url("/account"));
        let options = Options { endpoint_url, ..options };
        try_both(&at, &options, &[&at, "no such store: is the endpoint right?"]);
        no_store(&open(&at, &options).unwrap().into());
    }
}

/// None of what a store is asked is answered by somebody's page.
fn no_store(place: &Place) {
    let (mut seen, options) = (ascertain_transfer::Attempt::default(), ascertain_transfer::PutOptions::default());
    let upload = ascertain_transfer::Upload { name: NAME.into(), id: "id".into() };
    run(async {
        let store = &place.store;
        let failures = [
            store.put(NAME, crate::common::block("x"), &options, &mut seen).await.map(drop),
            store.put_block(&upload, 0, crate::common::block("x"), &mut seen).await.map(drop),
            store.commit(&upload, &["1 AAAAAAAAAAA= x".into()], 0, &options, &mut seen).await.map(drop),
            store.commit(&upload, &["1 AAAA".into()], 0, &options, &mut seen).await.map(drop),
            store.list("", &mut seen).await.map(drop),
        ];
        for (number, failure) in failures.into_iter().enumerate() {
            let failure = failure.expect_err(&number.to_string());
            assert_eq!(failure.kind, Kind::Fatal, "{failure}");
        }
    });
}

#[test]
fn a_store_that_sends_us_elsewhere_is_not_followed() {
    let other = Web::start(|_, _| answer("200 OK", "ETag: \"1\"\r\n", b""));
    let to = format!("Location: {}\r\n", other.url("/bucket/name"));
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let headers = to.clone();
        let web = Web::start(move |_, _| answer(status, &headers, b""));
        for served in one_of_each() {
            let (folder, source, _) = file(Dialect::Azure);
            let running = start(served);
            let options = Options { endpoint_url: Some(web.url("/account")), ..options_for(&running) };
            let place: Place = open(&address(&running, NAME), &options).unwrap().into();
            let failure = failed(run(mover(terms()).put_file(&source, &place)));
            assert!(failure.kind == Kind::Fatal && failure.said.contains("endpoint right"), "{failure}");
            failed(run(mover(terms()).get_file(&place, &folder.path().join("target"))));
        }
        assert!(web.heads().len() >= 6);
    }
    assert_eq!(other.heads().len(), 0);
}

/// Files of this many bytes are no links to anywhere, and none of them is the other.
#[test]
fn names_that_are_awkward_are_themselves() {
    let names =
        ["a b", "100%", "a%2Fb", "a+b", "ünï/文", "~x", "-rf", "q?x=1#2", "a\\b", "*", "\u{1}\u{1b}[31m", "tab\there"];
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let path = folder.path().join("from").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    for served in one_of_each() {
        let dialect = served.dialect;
        let running = start(served);
        let to: Place = open(&address(&running, "to/"), &options_for(&running)).unwrap().into();
        let mover = std::sync::Arc::new(mover(terms()));
        let many = ascertain_transfer::Many::default();
        let put = run(mover.put_many(&[folder.path().join("from")], &to, &many)).unwrap();
        assert_eq!(put.len(), names.len());
        let back = folder.path().join(format!("{dialect:?}"));
        let got = run(mover.get_many(&to, &back, &many)).unwrap();
        assert_eq!(got.len(), names.len());
        for name in names {
            assert_eq!(running.object("bucket", &format!("to/{name}")).as_deref(), Some(name.as_bytes()), "{name:?}");
            assert_eq!(read(&back, name), name, "{dialect:?}");
        }
        let long: Place = open(&address(&running, &"x".repeat(100_000)), &options_for(&running)).unwrap().into();
        let failure = failed(run(mover.put_file(&folder.path().join("from/a b"), &long)));
        assert!(failure.said.contains("too long"), "{}", &failure.said[failure.said.len() - 99..]);
    }
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}
