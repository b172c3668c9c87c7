//! The session of the experiment, which measures live arms and replays traces.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial, Unavailable};
use ascertain_experiments_networks::links::{self, facts, failed};
use ascertain_transfer::race::{Counts, Policy, ReplayResult, RequestTimes, replay};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::live::{self, CachedOrigin, Live, within};
use super::{
    AFTER, ALWAYS, EXTRA, FIREFOX, GAIN, LIVE, NEVER, OURS, PERCENTILE, RACED, RECORDED, REQUESTS, STALLS, THROTTLED,
    TIME, WITHHELD, WON, disk, origin, text, traces,
};
use crate::shared;

/// The port of the first server that the session starts. Each later server gets the next higher port.
const FIRST_PORT: u16 = 8000;
/// The factors whose levels determine a cache and its origin. Arms with the same levels of these factors share them.
const LIVE_FACTORS: [&str; 6] = ["bytes", "concurrency", "folder", "page_cache", "rtt_ms", "server"];

/// Returns the policy that an arm's variant and levels describe.
pub fn policy(arm: &Arm) -> Result<Policy, TargetError> {
    Ok(match &*arm.variant {
        NEVER => Policy::Never,
        ALWAYS => Policy::Always,
        AFTER => Policy::After(Duration::from_micros(arm.integer("delay_us")?)),
        PERCENTILE => Policy::Percentile {
            quantile: arm.integer("percentile")? as f64 / 100.0,
            budget: arm.integer("budget_permille")? as f64 / 1_000.0,
        },
        THROTTLED => Policy::Throttled { at_once: arm.integer("at_once")? as usize },
        _ => return Err(failed(format!("{arm}: there is no such variant"))),
    })
}

/// Checks that the arm's levels can be combined, and that its link, server and disk are available.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let no = |why: &str| Err(Unavailable::levels(why));
    let is_recorded = arm.point.get("record").is_some_and(|path| *path != OURS.into());
    if text(arm, "trace") != LIVE {
        return match &*arm.variant {
            THROTTLED => no("a trace does not show how fast the cache would have been with fewer simultaneous reads"),
            // If the file is not a trace, this is reported when the file is read.
            _ => Ok(()),
        };
    }
    if is_recorded && arm.variant != NEVER {
        return no("only `never` can record; the other policies drop the losing request");
    }
    if let Some(program) = origin::program(&text(arm, "server"), (Ipv4Addr::LOCALHOST, FIRST_PORT).into()) {
        program.is_installed().map_err(Unavailable::other)?;
    }
    disk::is_available(arm)?;
    links::is_available(&live::link(arm).map_err(Unavailable::other)?)
}

enum RaceTarget {
    Live(Rc<Live>),
    Replayed(Replay),
}

/// An arm without a disk or a link: requests whose durations are known, and the policy under which they are replayed.
struct Replay {
    trace: Trace,
    policy: Policy,
    permille: u64,
}

enum Trace {
    /// Requests that are the same in all trials. Each trial replays a random sample of them.
    Drawn(Rc<[RequestTimes]>),
    /// Requests that are the same in all trials. Each trial replays all of them, in their order.
    Recorded(Rc<[RequestTimes]>),
    /// Artificial requests that each trial creates anew. The field is the number of requests, out of 1000, that the
    /// cache answers very late.
    Stalls(u64),
}

impl Replay {
    fn times(&self, seed: u64) -> Vec<RequestTimes> {
        match &self.trace {
            Trace::Drawn(times) => traces::drawn(times, seed),
            Trace::Recorded(times) => times.to_vec(),
            Trace::Stalls(permille) => traces::stalls(*permille, seed),
        }
    }

    fn measure(&self, seed: u64, out: &mut Samples) -> Result<(), TargetError> {
        let requests = self.times(seed);
        let ReplayResult { mut times, counts } = replay(self.policy, &requests).map_err(failed)?;
        let at = |times: &mut [Duration]| traces::quantile(times, self.permille).as_nanos() as f64;
        let mut without: Vec<_> = requests.iter().map(|times| times.cache).collect();
        let mut best: Vec<_> = requests.iter().map(|times| times.cache.min(times.origin)).collect();
        let (time, without, best) = (at(&mut times), at(&mut without), at(&mut best));
        out.push(TIME, time);
        push_counts(Counts::default(), counts, out);
        if best < without {
            out.push(GAIN, (without - time) / (without - best));
        }
        Ok(())
    }

    /// Checks the durations of a replay. No request may take longer than the cache would alone. None may take less time
    /// than the faster of the cache and the origin.
    fn verify(&self) -> Result<(), TargetError> {
        let requests = self.times(0);
        let ReplayResult { times, .. } = replay(self.policy, &requests).map_err(failed)?;
        let is_possible = |(time, of): (&Duration, &RequestTimes)| (of.cache.min(of.origin)..=of.cache).contains(time);
        if times.len() == requests.len() && times.iter().zip(&requests).all(is_possible) {
            return Ok(());
        }
        Err(TargetError::WrongAnswer(
            "a replayed request took longer than the cache, or less time than the faster of cache and origin".into(),
        ))
    }
}

/// Adds the number of a trial's requests to `out`, and the shares of their outcomes. `before` and `after` are the
/// counts of the trial's `Racer` at the start and at the end of the trial.
pub fn push_counts(before: Counts, after: Counts, out: &mut Samples) {
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let since = |count: fn(&Counts) -> u64| count(&after) - count(&before);
    let requests = since(|counts| counts.requests);
    let raced = since(|counts| counts.raced);
    out.push(RACED, share(raced, requests));
    out.push(WON, share(since(|counts| counts.network_won), raced));
    out.push(EXTRA, share(since(|counts| counts.extra), requests));
    out.push(WITHHELD, share(since(|counts| counts.withheld), requests));
    out.push(REQUESTS, requests as f64);
}

struct RaceSession {
    // Fields are dropped in their order. The targets must be dropped before the runtime that they use.
    targets: Vec<RaceTarget>,
    runtime: (Runtime, LocalSet),
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(RaceSession::open(arms, setup)?))
}

impl RaceSession {
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let runtime = (runtime, LocalSet::new());
        let (mut links, mut origins, mut traces) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut times = |name: &str| {
            shared(&mut traces, name.to_string(), || {
                let times = if name == FIREFOX { Ok(traces::firefox()) } else { traces::read(Path::new(name)) };
                times.map(Rc::from).map_err(TargetError::Failed)
            })
        };
        let mut target = |arm: &Arm| {
            let trace = match &*text(arm, "trace") {
                LIVE => {
                    let start_link = || live::link(arm)?.start().map(Rc::new).map_err(failed);
                    let link = shared(&mut links, arm.integer("rtt_ms")?, start_link)?;
                    let key = arm.point.only(|factor, _| LIVE_FACTORS.contains(&factor.as_str()));
                    let port = FIRST_PORT + origins.len() as u16;
                    let start = || within(&runtime, CachedOrigin::new(arm, link, port)).map(Rc::new);
                    let origin = shared(&mut origins, key, start)?;
                    return Live::new(arm, origin, setup).map(|live| RaceTarget::Live(Rc::new(live)));
                }
                STALLS => Trace::Stalls(arm.integer("stalls_permille")?),
                named if text(arm, "order") == RECORDED => Trace::Recorded(times(named)?),
                named => Trace::Drawn(times(named)?),
            };
            let (policy, permille) = (policy(arm)?, arm.integer("quantile_permille")?);
            Ok(RaceTarget::Replayed(Replay { trace, policy, permille }))
        };
        let targets = arms.iter().map(&mut target).collect::<Result<_, _>>()?;
        Ok(Self { targets, runtime })
    }
}

impl Session for RaceSession {
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        match &self.targets[arm] {
            RaceTarget::Live(live) => within(&self.runtime, live.target.verify()),
            RaceTarget::Replayed(replay) => replay.verify(),
        }
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        match &self.targets[arm] {
            RaceTarget::Live(live) => facts(Some(&live.target.link)),
            RaceTarget::Replayed(_) => Ok(Point::default()),
        }
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        match &self.targets[arm] {
            RaceTarget::Live(live) => live::measure(live, &self.runtime, out),
            RaceTarget::Replayed(replay) => replay.measure(trial.seed, out),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
