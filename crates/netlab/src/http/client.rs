//! An HTTP client connection, which sends one request after the other.

use std::net::TcpStream;
use std::time::Duration;

use ascertain_sys::clock::now_ns;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HOST, HeaderValue};
use hyper::{Method, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::BufReader;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::filling::{Filling, length_bytes};
use super::observed::{Arrival, Record, observed};
use super::tls::disagreement;
use super::{Protocol, Stream, Tls, TlsSession};
use crate::{Error, Phase, Phases};

/// The options for opening an HTTP client connection.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Name or address of the server, with a port unless it is the default port.
    pub host: String,
    /// Version of HTTP. Opening the connection fails if the server does not speak this version.
    pub protocol: Protocol,
    /// TLS settings with the trusted certificates; `None` for a connection without TLS.
    pub tls: Option<Tls>,
    /// Time limit for opening the connection. It is also the limit for each answer until
    /// [`set_limit`](Connection::set_limit) changes it.
    pub limit: Duration,
}

impl ClientOptions {
    /// Returns options for HTTP/1.1 without TLS.
    pub fn plain(host: &str, limit: Duration) -> Self {
        Self { host: host.into(), protocol: Protocol::Http1, tls: None, limit }
    }
}

/// Maximum number of bytes that one read takes from the socket of a TLS connection. It is four records. Without this
/// buffer, rustls reads at most 4 KiB at a time, so each record needs several system calls.
pub(super) const READ_AHEAD_BYTES: usize = 1 << 16;

/// The text in the field `when` of [`Error::Broken`] if no byte of the answer arrived. This happens, for example, if
/// the server closed the connection after the previous answer.
pub const BEFORE_AN_ANSWER: &str = "before an answer arrived";

/// An HTTP request: a GET, or a PUT with a body of random bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// Path and query of the URL. The path begins with `/`.
    pub path: String,
    /// Size of the body of a PUT; `None` for a GET.
    pub upload_bytes: Option<u64>,
    /// `true` to accept compressed answers, as browsers do. The body is not decompressed, so its length is the
    /// compressed length.
    pub takes_compressed: bool,
}

/// The compressions that browsers accept, for the header Accept-Encoding.
const COMPRESSIONS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

impl HttpRequest {
    /// Creates a GET request.
    pub fn get(path: &str) -> Self {
        Self { path: path.into(), upload_bytes: None, takes_compressed: false }
    }

    /// Creates a PUT request with a body of this size.
    pub fn put(path: &str, bytes: u64) -> Self {
        Self { path: path.into(), upload_bytes: Some(bytes), takes_compressed: false }
    }
}

/// The response to a request, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// HTTP status code of the response, such as 200 for success.
    pub status: u16,
    /// HTTP version of the answer, such as `HTTP/1.1`.
    pub version: &'static str,
    /// Length of the body as transferred, in bytes.
    pub body_bytes: u64,
    /// Number of bytes that were received for this answer, including the head and the frames of HTTP/2. Bytes that TLS
    /// adds are not counted.
    pub received_bytes: u64,
    /// Content-Encoding of the body; `None` if the answer has none.
    pub compression: Option<String>,
}

/// An open HTTP connection. It reads and writes only during [`open`](Self::open) and [`send`](Self::send).
#[derive(Debug)]
pub struct Connection {
    // Declared first to be dropped first, because it must end before the runtime.
    sender: Sender,
    runtime: Runtime,
    socket: TcpStream,
    options: ClientOptions,
    session: Option<TlsSession>,
    record: Record,
    /// The recorded reads and writes of the socket, which include the bytes that TLS adds.
    wire: Record,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Filling>),
    Http2(http2::SendRequest<Filling>),
}

impl Connection {
    /// Opens an HTTP connection over a stream that was just connected. With TLS, records the end of [`Phase::Tls`].
    ///
    /// # Errors
    /// - [`Error::Tls`] if the TLS handshake fails, for example because the certificate is not trusted;
    /// - [`Error::OtherProtocol`] if the server does not speak the requested version of HTTP;
    /// - [`Error::TimedOut`] if the time limit passes;
    /// - [`Error::Broken`] otherwise.
    pub fn open(stream: TcpStream, options: &ClientOptions, phases: &mut Phases) -> Result<Self, Error> {
        let broken = |error| Error::broken("while it was being set up", error);
        stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).map_err(broken)?;
        let socket = stream.try_clone().map_err(broken)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
        let (record, wire) = (Record::default(), Record::with_arrivals());
        let opening = async {
            let stream = observed(tokio::net::TcpStream::from_std(stream).map_err(broken)?, &wire);
            let Some(tls) = &options.tls else {
                return Ok((shake_hands(Box::new(stream), options.protocol, &record).await?, None));
            };
            let name = ServerName::try_from(name(&options.host).to_string()).map_err(Error::tls)?;
            let connector = TlsConnector::from(tls.asking_for(options.protocol));
            let stream = BufReader::with_capacity(READ_AHEAD_BYTES, stream);
            let stream = connector.connect(name, stream).await.map_err(disagreement)?;
            phases.end(Phase::Tls, now_ns());
            let state = stream.get_ref().1;
            match state.alpn_protocol() {
                Some(protocol) if protocol == options.protocol.id() => {}
                // A server without ALPN speaks HTTP/1.1.
                None if options.protocol == Protocol::Http1 => {}
                _ => return Err(Error::OtherProtocol { wanted: options.protocol }),
            }
            let session = TlsSession::from_state(state);
            Ok((shake_hands(Box::new(stream), options.protocol, &record).await?, session))
        };
        let (sender, session) = within(&runtime, options.limit, opening)?;
        Ok(Self { sender, runtime, socket, options: options.clone(), session, record, wire })
    }

    /// Sends a request and reads the answer to its end. Records the ends of [`Phase::Sent`], [`Phase::FirstByte`] and
    /// [`Phase::LastByte`] if the request gets that far.
    ///
    /// An upload counts as sent at the last write before the answer. Over HTTP/2, a small upload may be sent before the
    /// server's settings arrive. The last write is then the acknowledgement of these settings.
    ///
    /// # Errors
    /// - [`Error::Invalid`] for an invalid path;
    /// - [`Error::TimedOut`] if the time limit passes; the connection must not be used after that;
    /// - [`Error::Broken`] for a reset, an answer of the wrong length, or an answer that is not HTTP.
    pub fn send(&mut self, request: &HttpRequest, phases: &mut Phases) -> Result<HttpResponse, Error> {
        let message = message(request, &self.options)?;
        let (sender, record) = (&mut self.sender, &self.record);
        record.clear();
        self.wire.clear();
        let mut sent_ns = None;
        let sending = async {
            let answer = sender.send(message).await.map_err(|error| Error::broken(BEFORE_AN_ANSWER, error))?;
            phases.end(Phase::FirstByte, now_ns());
            sent_ns = record.lock().last_sent_ns;
            let (status, version) = (answer.status().as_u16(), version(&answer));
            let compression = answer.headers().get(CONTENT_ENCODING);
            let compression = compression.and_then(|name| Some(name.to_str().ok()?.to_string()));
            let body_bytes = length_bytes(answer.into_body()).await;
            let body_bytes = body_bytes.map_err(|error| Error::broken("in the middle of the answer", error))?;
            phases.end(Phase::LastByte, now_ns());
            let received_bytes = record.lock().received_bytes;
            Ok(HttpResponse { status, version, body_bytes, received_bytes, compression })
        };
        let answer = within(&self.runtime, self.options.limit, sending);
        // A request without a body is sent by the first write. Over HTTP/2, the later writes are acknowledgements.
        let sent_ns = if request.upload_bytes.is_some() { sent_ns } else { record.lock().first_sent_ns };
        if let Some(sent_ns) = sent_ns {
            phases.end(Phase::Sent, sent_ns);
        }
        answer
    }

    /// Sets the time limit for each of the answers from now on.
    pub fn set_limit(&mut self, limit: Duration) {
        self.options.limit = limit;
    }

    /// Returns the reads from the socket since the last request was sent. Their sizes include the bytes that TLS adds.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.wire.lock().arrivals.clone().unwrap_or_default()
    }

    /// Returns the negotiated parameters of the TLS session; `None` without TLS.
    pub fn session(&self) -> Option<&TlsSession> {
        self.session.as_ref()
    }

    /// Returns the socket, so that the caller can ask the kernel about the connection. Do not read from it, because the
    /// connection would miss the bytes. Do not write to it either, because the server would receive bytes that are not
    /// part of a request.
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

/// Returns `host` without its port and without the brackets of an IPv6 address. TLS needs the name in this form.
pub(super) fn name(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match host.split_once(':') {
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

fn message(request: &HttpRequest, options: &ClientOptions) -> Result<hyper::Request<Filling>, Error> {
    let path = || {
        let (path, host) = (&request.path, &options.host);
        Error::Invalid(format!("cannot request `{path}` at `{host}`; a path must begin with `/` and have no spaces"))
    };
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let method = if request.upload_bytes.is_some() { Method::PUT } else { Method::GET };
    let mut message = hyper::Request::new(Filling::of_size(request.upload_bytes.unwrap_or(0)));
    let uri = Uri::builder().scheme(scheme).authority(&*options.host).path_and_query(&*request.path).build();
    let uri = uri.ok().filter(|_| request.path.starts_with('/')).ok_or_else(path)?;
    *message.method_mut() = method;
    if request.takes_compressed {
        message.headers_mut().insert(ACCEPT_ENCODING, COMPRESSIONS);
    }
    if options.protocol == Protocol::Http1 {
        message.headers_mut().insert(HOST, HeaderValue::from_str(&options.host).map_err(|_| path())?);
        *message.uri_mut() = uri.path_and_query().cloned().map(Uri::from).ok_or_else(path)?;
    } else {
        *message.uri_mut() = uri;
    }
    Ok(message)
}

async fn shake_hands(stream: Box<dyn Stream>, protocol: Protocol, record: &Record) -> Result<Sender, Error> {
    let stream = TokioIo::new(observed(stream, record));
    let broken = |error| Error::broken("while it was being set up", error);
    // The spawned task needs no error handling: it passes its error to the request that waits for an answer.
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
