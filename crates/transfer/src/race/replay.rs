//! Replays recorded requests under a policy, with a virtual clock.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{Clock, Counts, InvalidPolicy, Policy, Racer};

/// The durations of a request at the cache and at the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTimes {
    /// Time that the cache takes to answer.
    pub cache: Duration,
    /// Time that the origin takes to answer.
    pub origin: Duration,
}

/// The result of replaying requests: their durations, and the counts of their outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayResult {
    /// For each request, the time until the first answer.
    pub times: Vec<Duration>,
    /// The counts of the racer after all requests.
    pub counts: Counts,
}

/// Computes the effect of a policy on requests with these durations, one after the other. Different policies can thus
/// be compared on the same requests. The duration of a request does not depend on other requests. So a replay does not
/// show whether a cache becomes faster if fewer requests read it at the same time, as [`Policy::Throttled`] assumes.
///
/// ```
/// use ascertain_transfer::race::{Policy, RequestTimes, replay};
/// use std::time::Duration;
///
/// let ms = Duration::from_millis;
/// let requests = [RequestTimes { cache: ms(2), origin: ms(50) }, RequestTimes { cache: ms(300), origin: ms(50) }];
/// let replayed = replay(Policy::After(ms(10)), &requests)?;
/// assert_eq!(replayed.times, [ms(2), ms(60)]);
/// assert_eq!((replayed.counts.raced, replayed.counts.network_won), (1, 1));
/// # Ok::<(), ascertain_transfer::race::InvalidPolicy>(())
/// ```
///
/// # Errors
/// Returns the errors of [`Racer::new`].
pub fn replay(policy: Policy, requests: &[RequestTimes]) -> Result<ReplayResult, InvalidPolicy> {
    let racer = Racer::with_clock(policy, VirtualClock::default())?;
    let clock = &racer.clock;
    let answer = |time| async move {
        clock.sleep(time).await;
        Ok::<_, Infallible>(())
    };
    let one = |times: &RequestTimes| {
        let began = clock.now();
        let mut race = pin!(racer.race(answer(times.cache), answer(times.origin)));
        // The task needs no waker, because the loop polls it after each step of the clock.
        let mut context = Context::from_waker(Waker::noop());
        while race.as_mut().poll(&mut context).is_pending() {
            clock.advance();
        }
        clock.now() - began
    };
    let times = requests.iter().map(one).collect();
    Ok(ReplayResult { times, counts: racer.counts() })
}

/// A clock for a single task, which never really waits. The time stands still while the task executes. When the task
/// waits, the time jumps to the end of its shortest sleep.
#[derive(Debug, Default)]
struct VirtualClock {
    now: Cell<Duration>,
    next: Cell<Option<Duration>>,
}

impl VirtualClock {
    fn advance(&self) {
        if let Some(next) = self.next.take() {
            self.now.set(next);
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        self.now.get()
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> {
        let end = self.now.get().saturating_add(time);
        std::future::poll_fn(move |_| {
            if self.now.get() >= end {
                return Poll::Ready(());
            }
            self.next.set(Some(self.next.get().map_or(end, |next| next.min(end))));
            Poll::Pending
        })
    }
}
