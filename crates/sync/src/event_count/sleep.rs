//! The steps of waiting: spin, announce the sleeper, spin, and sleep.

use std::time::Duration;

use super::Version;
use crate::primitives::{Instant, spin_loop};

/// The pauses between checks while a thread spins, about 5 µs in all. A model leaves them out, because they would only
/// add executions.
const SPINS: &[u32] = if cfg!(any(model = "loom", model = "tso")) { &[] } else { &[1, 2, 4, 8, 16, 32, 64] };
/// Maximum time for which publications may overlook an announcement. (A thread announces that it is about to sleep.)
const PATIENCE: Duration = Duration::from_secs(1);
/// Length of the first sleep while an announcement may be overlooked. Each sleep is twice as long as the previous
/// sleep, so ten sleeps fill [`PATIENCE`]. In a model there is only one sleep, to save executions.
const FIRST_NAP: Duration = Duration::from_millis(if cfg!(model = "tso") { 1000 } else { 1 });

/// The part of an event count by which threads sleep until a publication.
pub(super) trait Sleepers {
    /// `true` if the next publication certainly sees an announcement. If `false`, publications may overlook an
    /// announcement for [`PATIENCE`]. After that time, each new publication sees the announcement, and every
    /// publication that overlooked it is visible to the sleeper.
    const IS_PROMPT: bool;

    fn version(&self) -> Version;

    /// Announces a sleeper, so that a publication wakes it. Returns `None` if the version is already later than `seen`.
    fn announce(&self, seen: Version) -> Option<Announcement>;

    /// Returns whether the version still equals `seen` and the announcement is still valid. `false` means that a
    /// producer has published since.
    fn is_announced(&self, seen: Version, announcement: Announcement) -> bool;

    /// Sleeps until a producer withdraws the announcement, or for at most `timeout`. Does not sleep if the announcement
    /// has been withdrawn already.
    fn sleep(&self, announcement: Announcement, timeout: Option<Duration>);
}

/// The announcement of a sleeper. Its number is the value of the word on which threads sleep, read at the announcement.
/// A producer that withdraws the announcement changes the word before its next publication. The sleeper compares the
/// number with the word, so it notices the withdrawal even if another sleeper has announced itself since. The first
/// sleeper must not rely on the later announcement, because publications may overlook that announcement for a second.
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

/// Spins for about 5 µs. Returns `false` as soon as the version differs from `seen`.
fn spin(sleepers: &impl Sleepers, seen: Version) -> bool {
    for &pauses in SPINS {
        if sleepers.version() != seen {
            return false;
        }
        (0..pauses).for_each(|_| spin_loop());
    }
    true
}

/// Sleeps until the announcement is no longer valid, because a producer has published. Returns `false` if the deadline
/// passes first.
fn sleep<S: Sleepers>(sleepers: &S, seen: Version, announced: Announcement, deadline: Option<Instant>) -> bool {
    let mut now = Instant::now();
    let mut patience = (!S::IS_PROMPT).then(|| Naps { end: now + PATIENCE, next: FIRST_NAP });
    loop {
        let nap = patience.as_mut().and_then(|naps| naps.next(now));
        if nap.is_none() {
            patience = None;
        }
        // The announcement is checked after the clock was read. So if the clock says that [`PATIENCE`] has passed, this
        // check sees every publication that overlooked the announcement.
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

/// The durations of successive sleeps. Each sleep is twice as long as the previous sleep, and together the sleeps last
/// until `end`.
struct Naps {
    end: Instant,
    next: Duration,
}

impl Naps {
    fn next(&mut self, now: Instant) -> Option<Duration> {
        let left = self.end.saturating_duration_since(now);
        let nap = self.next.min(left);
        // The next length is twice the limited `nap`, so it cannot overflow. Signals may end sleeps early, so there may
        // be any number of sleeps before `end`.
        self.next = nap * 2;
        (!nap.is_zero()).then_some(nap)
    }
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use super::*;

    /// A signal ends a sleep, and there may be a thousand signals per second.
    #[test]
    fn a_sleep_may_end_early_any_number_of_times() {
        let now = Instant::now();
        let mut naps = Naps { end: now + PATIENCE, next: FIRST_NAP };
        assert!((0..1_000).all(|_| naps.next(now).is_some_and(|nap| nap <= PATIENCE)));
    }

    /// The sleeps double in length, so ten of them fill [`PATIENCE`]. If each sleep lasted 1 ms, a waiter would wake up
    /// a thousand times.
    #[test]
    fn sleeps_grow_until_patience_ends() {
        let start = Instant::now();
        let mut naps = Naps { end: start + PATIENCE, next: FIRST_NAP };
        let mut now = start;
        let slept: Vec<Duration> = std::iter::from_fn(|| naps.next(now).inspect(|&nap| now += nap)).collect();
        assert_eq!((slept.len(), slept.iter().sum()), (10, PATIENCE));
    }
}
