//! A server, and questions to it.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Level, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_engine::finding::Remark;
use ascertain_engine::run::Now;
use ascertain_netlab::dns::{Mix, Pace, Plan, Posed, Posing, Served, Way, load};
use ascertain_sys::interrupt::Stop;

use super::{
    ANSWERED, ANSWERED_PER_S, BEHIND, BY_CODE, CODES, CPU, LOST, OURS, P50, P90, P99, SENT, SENT_PER_S, STRANGE, TCP,
    TRUNCATED, WORST, address, rate_per_s,
};
use crate::limits::Limits;

/// What our own server is asked for: a name that is there, and one that is not.
const QUESTIONS: &str = "example. NS\nmissing.example. A\n";
/// How long a connection may take to be there.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is asked to see whether it answers.
const FIRST_QUESTIONS: u64 = 10;
/// Who sends less of what should be sent, or one of a hundred questions so much too late, is what limits it.
const LEAST_SENT: f64 = 0.99;
const LATE_NS: f64 = 1e7;

pub struct Asking {
    targets: Vec<Target>,
    limits: Vec<Limits>,
    stop: Stop,
    now: Now,
}

struct Target {
    is_tcp: bool,
    server: SocketAddr,
    /// Ours, which ends with this.
    _served: Option<Served>,
    mix: Mix,
    pace: Pace,
    connections: u64,
}

impl Asking {
    pub fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let targets = arms.iter().map(Target::new).collect::<Result<_, _>>()?;
        Ok(Self {
            targets,
            limits: vec![Limits::default(); arms.len()],
            stop: setup.stop.clone(),
            now: setup.now.clone(),
        })
    }
}

fn failed(why: impl ToString) -> TargetError {
    TargetError::Failed(why.to_string())
}

impl Target {
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
            None => Mix::parse(QUESTIONS).map_err(failed)?,
        };
        let pace = Pace {
            rate_per_s: rate_per_s(arm)?,
            time: Duration::from_secs(arm.integer("seconds")?),
            limit: Duration::from_millis(arm.integer("limit_ms")?),
        };
        Ok(Self { is_tcp, server, _served: served, mix, pace, connections: arm.integer("connections")? })
    }

    fn way(&self) -> Result<Way, TargetError> {
        let numbers = 0..self.connections;
        if self.is_tcp {
            let connect = |_| TcpStream::connect_timeout(&self.server, PATIENCE);
            let streams: Result<_, _> = numbers.map(connect).collect();
            return streams
                .map(Way::Tcp)
                .map_err(|error| self.failed(&format!("there is no connection to it: {error}")));
        }
        let any: IpAddr =
            if self.server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let sockets: Result<_, _> = numbers.map(|_| UdpSocket::bind((any, 0))).collect();
        sockets.map(|sockets| Way::Udp(sockets, self.server)).map_err(failed)
    }

    fn ask(&self, pace: Pace, stop: &Stop) -> Result<Posing, TargetError> {
        // Nobody is to guess its numbers: they are not the run's own seed's.
        let posing = load(&self.mix, pace, self.way()?, rand::random(), || stop.is_asked());
        if stop.is_asked() {
            return Err(TargetError::Interrupted);
        }
        posing.map_err(|error| self.failed(&error.to_string()))
    }

    fn failed(&self, why: &str) -> TargetError {
        failed(format!("{}: {why}", self.server))
    }
}

/// The questions of a file.
///
/// # Errors
/// Why there are none, for people.
pub fn read(path: &str) -> Result<Mix, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Mix::parse(&text).map_err(|error| format!("{path}: {error}"))
}

/// A server of ours, which has a zone by UDP and its primary by TCP.
fn serve() -> Result<Served, ascertain_netlab::Error> {
    let (at, no_server) = ((Ipv4Addr::LOCALHOST, 0), ascertain_netlab::Error::Server);
    let socket = UdpSocket::bind(at).map_err(no_server)?;
    Served::start(Plan::new(vec![vec![Duration::ZERO]]), TcpListener::bind(at).map_err(no_server)?, vec![socket])
}

/// The quantile (nearest rank) of times in their order; those that are lost are behind them.
fn quantile(took_ns: &[u64], count: usize, part: f64) -> Option<u64> {
    let rank = (part * count as f64).ceil().max(1.0) as usize;
    took_ns.get(rank - 1).copied()
}

fn samples(posing: &Posing, pace: Pace, out: &mut Samples) {
    let Posing { posed, strange, cpu_ns, refused, .. } = posing;
    let mut by_code: [Vec<u64>; CODES.len()] = Default::default();
    for answer in posed.iter().filter_map(|posed| posed.answer) {
        by_code[usize::from(u16::from(answer.code)).min(CODES.len() - 1)].push(answer.took_ns);
    }
    by_code.iter_mut().for_each(|took_ns| took_ns.sort_unstable());
    let mut all = by_code.concat();
    all.sort_unstable();
    for (metric, part) in [(P99, 0.99), (P50, 0.5), (P90, 0.9), (WORST, 1.0)] {
        match quantile(&all, posed.len(), part) {
            Some(took_ns) => out.push(metric, took_ns as f64),
            None => out.push_with(metric, pace.limit.as_nanos() as f64, Status::Censored),
        }
    }
    let share = |count: usize| count as f64 / posed.len().max(1) as f64;
    for (metric, took_ns) in (BY_CODE..).step_by(3).zip(&by_code) {
        out.push(metric, share(took_ns.len()));
        for (metric, part) in [(metric + 1, 0.5), (metric + 2, 0.99)] {
            if let Some(took_ns) = quantile(took_ns, took_ns.len(), part) {
                out.push(metric, took_ns as f64);
            }
        }
    }
    out.push(SENT, posed.len() as f64 - *refused as f64);
    out.push(SENT_PER_S, sent_per_s(posing, pace));
    let start_ns = posed.first().map_or(0, |first| first.due_ns);
    let arrived = |posed: &Posed| Some(posed.due_ns + posed.answer?.took_ns);
    let answers_s = posed.iter().filter_map(arrived).max().map_or(0, |last_ns| last_ns - start_ns) as f64 / 1e9;
    out.push(ANSWERED_PER_S, all.len() as f64 / answers_s.max(sending_s(posed, pace)));
    out.push(ANSWERED, share(all.len()));
    out.push(LOST, share(posed.len() - all.len()));
    let is_truncated = |posed: &&Posed| posed.answer.is_some_and(|answer| answer.is_truncated);
    out.push(TRUNCATED, share(posed.iter().filter(is_truncated).count()));
    out.push(STRANGE, *strange as f64);
    out.push(BEHIND, behind_ns(posed));
    let times_ns = posed.first().zip(posed.last()).map_or(0, |(first, last)| last.sent_ns - first.due_ns);
    out.push(CPU, *cpu_ns as f64 / times_ns.max(1_000_000_000 / pace.rate_per_s) as f64);
}

fn sent_per_s(posing: &Posing, pace: Pace) -> f64 {
    (posing.posed.len() as f64 - posing.refused as f64) / sending_s(&posing.posed, pace)
}

/// Each question takes as long as the rate says at the least, also the last one.
fn sending_s(posed: &[Posed], pace: Pace) -> f64 {
    let ends = posed.first().zip(posed.last());
    let sending_s = ends.map_or(0.0, |(first, last)| (last.sent_ns - first.due_ns) as f64 / 1e9);
    (sending_s + 1.0 / pace.rate_per_s as f64).max(pace.time.as_secs_f64())
}

fn behind_ns(posed: &[Posed]) -> f64 {
    let mut behind_ns: Vec<u64> = posed.iter().map(|posed| posed.sent_ns - posed.due_ns).collect();
    behind_ns.sort_unstable();
    quantile(&behind_ns, behind_ns.len(), 0.99).unwrap_or(0) as f64
}

/// Why it was not the server that was slow, if so, in one trial.
fn overload(posing: &Posing, pace: Pace) -> Option<Remark> {
    let (wanted_per_s, sent_per_s) = (pace.rate_per_s as f64, sent_per_s(posing, pace));
    let late_ns = Some(behind_ns(&posing.posed)).filter(|late_ns| *late_ns >= LATE_NS).unwrap_or(0.0);
    let refused = posing.refused;
    let is_overload = sent_per_s < LEAST_SENT * wanted_per_s || refused > 0 || late_ns > 0.0;
    is_overload.then_some(Remark::Overload { limited: 1, trials: 1, wanted_per_s, sent_per_s, late_ns, refused })
}

impl Session for Asking {
    /// Whether somebody answers.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        let rate_per_s = target.pace.rate_per_s.min(100);
        let time = Duration::from_millis(FIRST_QUESTIONS * 1_000 / rate_per_s);
        let posing = target.ask(Pace { rate_per_s, time, ..target.pace }, &self.stop)?;
        match posing.posed.iter().any(|posed| posed.answer.is_some()) {
            true => Ok(()),
            false if posing.strange > 0 => Err(target.failed("what it says are no answers to what it is asked")),
            false => {
                let refusal = posing.refusal.map(|why| format!(": nothing can be sent to it: {why}"));
                Err(target.failed(&format!("it does not answer{}", refusal.unwrap_or_default())))
            }
        }
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        let posing = target.ask(target.pace, &self.stop)?;
        samples(&posing, target.pace, out);
        let said = self.limits[arm].after(overload(&posing, target.pace));
        said.into_iter().for_each(|said| self.now.remark(said));
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
