//! Parses the HTTP requests to a store.

use std::time::SystemTime;

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::Kind;
use super::checksum::Digests;

/// The characters that are percent-encoded in signatures: all except the characters that RFC 3986 calls unreserved.
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The parsed head of a request.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub method: Method,
    /// The path as in the request, before percent-decoding.
    pub raw_path: String,
    /// The names and values in the URL's query, in the order of the query.
    pub parameters: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub bucket: String,
    pub key: String,
    /// Time at which the request arrived, on the store's clock.
    pub now: SystemTime,
}

/// A request whose body has arrived completely.
pub(super) struct StoreRequest {
    pub head: Head,
    pub kind: Kind,
    pub content: Vec<Bytes>,
    pub digests: Digests,
}

impl Head {
    /// Parses the head of a request. For Azure, `skipped` is the account at the beginning of the path, and is removed
    /// from the path. `now` is the time at which the request arrived.
    pub fn new(method: Method, uri: &Uri, mut headers: HeaderMap, skipped: Option<&str>, now: SystemTime) -> Self {
        // A request over HTTP/2 has the host in its URI.
        if let Some(authority) = uri.authority().filter(|_| !headers.contains_key("host")) {
            headers
                .extend(HeaderValue::from_str(authority.as_str()).map(|host| (HeaderName::from_static("host"), host)));
        }
        let path = uri.path().trim_start_matches('/');
        let path = skipped.and_then(|skipped| path.strip_prefix(skipped)?.strip_prefix('/')).unwrap_or(path);
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let (bucket, key, parameters) = (decoded(bucket), decoded(key), form(uri.query().unwrap_or_default()));
        Self { method, raw_path: uri.path().into(), parameters, headers, bucket, key, now }
    }

    /// Returns a header's value, or an empty text if the request lacks the header.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the value of the header that requests a range of the object, or an empty text if there is none.
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

    /// Returns the headers that are stored with an object.
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

/// Parses URL-encoded names and values, as in a URL's query or in the body of a form.
pub(crate) fn form(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(name, value)| (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))).collect()
}

pub(super) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Percent-encodes a text, as signatures and lists require.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &UNRESERVED).to_string()
}

/// Percent-encodes a path except for its slashes, as signatures and lists require.
pub(super) fn encoded_path(path: &str) -> String {
    const OF_PATHS: AsciiSet = UNRESERVED.remove(b'/');
    utf8_percent_encode(path, &OF_PATHS).to_string()
}
