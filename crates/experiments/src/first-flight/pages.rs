//! Pages through emulated links: what an arm has a link, a server and connections for.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Level, Samples, Session, Setup, TargetError, Trial, Unavailable};
use ascertain_netlab::http::{Connection, Offer, Request, Server, TlsVersion, trusting_ours};
use ascertain_netlab::installed::{Program, Running, caddy, nginx};
use ascertain_netlab::{Carrier, Error, Link, Phase, Phases, RunningLink, now_ns, tcp};
use ascertain_sys::interrupt::Stop;

use super::cliff::{Answer, Cliff, Search, Window};
use super::{CLIFF, Host, KERNEL, LATE, MISSED, PREDICTED, REQUESTS, ROUND_TRIPS, SEARCH, TIME, UNFAITHFUL, WAYS, Way};

/// Longer than any answer takes beside its round trips, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);
/// Among that many round trips there is every page that can be asked for.
const MOST_ROUND_TRIPS: u32 = 50;
/// Servers listen from this port on.
const FIRST_PORT: u16 = 8000;
/// What a record of TLS holds at the most.
const RECORD_BYTES: u64 = 1 << 14;
/// To see that a server answers at all.
const SMALL_BYTES: u64 = 1_000;

fn failed(error: impl ToString) -> TargetError {
    TargetError::Failed(error.to_string())
}

/// Links that are alike are one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LinkKey {
    rtt_ms: u64,
    window: u64,
    congestion: Option<String>,
}

impl LinkKey {
    fn of(arm: &Arm) -> Result<Self, TargetError> {
        let congestion = arm.point.get("congestion").map(Level::to_string).filter(|name| name != KERNEL);
        Ok(Self { rtt_ms: arm.integer("rtt_ms")?, window: arm.integer("window")?, congestion })
    }

    /// Each segment is to be a frame of its own, for the kernel counts frames; where that can't be had, any link.
    fn start(&self) -> Result<RunningLink, Error> {
        let link = Link {
            rtt: Duration::from_millis(self.rtt_ms),
            initial_window_segments: u32::try_from(self.window).ok(),
            congestion_control: self.congestion.clone(),
            carrier: Some(Carrier::Tun { has_offloads: false }),
            ..Link::default()
        };
        match link.start() {
            Err(Error::NoCarrier { .. }) => Link { carrier: None, ..link }.start(),
            link => link,
        }
    }
}

fn way_of(arm: &Arm) -> Result<Way, TargetError> {
    let way = WAYS.into_iter().find(|way| way.name == arm.variant);
    way.ok_or_else(|| TargetError::Failed(format!("{arm}: there is no such variant")))
}

impl Way {
    /// The program that answers; none for our own server.
    fn program(self, address: SocketAddr) -> Option<Program> {
        match self.host {
            Host::Own => None,
            Host::Nginx => Some(nginx(address, self.tls)),
            Host::Caddy => Some(caddy(address, self.tls)),
        }
    }
}

/// Whether there is such a link, and the server. Links are made to see that: once each kind.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    static TRIED: Mutex<BTreeMap<Option<String>, Result<(), String>>> = Mutex::new(BTreeMap::new());
    let (way, key) = (way_of(arm).map_err(Unavailable::other)?, LinkKey::of(arm).map_err(Unavailable::other)?);
    if let Some(program) = way.program(([127, 0, 0, 1], FIRST_PORT).into()) {
        program.is_installed().map_err(Unavailable::other)?;
    }
    let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    let try_it = || key.start().map(drop).map_err(|error| error.to_string());
    tried.entry(key.congestion.clone()).or_insert_with(try_it).clone().map_err(Unavailable::other)
}

/// A server at the far side of a link.
enum Serving {
    Own(Server),
    Installed(Running),
}

impl Serving {
    fn start(way: Way, link: &RunningLink, port: u16) -> Result<Self, Error> {
        let address = SocketAddr::from((link.far().address(), port));
        if let Some(program) = way.program(address) {
            let place = |command: &mut _| link.far().enter(command);
            return program.start_where(place, || link.near().connect(address)).map(Self::Installed);
        }
        let listener = link.far().listen(address).map_err(Error::Server)?;
        Server::start(listener, way.tls.as_ref().map(std::slice::from_ref)).map(Self::Own)
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Own(server) => server.address(),
            Self::Installed(running) => running.address(),
        }
    }

    /// Where a page of that size is, which is made if it is not there yet.
    fn page(&self, bytes: u64) -> Result<String, TargetError> {
        let Self::Installed(running) = self else { return Ok(format!("/bytes/{bytes}")) };
        let path = running.folder().join(format!("www/{bytes}"));
        if !path.exists() {
            fs::write(path, vec![b'x'; bytes as usize]).map_err(failed)?;
        }
        Ok(format!("/{bytes}"))
    }
}

/// The links and servers of a session, which arms share where they can.
#[derive(Default)]
struct Places {
    links: BTreeMap<LinkKey, Rc<RunningLink>>,
    servers: Vec<(LinkKey, Host, Option<TlsVersion>, Rc<Serving>)>,
}

impl Places {
    fn link(&mut self, key: &LinkKey) -> Result<Rc<RunningLink>, Error> {
        if let Some(link) = self.links.get(key) {
            return Ok(link.clone());
        }
        let link = Rc::new(key.start()?);
        self.links.insert(key.clone(), link.clone());
        Ok(link)
    }

    fn server(&mut self, key: &LinkKey, way: Way, link: &RunningLink) -> Result<Rc<Serving>, Error> {
        let is_it = |(of, host, tls, _): &&(_, _, _, _)| of == key && *host == way.host && *tls == way.tls;
        if let Some((.., server)) = self.servers.iter().find(is_it) {
            return Ok(server.clone());
        }
        let server = Rc::new(Serving::start(way, link, FIRST_PORT + self.servers.len() as u16)?);
        self.servers.push((key.clone(), way.host, way.tls, server.clone()));
        Ok(server)
    }
}

pub struct Pages {
    targets: Vec<Target>,
    stop: Stop,
}

impl Pages {
    pub fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let mut places = Places::default();
        let targets = arms.iter().map(|arm| Target::new(arm, &mut places)).collect::<Result<_, _>>()?;
        Ok(Self { targets, stop: setup.stop.clone() })
    }
}

struct Target {
    // Ends before its link does.
    server: Rc<Serving>,
    link: Rc<RunningLink>,
    way: Way,
    offer: Offer,
    bytes: u64,
    rtt: Duration,
    idle: Duration,
    window: Window,
    /// What encrypts, since the first answer.
    cipher: Option<String>,
}

/// What was seen of a page.
struct Page {
    time_ns: u64,
    body_bytes: u64,
    /// Its head, and HTTP/2's frames.
    around_bytes: u64,
    /// What TLS adds to these.
    records_bytes: u64,
    /// All that came after the request, and in how many segments.
    received_bytes: u64,
    segments: u64,
}

impl Target {
    fn new(arm: &Arm, places: &mut Places) -> Result<Self, TargetError> {
        let (way, key) = (way_of(arm)?, LinkKey::of(arm)?);
        let link = places.link(&key).map_err(failed)?;
        let server = places.server(&key, way, &link).map_err(failed)?;
        let tls = way.tls.map(|version| trusting_ours(&[version])).transpose().map_err(failed)?;
        let (rtt, idle) = (Duration::from_millis(key.rtt_ms), Duration::from_millis(arm.integer("idle_ms")?));
        let limit = PATIENCE + MOST_ROUND_TRIPS * rtt;
        let offer = Offer { protocol: way.protocol, tls, ..Offer::plain("localhost", limit) };
        // Both ends are alike: what we may send in a segment, the server may.
        let stream = link.near().connect(server.address()).map_err(failed)?;
        let segment_bytes = tcp::info(&stream).map_err(failed)?.mss_bytes.into();
        let window = Window { segments: key.window, segment_bytes };
        Ok(Self { server, link, way, offer, bytes: arm.integer("bytes")?, rtt, idle, window, cipher: None })
    }

    /// Asks for a page on a new connection. Another protocol than the variant's, or another cipher than before, is an
    /// error.
    fn fetch(&mut self, bytes: u64) -> Result<Page, TargetError> {
        let request = Request::get(&self.server.page(bytes)?);
        let mut phases = Phases::begin(now_ns());
        let stream = self.link.near().connect(self.server.address()).map_err(failed)?;
        phases.end(Phase::Connect, now_ns());
        let mut connection = Connection::open(stream, &self.offer, &mut phases).map_err(failed)?;
        self.check(&connection)?;
        if !self.idle.is_zero() {
            connection.send(&request, &mut phases).map_err(failed)?;
            sleep(self.idle);
        }
        let before = tcp::info(connection.socket()).map_err(failed)?;
        // Before it is written, so that who is stopped in the middle of it never has less time on the clock.
        let start_ns = now_ns();
        let answer = connection.send(&request, &mut phases).map_err(failed)?;
        let end_ns = phases.end_ns(Phase::LastByte).unwrap_or_else(now_ns);
        let after = tcp::info(connection.socket()).map_err(failed)?;
        if (answer.status, answer.body_bytes) != (200, bytes) {
            let (status, body_bytes) = (answer.status, answer.body_bytes);
            return Err(TargetError::WrongAnswer(format!(
                "{status} and {body_bytes} bytes instead of 200 and {bytes}"
            )));
        }
        let too_old = || TargetError::Failed("this kernel counts no segments (before Linux 4.6)".into());
        let since = |count: fn(&tcp::Info) -> Option<u64>| count(&after)?.checked_sub(count(&before)?);
        let records = answer.received_bytes.div_ceil(RECORD_BYTES);
        Ok(Page {
            time_ns: end_ns - start_ns,
            body_bytes: bytes,
            around_bytes: answer.received_bytes - bytes,
            records_bytes: records * self.cipher.as_deref().map_or(0, record_bytes),
            received_bytes: since(|info| info.received_bytes).ok_or_else(too_old)?,
            segments: since(|info| info.received_segments.map(u64::from)).ok_or_else(too_old)?,
        })
    }

    fn check(&mut self, connection: &Connection) -> Result<(), TargetError> {
        let session = connection.session();
        if session.map(|session| session.version) != self.way.tls {
            return Err(TargetError::Failed(format!("{:?} was agreed upon instead of {:?}", session, self.way.tls)));
        }
        let cipher = session.map(|session| session.cipher.clone());
        if self.cipher.is_some() && self.cipher != cipher {
            return Err(TargetError::Failed(format!("it is {cipher:?} that encrypts, and was {:?}", self.cipher)));
        }
        self.cipher = cipher;
        Ok(())
    }

    /// Looks for the largest page that takes one round trip.
    fn cliff(&mut self, seed: u64, stop: &Stop) -> Result<Cliff, TargetError> {
        let mut search = Search::new(self.window, seed);
        // What the first answer has beside its body and what is around that: tickets, in segments of their own.
        let mut apart_bytes = None;
        while let Some(bytes) = search.next() {
            if stop.is_asked() {
                return Err(TargetError::Interrupted);
            }
            let page = self.fetch(bytes)?;
            let known_bytes = page.body_bytes + page.around_bytes + page.records_bytes;
            let apart_bytes = *apart_bytes.get_or_insert(page.received_bytes.saturating_sub(known_bytes));
            search.observe(Answer {
                body_bytes: bytes,
                shared_bytes: page.received_bytes.saturating_sub(apart_bytes + bytes),
                segments: page.segments,
                // The link is late at times, and never early: what takes another round trip can't be here before.
                is_fast: page.time_ns < 2 * self.rtt.as_nanos() as u64,
            });
        }
        search.cliff().ok_or_else(|| failed("there is no largest page that takes one round trip"))
    }
}

/// What a record of TLS has besides what it holds: its head, the tag, and in 1.3 its kind, in 1.2 the nonce that is not
/// agreed upon.
fn record_bytes(cipher: &str) -> u64 {
    let is_1_3 = cipher.starts_with("TLS13_");
    5 + 16
        + if is_1_3 {
            1
        } else if cipher.contains("_GCM_") {
            8
        } else {
            0
        }
}

impl Session for Pages {
    /// Whether the server answers as it should: each page is looked at while it is measured, too.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.targets[arm].fetch(SMALL_BYTES).map(drop)
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &mut self.targets[arm];
        let before = target.link.report().map_err(failed)?;
        if target.bytes == SEARCH {
            let cliff = target.cliff(trial.seed, &self.stop)?;
            out.push(CLIFF, cliff.body_bytes as f64);
            out.push(PREDICTED, cliff.predicted_bytes as f64);
            out.push(MISSED, cliff.body_bytes.abs_diff(cliff.predicted_bytes) as f64);
            out.push(REQUESTS, cliff.requests as f64);
        } else {
            let page = target.fetch(target.bytes)?;
            out.push(TIME, page.time_ns as f64);
            out.push(ROUND_TRIPS, page.time_ns as f64 / target.rtt.as_nanos() as f64);
        }
        let report = target.link.report().map_err(failed)?.since(&before);
        out.push(LATE, report.lateness.quantile_ns(0.99).unwrap_or(0) as f64);
        out.push(UNFAITHFUL, f64::from(u8::from(report.is_unfaithful())));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ascertain_engine::experiment::Experiment;
    use ascertain_netlab::http::Misbehaviour;
    use ascertain_sys::testing::or_left_out;

    use super::*;
    use crate::registry::first_flight::FirstFlight;

    /// So long that a machine which is busy with other things is late by less, most often.
    const RTT_MS: u64 = 60;

    fn arm(variant: &str, levels: &[(&str, u64)]) -> Arm {
        let point = FirstFlight.spec().default_point().with("rtt_ms", RTT_MS);
        let point = levels.iter().fold(point, |point, (factor, level)| point.with(factor, *level));
        Arm { variant: variant.into(), point }
    }

    fn open(arm: &Arm) -> Option<Target> {
        or_left_out(is_available(arm))?;
        Pages::open(std::slice::from_ref(arm), &Setup::default()).unwrap().targets.pop()
    }

    /// A page is late at times and never early: a cliff is too small at times and never too large.
    #[test]
    fn cliffs_are_predicted_and_found_to_the_byte() {
        for (variant, window, apart) in [("http", 10, 0), ("http", 4, 0), ("tls1.2", 10, 0), ("tls1.3", 10, 1)] {
            let Some(mut target) = open(&arm(variant, &[("window", window)])) else { return };
            let page = target.fetch(if window < 10 { 1_000 } else { 10_000 }).unwrap();
            let room = (window - apart) * target.window.segment_bytes;
            let expected = room - page.around_bytes - page.records_bytes;
            let has_found = (0..5).any(|seed| {
                let cliff = target.cliff(seed, &Stop::default());
                let Ok(Cliff { body_bytes, predicted_bytes, .. }) = cliff else { return false };
                assert!(body_bytes <= expected && predicted_bytes <= expected, "{variant}: {cliff:?} of {expected}");
                (body_bytes, predicted_bytes) == (expected, expected)
            });
            assert!(has_found, "{variant}, {window} segments: not {expected} in five searches");
        }
    }

    #[test]
    fn a_connection_keeps_its_larger_window_until_it_is_idle() {
        const BYTES: u64 = 25_000;
        let two_ns = 2 * RTT_MS * 1_000_000;
        for (idle_ms, is_slow) in [(0, true), (1, false), (1_000, true)] {
            let Some(mut target) = open(&arm("http", &[("idle_ms", idle_ms)])) else { return };
            // Once may be chance.
            let slow = (0..5).filter(|_| target.fetch(BYTES).unwrap().time_ns >= two_ns).count();
            assert_eq!(slow == 5, is_slow, "{slow} of 5 slow after {idle_ms} ms");
        }
    }

    #[test]
    fn each_server_is_measured_in_each_way() {
        for way in WAYS {
            for bytes in [SEARCH, 1_000] {
                let arm = arm(way.name, &[("bytes", bytes), ("rtt_ms", 5)]);
                if or_left_out(is_available(&arm)).is_none() {
                    break;
                }
                let mut pages = Pages::open(&[arm], &Setup::default()).unwrap();
                let mut out = Samples::default();
                pages.verify(0).unwrap();
                match pages.measure(0, &Trial { number: 0, seed: 7 }, &mut out) {
                    Ok(()) => {}
                    // Of a machine that is very busy.
                    Err(error) => assert!(error.to_string().starts_with("there is no largest page"), "{error}"),
                }
                let seen = out.iter().find(|sample| sample.metric == if bytes == SEARCH { CLIFF } else { ROUND_TRIPS });
                assert!(seen.is_none_or(|sample| sample.value >= 1.0), "{}: {seen:?}", way.name);
            }
        }
    }

    #[test]
    fn what_was_not_agreed_upon_is_no_figure() {
        let Some(mut target) = open(&arm("tls1.3", &[])) else { return };
        target.fetch(1).unwrap();
        target.way.tls = Some(TlsVersion::V1_2);
        assert!(target.fetch(1).is_err_and(|error| error.to_string().contains("V1_3")));
        target.way.tls = Some(TlsVersion::V1_3);
        target.cipher = Some("TLS13_AES_127_GCM_SHA384".into());
        assert!(target.fetch(1).is_err_and(|error| error.to_string().contains("AES_127")));
    }

    #[test]
    fn bad_servers_are_errors_in_time() {
        let Some(mut target) = open(&arm("http", &[])) else { return };
        let slow = Misbehaviour::Slow { each: Duration::from_secs(1) };
        let says = [
            (Misbehaviour::Silent, "no end of it within"),
            (slow, "no end of it within"),
            (Misbehaviour::Closes, "broke before there was an answer"),
            (Misbehaviour::NotHttp, "broke before there was an answer"),
            (Misbehaviour::SendsLess, "broke in the middle of the answer"),
            (Misbehaviour::Resets, "broke"),
            (Misbehaviour::SendsMore, "200 and 500 bytes instead of 200 and 1"),
        ];
        for (port, (how, says)) in (1..).zip(says) {
            let listener = target.link.far().listen((target.link.far().address(), port)).unwrap();
            target.server = Rc::new(Serving::Own(Server::misbehaving(listener, how).unwrap()));
            let is_mute = matches!(how, Misbehaviour::Silent | Misbehaviour::Slow { .. });
            target.offer.limit = if is_mute { Duration::from_secs(1) } else { PATIENCE };
            let error = target.fetch(1).map(|page| page.time_ns).unwrap_err().to_string();
            assert!(error.contains(says), "{how:?}: {error}");
        }
    }
}
