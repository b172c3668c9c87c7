//! What a store is asked.

use std::time::SystemTime;

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::Kind;
use super::checksum::Digests;

/// What stays as it is where the parts of an address are signed.
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The head of a request, taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub method: Method,
    /// As it was sent.
    pub raw_path: String,
    /// The parameters in their order.
    pub parameters: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub bucket: String,
    pub key: String,
    /// When it arrived, by the store's clock.
    pub now: SystemTime,
}

/// All of it.
pub(super) struct Request {
    pub head: Head,
    pub kind: Kind,
    pub content: Vec<Bytes>,
    pub digests: Digests,
}

impl Head {
    /// With Azure the account comes first in a path.
    pub fn new(method: Method, uri: &Uri, mut headers: HeaderMap, skipped: Option<&str>, now: SystemTime) -> Self {
        // HTTP/2 has it elsewhere.
        if let Some(authority) = uri.authority().filter(|_| !headers.contains_key("host")) {
            headers
                .extend(HeaderValue::from_str(authority.as_str()).map(|host| (HeaderName::from_static("host"), host)));
        }
        let path = uri.path().trim_start_matches('/');
        let path = skipped.and_then(|skipped| path.strip_prefix(skipped)?.strip_prefix('/')).unwrap_or(path);
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let parameters = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
        });
        let (bucket, key, parameters) = (decoded(bucket), decoded(key), parameters.collect());
        Self { method, raw_path: uri.path().into(), parameters, headers, bucket, key, now }
    }

    /// A header's value; nothing, if it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// What of an object is asked for.
    pub fn range(&self) -> &str {
        match self.header("x-ms-range") {
            "" => self.header("range"),
            range => range,
        }
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(given, _)| given == name).map(|(_, value)| &**value)
    }

    pub fn has(&self, name: &str) -> bool {
        self.parameter(name).is_some()
    }

    /// The headers that an object keeps.
    pub fn kept(&self) -> Vec<(HeaderName, HeaderValue)> {
        const KEPT: [&str; 5] =
            ["content-type", "content-encoding", "content-language", "content-disposition", "cache-control"];
        let mut kept = Vec::new();
        for name in KEPT {
            let of_azure = self.headers.get(format!("x-ms-blob-{name}"));
            let value = of_azure.or_else(|| self.headers.get(name)).and_then(|value| value.to_str().ok());
            let value = value.map(|value| value.trim_start_matches("aws-chunked").trim_start_matches(','));
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                kept.extend(HeaderValue::from_str(value).map(|value| (HeaderName::from_static(name), value)));
            }
        }
        let is_metadata = |name: &HeaderName| {
            ["x-amz-meta-", "x-ms-meta-", "x-goog-meta-"].iter().any(|prefix| name.as_str().starts_with(prefix))
        };
        let metadata = self.headers.iter().filter(|(name, _)| is_metadata(name));
        kept.extend(metadata.map(|(name, value)| (name.clone(), value.clone())));
        kept
    }
}

pub(super) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// As signatures and lists have it.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &UNRESERVED).to_string()
}

/// The same, of a path, which keeps its slashes.
pub(super) fn encoded_path(path: &str) -> String {
    const OF_PATHS: AsciiSet = UNRESERVED.remove(b'/');
    utf8_percent_encode(path, &OF_PATHS).to_string()
}
