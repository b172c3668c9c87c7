//! Requests over HTTP/1.1, each made once and watched from the connection to the last byte. Connections are kept and
//! used again; nothing is ever sent twice.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep_until, timeout};

use super::connect::{Connector, Place, Proxy, fatal, transient};
use super::open::Options;
use crate::buffers::Filling;
use crate::moving::Pace;
use crate::{Attempt, Failure, Kind};

/// Servers close what nobody uses; a connection is left alone before most of them do.
const KEPT: Duration = Duration::from_secs(4);
/// What is handed on at a time, so that it is seen whether anything still moves.
const SLICE_BYTES: usize = 256 << 10;
/// What is read at a time: it is in the processor's cache when it is copied into its block.
const READ_BYTES: usize = 256 << 10;
/// The most that an answer says which is not an object.
pub const ANSWER_BYTES: u64 = 16 << 20;

/// Makes requests. Clones share their connections.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

struct Shared {
    connector: Connector,
    idle: Mutex<HashMap<Place, Vec<Idle>>>,
    patience: Duration,
}

struct Idle {
    sender: SendRequest<Sending>,
    since: Instant,
    /// Nothing has gone over it.
    is_new: bool,
}

/// The head of an answer. Its connection is used again if the request was sent to its end, and the body is read to its.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Who answered.
    pub host: String,
    body: Incoming,
    way_back: Option<(Client, Place, SendRequest<Sending>)>,
    progress: Arc<Progress>,
    once: bool,
}

impl Client {
    pub fn new(options: &Options) -> Result<Self, Failure> {
        let connector = Connector::new(options)?;
        Ok(Self(Arc::new(Shared { connector, idle: Mutex::default(), patience: options.patience })))
    }

    /// Sends a request and waits for the head of its answer. What is lost on the way is [`Kind::Transient`], but
    /// [`Kind::Unanswered`] if the request is one that should be carried out `once`.
    pub async fn send(&self, request: Request<Bytes>, once: bool, seen: &mut Attempt) -> Result<Answer, Failure> {
        *seen = Attempt { began: Some(Instant::now()), pace: seen.pace.take(), ..Attempt::default() };
        let place = Place::of(request.uri())?;
        let proxy = self.0.connector.proxy(&place)?;
        let mut sender = self.sender(&place, proxy.as_ref(), seen).await?;
        // To make one object of many blocks takes some stores minutes, in which they say nothing.
        let patience = self.0.patience.saturating_mul(if once { 5 } else { 1 });
        let progress = Arc::new(Progress::new(patience, request.body().is_empty()));
        let message = message(request, &place, proxy.as_ref(), (&progress, seen.pace.as_ref()))?;
        let sending = progress.patiently(sender.send_request(message)).await;
        let answer = sending.ok_or_else(|| lost(once, &place, "nothing moves any more"))?.map_err(|error| {
            // Cancelled: nothing of it was sent.
            lost(once && !error.is_canceled(), &place, &said("the request was cut off", &error))
        })?;
        seen.header = Some(Instant::now());
        seen.status = Some(answer.status().as_u16());
        let (head, body) = answer.into_parts();
        let host = place.to_string();
        let way_back = Some((self.clone(), place, sender));
        Ok(Answer { status: head.status, headers: head.headers, host, body, way_back, progress, once })
    }

    async fn sender(
        &self,
        place: &Place,
        proxy: Option<&Proxy>,
        seen: &mut Attempt,
    ) -> Result<SendRequest<Sending>, Failure> {
        while let Some(mut idle) = self.idle(place) {
            // Nothing was sent yet, so that another one will do if the server has closed this, or takes nothing more.
            if let Ok(Ok(())) = timeout(KEPT, idle.sender.ready()).await {
                // The first request of a connection finds its window closed, whenever that was made.
                seen.connected = seen.began.filter(|_| idle.is_new);
                return Ok(idle.sender);
            }
        }
        self.fresh(place, proxy, seen).await
    }

    async fn fresh(
        &self,
        place: &Place,
        proxy: Option<&Proxy>,
        seen: &mut Attempt,
    ) -> Result<SendRequest<Sending>, Failure> {
        let stream = self.0.connector.connect(place, proxy, seen).await?;
        let broken = |error: hyper::Error| transient(format!("the connection to {place} ended: {error}"));
        let mut builder = http1::Builder::new();
        let opening = builder.read_buf_exact_size(Some(READ_BYTES)).handshake(TokioIo::new(stream));
        let (mut sender, connection) = opening.await.map_err(broken)?;
        // What goes wrong with it is told to the request that waits for it.
        tokio::spawn(connection);
        sender.ready().await.map_err(broken)?;
        Ok(sender)
    }

    /// Makes so many connections, without those that nobody uses now, for requests that come all at once. What fails is
    /// left for these to find out.
    pub async fn connect(&self, uri: &Uri, connections: usize) {
        let Ok(place) = Place::of(uri) else { return };
        let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).get(&place).map_or(0, Vec::len);
        let mut connecting = JoinSet::new();
        for _ in idle..connections {
            let (client, place) = (self.clone(), place.clone());
            connecting.spawn(async move {
                let proxy = client.0.connector.proxy(&place)?;
                let sender = client.fresh(&place, proxy.as_ref(), &mut Attempt::default()).await?;
                client.keep(place, sender, true);
                Ok::<(), Failure>(())
            });
        }
        while connecting.join_next().await.is_some() {}
    }

    fn keep(&self, place: Place, sender: SendRequest<Sending>, is_new: bool) {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.entry(place).or_default().push(Idle { sender, since: Instant::now(), is_new });
    }

    fn idle(&self, place: &Place) -> Option<Idle> {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.get_mut(place)?;
        kept.retain(|idle| idle.since.elapsed() < KEPT && !idle.sender.is_closed());
        kept.pop()
    }
}

impl Answer {
    /// The next of its bytes; none at its end.
    pub async fn chunk(&mut self, seen: &mut Attempt) -> Result<Option<Bytes>, Failure> {
        loop {
            let next = std::future::poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let frame = self.progress.patiently(next).await;
            match frame.ok_or_else(|| lost(self.once, &self.host, "nothing moves any more"))? {
                None => break,
                Some(Err(error)) => {
                    return Err(lost(self.once, &self.host, &said("the answer was cut off", &error)));
                }
                Some(Ok(frame)) => {
                    self.progress.moved();
                    if let Ok(bytes) = frame.into_data() {
                        seen.first_byte.get_or_insert_with(Instant::now);
                        return Ok(Some(bytes));
                    }
                }
            }
        }
        seen.last_byte.get_or_insert_with(Instant::now);
        let way_back = self.way_back.take();
        // Who refuses a request before it is whole has the rest of it still to come.
        if let Some((client, place, sender)) = way_back.filter(|_| self.progress.is_sent.load(Ordering::Relaxed)) {
            client.keep(place, sender, false);
        }
        Ok(None)
    }

    /// All of its bytes, if they are not more than these.
    pub async fn bytes(&mut self, most: u64, seen: &mut Attempt) -> Result<Bytes, Failure> {
        let expected = self.body.size_hint().lower().min(most);
        let mut whole = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
        while let Some(bytes) = self.chunk(seen).await? {
            if (whole.len() + bytes.len()) as u64 > most {
                let said = format!("{} sends more than the {most} bytes that were asked for", self.host);
                return Err(fatal(said));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.into())
    }

    /// All of its bytes, which must be those that were asked for.
    pub async fn fill(&mut self, mut into: Filling, seen: &mut Attempt) -> Result<Filling, Failure> {
        while let Some(next) = self.chunk(seen).await? {
            into.add(&next)?;
        }
        into.whole()
    }

    /// A header, if it is there and made of letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// What is written to the connection: a target without the host unless a proxy must know it, and the headers that each
/// request has.
fn message(
    request: Request<Bytes>,
    place: &Place,
    proxy: Option<&Proxy>,
    (progress, pace): (&Arc<Progress>, Option<&Arc<Pace>>),
) -> Result<Request<Sending>, Failure> {
    let (mut head, body) = request.into_parts();
    let host = head.uri.authority().map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default());
    let host = HeaderValue::try_from(host.unwrap_or_default()).map_err(|_| fatal("the host is not a name".into()))?;
    head.headers.insert(HOST, host);
    head.headers.insert(USER_AGENT, HeaderValue::from_static(concat!("ascertain/", env!("CARGO_PKG_VERSION"))));
    if matches!(head.method, Method::PUT | Method::POST) {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    match proxy.filter(|_| !place.secure) {
        Some(proxy) => {
            if let Some(authorization) = &proxy.authorization {
                head.headers.insert(PROXY_AUTHORIZATION, authorization.clone());
            }
        }
        None => head.uri = head.uri.path_and_query().cloned().map(Uri::from).unwrap_or_default(),
    }
    Ok(Request::from_parts(head, Sending { rest: body, progress: progress.clone(), pace: pace.cloned(), turn: None }))
}

fn lost(once: bool, host: impl fmt::Display, how: &str) -> Failure {
    let kind = if once { Kind::Unanswered } else { Kind::Transient(None) };
    Failure { kind, said: format!("{host}: {how}") }
}

fn said(what: &str, error: &hyper::Error) -> String {
    // hyper's own words name the symptom, its source the cause.
    error.source().map_or_else(|| format!("{what}: {error}"), |cause| format!("{what}: {error}: {cause}"))
}

/// When something last moved, and whether all of the request was handed on.
struct Progress {
    began: Instant,
    moved_ms: AtomicU64,
    is_sent: AtomicBool,
    patience: Duration,
}

impl Progress {
    fn new(patience: Duration, is_sent: bool) -> Self {
        Self { began: Instant::now(), moved_ms: AtomicU64::new(0), is_sent: is_sent.into(), patience }
    }

    fn moved(&self) {
        let moved_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved_ms.store(moved_ms, Ordering::Relaxed);
    }

    /// Waits as long as something moves; none if nothing has for too long.
    async fn patiently<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        self.moved();
        loop {
            let moved = Duration::from_millis(self.moved_ms.load(Ordering::Relaxed));
            let left = self.patience.saturating_sub(self.began.elapsed().saturating_sub(moved));
            if left.is_zero() {
                return None;
            }
            if let Ok(done) = tokio::time::timeout(left, &mut work).await {
                return Some(done);
            }
        }
    }
}

/// The body of a request, in slices.
struct Sending {
    rest: Bytes,
    progress: Arc<Progress>,
    pace: Option<Arc<Pace>>,
    /// The next slice's size, and when it may go.
    turn: Option<(usize, Pin<Box<Sleep>>)>,
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Sending { rest, progress, pace, turn } = &mut *self;
        // Nobody waits for an answer any more. The connection ends where a body is shorter than it was to be.
        if Arc::strong_count(progress) == 1 {
            return Poll::Ready(None);
        }
        progress.moved();
        let mut slice_bytes = rest.len().min(SLICE_BYTES);
        if let Some(pace) = pace.as_ref().filter(|_| slice_bytes > 0) {
            let (bytes, turn) = turn.get_or_insert_with(|| {
                let bytes = pace.slice_bytes(slice_bytes);
                (bytes, Box::pin(sleep_until(pace.turn_at(tokio::time::Instant::now(), bytes as u64))))
            });
            slice_bytes = *bytes;
            ready!(turn.as_mut().poll(context));
            progress.moved();
        }
        let slice = rest.split_to(slice_bytes);
        progress.is_sent.store(rest.is_empty(), Ordering::Relaxed);
        *turn = None;
        Poll::Ready((!slice.is_empty()).then(|| Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// How `object_store`'s credentials ask for their tokens.
#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = body.as_bytes().cloned().unwrap_or_default();
        let mut seen = Attempt::default();
        let asking = async {
            let mut answer = self.send(Request::from_parts(head, body), false, &mut seen).await?;
            let bytes = answer.bytes(ANSWER_BYTES, &mut seen).await?;
            if answer.status.is_server_error() || answer.status == StatusCode::TOO_MANY_REQUESTS {
                return Err(transient(format!("{} answers {}", answer.host, answer.status.as_u16())));
            }
            let mut response = HttpResponse::new(bytes.into());
            *response.status_mut() = answer.status;
            *response.headers_mut() = std::mem::take(&mut answer.headers);
            Ok(response)
        };
        // Of an unknown kind: it is repeated by whoever repeats the request that needs the token, and by nobody else.
        asking.await.map_err(|failure: Failure| HttpError::new(HttpErrorKind::Unknown, failure))
    }
}

impl HttpConnector for Client {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
