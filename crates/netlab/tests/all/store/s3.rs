//! Tests of S3. The same requests are sent to our store and to MinIO.

use std::time::{Duration, SystemTime};

use crc_fast::CrcAlgorithm;

use super::client::{Ask, Client, Reply, base64, hex, md5, new_request, sha1, sha256};

const MB: usize = 1 << 20;

/// Returns pseudo-random bytes, the same in each call.
pub fn bytes(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn crc(algorithm: CrcAlgorithm, bytes: &[u8]) -> String {
    let crc = crc_fast::checksum(algorithm, bytes).to_be_bytes();
    if matches!(algorithm, CrcAlgorithm::Crc64Nvme) { base64(crc) } else { base64(&crc[4..]) }
}

/// Runs all tests in a bucket that is created first. With `is_lenient`, leaves out checks that MinIO would fail,
/// because it accepts some requests that are not signed as AWS requires.
pub fn suite(client: &Client, is_lenient: bool) {
    assert_eq!(client.s3(&new_request("PUT", "/suite")).unwrap().status, 200);
    assert_eq!(client.s3(&new_request("HEAD", "/suite")).unwrap().status, 200);
    objects(client);
    ranges_and_conditions(client);
    checksums(client);
    signatures(client);
    if !is_lenient {
        let request = new_request("GET", "/suite/r");
        let elsewhere = client.send(&client.signed(&request, "eu-south-9"));
        assert_eq!(elsewhere.clone().unwrap().element("Region"), "us-east-1");
        refused(elsewhere, 400, "AuthorizationHeaderMalformed");
        let added = client.signed(&request, "us-east-1").header("x-amz-meta-who", "me");
        refused(client.send(&added), 403, "AccessDenied");
    }
    chunks(client);
    uploads(client);
    uploads_that_fail(client, is_lenient);
    sums_of_uploads(client);
    lists(client);
}

fn refused(reply: Option<Reply>, status: u16, code: &str) {
    let reply = reply.unwrap();
    let told = (reply.status, reply.element("Code"));
    assert_eq!(told, (status, code.to_string()), "{}", reply.text());
}

fn put(client: &Client, path: &str, body: &[u8]) -> Reply {
    let reply = client.s3(&new_request("PUT", path).body(body)).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply
}

fn objects(client: &Client) {
    for (name, length) in [("empty", 0), ("one", 1), ("dir/two%20words", 70_000), ("%C3%BC%2B%26%3D%27", 9)] {
        let (path, body) = (format!("/suite/{name}"), bytes(length));
        let etag = format!("\"{}\"", hex(md5(&body)));
        let request = new_request("PUT", &path).header("content-type", "text/x-test").header("x-amz-meta-who", "me");
        let reply = client.s3(&request.body(&body)).unwrap();
        assert_eq!((reply.status, reply.header("etag")), (200, &*etag), "{name}: {}", reply.text());
        for method in ["GET", "HEAD"] {
            let reply = client.s3(&new_request(method, &path)).unwrap();
            assert_eq!((reply.status, reply.header("etag")), (200, &*etag));
            assert_eq!(reply.header("content-length"), length.to_string());
            assert_eq!((reply.header("content-type"), reply.header("x-amz-meta-who")), ("text/x-test", "me"));
            assert!(httpdate::parse_http_date(reply.header("last-modified")).is_ok());
            assert_eq!(reply.body, if method == "GET" { body.clone() } else { vec![] });
        }
    }
    assert_eq!(client.s3(&new_request("DELETE", "/suite/one")).unwrap().status, 204);
    assert_eq!(client.s3(&new_request("DELETE", "/suite/one")).unwrap().status, 204);
    assert_eq!(client.s3(&new_request("HEAD", "/suite/one")).unwrap().status, 404);
    refused(client.s3(&new_request("GET", "/suite/one")), 404, "NoSuchKey");
    refused(client.s3(&new_request("GET", "/no-such-bucket/one")), 404, "NoSuchBucket");
    refused(client.s3(&new_request("PUT", "/no-such-bucket/one").body("1")), 404, "NoSuchBucket");
}

fn ranges_and_conditions(client: &Client) {
    let body = bytes(100_000);
    let etag = put(client, "/suite/r", &body).header("etag").to_string();
    for (range, start, end) in [
        ("bytes=0-0", 0, 1),
        ("bytes=10-99999", 10, 100_000),
        ("bytes=99990-", 99_990, 100_000),
        ("bytes=-7", 99_993, 100_000),
    ] {
        let reply = client.s3(&new_request("GET", "/suite/r").header("range", range)).unwrap();
        assert_eq!((reply.status, &reply.body[..]), (206, &body[start..end]), "{range}");
        assert_eq!(reply.header("content-range"), format!("bytes {start}-{}/100000", end - 1));
    }
    refused(client.s3(&new_request("GET", "/suite/r").header("range", "bytes=100000-")), 416, "InvalidRange");
    let moment = |ago_s: i64| {
        let (now, apart) = (SystemTime::now(), Duration::from_secs(ago_s.unsigned_abs()));
        httpdate::fmt_http_date(if ago_s < 0 { now + apart } else { now - apart })
    };
    let get = |name: &str, value: &str| client.s3(&new_request("GET", "/suite/r").header(name, value)).unwrap().status;
    assert_eq!([get("if-match", &etag), get("if-match", "\"other\"")], [200, 412]);
    assert_eq!([get("if-none-match", "\"other\""), get("if-none-match", &etag)], [200, 304]);
    assert_eq!([get("if-unmodified-since", &moment(-60)), get("if-unmodified-since", &moment(3_600))], [200, 412]);
    // S3 ignores an If-Modified-Since in the future.
    assert_eq!(get("if-modified-since", &moment(3_600)), 200);
    let put = |path, name: &str, value: &str| {
        client.s3(&new_request("PUT", path).header(name, value).body("new")).unwrap().status
    };
    assert_eq!([put("/suite/r", "if-none-match", "*"), put("/suite/fresh", "if-none-match", "*")], [412, 200]);
    assert_eq!([put("/suite/r", "if-match", "\"other\""), put("/suite/r", "if-match", &etag)], [412, 200]);
    assert_eq!(put("/suite/never", "if-match", &etag), 404);
}

fn checksums(client: &Client) {
    let (body, other) = (bytes(1_000), bytes(1_001));
    type Sum = fn(&[u8]) -> String;
    let sums: [(&str, Sum); 5] = [
        ("crc32", |bytes| crc(CrcAlgorithm::Crc32IsoHdlc, bytes)),
        ("crc32c", |bytes| crc(CrcAlgorithm::Crc32Iscsi, bytes)),
        ("crc64nvme", |bytes| crc(CrcAlgorithm::Crc64Nvme, bytes)),
        ("sha1", |bytes| base64(sha1(bytes))),
        ("sha256", |bytes| base64(sha256(bytes))),
    ];
    for (name, sum) in sums {
        let header = format!("x-amz-checksum-{name}");
        let put = |sum: String| client.s3(&new_request("PUT", "/suite/sum").header(&header, sum).body(&body)).unwrap();
        let reply = put(sum(&body));
        assert_eq!((reply.status, reply.header(&header)), (200, &*sum(&body)), "{name}: {}", reply.text());
        for sum in [sum(&other), "AAAA".into(), "?".into()] {
            assert_eq!(put(sum).status, 400, "{name}");
        }
        let head = client.s3(&new_request("HEAD", "/suite/sum").header("x-amz-checksum-mode", "ENABLED")).unwrap();
        assert_eq!((head.status, head.header(&header)), (200, &*sum(&body)), "{name}");
        assert_eq!(client.s3(&new_request("HEAD", "/suite/sum")).unwrap().header(&header), "");
    }
    let put = |name, sum: String| client.s3(&new_request("PUT", "/suite/sum").header(name, sum).body(&body));
    assert_eq!(put("content-md5", base64(md5(&body))).unwrap().status, 200);
    refused(put("content-md5", base64(md5(&other))), 400, "BadDigest");
    refused(put("content-md5", "AAAA".into()), 400, "InvalidDigest");
    refused(put("x-amz-content-sha256", hex(sha256(&other))), 400, "XAmzContentSHA256Mismatch");
}

fn signatures(client: &Client) {
    let request = new_request("GET", "/suite/r");
    put(client, "/suite/r", b"12345");
    let wrong = Client { secret: "wrong".into(), ..client.clone() };
    refused(wrong.s3(&request), 403, "SignatureDoesNotMatch");
    let unknown = Client { account: "nobody".into(), ..client.clone() };
    refused(unknown.s3(&request), 403, "InvalidAccessKeyId");
    refused(client.send(&request), 403, "AccessDenied");
    for other in [SystemTime::now() - Duration::from_secs(1_000), SystemTime::now() + Duration::from_secs(1_000)] {
        refused(client.s3(&Ask { moment: other, ..request.clone() }), 403, "RequestTimeTooSkewed");
    }
    // Any change on the way makes the signature invalid.
    let signed = client.signed(&request, "us-east-1");
    assert_eq!(client.send(&signed).unwrap().status, 200);
    refused(client.send(&Ask { path: "/suite/fresh".into(), ..signed.clone() }), 403, "SignatureDoesNotMatch");
    refused(client.send(&Ask { query: "x-id=1".into(), ..signed.clone() }), 403, "SignatureDoesNotMatch");
    refused(client.send(&Ask { method: "DELETE", ..signed.clone() }), 403, "SignatureDoesNotMatch");
    // Requests with signed URLs.
    let presigned = client.presigned(&request, 60);
    assert_eq!(client.send(&presigned).unwrap().body, b"12345");
    refused(wrong.send(&wrong.presigned(&request, 60)), 403, "SignatureDoesNotMatch");
    let early = Ask { moment: SystemTime::now() - Duration::from_secs(100), ..request };
    assert_eq!(client.send(&client.presigned(&early, 1_000)).unwrap().status, 200);
    refused(client.send(&client.presigned(&early, 50)), 403, "AccessDenied");
    let upload = client.presigned(&new_request("PUT", "/suite/handed%20on"), 60);
    assert_eq!(client.send(&upload.body("by another")).unwrap().status, 200);
}

fn chunks(client: &Client) {
    let body = bytes(200_000);
    let request = || new_request("PUT", "/suite/chunks").body(&body);
    let sum = crc(CrcAlgorithm::Crc32Iscsi, &body);
    let trailer = |sum| Some(("x-amz-checksum-crc32c", sum));
    let is_there = || client.s3(&new_request("GET", "/suite/chunks")).unwrap().body == body;
    for trailer in [None, trailer(&*sum)] {
        let signed = client.in_chunks(&request(), 65_536, trailer);
        let reply = client.send(&signed).unwrap();
        assert_eq!((reply.status, is_there()), (200, true), "{}", reply.text());
        client.s3(&new_request("DELETE", "/suite/chunks")).unwrap();
        // A byte of the second chunk is wrong.
        let mut flipped = signed.clone();
        flipped.body[100_000] ^= 1;
        refused(client.send(&flipped), 403, "SignatureDoesNotMatch");
        // The last digit of the last signature is wrong.
        let digit = signed.body.iter().rposition(u8::is_ascii_hexdigit).unwrap();
        let mut forged = signed;
        forged.body[digit] ^= 1;
        refused(client.send(&forged), 403, "SignatureDoesNotMatch");
    }
    let wrong = client.in_chunks(&request(), 65_536, trailer("AAAAAA=="));
    assert_eq!(client.send(&wrong).unwrap().status, 400);
    let mut unsigned = request();
    unsigned.body = [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n"].concat();
    let with = |sum: &str| {
        let mut request = unsigned
            .clone()
            .header("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
            .header("x-amz-decoded-content-length", body.len())
            .header("content-encoding", "aws-chunked")
            .header("x-amz-trailer", "x-amz-checksum-crc32c");
        request.body.extend(format!("x-amz-checksum-crc32c:{sum}\r\n\r\n").into_bytes());
        client.s3(&request).unwrap()
    };
    assert_eq!(with("AAAAAA==").status, 400);
    assert_eq!((with(&sum).status, is_there()), (200, true));
    assert_eq!(client.s3(&new_request("HEAD", "/suite/chunks")).unwrap().header("content-encoding"), "");
    let head = client.s3(&new_request("HEAD", "/suite/chunks").header("x-amz-checksum-mode", "ENABLED")).unwrap();
    assert_eq!(head.header("x-amz-checksum-crc32c"), sum);
    let unsigned = new_request("PUT", "/suite/unsigned").header("x-amz-content-sha256", "UNSIGNED-PAYLOAD").body(&body);
    assert_eq!(client.s3(&unsigned).unwrap().status, 200);
}

/// Starts an upload with these headers, and returns the path for its parts.
fn begin(client: &Client, path: &str, headers: &[(&str, &str)]) -> String {
    let begun = headers
        .iter()
        .fold(new_request("POST", &format!("{path}?uploads=")), |ask, (name, value)| ask.header(name, value));
    let reply = client.s3(&begun).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    format!("{path}?uploadId={}", reply.element("UploadId").replace('=', "%3D"))
}

fn part(client: &Client, upload: &str, number: usize, body: &[u8], headers: &[(&str, &str)]) -> Reply {
    let (path, id) = upload.split_once('?').unwrap();
    let request = new_request("PUT", &format!("{path}?partNumber={number}&{id}")).body(body);
    client.s3(&headers.iter().fold(request, |ask, (name, value)| ask.header(name, value))).unwrap()
}

/// Returns the request that completes an upload. Each part has its number, its ETag, and further elements.
fn complete(upload: &str, parts: &[(usize, &str, &str)]) -> Ask {
    let part = |(number, etag, more): &(usize, &str, &str)| {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag>{more}</Part>")
    };
    let parts: String = parts.iter().map(part).collect();
    new_request("POST", upload).body(format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"))
}

fn uploads(client: &Client) {
    let (first, last) = (bytes(5 * MB), bytes(1_234));
    let headers = [("content-type", "text/x-parts"), ("x-amz-meta-who", "us")];
    let upload = begin(client, "/suite/up%20load", &headers);
    let etags: Vec<_> = [(2, &last), (1, &first)]
        .map(|(number, body)| part(client, &upload, number, body, &[]).header("etag").to_string())
        .into();
    assert_eq!(etags, [format!("\"{}\"", hex(md5(&last))), format!("\"{}\"", hex(md5(&first)))]);
    let listed = client.s3(&new_request("GET", &upload)).unwrap();
    assert_eq!(
        (listed.elements("PartNumber"), listed.element("IsTruncated")),
        (vec!["1".into(), "2".into()], "false".into())
    );
    assert_eq!(listed.elements("Size"), [first.len().to_string(), last.len().to_string()]);
    let (path, id) = upload.split_once('?').unwrap();
    let page = client.s3(&new_request("GET", &format!("{path}?max-parts=1&part-number-marker=1&{id}"))).unwrap();
    assert_eq!((page.elements("PartNumber"), page.element("IsTruncated")), (vec!["2".into()], "false".into()));
    let page = client.s3(&new_request("GET", &format!("{path}?max-parts=1&{id}"))).unwrap();
    assert_eq!((page.element("NextPartNumberMarker"), page.element("IsTruncated")), ("1".into(), "true".into()));
    let under_way = client.s3(&new_request("GET", "/suite?prefix=up%20load&uploads=")).unwrap();
    assert_eq!((under_way.status, under_way.elements("UploadId").len()), (200, 1), "{}", under_way.text());
    assert_eq!(client.s3(&new_request("HEAD", path)).unwrap().status, 404);
    let done = complete(&upload, &[(1, &etags[1], ""), (2, &etags[0].replace('"', "&quot;"), "")]);
    let reply = client.s3(&done).unwrap();
    let etag = format!("\"{}-2\"", hex(md5(&[md5(&first), md5(&last)].concat())));
    let told = reply.element("ETag").replace("&quot;", "\"").replace("&#34;", "\"");
    assert_eq!((reply.status, told), (200, etag.clone()), "{}", reply.text());
    refused(client.s3(&done), 404, "NoSuchUpload");
    let whole = client.s3(&new_request("GET", path)).unwrap();
    assert!(whole.body == [first.clone(), last].concat());
    assert_eq!((whole.header("etag"), whole.header("content-type")), (&*etag, "text/x-parts"));
    assert_eq!(whole.header("x-amz-meta-who"), "us");
    let across = client.s3(&new_request("GET", path).header("range", "bytes=5242870-5242889")).unwrap();
    assert_eq!(across.body, [&first[5 * MB - 10..], &bytes(10)].concat());
}

fn uploads_that_fail(client: &Client, is_lenient: bool) {
    let body = bytes(5 * MB);
    let upload = begin(client, "/suite/fails", &[]);
    let etag = part(client, &upload, 1, b"small", &[]).header("etag").to_string();
    let next = part(client, &upload, 3, &body, &[]).header("etag").to_string();
    let wrong = base64(md5(b"other"));
    assert_eq!(part(client, &upload, 4, &body, &[("content-md5", &wrong)]).status, 400);
    for number in [0, 10_001] {
        assert_eq!(part(client, &upload, number, b"1", &[]).status, 400, "{number}");
    }
    refused(Some(part(client, "/suite/fails?uploadId=none", 1, b"1", &[])), 404, "NoSuchUpload");
    let complete = |parts: &[(usize, &str, &str)]| client.s3(&complete(&upload, parts));
    refused(complete(&[(3, &next, ""), (1, &etag, "")]), 400, "InvalidPartOrder");
    refused(complete(&[(1, &next, "")]), 400, "InvalidPart");
    refused(complete(&[(4, &next, "")]), 400, "InvalidPart");
    refused(complete(&[(1, &etag, ""), (3, &next, "")]), 400, "EntityTooSmall");
    assert_eq!(complete(&[]).unwrap().status, 400);
    if !is_lenient {
        let signed = client.signed(&super::s3::complete(&upload, &[(3, &next, "")]), "us-east-1");
        let swapped = Ask { body: super::s3::complete(&upload, &[(1, &etag, "")]).body, ..signed };
        refused(client.send(&swapped), 400, "XAmzContentSHA256Mismatch");
    }
    refused(client.s3(&new_request("POST", &upload).body("<CompleteMultipartUpload>")), 400, "MalformedXML");
    assert_eq!(client.s3(&new_request("DELETE", &upload)).unwrap().status, 204);
    refused(client.s3(&new_request("GET", &upload)), 404, "NoSuchUpload");
    refused(complete(&[(3, &next, "")]), 404, "NoSuchUpload");
    // The condition requires that the object does not exist, but the object exists.
    put(client, "/suite/fails", b"already");
    let upload = begin(client, "/suite/fails", &[]);
    let etag = part(client, &upload, 1, b"small", &[]).header("etag").to_string();
    let done = super::s3::complete(&upload, &[(1, &etag, "")]);
    refused(client.s3(&done.clone().header("if-none-match", "*")), 412, "PreconditionFailed");
    assert_eq!(client.s3(&done).unwrap().status, 200);
}

fn sums_of_uploads(client: &Client) {
    let parts = [bytes(5 * MB), bytes(1_000)];
    let whole = crc(CrcAlgorithm::Crc64Nvme, &parts.concat());
    let name = "x-amz-checksum-crc64nvme";
    let begun = [("x-amz-checksum-algorithm", "CRC64NVME"), ("x-amz-checksum-type", "FULL_OBJECT")];
    let upload = begin(client, "/suite/crc", &begun);
    let sums = parts.each_ref().map(|body| crc(CrcAlgorithm::Crc64Nvme, body));
    assert_eq!(part(client, &upload, 1, &parts[0], &[(name, &sums[1])]).status, 400);
    let etags = [0, 1].map(|at| {
        let reply = part(client, &upload, at + 1, &parts[at], &[(name, &sums[at])]);
        assert_eq!((reply.status, reply.header(name)), (200, &*sums[at]), "{}", reply.text());
        reply.header("etag").to_string()
    });
    let sums = sums.map(|sum| format!("<ChecksumCRC64NVME>{sum}</ChecksumCRC64NVME>"));
    let done = complete(&upload, &[(1, &etags[0], &sums[0]), (2, &etags[1], &sums[1])]);
    let swapped = complete(&upload, &[(1, &etags[0], &sums[1]), (2, &etags[1], &sums[0])]);
    refused(client.s3(&swapped), 400, "InvalidPart");
    let kind = ("x-amz-checksum-type", "FULL_OBJECT");
    assert_eq!(client.s3(&done.clone().header(name, "AAAAAAAAAAA=").header(kind.0, kind.1)).unwrap().status, 400);
    let reply = client.s3(&done.header(name, &whole).header(kind.0, kind.1)).unwrap();
    assert_eq!((reply.status, reply.element("ChecksumCRC64NVME")), (200, whole.clone()), "{}", reply.text());
    let head = client.s3(&new_request("HEAD", "/suite/crc").header("x-amz-checksum-mode", "ENABLED")).unwrap();
    assert_eq!((head.header(name), head.header(kind.0)), (&*whole, kind.1));

    let name = "x-amz-checksum-sha256";
    let upload = begin(client, "/suite/sha", &[("x-amz-checksum-algorithm", "SHA256")]);
    let sums = parts.each_ref().map(|body| base64(sha256(body)));
    let etags =
        [0, 1].map(|at| part(client, &upload, at + 1, &parts[at], &[(name, &sums[at])]).header("etag").to_string());
    let crc = crc(CrcAlgorithm::Crc32IsoHdlc, &parts[1]);
    assert_eq!(part(client, &upload, 2, &parts[1], &[("x-amz-checksum-crc32", &crc)]).status, 400);
    assert_eq!(client.s3(&complete(&upload, &[(1, &etags[0], ""), (2, &etags[1], "")])).unwrap().status, 400);
    let sums = sums.map(|sum| format!("<ChecksumSHA256>{sum}</ChecksumSHA256>"));
    let reply = client.s3(&complete(&upload, &[(1, &etags[0], &sums[0]), (2, &etags[1], &sums[1])])).unwrap();
    let composite = format!("{}-2", base64(sha256(&parts.each_ref().map(|body| sha256(body)).concat())));
    assert_eq!((reply.status, reply.element("ChecksumSHA256")), (200, composite), "{}", reply.text());

    let begun = new_request("POST", "/suite/none?uploads=").header("x-amz-checksum-type", "FULL_OBJECT");
    assert_eq!(client.s3(&begun.header("x-amz-checksum-algorithm", "SHA256")).unwrap().status, 400);
}

fn lists(client: &Client) {
    for name in ["a", "b/1", "b/2", "b/c/3", "b%20d", "%C3%BC"] {
        put(client, &format!("/suite/list/{name}"), b"1");
    }
    let list = |query: &str| {
        // The parameters are in the order in which they are signed.
        let reply = client.s3(&new_request("GET", &format!("/suite?list-type=2&{query}"))).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply
    };
    let all = ["list/a", "list/b d", "list/b/1", "list/b/2", "list/b/c/3", "list/ü"];
    let listed = list("prefix=list%2F");
    assert_eq!((listed.elements("Key"), listed.elements("Size")), (all.map(String::from).into(), vec!["1".into(); 6]));
    assert_eq!(list("encoding-type=url&prefix=list%2Fb%20").element("Key"), "list/b+d");
    let folders = list("delimiter=%2F&prefix=list%2F");
    assert_eq!(folders.elements("Key"), ["list/a", "list/b d", "list/ü"]);
    assert!(folders.text().contains("<CommonPrefixes><Prefix>list/b/</Prefix></CommonPrefixes>"));
    assert_eq!(list("prefix=list%2F&start-after=list%2Fb%2F1").elements("Key"), all[3..]);
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = list(&format!("{token}max-keys=4&prefix=list%2F"));
        found.extend(page.elements("Key"));
        if page.element("IsTruncated") == "false" {
            break;
        }
        assert_eq!(page.elements("Key").len(), 4);
        token = format!("continuation-token={}&", page.element("NextContinuationToken").replace('=', "%3D"));
    }
    assert_eq!(found, all);
}
