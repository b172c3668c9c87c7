//! Event counts: what a publication costs with nobody waiting, in batches, and with a sleeper, one by one.

mod contestants;
mod waiters;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ascertain_engine::batch::{self, Timed};
use ascertain_engine::black_box;
use ascertain_engine::experiment::{
    Accepts, Arm, ArmId, Better, Experiment, Factor, Metric, Point, Samples, Session, Setup, Spec, TargetError, Trial,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::clock;

use contestants::{ITEMS, Ring, Signal, VARIANTS};
use waiters::{FALLING_ASLEEP, Sleeper, Tasks};

/// Event counts.
pub struct EventCount;

const PUSH: usize = 0;
const PASS: usize = 1;
const PUBLISH: usize = 2;
const WAKE: usize = 3;
const DELAY: usize = 4;
const PUBLISH_TASK: usize = 5;
const HOP: usize = 6;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Event counts: publishing so that others can sleep".into(),
    variants: VARIANTS.iter().map(|variant| (variant.name, variant.about).into()).collect(),
    factors: vec![Factor::new(
        "sleepers",
        "threads that sleep until something is published",
        0,
        Accepts::Integers { min: 0, max: 1 },
    )],
    metrics: vec![
        Metric::time("push", "a push into a ring whose write index is the event count: the mean of a batch"),
        Metric::time("pass", "a push and the pop of it, by one thread: the mean of a batch"),
        Metric::time("publish", "a publication: the mean of a batch; with a sleeper, a single one that wakes it"),
        Metric::time("wake", "from before the publication until the sleeper runs"),
        Metric::new(
            "delay",
            "`wake` as a share of the time that the sleeper had waited when that was published",
            Unit::One,
            Better::Lower,
        ),
        Metric::time("publish-task", "a publication that wakes a task, which only notes it: the mean of a batch"),
        Metric::time(
            "hop",
            "from one of two tasks on a thread to the other, which wake each other: the mean of a batch",
        ),
    ],
    ..Spec::new("event-count", include_str!("README.md"))
});

impl Experiment for EventCount {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// With nobody waiting, and with a sleeper.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |name: &str, sleepers: u64| Arm {
            variant: name.into(),
            point: Point::default().with("sleepers", sleepers),
        };
        [0, 1].into_iter().flat_map(|sleepers| VARIANTS.iter().map(move |it| arm(it.name, sleepers))).collect()
    }

    /// Makes what each arm publishes with, and finds how many rounds are a batch.
    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let mut targets = arms.iter().map(target).collect::<Result<Vec<_>, _>>()?;
        let awake = targets.iter_mut().filter(|target| target.sleeper.is_none());
        let mut timed: Vec<_> = awake.map(|target| publications(&*target.signal)).collect();
        let iterations = batch::iterations(&mut timed);
        drop(timed);
        Ok(Box::new(Targets { targets, iterations }))
    }
}

/// A sleeper waits so much longer at most than it takes to fall asleep; how long, the trial decides: who looks now and
/// then must not be met at the same step each time.
const ASLEEP_MAX_NS: u64 = 4_000_000;

struct Target {
    signal: Arc<dyn Signal>,
    ring: Option<Box<dyn Ring>>,
    tasks: Option<Box<dyn Tasks>>,
    sleeper: Option<Sleeper>,
}

struct Targets {
    targets: Vec<Target>,
    iterations: u64,
}

fn target(arm: &Arm) -> Result<Target, TargetError> {
    let variant = VARIANTS.iter().find(|variant| variant.name == arm.variant);
    let (Some(variant), Ok(sleepers @ (0 | 1))) = (variant, arm.integer("sleepers")) else {
        return Err(TargetError::Failed(format!("{arm}: no such variant, or sleepers is not 0 or 1")));
    };
    let signal = (variant.signal)();
    let sleeper = (sleepers == 1).then(|| Sleeper::new(signal.clone()));
    let ring = if sleepers == 0 { variant.ring.map(|ring| ring()) } else { None };
    let tasks = if sleepers == 0 { variant.tasks.map(|tasks| tasks()) } else { None };
    Ok(Target { signal, ring, tasks, sleeper })
}

/// Rounds of as many publications as a ring has items.
fn publications(signal: &dyn Signal) -> Timed<'_> {
    batch::timed(|| signal.publish(ITEMS))
}

/// Rounds of pushes, without the time in which they are popped again.
fn pushes(ring: &mut dyn Ring, rounds: u64) -> u64 {
    let mut elapsed_ns = 0;
    for _ in 0..rounds {
        let start_ns = clock::now_ns();
        ring.fill();
        elapsed_ns += clock::now_ns() - start_ns;
        black_box(ring.drain());
    }
    elapsed_ns
}

fn ended() -> TargetError {
    TargetError::Failed("the sleeper's thread has ended".into())
}

impl Session for Targets {
    /// What is pushed is popped, each publication counts once, and the sleeper wakes. Tasks are looked at while
    /// measured.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let Target { signal, ring, tasks: _, sleeper } = &mut self.targets[arm];
        let expected = ITEMS * (ITEMS - 1) / 2;
        if let Some(ring) = ring {
            ring.fill();
            let sums = [ring.drain(), ring.pass()];
            if sums != [expected; 2] {
                return Err(TargetError::WrongAnswer(format!("the items' sums are {sums:?} instead of {expected}")));
            }
        }
        let before = signal.published();
        match sleeper {
            Some(sleeper) => {
                sleeper.wake(FALLING_ASLEEP).ok_or_else(ended)?;
            }
            None => signal.publish(1),
        }
        // Modulo 2^31: what counts there wraps.
        let counted = signal.published().zip(before).map(|(after, before)| after.wrapping_sub(before) % (1 << 31));
        match counted {
            None | Some(1) => Ok(()),
            Some(counted) => Err(TargetError::WrongAnswer(format!("one publication counts as {counted}"))),
        }
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Target { signal, ring, tasks, sleeper } = &mut self.targets[arm];
        if let Some(sleeper) = sleeper {
            let asleep = Duration::from_nanos(trial.seed % ASLEEP_MAX_NS);
            let woken = sleeper.wake(FALLING_ASLEEP + asleep).ok_or_else(ended)?;
            out.push(PUBLISH, woken.publish_ns as f64);
            out.push(WAKE, woken.wake_ns as f64);
            out.push(DELAY, woken.wake_ns as f64 / woken.waited_ns as f64);
            return Ok(());
        }
        let of_one = |elapsed_ns: u64| elapsed_ns as f64 / (self.iterations * ITEMS) as f64;
        if let Some(ring) = ring {
            out.push(PUSH, of_one(pushes(&mut **ring, self.iterations)));
            out.push(PASS, of_one(batch::timed(|| ring.pass())(self.iterations)));
        }
        out.push(PUBLISH, of_one(publications(&**signal)(self.iterations)));
        if let Some(tasks) = tasks {
            let asleep = || TargetError::WrongAnswer("a task was not woken".into());
            let elapsed_ns = tasks.publish_ns(ITEMS).ok_or_else(asleep)?;
            out.push(PUBLISH_TASK, elapsed_ns as f64 / ITEMS as f64);
            let start_ns = clock::now_ns();
            let has_ended = tasks.hop(ITEMS);
            out.push(HOP, (clock::now_ns() - start_ns) as f64 / ITEMS as f64);
            has_ended.then_some(()).ok_or_else(asleep)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_publishes_and_wakes() {
        let arm =
            |name: &str, sleepers| Arm { variant: name.into(), point: Point::default().with("sleepers", sleepers) };
        let arms: Vec<_> = VARIANTS.iter().flat_map(|variant| [arm(variant.name, 0), arm(variant.name, 1)]).collect();
        let open = |arms: &[Arm]| EventCount.open(arms, &Setup::default());
        let mut session = open(&arms).unwrap();
        for index in 0..arms.len() {
            session.verify(index).unwrap();
            session.measure(index, &Trial { number: 0, seed: 0 }, &mut Samples::default()).unwrap();
        }
        assert!(open(&[arm("polled", 2)]).is_err());
        assert!(open(&[arm("none", 0)]).is_err());
    }
}
