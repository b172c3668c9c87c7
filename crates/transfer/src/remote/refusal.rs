//! What a store means when it says no, and the way out.

use std::time::{Duration, SystemTime};

use hyper::header::{DATE, RETRY_AFTER};
use hyper::{HeaderMap, Method, StatusCode};

use super::client::{ANSWER_BYTES, Answer};
use crate::{Attempt, Failure, Kind};

/// By how much a clock can be wrong before stores mind, less some.
const SKEW: Duration = Duration::from_secs(4 * 60);

/// Nobody means to say that we should wait longer.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What was asked for, for the words.
pub struct Asked<'a> {
    pub method: &'a Method,
    /// The address without anything secret.
    pub shown: &'a str,
    /// Where our credentials are from, if we have any.
    pub credentials: Option<&'a str>,
    /// Whether it should be carried out only once.
    pub once: bool,
}

/// What a refusal says: never more of a store's words than their code, for a store can repeat what it was sent.
struct Refusal<'a> {
    asked: &'a Asked<'a>,
    status: StatusCode,
    code: &'a str,
    region: Option<&'a str>,
    headers: &'a HeaderMap,
    host: &'a str,
}

/// Reads a refusal to its end.
pub async fn refused(mut answer: Answer, asked: &Asked<'_>, seen: &mut Attempt) -> Failure {
    // What can't be read has its status still.
    let body = answer.bytes(ANSWER_BYTES, seen).await.unwrap_or_default();
    failure(&answer, &String::from_utf8_lossy(&body), asked)
}

/// What this answer with this body means.
pub fn failure(answer: &Answer, body: &str, asked: &Asked<'_>) -> Failure {
    let code = answer.header("x-ms-error-code").or_else(|| element(body, "Code")).filter(|code| is_plain(code));
    let region = answer.header("x-amz-bucket-region").or_else(|| element(body, "Region"));
    let refusal = Refusal {
        asked,
        status: answer.status,
        code: code.unwrap_or_default(),
        region: region.filter(|region| is_plain(region)),
        headers: &answer.headers,
        host: &answer.host,
    };
    let (kind, words) = refusal.meaning();
    let status = refusal.status.as_u16();
    let code = if refusal.code.is_empty() { String::new() } else { format!(" {}", refusal.code) };
    Failure { kind, said: format!("{}: {words} ({status}{code})", asked.shown) }
}

/// What may be wrong with a request that is refused without a word.
const UNSAID: &str = "the store doesn't say why: has a token expired, or is the region or the endpoint wrong?";

impl Refusal<'_> {
    fn meaning(&self) -> (Kind, String) {
        match self.code {
            "NoSuchBucket" | "ContainerNotFound" | "ContainerBeingDeleted" => (
                Kind::Missing,
                format!("there is no such bucket or container at {}: are its name and the endpoint right?", self.host),
            ),
            "NoSuchUpload" => (Kind::Missing, "the store no longer has this upload: it must begin anew".into()),
            "InvalidPart" | "InvalidBlockList" | "InvalidBlobOrBlock" => {
                (Kind::Missing, "the store no longer has all blocks of this upload: it must begin anew".into())
            }
            "InvalidAccessKeyId" => (Kind::Denied, self.look("the store doesn't know the access key")),
            "SignatureDoesNotMatch" | "AuthenticationFailed" | "InvalidAuthenticationInfo" => {
                (Kind::Denied, self.with_clock(self.look("the key is not the right one")))
            }
            "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => {
                (Kind::Denied, self.look("the token has expired"))
            }
            "RequestTimeTooSkewed" | "RequestExpired" => (
                Kind::Denied,
                self.with_clock(format!("set this machine's clock, which says {}", shown(SystemTime::now()))),
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
            | "IncompleteBody" => (Kind::Corrupted, "what arrived is not what was sent".into()),
            "InternalError" | "OperationTimedOut" | "ServiceUnavailable" => self.in_trouble(),
            "BlobAlreadyExists" => (Kind::Changed, "there is something under this name already".into()),
            "SlowDown" | "ServerBusy" | "OperationAborted" | "ConditionalRequestConflict" | "RequestTimeout" => {
                self.later()
            }
            _ => self.by_status(),
        }
    }

    fn by_status(&self) -> (Kind, String) {
        match self.status.as_u16() {
            404 | 410 => (Kind::Missing, "there is no such object".into()),
            401 | 403 => {
                (Kind::Denied, self.with_clock(self.look("the credentials are wrong, or not enough for this")))
            }
            412 if self.asked.method == Method::GET => (Kind::Changed, "it has changed since it was looked at".into()),
            412 => (Kind::Changed, "there is something under this name already".into()),
            416 => (Kind::Changed, "it is shorter than it was".into()),
            301..=308 => (Kind::Fatal, self.elsewhere()),
            400 if self.region.is_some() => (Kind::Fatal, self.elsewhere()),
            // An answer to HEAD has no room for a code. Without credentials no token has expired.
            400 if self.asked.method == Method::HEAD => match self.asked.credentials {
                Some(_) => (Kind::Fatal, self.look(UNSAID)),
                None => (Kind::Fatal, self.elsewhere()),
            },
            507 => (Kind::Full, "the store has no room left".into()),
            408 | 425 | 429 | 503 => self.later(),
            500..=599 if self.status != StatusCode::NOT_IMPLEMENTED => self.in_trouble(),
            501 => (Kind::Fatal, format!("{} can't do this", self.host)),
            _ => (Kind::Fatal, "the store refuses this".into()),
        }
    }

    /// Whoever stood in between may have given up on what was carried out.
    fn in_trouble(&self) -> (Kind, String) {
        let kind = if self.asked.once { Kind::Unanswered } else { Kind::Transient(retry_after(self.headers)) };
        (kind, format!("{} is in trouble", self.host))
    }

    fn later(&self) -> (Kind, String) {
        (Kind::Transient(retry_after(self.headers)), format!("{} asks to be asked later", self.host))
    }

    fn elsewhere(&self) -> String {
        match self.region {
            Some(region) => format!("it is in the region {region}: name that one"),
            None => "it is elsewhere: are the region and the endpoint right?".into(),
        }
    }

    /// What is wrong with our credentials, and where to mend it.
    fn look(&self, what: &str) -> String {
        match self.asked.credentials {
            Some(place) => format!("{what}: look at {place}"),
            None => "this is not allowed without credentials".into(),
        }
    }

    /// Adds what the store's clock says of ours.
    fn with_clock(&self, words: String) -> String {
        clock(self.headers, "the store's").map_or(words.clone(), |clock| format!("{clock}: {words}"))
    }
}

/// How long a server asks us to wait.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        // By the clock that says so, if it says what it shows.
        Err(_) => time(text)?.duration_since(date(headers).unwrap_or_else(SystemTime::now)).unwrap_or_default(),
    };
    Some(wait.min(DAY))
}

/// What a server's clock says of ours, where they are far apart.
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

/// What a server's clock showed.
fn date(headers: &HeaderMap) -> Option<SystemTime> {
    time(headers.get(DATE)?.to_str().ok()?)
}

/// A time as HTTP has it: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn time(text: &str) -> Option<SystemTime> {
    Some(chrono::DateTime::parse_from_rfc2822(text).ok()?.into())
}

/// A time for people: `1994-11-06 08:49:37 UTC`.
pub fn shown(time: SystemTime) -> String {
    chrono::DateTime::<chrono::Utc>::from(time).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// What the first such element of a document holds.
fn element<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let begin = document.find(&format!("<{name}>"))? + name.len() + 2;
    document[begin..].split_once("</").map(|(held, _)| held)
}

/// Whether it is a code or a region as stores have them, and no key or token that was sent: those have more digits.
fn is_plain(code: &str) -> bool {
    let digits = code.bytes().filter(u8::is_ascii_digit).count();
    let fits = code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    fits && digits <= 3 && (1..=40).contains(&code.len())
}
