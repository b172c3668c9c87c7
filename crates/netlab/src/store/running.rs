//! Runs a store: receives its requests, checks them, and injects faults.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http_body_util::BodyExt;
use httpdate::fmt_http_date;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Response};

use super::answer::{Content, Paced, Refusal, refuse};
use super::checksum::{Algorithm, Digests, sha256_of};
use super::chunked::Chunks;
use super::fault::{Faults, flip};
use super::objects::{Bucket, Objects};
use super::pace::PacedStream;
use super::request::{Head, StoreRequest};
use super::service::Service;
use super::sigv4::{self, ChunkSigner, Keys};
use super::{Dialect, Fault, Kind, Misdeed, RequestRecord, Store, azure, s3, shared_key};
use crate::Error;
use crate::http::{Server, TlsVersion, serve_requests, serving};
use crate::threads::lock;

/// An emulated store that is running. Dropping it ends all of its connections, and its content is lost.
pub struct RunningStore {
    server: Server,
    state: Arc<State>,
    has_tls: bool,
}

struct State {
    store: Store,
    service: Option<Arc<Service>>,
    /// The number of open connections.
    connections: AtomicUsize,
    shared: Mutex<Shared>,
}

/// Counts a connection as long as this value exists.
struct OpenConnection(Arc<State>);

impl OpenConnection {
    fn new(state: Arc<State>) -> Self {
        state.connections.fetch_add(1, Ordering::SeqCst);
        Self(state)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Shared {
    objects: Objects,
    faults: Faults,
    seen: Vec<RequestRecord>,
}

impl Store {
    /// Starts the store on this listening socket. With `tls`, it accepts these versions of TLS; with `None`, it uses no
    /// TLS.
    ///
    /// # Errors
    /// Returns the errors of [`Server::start`].
    pub fn start(self, listener: TcpListener, tls: Option<&[TlsVersion]>) -> Result<RunningStore, Error> {
        let acceptor = tls.map(serving).transpose()?;
        let mut shared = Shared::default();
        for bucket in &self.buckets {
            shared.objects.buckets.insert(bucket.clone(), Bucket::default());
        }
        for fault in &self.faults {
            shared.faults.add(fault.clone());
        }
        let service =
            self.service.clone().map(|times| Service::new(times, self.seed)).transpose().map_err(Error::Server)?;
        let service = service.map(Arc::new);
        let state =
            Arc::new(State { store: self, service, connections: AtomicUsize::new(0), shared: Mutex::new(shared) });
        let of_server = state.clone();
        let server = Server::run(listener, move |stream, _| {
            let (state, acceptor) = (of_server.clone(), acceptor.clone());
            let open = OpenConnection::new(state.clone());
            async move {
                let _open = open;
                held_back(&state.store).await;
                let stream = PacedStream::new(stream, state.store.bytes_per_s);
                serve_requests(Box::new(stream), acceptor, move |request| respond(request, state.clone())).await
            }
        })?;
        Ok(RunningStore { server, state, has_tls: tls.is_some() })
    }
}

impl RunningStore {
    /// Returns the address on which the store listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the URL that clients use as the endpoint. For Azure, the URL includes the account.
    pub fn url(&self) -> String {
        let scheme = if self.has_tls { "https" } else { "http" };
        let Store { dialect, account, .. } = &self.state.store;
        let account = if *dialect == Dialect::Azure { format!("/{account}") } else { String::new() };
        format!("{scheme}://{}{account}", self.address())
    }

    /// Returns the settings with which the store was started.
    pub fn store(&self) -> &Store {
        &self.state.store
    }

    /// Returns records of the requests so far. They are in the order in which the heads of the requests arrived.
    pub fn seen(&self) -> Vec<RequestRecord> {
        lock(&self.state.shared).seen.clone()
    }

    /// Returns the number of open connections. Every request is in one of them until the store has answered it, or has
    /// noticed that the client has closed the connection.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Adds a fault that the store injects from now on.
    pub fn add_fault(&self, fault: Fault) {
        lock(&self.state.shared).faults.add(fault);
    }

    /// Returns the content of an object; `None` if the object does not exist.
    pub fn object(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        let shared = lock(&self.state.shared);
        shared.objects.buckets.get(bucket)?.objects.get(key).map(|object| object.content.concat())
    }

    /// Returns the number of uploads in progress in a bucket. For Azure, it is the number of blobs with uncommitted
    /// blocks.
    pub fn uploads(&self, bucket: &str) -> usize {
        lock(&self.state.shared).objects.buckets.get(bucket).map_or(0, |bucket| bucket.uploads.len())
    }
}

impl State {
    /// Records a request. Returns the index of the record, and the fault to inject into the request; `None` if no fault
    /// is due.
    fn arrived(&self, head: &Head, kind: Kind) -> (usize, Option<Misdeed>) {
        let mut shared = lock(&self.shared);
        let block = head.parameter("partNumber").or_else(|| head.parameter("blockid"));
        let range = Some(head.range()).filter(|range| !range.is_empty()).map(String::from);
        shared.seen.push(RequestRecord {
            range,
            kind,
            bucket: head.bucket.clone(),
            key: head.key.clone(),
            block: block.map(String::from),
            body_bytes: 0,
            status: None,
        });
        (shared.seen.len() - 1, shared.faults.next(kind))
    }
}

/// Delays the caller by [`Store::latency`].
async fn held_back(store: &Store) {
    if !store.latency.is_zero() {
        tokio::time::sleep(store.latency).await;
    }
}

/// Returns the time on a clock that is `ahead_s` seconds ahead of this machine's clock.
pub(crate) fn time_ahead(ahead_s: i32) -> SystemTime {
    let ahead = Duration::from_secs(ahead_s.unsigned_abs().into());
    let now = SystemTime::now();
    let moment = if ahead_s < 0 { now - ahead } else { now + ahead };
    // HTTP dates cannot express times before 1970.
    moment.max(UNIX_EPOCH)
}

/// Answers a request. An error closes the connection.
async fn respond(request: hyper::Request<Incoming>, state: Arc<State>) -> io::Result<Response<Content>> {
    let store = &state.store;
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    let account = (store.dialect == Dialect::Azure).then_some(&*store.account);
    let head = Head::new(parts.method, &parts.uri, parts.headers, account, time_ahead(store.ahead_s));
    let kind = if account.is_some() { azure::kind(&head) } else { s3::kind(&head) };
    let (index, misdeed) = state.arrived(&head, kind);
    let allowed = match &misdeed {
        Some(Misdeed::Refused { status, .. }) => {
            let code = if *status == 503 { "SlowDown" } else { "TooManyRequests" };
            refuse(*status, code, "Please reduce your request rate.")
        }
        _ => authorize(store, &head, kind),
    };
    let mut digests = Digests::new(&wanted(store, &head, kind));
    // A chunked body still has its framing here. Its checksums are computed when the framing is removed.
    let summed = if is_chunked(&head) { None } else { Some(&mut digests) };
    let received = receive(body, misdeed.as_ref(), allowed.is_ok(), summed, |bytes| {
        lock(&state.shared).seen[index].body_bytes = bytes;
    });
    let content = received.await?;
    held_back(store).await;
    let times = state.service.as_ref().filter(|_| is_timed(kind)).map(Service::draw);
    if let Some(times) = &times {
        let bytes = content.iter().map(|piece| piece.len() as u64).sum();
        times.wait(arrived + times.first_byte + times.of_bytes(bytes), bytes).await;
    }
    let answered = allowed.and_then(|signer| {
        let mut request = StoreRequest { head, kind, content, digests };
        if is_chunked(&request.head) {
            unframe(&mut request, signer)?;
        }
        if let Some(Misdeed::FlippedInStore { byte }) = misdeed {
            flip(&mut request.content, byte);
        }
        let objects = &mut lock(&state.shared).objects;
        if matches!(kind, Kind::PutObject | Kind::PutBlock) {
            objects.check_room(request.digests.bytes, store.capacity_bytes)?;
        }
        if account.is_some() { azure::answer(objects, request) } else { s3::answer(store, objects, request) }
    });
    let mut answer = answered.unwrap_or_else(|refusal| refusal.answer());
    let cut_after_bytes = match misdeed {
        Some(Misdeed::AnswerLost) => return Err(io::ErrorKind::ConnectionReset.into()),
        Some(Misdeed::Refused { retry_after_s: Some(seconds), .. }) => {
            answer = answer.header("retry-after", seconds.to_string());
            None
        }
        Some(Misdeed::FlippedDownload { byte }) => {
            flip(&mut answer.content, byte);
            None
        }
        Some(Misdeed::CutDownload { after_bytes }) => Some(after_bytes),
        _ => None,
    };
    lock(&state.shared).seen[index].status = Some(answer.status);
    let id = if account.is_some() { "x-ms-request-id" } else { "x-amz-request-id" };
    let answer = answer.header(id, format!("{index:016X}")).header("date", fmt_http_date(time_ahead(store.ahead_s)));
    let mut response = answer.response(is_head);
    response.body_mut().cut_after_bytes = cut_after_bytes;
    response.body_mut().paced = times.map(|times| Paced { times, start: Instant::now(), sent_bytes: 0, wait: None });
    Ok(response)
}

/// Returns whether a request takes the time of [`Store::service`]. It does if it reads or writes an object, or a part
/// of an object.
fn is_timed(kind: Kind) -> bool {
    matches!(kind, Kind::GetObject | Kind::PutObject | Kind::CreateUpload | Kind::PutBlock | Kind::Commit)
}

/// Checks that a request is authorised. For S3, returns a verifier for the signatures of the body's chunks; otherwise
/// returns `None`.
fn authorize(store: &Store, head: &Head, kind: Kind) -> Result<Option<ChunkSigner>, Refusal> {
    let Store { account, secret, region, .. } = store;
    match store.dialect {
        Dialect::S3 => sigv4::verify(head, Keys { account, secret, service: "s3", region }).map(Some),
        Dialect::Azure => shared_key::verify(head, kind, account, secret).map(|()| None),
        Dialect::Gcs if head.header("authorization").strip_prefix("Bearer ") == Some(secret) => Ok(None),
        Dialect::Gcs => refuse(401, "AuthenticationRequired", "The token is missing or wrong."),
    }
}

/// Returns the checksum algorithms to compute for the body of a request. For a block of Azure, MD5 is computed only if
/// the client sent an MD5, because MD5 is the slowest of the algorithms.
fn wanted(store: &Store, head: &Head, kind: Kind) -> Vec<Algorithm> {
    let is_needless =
        store.dialect == Dialect::Azure && kind == Kind::PutBlock && head.header("content-md5").is_empty();
    let is_given = |algorithm: &Algorithm| {
        let header = algorithm.header();
        !head.header(&header).is_empty() || head.header("x-amz-trailer").eq_ignore_ascii_case(&header)
    };
    let is_signed = head.header("x-amz-content-sha256").len() == 64;
    let mut wanted: Vec<_> = Algorithm::OF_S3.into_iter().filter(is_given).collect();
    wanted.extend((!is_needless).then_some(Algorithm::Md5));
    wanted.extend(is_signed.then_some(Algorithm::Sha256));
    wanted
}

/// Reads a body to its end, and returns its pieces if `is_kept`. Adds the bytes to `digests`, and calls `count` with
/// the number of bytes so far. A `misdeed` may break the connection earlier.
async fn receive(
    mut body: Incoming,
    misdeed: Option<&Misdeed>,
    is_kept: bool,
    mut digests: Option<&mut Digests>,
    count: impl Fn(u64),
) -> io::Result<Vec<Bytes>> {
    let (mut pieces, mut bytes) = (Vec::new(), 0);
    loop {
        if let Some(Misdeed::CutUpload { after_bytes }) = misdeed
            && (bytes >= *after_bytes || body.is_end_stream())
        {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let Some(frame) = body.frame().await else { return Ok(pieces) };
        let Ok(mut piece) = frame.map_err(io::Error::other)?.into_data() else { continue };
        if let Some(Misdeed::FlippedUpload { byte }) = misdeed
            && let Some(byte) = byte.checked_sub(bytes)
        {
            flip(std::slice::from_mut(&mut piece), byte);
        }
        bytes += piece.len() as u64;
        count(bytes);
        if let Some(digests) = &mut digests {
            digests.update(&piece);
        }
        if is_kept {
            pieces.push(piece);
        }
    }
}

fn is_chunked(head: &Head) -> bool {
    head.header("x-amz-content-sha256").starts_with("STREAMING-")
}

/// Checks the signatures of a chunked body, and removes the chunk sizes and signatures. The headers after the last
/// chunk, such as checksums, then become headers of the request.
fn unframe(request: &mut StoreRequest, signer: Option<ChunkSigner>) -> Result<(), Refusal> {
    let kind = request.head.header("x-amz-content-sha256");
    let has_trailers = kind.ends_with("-TRAILER");
    let mut signer = match kind {
        "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => None,
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" | "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => signer,
        _ => return refuse(501, "NotImplemented", format!("Chunks of the kind {kind} are not supported.")),
    };
    let Chunks { chunks, trailers } = Chunks::parse(std::mem::take(&mut request.content))?;
    for (chunk, signature) in chunks {
        if let Some(signer) = &mut signer {
            signer.chunk(&sha256_of(&chunk), &signature)?;
        }
        chunk.iter().for_each(|piece| request.digests.update(piece));
        request.content.extend(chunk);
    }
    if let Some(signer) = signer.as_mut().filter(|_| has_trailers) {
        signer.trailers(&trailers)?;
    }
    let length = request.head.header("x-amz-decoded-content-length");
    if length != request.digests.bytes.to_string() {
        return refuse(400, "IncompleteBody", "The body is not as long as its header says.");
    }
    for (name, value) in trailers.iter().filter(|(name, _)| name.starts_with("x-amz-checksum-")) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            request.head.headers.insert(name, value);
        }
    }
    Ok(())
}
