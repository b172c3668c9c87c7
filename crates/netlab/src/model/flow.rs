//! Who sends a segment to whom.

use std::net::{IpAddr, SocketAddr};

/// From where to where a segment goes. Where a protocol has no ports they are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Who sent it.
    pub source: SocketAddr,
    /// Whom it is for.
    pub destination: SocketAddr,
}

/// Whom a provider favours: what is left out may be anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Favoured {
    /// Its address.
    pub address: Option<IpAddr>,
    /// Its port.
    pub port: Option<u16>,
}

impl Favoured {
    /// Whether it is at either end of the flow: answers are favoured like questions.
    #[must_use]
    pub fn takes_part_in(&self, flow: &Flow) -> bool {
        let is_it = |end: SocketAddr| {
            self.address.is_none_or(|address| address == end.ip()) && self.port.is_none_or(|port| port == end.port())
        };
        is_it(flow.source) || is_it(flow.destination)
    }
}
