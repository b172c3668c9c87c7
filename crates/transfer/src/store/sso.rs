//! Gets the temporary credentials of a role from AWS IAM Identity Center (SSO), with the login that `aws sso login` has
//! left in `~/.aws/sso/cache`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use object_store::aws::AwsCredential;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Result;
use super::address::encoded_query;
use super::renewal::{Issued, Issuer, MARGIN};
use super::transport::{RequestInfo, Transport};
use crate::{Attempt, Failure};

/// A role in IAM Identity Center, and the file with the login.
pub struct SsoRole {
    pub transport: Transport,
    /// Endpoint of the portal, which issues the credentials of roles.
    pub portal: String,
    /// Endpoint of the service that renews logins.
    pub oidc: String,
    pub account: String,
    pub role: String,
    pub cache: PathBuf,
    /// The command that logs in, for messages.
    pub login: String,
}

/// The login in the cache. All fields are kept, because other tools use some of them.
struct Login(Map<String, Value>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    role_credentials: RoleCredentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RoleCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewToken {
    access_token: String,
    expires_in: u64,
    refresh_token: Option<String>,
}

/// Returns the name of the cache file for a session, or for the start URL of an old configuration.
pub fn cache_name(of: &str) -> String {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, of.as_bytes());
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hash}.json")
}

impl Login {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    /// Returns whether the time in the field `key` is more than `margin` in the future.
    fn holds(&self, key: &str, margin: Duration) -> bool {
        // Old versions of the AWS CLI write `UTC` instead of `Z`.
        let time = self.text(key).map(|time| time.replace("UTC", "Z"));
        let time = time.and_then(|time| chrono::DateTime::parse_from_rfc3339(&time).ok());
        time.is_some_and(|time| SystemTime::from(time) > SystemTime::now() + margin)
    }
}

impl SsoRole {
    fn expired(&self) -> Failure {
        Failure::denied(format!("the login has expired; run `{}`", self.login))
    }

    /// Returns a login that is valid. Renews it before it expires, if the cache contains what is needed for this.
    async fn login(&self) -> Result<Login> {
        let text = match fs::read_to_string(&self.cache) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let cache = self.cache.display();
                return Err(Failure::denied(format!("there is no login in {cache}; run `{}`", self.login)));
            }
            Err(error) => return Err(Failure::denied(format!("{}: {error}", self.cache.display()))),
        };
        let login = serde_json::from_str(&text).map(Login).ok().filter(|login| login.text("accessToken").is_some());
        let damaged = || Failure::denied(format!("{} is damaged; run `{}`", self.cache.display(), self.login));
        let login = login.ok_or_else(damaged)?;
        if login.holds("expiresAt", MARGIN) {
            return Ok(login);
        }
        let is_valid = login.holds("expiresAt", Duration::ZERO);
        match self.renewed(&login).await {
            Ok(renewed) => Ok(renewed),
            Err(_) if is_valid => Ok(login),
            Err(failure) => Err(failure),
        }
    }

    /// Renews a login with the refresh token in it, and writes the new login into the cache. The old refresh token may
    /// no longer be valid afterwards, so other tools need the new one.
    async fn renewed(&self, login: &Login) -> Result<Login> {
        let fields = ["clientId", "clientSecret", "refreshToken"].map(|key| login.text(key));
        let [Some(id), Some(secret), Some(refresh)] = fields else { return Err(self.expired()) };
        if !login.holds("registrationExpiresAt", Duration::ZERO) {
            return Err(self.expired());
        }
        let body = json!({
            "grantType": "refresh_token", "clientId": id, "clientSecret": secret, "refreshToken": refresh,
        });
        let request = Request::post(format!("{}/token", self.oidc)).header(CONTENT_TYPE, "application/json");
        let token: NewToken = self.request(request.body(body.to_string().into())).await?;
        let expires_at = SystemTime::now() + Duration::from_secs(token.expires_in.min(1 << 32));
        let expires_at = chrono::DateTime::<chrono::Utc>::from(expires_at).format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut fields = login.0.clone();
        fields.insert("accessToken".into(), token.access_token.into());
        fields.insert("expiresAt".into(), expires_at.into());
        if let Some(refresh) = token.refresh_token {
            fields.insert("refreshToken".into(), refresh.into());
        }
        let login = Login(fields);
        // The login is valid even if the cache can't be written, for example because it is read-only.
        let _ = self.write(&login);
        Ok(login)
    }

    /// Replaces the file in the cache. Only the user may read it.
    fn write(&self, login: &Login) -> std::io::Result<()> {
        let new = self.cache.with_extension(format!("{}.tmp", std::process::id()));
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(&login.0)?)?;
        fs::rename(new, &self.cache)
    }

    /// Sends a request, and parses the answer. The answer of a refusal is not shown, because it may repeat secrets.
    async fn request<T: for<'de> Deserialize<'de>>(&self, request: hyper::http::Result<Request<Bytes>>) -> Result<T> {
        let wrong = |_| {
            let words = "the endpoint, the region or the login of IAM Identity Center contains invalid characters";
            Failure::denied(format!("{words}; run `{}`", self.login))
        };
        let mut attempt = Attempt::default();
        let mut response = self.transport.send(request.map_err(wrong)?, RequestInfo::default(), &mut attempt).await?;
        let text = response.text(&mut attempt).await?;
        let (host, status) = (&response.host, response.status.as_u16());
        match status {
            200..300 => serde_json::from_str(&text)
                .map_err(|_| Failure::denied(format!("the answer of {host} contains no credentials"))),
            429 | 500.. => Err(Failure::transient(format!("{host} answers {status}"))),
            400 | 401 => Err(self.expired()),
            _ => Err(Failure::denied(format!(
                "{host} does not issue credentials for the role {} in the account {} ({status}); check both in the \
                 profile",
                self.role, self.account
            ))),
        }
    }
}

#[async_trait]
impl Issuer for SsoRole {
    async fn issue(&self) -> Result<Issued> {
        let login = self.login().await?;
        let query = encoded_query(&[("account_id", &self.account), ("role_name", &self.role)]);
        let request = Request::get(format!("{}/federation/credentials?{query}", self.portal))
            .header("x-amz-sso_bearer_token", login.text("accessToken").unwrap_or_default());
        let answer: Answer = self.request(request.body(Bytes::new())).await?;
        let RoleCredentials { access_key_id, secret_access_key, session_token, expiration } = answer.role_credentials;
        let (key_id, secret_key, token) = (access_key_id, secret_access_key, Some(session_token));
        let expires_at = UNIX_EPOCH.checked_add(Duration::from_millis(expiration));
        Ok(Issued { credential: AwsCredential { key_id, secret_key, token }, expires_at })
    }
}

#[cfg(test)]
mod tests {
    use super::cache_name;

    #[test]
    fn the_cache_is_named_by_the_sha1_of_the_session() {
        // The AWS CLI uses this name for a session `my-sso`.
        assert_eq!(cache_name("my-sso"), "0ad374308c5a4e22f723adf10145eafad7c4031c.json");
    }
}
