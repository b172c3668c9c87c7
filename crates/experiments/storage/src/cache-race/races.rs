//! The session: arms that are live, and arms that are replayed.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial, Unavailable};
use ascertain_experiments_networks::links::{self, facts, failed};
use ascertain_netlab::RunningLink;
use ascertain_transfer::race::{Counts, Policy, Replayed, Times, replay};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::live::{self, Live, Place, within};
use super::{
    AFTER, ALWAYS, EXTRA, FIREFOX, GAIN, LIVE, NEVER, OURS, PERCENTILE, RACED, RECORDED, REQUESTS, STALLS, THROTTLED,
    TIME, WITHHELD, WON, disk, origin, text, traces,
};

/// Servers listen from this port on.
const FIRST_PORT: u16 = 8000;

/// The policy that a variant is at a point.
pub fn policy_of(arm: &Arm) -> Result<Policy, TargetError> {
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

/// Whether there is such a link, server and disk.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let no = |why: &str| Err(Unavailable::levels(why));
    let is_recorded = arm.point.get("record").is_some_and(|path| *path != OURS.into());
    if text(arm, "trace") != LIVE {
        return match &*arm.variant {
            THROTTLED => no("a trace does not tell how fast the cache would have been with less to do at once"),
            // A file that is none fails when it is read.
            _ => Ok(()),
        };
    }
    if is_recorded && arm.variant != NEVER {
        return no("only `never` lets both sides come to their ends");
    }
    if let Some(program) = origin::program(&text(arm, "server"), (Ipv4Addr::LOCALHOST, FIRST_PORT).into()) {
        program.is_installed().map_err(Unavailable::other)?;
    }
    disk::is_available(arm)?;
    links::is_available(&live::link(arm).map_err(Unavailable::other)?)
}

enum Target {
    Live(Rc<Live>),
    Replayed(Replay),
}

/// Requests whose times are known.
struct Replay {
    trace: Trace,
    policy: Policy,
    permille: u64,
}

enum Trace {
    /// Drawn from these.
    Drawn(Rc<[Times]>),
    /// These, in their order.
    Recorded(Rc<[Times]>),
    /// Made up for each trial; so many of a thousand stall.
    Stalls(u64),
}

impl Replay {
    fn times(&self, seed: u64) -> Vec<Times> {
        match &self.trace {
            Trace::Drawn(times) => traces::drawn(times, seed),
            Trace::Recorded(times) => times.to_vec(),
            Trace::Stalls(permille) => traces::stalls(*permille, seed),
        }
    }

    fn measure(&self, seed: u64, out: &mut Samples) -> Result<(), TargetError> {
        let requests = self.times(seed);
        let Replayed { mut times, counts } = replay(self.policy, &requests).map_err(failed)?;
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

    /// Whoever wins, a request takes no longer than the cache, and no less than the faster of both.
    fn verify(&self) -> Result<(), TargetError> {
        let requests = self.times(0);
        let Replayed { times, .. } = replay(self.policy, &requests).map_err(failed)?;
        let is_possible = |(time, of): (&Duration, &Times)| (of.cache.min(of.origin)..=of.cache).contains(time);
        if times.len() == requests.len() && times.iter().zip(&requests).all(is_possible) {
            return Ok(());
        }
        Err(TargetError::WrongAnswer("a replayed request takes longer than its cache, or less than both".into()))
    }
}

/// What was counted in between: how many requests, and shares of them.
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

/// What arms have in common.
#[derive(Default)]
struct Shared {
    links: BTreeMap<u64, Rc<RunningLink>>,
    places: BTreeMap<Point, Rc<Place>>,
    traces: BTreeMap<String, Rc<[Times]>>,
}

impl Shared {
    fn link(&mut self, arm: &Arm) -> Result<Rc<RunningLink>, TargetError> {
        let rtt_ms = arm.integer("rtt_ms")?;
        if let Some(link) = self.links.get(&rtt_ms) {
            return Ok(link.clone());
        }
        let link = Rc::new(live::link(arm)?.start().map_err(failed)?);
        self.links.insert(rtt_ms, link.clone());
        Ok(link)
    }

    async fn place(&mut self, arm: &Arm) -> Result<Rc<Place>, TargetError> {
        const OF: [&str; 6] = ["bytes", "concurrency", "folder", "page_cache", "rtt_ms", "server"];
        let key = arm.point.only(|factor, _| OF.contains(&factor.as_str()));
        if let Some(place) = self.places.get(&key) {
            return Ok(place.clone());
        }
        let port = FIRST_PORT + self.places.len() as u16;
        let place = Rc::new(Place::new(arm, self.link(arm)?, port).await?);
        self.places.insert(key, place.clone());
        Ok(place)
    }

    fn times(&mut self, name: &str) -> Result<Rc<[Times]>, TargetError> {
        if let Some(times) = self.traces.get(name) {
            return Ok(times.clone());
        }
        let read = || traces::read(Path::new(name)).map_err(TargetError::Failed);
        let times: Rc<[Times]> = if name == FIREFOX { traces::firefox() } else { read()? }.into();
        self.traces.insert(name.into(), times.clone());
        Ok(times)
    }
}

struct Races {
    // They end before what they run in.
    targets: Vec<Target>,
    runtime: (Runtime, LocalSet),
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Races::open(arms, setup)?))
}

impl Races {
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let runtime = (runtime, LocalSet::new());
        let mut shared = Shared::default();
        let mut target = |arm: &Arm| {
            let trace = match &*text(arm, "trace") {
                LIVE => {
                    let place = within(&runtime, shared.place(arm))?;
                    return Live::new(arm, place, setup).map(|live| Target::Live(Rc::new(live)));
                }
                STALLS => Trace::Stalls(arm.integer("stalls_permille")?),
                named if text(arm, "order") == RECORDED => Trace::Recorded(shared.times(named)?),
                named => Trace::Drawn(shared.times(named)?),
            };
            let (policy, permille) = (policy_of(arm)?, arm.integer("quantile_permille")?);
            Ok(Target::Replayed(Replay { trace, policy, permille }))
        };
        let targets = arms.iter().map(&mut target).collect::<Result<_, _>>()?;
        Ok(Self { targets, runtime })
    }
}

impl Session for Races {
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        match &self.targets[arm] {
            Target::Live(live) => within(&self.runtime, live.place.verify()),
            Target::Replayed(replay) => replay.verify(),
        }
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        match &self.targets[arm] {
            Target::Live(live) => facts(&live.place.link),
            Target::Replayed(_) => Ok(Point::default()),
        }
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        match &self.targets[arm] {
            Target::Live(live) => live::measure(live, &self.runtime, out),
            Target::Replayed(replay) => replay.measure(trial.seed, out),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
