//! Leaves others' latency alone: as fast as the path goes with a queue of half of what may be added.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Mover, Place};
use crate::store::{Attempt, Kind};

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
/// So often in a row it is too long although the rate does not grow: the path has become longer, or somebody else keeps
/// a queue in it, which can't be told apart.
const LONGER: u32 = 50;
/// The last so many of these times as little is sent as may be, so that what remains is not a queue of ours: else that
/// would be added to again and again.
const DRAINED: u32 = 10;
const NO_QUEUE: (u32, f64) = (0, f64::INFINITY);
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
    /// How often in a row there was one that is too long, and the shortest that a request took when ours had drained.
    standing: (u32, f64),
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
            standing: NO_QUEUE,
            bytes_per_s: FIRST_BYTES_PER_S.min(most_bytes_per_s),
        }
    }

    /// A small request that was made at that time, when so many bytes had been sent, took so long.
    pub fn saw(&mut self, at_s: f64, sent_bytes: f64, took_s: f64) {
        self.shortest_s = self.shortest_s.min(took_s);
        let queue_s = took_s - self.shortest_s;
        let last = self.last.replace(Saw { at_s, sent_bytes, queue_s });
        // The last answer may itself have taken longer than that.
        let answered_s = |last: &Saw| last.at_s + self.shortest_s + last.queue_s;
        let Some(last) = last.filter(|last| at_s - answered_s(last) < STALE_S) else { return };
        let (passed_s, sent_bytes) = ((at_s - last.at_s).max(1e-3), sent_bytes - last.sent_bytes);
        // What is decided now is seen so much later, and until then the queue goes on as it did.
        let late_s = passed_s + took_s;
        let expected_s = queue_s + (queue_s - last.queue_s).max(0.0);
        let (aim_s, none_s) = (AIM * self.most_added_s, NONE * self.most_added_s);
        let is_near = self.taken_bytes_per_s.is_some_and(|taken| self.bytes_per_s > NEAR * taken);
        if expected_s < aim_s {
            self.standing = NO_QUEUE;
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
                // Between two blocks: that says nothing of what the path takes.
                known if sent_bytes == 0.0 => known.unwrap_or(self.bytes_per_s),
                // Some of the time there was no queue: the path takes more than that.
                Some(before) if queue_s.min(last.queue_s) < none_s => taken.max(before),
                _ => taken,
            };
            self.taken_bytes_per_s = Some(taken);
            let share = (1.0 + (aim_s - expected_s) / late_s).max(DRAINING);
            self.bytes_per_s = self.bytes_per_s.min(taken * share);
            self.standing.0 += 1;
            if self.standing.0 > LONGER - DRAINED {
                self.bytes_per_s = LEAST_BYTES_PER_S;
                self.standing.1 = self.standing.1.min(took_s);
            }
            if self.standing.0 >= LONGER {
                (self.shortest_s, self.taken_bytes_per_s, self.standing) = (self.standing.1, None, NO_QUEUE);
            }
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
    async fn gentle(&self, place: &Place) -> Infallible {
        if let Some(gentle) = &self.gentle {
            self.watch(place, &mut *gentle.lock().await).await;
        }
        pending().await
    }

    /// Ends where there is nothing small to ask for.
    async fn watch(&self, place: &Place, gentle: &mut Gentle) {
        loop {
            self.pace.set(gentle.bytes_per_s);
            let (mut seen, at, sent_bytes) = (Attempt::default(), Instant::now(), self.pace.sent_bytes());
            let asked = place.store.head(&place.name, &mut seen).await;
            // Then each answer brings all of the object, over a connection of its own.
            let is_whole = match &asked {
                Ok(Some(meta)) => place.store.in_order(meta),
                Ok(None) => false,
                Err(failure) => failure.kind == Kind::Unsized,
            };
            if is_whole {
                return;
            }
            // How long a new connection takes is another matter.
            let asked_at = seen.secured.or(seen.connected).map_or(at, Instant::from_std);
            // A refusal takes as long as another answer.
            if let Some(answered) = seen.header.map(Instant::from_std).or(asked.is_ok().then(Instant::now)) {
                let took_s = answered.saturating_duration_since(asked_at).as_secs_f64();
                gentle.saw(asked_at.saturating_duration_since(self.began).as_secs_f64(), sent_bytes, took_s);
            }
            sleep(EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pace;
    use super::*;

    const STEP_S: f64 = 1e-3;
    /// How many blocks are asked for at once.
    const AT_ONCE: usize = 4;

    /// What is got over a simulated path: block by block as [`Pace`] lets them, which come one behind the other; or
    /// with blocks of no size all the time.
    struct Path {
        bytes_per_s: f64,
        round_trip_s: f64,
        most_added_s: f64,
        block_bytes: u64,
    }

    impl Path {
        /// The share of the time in which it adds more than it may, and that of what it takes which was made use of:
        /// for so many seconds, and for as many after it has become longer by the detour, or somebody else keeps so
        /// much in its queue.
        fn play(&self, seconds: f64, detour_s: f64, others_s: f64) -> [(f64, f64); 2] {
            let mut gentle = Gentle::new(self.most_added_s, None);
            let (pace, began) = (Pace::new(Some(gentle.bytes_per_s), None), tokio::time::Instant::now());
            let (mut queue_bytes, mut fluid_bytes, mut gone_bytes) = (0.0_f64, 0.0, 0.0);
            let (mut asks_at_s, mut answer) = (0.0, None);
            // When each block is asked for, and what has gone when the last of it has.
            let mut blocks: Vec<(f64, Option<f64>)> = Vec::new();
            let (mut round_trip_s, mut others_bytes) = (self.round_trip_s, 0.0);
            let mut part = |from_s: f64, to_s: f64| {
                let (mut late_s, gone_before) = (0.0, gone_bytes);
                for step in (from_s / STEP_S) as usize..(to_s / STEP_S) as usize {
                    let now_s = step as f64 * STEP_S;
                    let added_s = queue_bytes / self.bytes_per_s;
                    if answer.is_none() && now_s >= asks_at_s {
                        let took_s = round_trip_s + added_s + others_bytes / self.bytes_per_s;
                        answer = Some((now_s, fluid_bytes + pace.sent_bytes(), took_s));
                    }
                    if let Some((at_s, sent, took_s)) = answer.filter(|(at_s, _, took_s)| now_s >= at_s + took_s) {
                        gentle.saw(at_s, sent, took_s);
                        pace.set(gentle.bytes_per_s);
                        (answer, asks_at_s) = (None, now_s + EVERY.as_secs_f64());
                    }
                    if self.block_bytes == 0 {
                        fluid_bytes += gentle.bytes_per_s * STEP_S;
                        queue_bytes += gentle.bytes_per_s * STEP_S;
                    } else {
                        blocks.retain(|(_, gone)| gone.is_none_or(|gone| gone_bytes < gone));
                        while blocks.len() < AT_ONCE {
                            let turn = pace.turn_at(began + Duration::from_secs_f64(now_s), self.block_bytes);
                            blocks.push(((turn - began).as_secs_f64() + round_trip_s, None));
                        }
                        for (comes_at_s, gone) in &mut blocks {
                            if gone.is_none() && now_s >= *comes_at_s {
                                queue_bytes += self.block_bytes as f64;
                                *gone = Some(gone_bytes + queue_bytes);
                            }
                        }
                    }
                    let ours = if others_bytes == 0.0 { 1.0 } else { queue_bytes / (queue_bytes + others_bytes) };
                    let goes_bytes = queue_bytes.min(self.bytes_per_s * STEP_S * ours);
                    (queue_bytes, gone_bytes) = (queue_bytes - goes_bytes, gone_bytes + goes_bytes);
                    late_s += if added_s > self.most_added_s { STEP_S } else { 0.0 };
                }
                (round_trip_s, others_bytes) = (round_trip_s + detour_s, others_s * self.bytes_per_s);
                (late_s / (to_s - from_s), (gone_bytes - gone_before) / self.bytes_per_s / (to_s - from_s))
            };
            [part(0.0, seconds), part(seconds, 2.0 * seconds)]
        }
    }

    #[test]
    fn the_queue_stays_short_and_the_path_is_made_use_of() {
        for (bytes_per_s, round_trip_s, most_added_s) in [
            (2.5e6, 0.01, 0.06),
            (10e6, 0.02, 0.02),
            (0.5e6, 0.03, 0.06),
            (100e6, 0.02, 0.03),
            (5e6, 0.1, 0.06),
            (1e6, 0.2, 0.1),
        ] {
            let block_bytes = block_bytes(Duration::from_secs_f64(most_added_s)) as u64;
            let path = Path { bytes_per_s, round_trip_s, most_added_s, block_bytes: 0 };
            let [(late, used), _] = path.play(20.0, 0.0, 0.0);
            assert!(late < 0.05 && used > 0.7, "{bytes_per_s} {round_trip_s} {most_added_s}: late {late}, used {used}");
            // A block alone may add more.
            if block_bytes as f64 / bytes_per_s < most_added_s {
                let [(late, used), _] = Path { block_bytes, ..path }.play(20.0, 0.0, 0.0);
                assert!(late < 0.05 && used > 0.4, "{bytes_per_s} {round_trip_s} in blocks: late {late}, used {used}");
            }
        }
    }

    #[test]
    fn a_path_that_has_become_longer_is_made_use_of_again() {
        for block_bytes in [0, 65_536] {
            let path = Path { bytes_per_s: 2.5e6, round_trip_s: 0.01, most_added_s: 0.06, block_bytes };
            let [(_, before), (late, used)] = path.play(60.0, 0.1, 0.0);
            assert!(late < 0.05 && used > before / 2.0, "{block_bytes}: {before} before, late {late}, used {used}");
        }
    }

    /// It is added to once, by no more than may be; also where answers take longer than a second.
    #[test]
    fn to_the_queue_of_somebody_else_no_more_is_added_than_may_be() {
        for (bytes_per_s, round_trip_s, most_added_s) in [(2.5e6, 0.01, 0.06), (1e6, 0.2, 0.1)] {
            for (block_bytes, others_s) in [(0, 0.1), (0, 0.4), (0, 1.0), (65_536, 0.1), (65_536, 0.4), (65_536, 1.0)] {
                let path = Path { bytes_per_s, round_trip_s, most_added_s, block_bytes };
                let [_, (late, used)] = path.play(200.0, 0.0, others_s);
                let case = format!("{bytes_per_s} {block_bytes} {others_s}");
                assert!(late < 0.05 && used > 0.01, "{case}: late {late}, used {used}");
            }
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
