//! Tests of downloads from HTTP servers: with ranges and without, wrong answers, changing objects, and redirects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::web::{Web, answer, file, header};
use crate::common::{block, bytes, run};
use ascertain_transfer::{
    Attempt, Environment, Kind, Location, ObjectMeta, Options, PutOptions, Settings, Stop, TransferManager,
    TransferStatus, open,
};

const IDENTITY: &str = "ETag: \"one\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

fn found(web: &Web, path: &str) -> Location {
    open(&web.url(path), &Options::default()).unwrap()
}

fn head(found: &Location) -> ObjectMeta {
    run(found.store.head(&found.name, &mut Attempt::default())).unwrap().unwrap()
}

#[test]
fn ranges_are_asked_for_of_the_file_that_was_seen() {
    let content = bytes(100_000);
    let served = content.clone();
    let web = Web::start(move |head, _| file(head, IDENTITY, &served));
    let found = found(&web, "/a file?version=1");
    let meta = head(&found);
    assert_eq!((&*found.name, &*meta.name), ("a file", "a file"));
    assert_eq!((meta.bytes, meta.etag.as_deref(), meta.modified.is_some()), (100_000, Some("\"one\""), true));
    assert!(!found.store.is_sequential(&meta));
    let got = run(found.store.get(&meta, 500..90_000, &mut Attempt::default())).unwrap();
    assert_eq!(got.bytes, content[500..90_000]);
    let heads = web.heads();
    assert!(heads[1].starts_with("GET /a%20file?version=1 HTTP/1.1\r\n"), "{heads:?}");
    assert_eq!((header(&heads[1], "range"), header(&heads[1], "if-match")), (Some("bytes=500-89999"), Some("\"one\"")));
    let outside = run(found.store.get(&meta, 0..100_001, &mut Attempt::default())).unwrap_err();
    assert_eq!((outside.kind, web.heads().len()), (Kind::Fatal, 2));
}

#[test]
fn an_empty_file_is_one() {
    let web = Web::start(|head, _| file(head, IDENTITY, b""));
    assert_eq!(head(&found(&web, "/")).bytes, 0);
}

#[test]
fn without_ranges_one_answer_is_read_on_from_front_to_back() {
    let content = bytes(300_000);
    let served = content.clone();
    let web = Web::start(move |_, _| answer("200 OK", IDENTITY, &served));
    let found = found(&web, "/");
    let meta = head(&found);
    assert!(found.store.is_sequential(&meta) && meta.bytes == 300_000);
    run(async {
        let mut seen = Attempt::default();
        for from in (0..300_000).step_by(70_000) {
            let to = (from + 70_000).min(300_000);
            let got = found.store.get(&meta, from as u64..to as u64, &mut seen).await.unwrap();
            assert_eq!(got.bytes, content[from..to], "{from}");
        }
        assert_eq!(web.heads().len(), 2);
        // Reading ranges out of order is slower, but possible.
        let got = found.store.get(&meta, 200_000..200_010, &mut seen).await.unwrap();
        assert_eq!(got.bytes, content[200_000..200_010]);
        let got = found.store.get(&meta, 5..10, &mut seen).await.unwrap();
        assert_eq!(got.bytes, content[5..10]);
        assert_eq!(web.heads().len(), 4);
    });
}

/// Without ranges, each measurement of the path would fetch the whole object, so a gentle transfer does not measure the
/// path.
#[test]
fn without_ranges_the_path_is_not_watched() {
    let content = bytes(300_000);
    let served = content.clone();
    let web = Web::start(move |_, _| answer("200 OK", IDENTITY, &served));
    let gentle = Some(Duration::from_millis(50));
    let manager = TransferManager::new(Settings { gentle, ..Settings::default() }, Stop::default(), Box::new(()));
    let mut out = Vec::new();
    run(manager.get_stream(&found(&web, "/"), &mut out)).unwrap();
    assert!(out == content);
    assert!(web.heads().len() <= 3, "{:?}", web.heads());
}

#[test]
fn a_file_that_changes_underneath_is_not_read_on() {
    let later = [
        "ETag: \"two\"\r\n",
        "ETag: \"one\"\r\n",
        "Last-Modified: Mon, 07 Nov 1994 08:49:37 GMT\r\n",
        "ETag: W/\"two\"\r\n",
    ];
    let before = [IDENTITY, IDENTITY, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "ETag: W/\"one\"\r\n"];
    for (number, (before, later)) in before.into_iter().zip(later).enumerate() {
        for ranges in [true, false] {
            let asked = AtomicUsize::new(0);
            let web = Web::start(move |head, _| {
                let first = asked.fetch_add(1, Ordering::Relaxed) == 0;
                // In the second case, the size changes, but the ETag does not.
                let content = bytes(if first || number != 1 { 1000 } else { 1001 });
                let identity = if first { before } else { later };
                if ranges { file(head, identity, &content) } else { answer("200 OK", identity, &content) }
            });
            let found = found(&web, "/");
            let meta = head(&found);
            let failure = run(found.store.get(&meta, 0..1000, &mut Attempt::default())).unwrap_err();
            assert_eq!(failure.kind, Kind::Changed, "{number} {ranges}: {failure}");
        }
    }
    let gone = AtomicUsize::new(0);
    let web = Web::start(move |head, _| match gone.fetch_add(1, Ordering::Relaxed) {
        0 => file(head, IDENTITY, b"0123456789"),
        1 => answer("412 Precondition Failed", "", b""),
        2 => answer("416 Range Not Satisfiable", "", b""),
        _ => answer("404 Not Found", "", b""),
    });
    let found = found(&web, "/");
    let meta = head(&found);
    let mut kinds = Vec::new();
    for _ in 0..3 {
        kinds.push(run(found.store.get(&meta, 0..10, &mut Attempt::default())).unwrap_err().kind);
    }
    assert_eq!(kinds, [Kind::Changed, Kind::Changed, Kind::Missing]);
}

#[test]
fn a_server_that_lies_is_not_believed() {
    let range = |said: &str, body: &[u8]| {
        let headers = format!("{IDENTITY}Content-Range: {said}\r\n");
        answer("206 Partial Content", &headers, body)
    };
    let cut = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10\r\nConnection: close";
    let cut = format!("{cut}\r\n{IDENTITY}\r\n01234").into_bytes();
    for (second, expected) in [
        (range("bytes 1-10/10", b"0123456789"), Kind::Corrupted),
        (range("bytes 0-9/10", b"01234"), Kind::Corrupted),
        (range("bytes 0-9/10", b"0123456789abc"), Kind::Fatal),
        (range("bytes 0-9/11", b"0123456789"), Kind::Changed),
        (range("nonsense", b"0123456789"), Kind::Corrupted),
        (answer("206 Partial Content", "", b"0123456789"), Kind::Corrupted),
        (cut, Kind::Transient(None)),
        (b"nonsense\r\n\r\nConnection: close".to_vec(), Kind::Transient(None)),
    ] {
        let words = String::from_utf8_lossy(&second).into_owned();
        let asked = AtomicUsize::new(0);
        let web = Web::start(move |head, _| match asked.fetch_add(1, Ordering::Relaxed) {
            0 => file(head, IDENTITY, b"0123456789"),
            _ => second.clone(),
        });
        let found = found(&web, "/");
        let meta = head(&found);
        let failure = run(found.store.get(&meta, 0..10, &mut Attempt::default())).unwrap_err();
        assert_eq!(failure.kind, expected, "{words}: {failure}");
    }
    // The length in the head is larger than the body in the first case, and smaller in the second.
    for (said, sent, expected) in [(10, "01234", Kind::Transient(None)), (3, "012", Kind::Changed)] {
        let asked = AtomicUsize::new(0);
        let web = Web::start(move |_, _| {
            let said = if asked.fetch_add(1, Ordering::Relaxed) == 0 { 10 } else { said };
            format!("HTTP/1.1 200 OK\r\nContent-Length: {said}\r\nConnection: close\r\n\r\n{sent}").into_bytes()
        });
        let found = found(&web, "/");
        let meta = head(&found);
        let failure = run(found.store.get(&meta, 0..10, &mut Attempt::default())).unwrap_err();
        assert_eq!(failure.kind, expected, "{failure}");
    }
    let unknown = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n";
    let web = Web::start(|_, _| unknown.to_vec());
    let found = found(&web, "/");
    let failure = run(found.store.head("", &mut Attempt::default())).unwrap_err();
    assert!(failure.kind == Kind::Unsized && failure.message.contains("the length"), "{failure}");
}

/// Returns the first `sent` bytes of an answer, in chunks of 1000 bytes. If this is the whole answer, adds the final
/// chunk.
fn in_chunks(content: &[u8], sent: usize) -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".to_vec();
    for chunk in content[..sent].chunks(1_000) {
        answer.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
        answer.extend([chunk, b"\r\n"].concat());
    }
    if sent == content.len() {
        answer.extend(b"0\r\n\r\n");
    }
    answer
}

/// Objects of unknown length, such as archives that are created on the fly, are sent in chunks or end with the
/// connection.
#[test]
fn what_has_no_length_is_got_to_its_end() {
    let content = bytes(100_000);
    let until_closed = |content: &[u8]| {
        let head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
        [&head[..], content].concat()
    };
    let folder = tempfile::tempdir().unwrap();
    for answered in [in_chunks(&content, content.len()), until_closed(&content), in_chunks(b"", 0)] {
        let expected = if answered.len() > 1_000 { &content[..] } else { b"" };
        let served = answered.clone();
        let web = Web::start(move |_, _| served.clone());
        let place = found(&web, "/a.tar");
        let manager =
            TransferManager::new(Settings { verify: true, ..Settings::default() }, Stop::default(), Box::new(()));
        assert_eq!(run(manager.size(&place)).unwrap(), None);
        let path = folder.path().join("a.tar");
        let result = run(manager.get_file(&place, &path)).unwrap();
        assert_eq!((result.bytes, result.verified), (expected.len() as u64, true));
        assert_eq!(std::fs::read(&path).unwrap(), expected);
        let mut out = Vec::new();
        assert_eq!(run(manager.get_stream(&place, &mut out)).unwrap().crc64, result.crc64);
        assert_eq!(out, expected);
    }
}

/// A truncated answer in chunks must not be taken for a complete file. The download starts again from the beginning.
#[test]
fn what_has_no_length_and_breaks_off_is_got_anew_or_not_at_all() {
    let content = bytes(50_000);
    for fails in [2, usize::MAX] {
        let (served, asked) = (content.clone(), AtomicUsize::new(0));
        let web = Web::start(move |head, _| {
            let is_look = header(head, "range").is_some();
            let breaks = !is_look && asked.fetch_add(1, Ordering::Relaxed) < fails;
            in_chunks(&served, if breaks { 20_000 } else { served.len() })
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        let settings = Settings { back_off: Duration::from_millis(1), retries: 7, ..Settings::default() };
        let manager = TransferManager::new(settings, Stop::default(), Box::new(()));
        let got = run(manager.get_file(&found(&web, "/a.tar"), &path));
        match fails {
            2 => {
                assert_eq!(got.unwrap().requests.retries.broken, 2);
                assert_eq!(std::fs::read(&path).unwrap(), content);
            }
            _ => {
                assert!(got.unwrap_err().to_string().contains("tried 8 times"));
                assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a part was left");
            }
        }
    }
}

/// While the object is downloaded, another process creates a file with its name.
#[test]
fn what_has_no_length_does_not_replace_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    let created = path.clone();
    let web = Web::start(move |head, _| {
        if header(head, "range").is_none() {
            std::fs::write(&created, "the other one").unwrap();
        }
        in_chunks(b"content", 7)
    });
    let settings = Settings { no_clobber: true, ..Settings::default() };
    let manager = TransferManager::new(settings, Stop::default(), Box::new(()));
    let result = run(manager.get_file(&found(&web, "/a.tar"), &path)).unwrap();
    assert!(matches!(result.status, TransferStatus::Exists), "{result:?}");
    assert_eq!(std::fs::read(&path).unwrap(), b"the other one");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a part was left");
}

/// The object is read twice. If the contents differ, the download is not verified.
#[test]
fn what_has_no_length_is_verified_by_reading_it_twice() {
    let asked = AtomicUsize::new(0);
    let web = Web::start(move |_, _| {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        let content = format!("as it is at request {number}");
        in_chunks(content.as_bytes(), content.len())
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    let manager = TransferManager::new(Settings { verify: true, ..Settings::default() }, Stop::default(), Box::new(()));
    let error = run(manager.get_file(&found(&web, "/a.tar"), &path)).unwrap_err();
    assert!(error.to_string().contains("two downloads differ"), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_server_that_forgets_its_ranges_is_read_in_order() {
    let asked = AtomicUsize::new(0);
    let web = Web::start(move |head, _| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => file(head, IDENTITY, b"0123456789"),
        _ => answer("200 OK", IDENTITY, b"0123456789"),
    });
    let found = found(&web, "/");
    let meta = head(&found);
    run(async {
        let mut seen = Attempt::default();
        let failure = found.store.get(&meta, 0..5, &mut seen).await.unwrap_err();
        assert_eq!(failure.kind, Kind::Transient(None));
        assert!(found.store.is_sequential(&meta));
        assert_eq!(found.store.get(&meta, 0..5, &mut seen).await.unwrap().bytes, "01234");
        assert_eq!(found.store.get(&meta, 5..10, &mut seen).await.unwrap().bytes, "56789");
    });
}

#[test]
fn where_an_address_leads_is_remembered_but_nobody_else_is_told_who_we_are() {
    let other = Arc::new(Web::start(|head, _| match head {
        head if head.contains("expired") => answer("403 Forbidden", "", b""),
        head => file(head, IDENTITY, b"0123456789"),
    }));
    let target = other.clone();
    let web = Web::start(move |head, _| {
        let to = match head.split(' ').nth(1).unwrap() {
            "/file" => "../away?x=1".to_string(),
            "/away?x=1" => target.url("/signed?sig=s3cret"),
            "/old" => target.url("/expired"),
            "/loop" => "/loop".into(),
            _ => "ftp://elsewhere/".into(),
        };
        answer("302 Found", &format!("Location: {to}\r\n"), b"")
    });
    let with_user = |path: &str| open(&web.url(path).replace("://", "://ann:s3cret@"), &Options::default()).unwrap();
    let found = with_user("/file");
    let meta = head(&found);
    assert_eq!(run(found.store.get(&meta, 2..5, &mut Attempt::default())).unwrap().bytes, "234");
    assert_eq!((web.heads().len(), other.heads().len()), (2, 2));
    assert!(web.heads().iter().all(|head| header(head, "authorization") == Some("Basic YW5uOnMzY3JldA==")));
    assert!(other.heads().iter().all(|head| header(head, "authorization").is_none()));
    for (path, kind) in [("/old", Kind::Denied), ("/loop", Kind::Fatal), ("/nowhere", Kind::Fatal)] {
        let failure = run(with_user(path).store.head("", &mut Attempt::default())).unwrap_err();
        assert_eq!(failure.kind, kind, "{path}: {failure}");
        assert!(!failure.message.contains("s3cret"), "{failure}");
    }
}

#[test]
fn nothing_can_be_put_there_and_what_is_not_there_is_none() {
    let web = Web::start(|_, _| answer("404 Not Found", "", b""));
    let found = found(&web, "/none");
    let mut seen = Attempt::default();
    assert_eq!(run(found.store.head("", &mut seen)).unwrap(), None);
    let failure = run(found.store.put("", block("x"), &PutOptions::default(), &mut seen)).unwrap_err();
    assert!(failure.kind == Kind::Fatal && failure.message.contains("read"), "{failure}");
    for status in ["401 Unauthorized", "403 Forbidden", "500 Internal Server Error", "429 Too Many Requests"] {
        let web = Web::start(move |_, _| answer(status, "Retry-After: 3\r\n", b""));
        let failure = run(open(&web.url("/"), &Options::default()).unwrap().store.head("", &mut seen)).unwrap_err();
        let later = Kind::Transient(Some(std::time::Duration::from_secs(3)));
        assert_eq!(failure.kind, if status < "429" { Kind::Denied } else { later }, "{failure}");
    }
}

#[test]
fn a_token_is_asked_for_where_the_environment_says_and_by_nobody_twice() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "PLANTED").unwrap();
    let times = Arc::new(AtomicUsize::new(0));
    let counted = times.clone();
    let web = Web::start(move |head, _| match head.split(' ').nth(1).unwrap() {
        "/credentials" => match counted.fetch_add(1, Ordering::Relaxed) {
            0 => answer("503 Service Unavailable", "", b"PLANTED"),
            1 => answer("403 Forbidden", "", b"PLANTED"),
            _ => answer(
                "200 OK",
                "",
                b"{\"AccessKeyId\":\"id\",\"SecretAccessKey\":\"key\",\"Token\":\"T\",\
                  \"Expiration\":\"2100-01-01T00:00:00Z\"}",
            ),
        },
        _ => answer("200 OK", "ETag: \"1\"\r\n", b""),
    });
    let environment: Environment = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", web.url("/credentials")),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.display().to_string()),
    ]
    .into_iter()
    .collect();
    let options = Options { environment, endpoint_url: Some(web.url("")), ..Options::default() };
    let found = open("s3://bucket/name", &options).unwrap();
    run(async {
        let mut seen = Attempt::default();
        for (kind, asked) in [(Kind::Transient(None), 1), (Kind::Denied, 2)] {
            let failure = found.store.head("name", &mut seen).await.unwrap_err();
            assert_eq!((failure.kind, times.load(Ordering::Relaxed)), (kind, asked), "{failure}");
            assert!(!format!("{failure:?}").contains("PLANTED"));
        }
        for _ in 0..2 {
            found.store.head("name", &mut seen).await.unwrap();
        }
    });
    assert_eq!(times.load(Ordering::Relaxed), 3);
    let signed = web.heads().last().unwrap().clone();
    assert_eq!(header(&signed, "x-amz-security-token"), Some("T"));
    assert_eq!(header(&web.heads()[0], "authorization"), Some("PLANTED"));
}
