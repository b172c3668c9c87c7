//! DNS providers within the process. They accept changes through the API of Route 53 or Cloud DNS, and pass them on to
//! the primary servers of the zones.
//!
//! Clients must sign requests as for the real provider. A wrong key, an old date or a changed body is refused with the
//! provider's own error. A change is reported as done after [`Provider::done_after`], regardless of whether the zone's
//! servers have it.
//!
//! ```
//! use std::net::{Ipv4Addr, TcpListener, UdpSocket};
//! use std::time::Duration;
//! use ascertain_netlab::dns::{SimulationSpec, ZoneServer};
//! use ascertain_netlab::provider::{HostedZone, Provider};
//!
//! let local = (Ipv4Addr::LOCALHOST, 0);
//! let plan = SimulationSpec::new(vec![vec![Duration::from_millis(100)], vec![Duration::from_millis(200)]]);
//! let sockets = vec![UdpSocket::bind(local)?, UdpSocket::bind(local)?];
//! let served = ZoneServer::start(plan, TcpListener::bind(local)?, sockets)?;
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

/// The API that a provider offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// The API of Amazon Route 53, version 2013-04-01. It uses XML, and requests are signed with an access key.
    Route53,
    /// The API of Google Cloud DNS, version 1. It uses JSON, and each request carries a token. A client gets the token
    /// in exchange for a request that is signed with a service account's key, or for a user's login.
    CloudDns,
}

/// A zone that a provider hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedZone {
    /// Identifier of the zone in request paths.
    pub id: String,
    /// Name of the zone, with the final dot.
    pub name: String,
    /// `true` if the zone is visible only within a private network.
    pub is_private: bool,
    /// Address of the zone's primary server, to which updates are sent (RFC 2136).
    pub primary: SocketAddr,
}

/// The settings of an emulated DNS provider. [`start`](Self::start) starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The API that the provider offers.
    pub interface: Interface,
    /// The account that may send requests: an access key id for Route 53, or the mail address of a service account for
    /// Cloud DNS.
    pub account: String,
    /// Secret access key for Route 53. Cloud DNS does not use it.
    pub secret: String,
    /// The zones that the provider hosts.
    pub zones: Vec<HostedZone>,
    /// Time from when the provider accepts a change until it reports the change as done.
    pub done_after: Duration,
    /// Maximum number of requests per second. Further requests are refused.
    pub requests_per_s: usize,
    /// Lifetime of a token for Cloud DNS, in seconds.
    pub token_s: u64,
    /// Number of seconds by which the provider's clock is ahead of this machine's clock.
    pub ahead_s: i32,
    /// Number of changes that are refused at first, as if there had been too many requests.
    pub throttled_changes: usize,
    /// Number of changes that are made, but whose answers are lost before the client receives them.
    pub lost_answers: usize,
    /// Number of changes whose answers are lost, and which are not made until a second later.
    pub late_changes: usize,
}

impl HostedZone {
    /// Creates a public zone.
    pub fn new(id: &str, name: &str, primary: SocketAddr) -> Self {
        Self { id: id.into(), name: name.into(), is_private: false, primary }
    }
}

impl Provider {
    /// Creates the settings of an emulated Route 53 with these zones. It accepts five requests per second.
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

    /// Creates the settings of an emulated Cloud DNS with these zones, in the project `project`.
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
