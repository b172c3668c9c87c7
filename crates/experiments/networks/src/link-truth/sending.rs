//! What goes through links, and what comes out of them.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial, Unavailable};
use ascertain_netlab::throughput::{Direction, Limits, Listener, Plan, Token, measure};
use ascertain_netlab::{Carrier, Error, Link, RunningLink, now_ns};
use ascertain_sys::interrupt::Stop;

use super::seen::{Asked, END, Seen, datagram, number};
use super::{
    EARLY, EXCESS, EXCESS_P99, LATE, LOST, RATE_SHARE, REORDERED, SEGMENTS, STREAM, THROUGHPUT, TUN, TUN_OFFLOADS,
};
use crate::links::{self, failed, watched};

const DATAGRAM_PORT: u16 = 9;
const STREAM_PORT: u16 = 5200;
/// What a stream is counted in.
const INTERVAL_MS: u64 = 10;
/// How often what takes long looks whether somebody asked for the end.
const LOOK: Duration = Duration::from_millis(50);
/// As long as nothing arrives beside the link's delay, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);
/// From one datagram that says that there are no more to the next.
const END_GAP_NS: u64 = 2_000_000;

fn link_of(arm: &Arm) -> Result<Link, TargetError> {
    let carrier = match arm.variant.as_str() {
        TUN_OFFLOADS => Carrier::Tun { has_offloads: true },
        TUN => Carrier::Tun { has_offloads: false },
        _ => Carrier::Veth,
    };
    let rate_mbit_s = arm.integer("rate_mbit_s")?;
    Ok(Link {
        rtt: Duration::from_millis(arm.integer("rtt_ms")?),
        rate_bits_per_s: (rate_mbit_s > 0).then_some(rate_mbit_s * 1_000_000),
        queue_bytes: usize::try_from(arm.integer("queue_bytes")?).unwrap_or(usize::MAX),
        loss: arm.integer("loss_percent")? as f64 / 100.0,
        carrier: Some(carrier),
        ..Link::default()
    })
}

pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    links::is_available(&link_of(arm).map_err(Unavailable::other)?)
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    let target = |arm| Target::new(arm, setup);
    Ok(Box::new(Sending { targets: arms.iter().map(target).collect::<Result<_, _>>()?, stop: setup.stop.clone() }))
}

struct Sending {
    targets: Vec<Target>,
    stop: Stop,
}

struct Target {
    near: UdpSocket,
    far: UdpSocket,
    asked: Asked,
    datagrams: u64,
    gap: Duration,
    /// How long what waits at the link at the most takes to be sent.
    drain: Duration,
    /// Where that is what is sent.
    stream: Option<Stream>,
    // Ends after its listener does.
    link: RunningLink,
}

struct Stream {
    listener: Listener,
    token: Token,
    plan: Plan,
}

impl Target {
    fn new(arm: &Arm, setup: &Setup) -> Result<Self, TargetError> {
        let asked = Link { seed: setup.seed, ..link_of(arm)? };
        let link = asked.start().map_err(failed)?;
        let near = link.near().udp((link.near().address(), 0)).map_err(failed)?;
        let far = link.far().udp((link.far().address(), DATAGRAM_PORT)).map_err(failed)?;
        far.set_read_timeout(Some(LOOK)).map_err(failed)?;
        let (datagrams, packet_bytes) = (arm.integer("datagrams")?, arm.integer("bytes")?);
        let bits_per_ns = asked.rate_bits_per_s.map(|rate| rate as f64 * 1e-9);
        let held_bytes = (datagrams * packet_bytes).min(asked.queue_bytes as u64 + packet_bytes);
        let drain_ns = bits_per_ns.map_or(0.0, |bits_per_ns| (8 * held_bytes) as f64 / bits_per_ns);
        let is_stream = arm.point.get("sends") == Some(&STREAM.into());
        let intervals = |factor| Ok(arm.integer(factor)?.div_ceil(INTERVAL_MS) as u32);
        let (left_out, intervals) = (intervals("left_out_ms")?, intervals("measured_ms")?);
        let interval = Duration::from_millis(INTERVAL_MS);
        let plan = Plan { direction: Direction::Up, interval, left_out, intervals, ..Plan::default() };
        Ok(Self {
            near,
            far,
            asked: Asked { delay_ns: (asked.rtt / 2).as_nanos() as f64, bits_per_ns, packet_bytes },
            datagrams,
            gap: Duration::from_micros(arm.integer("gap_us")?),
            drain: Duration::from_nanos(drain_ns as u64),
            stream: if is_stream { Some(Stream::new(&link, plan)?) } else { None },
            link,
        })
    }

    /// Sends so many datagrams, and sees how they arrive.
    fn send(&self, count: u64, stop: &Stop) -> Result<Seen, TargetError> {
        // What is late does not belong to the next trial.
        let (trial, is_over) = (now_ns(), AtomicBool::new(false));
        let (sent_ns, arrived) = thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let sent_ns = self.send_all(trial, count, &is_over);
                is_over.store(true, Ordering::Relaxed);
                sent_ns
            });
            let arrived = self.receive(trial, &is_over, stop);
            is_over.store(true, Ordering::Relaxed);
            let sent_ns = sender.join().map_err(|_| failed("what sends ended by a mistake of ours"))?;
            Ok((sent_ns.map_err(failed)?, arrived?))
        })?;
        Ok(Seen::new(&self.asked, &sent_ns, &arrived))
    }

    /// When each was sent. Then, again and again, that there are no more: what comes before that has come.
    fn send_all(&self, trial: u64, count: u64, is_over: &AtomicBool) -> io::Result<Vec<u64>> {
        let to = self.far.local_addr()?;
        let (start_ns, mut sent_ns) = (now_ns(), Vec::with_capacity(count as usize));
        for number in 0..count {
            wait_until(start_ns + number * self.gap.as_nanos() as u64, is_over);
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let datagram = datagram(trial, number, self.asked.packet_bytes);
            sent_ns.push(now_ns());
            self.near.send_to(&datagram, to)?;
        }
        // Behind what waits they would keep the emulator busy, and who receives may share its CPU.
        wait_until(now_ns() + self.drain.as_nanos() as u64, is_over);
        while !is_over.load(Ordering::Relaxed) {
            self.near.send_to(&datagram(trial, END, 0), to)?;
            wait_until(now_ns() + END_GAP_NS, is_over);
        }
        Ok(sent_ns)
    }

    /// The number of each that arrives, and when it does, until there are no more.
    fn receive(&self, trial: u64, is_over: &AtomicBool, stop: &Stop) -> Result<Vec<(usize, u64)>, TargetError> {
        let patience = PATIENCE + self.gap + self.drain + Duration::from_nanos(self.asked.delay_ns as u64);
        let (mut buffer, mut arrived, mut heard_ns) = ([0; 2048], Vec::new(), now_ns());
        while !is_over.load(Ordering::Relaxed) {
            if stop.is_asked() {
                return Err(TargetError::Interrupted);
            }
            let Some(bytes) = if_any(self.far.recv(&mut buffer))? else {
                if now_ns() - heard_ns > patience.as_nanos() as u64 {
                    return Err(failed("nothing arrived for too long"));
                }
                continue;
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
    fn new(link: &RunningLink, plan: Plan) -> Result<Self, TargetError> {
        let at = (link.far().address(), STREAM_PORT);
        let (tcp, udp) = (link.far().listen(at).map_err(failed)?, link.far().udp(at).map_err(failed)?);
        let token = Token::new().map_err(failed)?;
        // Nobody else comes to it.
        let limits = Limits { bytes: u64::MAX, time: Duration::MAX };
        Ok(Self { listener: Listener::start(tcp, udp, token.clone(), limits).map_err(failed)?, token, plan })
    }

    /// How much arrives a second, and how many segments the emulator carries in a second of CPU time.
    fn send(&self, link: &RunningLink, stop: &Stop) -> Result<[f64; 2], TargetError> {
        let before = link.report().map_err(failed)?;
        let way = (link.near(), self.listener.address());
        let measured = measure(&way, &self.token, &self.plan, &|| stop.is_asked()).map_err(|error| match error {
            Error::Stopped => TargetError::Interrupted,
            error => failed(error),
        })?;
        let report = link.report().map_err(failed)?.since(&before);
        let segments = report.to_far.offered.segments + report.to_near.offered.segments;
        let throughput = measured.curve().rates().iter().sum::<f64>() / f64::from(self.plan.intervals);
        Ok([throughput, segments as f64 * 1e9 / report.cpu_ns.max(1) as f64])
    }
}

/// What was read; none where nothing came meanwhile.
fn if_any(read: io::Result<usize>) -> Result<Option<usize>, TargetError> {
    let is_none = |error: &io::Error| {
        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
    };
    match read {
        Err(error) if is_none(&error) => Ok(None),
        read => read.map(Some).map_err(failed),
    }
}

fn wait_until(at_ns: u64, is_over: &AtomicBool) {
    while now_ns() < at_ns && !is_over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_nanos(at_ns.saturating_sub(now_ns())).min(LOOK));
    }
}

impl Session for Sending {
    /// Whether anything arrives.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.targets[arm].send(1, &self.stop).map(drop)
    }

    /// Of streams: datagrams know nothing of TCP.
    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        let target = &self.targets[arm];
        target.stream.as_ref().map_or_else(|| Ok(Point::default()), |_| links::facts(&target.link))
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        watched(Some(&target.link), LATE, out, |out| {
            if let Some(stream) = &target.stream {
                let [throughput, segments] = stream.send(&target.link, &self.stop)?;
                out.push(THROUGHPUT, throughput);
                out.push(SEGMENTS, segments);
                return Ok(());
            }
            let seen = target.send(target.datagrams, &self.stop)?;
            for (metric, share) in [(EXCESS, 0.5), (EXCESS_P99, 0.99)] {
                out.push(metric, seen.excess_ns(share).ok_or_else(|| failed("no datagram arrived"))?);
            }
            out.push(EARLY, seen.early() as f64);
            out.push(REORDERED, seen.reordered as f64);
            out.push(LOST, seen.lost);
            if let Some(share) = seen.rate_share.filter(|_| target.gap.is_zero()) {
                out.push(RATE_SHARE, share);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
