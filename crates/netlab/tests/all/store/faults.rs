//! Tests of injected faults, and of the records of requests.

use std::time::{Duration, Instant, SystemTime};

use ascertain_netlab::store::{Dialect, Fault, Kind, Misdeed, RequestRecord, Store};

use super::client::{Client, Reply, base64, md5, new_request};
use super::s3::bytes;
use super::started;

fn put(client: &Client, key: &str, body: &[u8]) -> Option<Reply> {
    client.s3(&new_request("PUT", &format!("/bucket/{key}"))
        .body(body)
        .header("x-amz-content-sha256", "UNSIGNED-PAYLOAD"))
}

fn on(kind: Kind, what: Misdeed) -> Fault {
    Fault { on: Some(kind), after: 0, times: 1, what }
}

#[test]
fn requests_are_refused_by_a_schedule() {
    let refused = |after, status, retry_after_s| Fault {
        on: Some(Kind::PutObject),
        after,
        times: 1,
        what: Misdeed::Refused { status, retry_after_s },
    };
    let faults = vec![refused(1, 503, Some(7)), refused(2, 429, None)];
    let (_store, client) = started(Store { faults, ..Store::s3() });
    let replies = [0, 1, 2, 3].map(|_| put(&client, "key", b"1").unwrap());
    assert_eq!(replies.each_ref().map(|reply| reply.status), [200, 503, 429, 200]);
    assert_eq!((replies[1].header("retry-after"), &*replies[1].element("Code")), ("7", "SlowDown"));
    assert_eq!(client.s3(&new_request("GET", "/bucket/key")).unwrap().status, 200);
}

#[test]
fn connections_break_where_they_are_to() {
    let (store, client) = started(Store::s3());
    let body = bytes(1_000_000);
    for after_bytes in [0, 1, 500_000, 1_000_000, u64::MAX] {
        store.add_fault(on(Kind::PutObject, Misdeed::CutUpload { after_bytes }));
        assert!(put(&client, "key", &body).is_none());
        assert_eq!(store.object("bucket", "key"), None);
        let seen = store.seen().pop().unwrap();
        assert_eq!(seen.status, None);
        assert!(seen.body_bytes >= after_bytes.min(1_000_000), "{seen:?}");
    }
    store.add_fault(on(Kind::PutObject, Misdeed::AnswerLost));
    assert!(put(&client, "key", &body).is_none());
    assert!(store.object("bucket", "key").as_ref() == Some(&body));
    for after_bytes in [0, 1, 999_999] {
        store.add_fault(on(Kind::GetObject, Misdeed::CutDownload { after_bytes }));
        assert!(client.s3(&new_request("GET", "/bucket/key")).is_none());
    }
    assert!(client.s3(&new_request("GET", "/bucket/key")).unwrap().body == body);
}

#[test]
fn bits_flip_in_either_direction_and_in_the_store() {
    let (store, client) = started(Store::s3());
    let body = bytes(100_000);
    let request = new_request("PUT", "/bucket/key").body(&body).header("content-md5", base64(md5(&body)));
    let request = request.header("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    store.add_fault(on(Kind::PutObject, Misdeed::FlippedUpload { byte: 70_000 }));
    assert_eq!(client.s3(&request).unwrap().element("Code"), "BadDigest");
    assert_eq!(store.object("bucket", "key"), None);
    store.add_fault(on(Kind::GetObject, Misdeed::FlippedDownload { byte: 99_999 }));
    assert_eq!(client.s3(&request).unwrap().status, 200);
    let flipped_at = |found: &[u8]| (0..body.len()).filter(|at| found[*at] != body[*at]).collect::<Vec<_>>();
    let get = || client.s3(&new_request("GET", "/bucket/key")).unwrap();
    assert_eq!(flipped_at(&get().body), [99_999]);
    assert!(get().body == body);
    store.add_fault(on(Kind::PutObject, Misdeed::FlippedInStore { byte: 0 }));
    let told = client.s3(&request).unwrap();
    let found = get();
    assert_eq!((told.status, flipped_at(&found.body)), (200, vec![0]));
    // The store returns the checksum of the data before the bit flipped.
    assert_eq!(found.header("etag"), told.header("etag"));
}

#[test]
fn a_full_store_says_so() {
    for store in [Store::s3(), Store::azure()] {
        let (store, client) = started(Store { capacity_bytes: 1_000, ..store });
        let send = |ask| if store.store().dialect == Dialect::Azure { client.azure(&ask) } else { client.s3(&ask) };
        let put = |key: &str, length| {
            let request = new_request("PUT", &format!("/bucket/{key}")).header("x-ms-blob-type", "BlockBlob");
            send(request.body(bytes(length))).unwrap().status
        };
        assert_eq!(
            [put("one", 1_001), put("one", 600) / 100, put("two", 600), put("two", 400) / 100],
            [507, 2, 507, 2]
        );
        assert_eq!(send(new_request("DELETE", "/bucket/one")).unwrap().status / 100, 2);
        assert_eq!(put("three", 600) / 100, 2);
    }
}

#[test]
fn a_clock_that_is_wrong_refuses_everybody() {
    for ahead_s in [i32::MIN, -1_000, 1_000, i32::MAX] {
        let (_store, client) = started(Store { ahead_s, ..Store::s3() });
        let told = put(&client, "key", b"1").unwrap();
        assert_eq!(told.element("Code"), "RequestTimeTooSkewed");
        let date = httpdate::parse_http_date(told.header("date")).unwrap();
        let apart = |one: SystemTime, other| one.duration_since(other).is_ok_and(|apart| apart.as_secs() > 900);
        assert!(if ahead_s > 0 { apart(date, SystemTime::now()) } else { apart(SystemTime::now(), date) });
        let (_store, client) = started(Store { ahead_s, ..Store::azure() });
        assert_eq!(client.azure(&new_request("GET", "/bucket/key")).unwrap().status, 403);
    }
}

#[test]
fn all_that_was_asked_for_is_written_down() {
    let (store, client) = started(Store { smallest_part_bytes: 1, ..Store::s3() });
    let begun = client.s3(&new_request("POST", "/bucket/key?uploads=")).unwrap().element("UploadId");
    for number in [1, 2] {
        client
            .s3(&new_request("PUT", &format!("/bucket/key?partNumber={number}&uploadId={begun}")).body(bytes(number)))
            .unwrap();
    }
    assert_eq!(store.uploads("bucket"), 1);
    client.s3(&new_request("DELETE", &format!("/bucket/key?uploadId={begun}"))).unwrap();
    assert_eq!(store.uploads("bucket"), 0);
    client.s3(&new_request("POST", "/bucket?delete=").body("<Delete/>")).unwrap();
    let seen = |kind, key: &str, block: Option<&str>, body_bytes, status| RequestRecord {
        kind,
        bucket: "bucket".into(),
        key: key.into(),
        block: block.map(String::from),
        range: None,
        body_bytes,
        status: Some(status),
    };
    let expected = [
        seen(Kind::CreateUpload, "key", None, 0, 200),
        seen(Kind::PutBlock, "key", Some("1"), 1, 200),
        seen(Kind::PutBlock, "key", Some("2"), 2, 200),
        seen(Kind::Abort, "key", None, 0, 204),
        seen(Kind::Other, "", None, 9, 501),
    ];
    assert_eq!(store.seen(), expected);
}

#[test]
fn connections_are_as_slow_as_they_are_to_be() {
    let (_store, client) = started(Store { bytes_per_s: Some(1_000_000), ..Store::s3() });
    let start = Instant::now();
    assert_eq!(put(&client, "key", &bytes(100_000)).unwrap().status, 200);
    // The answer comes only when the rate limit has allowed the whole upload, however busy the machine is.
    assert!(start.elapsed() >= Duration::from_millis(100), "{:?}", start.elapsed());
    let start = Instant::now();
    assert_eq!(client.s3(&new_request("GET", "/bucket/key")).unwrap().body, bytes(100_000));
    // The first burst, which takes 10 ms at the rate limit, is not delayed.
    assert!(start.elapsed() >= Duration::from_millis(85), "{:?}", start.elapsed());
}

#[test]
fn answers_are_as_late_as_they_are_to_be() {
    let (_store, client) = started(Store { latency: Duration::from_millis(50), ..Store::azure() });
    let start = Instant::now();
    // The latency delays the connection and then the answer, even the answer about a missing object.
    assert_eq!(client.azure(&new_request("HEAD", "/ascertain/bucket/none")).unwrap().status, 404);
    assert!(start.elapsed() >= Duration::from_millis(100), "{:?}", start.elapsed());
}

#[test]
fn gcs_takes_a_token_and_knows_generations() {
    let (store, client) = started(Store { smallest_part_bytes: 1, ..Store::gcs() });
    let token = format!("Bearer {}", store.store().secret);
    let send = |ask: super::client::Ask| client.send(&ask.header("authorization", &token)).unwrap();
    assert_eq!(client.send(&new_request("GET", "/bucket/key")).unwrap().status, 401);
    let put = |expected: &str| {
        send(new_request("PUT", "/bucket/key").header("x-goog-if-generation-match", expected).body("one"))
    };
    let made = put("0");
    let generation = made.header("x-goog-generation").to_string();
    assert_eq!((made.status, put("0").status, put("77").status), (200, 412, 412));
    assert_eq!(put(&generation).status, 200);
    let crc32c = base64((crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, b"one") as u32).to_be_bytes());
    let hash = format!("crc32c={crc32c},md5={}", base64(md5(b"one")));
    let summed = |hash: &str| send(new_request("PUT", "/bucket/key").header("x-goog-hash", hash).body("one"));
    assert_eq!((summed(&hash).status, summed("crc32c=AAAAAA==").element("Code")), (200, "BadDigest".into()));
    let whole = send(new_request("GET", "/bucket/key"));
    let hashes: Vec<_> =
        whole.headers.iter().filter(|(name, _)| name == "x-goog-hash").map(|(_, sum)| &**sum).collect();
    assert_eq!((&whole.body[..], hashes.join(",")), (&b"one"[..], hash));
    assert!(whole.header("x-goog-generation") != generation);
}
