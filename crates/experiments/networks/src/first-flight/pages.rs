//! Pages, asked for and timed: through emulated links, or from wherever they are.

use std::net::TcpStream;
use std::rc::Rc;
use std::thread::sleep;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Point, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_engine::finding::Remark;
use ascertain_engine::run::Now;
use ascertain_netlab::http::{Connection, Offer, Request, trusting_ours};
use ascertain_netlab::{Error, Phase, Phases, RunningLink, now_ns, tcp};
use ascertain_sys::interrupt::Stop;

use super::cliff::{Answer, Cliff, Search, Window};
use super::flights::Flights;
use super::places::{LinkKey, Places, Serving, way_of};
use super::{
    BODY, CLIFF, HEAD, LATE, MISSED, OVER, PREDICTED, REQUEST, REQUESTS, RESUMED, ROUND_TRIP, ROUND_TRIPS, SEARCH,
    TIME, TRIM, Way,
};
use crate::links::{facts, failed, watched};
use crate::url::{Url, trusted_here};

/// Longer than any answer takes beside its round trips, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);
/// Among that many round trips there is every page that can be asked for.
const MOST_ROUND_TRIPS: u32 = 50;
/// What a record of TLS holds at the most.
const RECORD_BYTES: u64 = 1 << 14;
/// To see that a server answers at all.
const SMALL_BYTES: u64 = 1_000;

struct Pages {
    targets: Vec<Target>,
    stop: Stop,
    now: Now,
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Pages::open(arms, setup)?))
}

impl Pages {
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let mut places = Places::default();
        let targets = arms.iter().map(|arm| Target::new(arm, &mut places)).collect::<Result<_, _>>()?;
        Ok(Self { targets, stop: setup.stop.clone(), now: setup.now.clone() })
    }
}

struct Target {
    // Ends before its link does.
    server: Rc<Serving>,
    /// None to what is elsewhere.
    link: Option<Rc<RunningLink>>,
    way: Way,
    offer: Offer,
    bytes: u64,
    /// The round trip of the emulated link; none of a remote page, where connecting gives it.
    rtt: Option<Duration>,
    idle: Duration,
    window: Window,
    /// Whether each connection is to go on from the session of the one before it.
    resumes: bool,
    /// What encrypts, since the first answer.
    cipher: Option<String>,
}

/// What was seen of a page.
struct Page {
    phases: Phases,
    connect_ns: u64,
    time_ns: u64,
    body_bytes: u64,
    /// Its head, and HTTP/2's frames.
    around_bytes: u64,
    /// What TLS adds to these.
    records_bytes: u64,
    /// All that came after the request, and in how many segments.
    received_bytes: u64,
    segments: u64,
    flights: Flights,
    /// How the body is compressed, if it is.
    compression: Option<String>,
}

impl Page {
    /// What came beside its body and what is around that: tickets, in segments of their own.
    fn apart_bytes(&self) -> u64 {
        self.received_bytes.saturating_sub(self.body_bytes + self.around_bytes + self.records_bytes)
    }

    /// What each phase took, from when it began.
    fn push_phases(&self, out: &mut Samples) {
        for phase in Phase::ALL {
            if let (Some(end_ns), Some(took_ns)) = (self.phases.end_ns(phase), self.phases.took_ns(phase)) {
                let offset_ns = end_ns.saturating_sub(took_ns + self.phases.start_ns());
                let (metric, key, value) = (REQUEST, phase.name().into(), took_ns as f64);
                out.push_sample(Sample { metric, key, offset_ns, value, status: Status::Ok });
            }
        }
    }

    /// The remark about this page.
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

impl Target {
    fn new(arm: &Arm, places: &mut Places) -> Result<Self, TargetError> {
        let way = way_of(arm)?;
        let (idle, bytes) = (Duration::from_millis(arm.integer("idle_ms")?), arm.integer("bytes").unwrap_or(SEARCH));
        let segments = arm.integer("window")?;
        let url = Url::of(arm, "url").map_err(TargetError::Failed)?;
        let (server, link, host, limit, tls, stream) = if let Some(url) = url {
            let unreached = |error| TargetError::Failed(format!("{url}: {error}"));
            let (address, stream) = url.connect(PATIENCE / 4).map_err(unreached)?;
            let tls = way.tls.map(|version| trusted_here(&[version])).transpose().map_err(TargetError::Failed)?;
            (Rc::new(Serving::Elsewhere(url.clone(), address)), None, url.host, PATIENCE, tls, stream)
        } else {
            let key = LinkKey::of(arm)?;
            let link = places.link(&key).map_err(failed)?;
            let server = places.server(&key, way, &link).map_err(failed)?;
            let tls = way.tls.map(|version| trusting_ours(&[version])).transpose().map_err(failed)?;
            let stream = link.near().connect(server.address()).map_err(failed)?;
            let limit = PATIENCE + MOST_ROUND_TRIPS * Duration::from_millis(key.rtt_ms);
            (server, Some(link), "localhost".into(), limit, tls, stream)
        };
        let rtt = if link.is_some() { Some(Duration::from_millis(arm.integer("rtt_ms")?)) } else { None };
        let resumes = way.tls.is_some() && arm.point.get("session") == Some(&RESUMED.into());
        let tls = tls.map(|tls| if resumes { tls.resuming() } else { tls });
        let offer = Offer { protocol: way.protocol, tls, ..Offer::plain(&host, limit) };
        // Both ends are taken to be alike: what we may send in a segment, the server may.
        let segment_bytes = tcp::info(&stream).map_err(failed)?.mss_bytes.into();
        let window = Window { segments, segment_bytes };
        Ok(Self { server, link, way, offer, bytes, rtt, idle, window, resumes, cipher: None })
    }

    fn connect(&self) -> Result<TcpStream, TargetError> {
        let address = self.server.address();
        let connected = match &self.link {
            Some(link) => link.near().connect(address),
            None => TcpStream::connect_timeout(&address, PATIENCE / 4),
        };
        connected.map_err(|error| match &*self.server {
            // Its address may be a secret.
            Serving::Elsewhere(url, _) => TargetError::Failed(format!("no connection to {url}: {error}")),
            _ => TargetError::Failed(format!("no connection to {address}: {error}")),
        })
    }

    /// What went wrong, without an address that is a secret.
    fn failed(&self, error: Error) -> TargetError {
        match &*self.server {
            Serving::Elsewhere(url, _) => TargetError::Failed(url.without_secret(&error.to_string())),
            _ => failed(error),
        }
    }

    /// Asks for a page on a new connection. Another protocol than the variant's, or another cipher than before, is an
    /// error.
    fn fetch(&mut self, bytes: u64) -> Result<Page, TargetError> {
        let takes_compressed = self.link.is_none();
        let request = Request { takes_compressed, ..Request::get(&self.server.page(bytes)?) };
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
        // Before it is written, so that who is stopped in the middle of it never has less time on the clock.
        let start_ns = now_ns();
        let answer = connection.send(&request, &mut phases).map_err(|error| self.failed(error))?;
        let end_ns = phases.end_ns(Phase::LastByte).unwrap_or_else(now_ns);
        let after = tcp::info(connection.socket()).map_err(failed)?;
        let expected_bytes = if self.link.is_some() { bytes } else { answer.body_bytes };
        if (answer.status, answer.body_bytes) != (200, expected_bytes) {
            let said = format!("status {} and {} bytes", answer.status, answer.body_bytes);
            return Err(TargetError::WrongAnswer(format!("{said} instead of 200 and {expected_bytes}")));
        }
        let too_old = || TargetError::Failed("this kernel counts no segments (before Linux 4.6)".into());
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
            flights: Flights::of(&connection.arrivals(), rtt, self.window.segment_bytes),
            compression: answer.compression,
        })
    }

    fn check(&mut self, connection: &Connection) -> Result<(), TargetError> {
        let session = connection.session();
        let cipher = session.map(|session| session.cipher.clone());
        let said = cipher.as_deref().unwrap_or("no TLS");
        if session.map(|session| session.version) != self.way.tls {
            return Err(TargetError::Failed(format!("{said} was agreed upon, which is not `{}`", self.way.name)));
        }
        if let Some(before) = self.cipher.as_deref().filter(|before| *before != said) {
            return Err(TargetError::Failed(format!("{said} was agreed upon, and before it was {before}")));
        }
        // The first connection has no session to go on from.
        let is_resumed = session.is_some_and(|session| session.is_resumed);
        if self.resumes && self.cipher.is_some() && !is_resumed {
            return Err(TargetError::Failed("the server does not let a session be resumed".into()));
        }
        self.cipher = cipher;
        Ok(())
    }

    /// Looks for the largest page that takes one round trip.
    fn cliff(&mut self, seed: u64, stop: &Stop) -> Result<Cliff, TargetError> {
        let mut search = Search::new(self.window, seed);
        // Of the first answer.
        let mut apart_bytes = None;
        while let Some(bytes) = search.next() {
            if stop.is_asked() {
                return Err(TargetError::Interrupted);
            }
            let page = self.fetch(bytes)?;
            let apart_bytes = *apart_bytes.get_or_insert(page.apart_bytes());
            search.observe(Answer {
                body_bytes: bytes,
                shared_bytes: page.received_bytes.saturating_sub(apart_bytes + bytes),
                segments: page.segments,
                // The link is late at times, and never early: what takes another round trip can't be here before.
                is_fast: self.rtt.is_some_and(|rtt| page.time_ns < 2 * rtt.as_nanos() as u64),
            });
        }
        search.cliff().ok_or_else(|| failed("there is no largest page that takes one round trip"))
    }
}

/// What a record of TLS has besides what it holds: its head, the tag, and in 1.3 its kind, in 1.2 the nonce that is not
/// agreed upon.
fn record_bytes(cipher: &str) -> u64 {
    let of_version = match (cipher.starts_with("TLS13_"), cipher.contains("_GCM_")) {
        (true, _) => 1,
        (false, true) => 8,
        (false, false) => 0,
    };
    5 + 16 + of_version
}

impl Session for Pages {
    /// Whether the server answers as it should: each page is looked at while it is measured, too.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.targets[arm].fetch(SMALL_BYTES).map(drop)
    }

    /// Of a server elsewhere little is known.
    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        let target = &self.targets[arm];
        let of_link = target.link.as_deref().map_or_else(|| Ok(Point::default()), facts)?;
        let point = of_link.with("mss_bytes", target.window.segment_bytes);
        Ok(target.cipher.iter().fold(point, |point, cipher| point.with("cipher", cipher.as_str())))
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let (target, now) = (&mut self.targets[arm], &self.now);
        watched(target.link.clone().as_deref(), LATE, out, |out| {
            if target.bytes == SEARCH && target.link.is_some() {
                let cliff = target.cliff(trial.seed, &self.stop)?;
                out.push(CLIFF, cliff.body_bytes as f64);
                out.push(PREDICTED, cliff.predicted_bytes as f64);
                out.push(MISSED, cliff.body_bytes.abs_diff(cliff.predicted_bytes) as f64);
                out.push(REQUESTS, cliff.requests as f64);
            } else {
                let page = target.fetch(target.bytes)?;
                let rtt_ns = target.rtt.map_or(page.connect_ns.max(1), |rtt| rtt.as_nanos() as u64);
                now.remark(page.remark(target.window));
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
