//! Tokens of Google's: for who signs with a service account's key, or has a user's login.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use percent_encoding::percent_decode_str;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::running::{Request, State};
use crate::store::Answer;

/// The service account's key, which everybody has: it protects nothing.
const KEY_PEM: &str = include_str!("key.pem");
const CLIENT: [&str; 3] = ["client", "not-a-client's-secret", "not-a-refresh-token"];
const SCOPES: [&str; 2] =
    ["https://www.googleapis.com/auth/ndev.clouddns.readwrite", "https://www.googleapis.com/auth/cloud-platform"];
/// By how much the clocks may differ, and for how long a signature may hold.
const SKEW_S: u64 = 300;
const LONGEST_S: u64 = 3_600;

/// Tokens that were given, and until when each holds, by the provider's clock.
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

pub(super) fn service_account(state: &State) -> String {
    json!({
        "type": "service_account", "project_id": "project", "private_key_id": "1", "private_key": KEY_PEM,
        "client_email": state.provider.account, "token_uri": token_uri(state),
    })
    .to_string()
}

pub(super) fn login(state: &State) -> String {
    let [id, secret, refresh] = CLIENT;
    json!({
        "type": "authorized_user", "client_id": id, "client_secret": secret, "refresh_token": refresh,
        "quota_project_id": "project", "token_uri": token_uri(state),
    })
    .to_string()
}

fn refused(status: u16, error: &str, why: &str) -> Answer {
    super::cloud_dns::json(status, &json!({ "error": error, "error_description": why }))
}

/// Gives who may have it a token.
pub(super) fn answer(state: &State, request: &Request) -> Answer {
    let body = String::from_utf8_lossy(&request.body).into_owned();
    let field = |name: &str| {
        let pairs = body.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.into_iter().find(|(given, _)| *given == name).map(|(_, value)| value.replace('+', " "));
        value.map(|value| percent_decode_str(&value).decode_utf8_lossy().into_owned()).unwrap_or_default()
    };
    let allowed = match field("grant_type").as_str() {
        "urn:ietf:params:oauth:grant-type:jwt-bearer" => asserted(state, &field("assertion")),
        "refresh_token" => match ["client_id", "client_secret", "refresh_token"].map(field) {
            [id, secret, _] if [&*id, &*secret] != CLIENT[..2] => {
                Err(refused(401, "invalid_client", "There is no such client."))
            }
            [_, _, refresh] if refresh != CLIENT[2] => {
                Err(refused(400, "invalid_grant", "The token has expired or was taken back."))
            }
            _ => Ok(()),
        },
        _ => Err(refused(400, "unsupported_grant_type", "This kind of grant is not known.")),
    };
    match allowed {
        Ok(()) => given(state),
        Err(refusal) => refusal,
    }
}

fn given(state: &State) -> Answer {
    let mut bytes = [0; 24];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        return refused(500, "internal_failure", "There is no chance here.");
    }
    let token = format!("ya29.{}", BASE64_URL_SAFE_NO_PAD.encode(bytes));
    let token_s = state.provider.token_s;
    state.lock().tokens.0.insert(token.clone(), state.now() + Duration::from_secs(token_s));
    super::cloud_dns::json(200, &json!({ "access_token": token, "expires_in": token_s, "token_type": "Bearer" }))
}

/// Whether an assertion is signed by the account's key, of now, for here, and for what is here.
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
    // gcloud names Google, wherever it asks.
    if claims["aud"] != token_uri(state) && claims["aud"] != "https://oauth2.googleapis.com/token" {
        return Err(no("Invalid JWT: it is for somebody else."));
    }
    let scopes = claims["scope"].as_str().unwrap_or_default();
    if !scopes.split(' ').any(|scope| SCOPES.contains(&scope)) {
        return Err(refused(400, "invalid_scope", "The scope is not known."));
    }
    Ok(())
}

fn public_key() -> Option<UnparsedPublicKey<Vec<u8>>> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(KEY_PEM.as_bytes()).ok()?;
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok()?;
    Some(UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public().as_ref().to_vec()))
}
