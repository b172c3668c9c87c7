//! HTTP within the process: a [`Server`] that listens on a given socket, and a client [`Connection`] over a given
//! stream. The connection records the phases of its requests.
//!
//! Server and client leave it to the caller to open sockets, because a socket stays in the network namespace in which
//! it was opened. For example, the caller opens sockets on the two sides of an emulated link. The threads of this crate
//! can then use them from any namespace.
//!
//! ```
//! use std::net::{TcpListener, TcpStream};
//! use std::time::Duration;
//! use ascertain_netlab::http::{ClientOptions, Connection, HttpRequest, Protocol, Server, TlsVersion};
//! use ascertain_netlab::{Phase, Phases, now_ns};
//!
//! let server = Server::start(TcpListener::bind("127.0.0.1:0")?, Some(&[TlsVersion::V1_3]))?;
//! let mut phases = Phases::begin(now_ns());
//! let stream = TcpStream::connect(server.address())?;
//! phases.end(Phase::Connect, now_ns());
//! let options = ClientOptions {
//!     protocol: Protocol::Http2,
//!     tls: Some(ascertain_netlab::http::trusting_ours(&[TlsVersion::V1_3])?),
//!     ..ClientOptions::plain("localhost", Duration::from_secs(5))
//! };
//! let mut connection = Connection::open(stream, &options, &mut phases)?;
//! let answer = connection.send(&HttpRequest::get("/bytes/14000"), &mut phases)?;
//! assert_eq!((answer.status, answer.body_bytes), (200, 14_000));
//! assert_eq!(connection.session().map(|session| session.version), Some(TlsVersion::V1_3));
//! assert!(phases.took_ns(Phase::Tls) > Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bare;
mod client;
mod filling;
#[cfg(target_os = "linux")]
mod kernel_tls;
mod observed;
mod server;
mod tls;

use tokio::io::{AsyncRead, AsyncWrite};

pub use bare::download_with_rustls;
pub use client::{BEFORE_AN_ANSWER, ClientOptions, Connection, HttpRequest, HttpResponse};
pub(crate) use filling::random_bytes;
#[cfg(target_os = "linux")]
pub use kernel_tls::kernel_has_tls;
pub use observed::Arrival;
pub use server::{Misbehaviour, Server, ServerStats};
pub use tls::{CERTIFICATE_PEM, KEY_PEM, Tls, TlsSession, TlsVersion, trusting, trusting_ours};
#[cfg(feature = "stores")]
pub(crate) use {server::serve_requests, tls::serving};

/// A connection that can be read and written. HTTP uses it as a boxed trait object, so that the code of HTTP is
/// compiled once for all types of connections.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A version of HTTP, which determines the encoding of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The version HTTP/1.1.
    Http1,
    /// The version HTTP/2. Without TLS, the client starts with HTTP/2 directly (prior knowledge).
    Http2,
}

impl Protocol {
    /// Returns the name of the version in the TLS handshake (ALPN).
    pub(crate) fn id(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}
