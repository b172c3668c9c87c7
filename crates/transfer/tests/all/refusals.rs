//! Tests of requests that fail: the kinds of the failures, and their messages.

use std::net::TcpListener;
use std::time::Duration;

use crate::common::web::{Web, answer, header, tunnel};
use crate::common::{address, block, bytes, environment_for, one_of_each, opened, options_for, run, start};
use ascertain_netlab::http::{CERTIFICATE_PEM, TlsVersion};
use ascertain_netlab::store::{Dialect, Fault, Kind as RequestKind, Misdeed, RunningStore, Store as Served};
use ascertain_transfer::{
    Attempt, Environment, Error, Failure, Kind, Location, ObjectMeta, Options, PartBody, PutOptions, Settings, Stop,
    TransferRequest, TransferResult, TransferStatus, open, run as transfer,
};

/// A store without room refuses every file, so most files are not sent.
#[test]
fn a_full_store_stops_a_command() {
    let folder = tempfile::tempdir().unwrap();
    (0..100).for_each(|index| std::fs::write(folder.path().join(index.to_string()), "content").unwrap());
    for served in one_of_each() {
        let store = start(Served { capacity_bytes: 0, ..served });
        let request = TransferRequest {
            sources: vec![folder.path().into()],
            destination: address(&store, "p/").into(),
            settings: Settings { max_concurrency: 4, ..Settings::default() },
            store: options_for(&store),
            ..TransferRequest::default()
        };
        let results = transfer(&request, Box::new(()), Stop::default()).unwrap();
        let is_halted = |result: &&TransferResult| matches!(result.status, TransferStatus::Failed(Error::Halted));
        let (halted, requests) = (results.iter().filter(is_halted).count(), store.seen().len());
        assert!(halted >= 90 && requests <= 10, "{halted} files, {requests} requests");
    }
}

/// GCS does not know the request for the checksums of parts, and might send the whole object.
#[test]
fn the_checksums_of_parts_are_not_requested_from_gcs() {
    let store = start(Served::gcs());
    let meta = ObjectMeta { name: "name".into(), bytes: 10, ..ObjectMeta::default() };
    assert_eq!(run(opened(&store).store.part_sums(&meta, &mut Attempt::default())).unwrap(), []);
    assert_eq!(store.seen().len(), 0);
}

/// Starts a store in which every request of the kind `on` has the fault `what`.
fn with_fault(served: Served, on: RequestKind, what: Misdeed) -> RunningStore {
    start(Served { faults: vec![Fault { on: Some(on), after: 0, times: u64::MAX, what }], ..served })
}

/// Stores an object with a single request.
fn put(found: &Location) -> Result<(), Failure> {
    let mut seen = Attempt::default();
    run(found.store.put("name", block(bytes(100_000)), &PutOptions::default(), &mut seen)).map(drop)
}

/// Stores an object as an upload with a single part.
fn put_by_block(found: &Location) -> Result<(), Failure> {
    run(async {
        let (mut seen, options) = (Attempt::default(), PutOptions::default());
        let upload = found.store.start_upload("name", &options, &mut seen).await?;
        let body = block(bytes(100_000));
        let crc64 = body.crc64;
        let token = found.store.put_part(&upload, 0, body, &mut seen).await?;
        found.store.commit(&upload, &[token], crc64, &options, &mut seen).await.map(drop)
    })
}

fn get(found: &Location) -> Result<(), Failure> {
    run(async {
        let mut seen = Attempt::default();
        let meta = found.store.head("name", &mut seen).await?.unwrap();
        found.store.get(&meta, 0..meta.bytes, &mut seen).await.map(drop)
    })
}

#[test]
fn only_what_may_have_been_carried_out_is_unanswered() {
    for served in one_of_each() {
        for (on, what, expected) in [
            (RequestKind::PutBlock, Misdeed::CutUpload { after_bytes: 50_000 }, Kind::Transient(None)),
            (RequestKind::PutBlock, Misdeed::AnswerLost, Kind::Transient(None)),
            (RequestKind::PutBlock, Misdeed::Refused { status: 500, retry_after_s: None }, Kind::Transient(None)),
            (RequestKind::Commit, Misdeed::CutUpload { after_bytes: 10 }, Kind::Unanswered),
            (RequestKind::Commit, Misdeed::AnswerLost, Kind::Unanswered),
            (RequestKind::Commit, Misdeed::Refused { status: 500, retry_after_s: None }, Kind::Unanswered),
            (RequestKind::Commit, Misdeed::Refused { status: 503, retry_after_s: None }, Kind::Transient(None)),
        ] {
            let running = with_fault(served.clone(), on, what.clone());
            let failure = put_by_block(&opened(&running)).unwrap_err();
            assert_eq!(failure.kind, expected, "{what:?}: {failure}");
            // The functions of a store never repeat a request, so there must be exactly one.
            assert_eq!(running.seen().iter().filter(|seen| seen.kind == on).count(), 1, "{what:?}");
            assert_eq!(
                running.object("bucket", "name").is_some(),
                on == RequestKind::Commit && what == Misdeed::AnswerLost
            );
        }
        for what in [Misdeed::CutUpload { after_bytes: 50_000 }, Misdeed::AnswerLost] {
            let running = with_fault(served.clone(), RequestKind::PutObject, what);
            assert_eq!(put(&opened(&running)).unwrap_err().kind, Kind::Unanswered);
        }
        let running = with_fault(served, RequestKind::GetObject, Misdeed::CutDownload { after_bytes: 50_000 });
        put(&opened(&running)).unwrap();
        let failure = get(&opened(&running)).unwrap_err();
        assert_eq!(failure.kind, Kind::Transient(None), "{failure}");
    }
}

#[test]
fn a_store_that_asks_for_time_gets_it() {
    for served in one_of_each() {
        for status in [429, 503] {
            let refused = Misdeed::Refused { status, retry_after_s: Some(7) };
            let running = with_fault(served.clone(), RequestKind::PutBlock, refused);
            let failure = put_by_block(&opened(&running)).unwrap_err();
            assert_eq!(failure.kind, Kind::Transient(Some(Duration::from_secs(7))), "{failure}");
        }
    }
}

#[test]
fn what_was_changed_on_the_way_is_found() {
    for served in one_of_each() {
        let dialect = served.dialect;
        let running = with_fault(served.clone(), RequestKind::PutBlock, Misdeed::FlippedUpload { byte: 77 });
        let failure = put_by_block(&opened(&running)).unwrap_err();
        assert_eq!(failure.kind, Kind::Corrupted, "{dialect:?}: {failure}");
        let running = with_fault(served.clone(), RequestKind::PutObject, Misdeed::FlippedUpload { byte: 77 });
        assert_eq!(put(&opened(&running)).unwrap_err().kind, Kind::Corrupted);
        assert_eq!(running.object("bucket", "name"), None);
        if dialect == Dialect::Azure {
            let running = with_fault(served, RequestKind::GetObject, Misdeed::FlippedDownload { byte: 77 });
            put(&opened(&running)).unwrap();
            assert_eq!(get(&opened(&running)).unwrap_err().kind, Kind::Corrupted);
        }
    }
}

#[test]
fn a_wrong_sum_of_the_whole_is_found_by_s3() {
    let running = start(Served::s3());
    let found = opened(&running);
    let failure = run(async {
        let (mut seen, options) = (Attempt::default(), PutOptions::default());
        let upload = found.store.start_upload("name", &options, &mut seen).await.unwrap();
        let token = found.store.put_part(&upload, 0, block("right"), &mut seen).await.unwrap();
        found.store.commit(&upload, &[token], 1, &options, &mut seen).await.unwrap_err()
    });
    assert_eq!((failure.kind, running.object("bucket", "name")), (Kind::Corrupted, None), "{failure}");
}

#[test]
fn a_full_store_says_so() {
    for served in one_of_each() {
        let running = start(Served { capacity_bytes: 1000, ..served });
        for failure in [put(&opened(&running)).unwrap_err(), put_by_block(&opened(&running)).unwrap_err()] {
            assert_eq!(failure.kind, Kind::Full, "{failure}");
            assert!(failure.message.contains("no room"), "{failure}");
        }
    }
}

#[test]
fn wrong_keys_and_buckets_are_told_apart() {
    for served in one_of_each() {
        let running = start(served);
        let secret = "ZGlmZmVyZW50";
        let wrong: Environment = [
            ("AWS_ACCESS_KEY_ID", &*running.store().account),
            ("AWS_SECRET_ACCESS_KEY", secret),
            ("AZURE_STORAGE_ACCOUNT", &running.store().account),
            ("AZURE_STORAGE_KEY", secret),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", secret),
        ]
        .into_iter()
        .collect();
        let options = Options { environment: wrong, ..options_for(&running) };
        let found = open(&address(&running, "name"), &options).unwrap();
        for failure in [put(&found).unwrap_err(), put_by_block(&found).unwrap_err(), get(&found).unwrap_err()] {
            assert_eq!(failure.kind, Kind::Denied, "{failure}");
            let words = ["AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_KEY", "GOOGLE_APPLICATION_CREDENTIALS"];
            assert!(words.iter().any(|word| failure.message.contains(word)), "{failure}");
        }
        let nobody = Options { anonymous: true, ..options_for(&running) };
        let failure = put(&open(&address(&running, "name"), &nobody).unwrap()).unwrap_err();
        assert!(failure.kind == Kind::Denied && failure.message.contains("without credentials"), "{failure}");
        let elsewhere = address(&running, "name").replace("bucket", "none");
        let found = open(&elsewhere, &options_for(&running)).unwrap();
        let mut failures = vec![put(&found).unwrap_err(), put_by_block(&found).unwrap_err()];
        failures.push(run(found.store.list("", &mut Attempt::default())).unwrap_err());
        for failure in failures {
            assert_eq!(failure.kind, Kind::Missing, "{failure}");
            assert!(failure.message.contains("://none") && failure.message.contains("no such bucket"), "{failure}");
        }
    }
}

#[test]
fn a_wrong_clock_is_called_that() {
    let running = start(Served { ahead_s: 3600, ..Served::s3() });
    let failure = put(&opened(&running)).unwrap_err();
    assert!(failure.kind == Kind::Denied && failure.message.contains("clock"), "{failure}");

    for (date, words) in [("Mon, 01 Jan 2001 00:00:00 GMT", "ahead of"), ("Fri, 01 Jan 2100 00:00:00 GMT", "behind")] {
        // Azure has no error code for a wrong clock, and an answer to HEAD can't contain a code.
        for code in ["RequestTimeTooSkewed", "AuthenticationFailed", ""] {
            let body = format!("<Error><Code>{code}</Code></Error>");
            let headers = format!("Date: {date}\r\n");
            let web = Web::start(move |_, _| answer("403 Forbidden", &headers, body.as_bytes()));
            let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
            let failure = put(&open("s3://bucket/name", &options).unwrap()).unwrap_err();
            assert!(failure.kind == Kind::Denied && failure.message.contains(words), "{failure}");
            // The message must contain the times of both clocks.
            let theirs =
                if words == "behind" { "2100-01-01 00:00:00 UTC there" } else { "2001-01-01 00:00:00 UTC there" };
            assert!(failure.message.contains(theirs) && failure.message.contains(" UTC here"), "{failure}");
        }
    }
}

/// A transfer sends a HEAD request first. Its answer has no body that could contain the right region, so a GET request
/// asks for it.
#[test]
fn a_region_that_head_has_wrong_is_asked_about() {
    for (headers, words) in
        [("", "check the region and the endpoint"), ("x-amz-bucket-region: a-b-1\r\n", "region a-b-1")]
    {
        let web = Web::start(move |_, _| answer("400 Bad Request", headers, b""));
        let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
        let failure = get(&open("s3://bucket/name", &options).unwrap()).unwrap_err();
        assert!(failure.kind == Kind::Fatal && failure.message.contains(words), "{failure}");
    }
}

/// AWS answers in the same way if the token has expired and if the region is wrong.
#[test]
fn a_head_that_is_refused_without_a_word_may_be_for_a_token() {
    let web = Web::start(|_, _| answer("400 Bad Request", "", b""));
    let environment = environment_for(&Served::s3()).into_iter().collect();
    let options = Options { environment, endpoint_url: Some(web.url("")), ..Options::default() };
    let failure = get(&open("s3://bucket/name", &options).unwrap()).unwrap_err();
    assert_eq!(failure.kind, Kind::Fatal, "{failure}");
    for words in ["check for an expired token", "a wrong region or a wrong endpoint", "; check AWS_ACCESS_KEY_ID"] {
        assert!(failure.message.contains(words), "{failure}");
    }
}

/// The requested wait is relative to the server's clock, which may differ from ours.
#[test]
fn a_time_to_come_back_is_counted_by_the_clock_that_names_it() {
    for (date, wait_s) in [
        ("Date: Fri, 01 Jan 2100 00:00:00 GMT\r\n", 90),
        ("Date: Mon, 01 Jan 2001 00:00:00 GMT\r\n", 24 * 60 * 60),
        ("Date: Sat, 02 Jan 2100 00:00:00 GMT\r\n", 0),
    ] {
        let headers = format!("{date}Retry-After: Fri, 01 Jan 2100 00:01:30 GMT\r\n");
        let web = Web::start(move |_, _| answer("503 Service Unavailable", &headers, b""));
        let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
        let failure = put(&open("s3://bucket/name", &options).unwrap()).unwrap_err();
        assert_eq!(failure.kind, Kind::Transient(Some(Duration::from_secs(wait_s))), "{failure}");
    }
}

/// An incomplete list must not be taken for a complete one, and a list that refers to itself must not be read forever.
#[test]
fn a_list_that_leads_round_is_refused() {
    let web = Web::start(|head, _| {
        let next = if head.contains("=one") { "two" } else { "one" };
        let token = format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken>");
        let body = format!("<List>{token}<Blobs></Blobs><NextMarker>{next}</NextMarker></List>");
        answer("200 OK", "", body.as_bytes())
    });
    let environment: Environment = [("AZURE_STORAGE_ACCOUNT", "any")].into_iter().collect();
    let options = Options { environment, endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
    for url in ["s3://bucket/", "az://bucket/", "gs://bucket/"] {
        let found = open(url, &options).unwrap();
        let failure = run(found.store.list("", &mut Attempt::default())).unwrap_err();
        assert!(failure.kind == Kind::Fatal && failure.message.contains("circle"), "{failure}");
    }
    assert_eq!(web.heads().len(), 9);
}

#[test]
fn a_list_that_breaks_off_is_refused() {
    let entry = "<Contents><Key>a</Key><Size>1</Size></Contents>";
    let body = format!("<List><IsTruncated>true</IsTruncated>{entry}</List>");
    let web = Web::start(move |_, _| answer("200 OK", "", body.as_bytes()));
    let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
    for url in ["s3://bucket/", "gs://bucket/"] {
        let failure = run(open(url, &options).unwrap().store.list("", &mut Attempt::default())).unwrap_err();
        assert!(failure.kind == Kind::Fatal && failure.message.contains("incomplete"), "{failure}");
    }
}

#[test]
fn who_is_not_there_or_says_nothing_is_not_waited_for_for_ever() {
    // Other tests do not use this address. So after the listener is dropped, nothing listens on this port.
    let listener = TcpListener::bind("127.0.0.4:0").unwrap();
    let place = listener.local_addr().unwrap();
    let options = |url: &str| Options { endpoint_url: Some(url.into()), anonymous: true, ..Options::default() };
    // The kernel accepts the connection, but no process reads from it.
    let hasty = Options { timeout: Some(Duration::from_millis(100)), ..options(&format!("http://{place}")) };
    let found = open("s3://bucket/name", &hasty).unwrap();
    let failure = put(&found).unwrap_err();
    assert_eq!(failure.kind, Kind::Unanswered);
    assert!(failure.message.contains("without progress"), "{failure}");
    drop(listener);
    let failure = put(&found).unwrap_err();
    assert_eq!(failure.kind, Kind::Transient(None));
    assert!(failure.message.contains(&place.to_string()), "{failure}");
    let found = open("s3://bucket/name", &options("http://no-such-host.invalid")).unwrap();
    let failure = put(&found).unwrap_err();
    // Without a network, the resolver can't find out that the host does not exist.
    assert!(matches!(failure.kind, Kind::Fatal | Kind::Transient(None)), "{failure}");
    assert!(failure.message.contains("no-such-host.invalid"), "{failure}");
    // The answers of a server that is not a store, such as a captive portal.
    let web = Web::start(|_, _| answer("200 OK", "", b"<html>Welcome</html>"));
    let found = open("s3://bucket/name", &options(&web.url(""))).unwrap();
    let failure = put_by_block(&found).unwrap_err();
    assert!(
        failure.kind == Kind::Fatal && failure.message.contains("a store of this kind; check the endpoint"),
        "{failure}"
    );
}

#[test]
fn the_bundle_of_the_environment_is_trusted_and_nobody_else() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = Served::s3().start(listener, Some(&[TlsVersion::V1_3])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("proxy.pem");
    std::fs::write(&bundle, CERTIFICATE_PEM).unwrap();
    let Served { account, secret, .. } = running.store();
    let with = |more: &[(&str, &str)]| {
        let keys = [("AWS_ACCESS_KEY_ID", &**account), ("AWS_SECRET_ACCESS_KEY", secret)];
        let environment = keys.into_iter().chain(more.iter().copied()).collect();
        Options { environment, ..options_for(&running) }
    };
    let failure = put(&open("s3://bucket/name", &with(&[])).unwrap()).unwrap_err();
    assert!(failure.kind == Kind::Fatal && failure.message.contains("SSL_CERT_FILE"), "{failure}");
    for name in ["SSL_CERT_FILE", "AWS_CA_BUNDLE"] {
        let found = open("s3://bucket/name", &with(&[(name, bundle.to_str().unwrap())])).unwrap();
        let mut seen = Attempt::default();
        run(found.store.put("name", block("x"), &PutOptions::default(), &mut seen)).unwrap();
        assert!(seen.connected.is_some() && seen.connected <= seen.secured && seen.secured <= seen.header);
    }
    let failure = put(&open("s3://bucket/name", &with(&[("SSL_CERT_FILE", "/nowhere.pem")])).unwrap()).unwrap_err();
    assert!(failure.kind == Kind::Fatal && failure.message.contains("/nowhere.pem"), "{failure}");

    // The connection goes through a proxy, which sees only the host.
    let proxy = tunnel();
    let (bundle, at) = (bundle.to_str().unwrap(), format!("http://ann:s3cret@{}", proxy.address));
    let proxied = [("SSL_CERT_FILE", bundle), ("HTTPS_PROXY", &*at)];
    put(&open("s3://bucket/name", &with(&proxied)).unwrap()).unwrap();
    let heads = proxy.heads();
    assert!(heads[0].starts_with(&format!("CONNECT {}", running.address())), "{heads:?}");
    assert_eq!(header(&heads[0], "proxy-authorization"), Some("Basic YW5uOnMzY3JldA=="));
    let around = [proxied[0], proxied[1], ("NO_PROXY", "example.com, 127.0.0.0/8")];
    put(&open("s3://bucket/name", &with(&around)).unwrap()).unwrap();
    assert_eq!(proxy.heads().len(), 1);
    let failure = put(&open("s3://bucket/name", &with(&[proxied[0], ("https_proxy", "socks5://x:1")])).unwrap());
    assert!(failure.unwrap_err().message.contains("http://HOST:PORT"));
}

#[test]
fn a_proxy_gets_whole_addresses_where_nothing_is_encrypted() {
    let proxy = Web::start(|_, _| answer("200 OK", "ETag: \"1\"\r\n", b""));
    let environment = [("http_proxy", proxy.address.to_string())].into_iter().collect();
    let endpoint_url = Some("http://store.example:9000".into());
    let options = Options { environment, endpoint_url, anonymous: true, ..Options::default() };
    put(&open("s3://bucket/name", &options).unwrap()).unwrap();
    assert!(
        proxy.heads()[0].starts_with("PUT http://store.example:9000/bucket/name HTTP/1.1\r\n"),
        "{:?}",
        proxy.heads()
    );
    assert_eq!(header(&proxy.heads()[0], "host"), Some("store.example:9000"));
}

#[test]
fn an_error_behind_a_good_status_is_none_the_less_one() {
    let web = Web::start(|head, _| {
        let body: &[u8] = match head.split(' ').next().unwrap() {
            "POST" if head.contains("uploads") => b"<R><UploadId>1</UploadId></R>",
            "POST" => b"<?xml version=\"1.0\"?>\n   <Error><Code>InternalError</Code></Error>",
            _ => b"",
        };
        answer("200 OK", "ETag: \"1\"\r\n", body)
    });
    let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
    let failure = put_by_block(&open("s3://bucket/name", &options).unwrap()).unwrap_err();
    assert!(failure.message.contains("InternalError"), "{failure}");
    assert_eq!(failure.kind, Kind::Unanswered);
}

#[test]
fn a_checksum_that_the_store_disagrees_with_is_found_here() {
    let web = Web::start(|_, _| {
        let sums = [
            "x-amz-checksum-crc64nvme: AAAAAAAAAAA=\r\n",
            "x-ms-content-crc64: AAAAAAAAAAA=\r\n",
            "x-goog-hash: md5=x,crc32c=AAAAAA==\r\n",
        ]
        .concat();
        answer("201 Created", &format!("ETag: \"1\"\r\n{sums}"), b"")
    });
    let environment: Environment = [("AZURE_STORAGE_ACCOUNT", "any")].into_iter().collect();
    let options = Options { environment, endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
    for url in ["s3://bucket/name", "az://bucket/name", "gs://bucket/name"] {
        let found = open(url, &options).unwrap();
        let body = PartBody { bytes: "something".into(), crc64: block("something").crc64 };
        let failure = run(found.store.put("name", body, &PutOptions::default(), &mut Attempt::default())).unwrap_err();
        assert_eq!(failure.kind, Kind::Corrupted, "{failure}");
    }
}

/// A repeated commit would fail because the upload no longer exists, and this would hide the real error.
#[test]
fn a_wrong_sum_of_what_was_made_is_not_tried_again() {
    let web = Web::start(|_, _| {
        let made = "<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>";
        answer("200 OK", "x-amz-checksum-crc64nvme: AAAAAAAAAAA=\r\n", made.as_bytes())
    });
    let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
    let found = open("s3://bucket/name", &options).unwrap();
    let upload = ascertain_transfer::Upload { name: "name".into(), id: "id".into() };
    let tokens = ["9 AAAAAAAAAAA= x".into()];
    let (mut seen, options) = (Attempt::default(), PutOptions::default());
    let commit = found.store.commit(&upload, &tokens, 1, &options, &mut seen);
    let failure = run(commit).unwrap_err();
    assert_eq!(failure.kind, Kind::Fatal, "{failure}");
}
