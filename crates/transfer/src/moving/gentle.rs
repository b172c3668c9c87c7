//! Leaves others' latency alone: as fast as the path goes with a queue of half of what may be added.

use std::convert::Infallible;
use std::future::pending;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{Mover, Place};
use crate::store::Attempt;

/// What it begins with: a path that is slower than that has a queue before anything can be known of it.
const FIRST_BYTES_PER_S: f64 = 250e3;
/// Never slower than that: others would wait for ever to be left alone.
const LEAST_BYTES_PER_S: f64 = 32e3;
/// Smaller blocks would cost more in requests than they leave to others.
const LEAST_BLOCK_BYTES: f64 = 65_536.0;
/// How often the path is asked.
const EVERY: Duration = Duration::from_millis(50);
/// What was seen before that says nothing of the queue now.
const STALE_S: f64 = 1.0;
/// How much faster it becomes from one question to the next until there is a queue, …
const MORE: f64 = 0.25;
/// … and near what the path takes: by no more than lengthens the queue by this share of what may be added, before that
/// is seen.
const NEAR_MORE: f64 = 0.25;
/// Near is above this share of what it takes.
const NEAR: f64 = 0.8;
/// A queue below this share of what may be added is none: answers differ by as much without one.
const NONE: f64 = 0.25;
/// So often there is none in a row, and what the path was seen to take was less than it does.
const CALM: u32 = 10;
/// The share of what may be added that is aimed at.
const AIM: f64 = 0.5;
/// What is left of the rate at least where the queue is too long: it is to drain, and soon.
const DRAINING: f64 = 0.2;
/// A slice takes this share of what may be added: what was handed to the kernel can't be taken back.
const SLICE: f64 = 0.1;

/// What is got comes a block at a time: one of that size fills the queue of a path of 1 MB/s by half of what may be
/// added.
pub(super) fn block_bytes(most_added: Duration) -> f64 {
    (1e6 * most_added.as_secs_f64() / 2.0).max(LEAST_BLOCK_BYTES)
}

/// What is sent at once is paid for in that time.
pub(super) fn slice_s(most_added: Duration) -> f64 {
    most_added.as_secs_f64() * SLICE
}

/// A rate, and what the path takes when it is at its best.
#[derive(Debug)]
pub(super) struct Gentle {
    most_added_s: f64,
    most_bytes_per_s: f64,
    shortest_s: f64,
    last: Option<Saw>,
    /// What the path takes, since there first was a queue.
    taken_bytes_per_s: Option<f64>,
    /// How often in a row there was no queue at such a rate.
    calm: u32,
    pub bytes_per_s: f64,
}

/// A small request: when it was made, what had been sent by then, and how long the queue was.
#[derive(Clone, Copy, Debug)]
struct Saw {
    at_s: f64,
    sent_bytes: f64,
    queue_s: f64,
}

impl Gentle {
    pub fn new(most_added_s: f64, limit_bytes_per_s: Option<f64>) -> Self {
        let most_bytes_per_s = limit_bytes_per_s.unwrap_or(f64::INFINITY);
        Self {
            most_added_s: most_added_s.max(1e-6),
            most_bytes_per_s,
            shortest_s: f64::INFINITY,
            last: None,
            taken_bytes_per_s: None,
            calm: 0,
            bytes_per_s: FIRST_BYTES_PER_S.min(most_bytes_per_s),
        }
    }

    /// A small request that was made at that time, when so many bytes had been sent, took so long.
    pub fn saw(&mut self, at_s: f64, sent_bytes: f64, took_s: f64) {
        self.shortest_s = self.shortest_s.min(took_s);
        let queue_s = took_s - self.shortest_s;
        let last = self.last.replace(Saw { at_s, sent_bytes, queue_s });
        let Some(last) = last.filter(|last| at_s - last.at_s < STALE_S) else { return };
        let (passed_s, sent_bytes) = ((at_s - last.at_s).max(1e-3), sent_bytes - last.sent_bytes);
        // What is decided now is seen so much later, and until then the queue goes on as it did.
        let late_s = passed_s + took_s;
        let expected_s = queue_s + (queue_s - last.queue_s).max(0.0);
        let (aim_s, none_s) = (AIM * self.most_added_s, NONE * self.most_added_s);
        let is_near = self.taken_bytes_per_s.is_some_and(|taken| self.bytes_per_s > NEAR * taken);
        if expected_s < aim_s {
            let most = if is_near { MORE.min(NEAR_MORE * self.most_added_s / late_s) } else { MORE };
            // Whoever has nothing more to send learns nothing of the path.
            if sent_bytes / passed_s > self.bytes_per_s / 2.0 {
                self.bytes_per_s *= 1.0 + most * (1.0 - expected_s / aim_s);
            }
            self.calm = if is_near && queue_s < none_s { self.calm + 1 } else { 0 };
            if self.calm >= CALM {
                self.taken_bytes_per_s = None;
            }
        } else {
            self.calm = 0;
            // What came and did not go has made the queue longer.
            let taken = sent_bytes / (passed_s + queue_s - last.queue_s).max(passed_s / 4.0);
            let taken = taken.min(2.0 * self.bytes_per_s);
            let taken = match self.taken_bytes_per_s {
                // Some of the time there was no queue: the path takes more than that.
                Some(before) if queue_s.min(last.queue_s) < none_s => taken.max(before),
                _ => taken,
            };
            self.taken_bytes_per_s = Some(taken);
            let share = (1.0 + (aim_s - expected_s) / late_s).max(DRAINING);
            self.bytes_per_s = self.bytes_per_s.min(taken * share);
        }
        self.bytes_per_s = self.bytes_per_s.max(LEAST_BYTES_PER_S).min(self.most_bytes_per_s);
    }
}

impl Mover {
    /// Does something beside which the path is watched, if it is to be gentle.
    pub(super) async fn gently<T>(&self, place: &Place, what: impl Future<Output = T>) -> T {
        tokio::select! {
            done = what => done,
            never = self.gentle(place) => match never {},
        }
    }

    /// Watches the path with small requests beside the blocks, and sets the rate of all moves by them: one of them does
    /// so at a time, and the next one goes on from there.
    pub(super) async fn gentle(&self, place: &Place) -> Infallible {
        let Some(gentle) = &self.gentle else { return pending().await };
        let mut gentle = gentle.lock().await;
        loop {
            self.pace.set(gentle.bytes_per_s);
            let (mut seen, at, sent_bytes) = (Attempt::default(), Instant::now(), self.pace.sent_bytes());
            let asked = place.store.head(&place.name, &mut seen).await;
            // How long a new connection takes is another matter.
            let asked_at = seen.secured.or(seen.connected).unwrap_or(at);
            // A refusal takes as long as another answer.
            if let Some(answered) = seen.header.or(asked.is_ok().then(Instant::now)) {
                let took_s = answered.saturating_duration_since(asked_at).as_secs_f64();
                gentle.saw(asked_at.saturating_duration_since(self.began).as_secs_f64(), sent_bytes, took_s);
            }
            sleep(EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of the time in which a path adds more than it may, and that of what it takes which was made use of.
    fn played(path: f64, round_trip_s: f64, most_added_s: f64) -> (f64, f64) {
        const STEP_S: f64 = 1e-3;
        let mut gentle = Gentle::new(most_added_s, None);
        let (mut queue_bytes, mut sent_bytes, mut late_s) = (0.0_f64, 0.0, 0.0);
        let (mut asks_at_s, mut answer) = (0.0, None);
        let whole_s = 20.0;
        for step in 0..(whole_s / STEP_S) as usize {
            let now_s = step as f64 * STEP_S;
            let added_s = queue_bytes / path;
            if answer.is_none() && now_s >= asks_at_s {
                answer = Some((now_s, sent_bytes, round_trip_s + added_s));
            }
            if let Some((at_s, sent, took_s)) = answer.filter(|(at_s, _, took_s)| now_s >= at_s + took_s) {
                gentle.saw(at_s, sent, took_s);
                (answer, asks_at_s) = (None, now_s + EVERY.as_secs_f64());
            }
            let offered = gentle.bytes_per_s * STEP_S;
            sent_bytes += offered;
            queue_bytes = (queue_bytes + offered - path * STEP_S).max(0.0);
            late_s += if added_s > most_added_s { STEP_S } else { 0.0 };
        }
        (late_s / whole_s, (sent_bytes - queue_bytes) / (path * whole_s))
    }

    #[test]
    fn the_queue_stays_short_and_the_path_is_made_use_of() {
        for (path, round_trip_s, most_added_s) in [
            (2.5e6, 0.01, 0.06),
            (10e6, 0.02, 0.02),
            (0.5e6, 0.03, 0.06),
            (100e6, 0.02, 0.03),
            (5e6, 0.1, 0.06),
            (1e6, 0.2, 0.1),
        ] {
            let (late, used) = played(path, round_trip_s, most_added_s);
            assert!(late < 0.05, "{path} {round_trip_s} {most_added_s}: late {late}");
            assert!(used > 0.7, "{path} {round_trip_s} {most_added_s}: used {used}");
        }
    }

    /// It becomes no faster by having nothing to send, and a limit holds.
    #[test]
    fn a_path_that_nothing_is_sent_over_says_nothing() {
        let mut gentle = Gentle::new(0.02, Some(400e3));
        for step in 0..100 {
            gentle.saw(f64::from(step) * 0.06, 0.0, 0.01);
        }
        assert_eq!(gentle.bytes_per_s, FIRST_BYTES_PER_S);
        for step in 100..200 {
            gentle.saw(f64::from(step) * 0.06, f64::from(step) * 24e3, 0.01);
        }
        assert_eq!(gentle.bytes_per_s, 400e3);
    }
}
