//! Leaves others' latency alone: as fast as the path goes without a queue.

use std::convert::Infallible;
use std::future::pending;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{Mover, Place};
use crate::store::Attempt;

/// What it begins with.
const FIRST_BYTES_PER_S: f64 = 1e6;
/// Never slower than that: others would wait for ever to be left alone.
const LEAST_BYTES_PER_S: f64 = 32e3;
/// Smaller blocks would cost more in requests than they leave to others.
const LEAST_BLOCK_BYTES: f64 = 65_536.0;
/// How often the path is asked.
const EVERY: Duration = Duration::from_millis(100);
/// How much of the rate is left when the path is slower than it may be, …
const MUCH_LESS: f64 = 0.6;
/// … and when it has used up half of that: a queue drains before it is too long.
const LESS: f64 = 0.9;
/// How much faster it becomes on an empty path, and less so on a fuller one; twice as fast until there first was a
/// queue.
const MORE: f64 = 0.04;

/// A block of that size fills the queue of a path of no more than the first rate by half of what may be added.
pub(super) fn block_bytes(most_added: Duration) -> f64 {
    (FIRST_BYTES_PER_S * most_added.as_secs_f64() / 2.0).max(LEAST_BLOCK_BYTES)
}

/// A rate, and what the path takes when it is at its best.
#[derive(Debug)]
pub(super) struct Gentle {
    most_added_s: f64,
    shortest_s: f64,
    has_queued: bool,
    pub bytes_per_s: f64,
}

impl Gentle {
    pub fn new(most_added_s: f64, limit_bytes_per_s: Option<f64>) -> Self {
        let bytes_per_s = limit_bytes_per_s.unwrap_or(f64::INFINITY).min(FIRST_BYTES_PER_S);
        Self { most_added_s, shortest_s: f64::INFINITY, has_queued: false, bytes_per_s }
    }

    /// A small request took so long.
    pub fn saw(&mut self, seconds: f64) {
        self.shortest_s = self.shortest_s.min(seconds);
        let used = (seconds - self.shortest_s) / self.most_added_s.max(1e-6);
        self.has_queued |= used > 0.5;
        self.bytes_per_s *= match used {
            used if used > 1.0 => MUCH_LESS,
            used if used > 0.5 => LESS,
            _ if !self.has_queued => 2.0,
            used => 1.0 + MORE * (1.0 - 2.0 * used),
        };
        self.bytes_per_s = self.bytes_per_s.max(LEAST_BYTES_PER_S);
    }
}

impl Mover {
    /// Watches the path with small requests beside the blocks, and sets the rate of all moves by them.
    pub(super) async fn gentle(&self, place: &Place) -> Infallible {
        let Some(most_added) = self.terms.gentle else { return pending().await };
        let limit = self.terms.limit_bytes_per_s.map_or(f64::INFINITY, |limit| limit as f64);
        let mut gentle = Gentle::new(most_added.as_secs_f64(), Some(limit));
        loop {
            self.pace.set(gentle.bytes_per_s.min(limit));
            let (mut seen, began) = (Attempt::default(), Instant::now());
            let asked = place.store.head(&place.name, &mut seen).await;
            // A new connection takes longer whatever the path is like.
            if asked.is_ok() && seen.connected.is_none() {
                gentle.saw(began.elapsed().as_secs_f64());
                gentle.bytes_per_s = gentle.bytes_per_s.min(limit);
            }
            sleep(EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of 10 MB/s with 20 ms, whose queue grows by what it can't take.
    #[test]
    fn the_queue_stays_short_and_the_path_is_made_use_of() {
        let mut gentle = Gentle::new(0.010, None);
        let (mut queue_bytes, mut sent_bytes, mut worst_s) = (0.0_f64, 0.0, 0.0_f64);
        let (path, steps) = (10e6, 400);
        for step in 0..steps {
            let offered = gentle.bytes_per_s * EVERY.as_secs_f64();
            let before = queue_bytes;
            queue_bytes = (queue_bytes + offered - path * EVERY.as_secs_f64()).max(0.0);
            sent_bytes += before + offered - queue_bytes;
            let added_s = queue_bytes / path;
            if step > 40 {
                worst_s = worst_s.max(added_s);
            }
            gentle.saw(0.020 + added_s);
        }
        let used = sent_bytes / (path * EVERY.as_secs_f64() * f64::from(steps));
        assert!(used > 0.7, "{used}");
        assert!(worst_s < 0.010, "{worst_s}");
    }
}
