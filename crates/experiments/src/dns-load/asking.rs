//! A server, and questions to it.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Level, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_netlab::dns::{Mix, Pace, Plan, Posing, Served, Way, load};
use ascertain_sys::interrupt::Stop;

use super::{ANSWERS, BEHIND, CODE_P50, CODE_P99, CPU, LOST, OURS, P50, P90, P99, STRANGE, TCP, TRUNCATED, WORST};

/// What our own server is asked for: a name that is there, and one that is not.
const QUESTIONS: &str = "example. NS\nmissing.example. A\n";
/// How long a connection may take to be there.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is asked to see whether it answers.
const FIRST_QUESTIONS: u64 = 10;

pub struct Asking {
    targets: Vec<Target>,
    stop: Stop,
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
        Ok(Self { targets, stop: setup.stop.clone() })
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
            Some(text) => {
                let no_address =
                    || format!("`{text}` is no address with a port, such as 192.0.2.1:53 or [2001:db8::1]:53");
                (text.parse().map_err(|_| failed(no_address()))?, None)
            }
            None => {
                let served = serve().map_err(failed)?;
                (if is_tcp { served.primary() } else { served.servers()[0] }, Some(served))
            }
        };
        let mix = match given("queries") {
            Some(path) => {
                let of_file = |error: &dyn ToString| failed(format!("{path}: {}", error.to_string()));
                let text = fs::read_to_string(&path).map_err(|error| of_file(&error))?;
                Mix::parse(&text).map_err(|error| of_file(&error))?
            }
            None => Mix::parse(QUESTIONS).map_err(failed)?,
        };
        let pace = Pace {
            rate_per_s: arm.integer("rate_per_s")?,
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

fn samples(Posing { posed, strange, cpu_ns, .. }: &Posing, pace: Pace, out: &mut Samples) {
    let mut by_code: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for answer in posed.iter().filter_map(|posed| posed.answer) {
        by_code.entry(format!("{:?}", answer.code).to_uppercase()).or_default().push(answer.took_ns);
    }
    by_code.values_mut().for_each(|took_ns| took_ns.sort_unstable());
    let mut all: Vec<u64> = by_code.values().flatten().copied().collect();
    all.sort_unstable();
    for (metric, part) in [(P99, 0.99), (P50, 0.5), (P90, 0.9), (WORST, 1.0)] {
        match quantile(&all, posed.len(), part) {
            Some(took_ns) => out.push(metric, took_ns as f64),
            None => out.push_with(metric, pace.limit.as_nanos() as f64, Status::Censored),
        }
    }
    let share = |count: usize| count as f64 / posed.len().max(1) as f64;
    for (code, took_ns) in &by_code {
        let mut push = |metric, value| {
            let key = code.clone().into();
            out.push_sample(Sample { metric, key, offset_ns: 0, value, status: Status::Ok });
        };
        for (metric, part) in [(CODE_P50, 0.5), (CODE_P99, 0.99)] {
            push(metric, quantile(took_ns, took_ns.len(), part).unwrap_or(0) as f64);
        }
        push(ANSWERS, share(took_ns.len()));
    }
    out.push(LOST, share(posed.len() - all.len()));
    let is_truncated = |posed: &&ascertain_netlab::dns::Posed| posed.answer.is_some_and(|answer| answer.is_truncated);
    out.push(TRUNCATED, share(posed.iter().filter(is_truncated).count()));
    out.push(STRANGE, *strange as f64);
    let mut behind_ns: Vec<u64> = posed.iter().map(|posed| posed.sent_ns - posed.due_ns).collect();
    behind_ns.sort_unstable();
    out.push(BEHIND, quantile(&behind_ns, behind_ns.len(), 0.99).unwrap_or(0) as f64);
    let times_ns = posed.first().zip(posed.last()).map_or(0, |(first, last)| last.sent_ns - first.due_ns);
    out.push(CPU, *cpu_ns as f64 / times_ns.max(1_000_000_000 / pace.rate_per_s) as f64);
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
                let refused = posing.refused.map(|why| format!(": nothing can be sent to it: {why}"));
                Err(target.failed(&format!("it does not answer{}", refused.unwrap_or_default())))
            }
        }
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        let posing = target.ask(target.pace, &self.stop)?;
        samples(&posing, target.pace, out);
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
