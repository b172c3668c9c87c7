//! Tokens of Google's, for a service account by its key (RFC 7523), or for a user who is logged in.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use object_store::CredentialProvider;
use object_store::gcp::GcpCredential;
use percent_encoding::percent_decode_str;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::json;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::address::encoded_query;
use super::client::{ANSWER_BYTES, Client};
use super::credentials::{NO_GOOGLE, google_file};
use super::keys::denied;
use super::open::Environment;
use super::refusal::clock;
use crate::{Attempt, Failure, Kind};

const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// For how long a token is asked for: the longest that is given.
const HOLDS_S: u64 = 3_600;
/// A token that holds for less is no longer used, for a request takes its time.
const MARGIN: Duration = Duration::from_secs(60);

/// What is in such a file.
#[derive(Deserialize)]
pub struct File {
    #[serde(flatten)]
    who: Who,
    token_uri: Option<String>,
    pub project_id: Option<String>,
    /// Who pays for what a user does.
    pub quota_project_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Who {
    ServiceAccount { client_email: String, private_key: String, private_key_id: Option<String> },
    AuthorizedUser { client_id: String, client_secret: String, refresh_token: String },
}

/// Tokens for one scope, each used for as long as it holds.
pub struct Tokens {
    client: Client,
    file: File,
    /// Where it was, for the words.
    place: String,
    scope: &'static str,
    kept: Mutex<Option<(Arc<GcpCredential>, Instant)>>,
}

#[derive(Deserialize)]
struct Token {
    access_token: String,
    expires_in: u64,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: String,
}

impl File {
    /// What the environment has or names, and where that is.
    pub fn find(environment: &Environment) -> Result<(Self, String), Failure> {
        const KEY: &str = "GOOGLE_SERVICE_ACCOUNT_KEY";
        let (text, place) = match (environment.first(&[KEY]), google_file(environment)) {
            (Some(text), _) => (text.to_string(), KEY.to_string()),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(&path);
                (text.map_err(|error| denied(format!("the credentials in {path}: {error}")))?, path)
            }
            (None, None) => return Err(denied(NO_GOOGLE.into())),
        };
        // The error's own words can have what is secret in them.
        let file = serde_json::from_str(&text)
            .map_err(|_| denied(format!("what is in {place} is neither a service account's key nor a user's login")))?;
        Ok((file, place))
    }
}

impl Tokens {
    pub fn new(client: Client, file: File, place: String, scope: &'static str) -> Self {
        Self { client, file, place, scope, kept: Mutex::default() }
    }

    /// Forgets what a server refuses, whatever was said of how long it would hold.
    pub fn forget(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What is sent for a token.
    fn form(&self, token_uri: &str) -> Result<String, Failure> {
        match &self.file.who {
            Who::ServiceAccount { client_email, private_key, private_key_id } => {
                let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                let encoded = |json: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
                let head = encoded(json!({"alg": "RS256", "typ": "JWT", "kid": private_key_id}));
                let claims = json!({
                    "iss": client_email, "scope": self.scope, "aud": token_uri, "iat": now_s, "exp": now_s + HOLDS_S,
                });
                let text = format!("{head}.{}", encoded(claims));
                let signature = signed(private_key, &text).ok_or_else(|| {
                    denied(format!("the private key in {} is not whole, or no key of RSA's", self.place))
                })?;
                let assertion = format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
                let kind = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                Ok(encoded_query(&[("grant_type", kind), ("assertion", &assertion)]))
            }
            Who::AuthorizedUser { client_id, client_secret, refresh_token } => Ok(encoded_query(&[
                ("grant_type", "refresh_token"),
                ("client_id", client_id),
                ("client_secret", client_secret),
                ("refresh_token", refresh_token),
            ])),
        }
    }

    async fn fetch(&self) -> Result<Token, Failure> {
        let token_uri = self.file.token_uri.as_deref().unwrap_or(TOKEN_URI);
        let request = Request::post(token_uri).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.body(self.form(token_uri)?.into());
        let request = request.map_err(|_| denied(format!("the token_uri in {} is no address", self.place)))?;
        let mut seen = Attempt::default();
        let mut answer = self.client.send(request, false, &mut seen).await?;
        let bytes = answer.bytes(ANSWER_BYTES, &mut seen).await?;
        if answer.status.is_success() {
            let not_one = |_| denied(format!("what {} answers is no token", answer.host));
            return serde_json::from_slice(&bytes).map_err(not_one);
        }
        let status = answer.status.as_u16();
        let said = match serde_json::from_slice::<Refusal>(&bytes) {
            Ok(Refusal { error, error_description }) => format!("{error} {error_description}"),
            Err(_) => String::new(),
        };
        let said = self.without_secrets(format!("{} answers {status} {said}", answer.host).trim());
        if answer.status.is_server_error() || status == 429 {
            return Err(Failure { kind: Kind::Transient(None), said });
        }
        let way = match (&self.file.who, clock(&answer.headers, "the server's")) {
            (_, Some(clock)) => clock,
            (Who::ServiceAccount { .. }, _) => format!("is the key in {} still one of the account's?", self.place),
            (Who::AuthorizedUser { .. }, _) => "log in anew by `gcloud auth application-default login`".into(),
        };
        Err(denied(format!("{said}: {way}")))
    }

    /// A server can repeat what it was sent.
    fn without_secrets(&self, text: &str) -> String {
        // As in the form, or as it is.
        let text = percent_decode_str(text).decode_utf8_lossy();
        // An assertion is longer than anything that a server says by itself.
        let words = text.split_whitespace().map(|word| if word.len() > 100 { "…" } else { word });
        let text = words.collect::<Vec<_>>().join(" ");
        match &self.file.who {
            Who::AuthorizedUser { client_secret, refresh_token, .. } => {
                text.replace(&**client_secret, "…").replace(&**refresh_token, "…")
            }
            Who::ServiceAccount { .. } => text,
        }
    }
}

/// None where the key can't be read.
fn signed(private_key: &str, text: &str) -> Option<Vec<u8>> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(private_key.as_bytes()).ok()?;
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok()?;
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).ok()?;
    Some(signature)
}

#[async_trait]
impl CredentialProvider for Tokens {
    type Credential = GcpCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<GcpCredential>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((token, _)) = kept.filter(|(_, until)| *until > Instant::now() + MARGIN) {
            return Ok(token);
        }
        let failed = |failure| object_store::Error::Generic { store: "Google", source: Box::<Failure>::new(failure) };
        let Token { access_token, expires_in } = self.fetch().await.map_err(failed)?;
        let token = Arc::new(GcpCredential { bearer: access_token });
        let until = Instant::now() + Duration::from_secs(expires_in.min(HOLDS_S));
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((token.clone(), until));
        Ok(token)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("place", &self.place).finish_non_exhaustive()
    }
}
