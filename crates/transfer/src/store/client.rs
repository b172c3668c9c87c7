//! Requests over HTTP/1.1. Each request is signed, sent once, and monitored for progress up to the last byte of the
//! answer. If the store refuses a request, the failure contains an explanation.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{
    CONTENT_LENGTH, ETAG, HOST, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::{Method, Request, StatusCode, Uri};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpService,
};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;

use super::Result;
use super::address::{Address, encoded_name, encoded_query};
use super::attributes::{MODIFIED, parse_modified};
use super::body::{Progress, SlicedBody};
use super::connections::{Connections, Endpoint};
use super::keys::Keys;
use super::open::Options;
use super::refusal::{self, parse_time};
use crate::buffers::RangeWriter;
use crate::{Attempt, Failure, Kind, ObjectMeta, PutOptions};

/// Maximum size in bytes of an answer that does not carry an object.
const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// The message if a server's answer is not the answer of a store. Causes are for example a captive portal or a wrong
/// endpoint.
pub const NO_STORE: &str = "the server does not look like a store of this kind; check the endpoint";
/// The message if a list of objects never ends, because one of its pages refers to an earlier page.
const CIRCULAR_LIST: &str = "the pages of the list refer to each other in a circle";
/// Factor by which the timeout is longer for requests that assemble an object. Some stores need minutes for this, and
/// send no answer meanwhile.
const FINAL: u32 = 5;

/// HTTP headers, each with its name in lower case and its value.
pub type Headers = Vec<(&'static str, String)>;

/// A request to a store, before it is signed.
#[derive(Default)]
pub struct Call<'a> {
    pub method: Method,
    pub name: &'a str,
    pub query: &'a [(&'a str, &'a str)],
    pub headers: Headers,
    /// Further headers with the metadata of an object, each with its name in lower case and its value.
    pub metadata: Vec<(String, String)>,
    pub body: Bytes,
    /// `true` if the request must not be repeated. If its answer is lost, the failure is [`Kind::Unanswered`].
    pub once: bool,
    /// `true` if the store assembles an object, which may take minutes.
    pub assembles: bool,
}

/// An HTTP client for a bucket or container.
pub struct Client {
    transport: Transport,
    keys: Keys,
    base: String,
    shown: String,
    /// Headers that every request has.
    headers: Headers,
    credentials: Option<&'static str>,
    /// The configured region of S3; `None` for other stores.
    region: Option<String>,
    /// The region that the store has named instead. It applies to all later requests.
    moved: OnceLock<Moved>,
}

/// The actual region of a bucket, and the bucket's address there.
struct Moved {
    region: String,
    base: String,
}

impl Client {
    /// Creates a client for the bucket or container at the address `base`. `shown` is the form of this address in
    /// messages, and `credentials` states in messages where the `keys` come from. Every request has the `headers`.
    pub fn new(
        transport: Transport,
        base: &str,
        shown: String,
        headers: Headers,
        (keys, credentials): (Keys, &'static str),
    ) -> Result<Self> {
        let base = Address::parse(base)?.trimmed().to_string();
        let credentials = (!matches!(keys, Keys::Anonymous)).then_some(credentials);
        Ok(Self { transport, keys, base, shown, headers, credentials, region: None, moved: OnceLock::new() })
    }

    /// Sets the region of S3. If the store names another region, the client uses that one from then on.
    pub fn in_region(self, region: String) -> Self {
        Self { region: Some(region), ..self }
    }

    /// Returns the address of the bucket.
    fn base(&self) -> &str {
        self.moved.get().map_or(&self.base, |moved| &moved.base)
    }

    /// Uses `region` for all later requests. Returns `false` if this would change nothing. The host stays in its
    /// domain: only the name of the region in it is replaced.
    fn follow(&self, region: &str) -> bool {
        let Some(configured) = self.region.as_ref().filter(|configured| *configured != region) else { return false };
        let base = in_region(&self.base, configured, region);
        if base == self.base && matches!(self.keys, Keys::Anonymous) {
            return false;
        }
        // If another request has followed the same redirect meanwhile, there is nothing to set.
        let _ = self.moved.set(Moved { region: region.into(), base });
        true
    }

    /// Returns the address of an object for messages. If the name is empty, returns the address of the bucket.
    fn address(&self, name: &str) -> String {
        if name.is_empty() { self.shown.clone() } else { format!("{}/{name}", self.shown) }
    }

    /// Creates a failure whose message starts with the address of an object.
    pub fn failure(&self, name: &str, kind: Kind, message: &str) -> Failure {
        Failure::new(kind, message).about(&self.address(name))
    }

    /// Opens connections for requests that are about to be sent in parallel.
    pub async fn connect(&self, connections: usize) {
        if let Ok(uri) = self.base().parse() {
            self.transport.0.prepare(&uri, connections).await;
        }
    }

    /// Signs and sends a request. Turns every status except success into a failure.
    pub async fn send(&self, call: Call<'_>, attempt: &mut Attempt) -> Result<Response> {
        let (response, text) = self.send_any(&call, attempt).await?;
        if response.status.is_success() { Ok(response) } else { Err(refusal::failure(&response, &text)) }
    }

    /// Signs and sends a request, and repeats it once if the store names another region for the bucket. Returns answers
    /// of every status. If the answer has an error status, its body has been read and is returned as text.
    async fn send_any(&self, call: &Call<'_>, attempt: &mut Attempt) -> Result<(Response, String)> {
        let was_moved = self.moved.get().is_some();
        let (response, text) = self.send_once(call, attempt).await?;
        // A redirect means that the store has not carried out the request.
        let region = refusal::other_region(&response, &text).filter(|_| !was_moved).map(String::from);
        if region.is_some_and(|region| self.follow(&region)) {
            // The second request may need the permit for the connection of the first one.
            drop(response);
            return self.send_once(call, attempt).await;
        }
        Ok((response, text))
    }

    async fn send_once(&self, call: &Call<'_>, attempt: &mut Attempt) -> Result<(Response, String)> {
        let (method, subject) = (call.method.clone(), self.address(call.name));
        let Call { once, assembles, .. } = *call;
        let info = RequestInfo { method, subject, credentials: self.credentials, once, assembles };
        let request = self.sign(call).await.map_err(|failure| failure.about(&info.subject))?;
        let mut response = self.transport.send(request, info, attempt).await?;
        let mut text = String::new();
        if !response.status.is_success() {
            // If the body can't be read, the explanation uses only the status.
            text = response.text(attempt).await.unwrap_or_default();
        }
        Ok((response, text))
    }

    /// Sends a request whose answer carries no object. Returns the head of the answer, and its body as text.
    pub async fn send_for_text(&self, call: Call<'_>, attempt: &mut Attempt) -> Result<(Response, String)> {
        let mut response = self.send(call, attempt).await?;
        let text = response.text(attempt).await?;
        Ok((response, text))
    }

    /// Requests a list of objects page by page. `parse` returns the objects of a page, and the token of the next page
    /// if there is one. The token is sent as the query parameter `key`.
    pub async fn list(
        &self,
        query: &[(&str, &str)],
        key: &str,
        attempt: &mut Attempt,
        parse: impl Fn(&str) -> Result<(Vec<ObjectMeta>, Option<String>)>,
    ) -> Result<Vec<ObjectMeta>> {
        let (mut found, mut tokens) = (Vec::new(), Vec::<String>::new());
        loop {
            let mut query = query.to_vec();
            query.extend(tokens.last().map(|token| (key, &**token)));
            let (_, text) = self.send_for_text(Call { query: &query, ..Call::default() }, attempt).await?;
            let (objects, next) = parse(&text)?;
            found.extend(objects);
            match next {
                None => return Ok(found),
                Some(next) if !tokens.contains(&next) => tokens.push(next),
                Some(_) => return Err(self.failure("", Kind::Fatal, CIRCULAR_LIST)),
            }
        }
    }

    /// Parses the body of an answer as XML. The error names the object `name`.
    pub fn parse<'de, T: Deserialize<'de>>(&self, name: &str, text: &'de str) -> Result<T> {
        quick_xml::de::from_str(text).map_err(|_| self.failure(name, Kind::Fatal, NO_STORE))
    }

    async fn sign(&self, call: &Call<'_>) -> Result<Request<Bytes>> {
        let mut address = self.base().to_string();
        if !call.name.is_empty() {
            address = format!("{address}/{}", encoded_name(call.name)?);
        }
        if !call.query.is_empty() {
            address = format!("{address}?{}", encoded_query(call.query));
        }
        let mut request = Request::new(HttpRequestBody::empty());
        *request.uri_mut() = address.parse().map_err(|_| Failure::fatal("the name is too long for an address"))?;
        for (name, value) in self.headers.iter().chain(&call.headers) {
            let value = HeaderValue::try_from(value)
                .map_err(|_| Failure::fatal(format!("a header can't contain `{value}`")))?;
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        for (name, value) in &call.metadata {
            let invalid = || Failure::fatal(format!("a header can't be `{name}: {value}`"));
            let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            request.headers_mut().extend([header.ok_or_else(invalid)?]);
        }
        if matches!(call.method, Method::PUT | Method::POST) {
            // The header is set before signing, because Azure's signature includes it.
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(call.body.len()));
        }
        *request.method_mut() = call.method.clone();
        self.keys.sign(&mut request, self.moved.get().map(|moved| &*moved.region)).await?;
        Ok(request.map(|_| call.body.clone()))
    }

    /// Removes the object `name`, or the upload that `query` names. Succeeds if it is already missing.
    pub async fn delete(&self, name: &str, query: &[(&str, &str)], attempt: &mut Attempt) -> Result<()> {
        let call = Call { method: Method::DELETE, name, query, ..Call::default() };
        match self.send_for_text(call, attempt).await {
            Err(failure) if failure.kind != Kind::Missing => Err(failure),
            _ => Ok(()),
        }
    }

    /// Describes an object, by a HEAD request. Returns `None` if the object does not exist.
    pub async fn head(
        &self,
        name: &str,
        mut headers: Headers,
        attempt: &mut Attempt,
    ) -> Result<Option<(Response, ObjectMeta)>> {
        let was_moved = self.moved.get().is_some();
        let call = Call { method: Method::HEAD, name, headers: headers.clone(), ..Call::default() };
        let (mut response, _) = self.send_any(&call, attempt).await?;
        let mut text = String::new();
        // An answer to HEAD has no body. A GET request asks for the reason, which may be the bucket's region.
        if response.status == 400 {
            headers.push(("range", "bytes=0-0".into()));
            if let Ok((_, answered)) = self.send_any(&Call { name, headers, ..Call::default() }, attempt).await {
                text = answered;
            }
            if !was_moved && self.moved.get().is_some() {
                response = self.send_once(&call, attempt).await?.0;
            }
        }
        // The body is empty, but must be read to its end before the connection can be reused.
        if response.status.is_success() {
            response.bytes(MAX_ANSWER_BYTES, attempt).await?;
        }
        let code = refusal::code(&response, "");
        if response.status == 404 && !code.is_some_and(|code| ["ContainerNotFound", "NoSuchBucket"].contains(&code)) {
            return Ok(None);
        }
        if !response.status.is_success() {
            return Err(refusal::failure(&response, &text));
        }
        if response.header(ETAG.as_str()).is_none() {
            return Err(self.failure(name, Kind::Fatal, NO_STORE));
        }
        let bytes = response.header("content-length").and_then(|bytes| bytes.parse().ok());
        let bytes =
            bytes.ok_or_else(|| self.failure(name, Kind::Fatal, "the store does not send the length of the object"))?;
        let meta = response.meta(name, bytes);
        Ok(Some((response, meta)))
    }

    /// Requests the whole object that `of` describes. Fails if the object has changed since `of` was read.
    pub async fn get(&self, of: &ObjectMeta, mut headers: Headers, attempt: &mut Attempt) -> Result<Response> {
        headers.extend(of.etag.clone().map(|etag| ("if-match", etag)));
        let response = self.send(Call { name: &of.name, headers, ..Call::default() }, attempt).await?;
        response.check_unchanged(of)?;
        Ok(response)
    }

    /// Requests a range of the object that `of` describes. Fails if the object has changed since `of` was read.
    pub async fn get_range(
        &self,
        of: &ObjectMeta,
        range: &Range<u64>,
        mut headers: Headers,
        attempt: &mut Attempt,
    ) -> Result<Response> {
        if range.is_empty() {
            return Err(self.failure(&of.name, Kind::Fatal, "can't request an empty range"));
        }
        headers.push(("range", format!("bytes={}-{}", range.start, range.end - 1)));
        let response = self.get(of, headers, attempt).await?;
        let expected = format!("bytes {}-{}/", range.start, range.end - 1);
        let problem = match response.header("content-range") {
            // If the header `Content-Range` is missing, the answer is the whole object. This is correct if the whole
            // object was requested.
            None if *range == (0..of.bytes) => return Ok(response),
            Some(range) if range.starts_with(&expected) => return Ok(response),
            None => "the store sent the whole object instead of a range",
            Some(_) => "the store sent another range than the requested one",
        };
        Err(self.failure(&of.name, Kind::Corrupted, problem))
    }
}

/// Adds the quotes that an ETag has in headers, if they are missing.
pub fn quoted(etag: String) -> String {
    if etag.ends_with('"') { etag } else { format!("\"{etag}\"") }
}

/// Converts the failure of a request after which the stored bytes differ from the sent ones. Usually, a repeated
/// request replaces the stored bytes. If it must not replace an object, the failure is fatal.
pub fn refused_again(failure: Failure, options: &PutOptions) -> Failure {
    if options.no_clobber { Failure { kind: Kind::Fatal, ..failure } } else { failure }
}

/// Replaces the name of the region in the host of an address. Does not change hosts without it.
fn in_region(base: &str, from: &str, to: &str) -> String {
    let Some((scheme, rest)) = base.split_once("://") else { return base.into() };
    let end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let mut labels: Vec<String> = host.split('.').map(String::from).collect();
    // The name of the bucket, in front of the host, may be the same.
    match labels.iter().rposition(|label| label == from || label.strip_prefix("s3-") == Some(from)) {
        Some(at) => labels[at] = labels[at].replace(from, to),
        None if host == "s3.amazonaws.com" || host.ends_with(".s3.amazonaws.com") => {
            labels.insert(labels.len() - 2, to.into());
        }
        None => {}
    }
    format!("{scheme}://{}{path}", labels.join("."))
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("shown", &self.shown).finish_non_exhaustive()
    }
}

/// The properties of a request that messages about its failure need.
#[derive(Default)]
pub struct RequestInfo {
    pub method: Method,
    /// Address of the object or store for messages. It contains no secrets, and may be empty.
    pub subject: String,
    /// Description of where the credentials come from; `None` if there are no credentials.
    pub credentials: Option<&'static str>,
    /// `true` if the request must not be repeated.
    pub once: bool,
    /// `true` if the store assembles an object, which may take minutes.
    pub assembles: bool,
}

impl RequestInfo {
    fn about(&self, failure: Failure) -> Failure {
        if self.subject.is_empty() { failure } else { failure.about(&self.subject) }
    }

    /// Creates the failure for a request whose answer was lost. `host` is the server, and `how` describes the loss.
    fn lost(&self, host: impl fmt::Display, how: &str) -> Failure {
        let kind = if self.once { Kind::Unanswered } else { Kind::Transient(None) };
        self.about(Failure::new(kind, format!("{host}: {how}")))
    }
}

/// Sends requests that are already signed. Clones share the same connections.
#[derive(Clone)]
pub struct Transport(Arc<Connections>);

/// The head of an answer, and access to its body. After the answer, the connection is reused if the whole request was
/// sent and the whole body was read.
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Host and port of the server that answered.
    pub host: String,
    pub request: RequestInfo,
    body: Incoming,
    /// The connection, and the permit for the request that it carries.
    connection: Option<(Transport, Endpoint, SendRequest<SlicedBody>, OwnedSemaphorePermit)>,
    progress: Arc<Progress>,
}

impl Transport {
    pub fn new(options: &Options) -> Result<Self> {
        Connections::new(options).map(Arc::new).map(Self)
    }

    /// Sends a request, and waits for the head of the answer. If the answer is lost, the failure is
    /// [`Kind::Transient`], or [`Kind::Unanswered`] if the request must not be repeated.
    pub async fn send(&self, request: Request<Bytes>, info: RequestInfo, attempt: &mut Attempt) -> Result<Response> {
        let about = |failure| info.about(failure);
        let Attempt { rate_limit, contact, clock, .. } = std::mem::take(attempt);
        *attempt = Attempt { began: Some(Instant::now()), rate_limit, contact, clock, ..Attempt::default() };
        let endpoint = Endpoint::from_uri(request.uri()).map_err(about)?;
        if let Some(contact) = &attempt.contact {
            contact.set_host(&endpoint);
        }
        let proxy = self.0.proxy(&endpoint).map_err(about)?;
        let (mut sender, permit) = self.0.get(&endpoint, proxy.as_ref(), attempt).await.map_err(about)?;
        let (mut head, body) = request.into_parts();
        let host = head.uri.authority().map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default());
        let host = HeaderValue::try_from(host.unwrap_or_default());
        head.headers.insert(HOST, host.map_err(|_| about(Failure::fatal("the host in the address is not valid")))?);
        head.headers.insert(USER_AGENT, HeaderValue::from_static(concat!("ascertain/", env!("CARGO_PKG_VERSION"))));
        if matches!(head.method, Method::PUT | Method::POST) {
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        // A request contains the whole address only if it is unencrypted and goes to a proxy. Other requests contain
        // only the path and query.
        match proxy.filter(|_| !endpoint.secure) {
            Some(proxy) => {
                head.headers.extend(proxy.authorization.map(|value| (PROXY_AUTHORIZATION, value)));
            }
            None => head.uri = head.uri.path_and_query().cloned().map(Uri::from).unwrap_or_default(),
        }
        let timeout = self.0.timeout.saturating_mul(if info.assembles { FINAL } else { 1 });
        let progress = Arc::new(Progress::new(timeout, body.is_empty(), attempt.contact.clone()));
        let body = SlicedBody::new(body, Arc::clone(&progress), attempt.rate_limit.clone());
        let sending = progress.watch(sender.send_request(Request::from_parts(head, body))).await;
        attempt.moved = Some(progress.moved());
        let answer = sending.ok_or_else(|| info.lost(&endpoint, "timed out without progress"))?.map_err(|error| {
            let lost = info.lost(&endpoint, &with_cause("the request was cut off", &error));
            // The library reports "canceled" only if the request was not sent.
            if error.is_canceled() { Failure { kind: Kind::Transient(None), ..lost } } else { lost }
        })?;
        attempt.header = Some(Instant::now());
        attempt.status = Some(answer.status().as_u16());
        let (head, body) = answer.into_parts();
        let (status, headers, host) = (head.status, head.headers, endpoint.to_string());
        let connection = Some((self.clone(), endpoint, sender, permit));
        Ok(Response { status, headers, host, request: info, body, connection, progress })
    }
}

impl Response {
    /// Returns the next bytes of the body; `None` at the end of the body.
    pub async fn chunk(&mut self, attempt: &mut Attempt) -> Result<Option<Bytes>> {
        loop {
            let next = std::future::poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let frame = self.progress.watch(next).await;
            attempt.moved = Some(self.progress.moved());
            match frame.ok_or_else(|| self.request.lost(&self.host, "timed out without progress"))? {
                None => break,
                Some(Err(error)) => {
                    return Err(self.request.lost(&self.host, &with_cause("the answer was cut off", &error)));
                }
                Some(Ok(frame)) => {
                    self.progress.touch();
                    // A refusal does not end an outage.
                    if self.status.is_success() {
                        self.progress.touch_contact();
                    }
                    if let Ok(bytes) = frame.into_data() {
                        attempt.first_byte.get_or_insert_with(Instant::now);
                        return Ok(Some(bytes));
                    }
                }
            }
        }
        attempt.last_byte.get_or_insert_with(Instant::now);
        // If the server answered before the whole request was sent, the connection can't be reused. The server would
        // read the rest of the request as the next request.
        if let Some((transport, endpoint, sender, _permit)) = self.connection.take().filter(|_| self.progress.is_sent())
        {
            transport.0.keep(endpoint, sender, false);
        }
        Ok(None)
    }

    /// Returns the whole body. Fails if it has more than `most` bytes.
    pub async fn bytes(&mut self, most: u64, attempt: &mut Attempt) -> Result<Bytes> {
        let expected = self.body.size_hint().lower().min(most);
        let mut whole = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
        while let Some(bytes) = self.chunk(attempt).await? {
            if (whole.len() + bytes.len()) as u64 > most {
                let message = format!("{} sent more than the expected {most} bytes", self.host);
                return Err(self.request.about(Failure::fatal(message)));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.into())
    }

    /// Returns the whole body as text. Fails if the body has more than [`MAX_ANSWER_BYTES`].
    pub async fn text(&mut self, attempt: &mut Attempt) -> Result<String> {
        let bytes = self.bytes(MAX_ANSWER_BYTES, attempt).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads the whole body into a writer. Fails if the body does not have the size of the writer's range.
    pub async fn fill(&mut self, mut into: RangeWriter, attempt: &mut Attempt) -> Result<RangeWriter> {
        while let Some(next) = self.chunk(attempt).await? {
            into.add(&next).map_err(|failure| self.request.about(failure))?;
        }
        into.whole().map_err(|failure| self.request.about(failure))
    }

    /// Returns the value of a header; `None` if the header is missing or is not ASCII text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the metadata of the object `name` with `bytes` bytes. ETag and modification times are those in the
    /// headers of the answer.
    pub fn meta(&self, name: &str, bytes: u64) -> ObjectMeta {
        let modified = self.header(LAST_MODIFIED.as_str()).and_then(parse_time);
        let etag = self.header(ETAG.as_str()).map(Into::into);
        let file_modified = MODIFIED.iter().find_map(|name| parse_modified(self.header(name)?));
        ObjectMeta { name: name.into(), bytes, etag, modified, file_modified, ..ObjectMeta::default() }
    }

    /// Returns a failure if the answer is about another version of the object than `of` describes. Some stores need
    /// this check because they ignore `If-Match`.
    pub fn check_unchanged(&self, of: &ObjectMeta) -> Result<()> {
        let now = self.meta(&of.name, of.bytes);
        let differs = match (&of.etag, &now.etag) {
            (Some(then), Some(now)) => then != now,
            _ => of.modified.zip(now.modified).is_some_and(|(then, now)| then != now),
        };
        if differs {
            let failure = Failure::new(Kind::Changed, "the object has changed since it was first read");
            return Err(self.request.about(failure));
        }
        Ok(())
    }

    /// Reads the body of an answer with an error status, and returns a failure that explains it.
    pub async fn refusal(mut self, attempt: &mut Attempt) -> Failure {
        // If the body can't be read, the explanation uses only the status.
        let text = self.text(attempt).await.unwrap_or_default();
        refusal::failure(&self, &text)
    }
}

fn with_cause(what: &str, error: &hyper::Error) -> String {
    // hyper's own message describes the symptom; the message of its source describes the cause.
    error.source().map_or_else(|| format!("{what}: {error}"), |cause| format!("{what}: {error}: {cause}"))
}

/// Lets the crate `object_store`, which gets tokens for us, send its requests over our connections.
#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let request = request.map(|body| body.as_bytes().cloned().unwrap_or_default());
        let mut attempt = Attempt::default();
        let sending = async {
            let mut response = self.send(request, RequestInfo::default(), &mut attempt).await?;
            let bytes = response.bytes(MAX_ANSWER_BYTES, &mut attempt).await?;
            if response.status.is_server_error() || response.status == StatusCode::TOO_MANY_REQUESTS {
                let message = format!("{} answers {}", response.host, response.status.as_u16());
                return Err(Failure::transient(message));
            }
            let mut answer = HttpResponse::new(bytes.into());
            *answer.status_mut() = response.status;
            *answer.headers_mut() = std::mem::take(&mut response.headers);
            Ok(answer)
        };
        // Because of the kind `Unknown`, `object_store` does not repeat its request for a token. The caller repeats the
        // request that needs the token.
        sending.await.map_err(|failure: Failure| HttpError::new(HttpErrorKind::Unknown, failure))
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::in_region;

    #[test]
    fn another_region_changes_only_its_name_in_the_host() {
        for (base, expected) in [
            ("https://box.s3.old-1.amazonaws.com", "https://box.s3.new-2.amazonaws.com"),
            ("https://s3.old-1.amazonaws.com/box", "https://s3.new-2.amazonaws.com/box"),
            ("https://s3-old-1.amazonaws.com/box", "https://s3-new-2.amazonaws.com/box"),
            ("https://old-1.s3.old-1.example.com:90/old-1", "https://old-1.s3.new-2.example.com:90/old-1"),
            ("https://s3.amazonaws.com/box", "https://s3.new-2.amazonaws.com/box"),
            ("https://box.s3.amazonaws.com", "https://box.s3.new-2.amazonaws.com"),
            ("http://127.0.0.1:9000/old-1", "http://127.0.0.1:9000/old-1"),
            ("http://evils3.amazonaws.com/box", "http://evils3.amazonaws.com/box"),
        ] {
            assert_eq!(in_region(base, "old-1", "new-2"), expected);
        }
    }
}
