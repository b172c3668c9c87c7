//! An HTTP server that runs in its own thread.

use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use super::filling::{Filling, length_bytes};
#[cfg(target_os = "linux")]
use super::kernel_tls;
use super::tls::serving;
use super::{Protocol, Stream, TlsVersion};
use crate::Error;
use crate::threads::{JoinedThread, lock};

/// Size of the largest body that clients can request, in bytes.
const LARGEST_BYTES: u64 = 1 << 50;

/// An HTTP server for both versions of [`Protocol`](super::Protocol), which it recognises by the client's first bytes.
/// Dropping it also ends all of its connections.
///
/// `GET /bytes/14000` returns a body of 14000 bytes.
/// `PUT` or `POST` to any path counts the bytes of the body, and returns their number as text.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    counters: Counters,
    _stop: oneshot::Sender<()>,
    thread: JoinedThread,
}

/// The counts of a [`Server`] since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Number of accepted connections, including those that failed.
    pub connections: u64,
    /// Number of answered requests.
    pub requests: u64,
    /// Number of bytes in the bodies of completely received uploads.
    pub uploaded_bytes: u64,
}

/// The counts of a running server, shared with its connections.
pub(crate) type Counters = Arc<Mutex<ServerStats>>;

impl Server {
    /// Starts a server on the socket `listener`. With `tls`, the server accepts these versions of TLS; with `None`, it
    /// does not use TLS.
    ///
    /// # Errors
    /// Returns [`Error::Server`] with the kernel's error; [`Error::Tls`] if the list of versions is empty.
    pub fn start(listener: TcpListener, tls: Option<&[TlsVersion]>) -> Result<Self, Error> {
        let acceptor = tls.map(serving).transpose()?;
        Self::run(listener, move |stream, counters| answer(Box::new(stream), acceptor.clone(), counters))
    }

    /// Starts a server with TLS 1.3 on the socket `listener`. After the handshake, the kernel encrypts and decrypts.
    /// [`kernel_has_tls`](super::kernel_has_tls) tests whether the kernel supports this.
    ///
    /// # Errors
    /// Returns [`Error::Server`] with the kernel's error.
    #[cfg(target_os = "linux")]
    pub fn with_kernel_tls(listener: TcpListener) -> Result<Self, Error> {
        let acceptor = serving(&[TlsVersion::V1_3])?;
        Self::run(listener, move |stream, counters| {
            let acceptor = acceptor.clone();
            async move {
                let stream = kernel_tls::accept(&acceptor, stream).await.ok()?;
                answer(Box::new(stream), None, counters).await
            }
        })
    }

    /// Starts a server on the socket `listener` that violates HTTP or stalls, so that clients can be tested. The server
    /// uses HTTP/1.1 without TLS.
    ///
    /// # Errors
    /// Returns [`Error::Server`] with the kernel's error.
    pub fn misbehaving(listener: TcpListener, how: Misbehaviour) -> Result<Self, Error> {
        Self::run(listener, move |stream, counters| misbehave(stream, how, counters))
    }

    pub(crate) fn run<F>(
        listener: TcpListener,
        serve: impl Fn(TcpStream, Counters) -> F + Send + 'static,
    ) -> Result<Self, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        if SystemTime::now() < UNIX_EPOCH {
            let reason = "the clock of this machine shows a time before 1970, which an HTTP date cannot express";
            return Err(Error::Server(io::Error::other(reason)));
        }
        let address = listener.local_addr().map_err(Error::Server)?;
        let counters = Counters::default();
        let (_stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Server)?;
        listener.set_nonblocking(true).map_err(Error::Server)?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(Error::Server)?
        };
        let counted = counters.clone();
        runtime.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let _ = stream.set_nodelay(true);
                        lock(&counted).connections += 1;
                        tokio::spawn(serve(stream, counted.clone()));
                    }
                    // Accepting fails if no file descriptors are left, for example. The server tries again after a
                    // pause, in which other connections may end.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        });
        // Dropping the runtime ends the connections.
        let run = move || drop(runtime.block_on(stopped));
        let thread = JoinedThread::spawn("netlab-server", run).map_err(Error::Server)?;
        Ok(Self { address, counters, _stop, thread })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server's counts so far.
    pub fn stats(&self) -> ServerStats {
        *lock(&self.counters)
    }

    /// Returns the CPU time of the server's thread, including its system calls.
    ///
    /// # Errors
    /// Returns errors of the kernel.
    #[cfg(target_os = "linux")]
    pub fn cpu_ns(&self) -> io::Result<u64> {
        let ended = || io::Error::other("the server has ended");
        ascertain_sys::clock::cpu_ns_of(self.thread.0.as_ref().ok_or_else(ended)?)
    }
}

/// Serves the requests of a connection. An error ends the connection and is not reported, because the client notices
/// the end.
pub(crate) async fn serve_requests<F, B, E>(
    mut stream: Box<dyn Stream>,
    acceptor: Option<TlsAcceptor>,
    respond: impl Fn(Request<Incoming>) -> F,
) -> Option<()>
where
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let service = service_fn(respond);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    if let Some(acceptor) = acceptor {
        let encrypted = acceptor.accept(stream).await.ok()?;
        if encrypted.get_ref().1.alpn_protocol() == Some(Protocol::Http2.id()) {
            builder = builder.http2_only();
        }
        stream = Box::new(encrypted);
    }
    builder.serve_connection(TokioIo::new(stream), service).await.ok()
}

/// Answers all requests of a connection, over TLS if there is an `acceptor`. `None` means that the connection failed.
async fn answer(stream: Box<dyn Stream>, acceptor: Option<TlsAcceptor>, counters: Counters) -> Option<()> {
    serve_requests(stream, acceptor, move |request| respond(request, counters.clone())).await
}

async fn respond(request: Request<Incoming>, counters: Counters) -> Result<Response<Filling>, hyper::Error> {
    let response = match *request.method() {
        Method::GET | Method::HEAD => download(request.uri().path()),
        Method::PUT | Method::POST => {
            let bytes = length_bytes(request.into_body()).await?;
            lock(&counters).uploaded_bytes += bytes;
            Response::new(Filling::text(bytes.to_string()))
        }
        _ => failed(StatusCode::METHOD_NOT_ALLOWED, "use GET, HEAD, PUT or POST"),
    };
    lock(&counters).requests += 1;
    Ok(response)
}

fn download(path: &str) -> Response<Filling> {
    let bytes = path.strip_prefix("/bytes/").and_then(|bytes| bytes.parse().ok());
    match bytes.filter(|bytes| *bytes <= LARGEST_BYTES) {
        Some(bytes) => Response::new(Filling::of_size(bytes)),
        None => failed(StatusCode::NOT_FOUND, "use /bytes/N, with a number N up to 2^50"),
    }
}

fn failed(status: StatusCode, why: &str) -> Response<Filling> {
    let mut response = Response::new(Filling::text(format!("{why}\n")));
    *response.status_mut() = status;
    response
}

/// A way in which a server misbehaves after it has received the head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// The server sends nothing, and keeps the connection open.
    Silent,
    /// The server closes the connection without an answer.
    Closes,
    /// The server resets the connection in the middle of a body.
    Resets,
    /// The server announces a body of 1,000 bytes, sends half of it and closes the connection.
    SendsLess,
    /// The server announces a body of 500 bytes and sends 1,000.
    SendsMore,
    /// The server announces a body of 1,000 bytes and sends them one by one.
    Slow {
        /// Time for which the server waits before each byte.
        each: Duration,
    },
    /// The server sends bytes that are not HTTP.
    NotHttp,
}

async fn misbehave(mut stream: TcpStream, how: Misbehaviour, counters: Counters) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    lock(&counters).requests += 1;
    let (promised_bytes, sent_bytes) = match how {
        Misbehaviour::Silent => pending().await,
        Misbehaviour::Closes => return Ok(()),
        Misbehaviour::NotHttp => return stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await,
        Misbehaviour::SendsMore => (500, 1_000),
        Misbehaviour::SendsLess | Misbehaviour::Resets => (1_000, 500),
        Misbehaviour::Slow { .. } => (1_000, 0),
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {promised_bytes}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), &vec![b'.'; sent_bytes]].concat()).await?;
    if how == Misbehaviour::Resets {
        // With this option, closing the socket resets the connection.
        set_socket_linger(&stream, Some(Duration::ZERO))?;
    }
    if let Misbehaviour::Slow { each } = how {
        for _ in 0..promised_bytes {
            tokio::time::sleep(each).await;
            stream.write_all(b".").await?;
        }
    }
    Ok(())
}
