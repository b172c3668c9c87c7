//! Access tokens as Google issues them, for clients with a service account's key or with the login of a user.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::running::{ProviderRequest, RunningProvider, State};
use crate::store::{Answer, form};
use crate::threads::lock;

/// The service account's private key. It is published, so it protects nothing.
const KEY_PEM: &str = include_str!("key.pem");
const CLIENT: [&str; 3] = ["client", "not-a-client's-secret", "not-a-refresh-token"];
const SCOPES: [&str; 2] =
    ["https://www.googleapis.com/auth/ndev.clouddns.readwrite", "https://www.googleapis.com/auth/cloud-platform"];
/// Largest accepted difference between the clocks of client and provider, in seconds.
const SKEW_S: u64 = 300;
/// Maximum time for which the signed request for a token may be valid, in seconds.
const LONGEST_S: u64 = 3_600;

/// The tokens that were issued, each with the time at which it expires, on the provider's clock.
#[derive(Default)]
pub(super) struct Tokens(BTreeMap<String, SystemTime>);

impl Tokens {
    pub fn revoke(&mut self) {
        self.0.clear();
    }

    pub fn holds(&self, token: &str, now: SystemTime) -> bool {
        self.0.get(token).is_some_and(|until| now < *until)
    }
}

fn token_uri(state: &State) -> String {
    format!("{}/token", state.url)
}

impl RunningProvider {
    /// Returns the content of a service account's key file, in Google's format. It names this provider as the server
    /// that issues tokens.
    pub fn service_account(&self) -> String {
        json!({
            "type": "service_account", "project_id": "project", "private_key_id": "1", "private_key": KEY_PEM,
            "client_email": self.provider().account, "token_uri": token_uri(&self.state),
        })
        .to_string()
    }

    /// Returns the content of a user's login file, in gcloud's format. It names this provider as the server that issues
    /// tokens.
    pub fn login(&self) -> String {
        let [id, secret, refresh] = CLIENT;
        json!({
            "type": "authorized_user", "client_id": id, "client_secret": secret, "refresh_token": refresh,
            "quota_project_id": "project", "token_uri": token_uri(&self.state),
        })
        .to_string()
    }
}

fn refused(status: u16, error: &str, why: &str) -> Answer {
    super::cloud_dns::json(status, &json!({ "error": error, "error_description": why }))
}

/// Answers a request for a token.
pub(super) fn answer(state: &State, request: &ProviderRequest) -> Answer {
    let fields = form(&String::from_utf8_lossy(&request.body));
    let field = |name: &str| {
        let value = fields.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        value.unwrap_or_default()
    };
    let allowed = match field("grant_type").as_str() {
        "urn:ietf:params:oauth:grant-type:jwt-bearer" => asserted(state, &field("assertion")),
        "refresh_token" => match ["client_id", "client_secret", "refresh_token"].map(field) {
            [id, secret, _] if [&*id, &*secret] != CLIENT[..2] => {
                Err(refused(401, "invalid_client", "There is no such client."))
            }
            [_, _, refresh] if refresh != CLIENT[2] => {
                Err(refused(400, "invalid_grant", "The token has expired or was revoked."))
            }
            _ => Ok(()),
        },
        _ => Err(refused(400, "unsupported_grant_type", "This grant type is not supported.")),
    };
    allowed.map_or_else(|refusal| refusal, |()| given(state))
}

fn given(state: &State) -> Answer {
    let mut bytes = [0; 24];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        return refused(500, "internal_failure", "The token server could not create random numbers.");
    }
    let token = format!("ya29.{}", BASE64_URL_SAFE_NO_PAD.encode(bytes));
    let token_s = state.provider.token_s;
    lock(&state.shared).tokens.0.insert(token.clone(), state.now() + Duration::from_secs(token_s));
    super::cloud_dns::json(200, &json!({ "access_token": token, "expires_in": token_s, "token_type": "Bearer" }))
}

/// Checks the signed request for a token (JWT). It must be signed with the account's key, be valid now, name this
/// server or Google's, and name one of the known scopes.
fn asserted(state: &State, assertion: &str) -> Result<(), Answer> {
    let no = |why| refused(400, "invalid_grant", why);
    let (text, signature) = assertion.rsplit_once('.').ok_or_else(|| no("Invalid JWT."))?;
    let (head, claims) = text.split_once('.').ok_or_else(|| no("Invalid JWT."))?;
    let decoded = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| no("Invalid JWT."));
    let parsed = |part| serde_json::from_slice::<Value>(&decoded(part)?).map_err(|_| no("Invalid JWT."));
    let (head, claims) = (parsed(head)?, parsed(claims)?);
    if claims["iss"] != state.provider.account.as_str() {
        return Err(no("Invalid grant: there is no such account"));
    }
    let is_signed = head["alg"] == "RS256"
        && public_key().is_some_and(|key| key.verify(text.as_bytes(), &decoded(signature).unwrap_or_default()).is_ok());
    if !is_signed {
        return Err(no("Invalid JWT Signature."));
    }
    let now_s = state.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let [issued_s, until_s] = ["iat", "exp"].map(|name| claims[name].as_u64().unwrap_or(0));
    let is_of_now = issued_s <= now_s + SKEW_S && until_s + SKEW_S > now_s;
    if !is_of_now || until_s.saturating_sub(issued_s) > LONGEST_S {
        return Err(no("Invalid JWT: iat and exp are not within an hour of now."));
    }
    // gcloud names Google's server as the audience, even if it sends the request to another server.
    if claims["aud"] != token_uri(state) && claims["aud"] != "https://oauth2.googleapis.com/token" {
        return Err(no("Invalid JWT: its audience is another server."));
    }
    let scopes = claims["scope"].as_str().unwrap_or_default();
    if !scopes.split(' ').any(|scope| SCOPES.contains(&scope)) {
        return Err(refused(400, "invalid_scope", "None of the requested scopes is known."));
    }
    Ok(())
}

fn public_key() -> Option<UnparsedPublicKey<Vec<u8>>> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(KEY_PEM.as_bytes()).ok()?;
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok()?;
    Some(UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public().as_ref().to_vec()))
}
