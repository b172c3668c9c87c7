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

    /// Says that somebody will sleep. False if the version is not `seen` any more.
    fn announce(&self, seen: Version) -> bool;

    /// Whether the version is `seen` and the announcement stands. Where it does not, somebody has just published.
    fn is_announced(&self, seen: Version) -> bool;

    /// Sleeps if [`is_announced`](Sleepers::is_announced), for `timeout` at most.
    fn sleep(&self, seen: Version, timeout: Option<Duration>);
}

pub(super) fn wait<S: Sleepers>(sleepers: &S, seen: Version, deadline: Option<Instant>) -> Option<Version> {
    loop {
        let may_sleep = spin(sleepers, seen) && sleepers.announce(seen) && spin(sleepers, seen);
        if may_sleep && !sleep(sleepers, seen, deadline) {
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
fn sleep<S: Sleepers>(sleepers: &S, seen: Version, deadline: Option<Instant>) -> bool {
    let mut patience = (!S::IS_PROMPT).then(|| Naps { end: Instant::now() + PATIENCE, next: FIRST_NAP });
    while sleepers.is_announced(seen) {
        let nap = patience.as_mut().and_then(Naps::next);
        if nap.is_none() {
            patience = None;
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return false;
        }
        let timeout = match (nap, left) {
            (Some(nap), Some(left)) => Some(nap.min(left)),
            (either, other) => either.or(other),
        };
        sleepers.sleep(seen, timeout);
    }
    true
}

/// Growing sleeps, until an end.
struct Naps {
    end: Instant,
    next: Duration,
}

impl Naps {
    fn next(&mut self) -> Option<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        let nap = self.next.min(left);
        self.next *= 2;
        (!nap.is_zero()).then_some(nap)
    }
}
