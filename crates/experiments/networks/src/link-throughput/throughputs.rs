//! The session of the experiment: opens the far side of each network, and measures throughputs.

use std::env;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::time::Duration;

use ascertain_engine::experiment::{
    Arm, ArmId, Point, Sample, Samples, Session, Setup, Status, TargetError, Trial, Unavailable,
};
use ascertain_netlab::installed::{Program, RunningProgram, iperf3 as iperf3_server};
use ascertain_netlab::model::{Conditions, TokenBucket};
use ascertain_netlab::throughput::{
    Bucket, Connector, Curve, Direction, FlowReport, Listener, Measurement, Token, TrafficSpec, Transport, measure,
};
use ascertain_netlab::{Error, Link, RunningLink};
use ascertain_sys::interrupt::Stop;

use super::{
    BOTH, BURST, FAR_CPU, IPERF3, JITTER, LATE, LOST, NEAR_CPU, RAN_OUT, REFILL, REORDERED, RETRANSMITTED, ROUND_TRIP,
    THROUGHPUT, UDP, UP, iperf3, is_elsewhere,
};
use crate::levels::{given, milliseconds, word};
use crate::links::{self, facts, failed, shared, wait, watched};

const OWN_PORT: u16 = 5200;
const IPERF3_PORT: u16 = 5201;
/// Shortest interval that iperf3 supports.
const SHORTEST_IPERF3_MS: u64 = 100;
/// Smallest size of a link's queue in bytes.
const LEAST_QUEUE_BYTES: u64 = 30_000;
/// The environment variable with the listener's token. The token is not a level of a factor, because levels are written
/// to files and the token is secret.
const TOKEN: &str = "ASCERTAIN_LISTEN_TOKEN";

pub fn traffic_spec(arm: &Arm) -> Result<TrafficSpec, TargetError> {
    let transport = if word(arm, "protocol") == UDP {
        let rate_bits_per_s = arm.integer("udp_kbit_s")? * 1_000;
        Transport::Udp { rate_bits_per_s, datagram_bytes: arm.integer("datagram_bytes")? as u32 }
    } else {
        Transport::Tcp
    };
    let direction = match word(arm, "direction") {
        UP => Direction::Up,
        BOTH => Direction::Both,
        _ => Direction::Down,
    };
    let (streams, interval) = (arm.integer("streams")? as u32, milliseconds(arm, "interval_ms")?);
    // Intervals are counted or left out as a whole, so durations are rounded up to whole intervals.
    let intervals = |factor| arm.integer(factor).map(|ms| ms.div_ceil(interval.as_millis().max(1) as u64) as u32);
    let (left_out, intervals) = (intervals("left_out_ms")?, intervals("measured_ms")?);
    Ok(TrafficSpec { transport, direction, streams, interval, left_out, intervals })
}

fn token_here() -> Result<Token, String> {
    let token = env::var(TOKEN).map_err(|_| format!("set {TOKEN} to the token that `ascertain listen` prints"))?;
    token.parse().map_err(|why| format!("{TOKEN}: {why}"))
}

/// Checks that the emulated link and iperf3 are available or, for a user's listener, that there is a token.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let not = |why: &str| Err(Unavailable::levels(why));
    let is_iperf3 = arm.variant == IPERF3;
    if is_elsewhere(arm) {
        if is_iperf3 {
            return not("`ascertain listen` does not speak iperf3's protocol; use the variant `own`");
        }
        return token_here().map(drop).map_err(Unavailable::other);
    }
    if is_iperf3 {
        iperf3_server(([127, 0, 0, 1], IPERF3_PORT).into()).is_installed().map_err(Unavailable::other)?;
        if word(arm, "direction") == BOTH {
            return not("iperf3 reports only the counts of one end if both directions run at once; use `up` or `down`");
        }
        if arm.integer("interval_ms").is_ok_and(|ms| ms < SHORTEST_IPERF3_MS) {
            return not("iperf3's intervals last at least 100 ms; raise `interval_ms`");
        }
    }
    links::is_available(&Link::default())
}

/// Returns the token bucket of the arm's link; `None` if the link has none or the arm measures the user's own network.
pub fn bucket(arm: &Arm) -> Result<Option<TokenBucket>, TargetError> {
    if is_elsewhere(arm) {
        return Ok(None);
    }
    let burst_bytes = arm.integer("burst_kb")? * 1_000;
    let rate_bits_per_s = arm.integer("refill_mbit_s")? * 1_000_000;
    Ok((burst_bytes > 0).then_some(TokenBucket { burst_bytes, rate_bits_per_s }))
}

/// Returns the conditions of both directions of the arm's link.
pub fn link_conditions(arm: &Arm, link: &Link) -> Result<[Conditions; 2], TargetError> {
    let bucket = bucket(arm)?;
    Ok(link.conditions().map(|conditions| Conditions { bucket, ..conditions }))
}

/// The far side of a measured network, with the listener that receives and sends the measured data.
pub struct FarEnd {
    pub address: SocketAddr,
    pub token: Token,
    /// The listener in this process, if the link is emulated; `None` for the user's listener.
    _listener: Option<Listener>,
    /// The iperf3 server; `None` if no arm that uses this far side needs it.
    pub iperf3: Option<RunningProgram>,
    // Dropped last: the link must outlive the servers.
    pub link: Option<RunningLink>,
}

impl FarEnd {
    /// Opens the far side of the arm's network, with an iperf3 server if `has_iperf3` is `true`.
    pub fn open(arm: &Arm, has_iperf3: bool) -> Result<Self, TargetError> {
        let is_v4 = arm.integer("ip")? == 4;
        if let Some(name) = given(arm, "listener") {
            return Self::elsewhere(&name, is_v4, token_here().map_err(TargetError::Failed)?);
        }
        let link = links::limited(arm, LEAST_QUEUE_BYTES)?;
        let [to_far, to_near] = link_conditions(arm, &link)?;
        let link = link.start_with(&to_far, &to_near).map_err(failed)?;
        let far = link.far();
        let ip = if is_v4 { Some(far.address().into()) } else { far.ipv6_address().map(Into::into) };
        let ip = ip.ok_or_else(|| failed("this kernel has no IPv6; set `ip` to 4"))?;
        let [address, iperf3_address] = [OWN_PORT, IPERF3_PORT].map(|port| SocketAddr::new(ip, port));
        let (listener, token) = links::listener(&link, address)?;
        let iperf3 = if has_iperf3 { Some(start_iperf3(arm, &link, iperf3_address)?) } else { None };
        Ok(Self { address, token, _listener: Some(listener), iperf3, link: Some(link) })
    }

    /// Returns the far side of a network whose listener the user started. `name` is the listener's HOST:PORT. If
    /// `is_v4` is `true`, an IPv4 address of the host is used, otherwise an IPv6 address.
    pub fn elsewhere(name: &str, is_v4: bool, token: Token) -> Result<Self, TargetError> {
        let unknown = |why: String| TargetError::Failed(format!("{name}: {why}"));
        let mut addresses = name.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        let address = addresses.find(|address| address.is_ipv4() == is_v4);
        let none = || unknown(format!("the host has no address of `ip` {}", if is_v4 { 4 } else { 6 }));
        Ok(Self { address: address.ok_or_else(none)?, token, _listener: None, iperf3: None, link: None })
    }

    /// Returns the connector that opens connections to the listener.
    pub fn connector(&self) -> Box<dyn Connector + '_> {
        match &self.link {
            Some(link) => Box::new((link.near(), self.address)),
            None => Box::new(self.address),
        }
    }
}

/// Starts an iperf3 server, which reports JSON with intervals as long as the arm's.
fn start_iperf3(arm: &Arm, link: &RunningLink, address: SocketAddr) -> Result<RunningProgram, TargetError> {
    let mut program: Program = iperf3_server(address);
    let interval_s = (arm.integer("interval_ms")? as f64 / 1e3).to_string();
    program.arguments.extend(["--json", "--interval", &interval_s].map(String::from));
    let place = |command: &mut _| link.far().enter(command);
    program.start_where(place, || link.near().connect(address)).map_err(failed)
}

/// The results of a measurement. A field is `None` if the program does not report it.
#[derive(Debug, Default)]
pub struct ThroughputReport {
    pub curve: Curve,
    /// Number of bytes that arrived during the whole measurement, including the intervals at the beginning that are not
    /// counted.
    pub received_bytes: u64,
    pub retransmitted: Option<f64>,
    pub round_trip_ns: Option<f64>,
    /// CPU time of this host and of the listener's host, in nanoseconds per gigabyte that arrived.
    pub cpu_ns: [Option<f64>; 2],
    pub lost: Option<f64>,
    pub reordered: Option<f64>,
    pub jitter_ns: Option<f64>,
    /// Size of an IP packet divided by the size of its payload; `None` if the ratio is not known.
    pub around: Option<f64>,
}

impl ThroughputReport {
    fn new(measurement: &Measurement) -> Self {
        let curve = measurement.curve();
        let counted: u64 = curve.bytes.iter().skip(curve.left_out).sum();
        let flows = &measurement.flows;
        let sum = |count: fn(&FlowReport) -> u64| flows.iter().map(count).sum::<u64>();
        let tcp: Vec<_> = flows.iter().filter_map(|flow| flow.sender.tcp.as_ref()).collect();
        let arrived = sum(|flow| flow.receiver.datagrams);
        let largest = |count: &dyn Fn(&FlowReport) -> u64| flows.iter().map(count).max().map(|most| most as f64);
        let rtt_us = tcp.iter().map(|tcp| tcp.rtt_us).max();
        let per_gigabyte = |ns: u64| (counted > 0).then(|| ns as f64 * 1e9 / counted as f64);
        Self {
            received_bytes: curve.bytes.iter().sum(),
            curve,
            retransmitted: (!tcp.is_empty())
                .then(|| tcp.iter().map(|tcp| tcp.retransmitted_segments).sum::<u64>() as f64),
            round_trip_ns: rtt_us.map(|us| f64::from(us) * 1e3),
            cpu_ns: measurement.cpu_ns().map(per_gigabyte),
            lost: measurement.lost(),
            reordered: (arrived > 0).then(|| sum(|flow| flow.receiver.reordered) as f64 / arrived as f64),
            jitter_ns: if arrived > 0 { largest(&|flow| flow.receiver.jitter_ns) } else { None },
            around: tcp.first().map(|tcp| f64::from(tcp.path_mtu_bytes) / f64::from(tcp.mss_bytes.max(1))),
        }
    }

    fn push(&self, out: &mut Samples) {
        let Curve { left_out, interval, .. } = self.curve;
        for (number, rate) in (left_out as u64..).zip(self.curve.rates()) {
            let offset_ns = interval.as_nanos() as u64 * number;
            out.push_sample(Sample { metric: THROUGHPUT, key: "".into(), offset_ns, value: rate, status: Status::Ok });
        }
        let found = self.around.and_then(|around| Some((around, Bucket::find(&self.curve)?)));
        let [near, far] = self.cpu_ns;
        for (metric, value) in [
            (RETRANSMITTED, self.retransmitted),
            (ROUND_TRIP, self.round_trip_ns),
            (NEAR_CPU, near),
            (FAR_CPU, far),
            (LOST, self.lost),
            (REORDERED, self.reordered),
            (JITTER, self.jitter_ns),
            (BURST, found.map(|(around, bucket)| bucket.burst_bytes * around)),
            (REFILL, found.map(|(around, bucket)| bucket.bytes_per_s * around)),
            (RAN_OUT, found.map(|(_, bucket)| bucket.ran_out.as_nanos() as f64)),
        ] {
            value.into_iter().for_each(|value| out.push(metric, value));
        }
    }
}

struct Throughputs {
    arms: Vec<ThroughputArm>,
    stop: Stop,
}

struct ThroughputArm {
    far_end: Rc<FarEnd>,
    spec: TrafficSpec,
    is_iperf3: bool,
    pause: Duration,
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Throughputs::open(arms, setup)?))
}

impl Throughputs {
    /// Opens a session. Arms with the same combination of levels share the far side of their network.
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let (mut far_ends, mut opened) = (Vec::new(), Vec::new());
        for arm in arms {
            let is_of = |other: &Arm| other.variant == IPERF3 && other.point == arm.point;
            let far_end = shared(&mut far_ends, &arm.point, || FarEnd::open(arm, arms.iter().any(is_of)))?;
            // Before each measurement, the data of the previous one must have arrived, and the credit must be full
            // again.
            let fill_s = bucket(arm)?.map(|bucket| bucket.burst_bytes as f64 * 8.0 / bucket.rate_bits_per_s as f64);
            let rtt = if far_end.link.is_some() { milliseconds(arm, "rtt_ms")? } else { Duration::ZERO };
            let pause = milliseconds(arm, "pause_ms")? + 2 * rtt + Duration::from_secs_f64(fill_s.unwrap_or(0.0));
            opened.push(ThroughputArm { far_end, spec: traffic_spec(arm)?, is_iperf3: arm.variant == IPERF3, pause });
        }
        Ok(Self { arms: opened, stop: setup.stop.clone() })
    }
}

impl ThroughputArm {
    fn measure(&self, stop: &Stop) -> Result<ThroughputReport, TargetError> {
        wait(self.pause, stop)?;
        let FarEnd { address, token, iperf3, link, .. } = &*self.far_end;
        let report = match (iperf3, link) {
            (Some(server), Some(link)) if self.is_iperf3 => iperf3::measure(&self.spec, server, link.near(), stop)?,
            _ => {
                let measurement = measure(&*self.far_end.connector(), token, &self.spec, &|| stop.is_requested());
                ThroughputReport::new(&measurement.map_err(|error| match error {
                    Error::Stopped => TargetError::Interrupted,
                    error => TargetError::Failed(format!("{address}: {error}")),
                })?)
            }
        };
        if report.curve.rates().iter().all(|rate| *rate == 0.0) {
            return Err(failed("nothing arrived during the measurement; raise `measured_ms`"));
        }
        Ok(report)
    }
}

impl Session for Throughputs {
    /// Checks that no more bytes were reported than the link let through.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let arm = &self.arms[arm];
        let Some(link) = &arm.far_end.link else { return arm.measure(&self.stop).map(drop) };
        let before = link.report().map_err(failed)?;
        let received = arm.measure(&self.stop)?.received_bytes;
        let passed = link.report().map_err(failed)?.since(&before);
        let carried = passed.to_far.due.bytes + passed.to_near.due.bytes;
        if received > carried {
            let why = format!("{received} bytes were reported as received, but only {carried} arrived");
            return Err(TargetError::WrongAnswer(why));
        }
        Ok(())
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        facts(self.arms[arm].far_end.link.as_ref())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let arm = &self.arms[arm];
        watched(arm.far_end.link.as_ref(), LATE, out, |out| {
            arm.measure(&self.stop)?.push(out);
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
