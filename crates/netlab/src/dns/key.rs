//! Keys that messages are signed with (TSIG, RFC 8945).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hickory_proto::rr::rdata::tsig::{TSIG, TsigAlgorithm};
use hickory_proto::rr::{Name, TSigner};

use crate::Error;

/// By how much the clocks of both ends may differ [s], as the standard recommends.
const FUDGE_S: u16 = 300;

/// Whether hickory can look at a signature: it takes the time that it may differ from its time, and may not go below 0.
pub(super) fn is_of_our_time(signature: &TSIG) -> bool {
    signature.time >= signature.fudge.into()
}

/// A key that two ends share. What it is is never shown.
#[derive(Clone)]
pub struct Key(pub(super) TSigner);

impl Key {
    /// Reads what `nsupdate -y` takes, `[ALGORITHM:]NAME:SECRET` with hmac-sha256 where none is named, or what
    /// `tsig-keygen` prints.
    ///
    /// ```
    /// use ascertain_netlab::dns::Key;
    /// assert!(Key::parse("hmac-sha512:mine:c2VjcmV0").is_ok());
    /// assert!(Key::parse("key \"mine\" {\n\talgorithm hmac-sha256;\n\tsecret \"c2VjcmV0\";\n};").is_ok());
    /// ```
    ///
    /// # Errors
    /// [`Error::Key`], without the secret in it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let no_key = |why: String| Error::Key { why };
        let parts: Vec<&str> = if text.contains('{') {
            let words: Vec<&str> = text
                .split(|c: char| c.is_whitespace() || "{};\"".contains(c))
                .filter(|word| !word.is_empty())
                .collect();
            let behind = |what| words.iter().position(|word| *word == what).and_then(|at| words.get(at + 1).copied());
            let part = |what| behind(what).ok_or_else(|| no_key(format!("it has no `{what}`")));
            vec![part("algorithm")?, part("key")?, part("secret")?]
        } else {
            text.trim().split(':').collect()
        };
        let (algorithm, name, secret) = match parts[..] {
            [name, secret] => ("hmac-sha256", name, secret),
            [algorithm, name, secret] => (algorithm, name, secret),
            _ => return Err(no_key("it is not ALGORITHM:NAME:SECRET".into())),
        };
        let algorithm = match algorithm.to_ascii_lowercase().trim_end_matches('.') {
            "hmac-sha256" => TsigAlgorithm::HmacSha256,
            "hmac-sha384" => TsigAlgorithm::HmacSha384,
            "hmac-sha512" => TsigAlgorithm::HmacSha512,
            _ => return Err(no_key("its algorithm is none of hmac-sha256, hmac-sha384 and hmac-sha512".into())),
        };
        let secret = STANDARD.decode(secret).map_err(|_| no_key("its secret is not in base64".into()))?;
        let mut name = Name::from_ascii(name).map_err(|error| no_key(format!("its name is none: {error}")))?;
        name.set_fqdn(true);
        TSigner::new(secret, algorithm, name, FUDGE_S).map(Self).map_err(|error| no_key(error.to_string()))
    }

    /// Its name, which is no secret.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.0.signer_name()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.name())
    }
}
