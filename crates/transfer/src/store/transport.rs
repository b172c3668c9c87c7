//! Sends signed requests over HTTP/1.1, and monitors their progress up to the last byte of the answer.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HOST, HeaderMap, HeaderValue, LAST_MODIFIED,
    PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::{Method, Request, StatusCode, Uri};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use tokio::sync::OwnedSemaphorePermit;

use super::Result;
use super::attributes::{MODIFIED, parse_modified};
use super::body::{Progress, SlicedBody};
use super::connections::{Connection, Connections, Endpoint};
use super::open::Options;
use super::refusal::{self, parse_time};
use crate::buffers::RangeWriter;
use crate::{Attempt, Failure, Kind, ObjectMeta};

/// Maximum size in bytes of an answer that does not carry an object.
pub const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// Factor by which the timeout is longer for requests that assemble an object. Some stores need minutes for this, and
/// send no answer meanwhile.
const FINAL: u32 = 5;
/// The headers with the version of an object, of S3, Azure and GCS.
const VERSIONS: [&str; 3] = ["x-amz-version-id", "x-ms-version-id", "x-goog-generation"];

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
    connection: Option<(Transport, Endpoint, Connection, OwnedSemaphorePermit)>,
    progress: Arc<Progress>,
}

impl Transport {
    pub fn new(options: &Options) -> Self {
        Self(Arc::new(Connections::new(options)))
    }

    /// Opens connections for requests that are about to be sent in parallel.
    pub async fn prepare(&self, uri: &Uri, connections: usize) {
        self.0.prepare(uri, connections).await;
    }

    /// Returns the host of the proxy for requests to this address; `None` for a direct connection.
    pub fn proxy(&self, uri: &Uri) -> Result<Option<String>> {
        let endpoint = Endpoint::from_uri(uri)?;
        Ok(self.0.proxy(&endpoint)?.map(|proxy| proxy.host().to_string()))
    }

    /// Sends a request, and waits for the head of the answer. If the answer is lost, the failure is
    /// [`Kind::Transient`], or [`Kind::Unanswered`] if the request must not be repeated.
    pub async fn send(&self, request: Request<Bytes>, info: RequestInfo, attempt: &mut Attempt) -> Result<Response> {
        let about = |failure| info.about(failure);
        attempt.restart();
        let endpoint = Endpoint::from_uri(request.uri()).map_err(about)?;
        if let Some(contact) = &attempt.contact {
            contact.set_host(&endpoint);
        }
        let proxy = self.0.proxy(&endpoint).map_err(about)?;
        let (permit, mut connection) = self.0.get(&endpoint, proxy.as_ref(), attempt).await.map_err(about)?;
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
        let clock = attempt.clock.clone().unwrap_or_default();
        let progress = Arc::new(Progress::new(timeout, body.is_empty(), clock, attempt.contact.clone()));
        let body = SlicedBody::new(body, Arc::clone(&progress), attempt.rate_limit.clone());
        let Connection { sender, driver, request: current } = &mut connection;
        current.set(&progress);
        attempt.sent = Some(Instant::now());
        let sending = progress.watch(driver.run(sender.send_request(Request::from_parts(head, body)))).await;
        attempt.sent = progress.sent().or(attempt.sent);
        attempt.timed_out = sending.is_none();
        let answer = sending.ok_or_else(|| info.lost(&endpoint, "timed out without progress"))?.map_err(|error| {
            let lost = info.lost(&endpoint, &with_cause("the request was cut off", &error));
            // The library reports "canceled" only if the request was not sent.
            if error.is_canceled() { Failure { kind: Kind::Transient(None), ..lost } } else { lost }
        })?;
        attempt.header = Some(Instant::now());
        attempt.status = Some(answer.status().as_u16());
        let (head, body) = answer.into_parts();
        let (status, headers, host) = (head.status, head.headers, endpoint.to_string());
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(String::from);
        attempt.version = VERSIONS.iter().find_map(|name| text(name));
        attempt.encoding = text(CONTENT_ENCODING.as_str());
        let connection = Some((self.clone(), endpoint, connection, permit));
        Ok(Response { status, headers, host, request: info, body, connection, progress })
    }
}

impl Response {
    /// Returns the next bytes of the body; `None` at the end of the body.
    pub async fn chunk(&mut self, attempt: &mut Attempt) -> Result<Option<Bytes>> {
        loop {
            let next = std::future::poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let frame = match &mut self.connection {
                Some((_, _, connection, _)) => self.progress.watch(connection.driver.run(next)).await,
                // The body is at its end.
                None => Some(None),
            };
            attempt.timed_out = frame.is_none();
            match frame.ok_or_else(|| self.request.lost(&self.host, "timed out without progress"))? {
                None => break,
                Some(Err(error)) => {
                    return Err(self.request.lost(&self.host, &with_cause("the answer was cut off", &error)));
                }
                Some(Ok(frame)) => {
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
        let is_reusable = self.progress.is_sent() && !attempt.is_fresh;
        if let Some((transport, endpoint, connection, _permit)) = self.connection.take().filter(|_| is_reusable) {
            transport.0.keep(endpoint, connection, false);
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

    /// Appends the whole body to `into` as it arrives. Fails if the body has more than `most` bytes.
    pub async fn append(&mut self, most: u64, into: &mut Vec<u8>, attempt: &mut Attempt) -> Result<()> {
        let before = into.len();
        while let Some(bytes) = self.chunk(attempt).await? {
            if (into.len() - before + bytes.len()) as u64 > most {
                let failure = Failure::new(Kind::Corrupted, "the answer has more bytes than the object");
                return Err(self.request.about(failure));
            }
            into.extend_from_slice(&bytes);
        }
        Ok(())
    }

    /// Returns the whole body as text. Fails if the body has more than [`MAX_ANSWER_BYTES`].
    pub async fn text(&mut self, attempt: &mut Attempt) -> Result<String> {
        let bytes = self.bytes(MAX_ANSWER_BYTES, attempt).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads the whole body into a writer. Fails if the body does not have the size of the writer's range.
    pub async fn fill(&mut self, mut into: RangeWriter, attempt: &mut Attempt) -> Result<RangeWriter> {
        self.add_to(&mut into, attempt).await?;
        into.whole().map_err(|failure| self.request.about(failure))
    }

    /// Adds the whole body to a writer. Fails if the body exceeds the writer's range.
    pub async fn add_to(&mut self, into: &mut RangeWriter, attempt: &mut Attempt) -> Result<()> {
        while let Some(next) = self.chunk(attempt).await? {
            into.add(&next).map_err(|failure| self.request.about(failure))?;
        }
        Ok(())
    }

    /// Returns the value of a header; `None` if the header is missing or is not ASCII text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the metadata of the object `name` with `bytes` bytes. The ETag and the modification times come from the
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

    /// Returns a failure if the answer has other bytes than the requested range of an object.
    pub fn check_range(&self, range: Option<&Range<u64>>) -> Result<()> {
        let Some(range) = range else { return Ok(()) };
        let expected = format!("bytes {}-{}/", range.start, range.end.saturating_sub(1));
        let problem = match self.header(CONTENT_RANGE.as_str()) {
            Some(answered) if answered.starts_with(&expected) => return Ok(()),
            // A server may send the whole object if the range contains all of its bytes.
            None if range.start == 0 && self.body.size_hint().exact() == Some(range.end) => return Ok(()),
            None => "the store sent the whole object instead of a range",
            Some(_) => "the store sent another range than the requested one",
        };
        Err(self.request.about(Failure::new(Kind::Corrupted, problem)))
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
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::contact::Contact;

    /// The server takes 4 KiB per second, and the body has 600 KiB. The HTTP library buffers most of the body at once,
    /// so only the connection shows that bytes move.
    #[tokio::test(start_paused = true)]
    async fn a_slow_upload_makes_progress() {
        const BYTES: usize = 600 << 10;
        let transport = Transport::new(&Options { timeout: Some(Duration::from_secs(20)), ..Options::default() });
        let (client, mut server) = tokio::io::duplex(16 << 10);
        let uri: Uri = "http://store/".parse().unwrap();
        transport.0.keep_stream(Endpoint::from_uri(&uri).unwrap(), client).await;
        let serving = tokio::spawn(async move {
            let (mut read, mut step) = (0, [0; 4 << 10]);
            while read < BYTES {
                read += server.read(&mut step).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
            server
        });
        let (began, contact) = (tokio::time::Instant::now(), Arc::new(Contact::new()));
        let mut attempt = Attempt { contact: Some(Arc::clone(&contact)), ..Attempt::default() };
        let request = Request::put(uri).body(Bytes::from(vec![0; BYTES])).unwrap();
        let response = transport.send(request, RequestInfo::default(), &mut attempt).await.unwrap();
        assert_eq!(response.status, 200);
        assert!(contact.latest() - began > Duration::from_secs(100), "the outage was not over");
        serving.await.unwrap();
    }
}
