//! Tests of transfers to and from S3, Azure and GCS in which requests fail. The stores verify signatures and checksums.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::web::{Web, answer};
use crate::common::{address, bytes, one_of_each, options_for, run, start};
use ascertain_netlab::store::{Dialect, Fault, Kind as RequestKind, Misdeed, RunningStore, Store as Served};
use ascertain_transfer::{
    Environment, Error, Failure, Kind, Location, Options, Settings, Stop, TransferManager, TransferResult,
    TransferStatus, open,
};

const NAME: &str = "a b/ü";

fn settings() -> Settings {
    Settings { back_off: Duration::from_millis(1), memory_bytes: 64 << 20, ..Settings::default() }
}

fn manager(settings: Settings) -> TransferManager {
    TransferManager::new(settings, Stop::default(), Box::new(()))
}

fn place(store: &RunningStore) -> Location {
    open(&address(store, NAME), &options_for(store)).unwrap()
}

/// Creates a file that needs several parts, but as few as possible.
fn file(dialect: Dialect) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let content = bytes(if dialect == Dialect::Azure { 800_000 } else { 6_000_000 });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source");
    fs::write(&path, &content).unwrap();
    (folder, path, content)
}

/// Returns the fault `what` for a single request of the kind `on`. The first `after` requests of this kind have no
/// fault.
fn once(on: RequestKind, after: u64, what: &Misdeed) -> Fault {
    Fault { on: Some(on), after, times: 1, what: what.clone() }
}

/// Returns a fault of all requests of a kind.
fn always(on: RequestKind, what: Misdeed) -> Vec<Fault> {
    vec![Fault { on: Some(on), after: 0, times: u64::MAX, what }]
}

fn count(store: &RunningStore, kind: RequestKind) -> usize {
    store.seen().iter().filter(|seen| seen.kind == kind).count()
}

fn failed(result: Result<TransferResult, Error>) -> Failure {
    match result.unwrap_err() {
        Error::Store(failure) => failure,
        other => panic!("{other}"),
    }
}

/// Azure accepts parts of any size, so this test uses many small ones.
#[test]
fn a_single_fault_of_any_part_is_repaired() {
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
            let running = start(Served { faults: vec![once(RequestKind::PutBlock, block, &what)], ..Served::azure() });
            let result = run(manager(settings()).put_file(&source, &place(&running))).unwrap();
            assert!(running.object("bucket", NAME).unwrap() == content, "{what:?} {block}");
            let asked = count(&running, RequestKind::PutBlock) as u64;
            // Only the part that failed is sent a second time.
            assert_eq!(asked, result.parts + u64::from(block < result.parts), "{what:?} {block}");
            if block >= result.parts {
                break;
            }
        }
    }
    let running = start(Served::azure());
    run(manager(settings()).put_file(&source, &place(&running))).unwrap();
    for what in [
        Misdeed::CutDownload { after_bytes: 1000 },
        Misdeed::FlippedDownload { byte: 7 },
        refused(429, None),
        refused(503, Some(0)),
    ] {
        for range in 0.. {
            let before = count(&running, RequestKind::GetObject) as u64;
            running.add_fault(once(RequestKind::GetObject, range, &what));
            let manager = manager(settings());
            let result = run(manager.get_file(&place(&running), &target)).unwrap();
            assert!(fs::read(&target).unwrap() == content, "{what:?} {range}");
            assert_eq!(count(&running, RequestKind::GetObject) as u64 - before, result.parts + manager.retries());
            if manager.retries() == 0 {
                // If there are fewer requests than `range`, the fault does not occur, and the loop ends.
                assert!(range >= result.parts, "{what:?} {range}");
                break;
            }
        }
    }
}

#[test]
fn a_commit_is_carried_out_once_whatever_its_answer() {
    for served in one_of_each() {
        let (_folder, source, content) = file(served.dialect);
        for (what, commits) in [
            (Misdeed::AnswerLost, 1),
            (Misdeed::CutUpload { after_bytes: 10 }, 2),
            (Misdeed::Refused { status: 500, retry_after_s: None }, 2),
            (Misdeed::Refused { status: 503, retry_after_s: None }, 2),
        ] {
            for is_there in [false, true] {
                let running = start(Served { faults: vec![once(RequestKind::Commit, 0, &what)], ..served.clone() });
                if is_there {
                    let mut other = content.clone();
                    other.reverse();
                    let old = source.with_extension("old");
                    fs::write(&old, &other).unwrap();
                    // The old object is stored by a single request, so the commit that fails is that of the new object.
                    let whole = crate::common::block(other);
                    let options = ascertain_transfer::PutOptions::default();
                    let mut seen = ascertain_transfer::Attempt::default();
                    run(place(&running).store.put(NAME, whole, &options, &mut seen)).unwrap();
                }
                run(manager(settings()).put_file(&source, &place(&running))).unwrap();
                assert!(running.object("bucket", NAME).unwrap() == content, "{:?} {what:?}", served.dialect);
                assert_eq!(count(&running, RequestKind::Commit), commits, "{:?} {what:?}", served.dialect);
                assert_eq!(running.uploads("bucket"), 0);
            }
        }
    }
}

#[test]
fn a_store_that_requests_too_long_a_wait_is_given_up() {
    for served in one_of_each() {
        let (_folder, source, _) = file(served.dialect);
        for status in [429, 503] {
            let refused = Misdeed::Refused { status, retry_after_s: Some(3600) };
            let faults = always(RequestKind::PutBlock, refused);
            let running = start(Served { faults, ..served.clone() });
            let failure = failed(run(manager(settings()).put_file(&source, &place(&running))));
            assert!(failure.message.contains("of 3600 s") && failure.message.contains("try again later"), "{failure}");
        }
    }
}

/// A store may refuse a part before all of its bytes have arrived, and keep the connection open. If the client sent the
/// rest of the part, the next request on this connection would be late. With this bandwidth limit, the delay would be
/// more than a minute.
#[test]
fn the_rest_of_a_refused_part_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let hears = |stream: &mut TcpStream, says: &[u8]| {
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut some = [0; 4096];
            let bytes = stream.read(&mut some).unwrap();
            assert!(bytes > 0, "the request is incomplete");
            head.extend_from_slice(&some[..bytes]);
        }
        stream.write_all(says).unwrap();
    };
    let server = std::thread::spawn(move || {
        let mut first = listener.accept().unwrap().0;
        hears(&mut first, &answer("503 Slow Down", "", b""));
        // The server reads until the client closes the connection.
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
    let place: Location = open("s3://bucket/name", &options).unwrap();
    let (_folder, source, _) = file(Dialect::Azure);
    let manager = manager(Settings { limit_bytes_per_s: Some(8_000), ..settings() });
    assert_eq!(run(manager.put_file(&source, &place)).unwrap().bytes, 800_000);
    assert_eq!(manager.retries(), 1);
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
            let settings = Settings { journals, ..settings() };
            let failure = failed(run(manager(settings).put_file(&source, &place(&running))));
            assert!(failure.kind == Kind::Full && failure.message.contains("no room left"), "{failure}");
            assert_eq!(running.object("bucket", NAME), None);
            // An upload that can be resumed must be kept. For Azure, uploads always remain, because Azure can't abort
            // them.
            let is_left = is_kept || served.dialect == Dialect::Azure;
            assert_eq!(running.uploads("bucket"), usize::from(is_left), "{:?}", served.dialect);
        }
    }
}

/// Checks the table in README.md that shows which side detects corrupted bytes.
#[test]
fn changed_bytes_are_detected_by_the_side_that_the_readme_names() {
    for served in one_of_each() {
        let dialect = served.dialect;
        let (folder, source, content) = file(dialect);
        let target = folder.path().join("target");
        let verified = || manager(Settings { verify: true, ..settings() });
        // The store keeps other bytes than it received. These are detected only by reading back.
        let faults = vec![once(RequestKind::PutBlock, 0, &Misdeed::FlippedInStore { byte: 7 })];
        let running = start(Served { faults, ..served.clone() });
        let error = run(verified().put_file(&source, &place(&running))).unwrap_err();
        assert!(matches!(&error, Error::Corrupted(..)), "{dialect:?}: {error}");
        assert!(error.to_string().contains("the object that was read back"), "{error}");
        // A byte is changed while the object is downloaded.
        let running = start(served.clone());
        run(manager(settings()).put_file(&source, &place(&running))).unwrap();
        let fault = || running.add_fault(once(RequestKind::GetObject, 0, &Misdeed::FlippedDownload { byte: 7 }));
        fault();
        let got = run(manager(settings()).get_file(&place(&running), &target)).unwrap();
        assert!(fs::read(&target).unwrap() == content, "{dialect:?}");
        fs::remove_file(&target).unwrap();
        // Azure sends a checksum with each range, so the client repeats only the request.
        let is_repaired = dialect != Dialect::Azure;
        let expected = if is_repaired { (1, 0) } else { (0, 1) };
        assert_eq!((got.repaired.len() as u64, got.requests.retries.corrupted), expected, "{dialect:?}");
        if is_repaired {
            let sum = if dialect == Dialect::S3 { "CRC-64" } else { "CRC-32C" };
            let is_said =
                |said: &str| ["the stored object", sum, "the download"].iter().all(|word| said.contains(word));
            // Bytes that were written to a stream can't be replaced.
            fault();
            let got = run(manager(settings()).get_stream(&place(&running), &mut std::io::sink()));
            let said = got.unwrap_err().to_string();
            assert!(is_said(&said), "{said}");
            let flipped = always(RequestKind::GetObject, Misdeed::FlippedDownload { byte: 7 });
            flipped.into_iter().for_each(|fault| running.add_fault(fault));
            let said = run(manager(settings()).get_file(&place(&running), &target)).unwrap_err().to_string();
            assert!(is_said(&said) && said.contains("arrived with the same bytes again") && !target.exists(), "{said}");
        }
        // Without a fault, the file arrives unchanged.
        let running = start(served);
        run(manager(settings()).put_file(&source, &place(&running))).unwrap();
        run(manager(settings()).get_file(&place(&running), &target)).unwrap();
        assert!(fs::read(&target).unwrap() == content, "{dialect:?}");
    }
}

/// Azure sends checksums only for ranges of up to 4 MiB. A larger object of a folder is read in such ranges.
#[test]
fn a_flipped_bit_of_a_large_azure_object_is_detected() {
    let (folder, source, content) = (tempfile::tempdir().unwrap(), "source", bytes(6_000_000));
    let path = folder.path().join(source);
    fs::write(&path, &content).unwrap();
    for piece in 0..2 {
        let flipped = once(RequestKind::GetObject, piece, &Misdeed::FlippedDownload { byte: 7 });
        let running = start(Served { faults: vec![flipped], ..Served::azure() });
        run(manager(settings()).put_file(&path, &open(&address(&running, "p/a"), &options_for(&running)).unwrap()))
            .unwrap();
        let prefix = open(&address(&running, "p/"), &options_for(&running)).unwrap();
        let back = folder.path().join(piece.to_string());
        let got = run(manager(settings()).get_many(&prefix, &back, &Default::default())).unwrap();
        assert_eq!(got[0].requests.retries.corrupted, 1, "{got:?}");
        assert!(fs::read(back.join("a")).unwrap() == content, "piece {piece}");
    }
}

/// A transfer sends a HEAD request first, whose answer has no body. The message must still describe the problem and the
/// remedy.
#[test]
fn an_error_names_the_problem_and_the_remedy() {
    for served in one_of_each() {
        let dialect = served.dialect;
        let (folder, source, _) = file(dialect);
        let journals = folder.path().join("journals");
        let running = start(served);
        let options = options_for(&running);
        let try_both = |address: &str, options: &Options, words: &[&str]| {
            let place: Location = open(address, options).unwrap();
            let manager = manager(Settings { journals: Some(journals.clone()), retries: 3, ..settings() });
            for failure in [
                failed(run(manager.put_file(&source, &place))),
                failed(run(manager.get_file(&place, &folder.path().join("target")))),
            ] {
                assert!(words.iter().all(|word| failure.message.contains(word)), "{dialect:?} {words:?}: {failure}");
            }
            // For Azure, the first part starts the upload, so the journal exists already.
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
        try_both(&at, &Options { environment: wrong, ..options.clone() }, &[&at, "; check "]);
        let elsewhere = at.replace("bucket", "none");
        try_both(&elsewhere, &options, &[&elsewhere, "no such", "bucket"]);
        // No server listens at the first address. The server at the second address is not a store.
        let nowhere = "127.0.0.1:1";
        let endpoint_url = Some(format!("http://{nowhere}/account"));
        try_both(&at, &Options { endpoint_url, ..options.clone() }, &[&at, nowhere]);
        let web = Web::start(|_, _| answer("200 OK", "Content-Type: text/html\r\n", b"<html><p>Welcome</p></html>"));
        let endpoint_url = Some(web.url("/account"));
        let options = Options { endpoint_url, ..options };
        try_both(&at, &options, &[&at, "a store of this kind; check the endpoint"]);
        no_store(&open(&at, &options).unwrap());
    }
}

/// Checks that each kind of request fails if a server answers with a web page.
fn no_store(place: &Location) {
    let (mut seen, options) = (ascertain_transfer::Attempt::default(), ascertain_transfer::PutOptions::default());
    let upload = ascertain_transfer::Upload { name: NAME.into(), id: "id".into() };
    run(async {
        let store = &place.store;
        let failures = [
            store.put(NAME, crate::common::block("x"), &options, &mut seen).await.map(drop),
            store.put_part(&upload, 0, crate::common::block("x"), &mut seen).await.map(drop),
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
fn a_redirect_to_another_server_is_not_followed() {
    let other = Web::start(|_, _| answer("200 OK", "ETag: \"1\"\r\n", b""));
    let to = format!("Location: {}\r\n", other.url("/bucket/name"));
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let headers = to.clone();
        let web = Web::start(move |_, _| answer(status, &headers, b""));
        for served in one_of_each() {
            let (folder, source, _) = file(Dialect::Azure);
            let running = start(served);
            let options = Options { endpoint_url: Some(web.url("/account")), ..options_for(&running) };
            let place: Location = open(&address(&running, NAME), &options).unwrap();
            let failure = failed(run(manager(settings()).put_file(&source, &place)));
            assert!(failure.kind == Kind::Fatal && failure.message.contains("the endpoint"), "{failure}");
            failed(run(manager(settings()).get_file(&place, &folder.path().join("target"))));
        }
        assert!(web.heads().len() >= 6);
    }
    assert_eq!(other.heads().len(), 0);
}

/// Names with special characters must remain different, and must not lead out of the folder. Each file contains its own
/// name.
#[test]
fn names_with_special_characters_are_kept() {
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
        let to: Location = open(&address(&running, "to/"), &options_for(&running)).unwrap();
        let manager = std::sync::Arc::new(manager(settings()));
        let many = ascertain_transfer::Selection::default();
        let put = run(manager.put_many(&[folder.path().join("from")], &to, &many)).unwrap();
        assert_eq!(put.len(), names.len());
        let back = folder.path().join(format!("{dialect:?}"));
        let got = run(manager.get_many(&to, &back, &many)).unwrap();
        assert_eq!(got.len(), names.len());
        for name in names {
            assert_eq!(running.object("bucket", &format!("to/{name}")).as_deref(), Some(name.as_bytes()), "{name:?}");
            assert_eq!(read(&back, name), name, "{dialect:?}");
        }
        let long: Location = open(&address(&running, &"x".repeat(100_000)), &options_for(&running)).unwrap();
        let failure = failed(run(manager.put_file(&folder.path().join("from/a b"), &long)));
        assert!(failure.message.contains("too long"), "{}", &failure.message[failure.message.len() - 99..]);
    }
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Some S3-compatible stores ignore the condition that the object must not exist, and would replace an existing one.
/// The client must therefore check first.
#[test]
fn a_store_that_ignores_the_condition_replaces_nothing() {
    let (_folder, source, _) = file(Dialect::Azure);
    for required in ["when_supported", "when_required"] {
        let web = Web::start(|_, _| answer("200 OK", "ETag: \"1\"\r\n", b""));
        let environment = [("AWS_REQUEST_CHECKSUM_CALCULATION", required)].into_iter().collect();
        let options = Options { environment, endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
        let place = open("s3://bucket/name", &options).unwrap();
        let kept = manager(Settings { no_clobber: true, ..settings() });
        let result = run(kept.put_file(&source, &place)).unwrap();
        assert!(matches!(result.status, TransferStatus::Exists), "{result:?}");
        assert!(web.heads().iter().all(|head| head.starts_with("HEAD ")), "{:?}", web.heads());
    }
}

/// GCS knows only the CRC-32C of an object. A file whose content differs from the object's must be transferred, even if
/// its size is the same and its time is older.
#[test]
fn a_file_that_only_looks_unchanged_is_transferred() {
    let (folder, source, content) = file(Dialect::S3);
    let running = start(Served::gcs());
    let unchanged = manager(Settings { skip_unchanged: true, ..settings() });
    let put = || run(unchanged.put_file(&source, &place(&running))).unwrap();
    let with_time = |path: &Path, bytes: &[u8], seconds| {
        fs::write(path, bytes).unwrap();
        let modified = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    };
    assert!(put().is_transferred());
    // A newer time alone does not count as a change.
    with_time(&source, &content, 4_000_000_000);
    assert!(matches!(put().status, TransferStatus::Unchanged));
    let other = [&content[1..], b"?"].concat();
    with_time(&source, &other, 1_000_000_000);
    assert!(put().is_transferred());
    assert!(running.object("bucket", NAME).unwrap() == other);
    // The same applies to downloads.
    let target = folder.path().join("target");
    let get = || run(unchanged.get_file(&place(&running), &target)).unwrap();
    assert!(get().is_transferred());
    let modified = fs::metadata(&target).unwrap().modified().unwrap();
    fs::write(&target, &content).unwrap();
    fs::File::options().write(true).open(&target).unwrap().set_modified(modified).unwrap();
    assert!(get().is_transferred() && fs::read(&target).unwrap() == other);
    with_time(&target, &other, 1_000_000_000);
    assert!(matches!(get().status, TransferStatus::Unchanged));
}

/// With a key of KMS, each copy of a part has another ETag.
#[test]
fn parts_that_kms_encrypts_are_not_sent_twice() {
    for (encryption, is_stable) in [("AES256", true), ("aws:kms", false), ("aws:kms:dsse", false)] {
        let headers = format!("x-amz-server-side-encryption: {encryption}\r\nETag: \"1\"\r\n");
        let web = Web::start(move |_, _| answer("200 OK", &headers, b"<A><UploadId>1</UploadId></A>"));
        let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
        let [begun, resumed] = [0, 1].map(|_| open("s3://bucket/name", &options).unwrap().store);
        run(async {
            let mut attempt = ascertain_transfer::Attempt::default();
            let upload = begun.start_upload("name", &Default::default(), &mut attempt).await.unwrap();
            resumed.put_part(&upload, 0, crate::common::block("x"), &mut attempt).await.unwrap();
        });
        assert_eq!([begun, resumed].map(|store| store.has_stable_tokens()), [is_stable; 2], "{encryption}");
    }
}

/// The answer has the checksum of other bytes, so the new object is damaged. The request must not replace an object. A
/// second request would be refused because the damaged object exists, so it must not be sent.
#[test]
fn a_damaged_new_object_is_not_reported_as_an_earlier_one() {
    let (_folder, source, _) = file(Dialect::Azure);
    let web = Web::start(|head, _| match head.split(' ').next() {
        Some("HEAD") => answer("404 Not Found", "", b""),
        _ => answer("200 OK", "ETag: \"1\"\r\nx-amz-checksum-crc64nvme: AAAAAAAAAAA=\r\n", b""),
    });
    let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
    let place = open("s3://bucket/name", &options).unwrap();
    let kept = manager(Settings { no_clobber: true, ..settings() });
    let failure = failed(run(kept.put_file(&source, &place)));
    assert!(failure.kind == Kind::Fatal && failure.message.contains("the stored bytes differ"), "{failure}");
    assert_eq!(web.heads().iter().filter(|head| head.starts_with("PUT ")).count(), 1);
}

/// Some S3-compatible stores list ETags without quotes. Each GET requires the ETag with quotes.
#[test]
fn etags_without_quotes_in_a_list_are_those_of_the_objects() {
    let web = Web::start(|head, _| {
        let entry = "<Contents><Key>p/a</Key><Size>1</Size><ETag>abc</ETag></Contents>";
        let list = format!("<List><IsTruncated>false</IsTruncated>{entry}</List>");
        match head.contains("list-type") {
            true => answer("200 OK", "", list.as_bytes()),
            false if !head.contains("if-match: \"abc\"") => answer("412 Precondition Failed", "", b""),
            false => answer("200 OK", "ETag: \"abc\"\r\n", b"x"),
        }
    });
    let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
    let (place, folder) = (open("s3://bucket/p/", &options).unwrap(), tempfile::tempdir().unwrap());
    let got = run(manager(settings()).get_many(&place, folder.path(), &Default::default())).unwrap();
    assert!(got.len() == 1 && got[0].is_transferred(), "{got:?}");
}

/// These credentials permit listing, but not reading.
#[test]
fn a_folder_is_listed_without_the_right_to_read() {
    let web = Web::start(|head, _| match head.contains("list-type") {
        true => answer(
            "200 OK",
            "",
            b"<List><IsTruncated>false</IsTruncated><Contents><Key>dir/a</Key><Size>1</Size></Contents></List>",
        ),
        false => answer("403 Forbidden", "", b""),
    });
    let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
    let listed =
        ascertain_transfer::list("s3://bucket/dir".as_ref(), &options, settings(), Box::new(()), Stop::default());
    let listed = listed.unwrap();
    assert_eq!(listed.iter().map(|object| &*object.meta.name).collect::<Vec<_>>(), ["dir/a"]);
}

/// The answer that redirects can't be read to its end, so its connection is not reused. The second request can only be
/// sent if the first one has released the only permit.
#[test]
fn a_redirect_whose_answer_breaks_off_is_followed() {
    let body = "<Error><Code>PermanentRedirect</Code></Error>";
    let web = Web::start(move |head, _| match head.contains("us-east-1") {
        true => {
            let head = "HTTP/1.1 301 Moved Permanently\r\nx-amz-bucket-region: eu-west-1\r\n";
            format!("{head}Content-Length: 1000\r\nConnection: close\r\n\r\n{body}").into_bytes()
        }
        false => answer("200 OK", "ETag: \"1\"\r\n", b""),
    });
    let environment = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "key")].into_iter().collect();
    let options =
        Options { environment, endpoint_url: Some(web.url("")), max_connections: Some(1), ..Options::default() };
    let store = open("s3://bucket/name", &options).unwrap().store;
    run(async {
        let (mut attempt, put) = (ascertain_transfer::Attempt::default(), Default::default());
        let putting = store.put("name", crate::common::block("x"), &put, &mut attempt);
        tokio::time::timeout(Duration::from_secs(30), putting).await.expect("it waits for its own permit").unwrap();
    });
}

/// A path component that is a file is no reason to skip the transfer.
#[test]
fn a_folder_that_is_a_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::write(&source, "x").unwrap();
    let store = std::sync::Arc::new(ascertain_transfer::Local::new(folder.path()));
    let place = Location { store, name: "source/x".into(), address: "file:///source/x".into() };
    let kept = manager(Settings { no_clobber: true, ..settings() });
    failed(run(kept.put_file(&source, &place)));
}
