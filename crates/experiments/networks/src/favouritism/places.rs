//! What is downloaded, and through what: emulated links with two servers behind them, and somebody's servers.

use std::fmt::Display;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, TargetError, Unavailable};
use ascertain_netlab::http::{BEFORE_AN_ANSWER, Connection, Offer, Request, Server, TlsVersion};
use ascertain_netlab::model::{Conditions, Favoured, Throttle, TokenBucket};
use ascertain_netlab::{Error, Link, Phases, RunningLink, now_ns};

use super::CHEATING;
use crate::links::{self, failed};
use crate::url::{Url, trusted_here};

const OWN_PORT: u16 = 8000;
const TEST_PORT: u16 = 8001;
/// More than is ever downloaded.
const PATH: &str = "/bytes/1000000000000";
const FULL_SEGMENT_BYTES: u64 = 1500;
/// What a throttle lets through at once, as much as a connection begins with.
const BURST_BYTES: u64 = 10 * FULL_SEGMENT_BYTES;
/// As long as nobody answers, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

/// One's own file and the speed test's, where they are not ours.
fn urls_of(arm: &Arm) -> Result<Option<[Url; 2]>, String> {
    match (Url::of(arm, "url")?, Url::of(arm, "speedtest")?) {
        (Some(own), Some(test)) => Ok(Some([own, test])),
        (None, None) => Ok(None),
        _ => Err("`url` and `speedtest` go together: name what you download, and what the speed test does".into()),
    }
}

/// Whether there are links, if one is needed.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    match urls_of(arm).map_err(Unavailable::other)? {
        Some(_) => Ok(()),
        None => links::is_available(&Link::default()),
    }
}

/// Both directions of the arm's link, from the near side and to it: only what is downloaded is throttled.
pub fn conditions_of(arm: &Arm, link: &Link) -> Result<[Conditions; 2], TargetError> {
    let [to_far, mut to_near] = link.conditions();
    if arm.point.get("link") == Some(&CHEATING.into()) {
        to_near.throttle = Some(Throttle {
            bucket: TokenBucket {
                burst_bytes: BURST_BYTES,
                rate_bits_per_s: arm.integer("throttled_mbit_s")? * 1_000_000,
            },
            favoured: vec![Favoured { address: None, port: Some(TEST_PORT) }],
            lifted_for_all: Some(2 * link.rtt),
        });
    }
    Ok([to_far, to_near])
}

/// The arm's link without what a cheating one does. As much may wait as is under way in a round trip.
pub fn link_of(arm: &Arm) -> Result<Link, TargetError> {
    let (rate_bits_per_s, rtt_ms) = (arm.integer("rate_mbit_s")? * 1_000_000, arm.integer("rtt_ms")?);
    let queue_bytes = (rate_bits_per_s / 8 * rtt_ms / 1_000).max(BURST_BYTES);
    Ok(Link {
        rtt: Duration::from_millis(rtt_ms),
        rate_bits_per_s: Some(rate_bits_per_s),
        queue_bytes: usize::try_from(queue_bytes).unwrap_or(usize::MAX),
        ..Link::default()
    })
}

/// Somewhere to download from.
pub struct Source {
    url: Url,
    offer: Offer,
    /// Ours, which ends with this.
    server: Option<Server>,
}

impl Source {
    fn ours(link: &RunningLink, port: u16, limit: Duration) -> Result<Self, TargetError> {
        let listener = link.far().listen((link.far().address(), port)).map_err(failed)?;
        let server = Server::start(listener, None).map_err(failed)?;
        let url = Url::ours(server.address(), PATH);
        Ok(Self { offer: Offer::plain(&url.host, limit), url, server: Some(server) })
    }

    fn elsewhere(url: Url, limit: Duration) -> Result<Self, TargetError> {
        let versions = [TlsVersion::V1_2, TlsVersion::V1_3];
        let tls = url.is_secure.then(|| trusted_here(&versions)).transpose().map_err(TargetError::Failed)?;
        Ok(Self { offer: Offer { tls, ..Offer::plain(&url.host, limit) }, url, server: None })
    }

    /// A connection to it.
    pub fn open(&self, link: Option<&RunningLink>) -> Result<Connection, TargetError> {
        let connected = match (link, &self.server) {
            (Some(link), Some(server)) => link.near().connect(server.address()),
            _ => self.url.connect(self.offer.limit).map(|(_, stream)| stream),
        };
        let stream = connected.map_err(|error| self.failed(error))?;
        Connection::open(stream, &self.offer, &mut Phases::begin(now_ns())).map_err(|error| self.failed(error))
    }

    /// Downloads it, again and again, until that fails. `Ok` means that the server ended the connection after a whole
    /// answer, as servers do after one answer or after a thousand: the download goes on over another connection.
    pub fn download(&self, mut connection: Connection) -> Result<(), TargetError> {
        let mut answers = 0;
        loop {
            match connection.send(&Request::get(&self.url.path), &mut Phases::begin(now_ns())) {
                Ok(answer) if answer.status == 200 => answers += 1,
                Ok(answer) => return Err(self.failed(format!("status {} instead of 200", answer.status))),
                Err(Error::Broken { when: BEFORE_AN_ANSWER, .. }) if answers > 0 => return Ok(()),
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// What happened to it.
    pub fn failed(&self, error: impl Display) -> TargetError {
        TargetError::Failed(format!("{}: {}", self.url, self.url.without_secret(&error.to_string())))
    }
}

/// Where one's own download and the speed test come from.
pub struct Place {
    pub own: Source,
    pub test: Source,
    // Ends after its servers do.
    pub link: Option<RunningLink>,
}

impl Place {
    /// Each download lasts for as long.
    pub fn of(arm: &Arm, lasting: Duration) -> Result<Self, TargetError> {
        let limit = PATIENCE + lasting;
        if let Some([own, test]) = urls_of(arm).map_err(TargetError::Failed)? {
            let [own, test] = [own, test].map(|url| Source::elsewhere(url, limit));
            return Ok(Self { own: own?, test: test?, link: None });
        }
        let link = link_of(arm)?;
        let [to_far, to_near] = conditions_of(arm, &link)?;
        let link = link.start_with(&to_far, &to_near).map_err(failed)?;
        let [own, test] = [OWN_PORT, TEST_PORT].map(|port| Source::ours(&link, port, limit));
        Ok(Self { own: own?, test: test?, link: Some(link) })
    }
}

#[cfg(test)]
#[path = "simulated.rs"]
mod simulated;
