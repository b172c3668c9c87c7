//! A change, and its servers asked until all of them have it.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_netlab::dns::{Answer, Asked, Change, Probing, Question, RData, RecordType, Rhythm, Says, probe};
use ascertain_netlab::now_ns;
use ascertain_sys::interrupt::Stop;

use super::places::Place;
use super::propagation::{Moment, Server, curve, servers, times};
use super::{ALL, DONE, DONE_BEFORE, FIRST, HALF, LATE, LOST, REPLICAS, SERVER, SHARE, SPREAD, STRANGE, UNSURE};
use crate::links::{failed, watched};

/// How often what takes long looks whether somebody asked for the end.
const LOOK: Duration = Duration::from_millis(20);
/// For how long others may keep a record that is there for us.
const TTL_S: u32 = 1;

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Updates::open(arms, setup)?))
}

pub struct Updates {
    targets: Vec<Target>,
    stop: Stop,
}

struct Target {
    place: Arc<Place>,
    sockets: Vec<UdpSocket>,
    rhythm: Rhythm,
    limit: Duration,
}

/// What was seen of one change.
pub struct Seen {
    pub asked: Vec<Asked>,
    pub call_ns: u64,
    pub done_ns: u64,
    pub strange: u64,
}

impl Updates {
    pub fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let mut places = BTreeMap::new();
        let target = |arm: &Arm| {
            let place: Arc<Place> = match places.get(arm) {
                Some(place) => Arc::clone(place),
                None => Arc::new(Place::of(arm, setup.seed)?),
            };
            places.insert(arm.clone(), place.clone());
            Target::new(arm, place)
        };
        Ok(Self { targets: arms.iter().map(target).collect::<Result<_, _>>()?, stop: setup.stop.clone() })
    }
}

impl Target {
    fn new(arm: &Arm, place: Arc<Place>) -> Result<Self, TargetError> {
        let flows = arm.integer("ports")? as usize;
        let interval = Duration::from_millis(arm.integer("interval_ms")?);
        let sockets = (0..flows).map(|_| place.socket()).collect::<Result<_, _>>()?;
        let rhythm = Rhythm { servers: place.servers.len(), flows, interval };
        Ok(Self { place, sockets, rhythm, limit: Duration::from_secs(arm.integer("limit_s")?) })
    }

    /// For how long an answer is waited for. What is asked after that time, and what was old before it, is known then.
    fn patience(&self) -> Duration {
        (10 * self.rhythm.interval).clamp(Duration::from_millis(500), Duration::from_secs(5))
    }

    /// Asks for a record that is not there, puts it there, asks until it is everywhere, and takes it away again.
    fn observe(&self, seed: u64, stop: &Stop) -> Result<Seen, TargetError> {
        let label = format!("_ascertain-{seed:016x}");
        let name = self.place.zone.prepend_label(label.as_bytes()).map_err(failed)?;
        let value = RData::try_from_str(RecordType::TXT, &label).map_err(failed)?;
        let question = Question::new(name.clone(), RecordType::TXT).map_err(failed)?;
        let addresses = self.place.servers.iter().map(|(_, address)| *address).collect();
        let expected = value.clone();
        let is_new = move |answer: &Answer| answer.values.contains(&expected);
        let mut probing = Probing::new(addresses, self.rhythm.flows, question, is_new, self.patience(), seed);
        let (call_ns, is_failed) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
        // Long enough for what was asked before the last old answer to be answered, if it is not lost.
        let settled_ns = (2 * self.rhythm.interval).as_nanos() as u64;
        let is_over = |probing: &Probing, now_ns: u64| {
            let call_ns = call_ns.load(Ordering::Relaxed);
            let is_settled = |since_ns: u64| now_ns > since_ns.max(call_ns).saturating_add(settled_ns);
            let is_too_late = now_ns > call_ns.saturating_add(self.limit.as_nanos() as u64);
            let is_new = call_ns < u64::MAX && probing.is_new_since_ns().is_some_and(is_settled);
            is_new || is_too_late || is_failed.load(Ordering::Relaxed) || stop.is_asked()
        };
        let add = Change::Add { name: name.clone(), ttl_s: TTL_S, value };
        let (asked, done_ns) = thread::scope(|scope| {
            let asking = scope.spawn(|| probe(&mut probing, self.rhythm, &self.sockets, is_over));
            // Each server is asked from each port before.
            let changed = wait(2 * self.rhythm.interval, stop).and_then(|()| {
                call_ns.store(now_ns(), Ordering::Relaxed);
                self.place.change(&add, seed as u16).map(|()| now_ns())
            });
            is_failed.store(changed.is_err(), Ordering::Relaxed);
            (asking.join(), changed)
        });
        // It is gone whatever became of it.
        let removed = match call_ns.load(Ordering::Relaxed) {
            u64::MAX => Ok(()),
            _ => self.place.change(&Change::Remove { name }, !seed as u16),
        };
        let done_ns = done_ns?;
        asked.map_err(|_| failed("asking ended by a mistake of ours"))?.map_err(failed)?;
        removed?;
        if stop.is_asked() {
            return Err(TargetError::Interrupted);
        }
        let seen = Seen {
            asked: probing.asked().to_vec(),
            call_ns: call_ns.into_inner(),
            done_ns,
            strange: probing.strange(),
        };
        self.check(&seen)?;
        Ok(seen)
    }

    /// Whether these are servers of the zone that tell something.
    fn check(&self, seen: &Seen) -> Result<(), TargetError> {
        for (number, (name, address)) in self.place.servers.iter().enumerate() {
            let says = || {
                let of_server = seen.asked.iter().filter(move |asked| asked.server == number);
                of_server.filter_map(|asked| asked.answer)
            };
            let was_there = |answer: &_| {
                let ascertain_netlab::dns::Answered { says, received_ns, .. } = answer;
                *says == Says::New && *received_ns < seen.call_ns
            };
            let why = match says().next().map(|answer| answer.says) {
                None => "does not answer".to_string(),
                Some(Says::Remembers) => {
                    "asks others and remembers what they said: name a server that the zone is its own of".into()
                }
                Some(Says::NotItsZone) => "does not have the zone".into(),
                Some(Says::Truncated) => "has no room for its answer in a datagram".into(),
                Some(Says::Failed(code)) => format!("answers {}", code.to_str()),
                _ if says().any(|answer| was_there(&answer)) => {
                    "knew the record before it was there: its zone has a wildcard (*)".into()
                }
                Some(Says::New | Says::Old) => continue,
            };
            return Err(failed(format!("{name} ({address}) {why}")));
        }
        Ok(())
    }

    fn samples(&self, seen: &Seen, out: &mut Samples) -> Result<(), TargetError> {
        let Seen { asked, call_ns, .. } = seen;
        let of_servers = servers(asked, self.rhythm.servers, *call_ns);
        let of_all = times(&of_servers).ok_or_else(|| failed("no server answers"))?;
        let limit_ns = self.limit.as_nanos() as u64;
        let mut push = |metric, key: &str, moment: Moment| {
            let (value_ns, status) = match moment.estimate_ns() {
                Some(value_ns) => (value_ns, Status::Ok),
                None => (limit_ns, Status::Censored),
            };
            out.push_sample(sample(metric, key, 0, value_ns as f64, status));
            (value_ns as f64, status)
        };
        let (all_ns, status) = push(ALL, "", of_all.all);
        push(HALF, "", of_all.half);
        push(FIRST, "", of_all.first);
        let mut ends_ns = Vec::new();
        for ((name, _), server) in self.place.servers.iter().zip(&of_servers) {
            let of_server = times([server]).ok_or_else(|| failed(format!("{name} does not answer")))?;
            ends_ns.push(push(SERVER, name, of_server.all).0);
        }
        let Moment { low_ns, high_ns } = of_all.all;
        out.push_with(UNSURE, high_ns.unwrap_or(limit_ns).saturating_sub(low_ns) as f64, status);
        let done_ns = (seen.done_ns - call_ns) as f64;
        out.push(DONE, done_ns);
        out.push_with(DONE_BEFORE, all_ns - done_ns, status);
        let [first_ns, last_ns] = [f64::min, f64::max].map(|of| ends_ns.iter().copied().reduce(of).unwrap_or(0.0));
        out.push_with(SPREAD, last_ns - first_ns, status);
        self.push_by_server(seen, &of_servers, out);
        let lost: u64 = of_servers.iter().map(|server| server.lost).sum();
        out.push(LOST, lost as f64 / asked.len() as f64);
        out.push(STRANGE, seen.strange as f64);
        Ok(())
    }

    fn push_by_server(&self, seen: &Seen, of_servers: &[Server], out: &mut Samples) {
        // As fine as it is asked from one port, where answers are enough.
        let stretch_ns = self.rhythm.interval.as_nanos() as u64;
        for (number, (name, _)) in self.place.servers.iter().enumerate() {
            let replicas = of_servers[number].replicas.len() as f64;
            out.push_sample(sample(REPLICAS, name, 0, replicas, Status::Ok));
            for (offset_ns, share) in curve(&seen.asked, number, seen.call_ns, stretch_ns) {
                out.push_sample(sample(SHARE, name, offset_ns, share, Status::Ok));
            }
        }
    }
}

fn sample(metric: usize, key: &str, offset_ns: u64, value: f64, status: Status) -> Sample {
    Sample { metric, key: key.to_string().into(), offset_ns, value, status }
}

fn wait(time: Duration, stop: &Stop) -> Result<(), TargetError> {
    let end_ns = now_ns() + time.as_nanos() as u64;
    while now_ns() < end_ns {
        if stop.is_asked() {
            return Err(TargetError::Interrupted);
        }
        thread::sleep(Duration::from_nanos(end_ns.saturating_sub(now_ns())).min(LOOK));
    }
    Ok(())
}

impl Session for Updates {
    /// Whether a change comes through.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.targets[arm].observe(u64::MAX, &self.stop).map(drop)
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        watched(Some(&target.place.link), LATE, out, |out| {
            let seen = target.observe(trial.seed, &self.stop)?;
            target.samples(&seen, out)
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
