//! Requests pages and measures the answers, over emulated links or from addresses that users gave.

use std::net::TcpStream;
use std::rc::Rc;
use std::thread::sleep;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Point, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_engine::finding::Remark;
use ascertain_engine::run::Now;
use ascertain_netlab::http::{ClientOptions, Connection, HttpRequest, trusting_ours};
use ascertain_netlab::{Error, Phase, Phases, RunningLink, now_ns, tcp};
use ascertain_sys::interrupt::Stop;

use super::cliff::{Answer, Cliff, Search, Window};
use super::flights::Flights;
use super::servers::{PageServer, SharedServers, link_spec};
use super::{
    BODY, CLIFF, HEAD, LATE, MISSED, OVER, PREDICTED, REQUEST, REQUESTS, RESUMED, ROUND_TRIP, ROUND_TRIPS, SEARCH,
    ServerVariant, TIME, TRIM,
};
use crate::levels::{milliseconds, word};
use crate::links::{facts, failed, watched};
use crate::url::{Url, trusted_here};

/// Time limit for an answer, in addition to its round trips. The limit is long, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);
/// Number of round trips that suffice for any page. The time limit for an answer includes them.
const MOST_ROUND_TRIPS: u32 = 50;
/// Largest number of bytes in a TLS record.
const RECORD_BYTES: u64 = 1 << 14;
/// Size of the page that is requested to check whether a server answers.
const SMALL_BYTES: u64 = 1_000;

struct Pages {
    arms: Vec<PageArm>,
    stop: Stop,
    now: Now,
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Pages::open(arms, setup)?))
}

impl Pages {
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let mut shared = SharedServers::default();
        let arms = arms.iter().map(|arm| PageArm::new(arm, &mut shared)).collect::<Result<_, _>>()?;
        Ok(Self { arms, stop: setup.stop.clone(), now: setup.now.clone() })
    }
}

struct PageArm {
    // Dropped first: the server must end before its link.
    server: Rc<PageServer>,
    /// The emulated link; `None` for a user's page.
    link: Option<Rc<RunningLink>>,
    variant: ServerVariant,
    offer: ClientOptions,
    bytes: u64,
    /// Round-trip time of the emulated link; `None` for a user's page, for which the time to connect is used instead.
    rtt: Option<Duration>,
    idle: Duration,
    window: Window,
    /// `true` if each connection must resume the TLS session of the previous one.
    resumes: bool,
    /// The cipher suite of the previous connection; `None` before the first connection, and without TLS.
    cipher: Option<String>,
}

/// An answer with a page, and its measurements.
struct Page {
    phases: Phases,
    connect_ns: u64,
    time_ns: u64,
    body_bytes: u64,
    /// Number of bytes of the head and of HTTP/2's frames.
    around_bytes: u64,
    /// Number of bytes that TLS adds to the body and the head.
    records_bytes: u64,
    /// Number of bytes that were received after the request was sent.
    received_bytes: u64,
    /// Number of segments in which these `received_bytes` arrived.
    segments: u64,
    flights: Flights,
    /// Compression of the body; `None` if the body is not compressed.
    compression: Option<String>,
}

impl Page {
    /// Returns the number of bytes in segments that hold nothing of the answer, such as session tickets.
    fn apart_bytes(&self) -> u64 {
        self.received_bytes.saturating_sub(self.body_bytes + self.around_bytes + self.records_bytes)
    }

    /// Adds the duration of each phase of the request as a sample, with the time at which the phase started.
    fn push_phases(&self, out: &mut Samples) {
        for phase in Phase::ALL {
            if let (Some(end_ns), Some(took_ns)) = (self.phases.end_ns(phase), self.phases.took_ns(phase)) {
                let offset_ns = end_ns.saturating_sub(took_ns + self.phases.start_ns());
                let (metric, key, value) = (REQUEST, phase.name().into(), took_ns as f64);
                out.push_sample(Sample { metric, key, offset_ns, value, status: Status::Ok });
            }
        }
    }

    /// Returns a remark with the number and the size of the flights in which this page arrived.
    fn remark(&self, window: Window) -> Remark {
        Remark::Flights {
            body_bytes: self.body_bytes,
            compression: self.compression.clone(),
            flights: self.flights.count,
            first_segments: self.flights.first_bytes.div_ceil(window.segment_bytes.max(1)),
            expected_segments: window.segments,
            trim_bytes: self.flights.trim_bytes(),
        }
    }
}

impl PageArm {
    fn new(arm: &Arm, shared: &mut SharedServers) -> Result<Self, TargetError> {
        let variant = ServerVariant::from_arm(arm)?;
        let (idle, bytes) = (milliseconds(arm, "idle_ms")?, arm.integer("bytes").unwrap_or(SEARCH));
        let segments = arm.integer("window")?;
        let url = Url::from_arm(arm, "url").map_err(TargetError::Failed)?;
        let (server, link, host, limit, tls, stream) = if let Some(url) = url {
            let unreached = |error| TargetError::Failed(format!("{url}: {error}"));
            let (address, stream) = url.connect(PATIENCE / 4).map_err(unreached)?;
            let tls = variant.tls.map(|version| trusted_here(&[version])).transpose().map_err(TargetError::Failed)?;
            (Rc::new(PageServer::Elsewhere(url.clone(), address)), None, url.host, PATIENCE, tls, stream)
        } else {
            let spec = link_spec(arm)?;
            let link = shared.link(&spec)?;
            let server = shared.server(variant, &link)?;
            let tls = variant.tls.map(|version| trusting_ours(&[version])).transpose().map_err(failed)?;
            let stream = link.near().connect(server.address()).map_err(failed)?;
            let limit = PATIENCE + MOST_ROUND_TRIPS * spec.rtt;
            (server, Some(link), "localhost".into(), limit, tls, stream)
        };
        let rtt = if link.is_some() { Some(milliseconds(arm, "rtt_ms")?) } else { None };
        let resumes = variant.tls.is_some() && word(arm, "session") == RESUMED;
        let tls = tls.map(|tls| if resumes { tls.resuming() } else { tls });
        let offer = ClientOptions { protocol: variant.protocol, tls, ..ClientOptions::plain(&host, limit) };
        // The MSS of this side. The segments from the server are assumed to have the same size.
        let segment_bytes = tcp::info(&stream).map_err(failed)?.mss_bytes.into();
        let window = Window { segments, segment_bytes };
        Ok(Self { server, link, variant, offer, bytes, rtt, idle, window, resumes, cipher: None })
    }

    fn connect(&self) -> Result<TcpStream, TargetError> {
        let address = self.server.address();
        let connected = match &self.link {
            Some(link) => link.near().connect(address),
            None => TcpStream::connect_timeout(&address, PATIENCE / 4),
        };
        connected.map_err(|error| match &*self.server {
            // The address may be secret, so the error does not contain it.
            PageServer::Elsewhere(url, _) => TargetError::Failed(format!("could not connect to {url}: {error}")),
            _ => TargetError::Failed(format!("could not connect to {address}: {error}")),
        })
    }

    /// Returns the error without the user's address, which may be secret.
    fn failed(&self, error: Error) -> TargetError {
        match &*self.server {
            PageServer::Elsewhere(url, _) => TargetError::Failed(url.without_secret(&error.to_string())),
            _ => failed(error),
        }
    }

    /// Requests a page on a new connection. Fails if the connection does not use the variant's protocol, or if its
    /// cipher suite differs from the cipher suite of the previous connection.
    fn fetch(&mut self, bytes: u64) -> Result<Page, TargetError> {
        let takes_compressed = self.link.is_none();
        let request = HttpRequest { takes_compressed, ..HttpRequest::get(&self.server.page(bytes)?) };
        let mut phases = Phases::begin(now_ns());
        let stream = self.connect()?;
        phases.end(Phase::Connect, now_ns());
        let connect_ns = phases.total_ns();
        let mut connection = Connection::open(stream, &self.offer, &mut phases).map_err(|error| self.failed(error))?;
        self.check(&connection)?;
        if !self.idle.is_zero() {
            connection.send(&request, &mut phases).map_err(|error| self.failed(error))?;
            sleep(self.idle);
            phases = Phases::begin(now_ns());
        }
        let before = tcp::info(connection.socket()).map_err(failed)?;
        // The time is taken before the request is written. A pause of this thread can then only lengthen the measured
        // time.
        let start_ns = now_ns();
        let answer = connection.send(&request, &mut phases).map_err(|error| self.failed(error))?;
        let end_ns = phases.end_ns(Phase::LastByte).unwrap_or_else(now_ns);
        let after = tcp::info(connection.socket()).map_err(failed)?;
        let expected_bytes = if self.link.is_some() { bytes } else { answer.body_bytes };
        if (answer.status, answer.body_bytes) != (200, expected_bytes) {
            let said = format!("status {} and {} bytes", answer.status, answer.body_bytes);
            return Err(TargetError::WrongAnswer(format!(
                "the server answered with {said} instead of status 200 and {expected_bytes} bytes"
            )));
        }
        let too_old =
            || TargetError::Failed("this kernel does not count segments; Linux 4.6 or newer is needed".into());
        let since = |count: fn(&tcp::Info) -> Option<u64>| count(&after)?.checked_sub(count(&before)?);
        let records = answer.received_bytes.div_ceil(RECORD_BYTES);
        let rtt = self.rtt.unwrap_or(Duration::from_nanos(connect_ns));
        Ok(Page {
            phases,
            connect_ns,
            time_ns: end_ns - start_ns,
            body_bytes: answer.body_bytes,
            around_bytes: answer.received_bytes - answer.body_bytes,
            records_bytes: records * self.cipher.as_deref().map_or(0, record_bytes),
            received_bytes: since(|info| info.received_bytes).ok_or_else(too_old)?,
            segments: since(|info| info.received_segments.map(u64::from)).ok_or_else(too_old)?,
            flights: Flights::from_arrivals(&connection.arrivals(), rtt, self.window.segment_bytes),
            compression: answer.compression,
        })
    }

    fn check(&mut self, connection: &Connection) -> Result<(), TargetError> {
        let session = connection.session();
        let cipher = session.map(|session| session.cipher.clone());
        let said = cipher.as_deref().unwrap_or("no TLS");
        if session.map(|session| session.version) != self.variant.tls {
            return Err(TargetError::Failed(format!(
                "{said} was negotiated, but the variant is `{}`",
                self.variant.name
            )));
        }
        if let Some(before) = self.cipher.as_deref().filter(|before| *before != said) {
            return Err(TargetError::Failed(format!("{said} was negotiated, but earlier it was {before}")));
        }
        // The first connection cannot resume a session, because there was none.
        let is_resumed = session.is_some_and(|session| session.is_resumed);
        if self.resumes && self.cipher.is_some() && !is_resumed {
            return Err(TargetError::Failed("the server did not resume the session".into()));
        }
        self.cipher = cipher;
        Ok(())
    }

    /// Searches for the cliff, the size of the largest page that takes one round trip. The result also contains the
    /// predicted size.
    fn cliff(&mut self, seed: u64, stop: &Stop) -> Result<Cliff, TargetError> {
        let mut search = Search::new(self.window, seed);
        // Number of bytes of the first answer that are in separate segments. The same number is assumed for all
        // answers.
        let mut apart_bytes = None;
        while let Some(bytes) = search.next() {
            if stop.is_requested() {
                return Err(TargetError::Interrupted);
            }
            let page = self.fetch(bytes)?;
            let apart_bytes = *apart_bytes.get_or_insert(page.apart_bytes());
            search.observe(Answer {
                body_bytes: bytes,
                shared_bytes: page.received_bytes.saturating_sub(apart_bytes + bytes),
                segments: page.segments,
                // The link may be late, but is never early: an answer that needs another round trip cannot arrive
                // sooner.
                is_fast: self.rtt.is_some_and(|rtt| page.time_ns < 2 * rtt.as_nanos() as u64),
            });
        }
        search.cliff().ok_or_else(|| failed("the search did not find the largest page that takes one round trip"))
    }
}

/// Returns the number of bytes that TLS adds to each record. They are the header and the tag, with TLS 1.3 also the
/// type, and with TLS 1.2 also the explicit nonce of GCM.
fn record_bytes(cipher: &str) -> u64 {
    let of_version = match (cipher.starts_with("TLS13_"), cipher.contains("_GCM_")) {
        (true, _) => 1,
        (false, true) => 8,
        (false, false) => 0,
    };
    5 + 16 + of_version
}

impl Session for Pages {
    /// Checks that the server answers with a small page. Each measurement also checks its own page.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.arms[arm].fetch(SMALL_BYTES).map(drop)
    }

    /// Returns the segment size, the link's properties if there is a link, and the cipher suite if it is known.
    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        let arm = &self.arms[arm];
        let point = facts(arm.link.as_deref())?.with("mss_bytes", arm.window.segment_bytes);
        Ok(arm.cipher.iter().fold(point, |point, cipher| point.with("cipher", cipher.as_str())))
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let (arm, now) = (&mut self.arms[arm], &self.now);
        watched(arm.link.clone().as_deref(), LATE, out, |out| {
            if arm.bytes == SEARCH && arm.link.is_some() {
                let cliff = arm.cliff(trial.seed, &self.stop)?;
                out.push(CLIFF, cliff.body_bytes as f64);
                out.push(PREDICTED, cliff.predicted_bytes as f64);
                out.push(MISSED, cliff.body_bytes.abs_diff(cliff.predicted_bytes) as f64);
                out.push(REQUESTS, cliff.requests as f64);
            } else {
                let page = arm.fetch(arm.bytes)?;
                let rtt_ns = arm.rtt.map_or(page.connect_ns.max(1), |rtt| rtt.as_nanos() as u64);
                now.remark(page.remark(arm.window));
                out.push(TIME, page.time_ns as f64);
                out.push(ROUND_TRIPS, page.time_ns as f64 / rtt_ns as f64);
                out.push(ROUND_TRIP, page.connect_ns as f64);
                out.push(HEAD, page.around_bytes as f64);
                out.push(BODY, page.body_bytes as f64);
                out.push(OVER, page.flights.over_bytes() as f64);
                out.push(TRIM, page.flights.trim_bytes() as f64);
                page.push_phases(out);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
