//! Verifies AWS's signatures, version 4. For S3 the signature is in a header or in the URL, and each chunk of a body
//! may have its own signature. For other services the signature covers the whole body.

use std::time::{Duration, SystemTime};

use ring::hmac::{self, HMAC_SHA256};

use super::answer::{Refusal, basic, refuse};
use super::checksum::{Algorithm, hex, sum_of};
use super::request::{Head, decoded, encoded, encoded_path};

/// Largest accepted difference between the clocks of client and store.
const SKEW: Duration = Duration::from_secs(15 * 60);

/// The values from which the key of a signature is derived: the credentials, and the scope (a service and a region).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys<'a> {
    pub account: &'a str,
    pub secret: &'a str,
    pub service: &'a str,
    pub region: &'a str,
}

/// Verifies the signatures of a body's chunks in turn. Each signature covers the previous one.
#[derive(Debug)]
pub(crate) struct ChunkSigner {
    key: hmac::Key,
    /// The time and the scope (date, region, service) of the request's signature. Both are part of the text that is
    /// signed for each chunk.
    scope: String,
    signature: String,
}

/// The fields of a request's signature, from its header or its URL.
struct SignatureFields<'a> {
    credential: &'a str,
    date: &'a str,
    headers: &'a str,
    signature: &'a str,
    /// Time for which a presigned URL is valid; `None` for a signature in the header.
    expires: Option<Duration>,
}

/// Verifies the signature of a request to S3. Returns a verifier for the chunks of the request's body, each of which
/// may have a signature.
pub(super) fn verify(head: &Head, keys: Keys) -> Result<ChunkSigner, Refusal> {
    let signed = SignatureFields::from_head(head)?;
    let payload = if signed.expires.is_some() { "UNSIGNED-PAYLOAD" } else { head.header("x-amz-content-sha256") };
    verify_payload(head, keys, &signed, payload)
}

/// Verifies the signature of a request to a service other than S3. The signature always covers the hash of `body`,
/// whereas for S3 it need not.
#[cfg(feature = "providers")]
pub(crate) fn verify_body(head: &Head, keys: Keys, body: &[u8]) -> Result<(), Refusal> {
    verify_payload(head, keys, &SignatureFields::from_head(head)?, &sha256(body)).map(drop)
}

fn verify_payload(head: &Head, keys: Keys, signed: &SignatureFields, payload: &str) -> Result<ChunkSigner, Refusal> {
    let (account, scope) = signed.credential.split_once('/').unwrap_or_default();
    let is_scope = signed.date.get(..8).map(|day| format!("{day}/{}/{}/aws4_request", keys.region, keys.service));
    if is_scope.as_deref() != Some(scope) {
        let refusal = Refusal::new(400, "AuthorizationHeaderMalformed", "The scope of the credential is wrong.");
        return Err(Refusal { region: Some(keys.region.into()), ..refusal });
    }
    if account != keys.account {
        return refuse(403, "InvalidAccessKeyId", "There is no such access key.");
    }
    signed.check_moment(head.now)?;
    let is_left_out =
        |name: &str| name.starts_with("x-amz-") && !signed.headers.split(';').any(|signed| signed == name);
    if let Some(name) = head.headers.keys().find(|name| is_left_out(name.as_str())) {
        return refuse(403, "AccessDenied", format!("The header {name} is not signed."));
    }
    if !signed.headers.split(';').any(|name| name == "host") {
        return refuse(403, "AccessDenied", "The header host is not signed.");
    }
    let key = signing_key(keys.secret, scope);
    let request = canonical(head, signed, keys.service, payload);
    let scope = format!("{}\n{scope}", signed.date);
    let text = format!("AWS4-HMAC-SHA256\n{scope}\n{}", sha256(request.as_bytes()));
    let mut signer = ChunkSigner { key, scope, signature: String::new() };
    signer.expect(&text, signed.signature)?;
    Ok(signer)
}

impl<'a> SignatureFields<'a> {
    fn from_head(head: &'a Head) -> Result<Self, Refusal> {
        if head.has("X-Amz-Signature") {
            let parameter = |name| head.parameter(name).unwrap_or_default();
            let malformed = || {
                Refusal::new(
                    400,
                    "AuthorizationQueryParametersError",
                    "A parameter of the signature is missing or wrong.",
                )
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
            return refuse(403, "AccessDenied", "The request is not signed.");
        }
        let malformed = || Refusal::new(400, "AuthorizationHeaderMalformed", "The header authorization is malformed.");
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
            return refuse(403, "AccessDenied", "Request has expired");
        }
        if self.date < &*basic(earliest) || self.date > &*basic(now + SKEW) {
            let message = "The difference between the request's time and the store's is too large.";
            return refuse(403, "RequestTimeTooSkewed", message);
        }
        Ok(())
    }
}

/// Returns the canonical form of a request, whose hash the client signed. `payload` is the hash of the body.
fn canonical(head: &Head, signed: &SignatureFields, service: &str, payload: &str) -> String {
    // For S3, the path is signed without normalisation, because the names of objects need not be valid paths.
    let path = if service == "s3" { encoded_path(&decoded(&head.raw_path)) } else { encoded_path(&head.raw_path) };
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
            return refuse(403, "SignatureDoesNotMatch", message);
        }
        self.signature = expected;
        Ok(())
    }

    /// Verifies the signature of the next chunk, which covers the chunk's SHA-256.
    pub fn chunk(&mut self, sha256_of_chunk: &[u8], signature: &str) -> Result<(), Refusal> {
        let (scope, before, empty, chunk) = (&self.scope, &self.signature, sha256(b""), hex(sha256_of_chunk));
        let text = format!("AWS4-HMAC-SHA256-PAYLOAD\n{scope}\n{before}\n{empty}\n{chunk}");
        self.expect(&text, signature)
    }

    /// Verifies the headers after the last chunk. The last of these headers has the signature of the other headers.
    pub fn trailers(&mut self, trailers: &[(String, String)]) -> Result<(), Refusal> {
        let Some(((_, signature), trailers)) = trailers.split_last() else { return self.expect("", "none") };
        let trailers: String = trailers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let (scope, before, trailers) = (&self.scope, &self.signature, sha256(trailers.as_bytes()));
        let text = format!("AWS4-HMAC-SHA256-TRAILER\n{scope}\n{before}\n{trailers}");
        self.expect(&text, signature)
    }
}

#[cfg(test)]
mod tests {
    use hyper::{HeaderMap, Method};

    use super::*;
    use crate::store::checksum::sha256_of;

    // The keys of the examples in Amazon's documentation of S3 ("Authenticating Requests: AWS Signature Version 4").
    const KEYS: Keys = Keys {
        account: "AKIAIOSFODNN7EXAMPLE",
        secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        service: "s3",
        region: "us-east-1",
    };
    const SCOPE: &str = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    /// Returns midnight of 24 May 2013.
    fn moment() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_600)
    }

    fn head(method: Method, address: &str, headers: &[(&'static str, &str)]) -> Head {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        Head::new(method, &address.parse().unwrap(), headers, None, moment())
    }

    /// Verifies the request of an example. All its headers are signed: those in `headers`, and those that all examples
    /// have.
    fn example(
        method: Method,
        address: &str,
        sha256: &str,
        headers: &[(&'static str, &str)],
        signature: &str,
    ) -> Result<ChunkSigner, Refusal> {
        let host =
            if address.contains("examplebucket") { "s3.amazonaws.com" } else { "examplebucket.s3.amazonaws.com" };
        let own = [("host", host), ("x-amz-content-sha256", sha256), ("x-amz-date", "20130524T000000Z")];
        let mut headers = [&own[..], headers].concat();
        headers.sort_unstable();
        let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let authorization = format!("AWS4-HMAC-SHA256 Credential={SCOPE},SignedHeaders={names},Signature={signature}");
        headers.push(("authorization", &authorization));
        verify(&head(method, address, &headers), KEYS)
    }

    #[test]
    fn signatures_are_those_of_the_documentation() {
        let cases = [
            (
                "/test.txt",
                &[("range", "bytes=0-9")][..],
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            ("/?lifecycle", &[], "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            ("/?max-keys=2&prefix=J", &[], "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        ];
        for (address, headers, signature) in cases {
            example(Method::GET, address, EMPTY, headers, signature).unwrap();
            let wrong = signature.replace('0', "1");
            assert_eq!(
                example(Method::GET, address, EMPTY, headers, &wrong).unwrap_err().code,
                "SignatureDoesNotMatch"
            );
        }
        let headers = [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
        let sha256 = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
        let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
        example(Method::PUT, "/test%24file.text", sha256, &headers, signature).unwrap();
    }

    #[test]
    fn an_address_is_signed_as_in_the_documentation() {
        let address = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524\
            %2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
            &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        let head = head(Method::GET, address, &[("host", "examplebucket.s3.amazonaws.com")]);
        verify(&head, KEYS).unwrap();
        let late = Head { now: moment() + Duration::from_secs(86_401), ..head };
        assert_eq!(verify(&late, KEYS).unwrap_err().message, "Request has expired");
    }

    /// The example in Amazon's general documentation ("Create a signed AWS API request").
    #[cfg(feature = "providers")]
    #[test]
    fn other_services_sign_their_bodies() {
        const KEYS: Keys = Keys {
            account: "AKIDEXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            service: "iam",
            region: "us-east-1",
        };
        let authorization = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
            SignedHeaders=content-type;host;x-amz-date, \
            Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
        let headers = [
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("host", "iam.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
            ("authorization", authorization),
        ];
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160);
        let head = Head { now, ..head(Method::GET, "/?Action=ListUsers&Version=2010-05-08", &headers) };
        verify_body(&head, KEYS, b"").unwrap();
        let code = |head: &Head, keys, body| verify_body(head, keys, body).unwrap_err().code;
        assert_eq!(code(&head, KEYS, b"another"), "SignatureDoesNotMatch");
        assert_eq!(code(&head, Keys { secret: "another", ..KEYS }, b""), "SignatureDoesNotMatch");
        assert_eq!(code(&head, Keys { account: "another", ..KEYS }, b""), "InvalidAccessKeyId");
        assert_eq!(code(&head, Keys { service: "route53", ..KEYS }, b""), "AuthorizationHeaderMalformed");
        for now in [now + SKEW + Duration::from_secs(1), now - SKEW - Duration::from_secs(1)] {
            assert_eq!(code(&Head { now, ..head.clone() }, KEYS, b""), "RequestTimeTooSkewed");
        }
    }

    /// Verifies the body of the examples: 65 KiB of the letter a, in chunks of 64 KiB, 1 KiB and 0 bytes.
    fn signed_in_chunks(signer: &mut ChunkSigner, signatures: [&str; 3]) {
        for (kib, signature) in [64, 1, 0].into_iter().zip(signatures) {
            let chunk = [vec![b'a'; kib << 10].into()];
            signer.chunk(&sha256_of(&chunk), signature).unwrap();
        }
    }

    #[test]
    fn chunks_are_signed_as_in_the_documentation() {
        let headers = [
            ("content-encoding", "aws-chunked"),
            ("content-length", "66824"),
            ("x-amz-decoded-content-length", "66560"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let signature = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
        let kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
        let mut signer = example(Method::PUT, "/examplebucket/chunkObject.txt", kind, &headers, signature).unwrap();
        signed_in_chunks(
            &mut signer,
            [
                "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
                "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
                "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
            ],
        );
        let none = sha256_of(&[]);
        assert_eq!(signer.chunk(&none, "b6c6").unwrap_err().code, "SignatureDoesNotMatch");
    }

    #[test]
    fn trailers_are_signed_as_in_the_documentation() {
        let headers = [
            ("content-encoding", "aws-chunked"),
            ("x-amz-decoded-content-length", "66560"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ("x-amz-trailer", "x-amz-checksum-crc32c"),
        ];
        let signature = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
        let kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
        let mut signer = example(Method::PUT, "/examplebucket/chunkObject.txt", kind, &headers, signature).unwrap();
        signed_in_chunks(
            &mut signer,
            [
                "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
                "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
                "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
            ],
        );
        let trailer = ("x-amz-checksum-crc32c".to_string(), "sOO8/Q==".to_string());
        let signed = |signature: &str| [trailer.clone(), ("x-amz-trailer-signature".into(), signature.into())];
        let signature = "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435";
        signer.trailers(&signed(signature)).unwrap();
        assert_eq!(signer.trailers(&signed(signature)).unwrap_err().code, "SignatureDoesNotMatch");
        assert!(signer.trailers(&[trailer]).is_err() && signer.trailers(&[]).is_err());
    }
}
