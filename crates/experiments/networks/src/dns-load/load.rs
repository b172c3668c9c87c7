//! The session of the experiment: sends queries to a server at a given rate.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Level, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_engine::finding::Remark;
use ascertain_engine::run::Now;
use ascertain_netlab::dns::{
    LoadQuery, LoadResult, LoadTransport, QueryMix, QueryRate, SimulationSpec, ZoneServer, load,
};
use ascertain_sys::interrupt::Stop;

use super::{
    ANSWERED, ANSWERED_PER_S, BEHIND, BY_CODE, CODES, CPU, LOST, OURS, P50, P90, P99, SENT, SENT_PER_S, STRANGE, TCP,
    TRUNCATED, WORST, address, rate_per_s,
};
use crate::links::failed;
use crate::overload::OverloadLog;

/// The queries for the server in this process: one for a name that exists, and one for a name that does not.
const QUESTIONS: &str = "example. NS\nmissing.example. A\n";
/// Time limit for opening a connection to the server.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of queries that are sent to check whether the server answers.
const FIRST_QUESTIONS: u64 = 10;
/// Smallest share of the required query rate that the client must reach. Below it, the client counts as the bottleneck.
const LEAST_SENT: f64 = 0.99;
/// Delay behind the schedule in nanoseconds. If at least one query in a hundred is sent this late, the client counts as
/// the bottleneck.
const LATE_NS: f64 = 1e7;

pub struct Load {
    arms: Vec<LoadArm>,
    stop: Stop,
    now: Now,
}

struct LoadArm {
    is_tcp: bool,
    server: SocketAddr,
    /// The server in this process; `None` if the arm uses another server. Dropping it stops the server.
    _served: Option<ZoneServer>,
    mix: QueryMix,
    rate: QueryRate,
    connections: u64,
    overloads: OverloadLog,
}

impl Load {
    pub fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let arms = arms.iter().map(LoadArm::new).collect::<Result<_, _>>()?;
        Ok(Self { arms, stop: setup.stop.clone(), now: setup.now.clone() })
    }
}

impl LoadArm {
    fn new(arm: &Arm) -> Result<Self, TargetError> {
        let given = |factor: &str| arm.point.get(factor).map(Level::to_string).filter(|level| level != OURS);
        let is_tcp = arm.variant == TCP;
        let (server, served) = match given("server") {
            Some(text) => (address(&text).map_err(failed)?, None),
            None => {
                let served = serve().map_err(failed)?;
                (if is_tcp { served.primary() } else { served.servers()[0] }, Some(served))
            }
        };
        let mix = match given("queries") {
            Some(path) => read(&path).map_err(failed)?,
            None => QueryMix::parse(QUESTIONS).map_err(failed)?,
        };
        let rate = QueryRate {
            rate_per_s: rate_per_s(arm)?,
            time: Duration::from_secs(arm.integer("seconds")?),
            limit: Duration::from_millis(arm.integer("limit_ms")?),
        };
        Ok(Self {
            is_tcp,
            server,
            _served: served,
            mix,
            rate,
            connections: arm.integer("connections")?,
            overloads: OverloadLog::default(),
        })
    }

    fn transport(&self) -> Result<LoadTransport, TargetError> {
        let numbers = 0..self.connections;
        if self.is_tcp {
            let connect = |_| TcpStream::connect_timeout(&self.server, PATIENCE);
            let streams: Result<_, _> = numbers.map(connect).collect();
            return streams
                .map(LoadTransport::Tcp)
                .map_err(|error| self.failed(&format!("could not connect to the server: {error}")));
        }
        let any: IpAddr =
            if self.server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let sockets: Result<_, _> = numbers.map(|_| UdpSocket::bind((any, 0))).collect();
        sockets.map(|sockets| LoadTransport::Udp(sockets, self.server)).map_err(failed)
    }

    fn run(&self, rate: QueryRate, stop: &Stop) -> Result<LoadResult, TargetError> {
        // Uses a random seed, so that other hosts cannot guess the ids of queries.
        let result = load(&self.mix, rate, self.transport()?, rand::random(), || stop.is_requested());
        if stop.is_requested() {
            return Err(TargetError::Interrupted);
        }
        result.map_err(|error| self.failed(&error.to_string()))
    }

    fn failed(&self, why: &str) -> TargetError {
        failed(format!("{}: {why}", self.server))
    }
}

/// Reads queries from the file at `path`.
///
/// # Errors
/// Returns the reason, for the user, if the file cannot be read or parsed.
pub fn read(path: &str) -> Result<QueryMix, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    QueryMix::parse(&text).map_err(|error| format!("{path}: {error}"))
}

/// Starts our own name server with a test zone. The server answers over UDP. The zone's primary server listens over
/// TCP.
fn serve() -> Result<ZoneServer, ascertain_netlab::Error> {
    let (at, no_server) = ((Ipv4Addr::LOCALHOST, 0), ascertain_netlab::Error::Server);
    let socket = UdpSocket::bind(at).map_err(no_server)?;
    ZoneServer::start(
        SimulationSpec::new(vec![vec![Duration::ZERO]]),
        TcpListener::bind(at).map_err(no_server)?,
        vec![socket],
    )
}

/// Returns the quantile `part` (nearest rank) of the times of `count` queries. `took_ns` has the sorted times of the
/// answered queries; lost queries count as slower. Returns `None` if the query at this rank is lost.
fn quantile(took_ns: &[u64], count: usize, part: f64) -> Option<u64> {
    let rank = (part * count as f64).ceil().max(1.0) as usize;
    took_ns.get(rank - 1).copied()
}

fn samples(result: &LoadResult, rate: QueryRate, out: &mut Samples) {
    let LoadResult { queries, strange, cpu_ns, refused, .. } = result;
    let mut by_code: [Vec<u64>; CODES.len()] = Default::default();
    for answer in queries.iter().filter_map(|query| query.answer) {
        by_code[usize::from(u16::from(answer.code)).min(CODES.len() - 1)].push(answer.took_ns);
    }
    by_code.iter_mut().for_each(|took_ns| took_ns.sort_unstable());
    let mut all = by_code.concat();
    all.sort_unstable();
    for (metric, part) in [(P99, 0.99), (P50, 0.5), (P90, 0.9), (WORST, 1.0)] {
        match quantile(&all, queries.len(), part) {
            Some(took_ns) => out.push(metric, took_ns as f64),
            None => out.push_with(metric, rate.limit.as_nanos() as f64, Status::Censored),
        }
    }
    let share = |count: usize| count as f64 / queries.len().max(1) as f64;
    for (metric, took_ns) in (BY_CODE..).step_by(3).zip(&by_code) {
        out.push(metric, share(took_ns.len()));
        for (metric, part) in [(metric + 1, 0.5), (metric + 2, 0.99)] {
            if let Some(took_ns) = quantile(took_ns, took_ns.len(), part) {
                out.push(metric, took_ns as f64);
            }
        }
    }
    out.push(SENT, queries.len() as f64 - *refused as f64);
    out.push(SENT_PER_S, sent_per_s(result, rate));
    let start_ns = queries.first().map_or(0, |first| first.due_ns);
    let arrived = |query: &LoadQuery| Some(query.due_ns + query.answer?.took_ns);
    let answers_s = queries.iter().filter_map(arrived).max().map_or(0, |last_ns| last_ns - start_ns) as f64 / 1e9;
    out.push(ANSWERED_PER_S, all.len() as f64 / answers_s.max(sending_s(queries, rate)));
    out.push(ANSWERED, share(all.len()));
    out.push(LOST, share(queries.len() - all.len()));
    let is_truncated = |query: &&LoadQuery| query.answer.is_some_and(|answer| answer.is_truncated);
    out.push(TRUNCATED, share(queries.iter().filter(is_truncated).count()));
    out.push(STRANGE, *strange as f64);
    out.push(BEHIND, behind_ns(queries));
    let times_ns = queries.first().zip(queries.last()).map_or(0, |(first, last)| last.sent_ns - first.due_ns);
    out.push(CPU, *cpu_ns as f64 / times_ns.max(1_000_000_000 / rate.rate_per_s) as f64);
}

fn sent_per_s(result: &LoadResult, rate: QueryRate) -> f64 {
    (result.queries.len() as f64 - result.refused as f64) / sending_s(&result.queries, rate)
}

/// Returns the time for which queries were sent, in seconds. This time begins when the first query is due, and ends one
/// interval after the last query was sent. It is never shorter than the planned time.
fn sending_s(queries: &[LoadQuery], rate: QueryRate) -> f64 {
    let ends = queries.first().zip(queries.last());
    let sending_s = ends.map_or(0.0, |(first, last)| (last.sent_ns - first.due_ns) as f64 / 1e9);
    (sending_s + 1.0 / rate.rate_per_s as f64).max(rate.time.as_secs_f64())
}

fn behind_ns(queries: &[LoadQuery]) -> f64 {
    let mut behind_ns: Vec<u64> = queries.iter().map(|query| query.sent_ns - query.due_ns).collect();
    behind_ns.sort_unstable();
    quantile(&behind_ns, behind_ns.len(), 0.99).unwrap_or(0) as f64
}

/// Returns a remark if the client was the bottleneck in this trial, and not the server.
fn overload(result: &LoadResult, rate: QueryRate) -> Option<Remark> {
    let (wanted_per_s, sent_per_s) = (rate.rate_per_s as f64, sent_per_s(result, rate));
    let late_ns = Some(behind_ns(&result.queries)).filter(|late_ns| *late_ns >= LATE_NS).unwrap_or(0.0);
    let refused = result.refused;
    let is_overload = sent_per_s < LEAST_SENT * wanted_per_s || refused > 0 || late_ns > 0.0;
    is_overload.then_some(Remark::Overload { limited: 1, trials: 1, wanted_per_s, sent_per_s, late_ns, refused })
}

impl Session for Load {
    /// Checks that the server answers.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let arm = &self.arms[arm];
        let rate_per_s = arm.rate.rate_per_s.min(100);
        let time = Duration::from_millis(FIRST_QUESTIONS * 1_000 / rate_per_s);
        let result = arm.run(QueryRate { rate_per_s, time, ..arm.rate }, &self.stop)?;
        match result.queries.iter().any(|query| query.answer.is_some()) {
            true => Ok(()),
            false if result.strange > 0 => Err(arm.failed("messages arrived, but none of them answers a query")),
            false => {
                let refusal = result.refusal.map(|why| format!(": could not send to the server: {why}"));
                Err(arm.failed(&format!("the server does not answer{}", refusal.unwrap_or_default())))
            }
        }
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let arm = &mut self.arms[arm];
        let result = arm.run(arm.rate, &self.stop)?;
        samples(&result, arm.rate, out);
        let remark = arm.overloads.add_trial(overload(&result, arm.rate));
        remark.into_iter().for_each(|remark| self.now.remark(remark));
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
