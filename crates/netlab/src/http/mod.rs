//! HTTP within the process: a [`Server`] on a socket that is given to it, and a client's [`Connection`] over one, which
//! sees the phases of its requests.
//!
//! Neither opens a socket of its own, for a socket stays in the namespace it was made in: what is made at the ends of
//! an emulated link is given to them, and this thread need not go there.
//!
//! ```
//! use std::net::{TcpListener, TcpStream};
//! use std::time::Duration;
//! use ascertain_netlab::http::{Connection, Offer, Protocol, Request, Server, TlsVersion};
//! use ascertain_netlab::{Phase, Phases, now_ns};
//!
//! let server = Server::start(TcpListener::bind("127.0.0.1:0")?, Some(&[TlsVersion::V1_3]))?;
//! let mut phases = Phases::begin(now_ns());
//! let stream = TcpStream::connect(server.address())?;
//! phases.end(Phase::Connect, now_ns());
//! let offer = Offer {
//!     protocol: Protocol::Http2,
//!     tls: Some(ascertain_netlab::http::trusting_ours(&[TlsVersion::V1_3])?),
//!     ..Offer::plain("localhost", Duration::from_secs(5))
//! };
//! let mut connection = Connection::open(stream, &offer, &mut phases)?;
//! let answer = connection.send(&Request::get("/bytes/14000"), &mut phases)?;
//! assert_eq!((answer.status, answer.body_bytes), (200, 14_000));
//! assert_eq!(connection.session().map(|session| session.version), Some(TlsVersion::V1_3));
//! assert!(phases.took_ns(Phase::Tls) > Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod filling;
#[cfg(target_os = "linux")]
mod kernel_tls;
mod misbehaviour;
mod server;
mod tls;
mod watched;

use tokio::io::{AsyncRead, AsyncWrite};

pub use client::{Answer, BEFORE_AN_ANSWER, Connection, Offer, Request};
#[cfg(target_os = "linux")]
pub use kernel_tls::kernel_has_tls;
pub use misbehaviour::Misbehaviour;
#[cfg(feature = "stores")]
pub(crate) use server::serve_requests;
pub use server::{Served, Server};
#[cfg(feature = "stores")]
pub(crate) use tls::serving;
pub use tls::{CERTIFICATE_PEM, KEY_PEM, Session, Tls, TlsVersion, trusting, trusting_ours};
pub use watched::Arrival;

/// Both directions of a connection. HTTP works on a boxed stream, so that its code is compiled once and not for every
/// kind of connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// How requests and answers are put into bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; without TLS by prior knowledge.
    Http2,
}

impl Protocol {
    /// As TLS names it (ALPN).
    pub(crate) fn id(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}
