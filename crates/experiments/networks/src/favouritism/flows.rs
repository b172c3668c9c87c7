//! Concurrent downloads, and the number of bytes that arrive in each.

use std::fmt::Display;
use std::net::{Shutdown, TcpStream};
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{iter, thread};

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial, Unavailable};
use ascertain_netlab::http::{BEFORE_AN_ANSWER, ClientOptions, Connection, HttpRequest, Server, TlsVersion};
use ascertain_netlab::model::{Conditions, Favoured, Throttle, TokenBucket};
use ascertain_netlab::{Error, Link, Phases, RunningLink, now_ns, tcp};
use ascertain_sys::interrupt::Stop;

use super::{BESIDE_TEST, CHEATING, DISGUISED, LATE, TEST_THROUGHPUT, THROUGHPUT};
use crate::levels::milliseconds;
use crate::links::{self, facts, failed, shared, wait, watched};
use crate::url::{Url, trusted_here};

const OWN_PORT: u16 = 8000;
const TEST_PORT: u16 = 8001;
/// Path of a response body that is so large that no download of it ends.
const PATH: &str = "/bytes/1000000000000";
const FULL_SEGMENT_BYTES: u64 = 1500;
/// Largest burst that the throttle lets through: the same as the initial window of a TCP connection.
const BURST_BYTES: u64 = 10 * FULL_SEGMENT_BYTES;
/// Time without an answer after which a download fails. The time is this long because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the addresses that the user gave for the file and the speed test; `None` if our own servers are used.
fn given_urls(arm: &Arm) -> Result<Option<[Url; 2]>, String> {
    match (Url::from_arm(arm, "url")?, Url::from_arm(arm, "speedtest")?) {
        (Some(own), Some(test)) => Ok(Some([own, test])),
        (None, None) => Ok(None),
        _ => Err("`url` and `speedtest` must be given together: a file to download, and a file of a speed test".into()),
    }
}

/// Checks that emulated links are available, if the arm needs one.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    match given_urls(arm).map_err(Unavailable::other)? {
        Some(_) => Ok(()),
        None => links::is_available(&Link::default()),
    }
}

/// Returns the conditions of both directions of the arm's link: from the client to the server, and back. Downloads use
/// the second direction, so only that direction is throttled.
pub fn link_conditions(arm: &Arm, link: &Link) -> Result<[Conditions; 2], TargetError> {
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

/// A server and a path to download from.
pub struct Source {
    url: Url,
    offer: ClientOptions,
    /// The server in this process, if it serves the file; `None` for an address of the user. Dropping the server stops
    /// it.
    server: Option<Server>,
}

impl Source {
    fn ours(link: &RunningLink, port: u16, limit: Duration) -> Result<Self, TargetError> {
        let listener = link.far().listen((link.far().address(), port)).map_err(failed)?;
        let server = Server::start(listener, None).map_err(failed)?;
        let url = Url::ours(server.address(), PATH);
        Ok(Self { offer: ClientOptions::plain(&url.host, limit), url, server: Some(server) })
    }

    fn elsewhere(url: Url, limit: Duration) -> Result<Self, TargetError> {
        let versions = [TlsVersion::V1_2, TlsVersion::V1_3];
        let tls = url.is_secure.then(|| trusted_here(&versions)).transpose().map_err(TargetError::Failed)?;
        Ok(Self { offer: ClientOptions { tls, ..ClientOptions::plain(&url.host, limit) }, url, server: None })
    }

    /// Opens a connection to the source.
    pub fn open(&self, link: Option<&RunningLink>) -> Result<Connection, TargetError> {
        let connected = match (link, &self.server) {
            (Some(link), Some(server)) => link.near().connect(server.address()),
            _ => self.url.connect(self.offer.limit).map(|(_, stream)| stream),
        };
        let stream = connected.map_err(|error| self.failed(error))?;
        Connection::open(stream, &self.offer, &mut Phases::begin(now_ns())).map_err(|error| self.failed(error))
    }

    /// Downloads the file repeatedly over `connection` until a download fails. Returns `Ok` if the server closed the
    /// connection after a complete answer; the caller then continues over another connection. Some servers close a
    /// connection after one answer, others after a thousand.
    pub fn download(&self, mut connection: Connection) -> Result<(), TargetError> {
        let mut answers = 0;
        loop {
            match connection.send(&HttpRequest::get(&self.url.path), &mut Phases::begin(now_ns())) {
                Ok(answer) if answer.status == 200 => answers += 1,
                Ok(answer) => {
                    return Err(
                        self.failed(format!("the server answered with status {} instead of 200", answer.status))
                    );
                }
                Err(Error::Broken { when: BEFORE_AN_ANSWER, .. }) if answers > 0 => return Ok(()),
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Converts a failure of this source to an error; the message does not reveal an address from an environment
    /// variable.
    pub fn failed(&self, error: impl Display) -> TargetError {
        TargetError::Failed(format!("{}: {}", self.url, self.url.without_secret(&error.to_string())))
    }
}

/// The sources of the measured download and of the speed test, and the link to them.
pub struct Sources {
    pub own: Source,
    pub test: Source,
    // Dropped last: the link must outlive the servers.
    pub link: Option<RunningLink>,
}

impl Sources {
    /// Opens the sources of an arm. `lasting` is the duration of the arm's downloads.
    pub fn open(arm: &Arm, lasting: Duration) -> Result<Self, TargetError> {
        let limit = PATIENCE + lasting;
        if let Some([own, test]) = given_urls(arm).map_err(TargetError::Failed)? {
            let [own, test] = [own, test].map(|url| Source::elsewhere(url, limit));
            return Ok(Self { own: own?, test: test?, link: None });
        }
        let link = links::limited(arm, BURST_BYTES)?;
        let [to_far, to_near] = link_conditions(arm, &link)?;
        let link = link.start_with(&to_far, &to_near).map_err(failed)?;
        let [own, test] = [OWN_PORT, TEST_PORT].map(|port| Source::ours(&link, port, limit));
        Ok(Self { own: own?, test: test?, link: Some(link) })
    }
}

struct Flows {
    arms: Vec<DownloadArm>,
    stop: Stop,
}

struct DownloadArm {
    sources: Rc<Sources>,
    /// `true` if the measured download comes from the server of the speed test, so that a provider takes it for a part
    /// of the speed test.
    is_disguised: bool,
    /// Number of connections of the speed test, 0 if the download runs alone.
    streams: usize,
    pause: Duration,
    left_out: Duration,
    measured: Duration,
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Flows::open(arms, setup)?))
}

impl Flows {
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let mut sources = Vec::new();
        let arms = arms.iter().map(|arm| DownloadArm::new(arm, &mut sources)).collect::<Result<_, _>>()?;
        Ok(Self { arms, stop: setup.stop.clone() })
    }
}

impl DownloadArm {
    /// Creates the state of an arm. Arms with the same combination of levels share their sources.
    fn new(arm: &Arm, all: &mut Vec<(Point, Rc<Sources>)>) -> Result<Self, TargetError> {
        let (left_out, measured) = (milliseconds(arm, "left_out_ms")?, milliseconds(arm, "measured_ms")?);
        let sources = shared(all, arm.point.clone(), || Sources::open(arm, left_out + measured))?;
        let streams = if arm.variant == BESIDE_TEST { arm.integer("streams")? as usize } else { 0 };
        let rtt = if sources.link.is_some() { milliseconds(arm, "rtt_ms")? } else { Duration::ZERO };
        let pause = milliseconds(arm, "pause_ms")? + 2 * rtt;
        Ok(Self { sources, is_disguised: arm.variant == DISGUISED, streams, pause, left_out, measured })
    }

    /// Returns the source of the measured download.
    fn own_source(&self) -> &Source {
        if self.is_disguised { &self.sources.test } else { &self.sources.own }
    }

    /// Returns the throughput of the measured download and the throughput of the speed test, in bytes per second.
    fn throughputs(&self, stop: &Stop) -> Result<[f64; 2], TargetError> {
        let Sources { test, link, .. } = &*self.sources;
        let own = self.own_source();
        wait(self.pause, stop)?;
        let sources = iter::once(own).chain(iter::repeat_n(test, self.streams));
        let flows: Vec<Flow> = sources.clone().map(|_| Flow::default()).collect();
        thread::scope(|scope| {
            let (opened, opening) = channel();
            let downloads: Vec<_> = sources
                .zip(&flows)
                .map(|(source, flow)| {
                    let opened = opened.clone();
                    scope.spawn(move || flow.download(source, link.as_ref(), opened))
                })
                .collect();
            drop(opened);
            // The iteration ends once each download has reported its first connection or has failed.
            let are_open = opening.iter().count() == downloads.len();
            let throughputs =
                if are_open { self.watch(&flows, stop) } else { Err(failed("could not open all connections")) };
            // If a download never began or ended too early, its thread has ended and has returned the reason.
            let is_open = |index: usize| flows[index].state().socket.is_some() && !downloads[index].is_finished();
            let has_failed = (0..downloads.len()).find(|&index| !is_open(index));
            flows.iter().for_each(Flow::end);
            let mut ends = downloads.into_iter().map(|download| download.join());
            match has_failed.and_then(|index| ends.nth(index)) {
                Some(Ok(error)) => Err(error),
                Some(Err(_)) => Err(failed("a download panicked because of a bug")),
                None => throughputs,
            }
        })
    }

    /// Measures throughputs in bytes per second, during the measured time. Returns the throughput of the first
    /// download, which is measured, and the total throughput of all other downloads.
    fn watch(&self, flows: &[Flow], stop: &Stop) -> Result<[f64; 2], TargetError> {
        wait(self.left_out, stop)?;
        let (start_ns, before) = (now_ns(), received_bytes(flows)?);
        wait(self.measured, stop)?;
        let (end_ns, after) = (now_ns(), received_bytes(flows)?);
        let throughputs = [0, 1].map(|of| (after[of] - before[of]) as f64 * 1e9 / (end_ns - start_ns) as f64);
        if throughputs[0] == 0.0 {
            return Err(self.own_source().failed("nothing arrived during the measurement; raise `measured_ms`"));
        }
        Ok(throughputs)
    }
}

/// A download. If the server closes the connection, the download continues over another one.
#[derive(Default)]
struct Flow(Mutex<FlowState>);

#[derive(Default)]
struct FlowState {
    /// The connection that is open now.
    socket: Option<TcpStream>,
    /// Number of bytes that arrived over earlier connections of this download.
    earlier_bytes: u64,
    is_over: bool,
}

impl Flow {
    fn state(&self) -> MutexGuard<'_, FlowState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Downloads until an error occurs or [`end`](Self::end) is called, and returns the error. Sends a message on
    /// `opened` when the first connection is open.
    fn download(&self, source: &Source, link: Option<&RunningLink>, opened: Sender<()>) -> TargetError {
        let mut opened = Some(opened);
        let mut download_once = || {
            if self.state().is_over {
                return Err(failed("the download was stopped"));
            }
            let connection = source.open(link)?;
            self.go_on_with(connection.socket().try_clone().map_err(failed)?)?;
            // The receiver of the message exists until this function ends.
            opened.take().iter().for_each(|opened| _ = opened.send(()));
            source.download(connection)
        };
        loop {
            if let Err(error) = download_once() {
                return error;
            }
        }
    }

    /// Continues the download over this connection.
    fn go_on_with(&self, socket: TcpStream) -> Result<(), TargetError> {
        let mut state = self.state();
        if state.is_over {
            return Err(failed("the download was stopped"));
        }
        if let Some(before) = state.socket.replace(socket) {
            state.earlier_bytes += received_bytes_of(&before)?;
        }
        Ok(())
    }

    /// Returns how many bytes this download has received so far.
    fn received_bytes(&self) -> Result<u64, TargetError> {
        let state = self.state();
        Ok(state.earlier_bytes + state.socket.as_ref().map_or(Ok(0), received_bytes_of)?)
    }

    fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.socket.iter().for_each(|socket| _ = socket.shutdown(Shutdown::Both));
    }
}

fn received_bytes_of(socket: &TcpStream) -> Result<u64, TargetError> {
    let bytes = tcp::info(socket).map_err(failed)?.received_bytes;
    bytes.ok_or_else(|| failed("this kernel does not count received bytes; Linux 4.1 or newer is needed"))
}

/// Returns two numbers of received bytes: the bytes of the first download, and the total of all other downloads.
fn received_bytes(flows: &[Flow]) -> Result<[u64; 2], TargetError> {
    let mut received_bytes = [0; 2];
    for (index, flow) in flows.iter().enumerate() {
        received_bytes[usize::from(index > 0)] += flow.received_bytes()?;
    }
    Ok(received_bytes)
}

impl Session for Flows {
    /// Checks that all downloads can start, and that something arrives in the measured one.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.arms[arm].throughputs(&self.stop).map(drop)
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        facts(self.arms[arm].sources.link.as_ref())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let arm = &self.arms[arm];
        watched(arm.sources.link.as_ref(), LATE, out, |out| {
            let [own, test] = arm.throughputs(&self.stop)?;
            out.push(THROUGHPUT, own);
            if arm.streams > 0 {
                out.push(TEST_THROUGHPUT, test);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "simulated.rs"]
mod simulated;
