//! Tests of Azure Blob Storage. The same requests are sent to our store and to Azurite.

use std::time::{Duration, SystemTime};

use super::client::{Ask, Client, Reply, base64, hmac, md5, new_request};
use super::s3::bytes;
use ::base64::Engine;
use ::base64::prelude::BASE64_STANDARD;

/// Runs all tests in a container that is created first. With `is_lenient`, expects the results of Azurite, which does
/// not check everything that Azure checks.
pub fn suite(client: &Client, is_lenient: bool) {
    assert_eq!(client.azure(&new_request("PUT", "/suite?restype=container")).unwrap().status, 201);
    refused(client.azure(&new_request("PUT", "/suite?restype=container")), 409, "ContainerAlreadyExists");
    blobs(client);
    conditions(client);
    checksums(client, is_lenient);
    blocks(client);
    signatures(client, is_lenient);
    addresses(client);
    lists(client);
}

fn refused(reply: Option<Reply>, status: u16, code: &str) {
    let reply = reply.unwrap();
    let told = (reply.status, reply.header("x-ms-error-code"));
    assert_eq!(told, (status, code), "{}", reply.text());
}

fn put(path: &str, body: &[u8]) -> Ask {
    new_request("PUT", path).header("x-ms-blob-type", "BlockBlob").body(body)
}

fn blobs(client: &Client) {
    for (name, length) in [("empty", 0), ("one", 1), ("dir/two%20words", 70_000), ("%C3%BC", 9)] {
        let (path, body) = (format!("/suite/{name}"), bytes(length));
        let request = put(&path, &body).header("x-ms-blob-content-type", "text/x-test").header("x-ms-meta-who", "me");
        let made = client.azure(&request).unwrap();
        assert_eq!((made.status, made.header("content-md5")), (201, &*base64(md5(&body))), "{}", made.text());
        for method in ["GET", "HEAD"] {
            let reply = client.azure(&new_request(method, &path)).unwrap();
            assert_eq!((reply.status, reply.header("etag")), (200, made.header("etag")));
            assert_eq!(reply.header("content-length"), length.to_string());
            assert_eq!((reply.header("content-type"), reply.header("x-ms-meta-who")), ("text/x-test", "me"));
            assert_eq!(
                (reply.header("x-ms-blob-type"), reply.header("content-md5")),
                ("BlockBlob", &*base64(md5(&body)))
            );
            assert!(httpdate::parse_http_date(reply.header("last-modified")).is_ok());
            assert_eq!(reply.body, if method == "GET" { body.clone() } else { vec![] });
        }
    }
    let body = bytes(70_000);
    for (name, range, start, end) in [
        ("range", "bytes=0-0", 0, 1),
        ("x-ms-range", "bytes=10-69999", 10, 70_000),
        ("range", "bytes=69990-", 69_990, 70_000),
    ] {
        let reply = client.azure(&new_request("GET", "/suite/dir/two%20words").header(name, range)).unwrap();
        assert_eq!((reply.status, &reply.body[..]), (206, &body[start..end]), "{range}");
        assert_eq!(reply.header("content-range"), format!("bytes {start}-{}/70000", end - 1));
    }
    assert_eq!(client.azure(&new_request("DELETE", "/suite/one")).unwrap().status, 202);
    refused(client.azure(&new_request("DELETE", "/suite/one")), 404, "BlobNotFound");
    refused(client.azure(&new_request("GET", "/suite/one")), 404, "BlobNotFound");
    assert_eq!(client.azure(&new_request("HEAD", "/suite/one")).unwrap().status, 404);
    refused(client.azure(&new_request("GET", "/no-such-box/one")), 404, "ContainerNotFound");
    refused(client.azure(&put("/no-such-box/one", b"1")), 404, "ContainerNotFound");
}

fn conditions(client: &Client) {
    let etag = client.azure(&put("/suite/c", b"12345")).unwrap().header("etag").to_string();
    let get =
        |name: &str, value: &str| client.azure(&new_request("GET", "/suite/c").header(name, value)).unwrap().status;
    assert_eq!([get("if-match", &etag), get("if-match", "\"other\"")], [200, 412]);
    assert_eq!([get("if-none-match", "\"other\""), get("if-none-match", &etag)], [200, 304]);
    let moment = |ago_s: u64| httpdate::fmt_http_date(SystemTime::now() - Duration::from_secs(ago_s));
    assert_eq!(get("if-unmodified-since", &moment(3_600)), 412);
    assert_eq!(get("if-modified-since", &moment(3_600)), 200);
    let again = |name, value: &str| client.azure(&put("/suite/c", b"new").header(name, value));
    refused(again("if-none-match", "*"), 409, "BlobAlreadyExists");
    refused(again("if-match", "\"other\""), 412, "ConditionNotMet");
    let made = again("if-match", &etag).unwrap();
    assert_eq!((made.status, made.header("etag") != etag), (201, true));
    assert_eq!(client.azure(&put("/suite/fresh", b"new").header("if-none-match", "*")).unwrap().status, 201);
    refused(client.azure(&put("/suite/never", b"new").header("if-match", &etag)), 412, "ConditionNotMet");
}

fn crc64(bytes: &[u8]) -> String {
    base64(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes).to_le_bytes())
}

fn checksums(client: &Client, is_lenient: bool) {
    let (body, other) = (bytes(1_000), bytes(1_001));
    let id = base64("000001");
    let block = new_request("PUT", &format!("/suite/sums?blockid={}&comp=block", id.replace('=', "%3D"))).body(&body);
    for request in [put("/suite/sum", &body), block] {
        let right = client.azure(&request.clone().header("content-md5", base64(md5(&body)))).unwrap();
        assert_eq!(right.status, 201);
        refused(client.azure(&request.clone().header("content-md5", base64(md5(&other)))), 400, "Md5Mismatch");
        if is_lenient {
            continue;
        }
        assert_eq!(right.header("content-md5"), base64(md5(&body)));
        refused(client.azure(&request.clone().header("content-md5", "AAAA")), 400, "InvalidMd5");
        let right = client.azure(&request.clone().header("x-ms-content-crc64", crc64(&body))).unwrap();
        assert_eq!((right.status, right.header("x-ms-content-crc64")), (201, &*crc64(&body)));
        refused(client.azure(&request.clone().header("x-ms-content-crc64", crc64(&other))), 400, "Crc64Mismatch");
        let both = request.header("x-ms-content-crc64", crc64(&body)).header("content-md5", base64(md5(&body)));
        refused(client.azure(&both), 400, "BothCrc64AndMd5HeaderPresent");
    }
    if !is_lenient {
        refused(client.azure(&new_request("GET", "/suite/sum").header("range", "bytes=1000-")), 416, "InvalidRange");
        let range = new_request("GET", "/suite/sum").header("range", "bytes=10-99");
        let reply = client.azure(&range.clone().header("x-ms-range-get-content-md5", true)).unwrap();
        assert_eq!(reply.header("content-md5"), base64(md5(&body[10..100])));
        assert_eq!(reply.header("x-ms-blob-content-md5"), base64(md5(&body)));
        let reply = client.azure(&range.header("x-ms-range-get-content-crc64", true)).unwrap();
        assert_eq!(reply.header("x-ms-content-crc64"), crc64(&body[10..100]));
        let wrong = put("/suite/sum", &body).header("x-ms-blob-content-md5", base64(md5(&other)));
        refused(client.azure(&wrong), 400, "Md5Mismatch");
    }
}

fn blocks(client: &Client) {
    let bodies = [bytes(50_000), bytes(20_000), bytes(3)];
    let ids = [0, 1, 2].map(|at| base64(format!("block-{at}")));
    let path = "/suite/of%20blocks";
    let put_block = |id: &str, body: &[u8]| {
        let id = id.replace('=', "%3D");
        client.azure(&new_request("PUT", &format!("{path}?blockid={id}&comp=block")).body(body)).unwrap()
    };
    for at in [2, 0, 1] {
        assert_eq!(put_block(&ids[at], &bodies[at]).status, 201);
    }
    refused(Some(put_block(&base64("longer block"), b"1")), 400, "InvalidBlobOrBlock");
    assert_eq!(put_block("not-base64", b"1").status, 400);
    let list = |which: &str| {
        client.azure(&new_request("GET", &format!("{path}?blocklisttype={which}&comp=blocklist"))).unwrap()
    };
    let mut listed: Vec<_> = list("uncommitted").elements("Name");
    listed.sort();
    assert_eq!(listed, ids);
    let commit = |ids: &[(&str, &str)]| {
        let ids: String = ids.iter().map(|(place, id)| format!("<{place}>{id}</{place}>")).collect();
        let list = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{ids}</BlockList>");
        new_request("PUT", &format!("{path}?comp=blocklist"))
            .header("x-ms-blob-content-type", "text/x-blocks")
            .body(list)
    };
    assert_eq!(client.azure(&new_request("HEAD", path)).unwrap().status, 404);
    let absent = base64("block-9");
    refused(client.azure(&commit(&[("Latest", &absent)])), 400, "InvalidBlockList");
    refused(client.azure(&commit(&[("Committed", &ids[0])])), 400, "InvalidBlockList");
    assert_eq!(
        client.azure(&new_request("PUT", &format!("{path}?comp=blocklist")).body("<BlockList>")).unwrap().status,
        400
    );
    let made = client.azure(&commit(&[("Latest", &ids[0]), ("Uncommitted", &ids[1])])).unwrap();
    assert_eq!(made.status, 201, "{}", made.text());
    let whole = client.azure(&new_request("GET", path)).unwrap();
    assert!(whole.body == [&bodies[0][..], &bodies[1]].concat());
    assert_eq!((whole.header("etag"), whole.header("content-type")), (made.header("etag"), "text/x-blocks"));
    // Blocks that were not listed are gone, and the others can be used again.
    assert_eq!(
        (list("all").elements("Name"), list("all").elements("Size")),
        (ids[..2].into(), vec!["50000".into(), "20000".into()])
    );
    assert_eq!(put_block(&ids[2], b"new").status, 201);
    let made = client.azure(&commit(&[("Latest", &ids[2]), ("Committed", &ids[1])])).unwrap();
    assert_eq!(made.status, 201, "{}", made.text());
    let whole = client.azure(&new_request("GET", path)).unwrap();
    assert!(whole.body == [b"new", &bodies[1][..]].concat());
    refused(client.azure(&commit(&[("Latest", &ids[1])]).header("if-none-match", "*")), 409, "BlobAlreadyExists");
}

fn signatures(client: &Client, is_lenient: bool) {
    let request = new_request("GET", "/suite/c");
    assert_eq!(client.azure(&request).unwrap().status, 200);
    let wrong = Client { secret: base64("another secret"), ..client.clone() };
    assert_eq!(wrong.azure(&request).unwrap().status, 403);
    let unsigned = new_request("GET", &format!("/{}/suite/c", client.account));
    assert!([401, 403, 404].contains(&client.send(&unsigned).unwrap().status));
    for other in [SystemTime::now() - Duration::from_secs(1_000), SystemTime::now() + Duration::from_secs(1_000)] {
        let reply = client.azure(&Ask { moment: other, ..request.clone() }).unwrap();
        assert_eq!(reply.status, if is_lenient { 200 } else { 403 });
    }
}

/// Returns the time that is this many seconds from now, as `2026-11-23T07:02:12Z`.
fn iso(ahead_s: i64) -> String {
    let apart = Duration::from_secs(ahead_s.unsigned_abs());
    let moment = if ahead_s < 0 { SystemTime::now() - apart } else { SystemTime::now() + apart };
    let basic = super::client::basic_date(moment);
    let [year, month, day, hour, minute, second] = [0..4, 4..6, 6..8, 9..11, 11..13, 13..15].map(|range| &basic[range]);
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")
}

/// Returns a request with a signed URL. Its signature gives these rights for a blob, or for all blobs in its container.
fn shared(client: &Client, ask: &Ask, resource: &str, rights: &str, ahead_s: i64) -> Ask {
    let Client { account, secret, .. } = client;
    let end = iso(ahead_s);
    let named = if resource == "c" { "/suite" } else { &ask.path }.replace("%20", " ");
    let text = format!("{rights}\n\n{end}\n/blob/{account}{named}\n\n\n\n2023-11-03\n{resource}\n\n\n\n\n\n\n");
    let signature = base64(hmac(&BASE64_STANDARD.decode(secret).unwrap(), &text));
    let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let mut ask = ask.clone();
    ask.path = format!("/{account}{}", ask.path);
    let separator = if ask.query.is_empty() { "" } else { "&" };
    ask.query.push_str(&format!("{separator}sv=2023-11-03&se={end}&sr={resource}&sp={rights}&sig={signature}"));
    ask.header("x-ms-version", "2023-11-03")
}

fn addresses(client: &Client) {
    let read = new_request("GET", "/suite/dir/two%20words");
    let send = |ask: &Ask| client.send(ask).unwrap().status;
    assert_eq!(send(&shared(client, &read, "b", "r", 60)), 200);
    assert_eq!(send(&shared(client, &read, "c", "rl", 60)), 200);
    assert_eq!(send(&shared(client, &put("/suite/handed%20on", b"1"), "b", "cw", 60)), 201);
    let id = base64("000001").replace('=', "%3D");
    let block = new_request("PUT", &format!("/suite/blocks?comp=block&blockid={id}")).body("1");
    assert_eq!(send(&shared(client, &block, "c", "cw", 60)), 201);
    assert_eq!(send(&shared(client, &read, "b", "r", -60)), 403);
    assert_eq!(send(&shared(client, &read, "b", "w", 60)), 403);
    assert_eq!(send(&shared(client, &put("/suite/dir/two%20words", b"1"), "b", "r", 60)), 403);
    let mut other = shared(client, &read, "b", "r", 60);
    other.path = other.path.replace("/dir/two%20words", "/c");
    assert_eq!(send(&other), 403);
    let wrong = Client { secret: base64("another secret"), ..client.clone() };
    assert_eq!(send(&shared(&wrong, &read, "b", "r", 60)), 403);
}

fn lists(client: &Client) {
    for name in ["a", "b/1", "b/2", "b/c/3", "b%20d", "%C3%BC"] {
        assert_eq!(client.azure(&put(&format!("/suite/list/{name}"), b"1")).unwrap().status, 201);
    }
    let list = |query: &str| {
        let reply = client.azure(&new_request("GET", &format!("/suite?restype=container&comp=list&{query}"))).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply
    };
    let all = ["list/a", "list/b d", "list/b/1", "list/b/2", "list/b/c/3", "list/ü"];
    let listed = list("prefix=list%2F");
    assert_eq!(
        (listed.elements("Name"), listed.elements("Content-Length")),
        (all.map(String::from).into(), vec!["1".into(); 6])
    );
    let mut folders = list("prefix=list%2F&delimiter=%2F").elements("Name");
    folders.sort();
    assert_eq!(folders, ["list/a", "list/b d", "list/b/", "list/ü"]);
    let (mut found, mut marker) = (Vec::new(), String::new());
    loop {
        let page = list(&format!("prefix=list%2F&maxresults=4{marker}"));
        assert!(page.elements("Name").len() <= 4);
        found.extend(page.elements("Name"));
        match &*page.element("NextMarker") {
            "" => break,
            next => marker = format!("&marker={}", next.replace('/', "%2F").replace('=', "%3D").replace(' ', "%20")),
        }
    }
    assert_eq!(found, all);
}
