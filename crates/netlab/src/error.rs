//! The errors of this crate.

use std::io;
use std::time::Duration;

#[cfg(target_os = "linux")]
use crate::Carrier;

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
    /// A key that is none.
    #[cfg(feature = "dns")]
    #[error("the key can't be used: {why}")]
    Key {
        /// Why not, without the secret.
        why: String,
    },
    /// Questions that can't be asked.
    #[cfg(feature = "dns")]
    #[error("{why}")]
    Mix {
        /// What is wrong, and in which line.
        why: String,
    },
    /// A message of the DNS that can't be written, or not be understood.
    #[cfg(feature = "dns")]
    #[error("a message of the DNS: {source}")]
    Message {
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A name server does not change its zone.
    #[cfg(feature = "dns")]
    #[error("the server did not change its zone: {why}")]
    NoUpdate {
        /// What it says.
        why: String,
    },
    /// A name server's clock, and ours.
    #[cfg(feature = "dns")]
    #[error(
        "the server's clock and this machine's differ by {} s, more than a signature may be old (BADTIME): set the one \
         that is wrong",
        ours_s.abs_diff(*theirs_s)
    )]
    Clocks {
        /// What it was here when it was signed, in seconds since 1970.
        ours_s: u64,
        /// What it was there.
        theirs_s: u64,
    },
    /// An answer that anybody could have sent.
    #[cfg(feature = "dns")]
    #[error("the answer is not signed with the key of the question: it may be somebody else's")]
    Unsigned,
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
    #[error("`{program}` is not installed: `{install}` does that")]
    NotInstalled {
        /// The program.
        program: &'static str,
        /// What installs it.
        install: &'static str,
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
    /// What listens for measurements of throughput says no.
    #[cfg(feature = "servers")]
    #[error("there is no measurement: {0}")]
    Refused(crate::throughput::Refusal),
    /// Something else listens there, or the token is another.
    #[error("the listener does not take the token, has too many connections, or is none of ours")]
    NoListener,
    /// Somebody asked for the end.
    #[error("stopped")]
    Stopped,
    /// A connection broke.
    #[error("the connection broke {when}: {}", in_full(source.as_ref()))]
    Broken {
        /// How far it had come.
        when: &'static str,
        /// What it broke of.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No network namespaces.
    #[cfg(target_os = "linux")]
    #[error(
        "no network namespace could be made ({source}): be root, or let users have namespaces (sysctl \
         user.max_user_namespaces above 0; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0; in a container \
         CAP_SYS_ADMIN, and a filter of system calls that allows unshare)"
    )]
    NoNamespaces {
        /// What the kernel said.
        source: io::Error,
    },
    /// No carrier of the kind that was asked for.
    #[cfg(target_os = "linux")]
    #[error("a link can't be carried by {carrier:?} ({source}): {}", way_out(*.carrier))]
    NoCarrier {
        /// Which one.
        carrier: Carrier,
        /// What the kernel said.
        source: io::Error,
    },
    /// No carrier at all.
    #[cfg(target_os = "linux")]
    #[error(
        "a link can be carried neither by TUN ({tun_source}) nor by virtual Ethernet ({veth_source}): {TUN_WAY_OUT}, \
         or {VETH_WAY_OUT}"
    )]
    NoCarriers {
        /// What the kernel said to a TUN.
        tun_source: io::Error,
        /// What it said to virtual Ethernet.
        veth_source: io::Error,
    },
    /// Packets of a size that no interface has.
    #[error("no link has packets of {mtu_bytes} bytes at most: give from 68 (from 1280 for IPv6) to 65535")]
    Mtu {
        /// What was given.
        mtu_bytes: u32,
    },
    /// The kernel does not have, or does not allow, that congestion control.
    #[error(
        "no route with the congestion control `{name}` could be made ({source}): \
         /proc/sys/net/ipv4/tcp_available_congestion_control lists what this kernel has; others take \
         `modprobe tcp_NAME`"
    )]
    Route {
        /// What was given.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The link's thread has ended.
    #[error("the link does not work any more, after a mistake of ours: make a new one")]
    Ended,
    /// A call of the operating system failed that hardly ever does.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

#[cfg(feature = "dns")]
impl Error {
    pub(crate) fn message(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Message { source: source.into() }
    }
}

#[cfg(feature = "servers")]
impl Error {
    pub(crate) fn tls(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Tls { source: source.into() }
    }
}

#[cfg(any(feature = "dns", feature = "servers"))]
impl Error {
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

#[cfg(target_os = "linux")]
impl Error {
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}

#[cfg(target_os = "linux")]
const TUN_WAY_OUT: &str = "load the module `tun` and let the user read and write /dev/net/tun";
#[cfg(target_os = "linux")]
const VETH_WAY_OUT: &str = "load the modules `veth` and `af_packet`";

#[cfg(target_os = "linux")]
fn way_out(carrier: Carrier) -> &'static str {
    if carrier == Carrier::Veth { VETH_WAY_OUT } else { TUN_WAY_OUT }
}
