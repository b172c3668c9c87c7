//! How to wait: spin, announce oneself, spin, and sleep.

use std::time::Duration;

use super::Version;
use crate::primitives::{Instant, spin_loop};

/// Pauses between looks: some 5 µs in all. None in a model, where they would add executions but no behaviour.
const SPINS: &[u32] = if cfg!(any(model = "loom", model = "tso")) { &[] } else { &[1, 2, 4, 8, 16, 32, 64] };
/// How long a sleeper's announcement may be overlooked.
const PATIENCE: Duration = Duration::from_secs(1);
/// The first sleep while it may be; each is twice as long as the one before. A model has one instead of ten.
const FIRST_NAP: Duration = Duration::from_millis(if cfg!(model = "tso") { 1000 } else { 1 });

/// An event count on which threads sleep.
pub(super) trait Sleepers {
    /// Whether the next publication sees an announcement for sure. Otherwise, the next one that begins
    /// [`PATIENCE`] later does, and what is published until then is seen in memory by then.
    const IS_PROMPT: bool;

    fn version(&self) -> Version;

    /// Says that somebody will sleep; none if the version is not `seen` any more.
    fn announce(&self, seen: Version) -> Option<Announcement>;

    /// Whether the version is `seen` and the announcement stands. Where it does not, somebody has just published.
    fn is_announced(&self, seen: Version, announcement: Announcement) -> bool;

    /// Sleeps until somebody takes the announcement back, for `timeout` at most; not at all if that has happened.
    fn sleep(&self, announcement: Announcement, timeout: Option<Duration>);
}

/// What the word on which threads sleep held when the announcement was made. Whoever takes the announcement back
/// changes it before the next publication begins, so that another's announcement is not mistaken for one's own: it may
/// be overlooked for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announcement(pub(super) u32);

pub(super) fn wait<S: Sleepers>(sleepers: &S, seen: Version, deadline: Option<Instant>) -> Option<Version> {
    loop {
        let announcement = if spin(sleepers, seen) { sleepers.announce(seen) } else { None };
        if let Some(announcement) = announcement
            && spin(sleepers, seen)
            && !sleep(sleepers, seen, announcement, deadline)
        {
            return None;
        }
        let version = sleepers.version();
        if version != seen {
            return Some(version);
        }
    }
}

/// Spins for a while. False if the version is not `seen` any more.
fn spin(sleepers: &impl Sleepers, seen: Version) -> bool {
    for &pauses in SPINS {
        if sleepers.version() != seen {
            return false;
        }
        (0..pauses).for_each(|_| spin_loop());
    }
    true
}

/// Sleeps as long as the announcement stands. False when the deadline has passed.
fn sleep<S: Sleepers>(sleepers: &S, seen: Version, announced: Announcement, deadline: Option<Instant>) -> bool {
    let mut now = Instant::now();
    let mut patience = (!S::IS_PROMPT).then(|| Naps { end: now + PATIENCE, next: FIRST_NAP });
    loop {
        let nap = patience.as_mut().and_then(|naps| naps.next(now));
        if nap.is_none() {
            patience = None;
        }
        // After the look at the clock: when patience has ended, what was published without regard to the announcement
        // has been seen.
        if !sleepers.is_announced(seen, announced) {
            return true;
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
        if left == Some(Duration::ZERO) {
            return false;
        }
        let timeout = match (nap, left) {
            (Some(nap), Some(left)) => Some(nap.min(left)),
            (either, other) => either.or(other),
        };
        sleepers.sleep(announced, timeout);
        now = Instant::now();
    }
}

/// Growing sleeps, until an end.
struct Naps {
    end: Instant,
    next: Duration,
}

impl Naps {
    fn next(&mut self, now: Instant) -> Option<Duration> {
        let left = self.end.saturating_duration_since(now);
        let nap = self.next.min(left);
        // Of what is left: signals may end any number of sleeps before patience does.
        self.next = nap * 2;
        (!nap.is_zero()).then_some(nap)
    }
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use super::*;

    /// A signal ends a sleep, and signals may come a thousand times a second.
    #[test]
    fn a_sleep_may_end_early_any_number_of_times() {
        let now = Instant::now();
        let mut naps = Naps { end: now + PATIENCE, next: FIRST_NAP };
        assert!((0..1_000).all(|_| naps.next(now).is_some_and(|nap| nap <= PATIENCE)));
    }

    /// Some wake-ups, and not a thousand.
    #[test]
    fn sleeps_grow_until_patience_ends() {
        let start = Instant::now();
        let mut naps = Naps { end: start + PATIENCE, next: FIRST_NAP };
        let mut now = start;
        let slept: Vec<Duration> = std::iter::from_fn(|| naps.next(now).inspect(|&nap| now += nap)).collect();
        assert_eq!((slept.len(), slept.iter().sum()), (10, PATIENCE));
    }
}
