//! The errors of this crate.

use std::io;
use std::time::Duration;

/// What can go wrong: what was tried, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rate at which nothing would ever arrive.
    #[error("{what} is 0 bits a second, at which nothing ever arrives: give a rate, or leave it out")]
    NoRate {
        /// Which of the rates.
        what: &'static str,
    },
    /// A share that is none.
    #[error("a loss of {loss} is not a share: give a number from 0 to 1")]
    NotAShare {
        /// What was given.
        loss: f64,
    },
    /// A server could not be started.
    #[error("the server could not be started: {0}")]
    Server(#[source] io::Error),
    /// Two sides do not agree upon keys.
    #[error("TLS: {source}")]
    Tls {
        /// What it says itself.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server speaks another protocol.
    #[cfg(feature = "servers")]
    #[error("the server does not speak {wanted:?}: ask for another protocol")]
    OtherProtocol {
        /// What it was to speak.
        wanted: crate::http::Protocol,
    },
    /// A request's address is none.
    #[error("`{path}` at `{host}` can't be asked for: a path begins with `/`, and has no spaces")]
    Path {
        /// The path.
        path: String,
        /// The host.
        host: String,
    },
    /// A time limit.
    #[error("there was no end of it within {limit:?}")]
    TimedOut {
        /// How long it was.
        limit: Duration,
    },
    /// A program that is not installed.
    #[error("`{program}` is not installed: `apt-get install {package}`, on Debian and Ubuntu")]
    NotInstalled {
        /// The program.
        program: &'static str,
        /// Debian's package of it.
        package: &'static str,
    },
    /// A program does not come up.
    #[error("`{program}` {how}{}", quoted(.says))]
    NotUp {
        /// The program.
        program: &'static str,
        /// What it does instead.
        how: String,
        /// What it said last.
        says: String,
    },
    /// A connection broke.
    #[error("the connection broke {when}: {}", in_full(source.as_ref()))]
    Broken {
        /// How far it had come.
        when: &'static str,
        /// What it broke of.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[cfg(feature = "servers")]
impl Error {
    pub(crate) fn tls(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Tls { source: source.into() }
    }

    pub(crate) fn broken(when: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Broken { when, source: source.into() }
    }
}

/// An error with what lies behind it.
fn in_full(error: &dyn std::error::Error) -> String {
    std::iter::successors(error.source(), |error| error.source())
        .fold(error.to_string(), |said, behind| format!("{said}: {behind}"))
}

fn quoted(says: &str) -> String {
    if says.is_empty() { ", and says nothing".into() } else { format!("; it says:\n{says}") }
}
