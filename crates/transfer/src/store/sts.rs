//! Gets the temporary credentials of a role from AWS's Security Token Service (STS).

use std::path::PathBuf;
use std::time::SystemTime;

use async_trait::async_trait;
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use object_store::aws::AwsCredential;
use object_store::client::HttpRequestBody;
use serde::Deserialize;

use super::Result;
use super::address::encoded_query;
use super::keys::Keys;
use super::refusal::{clock, code, local_time};
use super::renewal::{Issued, Issuer};
use super::transport::{RequestInfo, Transport};
use crate::{Attempt, Failure};

/// Error codes with which STS asks for another attempt, although the status means a permanent error.
const BUSY: [&str; 3] = ["Throttling", "RequestLimitExceeded", "IDPCommunicationError"];

/// A role, and the proof that its credentials may be issued.
pub struct Role {
    pub transport: Transport,
    pub endpoint: String,
    pub arn: String,
    pub session_name: String,
    /// The parameters `ExternalId` and `DurationSeconds`, if they are configured.
    pub parameters: Vec<(&'static str, String)>,
    pub proof: Proof,
    /// Description of the configuration, for messages.
    pub place: String,
}

pub enum Proof {
    /// Credentials of a user or of another role. They sign the request.
    Keys(Keys),
    /// A file with a token of another identity provider, for example of a Kubernetes cluster. The provider replaces the
    /// file before the token expires, so each request reads it again.
    TokenFile(PathBuf),
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "AssumeRoleResult", alias = "AssumeRoleWithWebIdentityResult")]
    result: AnswerResult,
}

#[derive(Deserialize)]
struct AnswerResult {
    #[serde(rename = "Credentials")]
    credentials: SessionCredentials,
}

/// Credentials in the names that STS and the programs of `credential_process` use.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SessionCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<String>,
}

impl SessionCredentials {
    /// Returns the credentials; `None` if the time of their expiry is not valid.
    pub fn issued(self) -> Option<Issued> {
        let expires_at = match self.expiration {
            Some(time) => Some(SystemTime::from(chrono::DateTime::parse_from_rfc3339(&time).ok()?)),
            None => None,
        };
        let (key_id, secret_key, token) = (self.access_key_id, self.secret_access_key, self.session_token);
        Some(Issued { credential: AwsCredential { key_id, secret_key, token }, expires_at })
    }
}

#[async_trait]
impl Issuer for Role {
    async fn issue(&self) -> Result<Issued> {
        let action = match self.proof {
            Proof::Keys(_) => "AssumeRole",
            Proof::TokenFile(_) => "AssumeRoleWithWebIdentity",
        };
        let mut form = vec![
            ("Action", action),
            ("Version", "2011-06-15"),
            ("RoleArn", &self.arn),
            ("RoleSessionName", &self.session_name),
        ];
        form.extend(self.parameters.iter().map(|(name, value)| (*name, &**value)));
        let token = match &self.proof {
            Proof::Keys(_) => String::new(),
            Proof::TokenFile(file) => std::fs::read_to_string(file).map_err(|error| {
                Failure::denied(format!("could not read the web identity token in {}: {error}", file.display()))
            })?,
        };
        if !token.is_empty() {
            form.push(("WebIdentityToken", token.trim()));
        }
        let body = HttpRequestBody::from(encoded_query(&form));
        let request = Request::post(&self.endpoint).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let mut request = request.body(body).map_err(|_| {
            Failure::fatal("the endpoint of STS is not of the form http[s]://HOST[:PORT][/PATH]").of_whole_store()
        })?;
        if let Proof::Keys(keys) = &self.proof {
            keys.sign(&mut request, None).await?;
        }
        let request = request.map(|body| body.as_bytes().cloned().unwrap_or_default());
        let mut attempt = Attempt::default();
        let mut response = self.transport.send(request, RequestInfo::default(), &mut attempt).await?;
        let text = response.text(&mut attempt).await?;
        let host = &response.host;
        if response.status.is_success() {
            let answer: Option<Answer> = quick_xml::de::from_str(&text).ok();
            let issued = answer.and_then(|answer| answer.result.credentials.issued()).ok_or_else(|| {
                Failure::denied(format!("the answer of {host} contains no credentials; check the endpoint of STS"))
            })?;
            // Without the conversion, a machine with a slow clock would use expired credentials.
            let expires_at = issued.expires_at.map(|expiry| local_time(&response.headers, expiry));
            return Ok(Issued { expires_at, ..issued });
        }
        let (status, code) = (response.status.as_u16(), code(&response, &text).unwrap_or_default());
        if response.status.is_server_error() || status == 429 || BUSY.contains(&code) {
            return Err(Failure::transient(format!("{host} answers {status} {code}").trim_end()));
        }
        let way = clock(&response.headers, "the server's").unwrap_or_else(|| {
            format!("check whether the identity in {} exists and is allowed to assume this role", self.place)
        });
        let answer = format!("{status} {code}");
        Err(Failure::denied(format!("{host} does not issue credentials for {} ({}): {way}", self.arn, answer.trim())))
    }
}
