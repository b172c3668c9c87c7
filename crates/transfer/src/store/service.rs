//! Access to other services of AWS and Google, such as DNS, with the same credentials as for their stores.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Uri};

use super::Result;
use super::address::{Address, encoded_query};
use super::aws;
use super::credentials::google_token;
use super::google_tokens::{CredentialsFile, Tokens};
use super::keys::Keys;
use super::open::Options;
use super::profile::Profile;
use super::refusal::{clock, retry_after};
use super::transport::{RequestInfo, Transport};
use crate::{Attempt, BoxFuture, Failure};

/// A client for the HTTP interface of a cloud service. Failed requests are not retried, with one exception. If the
/// server refuses a token that can be renewed, the request is sent once more with a new token. `Debug` never shows the
/// credentials.
pub struct Service {
    transport: Transport,
    keys: Keys,
    base: String,
    /// The source of new tokens; `None` if the credentials can't be renewed.
    tokens: Option<Arc<Tokens>>,
    project: Option<String>,
    payer: Option<HeaderValue>,
}

/// The answer of a service to a request. Its status may be an error status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status of the answer.
    pub status: u16,
    /// Body of the answer. If the service repeats credentials of the request in it, they are removed.
    pub text: String,
    /// Delay that the service requests before the next request.
    pub retry_after: Option<Duration>,
    /// A clause that describes the difference between the clocks of this machine and the server; `None` if it is small.
    pub clock: Option<String>,
}

impl Service {
    /// Opens a service of AWS that has one endpoint for all regions, such as Route 53. `name` is the name of the
    /// service in signatures and addresses, for example `route53`. `id` is its identifier in profiles and, in upper
    /// case, in the environment variable that can set the endpoint, for example `route_53`.
    ///
    /// # Errors
    /// Returns [`Kind::Denied`](crate::Kind::Denied) if credentials are missing or can't be used.
    pub fn aws_global(name: &'static str, id: &str, options: &Options) -> Result<Self> {
        let transport = Transport::new(options);
        let profile = Profile::read(options.profile.as_deref(), &options.environment)?;
        let (region, domain) = match aws::region(options, &profile) {
            region if region.starts_with("cn-") => ("cn-northwest-1", aws::domain(region)),
            region if region.starts_with("us-gov-") => ("us-gov-west-1", "us-gov.amazonaws.com"),
            _ => ("us-east-1", "amazonaws.com"),
        };
        let named = aws::endpoint(&options.environment, &profile, id);
        let endpoint = options.endpoint_url.as_deref().or(named);
        let endpoint = endpoint.map_or_else(|| format!("https://{name}.{domain}"), String::from);
        let keys = aws::keys(options, &profile, name, region, &transport)?;
        let base = Address::parse(&endpoint)?.trimmed().into();
        Ok(Self { transport, keys, base, tokens: None, project: None, payer: None })
    }

    /// Opens a service of Google. `endpoint` is its usual endpoint, which `options` may replace. `scope` is the OAuth
    /// scope of the access tokens.
    ///
    /// # Errors
    /// Returns the errors of [`Self::aws_global`].
    pub fn google(endpoint: &str, scope: &'static str, options: &Options) -> Result<Self> {
        let transport = Transport::new(options);
        let base = Address::parse(options.endpoint_url.as_deref().unwrap_or(endpoint))?.trimmed().into();
        let named = options.environment.first(&["GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"]).map(String::from);
        if let Some(keys) = google_token(&options.environment) {
            return Ok(Self { transport, keys, base, tokens: None, project: named, payer: None });
        }
        let (file, place) = CredentialsFile::find(&options.environment)?;
        let project = named.or_else(|| file.project_id.clone().or_else(|| file.quota_project_id.clone()));
        let payer = file.quota_project_id.as_ref().and_then(|payer| HeaderValue::try_from(payer).ok());
        let tokens = Arc::new(Tokens::new(transport.clone(), file, place, scope));
        Ok(Self { transport, keys: Keys::Google(tokens.clone()), base, tokens: Some(tokens), project, payer })
    }

    /// Returns the Google project that the environment or the credentials file names; `None` if neither names one.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// Sends a GET request. Answers with any status are returned.
    ///
    /// # Errors
    /// Fails if there is no answer, or if no token can be obtained.
    pub fn get<'a>(&'a self, path: &'a str, query: &'a [(&'a str, &'a str)]) -> BoxFuture<'a, Result<Reply>> {
        Box::pin(async move {
            let query = if query.is_empty() { String::new() } else { format!("?{}", encoded_query(query)) };
            self.send(&format!("{path}{query}"), None).await
        })
    }

    /// Sends a POST request with this body, whose media type is `kind`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::get`]. Returns [`Kind::Unanswered`](crate::Kind::Unanswered) if the answer was
    /// lost. The request may then have been carried out.
    pub fn post<'a>(&'a self, path: &'a str, kind: &'static str, body: &'a str) -> BoxFuture<'a, Result<Reply>> {
        Box::pin(async move { self.send(path, Some((kind, body))).await })
    }

    async fn send(&self, path: &str, body: Option<(&'static str, &str)>) -> Result<Reply> {
        let reply = self.send_once(path, body).await?;
        match &self.tokens {
            // The token may have been revoked, or it expired while this machine was asleep.
            Some(tokens) if reply.status == 401 => {
                tokens.forget();
                self.send_once(path, body).await
            }
            _ => Ok(reply),
        }
    }

    async fn send_once(&self, path: &str, body: Option<(&'static str, &str)>) -> Result<Reply> {
        let address = format!("{}{path}", self.base);
        let uri: Uri = address.parse().map_err(|_| Failure::fatal(format!("`{path}` can't be in an address")))?;
        let mut request = Request::new(body.map_or("", |(_, body)| body).to_string().into());
        *request.uri_mut() = uri;
        if let Some((kind, _)) = body {
            *request.method_mut() = Method::POST;
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if let Some(payer) = &self.payer {
            request.headers_mut().insert("x-goog-user-project", payer.clone());
        }
        self.keys.sign(&mut request, None).await?;
        let secrets = secrets(request.headers());
        let request = request.map(|body| body.as_bytes().cloned().unwrap_or_default());
        let mut attempt = Attempt::default();
        let info = RequestInfo { once: body.is_some(), ..RequestInfo::default() };
        let mut response = self.transport.send(request, info, &mut attempt).await?;
        let text = response.text(&mut attempt).await?;
        Ok(Reply {
            status: response.status.as_u16(),
            text: secrets.iter().fold(text, |text, secret| text.replace(secret, "…")),
            retry_after: retry_after(&response.headers),
            clock: clock(&response.headers, "the server's"),
        })
    }
}

/// Returns the secrets that the headers of a request contain.
fn secrets(headers: &HeaderMap) -> Vec<String> {
    let value = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_string());
    let token = value(AUTHORIZATION.as_str()).map(|value| value.trim_start_matches("Bearer ").to_string());
    [token, value("x-amz-security-token")].into_iter().flatten().filter(|secret| !secret.is_empty()).collect()
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("base", &self.base).finish_non_exhaustive()
    }
}
