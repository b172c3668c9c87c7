//! Other services of the clouds whose stores we know: requests signed with the same credentials.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Uri};

use super::address::{Address, encoded_query};
use super::client::{ANSWER_BYTES, Client};
use super::connect::fatal;
use super::credentials::{self, google_token};
use super::google::{File, Tokens};
use super::ini::Profile;
use super::keys::Keys;
use super::open::{Options, aws_region};
use super::refusal::{clock, retry_after};
use crate::{Attempt, BoxFuture, Failure};

/// A service of a cloud's, by its HTTP interface. Each request is made once; of credentials nothing is shown.
pub struct Service {
    client: Client,
    keys: Keys,
    base: String,
    /// Where tokens come from that can be had anew.
    tokens: Option<Arc<Tokens>>,
    project: Option<String>,
    payer: Option<HeaderValue>,
}

/// What a service answers, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP's.
    pub status: u16,
    /// What it says, without what it repeats of our credentials.
    pub text: String,
    /// How long it asks us to wait.
    pub retry_after: Option<Duration>,
    /// What its clock says of ours, where they are far apart: a clause for a sentence.
    pub clock: Option<String>,
}

impl Service {
    /// A service of AWS that a part of the world has one of, by its name in signatures and addresses (`route53`), and
    /// that of the variable for its endpoint (`AWS_ENDPOINT_URL_ROUTE_53`).
    ///
    /// # Errors
    /// [`Kind::Denied`](crate::Kind::Denied) where credentials are missing or can't be used.
    pub fn aws_global(name: &'static str, variable: &str, options: &Options) -> Result<Self, Failure> {
        let client = Client::new(options)?;
        let profile = Profile::read(options.profile.as_deref(), &options.environment)?;
        let (region, domain) = match aws_region(options, &profile) {
            region if region.starts_with("cn-") => ("cn-northwest-1", "amazonaws.com.cn"),
            region if region.starts_with("us-gov-") => ("us-gov-west-1", "us-gov.amazonaws.com"),
            _ => ("us-east-1", "amazonaws.com"),
        };
        let named = options.environment.first(&[variable, "AWS_ENDPOINT_URL"]);
        let endpoint = options.endpoint_url.as_deref().or(named).or_else(|| profile.get("endpoint_url"));
        let endpoint = endpoint.map_or_else(|| format!("https://{name}.{domain}"), String::from);
        let keys = credentials::aws(options, &profile, name, region, &client)?;
        let base = Address::parse(&endpoint)?.trimmed().into();
        Ok(Self { client, keys, base, tokens: None, project: None, payer: None })
    }

    /// A service of Google's, by its usual endpoint, with tokens for this scope.
    ///
    /// # Errors
    /// As for [`Self::aws_global`].
    pub fn google(endpoint: &str, scope: &'static str, options: &Options) -> Result<Self, Failure> {
        let client = Client::new(options)?;
        let base = Address::parse(options.endpoint_url.as_deref().unwrap_or(endpoint))?.trimmed().into();
        let named = options.environment.first(&["GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"]).map(String::from);
        if let Some(keys) = google_token(&options.environment) {
            return Ok(Self { client, keys, base, tokens: None, project: named, payer: None });
        }
        let (file, place) = File::find(&options.environment)?;
        let project = named.or_else(|| file.project_id.clone().or_else(|| file.quota_project_id.clone()));
        let payer = file.quota_project_id.as_ref().and_then(|payer| HeaderValue::try_from(payer).ok());
        let tokens = Arc::new(Tokens::new(client.clone(), file, place, scope));
        Ok(Self { client, keys: Keys::Google(tokens.clone()), base, tokens: Some(tokens), project, payer })
    }

    /// The project that the environment or the credentials name.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// Asks for what is at a path.
    ///
    /// # Errors
    /// Where there is no answer, or no token.
    pub fn get<'a>(&'a self, path: &'a str, query: &'a [(&'a str, &'a str)]) -> BoxFuture<'a, Result<Reply, Failure>> {
        Box::pin(async move {
            let query = if query.is_empty() { String::new() } else { format!("?{}", encoded_query(query)) };
            self.ask(&format!("{path}{query}"), None).await
        })
    }

    /// Sends something to a path.
    ///
    /// # Errors
    /// As for [`Self::get`]; [`Kind::Unanswered`](crate::Kind::Unanswered) if it may have been carried out.
    pub fn post<'a>(
        &'a self,
        path: &'a str,
        kind: &'static str,
        body: &'a str,
    ) -> BoxFuture<'a, Result<Reply, Failure>> {
        Box::pin(async move { self.ask(path, Some((kind, body))).await })
    }

    async fn ask(&self, path: &str, body: Option<(&'static str, &str)>) -> Result<Reply, Failure> {
        let reply = self.ask_once(path, body).await?;
        match &self.tokens {
            // It has been taken back, or this machine has slept.
            Some(tokens) if reply.status == 401 => {
                tokens.forget();
                self.ask_once(path, body).await
            }
            _ => Ok(reply),
        }
    }

    async fn ask_once(&self, path: &str, body: Option<(&'static str, &str)>) -> Result<Reply, Failure> {
        let address = format!("{}{path}", self.base);
        let uri: Uri = address.parse().map_err(|_| fatal(format!("`{path}` can't be in an address")))?;
        let mut request = Request::new(body.map_or("", |(_, body)| body).to_string().into());
        *request.uri_mut() = uri;
        if let Some((kind, _)) = body {
            *request.method_mut() = Method::POST;
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if let Some(payer) = &self.payer {
            request.headers_mut().insert("x-goog-user-project", payer.clone());
        }
        self.keys.sign(&mut request).await?;
        let secrets = secrets(request.headers());
        let (head, sent) = request.into_parts();
        let sent = sent.as_bytes().cloned().unwrap_or_default();
        let mut seen = Attempt::default();
        let mut answer = self.client.send(Request::from_parts(head, sent), body.is_some(), &mut seen).await?;
        let text = answer.bytes(ANSWER_BYTES, &mut seen).await?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Reply {
            status: answer.status.as_u16(),
            text: secrets.iter().fold(text, |text, secret| text.replace(secret, "…")),
            retry_after: retry_after(&answer.headers),
            clock: clock(&answer.headers, "the server's"),
        })
    }
}

/// What of a request nobody is to see.
fn secrets(headers: &HeaderMap) -> Vec<String> {
    let said = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_string());
    let token = said(AUTHORIZATION.as_str()).map(|said| said.trim_start_matches("Bearer ").to_string());
    [token, said("x-amz-security-token")].into_iter().flatten().filter(|secret| !secret.is_empty()).collect()
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("base", &self.base).finish_non_exhaustive()
    }
}
