//! Explains why a store refused a request, and how to solve the problem.

use std::time::{Duration, SystemTime};

use hyper::header::{DATE, RETRY_AFTER};
use hyper::{HeaderMap, Method, StatusCode};

use super::transport::Response;
use crate::{Failure, Kind};

/// Smallest clock difference between this machine and the store that messages mention. Stores tolerate slightly more.
const SKEW: Duration = Duration::from_secs(4 * 60);
/// Longest accepted wait in the header `Retry-After`.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An answer with an error status. Messages contain only the error code from the store's text, because the rest of the
/// text may repeat secrets of the request.
struct Refusal<'a> {
    response: &'a Response,
    code: &'a str,
    region: Option<&'a str>,
}

/// Returns the failure that explains an answer with an error status. `body` is the text of the answer.
pub fn failure(response: &Response, body: &str) -> Failure {
    let region = response.header("x-amz-bucket-region").or_else(|| element(body, "Region"));
    let code = code(response, body).unwrap_or_default();
    let refusal = Refusal { response, code, region: region.filter(|region| is_plain(region)) };
    let (kind, words) = refusal.meaning();
    let space = if code.is_empty() { "" } else { " " };
    let message = format!("{words} ({}{space}{code})", response.status.as_u16());
    let failure = Failure::new(kind, message).about(&response.request.subject);
    if refusal.concerns_whole_store() { failure.of_whole_store() } else { failure }
}

/// Returns the error code of an answer. The answer to HEAD has no body, but Azure and MinIO also send the code in a
/// header.
pub fn code<'a>(response: &'a Response, body: &'a str) -> Option<&'a str> {
    let header = response.header("x-ms-error-code").or_else(|| response.header("x-minio-error-code"));
    header.or_else(|| element(body, "Code")).filter(|code| is_plain(code))
}

/// Returns the region that a redirect of S3 names: in a header, or in the body as a region or an endpoint. `None` for
/// other answers.
pub fn other_region<'a>(response: &'a Response, body: &'a str) -> Option<&'a str> {
    let is_redirect = match (response.status.as_u16(), code(response, body)) {
        (301 | 302 | 307 | 308, _) => true,
        // The answer to HEAD has no code.
        (400, code) => code.is_none_or(|code| WRONG_REGION.contains(&code)),
        _ => false,
    };
    let named = response.header("x-amz-bucket-region").or_else(|| element(body, "Region"));
    let named = named.or_else(|| region_in(element(body, "Endpoint")?));
    named.filter(|region| is_redirect && is_plain(region))
}

/// Error codes with the status 400 if the signature is for a region other than the bucket's region.
const WRONG_REGION: [&str; 2] = ["AuthorizationHeaderMalformed", "IllegalLocationConstraintException"];

/// Returns the region in the host of an endpoint: `BUCKET.s3.eu-west-1.amazonaws.com`, `s3-eu-west-1.amazonaws.com`.
fn region_in(endpoint: &str) -> Option<&str> {
    let host = endpoint.rsplit("://").next()?.split(['/', ':']).next()?;
    let (_, after) = host.rsplit_once("s3").filter(|(before, _)| before.is_empty() || before.ends_with('.'))?;
    let mut labels = after.strip_prefix(['.', '-'])?.split('.').filter(|label| *label != "dualstack");
    match labels.next()? {
        "amazonaws" | "external-1" => Some("us-east-1"),
        region => Some(region),
    }
}

/// Error codes of accounts, projects and buckets that their provider has disabled.
const DISABLED: [&str; 7] = [
    "AccountProblem",
    "AccountIsDisabled",
    "AllAccessDisabled",
    "ContainerDisabled",
    "NotSignedUp",
    "UserProjectAccountProblem",
    "UserProjectMissing",
];

/// Error codes of stores without room, and of used-up quotas.
const FULL: [&str; 6] = [
    "XMinioStorageFull",
    "InsufficientStorage",
    "QuotaExceeded",
    "AdminBucketQuotaExceeded",
    "XMinioAdminBucketQuotaExceeded",
    "AccountLimitExceeded",
];

/// The explanation if a store's answer contains no error code.
const UNSAID: &str = "the store gives no reason; check for an expired token, a wrong region or a wrong endpoint";

impl Refusal<'_> {
    /// Returns whether requests for other objects would be refused for the same reason. A lack of permissions does not
    /// count, because permissions may differ between objects.
    fn concerns_whole_store(&self) -> bool {
        match self.code {
            "NoSuchBucket" | "ContainerNotFound" | "ContainerBeingDeleted" | "InvalidBucketName"
            // The credentials are wrong, incomplete or no longer valid.
            | "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "AuthenticationFailed" | "AuthenticationRequired"
            | "InvalidAuthenticationInfo" | "NoAuthenticationInformation" | "InvalidSecurity"
            | "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired"
            | "RequestTimeTooSkewed" | "RequestExpired"
            // The rules of an Azure account, or a SAS, do not permit this network, protocol or service.
            | "AuthorizationFailure" | "AuthorizationSourceIPMismatch" | "AuthorizationProtocolMismatch"
            | "AuthorizationServiceMismatch" => true,
            code if FULL.contains(&code) => true,
            code if DISABLED.contains(&code) => true,
            _ => {
                let status = self.response.status;
                matches!(status, StatusCode::UNAUTHORIZED | StatusCode::INSUFFICIENT_STORAGE) || self.is_elsewhere()
            }
        }
    }

    /// Returns whether the bucket is at another address or in another region.
    fn is_elsewhere(&self) -> bool {
        let is_named = matches!(self.code, "PermanentRedirect" | "TemporaryRedirect" | "IncorrectEndpoint");
        let is_unnamed = self.code.is_empty() && self.response.status == StatusCode::BAD_REQUEST;
        is_named
            || WRONG_REGION.contains(&self.code)
            || self.response.status.is_redirection()
            || (is_unnamed && self.region.is_some())
    }

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
            code if DISABLED.contains(&code) => {
                (Kind::Denied, "the account or bucket is disabled; check its state and its billing".into())
            }
            _ if self.is_elsewhere() => (Kind::Fatal, self.elsewhere()),
            code if FULL.contains(&code) => (Kind::Full, "the store has no room left".into()),
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

/// Converts a time of the server's clock to a time of this machine's clock. Assumes that the answer with these headers
/// has just been sent.
pub fn local_time(headers: &HeaderMap, time: SystemTime) -> SystemTime {
    let now = SystemTime::now();
    let converted = match date(headers).map(|theirs| time.duration_since(theirs)) {
        Some(Ok(left)) => now.checked_add(left),
        Some(Err(passed)) => now.checked_sub(passed.duration()),
        None => None,
    };
    converted.unwrap_or(time)
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

#[cfg(test)]
mod tests {
    use super::region_in;

    #[test]
    fn an_endpoint_names_its_region() {
        for (endpoint, region) in [
            ("box.s3.eu-west-1.amazonaws.com", Some("eu-west-1")),
            ("my.s3.box.s3.eu-west-1.amazonaws.com", Some("eu-west-1")),
            ("s3-us-west-2.amazonaws.com", Some("us-west-2")),
            ("https://box.s3.dualstack.eu-west-1.amazonaws.com:443/x", Some("eu-west-1")),
            ("s3.amazonaws.com", Some("us-east-1")),
            ("box.s3-external-1.amazonaws.com", Some("us-east-1")),
            ("example.com", None),
            ("xs3.example.com", None),
            ("s3", None),
            ("", None),
        ] {
            assert_eq!(region_in(endpoint), region, "{endpoint}");
        }
    }
}
