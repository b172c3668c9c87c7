//! Providers of zones within the process, which are told of changes as Route 53 and Cloud DNS are, and pass them on to
//! the zones' primary servers.
//!
//! Who asks must sign as with the provider: a wrong key, an old date or another body is refused with the provider's own
//! errors. A change is "done" at a moment of the provider's own, whatever the zone's servers know by then.
//!
//! ```
//! use std::net::{Ipv4Addr, TcpListener, UdpSocket};
//! use std::time::Duration;
//! use ascertain_netlab::dns::{Plan, Served};
//! use ascertain_netlab::provider::{HostedZone, Provider};
//!
//! let local = (Ipv4Addr::LOCALHOST, 0);
//! let plan = Plan::new(vec![vec![Duration::from_millis(100)], vec![Duration::from_millis(200)]]);
//! let sockets = vec![UdpSocket::bind(local)?, UdpSocket::bind(local)?];
//! let served = Served::start(plan, TcpListener::bind(local)?, sockets)?;
//! let provider = Provider::route53(vec![HostedZone::new("Z1", "example.", served.primary())]);
//! let running = provider.start(TcpListener::bind(local)?)?;
//! println!("AWS_ENDPOINT_URL_ROUTE_53={}", running.url());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cloud_dns;
mod records;
mod route53;
mod running;
mod tokens;

use std::net::SocketAddr;
use std::time::Duration;

pub use running::RunningProvider;

/// Whose interface a provider has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Amazon's, of 2013-04-01: XML, signed with an access key.
    Route53,
    /// Google's, version 1: JSON, with a token for who has a service account's key or is logged in.
    CloudDns,
}

/// A zone of a provider's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedZone {
    /// By what it is called in addresses.
    pub id: String,
    /// Its name, with the dot at its end.
    pub name: String,
    /// Whether it is for a network of one's own only.
    pub is_private: bool,
    /// Where updates of it go (RFC 2136).
    pub primary: SocketAddr,
}

/// What a provider should be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Whose interface it has.
    pub interface: Interface,
    /// Whom it knows: the access key, or the service account's address.
    pub account: String,
    /// Route 53's secret access key.
    pub secret: String,
    /// The zones that it has.
    pub zones: Vec<HostedZone>,
    /// How long after a change was taken it is "done".
    pub done_after: Duration,
    /// How many requests it takes within a second.
    pub requests_per_s: usize,
    /// For how long a token holds.
    pub token_s: u64,
    /// How many seconds its clock is ahead.
    pub ahead_s: i32,
    /// So many changes are refused first, as if there had been too many requests.
    pub throttled_changes: usize,
    /// To so many changes the answer is lost, when they have been made.
    pub lost_answers: usize,
    /// To so many changes the answer is lost a second before they are made.
    pub late_changes: usize,
}

impl HostedZone {
    /// One that all may see.
    #[must_use]
    pub fn new(id: &str, name: &str, primary: SocketAddr) -> Self {
        Self { id: id.into(), name: name.into(), is_private: false, primary }
    }
}

impl Provider {
    /// Amazon's, which takes five requests a second.
    #[must_use]
    pub fn route53(zones: Vec<HostedZone>) -> Self {
        Self {
            interface: Interface::Route53,
            account: "ascertain".into(),
            secret: "not-a-secret-at-all".into(),
            zones,
            done_after: Duration::from_millis(10),
            requests_per_s: 5,
            token_s: 3_600,
            ahead_s: 0,
            throttled_changes: 0,
            lost_answers: 0,
            late_changes: 0,
        }
    }

    /// Google's, with the project `project`.
    #[must_use]
    pub fn cloud_dns(zones: Vec<HostedZone>) -> Self {
        Self {
            interface: Interface::CloudDns,
            account: "ascertain@project.iam.gserviceaccount.com".into(),
            secret: String::new(),
            requests_per_s: 100,
            ..Self::route53(zones)
        }
    }
}
