//! Measurements, and what was seen in them.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Point, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_netlab::Error;
use ascertain_netlab::throughput::{Bucket, Curve, Flow, Measured, Plan, measure};
use ascertain_sys::interrupt::Stop;

use super::places::{Place, bucket_of, plan_of};
use super::{
    BURST, FAR_CPU, IPERF3, JITTER, LATE, LOST, NEAR_CPU, RAN_OUT, REFILL, REORDERED, RETRANSMITTED, ROUND_TRIP,
    THROUGHPUT, iperf3,
};
use crate::links::{facts, failed, wait, watched};

/// What was seen in a measurement; what nobody can say is none.
#[derive(Debug, Default)]
pub struct Seen {
    pub curve: Curve,
    /// All that arrived.
    pub received_bytes: u64,
    pub retransmitted: Option<f64>,
    pub round_trip_ns: Option<f64>,
    /// For each gigabyte, of the near and the far end.
    pub cpu_ns: [Option<f64>; 2],
    pub lost: Option<f64>,
    pub reordered: Option<f64>,
    pub jitter_ns: Option<f64>,
    /// Bytes of IP packets for each byte in them; none where that is not known.
    pub around: Option<f64>,
}

impl Seen {
    fn of(measured: &Measured) -> Self {
        let curve = measured.curve();
        let counted: u64 = curve.bytes.iter().skip(curve.left_out).sum();
        let flows = &measured.flows;
        let sum = |of: fn(&Flow) -> u64| flows.iter().map(of).sum::<u64>();
        let tcp: Vec<_> = flows.iter().filter_map(|flow| flow.sender.tcp.as_ref()).collect();
        let arrived = sum(|flow| flow.receiver.datagrams);
        let largest = |of: &dyn Fn(&Flow) -> u64| flows.iter().map(of).max().map(|most| most as f64);
        let rtt_us = tcp.iter().map(|tcp| tcp.rtt_us).max();
        let per_gigabyte = |ns: u64| (counted > 0).then(|| ns as f64 * 1e9 / counted as f64);
        Self {
            received_bytes: curve.bytes.iter().sum(),
            curve,
            retransmitted: (!tcp.is_empty())
                .then(|| tcp.iter().map(|tcp| tcp.retransmitted_segments).sum::<u64>() as f64),
            round_trip_ns: rtt_us.map(|us| f64::from(us) * 1e3),
            cpu_ns: measured.cpu_ns().map(per_gigabyte),
            lost: measured.lost(),
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
        let found = self.around.and_then(|around| Some((around, Bucket::of(&self.curve)?)));
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
    targets: Vec<Target>,
    stop: Stop,
}

struct Target {
    place: Rc<Place>,
    plan: Plan,
    is_iperf3: bool,
    pause: Duration,
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Throughputs::open(arms, setup)?))
}

impl Throughputs {
    /// Arms at one point have one place.
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let mut places: BTreeMap<&Point, Rc<Place>> = BTreeMap::new();
        let mut targets = Vec::new();
        for arm in arms {
            let is_of = |other: &Arm| other.variant == IPERF3 && other.point == arm.point;
            let place = match places.get(&arm.point) {
                Some(place) => place.clone(),
                None => Rc::new(Place::of(arm, arms.iter().any(is_of))?),
            };
            places.insert(&arm.point, place.clone());
            let ms = |factor| arm.integer(factor).map(Duration::from_millis);
            // What came before is to have arrived, and the credit to be whole again.
            let fill_s = bucket_of(arm)?.map(|bucket| bucket.burst_bytes as f64 * 8.0 / bucket.rate_bits_per_s as f64);
            let rtt = if place.link.is_some() { ms("rtt_ms")? } else { Duration::ZERO };
            let pause = ms("pause_ms")? + 2 * rtt + Duration::from_secs_f64(fill_s.unwrap_or(0.0));
            targets.push(Target { place, plan: plan_of(arm)?, is_iperf3: arm.variant == IPERF3, pause });
        }
        Ok(Self { targets, stop: setup.stop.clone() })
    }
}

impl Target {
    fn seen(&self, stop: &Stop) -> Result<Seen, TargetError> {
        wait(self.pause, stop)?;
        let seen = match (&self.place.iperf3, &self.place.link) {
            (Some(server), Some(link)) if self.is_iperf3 => iperf3::measured(&self.plan, server, link.near(), stop)?,
            _ => {
                let Place { address, token, .. } = &*self.place;
                let measured = measure(&*self.place.way(), token, &self.plan, &|| stop.is_asked());
                let measured = measured.map_err(|error| match error {
                    Error::Stopped => TargetError::Interrupted,
                    error => TargetError::Failed(format!("{address}: {error}")),
                })?;
                Seen::of(&measured)
            }
        };
        if seen.curve.rates().iter().all(|rate| *rate == 0.0) {
            return Err(failed("nothing arrived while it was measured: give it more `measured_ms`"));
        }
        Ok(seen)
    }
}

impl Session for Throughputs {
    /// More can't have arrived than the link let through.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        let carried = || match &target.place.link {
            Some(link) => link.report().map(|report| Some(report.to_far.due.bytes + report.to_near.due.bytes)),
            None => Ok(None),
        };
        let before = carried().map_err(failed)?;
        let seen = target.seen(&self.stop)?;
        match carried().map_err(failed)?.zip(before).map(|(after, before)| after - before) {
            Some(carried) if seen.received_bytes > carried => {
                let received = seen.received_bytes;
                Err(TargetError::WrongAnswer(format!(
                    "{received} bytes are said to have arrived, of {carried} that did"
                )))
            }
            _ => Ok(()),
        }
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        self.targets[arm].place.link.as_ref().map_or_else(|| Ok(Point::default()), facts)
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        watched(target.place.link.as_ref(), LATE, out, |out| {
            target.seen(&self.stop)?.push(out);
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
