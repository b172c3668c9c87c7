//! What a policy would have made of requests whose times are known, on a clock that does not wait.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{BadPolicy, Clock, Counts, Policy, Racer};

/// How long a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// If the cache answers it.
    pub cache: Duration,
    /// If the origin does.
    pub origin: Duration,
}

/// What came of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// What each request would have taken.
    pub times: Vec<Duration>,
    /// What would have been counted.
    pub counts: Counts,
}

/// Lets requests with these times race by a policy, one after the other: policies are compared on the same requests.
/// Each request is as long as it was, whatever the others do: where reading less at once makes a cache faster, as
/// [`Policy::Throttled`] hopes, a replay does not show it.
///
/// ```
/// use ascertain_transfer::race::{Policy, Times, replay};
/// use std::time::Duration;
///
/// let ms = Duration::from_millis;
/// let requests = [Times { cache: ms(2), origin: ms(50) }, Times { cache: ms(300), origin: ms(50) }];
/// let replayed = replay(Policy::After(ms(10)), &requests)?;
/// assert_eq!(replayed.times, [ms(2), ms(60)]);
/// assert_eq!((replayed.counts.raced, replayed.counts.network_won), (1, 1));
/// # Ok::<(), ascertain_transfer::race::BadPolicy>(())
/// ```
///
/// # Errors
/// As [`Racer::new`].
pub fn replay(policy: Policy, requests: &[Times]) -> Result<Replayed, BadPolicy> {
    let racer = Racer::with_clock(policy, Virtual::default())?;
    let clock = &racer.clock;
    let answer = |time| async move {
        clock.sleep(time).await;
        Ok::<_, Infallible>(())
    };
    let one = |times: &Times| {
        let began = clock.now();
        let mut race = pin!(racer.race(answer(times.cache), answer(times.origin)));
        // All that is pending is asked each time: nobody need be woken.
        let mut context = Context::from_waker(Waker::noop());
        while race.as_mut().poll(&mut context).is_pending() {
            clock.go_on();
        }
        clock.now() - began
    };
    let times = requests.iter().map(one).collect();
    Ok(Replayed { times, counts: racer.counts() })
}

/// A clock for one task, which stands still while that runs, and jumps to the next end of a sleep while it waits.
#[derive(Debug, Default)]
struct Virtual {
    now: Cell<Duration>,
    next: Cell<Option<Duration>>,
}

impl Virtual {
    fn go_on(&self) {
        if let Some(next) = self.next.take() {
            self.now.set(next);
        }
    }
}

impl Clock for Virtual {
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
