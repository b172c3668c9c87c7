//! An event count without sleepers, and the intervals for polling it.

use std::time::Duration;

use super::contract::{EventCount, Version, sealed};
use crate::primitives::{AtomicU32, Instant, Ordering, spin_loop, thread};

/// An event count for a single producer, without wake-ups. Publishing is a plain store. A waiter checks the version
/// repeatedly. The longer it has waited, the longer it pauses between the checks ([`Backoff`]).
#[derive(Debug, Default)]
pub struct Polled {
    version: AtomicU32,
}

impl sealed::Sealed for Polled {}

impl EventCount for Polled {
    fn starting_at(version: Version) -> Self {
        Self { version: AtomicU32::new(version.get()) }
    }

    #[inline]
    fn snapshot(&self) -> Version {
        Version::new(self.version.load(Ordering::Acquire))
    }

    #[inline]
    fn publish_many(&self, count: u32) {
        self.publish_after(Version::new(self.version.load(Ordering::Relaxed)), count);
    }

    #[inline]
    fn publish_after(&self, version: Version, count: u32) {
        self.version.store(version.after(count).get(), Ordering::Release);
    }

    fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version> {
        let mut backoff = Backoff::new(deadline);
        loop {
            let changed = self.try_wait(seen);
            if changed.is_some() || !backoff.pause() {
                return changed;
            }
        }
    }
}

/// Usual excess of a sleep over the requested time: Linux rounds up by 50 µs, and waking takes time.
const OVERSLEPT: Duration = Duration::from_micros(60);

/// Pauses between checks of a condition that will change. Each pause is a tenth of the time waited so far, so a change
/// is seen at most 10 % late. If a sleep takes more than 60 µs longer than requested, the excess adds to that delay.
///
/// Use it for a request and its response: the other side need not know that a thread waits, and long waits are checked
/// rarely. In the first 1.2 ms the pauses are too short to sleep, so [`pause`](Self::pause) spins.
///
/// ```
/// use ascertain_sync::event_count::Backoff;
///
/// # let mut looks = 0;
/// # let mut has_response = || { looks += 1; looks == 3 };
/// let mut backoff = Backoff::new(None);
/// while !has_response() {
///     backoff.pause();
/// }
/// ```
#[derive(Debug)]
pub struct Backoff {
    begun: Instant,
    deadline: Option<Instant>,
}

impl Backoff {
    /// Starts timing the wait, which ends at `deadline`.
    #[must_use]
    pub fn new(deadline: Option<Instant>) -> Self {
        Self { begun: Instant::now(), deadline }
    }

    /// Pauses until it is time for the next check. Returns `false` without a pause if the deadline has passed.
    pub fn pause(&mut self) -> bool {
        let now = Instant::now();
        let waited = now.saturating_duration_since(self.begun);
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(now));
        if left == Some(Duration::ZERO) {
            return false;
        }
        if cfg!(any(model = "loom", model = "tso")) {
            thread::yield_now();
            return true;
        }
        let (pause, is_sleep) = pause_after(waited, left);
        if is_sleep {
            std::thread::sleep(pause);
        } else {
            spin_loop();
            while Instant::now().saturating_duration_since(now) < pause {
                spin_loop();
            }
        }
        true
    }
}

/// Returns the duration of the next pause, from the time waited so far and the time `left` until the deadline. The
/// `bool` is `true` if the thread sleeps in the pause, and `false` if it spins.
fn pause_after(waited: Duration, left: Option<Duration>) -> (Duration, bool) {
    let tenth = waited / 10;
    let (pause, is_sleep) = match tenth.checked_sub(OVERSLEPT) {
        Some(sleep) if sleep >= OVERSLEPT => (sleep, true),
        _ => (tenth, false),
    };
    (left.map_or(pause, |left| pause.min(left)), is_sleep)
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use super::*;

    #[test]
    fn at_most_a_tenth_late_after_any_time() {
        let mut waited = Duration::from_nanos(30);
        let mut looks = 0;
        while waited < Duration::from_secs(3600) {
            let (pause, is_sleep) = pause_after(waited, None);
            let late = if is_sleep { pause + OVERSLEPT } else { pause };
            assert!(late <= waited / 10, "{waited:?} {pause:?}");
            waited += late.max(Duration::from_nanos(30));
            looks += 1;
        }
        // The expected number is log(1 hour / 30 ns) / log(1.1), plus the first few checks. So `Backoff` does not check
        // more often than necessary.
        assert!((240..300).contains(&looks), "{looks}");
    }

    #[test]
    fn no_pause_is_longer_than_what_is_left() {
        for waited in [1, 2_000].map(Duration::from_millis) {
            let (pause, is_sleep) = pause_after(waited, None);
            assert_eq!(pause_after(waited, Some(pause / 2)), (pause / 2, is_sleep));
            assert_eq!(pause_after(waited, Some(pause * 2)), (pause, is_sleep));
        }
    }

    #[test]
    fn a_deadline_ends_it() {
        let deadline = Instant::now() + Duration::from_millis(3);
        let mut backoff = Backoff::new(Some(deadline));
        while backoff.pause() {}
        assert!(Instant::now() >= deadline);
    }
}
