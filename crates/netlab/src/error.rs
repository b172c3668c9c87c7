//! The errors of this crate.

use std::io;
use std::time::Duration;

/// An error of this crate. Its message names the failure and, where possible, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is invalid, such as the conditions of a link, a DNS key, a DNS query, or the path of a URL.
    #[error("{0}")]
    Invalid(String),
    /// A link could not be set up, or stopped working.
    #[error("{0}")]
    Link(String),
    /// A server could not be started. The source is the kernel's error.
    #[error("could not start the server: {0}")]
    Server(#[source] io::Error),
    /// The TLS handshake failed, or the settings for TLS are invalid.
    #[error("TLS: {0}")]
    Tls(#[source] BoxError),
    /// The server does not speak the version of HTTP that the client requested.
    #[cfg(feature = "servers")]
    #[error("the server does not speak {wanted:?}; use another protocol")]
    OtherProtocol {
        /// The version of HTTP that the client requested.
        wanted: crate::http::Protocol,
    },
    /// A DNS message could not be encoded or decoded.
    #[error("invalid DNS message: {0}")]
    Message(#[source] BoxError),
    /// A name server refused to change its zone. The text contains the reason.
    #[error("the server did not change its zone: {0}")]
    NoUpdate(String),
    /// The clocks of a name server and of this machine differ too much.
    #[error(
        "the clocks of the server and of this machine differ by {} s, more than signatures allow (BADTIME); correct \
         the wrong clock",
        ours_s.abs_diff(*theirs_s)
    )]
    Clocks {
        /// The time on this machine when the message was signed, in seconds since 1970.
        ours_s: u64,
        /// The time on the server, in seconds since 1970.
        theirs_s: u64,
    },
    /// The answer of a name server has no valid signature, so any host could have sent it.
    #[error("the server's answer is not signed with the key of the request, so it may be forged")]
    Unsigned,
    /// An operation did not end within its time limit.
    #[error("timed out after {limit:?}")]
    TimedOut {
        /// The time limit that passed.
        limit: Duration,
    },
    /// A required program is not installed.
    #[error("`{program}` is not installed; install it with `{install}`")]
    NotInstalled {
        /// Name of the program, such as `nginx`.
        program: &'static str,
        /// Command that installs the program.
        install: &'static str,
    },
    /// A server program ended too early or did not become ready. The text contains the reason.
    #[error("{0}")]
    NotUp(String),
    /// A listener for throughput measurements refused to measure. The value is the reason.
    #[cfg(feature = "servers")]
    #[error("could not measure throughput: {0}")]
    Refused(crate::throughput::Refusal),
    /// No listener accepted the token. Either another program listens at the address, or the listener has too many
    /// connections, or the token is wrong.
    #[error(
        "no listener accepted the token: the token is wrong, the listener has too many connections, or another program \
         listens at the address"
    )]
    NoListener,
    /// The caller stopped the operation.
    #[error("stopped")]
    Stopped,
    /// A connection failed or broke.
    #[error("the connection failed {when}: {}", in_full(source.as_ref()))]
    Broken {
        /// The stage at which the connection broke, such as `while waiting for the listener`.
        when: &'static str,
        /// The underlying error of the connection.
        source: BoxError,
    },
    /// A system call failed unexpectedly.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed, such as `could not create an eventfd`.
        what: &'static str,
        /// The error code that the kernel returned.
        source: io::Error,
    },
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Error {
    #[cfg(feature = "dns")]
    pub(crate) fn message(source: impl Into<BoxError>) -> Self {
        Self::Message(source.into())
    }

    #[cfg(feature = "servers")]
    pub(crate) fn tls(source: impl Into<BoxError>) -> Self {
        Self::Tls(source.into())
    }

    #[cfg(any(feature = "dns", feature = "servers"))]
    pub(crate) fn broken(when: &'static str, source: impl Into<BoxError>) -> Self {
        Self::Broken { when, source: source.into() }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}

/// Returns the message of an error, followed by the messages of all its sources.
fn in_full(error: &dyn std::error::Error) -> String {
    std::iter::successors(error.source(), |error| error.source())
        .fold(error.to_string(), |text, behind| format!("{text}: {behind}"))
}
