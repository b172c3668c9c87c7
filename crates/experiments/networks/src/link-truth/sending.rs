//! The session of the experiment, which sends datagrams and streams over links.

use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
use std::net::UdpSocket;
use std::time::Duration;
use std::{io, thread};

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial, Unavailable};
use ascertain_netlab::throughput::{Direction, Listener, Token, TrafficSpec, measure};
use ascertain_netlab::{Carrier, Error, Link, RunningLink, now_ns};
use ascertain_sys::interrupt::Stop;

use super::{
    BARE_TUN, BARE_TUN_OFFLOADS, BARE_VETH, EARLY, EXCESS, EXCESS_P99, HEADER_BYTES, LATE, LOST, RATE_SHARE, REORDERED,
    SEGMENTS, STREAM, THROUGHPUT, TUN, TUN_OFFLOADS,
};
use crate::levels::word;
use crate::links::{self, failed, wait, watched};

const DATAGRAM_PORT: u16 = 9;
const STREAM_PORT: u16 = 5200;
/// Length in milliseconds of the intervals in which the bytes of a stream are counted.
const INTERVAL_MS: u64 = 10;
/// Time between two checks of `stop` during long waits.
const LOOK: Duration = Duration::from_millis(50);
/// Duration after which a trial fails if no datagram arrives, in addition to the link's delay. The duration is long,
/// because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two of the datagrams that mark the end of a trial. They are repeated until one arrives.
const END_GAP: Duration = Duration::from_millis(2);

fn link_spec(arm: &Arm) -> Result<Link, TargetError> {
    let carrier = match arm.variant.as_str() {
        TUN_OFFLOADS | BARE_TUN_OFFLOADS => Carrier::Tun { has_offloads: true },
        TUN | BARE_TUN => Carrier::Tun { has_offloads: false },
        _ => Carrier::Veth,
    };
    let is_bare = [BARE_TUN_OFFLOADS, BARE_TUN, BARE_VETH].contains(&arm.variant.as_str());
    let rate_mbit_s = arm.integer("rate_mbit_s")?;
    Ok(Link {
        rtt: Duration::from_millis(arm.integer("rtt_ms")?),
        rate_bits_per_s: (rate_mbit_s > 0).then_some(rate_mbit_s * 1_000_000),
        queue_bytes: usize::try_from(arm.integer("queue_bytes")?).unwrap_or(usize::MAX),
        loss: arm.integer("loss_percent")? as f64 / 100.0,
        carrier: Some(carrier),
        is_bare,
        ..Link::default()
    })
}

pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let link = link_spec(arm).map_err(Unavailable::other)?;
    let has_conditions = !link.rtt.is_zero() || link.rate_bits_per_s.is_some() || link.loss > 0.0;
    if link.is_bare && has_conditions {
        return Err(Unavailable::other(
            "a bare link has no delay, rate or loss; set rtt_ms, rate_mbit_s and loss_percent to 0",
        ));
    }
    links::is_available(&link)
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    let arms = arms.iter().map(|arm| LinkArm::new(arm, setup)).collect::<Result<_, _>>()?;
    Ok(Box::new(Sending { arms, stop: setup.stop.clone() }))
}

struct Sending {
    arms: Vec<LinkArm>,
    stop: Stop,
}

struct LinkArm {
    near: UdpSocket,
    far: UdpSocket,
    expected: ExpectedLink,
    datagrams: u64,
    gap: Duration,
    /// Longest time that the link needs to send all packets of a full queue.
    drain: Duration,
    /// The TCP stream; `None` if the arm sends datagrams.
    stream: Option<Stream>,
    // Dropped last: the link must outlive the listener.
    link: RunningLink,
}

struct Stream {
    listener: Listener,
    token: Token,
    spec: TrafficSpec,
}

impl LinkArm {
    fn new(arm: &Arm, setup: &Setup) -> Result<Self, TargetError> {
        let spec = Link { seed: setup.seed, ..link_spec(arm)? };
        let link = spec.start().map_err(failed)?;
        let near = link.near().udp((link.near().address(), 0)).map_err(failed)?;
        let far = link.far().udp((link.far().address(), DATAGRAM_PORT)).map_err(failed)?;
        far.set_read_timeout(Some(LOOK)).map_err(failed)?;
        let (datagrams, packet_bytes) = (arm.integer("datagrams")?, arm.integer("bytes")?);
        let bits_per_ns = spec.rate_bits_per_s.map(|rate| rate as f64 * 1e-9);
        let held_bytes = (datagrams * packet_bytes).min(spec.queue_bytes as u64 + packet_bytes);
        let drain_ns = bits_per_ns.map_or(0.0, |bits_per_ns| (8 * held_bytes) as f64 / bits_per_ns);
        let intervals = |factor| Ok(arm.integer(factor)?.div_ceil(INTERVAL_MS) as u32);
        let (left_out, intervals) = (intervals("left_out_ms")?, intervals("measured_ms")?);
        let interval = Duration::from_millis(INTERVAL_MS);
        let traffic = TrafficSpec { direction: Direction::Up, interval, left_out, intervals, ..TrafficSpec::default() };
        let is_stream = word(arm, "sends") == STREAM;
        Ok(Self {
            near,
            far,
            expected: ExpectedLink { delay_ns: (spec.rtt / 2).as_nanos() as f64, bits_per_ns, packet_bytes },
            datagrams,
            gap: Duration::from_micros(arm.integer("gap_us")?),
            drain: Duration::from_nanos(drain_ns as u64),
            stream: if is_stream { Some(Stream::new(&link, traffic)?) } else { None },
            link,
        })
    }

    /// Sends this number of datagrams, and returns a report of how they arrived.
    fn send(&self, count: u64, stop: &Stop) -> Result<DatagramReport, TargetError> {
        // The time identifies the trial: late datagrams of an earlier trial must not count.
        let (trial, over) = (now_ns(), Stop::new().map_err(failed)?);
        let (sent_ns, arrived) = thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let sent_ns = self.send_all(trial, count, &over);
                over.request();
                sent_ns
            });
            let arrived = self.receive(trial, &over, stop);
            over.request();
            let sent_ns = sender.join().map_err(|_| failed("the sender panicked because of a bug"))?;
            Ok((sent_ns.map_err(failed)?, arrived?))
        })?;
        Ok(DatagramReport::new(&self.expected, &sent_ns, &arrived))
    }

    /// Sends the datagrams, and returns the time at which each was sent. Then repeats a datagram that marks the end,
    /// until one of its copies has arrived. The link keeps the order, so all earlier datagrams have arrived by then, or
    /// are lost.
    fn send_all(&self, trial: u64, count: u64, over: &Stop) -> io::Result<Vec<u64>> {
        let to = self.far.local_addr()?;
        let (start_ns, mut sent_ns) = (now_ns(), Vec::with_capacity(count as usize));
        for number in 0..count {
            let due_ns = start_ns + number * self.gap.as_nanos() as u64;
            _ = wait(Duration::from_nanos(due_ns.saturating_sub(now_ns())), over);
            if over.is_requested() {
                break;
            }
            let datagram = datagram(trial, number, self.expected.packet_bytes);
            sent_ns.push(now_ns());
            self.near.send_to(&datagram, to)?;
        }
        // Without this wait, end datagrams in a full queue would keep the emulator busy, possibly on the CPU of the
        // receiver.
        _ = wait(self.drain, over);
        while !over.is_requested() {
            self.near.send_to(&datagram(trial, END, 0), to)?;
            _ = wait(END_GAP, over);
        }
        Ok(sent_ns)
    }

    /// Receives datagrams until one arrives that marks the end. Returns the sequence number and the arrival time of
    /// each.
    fn receive(&self, trial: u64, over: &Stop, stop: &Stop) -> Result<Vec<(usize, u64)>, TargetError> {
        let patience = PATIENCE + self.gap + self.drain + Duration::from_nanos(self.expected.delay_ns as u64);
        let (mut buffer, mut arrived, mut heard_ns) = ([0; 2048], Vec::new(), now_ns());
        while !over.is_requested() {
            if stop.is_requested() {
                return Err(TargetError::Interrupted);
            }
            let bytes = match self.far.recv(&mut buffer) {
                Ok(bytes) => bytes,
                Err(error) if ![WouldBlock, TimedOut, Interrupted].contains(&error.kind()) => {
                    return Err(failed(error));
                }
                Err(_) if now_ns() - heard_ns > patience.as_nanos() as u64 => {
                    return Err(failed(format!("no datagram arrived for {patience:?}")));
                }
                Err(_) => continue,
            };
            heard_ns = now_ns();
            match number(trial, &buffer[..bytes]) {
                Some(END) => break,
                Some(number) => arrived.push((number as usize, heard_ns)),
                None => {}
            }
        }
        Ok(arrived)
    }
}

impl Stream {
    fn new(link: &RunningLink, spec: TrafficSpec) -> Result<Self, TargetError> {
        let (listener, token) = links::listener(link, (link.far().address(), STREAM_PORT).into())?;
        Ok(Self { listener, token, spec })
    }

    /// Returns the throughput in bytes per second, and the number of segments that the emulator carries per second of
    /// CPU time.
    fn send(&self, link: &RunningLink, stop: &Stop) -> Result<[f64; 2], TargetError> {
        let before = link.report().map_err(failed)?;
        let connector = (link.near(), self.listener.address());
        let measurement =
            measure(&connector, &self.token, &self.spec, &|| stop.is_requested()).map_err(|error| match error {
                Error::Stopped => TargetError::Interrupted,
                error => failed(error),
            })?;
        let report = link.report().map_err(failed)?.since(&before);
        let segments = report.to_far.offered.segments + report.to_near.offered.segments;
        let throughput = measurement.curve().rates().iter().sum::<f64>() / f64::from(self.spec.intervals);
        Ok([throughput, segments as f64 * 1e9 / report.cpu_ns.max(1) as f64])
    }
}

impl Session for Sending {
    /// Checks that datagrams arrive.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.arms[arm].send(1, &self.stop).map(drop)
    }

    /// Returns the facts about TCP for streams, and no facts for datagrams.
    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        let LinkArm { stream, link, .. } = &self.arms[arm];
        links::facts(stream.as_ref().map(|_| link))
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let arm = &self.arms[arm];
        watched(Some(&arm.link), LATE, out, |out| {
            if let Some(stream) = &arm.stream {
                let [throughput, segments] = stream.send(&arm.link, &self.stop)?;
                out.push(THROUGHPUT, throughput);
                out.push(SEGMENTS, segments);
                return Ok(());
            }
            let report = arm.send(arm.datagrams, &self.stop)?;
            for (metric, share) in [(EXCESS, 0.5), (EXCESS_P99, 0.99)] {
                out.push(metric, report.excess_ns(share).ok_or_else(|| failed("no datagram arrived"))?);
            }
            out.push(EARLY, report.early() as f64);
            out.push(REORDERED, report.reordered as f64);
            out.push(LOST, report.lost);
            if let Some(share) = report.rate_share.filter(|_| arm.gap.is_zero()) {
                out.push(RATE_SHARE, share);
            }
            Ok(())
        })
    }
}

/// The sequence number of the datagrams that mark the end of a trial.
const END: u64 = u64::MAX;

/// Returns a datagram that fills an IP packet of this size.
fn datagram(trial: u64, number: u64, packet_bytes: u64) -> Vec<u8> {
    let mut datagram = [trial.to_be_bytes(), number.to_be_bytes()].concat();
    datagram.resize(datagram.len().max((packet_bytes - HEADER_BYTES.min(packet_bytes)) as usize), 0);
    datagram
}

/// Returns the sequence number of a datagram of this trial, or `None` if it belongs to another trial.
fn number(trial: u64, datagram: &[u8]) -> Option<u64> {
    let (of_trial, rest) = datagram.split_first_chunk()?;
    (u64::from_be_bytes(*of_trial) == trial).then(|| rest.first_chunk().map(|number| u64::from_be_bytes(*number)))?
}

/// The specification of the link in one direction.
struct ExpectedLink {
    delay_ns: f64,
    bits_per_ns: Option<f64>,
    packet_bytes: u64,
}

/// Properties of the link, computed from the datagrams.
#[derive(Debug, PartialEq)]
struct DatagramReport {
    /// Delay of each datagram after its expected arrival, in nanoseconds, sorted. A negative value means that the
    /// datagram was too early.
    excess_ns: Vec<f64>,
    /// Number of datagrams that arrived after a datagram with a higher sequence number.
    reordered: usize,
    /// Share of the datagrams that did not arrive (0 to 1).
    lost: f64,
    /// The rate at which the datagrams arrived, divided by the expected rate. `None` if there is no expected rate, or
    /// if fewer than 2 datagrams arrived.
    rate_share: Option<f64>,
}

impl DatagramReport {
    /// Compares the times at which datagrams were sent with the times of their arrival. `arrived` has the sequence
    /// number and the time of each arrival, in the order of arrival. The link is assumed to have transmitted the
    /// datagrams in the order in which they were sent.
    fn new(expected: &ExpectedLink, sent_ns: &[u64], arrived: &[(usize, u64)]) -> Self {
        let wire_ns = expected.bits_per_ns.map(|bits_per_ns| (8 * expected.packet_bytes) as f64 / bits_per_ns);
        let origin_ns = sent_ns.first().copied().unwrap_or(0);
        let since_ns = |at_ns: u64| at_ns.saturating_sub(origin_ns) as f64;
        let mut free_ns = 0.0;
        let times = |(number, arrived_ns): &(usize, u64)| {
            free_ns = since_ns(sent_ns[*number]).max(free_ns) + wire_ns.unwrap_or(0.0);
            [free_ns + expected.delay_ns, since_ns(*arrived_ns)]
        };
        let times: Vec<[f64; 2]> = arrived.iter().map(times).collect();
        let mut excess_ns: Vec<f64> = times.iter().map(|[due_ns, at_ns]| at_ns - due_ns).collect();
        excess_ns.sort_unstable_by(f64::total_cmp);
        let mut latest = 0;
        let is_behind = |(number, _): &&(usize, u64)| {
            latest = latest.max(*number);
            *number < latest
        };
        let reordered = arrived.iter().filter(is_behind).count();
        let rate_share = match times[..] {
            [first, .., last] if wire_ns.is_some() => Some((last[0] - first[0]) / (last[1] - first[1])),
            _ => None,
        };
        let lost = 1.0 - arrived.len() as f64 / sent_ns.len() as f64;
        Self { excess_ns, reordered, lost, rate_share }
    }

    /// Returns the quantile `share` (nearest rank) of `excess_ns`; `None` if no datagram arrived.
    fn excess_ns(&self, share: f64) -> Option<f64> {
        let rank = (share * self.excess_ns.len() as f64).ceil().max(1.0) as usize;
        self.excess_ns.get(rank - 1).copied()
    }

    /// Returns the number of datagrams that arrived too early.
    fn early(&self) -> usize {
        self.excess_ns.iter().take_while(|excess_ns| **excess_ns < 0.0).count()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
