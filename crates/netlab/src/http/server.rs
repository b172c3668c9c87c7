//! A server in a thread of its own.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use super::filling::{Filling, length_bytes};
#[cfg(target_os = "linux")]
use super::kernel_tls;
use super::misbehaviour::misbehave;
use super::tls::serving;
use super::{Misbehaviour, Protocol, Stream, TlsVersion};
use crate::Error;

/// The largest body that is sent, and more than anybody waits for.
const LARGEST_BYTES: u64 = 1 << 50;

/// A server of HTTP/1.1 and HTTP/2, which it tells apart by what the client says. It ends, with all of its connections,
/// when dropped.
///
/// - `GET /bytes/14000` is answered with as many bytes.
/// - `PUT` or `POST` to anything counts what is sent, and is answered with its length in bytes, in digits.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    counters: Arc<Counters>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What a server did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections that were made to it, also those that came to nothing.
    pub connections: u64,
    /// Requests that it answered.
    pub requests: u64,
    /// What it was sent in the bodies of requests, as far as those were whole.
    pub uploaded_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    connections: AtomicU64,
    pub requests: AtomicU64,
    uploaded_bytes: AtomicU64,
}

impl Server {
    /// Serves whoever connects to this socket: with these versions of TLS, or without it.
    ///
    /// # Errors
    /// [`Error::Server`] as the kernel says; [`Error::Tls`] for TLS without a version.
    pub fn start(listener: TcpListener, tls: Option<&[TlsVersion]>) -> Result<Self, Error> {
        let acceptor = tls.map(|versions| serving(versions).map(TlsAcceptor::from)).transpose()?;
        Self::run(listener, move |stream, counters| {
            let acceptor = acceptor.clone();
            async move {
                stream.set_nodelay(true).ok()?;
                answer(Box::new(stream), acceptor, counters).await
            }
        })
    }

    /// Serves whoever connects to this socket by TLS 1.3, of which the kernel does all but the handshake:
    /// [`kernel_has_tls`](super::kernel_has_tls) says whether it can.
    ///
    /// # Errors
    /// [`Error::Server`] as the kernel says.
    #[cfg(target_os = "linux")]
    pub fn with_kernel_tls(listener: TcpListener) -> Result<Self, Error> {
        let acceptor = TlsAcceptor::from(serving(&[TlsVersion::V1_3])?);
        Self::run(listener, move |stream, counters| {
            let acceptor = acceptor.clone();
            async move {
                stream.set_nodelay(true).ok()?;
                let stream = kernel_tls::accept(&acceptor, stream).await.ok()?;
                answer(Box::new(stream), None, counters).await
            }
        })
    }

    /// Treats whoever connects to this socket badly, in the open and by HTTP/1.1: for tests of who asks.
    ///
    /// # Errors
    /// [`Error::Server`] as the kernel says.
    pub fn misbehaving(listener: TcpListener, how: Misbehaviour) -> Result<Self, Error> {
        Self::run(listener, move |stream, counters| misbehave(stream, how, counters))
    }

    pub(crate) fn run<F>(
        listener: TcpListener,
        serve: impl Fn(TcpStream, Arc<Counters>) -> F + Send + 'static,
    ) -> Result<Self, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        if SystemTime::now() < UNIX_EPOCH {
            let reason = "the clock of this machine shows a time before 1970, which an HTTP date cannot express";
            return Err(Error::Server(std::io::Error::other(reason)));
        }
        let address = listener.local_addr().map_err(Error::Server)?;
        let counters = Arc::new(Counters::default());
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Server)?;
        listener.set_nonblocking(true).map_err(Error::Server)?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(Error::Server)?
        };
        runtime.spawn(accept(listener, serve, counters.clone()));
        // Every connection ends with the runtime.
        let serve = move || drop(runtime.block_on(stopped));
        let thread = std::thread::Builder::new().name("netlab-server".into()).spawn(serve).map_err(Error::Server)?;
        Ok(Self { address, counters, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it did so far.
    #[must_use]
    pub fn served(&self) -> Served {
        let Counters { connections, requests, uploaded_bytes } = &*self.counters;
        let [connections, requests, uploaded_bytes] =
            [connections, requests, uploaded_bytes].map(|counter| counter.load(Ordering::Relaxed));
        Served { connections, requests, uploaded_bytes }
    }

    /// The CPU time that its thread has used, with what the kernel did in it.
    ///
    /// # Errors
    /// As the kernel says.
    #[cfg(target_os = "linux")]
    pub fn cpu_ns(&self) -> std::io::Result<u64> {
        let ended = || std::io::Error::other("the server has ended");
        ascertain_sys::clock::cpu_ns_of(self.thread.as_ref().ok_or_else(ended)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept<F>(
    listener: tokio::net::TcpListener,
    serve: impl Fn(TcpStream, Arc<Counters>) -> F,
    counters: Arc<Counters>,
) where
    F: Future<Output: Send> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                counters.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, counters.clone()));
            }
            // No descriptors left, perhaps: others must end first.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Speaks HTTP over a connection. What goes wrong with it is its client's to see.
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

/// Answers every request of a connection.
async fn answer(stream: Box<dyn Stream>, acceptor: Option<TlsAcceptor>, counters: Arc<Counters>) -> Option<()> {
    serve_requests(stream, acceptor, move |request| respond(request, counters.clone())).await
}

async fn respond(request: Request<Incoming>, counters: Arc<Counters>) -> Result<Response<Filling>, hyper::Error> {
    let response = match *request.method() {
        Method::GET | Method::HEAD => download(request.uri().path()),
        Method::PUT | Method::POST => {
            let bytes = length_bytes(request.into_body()).await?;
            counters.uploaded_bytes.fetch_add(bytes, Ordering::Relaxed);
            Response::new(Filling::text(bytes.to_string()))
        }
        _ => failed(StatusCode::METHOD_NOT_ALLOWED, "there are GET, HEAD, PUT and POST"),
    };
    counters.requests.fetch_add(1, Ordering::Relaxed);
    Ok(response)
}

fn download(path: &str) -> Response<Filling> {
    let bytes = path.strip_prefix("/bytes/").and_then(|bytes| bytes.parse().ok());
    match bytes.filter(|bytes| *bytes <= LARGEST_BYTES) {
        Some(bytes) => Response::new(Filling::of_size(bytes)),
        None => failed(StatusCode::NOT_FOUND, "there is /bytes/14000, and any other number up to 2^50"),
    }
}

fn failed(status: StatusCode, why: &str) -> Response<Filling> {
    let mut response = Response::new(Filling::text(format!("{why}\n")));
    *response.status_mut() = status;
    response
}
