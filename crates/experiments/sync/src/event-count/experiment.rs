//! Measures the cost of publishing with event counts. Publications are timed in batches if no thread waits, and one by
//! one if a thread sleeps.

mod contestants;
mod waiters;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ascertain_engine::batch::{self, Timed};
use ascertain_engine::black_box;
use ascertain_engine::experiment::{
    Arm, ArmId, Better, Experiment, Factor, Metric, Point, Samples, Session, Setup, Spec, TargetError, Trial,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::clock;

use contestants::{ITEMS, Ring, Signal, VARIANTS};
use waiters::{FALLING_ASLEEP, Sleeper, Tasks};

/// The experiment `event-count`.
pub struct EventCount;

const PUSH: usize = 0;
const PASS: usize = 1;
const PUBLISH: usize = 2;
const WAKE: usize = 3;
const DELAY: usize = 4;
const PUBLISH_TASK: usize = 5;
const HOP: usize = 6;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Event counts: the cost of publishing, with and without sleeping threads".into(),
    variants: VARIANTS.iter().map(|variant| (variant.name, variant.about).into()).collect(),
    factors: vec![Factor::integer("sleepers", "threads that sleep until a publication", 0, 0..=1)],
    metrics: vec![
        Metric::time("push", "time of a push into a ring whose write index is the event count: the mean of a batch"),
        Metric::time("pass", "time of a push and its pop, by one thread: the mean of a batch"),
        Metric::time(
            "publish",
            "time of a publication: the mean of a batch or, with a sleeper, the single publication that wakes it",
        ),
        Metric::time("wake", "time from the start of the publication until the sleeper runs"),
        Metric::new(
            "delay",
            "`wake` as a share of the sleeper's wait before the publication",
            Unit::One,
            Better::Lower,
        ),
        Metric::time(
            "publish-task",
            "time of a publication that calls the waker of a waiting task, without running the task: the mean of a \
             batch",
        ),
        Metric::time("hop", "time for one of two tasks on the same thread to wake the other: the mean of a batch"),
    ],
    ..Spec::new("event-count", include_str!("README.md"))
});

impl Experiment for EventCount {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Returns two kinds of arms: without a waiting thread, and with a sleeping thread.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |name: &str, sleepers: u64| Arm {
            variant: name.into(),
            point: Point::default().with("sleepers", sleepers),
        };
        [0, 1].into_iter().flat_map(|sleepers| VARIANTS.iter().map(move |it| arm(it.name, sleepers))).collect()
    }

    /// Creates the publishers of all arms, and finds how many rounds make a batch.
    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let mut publishers = arms.iter().map(publisher).collect::<Result<Vec<_>, _>>()?;
        let awake = publishers.iter_mut().filter(|publisher| publisher.sleeper.is_none());
        let mut timed: Vec<_> = awake.map(|publisher| publications(&*publisher.signal)).collect();
        let iterations = batch::iterations(&mut timed);
        drop(timed);
        Ok(Box::new(EventCountSession { publishers, iterations }))
    }
}

/// Upper limit of the random time for which a sleeper continues to sleep before it is woken. The seed of the trial
/// determines this time. Because the time varies, the event reaches a waiter that polls
/// at different steps of its loop.
const ASLEEP_MAX_NS: u64 = 4_000_000;

struct Publisher {
    signal: Arc<dyn Signal>,
    ring: Option<Box<dyn Ring>>,
    tasks: Option<Box<dyn Tasks>>,
    sleeper: Option<Sleeper>,
}

struct EventCountSession {
    publishers: Vec<Publisher>,
    iterations: u64,
}

fn publisher(arm: &Arm) -> Result<Publisher, TargetError> {
    let variant = VARIANTS.iter().find(|variant| variant.name == arm.variant);
    let (Some(variant), Ok(sleepers @ (0 | 1))) = (variant, arm.integer("sleepers")) else {
        return Err(TargetError::Failed(format!("{arm}: unknown variant, or sleepers is not 0 or 1")));
    };
    let signal = (variant.signal)();
    let sleeper = (sleepers == 1).then(|| Sleeper::new(signal.clone()));
    let ring = if sleepers == 0 { variant.ring.map(|ring| ring()) } else { None };
    let tasks = if sleepers == 0 { variant.tasks.map(|tasks| tasks()) } else { None };
    Ok(Publisher { signal, ring, tasks, sleeper })
}

/// Returns a timed function; each of its rounds has as many publications as a ring has items.
fn publications(signal: &dyn Signal) -> Timed<'_> {
    batch::timed(|| signal.publish(ITEMS))
}

/// Returns the time in nanoseconds for filling the ring `rounds` times. The time for draining it in between does not
/// count.
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

impl Session for EventCountSession {
    /// Checks that all pushed items are popped, that each publication is counted once, and that the sleeping thread
    /// wakes. The measurement itself checks that waiting tasks wake.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let Publisher { signal, ring, tasks: _, sleeper } = &mut self.publishers[arm];
        let expected = ITEMS * (ITEMS - 1) / 2;
        if let Some(ring) = ring {
            ring.fill();
            let sums = [ring.drain(), ring.pass()];
            if sums != [expected; 2] {
                return Err(TargetError::WrongAnswer(format!(
                    "the sums of the items are {sums:?} instead of {expected}"
                )));
            }
        }
        let before = signal.published();
        match sleeper {
            Some(sleeper) => {
                sleeper.wake(FALLING_ASLEEP).ok_or_else(ended)?;
            }
            None => signal.publish(1),
        }
        // The difference is taken modulo 2^31, because the counters wrap there.
        let counted = signal.published().zip(before).map(|(after, before)| after.wrapping_sub(before) % (1 << 31));
        match counted {
            None | Some(1) => Ok(()),
            Some(counted) => Err(TargetError::WrongAnswer(format!("one publication was counted as {counted}"))),
        }
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Publisher { signal, ring, tasks, sleeper } = &mut self.publishers[arm];
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
