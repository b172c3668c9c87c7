//! Invalid addresses and answers: each leads to a failure with a message, and none to a panic.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::web::Web;
use crate::common::{block, one_certificate, run};
use ascertain_transfer::{Attempt, Environment, ObjectMeta, Options, PutOptions, Upload, open};

/// A random generator that returns the same values for the same seed.
struct Draw(u64);

impl Draw {
    fn number(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn choose<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.number(list.len())]
    }

    fn some(&mut self, list: &[&str], most: usize) -> String {
        (0..self.number(most + 1)).map(|_| self.choose(list)).collect()
    }
}

const IN_ADDRESSES: [&str; 24] = [
    "s3://",
    "gs://",
    "az://",
    "http://",
    "https://",
    "bucket",
    "/",
    "//",
    "..",
    ".",
    "?",
    "#",
    "@",
    ":",
    "%",
    "%zz",
    "[",
    "]",
    "\\",
    " ",
    "\0",
    "ü",
    "127.0.0.1:1",
    "blob.core.windows.net",
];

#[test]
fn any_address_opens_or_is_refused() {
    let mut draw = Draw(1);
    let certificate = one_certificate();
    for _ in 0..2000 {
        let url = draw.some(&IN_ADDRESSES, 8);
        let environment: Environment = [
            ("AWS_ACCESS_KEY_ID", draw.some(&IN_ADDRESSES, 2)),
            ("AWS_SECRET_ACCESS_KEY", draw.some(&IN_ADDRESSES, 2)),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", draw.some(&IN_ADDRESSES, 4)),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nowhere".into()),
            (
                "AZURE_STORAGE_CONNECTION_STRING",
                format!("AccountName={0};BlobEndpoint={0}", draw.some(&IN_ADDRESSES, 3)),
            ),
            ("AZURE_STORAGE_SAS_TOKEN", draw.some(&["sig", "=", "&", "%", "ü", "%zz"], 4)),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", draw.some(&IN_ADDRESSES, 2)),
            // Requests are sent to a proxy that does not exist, so none of them can leave this machine.
            ("http_proxy", "http://127.0.0.1:1".into()),
            ("https_proxy", "http://127.0.0.1:1".into()),
            ("SSL_CERT_FILE", certificate.into()),
        ]
        .into_iter()
        .collect();
        let endpoint_url = Some(draw.some(&IN_ADDRESSES, 4)).filter(|_| draw.number(2) == 0);
        let options = Options { environment, endpoint_url, ..Options::default() };
        match open(&url, &options) {
            Ok(found) => {
                let name = draw.some(&IN_ADDRESSES, 4);
                let failure = run(found.store.head(&name, &mut Attempt::default()));
                assert!(!failure.unwrap_err().message.is_empty());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

const STATUSES: [&str; 12] = ["200", "201", "204", "206", "301", "304", "400", "403", "404", "416", "500", "503"];
const HEADERS: [&str; 16] = [
    "ETag: \r\n",
    "ETag: \"ü\"\r\n",
    "ETag: x y\r\n",
    "Last-Modified: never\r\n",
    "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    "Content-Range: bytes 0-8/9\r\n",
    "Content-Range: bytes 9-0/99999999999999999999\r\n",
    "Content-Range: bytes */0\r\n",
    "Location: //\r\n",
    "Location: ?\r\n",
    "Retry-After: 99999999999999999999\r\n",
    "Retry-After: 18446744073709551615\r\n",
    "Date: Fri, 01 Jan 9999 00:00:00 GMT\r\n",
    "x-amz-checksum-crc64nvme: =\r\n",
    "x-goog-hash: crc32c\r\n",
    "Transfer-Encoding: chunked\r\n",
];
const BODIES: [&str; 20] = [
    "<",
    ">",
    "</",
    "<Error>",
    "<Code>",
    "</Code>",
    "&lt;",
    "&#0;",
    "&#x110000;",
    "<![CDATA[",
    "<UploadId>",
    "</UploadId>",
    "<Contents><Key>a</Key><Size>-1</Size></Contents>",
    "<IsTruncated>true</IsTruncated>",
    "<Blobs><Blob><Name>",
    "<NextContinuationToken>t</NextContinuationToken>",
    "<NextMarker>m</NextMarker>",
    "\u{feff}",
    "ü",
    "0\r\n\r\n",
];

#[test]
fn any_answer_is_taken_or_refused() {
    let count = AtomicUsize::new(0);
    let certificate = one_certificate();
    let web = Web::start(move |_, _| {
        let mut draw = Draw(count.fetch_add(1, Ordering::Relaxed) as u64 * 7919);
        let body = draw.some(&BODIES, 8);
        let length = match draw.number(4) {
            0 => String::new(),
            1 => format!("Content-Length: {}\r\n", draw.number(99)),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        let headers = draw.some(&HEADERS, 4);
        let status = draw.choose(&STATUSES);
        format!("HTTP/1.1 {status} Words\r\n{headers}{length}Connection: close\r\n\r\n{body}").into_bytes()
    });
    let environment: Environment =
        [("AZURE_STORAGE_ACCOUNT", "account".to_string()), ("SSL_CERT_FILE", certificate.into())].into_iter().collect();
    let options = Options {
        environment,
        endpoint_url: Some(web.url("")),
        anonymous: true,
        timeout: Some(Duration::from_secs(60)),
        ..Options::default()
    };
    let stores = ["s3://bucket/name", "az://bucket/name", "gs://bucket/name", &web.url("/name")].map(|url| {
        // For HTTP, no endpoint is needed, because the address names the server.
        let at = if url.starts_with("http") { None } else { options.endpoint_url.clone() };
        open(url, &Options { endpoint_url: at, ..options.clone() }).unwrap().store
    });
    let of = ObjectMeta { name: "name".into(), bytes: 9, ..ObjectMeta::default() };
    let upload = Upload { name: "name".into(), id: "id".into() };
    let put = PutOptions::default();
    run(async {
        let mut seen = Attempt::default();
        for _ in 0..60 {
            for store in &stores {
                let _ = store.head("name", &mut seen).await;
                let _ = store.get(&of, 0..9, &mut seen).await;
                let _ = store.put("name", block("x"), &put, &mut seen).await;
                let _ = store.start_upload("name", &put, &mut seen).await;
                let _ = store.put_part(&upload, 0, block("x"), &mut seen).await;
                let _ = store.commit(&upload, &["1 AAAA x".into(), "1 AAAA".into()], 0, &put, &mut seen).await;
                let _ = store.commit(&upload, &["1 AAAA x".into()], 0, &put, &mut seen).await;
                let _ = store.abort(&upload, &mut seen).await;
                let _ = store.list("", &mut seen).await;
            }
        }
    });
    assert!(web.heads().len() > 1000);
}
