//! Explains why a store refused a request, and how to solve the problem.

use std::time::{Duration, SystemTime};

use hyper::header::{DATE, RETRY_AFTER};
use hyper::{HeaderMap, Method, StatusCode};

use super::client::Response;
use crate::{Failure, Kind};

/// Threshold from which on messages mention the clock difference between this machine and the store. Stores tolerate
/// slightly more.
const SKEW: Duration = Duration::from_secs(4 * 60);
/// Longest accepted wait in the header `Retry-After`.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An answer with an error status. Of the store's text, messages contain only the error code, because the text may
/// repeat secrets of the request.
struct Refusal<'a> {
    response: &'a Response,
    code: &'a str,
    region: Option<&'a str>,
}

/// Returns the failure that explains an answer with an error status. `body` is the text of the answer.
pub fn failure(response: &Response, body: &str) -> Failure {
    let code = response.header("x-ms-error-code").or_else(|| element(body, "Code")).filter(|code| is_plain(code));
    let region = response.header("x-amz-bucket-region").or_else(|| element(body, "Region"));
    let code = code.unwrap_or_default();
    let refusal = Refusal { response, code, region: region.filter(|region| is_plain(region)) };
    let (kind, words) = refusal.meaning();
    let space = if code.is_empty() { "" } else { " " };
    let message = format!("{words} ({}{space}{code})", response.status.as_u16());
    Failure::new(kind, message).about(&response.request.subject)
}

/// The explanation if a store's answer contains no error code.
const UNSAID: &str = "the store gives no reason; check for an expired token, a wrong region or a wrong endpoint";

impl Refusal<'_> {
    fn meaning(&self) -> (Kind, String) {
        match self.code {
            "NoSuchBucket" | "ContainerNotFound" | "ContainerBeingDeleted" => (
                Kind::Missing,
                format!(
                    "there is no such bucket or container at {}; check its name and the endpoint",
                    self.response.host
                ),
            ),
            "NoSuchUpload" => (Kind::Missing, "the store no longer has this upload; start it again".into()),
            "InvalidPart" | "InvalidBlockList" | "InvalidBlobOrBlock" => {
                (Kind::Missing, "the store no longer has all parts of this upload; start it again".into())
            }
            "InvalidAccessKeyId" => (Kind::Denied, self.with_credentials("the store does not know the access key")),
            "SignatureDoesNotMatch" | "AuthenticationFailed" | "InvalidAuthenticationInfo" => {
                (Kind::Denied, self.with_clock(self.with_credentials("the secret key is wrong")))
            }
            "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => {
                (Kind::Denied, self.with_credentials("the token has expired"))
            }
            "RequestTimeTooSkewed" | "RequestExpired" => (
                Kind::Denied,
                self.with_clock(format!("set this machine's clock, which shows {}", shown(SystemTime::now()))),
            ),
            "PermanentRedirect" | "TemporaryRedirect" | "AuthorizationHeaderMalformed" | "IncorrectEndpoint" => {
                (Kind::Fatal, self.elsewhere())
            }
            "XMinioStorageFull"
            | "InsufficientStorage"
            | "QuotaExceeded"
            | "AdminBucketQuotaExceeded"
            | "XMinioAdminBucketQuotaExceeded"
            | "AccountLimitExceeded" => (Kind::Full, "the store has no room left".into()),
            "BadDigest"
            | "InvalidDigest"
            | "XAmzContentChecksumMismatch"
            | "XAmzContentSHA256Mismatch"
            | "Md5Mismatch"
            | "Crc64Mismatch"
            | "IncompleteBody" => (Kind::Corrupted, "the bytes that arrived differ from those that were sent".into()),
            "InternalError" | "OperationTimedOut" | "ServiceUnavailable" => self.in_trouble(),
            "BlobAlreadyExists" => (Kind::Changed, "an object of this name exists already".into()),
            "SlowDown" | "ServerBusy" | "OperationAborted" | "ConditionalRequestConflict" | "RequestTimeout" => {
                self.later()
            }
            _ => self.by_status(),
        }
    }

    fn by_status(&self) -> (Kind, String) {
        match self.response.status.as_u16() {
            404 | 410 => (Kind::Missing, "there is no such object".into()),
            401 | 403 => (
                Kind::Denied,
                self.with_clock(self.with_credentials("the credentials are wrong, or do not permit this")),
            ),
            412 if self.response.request.method == Method::GET => {
                (Kind::Changed, "the object has changed since it was first read".into())
            }
            412 => (Kind::Changed, "an object of this name exists already".into()),
            416 => (Kind::Changed, "the object has become shorter".into()),
            301..=308 => (Kind::Fatal, self.elsewhere()),
            400 if self.region.is_some() => (Kind::Fatal, self.elsewhere()),
            // An answer to HEAD can't contain an error code. If credentials were sent, they may have expired, or the
            // region or endpoint is wrong. If none were sent, only a wrong region or endpoint is possible.
            400 if self.response.request.method == Method::HEAD => match self.response.request.credentials {
                Some(_) => (Kind::Fatal, self.with_credentials(UNSAID)),
                None => (Kind::Fatal, self.elsewhere()),
            },
            507 => (Kind::Full, "the store has no room left".into()),
            408 | 425 | 429 | 503 => self.later(),
            500..=599 if self.response.status != StatusCode::NOT_IMPLEMENTED => self.in_trouble(),
            501 => (Kind::Fatal, format!("{} does not support this request", self.response.host)),
            _ => (Kind::Fatal, "the store refused the request".into()),
        }
    }

    /// Returns the failure for an internal error of the server. The server may be a gateway that failed while the store
    /// worked, so the request may have been carried out.
    fn in_trouble(&self) -> (Kind, String) {
        let kind = if self.response.request.once {
            Kind::Unanswered
        } else {
            Kind::Transient(retry_after(&self.response.headers))
        };
        (kind, format!("{} has an internal error", self.response.host))
    }

    fn later(&self) -> (Kind, String) {
        (
            Kind::Transient(retry_after(&self.response.headers)),
            format!("{} is busy; try again later", self.response.host),
        )
    }

    fn elsewhere(&self) -> String {
        match self.region {
            Some(region) => format!("the bucket is in the region {region}; use that region"),
            None => "the bucket or container is elsewhere; check the region and the endpoint".into(),
        }
    }

    /// Adds the source of the credentials to a message. If none were sent, returns a message about the missing
    /// credentials instead.
    fn with_credentials(&self, what: &str) -> String {
        match self.response.request.credentials {
            Some(place) => format!("{what}; check {place}"),
            None => "the store does not allow this without credentials".into(),
        }
    }

    /// Adds the clock difference between this machine and the store to the front of the message `words`, if it is
    /// large.
    fn with_clock(&self, words: String) -> String {
        clock(&self.response.headers, "the store's").map_or(words.clone(), |clock| format!("{clock}: {words}"))
    }
}

/// Returns the wait that the header `Retry-After` requests before the next attempt; `None` without a valid header.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        // The header contains a time. If the answer also contains the server's own time, the wait is counted from that
        // time.
        Err(_) => parse_time(text)?.duration_since(date(headers).unwrap_or_else(SystemTime::now)).unwrap_or_default(),
    };
    Some(wait.min(DAY))
}

/// Returns a clause for messages about the difference between this machine's clock and the clock that `whose` names,
/// for example `the store's`. `None` if the difference is small.
pub fn clock(headers: &HeaderMap, whose: &str) -> Option<String> {
    let (ours, theirs) = (SystemTime::now(), date(headers)?);
    let (off, which) = match ours.duration_since(theirs) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    let (minutes, ours, theirs) = (off.as_secs() / 60, shown(ours), shown(theirs));
    (off >= SKEW)
        .then(|| format!("this machine's clock is {minutes} minutes {which} {whose} ({ours} here, {theirs} there)"))
}

/// Returns the time according to the server's clock, from the header `Date`.
fn date(headers: &HeaderMap) -> Option<SystemTime> {
    parse_time(headers.get(DATE)?.to_str().ok()?)
}

/// Parses a time in the format of HTTP headers: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn parse_time(text: &str) -> Option<SystemTime> {
    Some(chrono::DateTime::parse_from_rfc2822(text).ok()?.into())
}

/// Formats a time for messages: `1994-11-06 08:49:37 UTC`.
pub fn shown(time: SystemTime) -> String {
    chrono::DateTime::<chrono::Utc>::from(time).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Returns the text in the first XML element with the name `name`.
fn element<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let begin = document.find(&format!("<{name}>"))? + name.len() + 2;
    document[begin..].split_once("</").map(|(held, _)| held)
}

/// Returns whether this text looks like an error code or a region, and not like a secret. Keys and tokens contain more
/// digits.
fn is_plain(code: &str) -> bool {
    let digits = code.bytes().filter(u8::is_ascii_digit).count();
    let fits = code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    fits && digits <= 3 && (1..=40).contains(&code.len())
}
