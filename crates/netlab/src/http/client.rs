//! One connection, and requests on it one after the other.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use ascertain_sys::clock::now_ns;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HOST, HeaderValue};
use hyper::{Method, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::filling::{Filling, length_bytes};
use super::tls::disagreement;
use super::watched::{Arrival, Seen, Watched};
use super::{Protocol, Session, Stream, Tls};
use crate::{Error, Phase, Phases};

/// How a client wants to talk.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Whom it wants to talk to: a name, or an address, with a port where that is not the usual one.
    pub host: String,
    /// What it speaks; nothing else will do.
    pub protocol: Protocol,
    /// Whom it trusts; without, it talks in the open.
    pub tls: Option<Tls>,
    /// How long it waits at the most: for the connection to be opened, and then for each answer.
    pub limit: Duration,
}

impl Offer {
    /// HTTP/1.1 without TLS.
    #[must_use]
    pub fn plain(host: &str, limit: Duration) -> Self {
        Self { host: host.into(), protocol: Protocol::Http1, tls: None, limit }
    }
}

/// The stage in [`Error::Broken`] if no byte of the answer arrived, for example because the server closed the connection
/// after the answer before.
pub const BEFORE_AN_ANSWER: &str = "before there was an answer";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where, from the first `/` on.
    pub path: String,
    /// How much is sent, by PUT; without, it is a GET.
    pub upload_bytes: Option<u64>,
    /// `true` to accept an answer that is compressed in a way that browsers know. The body is never unpacked, so its length
    /// is the compressed one.
    pub takes_compressed: bool,
}

/// The compressions that browsers ask for.
const COMPRESSIONS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

impl Request {
    /// A GET.
    #[must_use]
    pub fn get(path: &str) -> Self {
        Self { path: path.into(), upload_bytes: None, takes_compressed: false }
    }

    /// A PUT of as many bytes.
    #[must_use]
    pub fn put(path: &str, bytes: u64) -> Self {
        Self { path: path.into(), upload_bytes: Some(bytes), takes_compressed: false }
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200, if all is well.
    pub status: u16,
    /// As the answer says, or the connection: `HTTP/1.1`.
    pub version: &'static str,
    /// The length of the body.
    pub body_bytes: u64,
    /// All that arrived, with the head and HTTP/2's frames, but without what TLS adds.
    pub received_bytes: u64,
    /// The body's Content-Encoding, if any.
    pub compression: Option<String>,
}

/// An open connection. It does something only while a request is under way.
#[derive(Debug)]
pub struct Connection {
    // Ends before the runtime does.
    sender: Sender,
    runtime: Runtime,
    socket: TcpStream,
    offer: Offer,
    session: Option<Session>,
    seen: Arc<Seen>,
    /// The same below TLS.
    wire: Arc<Seen>,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Filling>),
    Http2(http2::SendRequest<Filling>),
}

impl Connection {
    /// Opens a connection over this stream, which has just been connected. [`Phase::Tls`] ends where there is TLS.
    ///
    /// # Errors
    /// [`Error::Tls`] for a certificate that is not trusted, a version that is not spoken, and the like;
    /// [`Error::OtherProtocol`], [`Error::TimedOut`], and [`Error::Broken`] otherwise.
    pub fn open(stream: TcpStream, offer: &Offer, phases: &mut Phases) -> Result<Self, Error> {
        let broken = |error| Error::broken("while it was made", error);
        stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).map_err(broken)?;
        let socket = stream.try_clone().map_err(broken)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
        let [seen, wire] = [Seen::default(), Seen::with_arrivals()].map(Arc::new);
        let opening = async {
            let stream = Watched::new(tokio::net::TcpStream::from_std(stream).map_err(broken)?, wire.clone());
            let Some(tls) = &offer.tls else {
                return Ok((shake_hands(Box::new(stream), offer.protocol, &seen).await?, None));
            };
            let name = ServerName::try_from(name(&offer.host).to_string()).map_err(Error::tls)?;
            let connector = TlsConnector::from(tls.asking_for(offer.protocol));
            let stream = connector.connect(name, stream).await.map_err(disagreement)?;
            phases.end(Phase::Tls, now_ns());
            let state = stream.get_ref().1;
            match state.alpn_protocol() {
                Some(protocol) if protocol == offer.protocol.id() => {}
                // A server that knows nothing of it speaks HTTP/1.1.
                None if offer.protocol == Protocol::Http1 => {}
                _ => return Err(Error::OtherProtocol { wanted: offer.protocol }),
            }
            let session = Session::of(state);
            Ok((shake_hands(Box::new(stream), offer.protocol, &seen).await?, session))
        };
        let (sender, session) = within(&runtime, offer.limit, opening)?;
        Ok(Self { sender, runtime, socket, offer: offer.clone(), session, seen, wire })
    }

    /// Sends a request and reads the answer to its end. [`Phase::Sent`], [`Phase::FirstByte`] and [`Phase::LastByte`]
    /// end as far as it comes. An upload is sent when the last is written before the answer; over HTTP/2 that may be
    /// the acknowledgement of the other side's settings, if the upload is so small that it is gone before those come.
    ///
    /// # Errors
    /// [`Error::Path`] for a path that is none; [`Error::TimedOut`], after which the connection is of no more use; and
    /// [`Error::Broken`] for a reset, an answer that is not as long as it was to be, or what is not HTTP.
    pub fn send(&mut self, request: &Request, phases: &mut Phases) -> Result<Answer, Error> {
        let message = message(request, &self.offer)?;
        let (sender, seen) = (&mut self.sender, &self.seen);
        seen.forget();
        self.wire.forget();
        let mut sent_ns = None;
        let sending = async {
            let answer = sender.send(message).await.map_err(|error| Error::broken(BEFORE_AN_ANSWER, error))?;
            phases.end(Phase::FirstByte, now_ns());
            sent_ns = seen.last_sent_ns();
            let (status, version) = (answer.status().as_u16(), version(&answer));
            let compression = answer.headers().get(CONTENT_ENCODING);
            let compression = compression.and_then(|name| Some(name.to_str().ok()?.to_string()));
            let body_bytes = length_bytes(answer.into_body()).await;
            let body_bytes = body_bytes.map_err(|error| Error::broken("in the middle of the answer", error))?;
            phases.end(Phase::LastByte, now_ns());
            Ok(Answer { status, version, body_bytes, received_bytes: seen.received_bytes(), compression })
        };
        let answer = within(&self.runtime, self.offer.limit, sending);
        // What has no body is gone with the first write; HTTP/2 then writes what it has to acknowledge.
        let sent_ns = if request.upload_bytes.is_some() { sent_ns } else { seen.first_sent_ns() };
        if let Some(sent_ns) = sent_ns {
            phases.end(Phase::Sent, sent_ns);
        }
        answer
    }

    /// From now on it waits for so long at the most.
    pub fn set_limit(&mut self, limit: Duration) {
        self.offer.limit = limit;
    }

    /// Returns what arrived since the last request was sent, and when, with all that TLS adds.
    #[must_use]
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.wire.arrivals()
    }

    /// What both sides agreed upon, where there is TLS.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// The socket, to be asked what the kernel knows of it. What is read from it or written to it is missing elsewhere.
    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }
}

impl Sender {
    async fn send(&mut self, message: hyper::Request<Filling>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(message).await
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(message).await
            }
        }
    }
}

fn version(answer: &Response<Incoming>) -> &'static str {
    match answer.version() {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    }
}

/// The name alone, as TLS wants it: without a port, and without the brackets around an address of IPv6.
fn name(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match host.split_once(':') {
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

fn message(request: &Request, offer: &Offer) -> Result<hyper::Request<Filling>, Error> {
    let path = || Error::Path { path: request.path.clone(), host: offer.host.clone() };
    let scheme = if offer.tls.is_some() { "https" } else { "http" };
    let method = if request.upload_bytes.is_some() { Method::PUT } else { Method::GET };
    let mut message = hyper::Request::new(Filling::of_size(request.upload_bytes.unwrap_or(0)));
    let uri = Uri::builder().scheme(scheme).authority(&*offer.host).path_and_query(&*request.path).build();
    let uri = uri.ok().filter(|_| request.path.starts_with('/')).ok_or_else(path)?;
    *message.method_mut() = method;
    if request.takes_compressed {
        message.headers_mut().insert(ACCEPT_ENCODING, COMPRESSIONS);
    }
    if offer.protocol == Protocol::Http1 {
        message.headers_mut().insert(HOST, HeaderValue::from_str(&offer.host).map_err(|_| path())?);
        *message.uri_mut() = uri.path_and_query().cloned().map(Uri::from).ok_or_else(path)?;
    } else {
        *message.uri_mut() = uri;
    }
    Ok(message)
}

async fn shake_hands(stream: Box<dyn Stream>, protocol: Protocol, seen: &Arc<Seen>) -> Result<Sender, Error> {
    let stream = TokioIo::new(Watched::new(stream, seen.clone()));
    let broken = |error| Error::broken("while it was made", error);
    // What goes wrong with a connection is told to the request that waits for it.
    Ok(match protocol {
        Protocol::Http1 => {
            let (sender, connection) = http1::handshake(stream).await.map_err(broken)?;
            tokio::spawn(connection);
            Sender::Http1(sender)
        }
        Protocol::Http2 => {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.map_err(broken)?;
            tokio::spawn(connection);
            Sender::Http2(sender)
        }
    })
}

fn within<T>(runtime: &Runtime, limit: Duration, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let timed = async { tokio::time::timeout(limit, work).await };
    runtime.block_on(timed).unwrap_or(Err(Error::TimedOut { limit }))
}
