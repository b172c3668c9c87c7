//! Gets access tokens from Google in exchange for a request that is signed with a service account's key (RFC 7523), or
//! for a user's login.

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

use super::Result;
use super::address::encoded_query;
use super::credentials::{NO_GOOGLE, google_file};
use super::open::Environment;
use super::refusal::clock;
use super::transport::{RequestInfo, Transport};
use crate::{Attempt, Failure};

const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// Requested validity of a token in seconds. Google grants no longer validity.
const HOLDS_S: u64 = 3_600;
/// A token that is valid for less than this time is replaced, because the request that uses it takes time.
const MARGIN: Duration = Duration::from_secs(60);

/// The contents of a Google credentials file.
#[derive(Deserialize)]
pub struct CredentialsFile {
    #[serde(flatten)]
    account: Account,
    token_uri: Option<String>,
    pub project_id: Option<String>,
    /// The project that is billed for requests, if a user is logged in.
    pub quota_project_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Account {
    ServiceAccount { client_email: String, private_key: String, private_key_id: Option<String> },
    AuthorizedUser { client_id: String, client_secret: String, refresh_token: String },
}

/// Gets tokens that permit the requests of one scope. A token is reused while it is valid.
pub struct Tokens {
    transport: Transport,
    file: CredentialsFile,
    /// The place of the credentials, for messages: the path of a file, or the name of an environment variable.
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

impl CredentialsFile {
    /// Reads the credentials from the environment, or from the file that the environment names. Also returns where they
    /// came from, for messages.
    pub fn find(environment: &Environment) -> Result<(Self, String)> {
        const KEY: &str = "GOOGLE_SERVICE_ACCOUNT_KEY";
        let (text, place) = match (environment.first(&[KEY]), google_file(environment)) {
            (Some(text), _) => (text.to_string(), KEY.to_string()),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(&path);
                (
                    text.map_err(|error| {
                        Failure::denied(format!("could not read the credentials in {path}: {error}"))
                    })?,
                    path,
                )
            }
            (None, None) => return Err(Failure::denied(NO_GOOGLE)),
        };
        // The message of the error is not shown, because it may contain secrets.
        let file = serde_json::from_str(&text).map_err(|_| {
            Failure::denied(format!("{place} contains neither a service account's key nor a user's login"))
        })?;
        Ok((file, place))
    }
}

impl Tokens {
    pub fn new(transport: Transport, file: CredentialsFile, place: String, scope: &'static str) -> Self {
        Self { transport, file, place, scope, kept: Mutex::default() }
    }

    /// Forgets the current token, because a server refused it although it should still be valid.
    pub fn forget(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the body of the request for a token, in the format of HTML forms. `token_uri` is the address that it is
    /// sent to.
    fn form(&self, token_uri: &str) -> Result<String> {
        match &self.file.account {
            Account::ServiceAccount { client_email, private_key, private_key_id } => {
                let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                let encoded = |json: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
                let head = encoded(json!({"alg": "RS256", "typ": "JWT", "kid": private_key_id}));
                let claims = json!({
                    "iss": client_email, "scope": self.scope, "aud": token_uri, "iat": now_s, "exp": now_s + HOLDS_S,
                });
                let text = format!("{head}.{}", encoded(claims));
                let signature = sign(private_key, &text).ok_or_else(|| {
                    Failure::denied(format!("the private key in {} is incomplete, or is not an RSA key", self.place))
                })?;
                let assertion = format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
                let kind = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                Ok(encoded_query(&[("grant_type", kind), ("assertion", &assertion)]))
            }
            Account::AuthorizedUser { client_id, client_secret, refresh_token } => Ok(encoded_query(&[
                ("grant_type", "refresh_token"),
                ("client_id", client_id),
                ("client_secret", client_secret),
                ("refresh_token", refresh_token),
            ])),
        }
    }

    async fn fetch(&self) -> Result<Token> {
        let token_uri = self.file.token_uri.as_deref().unwrap_or(TOKEN_URI);
        let request = Request::post(token_uri).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.body(self.form(token_uri)?.into());
        let request = request.map_err(|_| {
            Failure::denied(format!("the token_uri in {} is not a valid address; correct it", self.place))
        })?;
        let mut attempt = Attempt::default();
        let mut response = self.transport.send(request, RequestInfo::default(), &mut attempt).await?;
        let text = response.text(&mut attempt).await?;
        if response.status.is_success() {
            let not_one = |_| Failure::denied(format!("the answer of {} contains no token", response.host));
            return serde_json::from_str(&text).map_err(not_one);
        }
        let status = response.status.as_u16();
        let message = match serde_json::from_str::<Refusal>(&text) {
            Ok(Refusal { error, error_description }) => format!("{error} {error_description}"),
            Err(_) => String::new(),
        };
        let message = self.without_secrets(format!("{} answers {status} {message}", response.host).trim());
        if response.status.is_server_error() || status == 429 {
            return Err(Failure::transient(message));
        }
        let way = match (&self.file.account, clock(&response.headers, "the server's")) {
            (_, Some(clock)) => clock,
            (Account::ServiceAccount { .. }, _) => {
                format!("check that the key in {} still belongs to the account", self.place)
            }
            (Account::AuthorizedUser { .. }, _) => "log in again with `gcloud auth application-default login`".into(),
        };
        Err(Failure::denied(format!("{message}: {way}")))
    }

    /// Removes secrets from a server's text, because the text may repeat parts of the request.
    fn without_secrets(&self, text: &str) -> String {
        // The text may contain the secrets percent-encoded, as in the request.
        let text = percent_decode_str(text).decode_utf8_lossy();
        // Words of a server are shorter than this, so a longer one is the signed assertion of the request.
        let words = text.split_whitespace().map(|word| if word.len() > 100 { "…" } else { word });
        let text = words.collect::<Vec<_>>().join(" ");
        match &self.file.account {
            Account::AuthorizedUser { client_secret, refresh_token, .. } => {
                text.replace(&**client_secret, "…").replace(&**refresh_token, "…")
            }
            Account::ServiceAccount { .. } => text,
        }
    }
}

/// Returns the signature of `text` with an RSA key; `None` if the key can't be parsed.
fn sign(private_key: &str, text: &str) -> Option<Vec<u8>> {
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
