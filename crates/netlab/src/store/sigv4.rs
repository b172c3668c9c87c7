//! AWS's signatures, version 4, as S3 takes them: in a header or in the address, and of each chunk of a body.

use std::time::{Duration, SystemTime};

use ring::hmac::{self, HMAC_SHA256};

use super::answer::Refusal;
use super::checksum::{Algorithm, hex, sum_of};
use super::clock::basic;
use super::request::{Head, decoded, encoded, encoded_path};

/// How far the clocks may be apart.
const SKEW: Duration = Duration::from_secs(15 * 60);

/// What a request is signed with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys<'a> {
    pub account: &'a str,
    pub secret: &'a str,
    pub region: &'a str,
}

/// What signs the chunks of a body, each with the signature before it.
#[derive(Debug)]
pub(super) struct ChunkSigner {
    key: hmac::Key,
    /// The moment and the scope.
    scope: String,
    signature: String,
}

/// Where a signature stands, and what it says of itself.
struct Signed<'a> {
    credential: &'a str,
    date: &'a str,
    headers: &'a str,
    signature: &'a str,
    /// How long it holds.
    expires: Option<Duration>,
}

fn denied(status: u16, code: &'static str, message: &str) -> Refusal {
    Refusal::new(status, code, message)
}

/// Whether a request is signed as it should be; what signs its chunks.
pub(super) fn verify(head: &Head, keys: Keys) -> Result<ChunkSigner, Refusal> {
    let signed = Signed::of(head)?;
    let (account, scope) = signed.credential.split_once('/').unwrap_or_default();
    let is_scope = signed.date.get(..8).map(|day| format!("{day}/{}/s3/aws4_request", keys.region));
    if is_scope.as_deref() != Some(scope) {
        return Err(denied(400, "AuthorizationHeaderMalformed", "The scope of the credential is wrong."));
    }
    if account != keys.account {
        return Err(denied(403, "InvalidAccessKeyId", "There is no such access key."));
    }
    signed.check_moment(head.now)?;
    let is_left_out =
        |name: &str| name.starts_with("x-amz-") && !signed.headers.split(';').any(|signed| signed == name);
    if let Some(name) = head.headers.keys().find(|name| is_left_out(name.as_str())) {
        return Err(denied(403, "AccessDenied", &format!("The header {name} is not signed.")));
    }
    if !signed.headers.split(';').any(|name| name == "host") {
        return Err(denied(403, "AccessDenied", "The header host is not signed."));
    }
    let key = signing_key(keys.secret, scope);
    let request = canonical(head, &signed);
    let scope = format!("{}\n{scope}", signed.date);
    let text = format!("AWS4-HMAC-SHA256\n{scope}\n{}", sha256(request.as_bytes()));
    let mut signer = ChunkSigner { key, scope, signature: String::new() };
    signer.expect(&text, signed.signature)?;
    Ok(signer)
}

impl<'a> Signed<'a> {
    fn of(head: &'a Head) -> Result<Self, Refusal> {
        if head.has("X-Amz-Signature") {
            let parameter = |name| head.parameter(name).unwrap_or_default();
            let malformed = || {
                denied(400, "AuthorizationQueryParametersError", "A parameter of the signature is missing or wrong.")
            };
            let expires_s = parameter("X-Amz-Expires").parse().ok().filter(|seconds| (1..=604_800).contains(seconds));
            let is_known = parameter("X-Amz-Algorithm") == "AWS4-HMAC-SHA256";
            return Ok(Self {
                credential: parameter("X-Amz-Credential"),
                date: parameter("X-Amz-Date"),
                headers: parameter("X-Amz-SignedHeaders"),
                signature: parameter("X-Amz-Signature"),
                expires: Some(Duration::from_secs(expires_s.filter(|_| is_known).ok_or_else(malformed)?)),
            });
        }
        let header = head.header("authorization");
        if header.is_empty() {
            return Err(denied(403, "AccessDenied", "The request is not signed."));
        }
        let malformed = || denied(400, "AuthorizationHeaderMalformed", "The header authorization is malformed.");
        let fields = header.strip_prefix("AWS4-HMAC-SHA256").ok_or_else(malformed)?;
        let field = |name: &str| {
            let mut fields = fields.split(',').map(str::trim);
            fields.find_map(|field| field.strip_prefix(name)).ok_or_else(malformed)
        };
        Ok(Self {
            credential: field("Credential=")?,
            date: head.header("x-amz-date"),
            headers: field("SignedHeaders=")?,
            signature: field("Signature=")?,
            expires: None,
        })
    }

    fn check_moment(&self, now: SystemTime) -> Result<(), Refusal> {
        let earliest = now - self.expires.unwrap_or(SKEW);
        if self.date < &*basic(earliest) && self.expires.is_some() {
            return Err(denied(403, "AccessDenied", "Request has expired"));
        }
        if self.date < &*basic(earliest) || self.date > &*basic(now + SKEW) {
            let message = "The difference between the request's time and the store's is too large.";
            return Err(denied(403, "RequestTimeTooSkewed", message));
        }
        Ok(())
    }
}

/// The form of a request that is signed.
fn canonical(head: &Head, signed: &Signed) -> String {
    let path = encoded_path(&decoded(&head.raw_path));
    let parameters = head.parameters.iter().filter(|(name, _)| name != "X-Amz-Signature");
    let mut parameters: Vec<_> =
        parameters.map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    parameters.sort_unstable();
    let mut headers = String::new();
    for name in signed.headers.split(';') {
        let values = head.headers.get_all(name).into_iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        let values: Vec<_> = values.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        headers.push_str(&format!("{name}:{}\n", values.join(",")));
    }
    let payload = if signed.expires.is_some() { "UNSIGNED-PAYLOAD" } else { head.header("x-amz-content-sha256") };
    let (method, parameters, signed) = (&head.method, parameters.join("&"), signed.headers);
    format!("{method}\n{path}\n{parameters}\n{headers}\n{signed}\n{payload}")
}

fn signing_key(secret: &str, scope: &str) -> hmac::Key {
    let first = hmac::Key::new(HMAC_SHA256, format!("AWS4{secret}").as_bytes());
    scope.split('/').fold(first, |key, part| hmac::Key::new(HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref()))
}

fn sha256(bytes: &[u8]) -> String {
    hex(sum_of(Algorithm::Sha256, bytes))
}

impl ChunkSigner {
    fn expect(&mut self, text: &str, signature: &str) -> Result<(), Refusal> {
        let expected = hex(hmac::sign(&self.key, text.as_bytes()));
        if signature != expected {
            let message = "The signature of the request is not the one that the store calculated.";
            return Err(denied(403, "SignatureDoesNotMatch", message));
        }
        self.signature = expected;
        Ok(())
    }

    /// The next chunk, by its SHA-256.
    pub fn chunk(&mut self, sha256_of_chunk: &[u8], signature: &str) -> Result<(), Refusal> {
        let (scope, before, empty, chunk) = (&self.scope, &self.signature, sha256(b""), hex(sha256_of_chunk));
        let text = format!("AWS4-HMAC-SHA256-PAYLOAD\n{scope}\n{before}\n{empty}\n{chunk}");
        self.expect(&text, signature)
    }

    /// The headers behind the last chunk, the last of which is their signature.
    pub fn trailers(&mut self, trailers: &[(String, String)]) -> Result<(), Refusal> {
        let Some(((_, signature), trailers)) = trailers.split_last() else { return self.expect("", "none") };
        let trailers: String = trailers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let (scope, before, trailers) = (&self.scope, &self.signature, sha256(trailers.as_bytes()));
        let text = format!("AWS4-HMAC-SHA256-TRAILER\n{scope}\n{before}\n{trailers}");
        self.expect(&text, signature)
    }
}
