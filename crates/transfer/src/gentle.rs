//! Congestion control of gentle transfers, which add little latency to other traffic. Bytes that are sent faster than
//! the network path carries them wait in a queue, which adds latency. The rate is controlled so that the queue adds
//! half of the permitted latency.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::location::Location;
use crate::manager::TransferManager;
use crate::store::{Attempt, Kind};

/// Initial rate in bytes per second. It is low, because on a slow path a queue builds up before the first measurement
/// shows it.
const FIRST_BYTES_PER_S: f64 = 250e3;
/// Lowest rate in bytes per second. At an even lower rate, the transfer would disturb other traffic less, but for too
/// long.
const LEAST_BYTES_PER_S: f64 = 32e3;
/// Smallest part of a gentle download, in bytes. Smaller parts arrive in shorter bursts, but need more requests. Below
/// this size, the additional requests would harm other traffic more than the shorter bursts would help it.
const LEAST_PART_BYTES: f64 = 65_536.0;
/// Pause between two measurements of the network path's latency.
const EVERY: Duration = Duration::from_millis(50);
/// Maximum age in seconds of a measurement that is compared with the next one. An older measurement no longer describes
/// the queue in the network path.
const STALE_S: f64 = 1.0;
/// Largest relative increase of the rate after one measurement: 0.25 is a quarter more. Near the known capacity of the
/// network path, [`NEAR_MORE`] limits the increase further.
const MORE: f64 = 0.25;
/// Limit on the increase of the rate near the known capacity of the network path. If the increased rate is too high,
/// the queue grows until the next measurement. This growth may add at most this share of the permitted latency.
const NEAR_MORE: f64 = 0.25;
/// A rate counts as near the known capacity of the network path if it is above this share of the capacity.
const NEAR: f64 = 0.8;
/// The queue in the network path counts as empty if the latency that it adds is below this share of the permitted
/// latency. Even without a queue, latencies vary by this much.
const NONE: f64 = 0.25;
/// Number of consecutive measurements after which the known capacity of the network path is discarded as too low. Each
/// of these measurements must find an empty queue at a rate near this capacity.
const CALM: u32 = 10;
/// Number of consecutive measurements with a queue that is too long, after which the baseline (the latency without a
/// queue) is measured again. Either the network path has become longer, or another sender keeps a queue in it.
/// Measurements can't distinguish these two causes.
const LONGER: u32 = 50;
/// Number of measurements at the lowest rate, before the baseline changes. They are the last of the [`LONGER`]
/// consecutive measurements. Our own queue drains during them, so their lowest latency becomes the new baseline.
const DRAINED: u32 = 10;
const NO_QUEUE: (u32, f64) = (0, f64::INFINITY);
/// The latency that our queue in the network path should add, as a share of the permitted latency.
const AIM: f64 = 0.5;
/// Smallest share of the measured capacity to which one measurement may reduce the rate. It is small, so that a long
/// queue drains soon.
const DRAINING: f64 = 0.2;
/// Duration of a slice (the bytes that are passed to the kernel at once), as a share of the permitted latency. Slices
/// are short, because the kernel can't take bytes back.
const SLICE: f64 = 0.1;

/// Returns the size in bytes of a part of a gentle download. `most_added` is the latency that transfers may add. A part
/// arrives at full speed, so a large part would cause a long queue. At 1 MB/s, a part of this size adds half of
/// `most_added`, or more if the result was raised to the minimum, [`LEAST_PART_BYTES`].
pub(crate) fn part_bytes(most_added: Duration) -> f64 {
    (1e6 * most_added.as_secs_f64() / 2.0).max(LEAST_PART_BYTES)
}

/// Returns the longest duration in seconds of a slice, the bytes that are passed to the kernel at once. `most_added` is
/// the latency that transfers may add.
pub(crate) fn slice_s(most_added: Duration) -> f64 {
    most_added.as_secs_f64() * SLICE
}

/// Adjusts the rate of gentle transfers to the latency of the network path, so that they add little latency.
#[derive(Debug)]
pub(crate) struct CongestionControl {
    most_added_s: f64,
    most_bytes_per_s: f64,
    shortest_s: f64,
    last: Option<Sample>,
    /// Measured capacity of the network path. It is `None` until a queue is observed. It becomes `None` again if it has
    /// proved too low.
    taken_bytes_per_s: Option<f64>,
    /// Number of consecutive measurements that found an empty queue at a rate near the capacity of the network path.
    calm: u32,
    /// The number of consecutive measurements with a queue that is too long. Also the lowest latency, in seconds, among
    /// the measurements at the lowest rate, at which our own queue drains.
    standing: (u32, f64),
    pub bytes_per_s: f64,
}

/// A measurement by one small request: its start, the number of bytes sent before it, and the latency that the queue in
/// the network path added to it.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at_s: f64,
    sent_bytes: f64,
    queue_s: f64,
}

impl CongestionControl {
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

    /// Adjusts the rate after a small request that measured the latency. The request started at `at_s` and took
    /// `took_s`, in seconds. Before it, `sent_bytes` bytes had been sent in total.
    pub fn observe(&mut self, at_s: f64, sent_bytes: f64, took_s: f64) {
        self.shortest_s = self.shortest_s.min(took_s);
        let queue_s = took_s - self.shortest_s;
        let last = self.last.replace(Sample { at_s, sent_bytes, queue_s });
        // The previous measurement is too old if it ended more than `STALE_S` ago. Its start does not matter, because
        // it may itself have taken longer than `STALE_S`.
        let answered_s = |last: &Sample| last.at_s + self.shortest_s + last.queue_s;
        let Some(last) = last.filter(|last| at_s - answered_s(last) < STALE_S) else { return };
        let (passed_s, sent_bytes) = ((at_s - last.at_s).max(1e-3), sent_bytes - last.sent_bytes);
        // A change of the rate now first affects a measurement that ends about `late_s` later. Until then, the queue
        // grows or shrinks as it did before.
        let late_s = passed_s + took_s;
        let expected_s = queue_s + (queue_s - last.queue_s).max(0.0);
        let (aim_s, none_s) = (AIM * self.most_added_s, NONE * self.most_added_s);
        let is_near = self.taken_bytes_per_s.is_some_and(|taken| self.bytes_per_s > NEAR * taken);
        if expected_s < aim_s {
            self.standing = NO_QUEUE;
            let most = if is_near { MORE.min(NEAR_MORE * self.most_added_s / late_s) } else { MORE };
            // If much less is sent than the rate permits, the latency does not show whether the path can carry this
            // rate.
            if sent_bytes / passed_s > self.bytes_per_s / 2.0 {
                self.bytes_per_s *= 1.0 + most * (1.0 - expected_s / aim_s);
            }
            self.calm = if is_near && queue_s < none_s { self.calm + 1 } else { 0 };
            if self.calm >= CALM {
                self.taken_bytes_per_s = None;
            }
        } else {
            self.calm = 0;
            // The path has carried all bytes that were sent, except those by which the queue has grown. Its capacity
            // follows from these two numbers.
            let taken = sent_bytes / (passed_s + queue_s - last.queue_s).max(passed_s / 4.0);
            let taken = taken.min(2.0 * self.bytes_per_s);
            let taken = match self.taken_bytes_per_s {
                // If no bytes were sent since the last measurement, this measurement shows nothing about the capacity.
                known if sent_bytes == 0.0 => known.unwrap_or(self.bytes_per_s),
                // The queue was nearly empty for some of the time, so the path may be able to carry more than `taken`.
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

impl TransferManager {
    /// Runs `work`. If transfers are gentle, meanwhile also measures the latency by small requests for `object`, and
    /// adjusts the rate.
    pub(crate) async fn gently<T>(&self, object: &Location, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = self.watch(object) => match never {},
        }
    }

    /// Measures the latency by small requests for `object`, and adjusts the rate of all transfers. Only one transfer
    /// measures at a time. When this transfer ends, another one continues from the same state.
    async fn watch(&self, object: &Location) -> Infallible {
        if let Some(gentle) = &self.gentle {
            self.adjust(object, &mut *gentle.lock().await).await;
        }
        pending().await
    }

    /// Adjusts the rate after each measurement, until the caller drops the future. Returns early if each measurement
    /// would fetch the whole object, which would cost too much.
    async fn adjust(&self, object: &Location, gentle: &mut CongestionControl) {
        loop {
            self.gate.rate_limit.set(gentle.bytes_per_s);
            let (mut attempt, at, sent_bytes) = (Attempt::default(), Instant::now(), self.gate.rate_limit.sent_bytes());
            let head = object.store.head(&object.name, &mut attempt).await;
            // An HTTP server that does not support ranges answers each request with the whole object, over a new
            // connection.
            let is_whole = match &head {
                Ok(Some(meta)) => object.store.is_sequential(meta),
                Ok(None) => false,
                Err(failure) => failure.kind == Kind::Unsized,
            };
            if is_whole {
                return;
            }
            // The latency does not include the wait for a connection, or the time to open a new one.
            let sent_at = attempt.secured.or(attempt.connected).or(attempt.began).map_or(at, Instant::from_std);
            // Failed requests with an answer count too: a refusal takes as long as any other answer.
            if let Some(answered) = attempt.header.map(Instant::from_std).or(head.is_ok().then(Instant::now)) {
                let took_s = answered.saturating_duration_since(sent_at).as_secs_f64();
                gentle.observe(sent_at.saturating_duration_since(self.began).as_secs_f64(), sent_bytes, took_s);
            }
            sleep(EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limit::RateLimit;

    const STEP_S: f64 = 1e-3;
    /// Number of parts that are requested in parallel.
    const AT_ONCE: usize = 4;

    /// A simulated path with a download over it. Parts are requested at the times that [`RateLimit`] permits, and cross
    /// the path one after the other. If `part_bytes` is 0, the bytes flow continuously.
    struct Path {
        bytes_per_s: f64,
        round_trip_s: f64,
        most_added_s: f64,
        part_bytes: u64,
    }

    impl Path {
        /// Simulates two periods of `seconds` each. For each period, returns the share of the time when the added
        /// latency exceeds the limit, and the used share of the capacity. In the second period, the round trip is
        /// longer by `detour_s`, and another sender keeps a queue of `others_s` seconds.
        fn play(&self, seconds: f64, detour_s: f64, others_s: f64) -> [(f64, f64); 2] {
            let mut gentle = CongestionControl::new(self.most_added_s, None);
            let (pace, began) = (RateLimit::new(Some(gentle.bytes_per_s), None), tokio::time::Instant::now());
            let (mut queue_bytes, mut fluid_bytes, mut gone_bytes) = (0.0_f64, 0.0, 0.0);
            let (mut asks_at_s, mut answer) = (0.0, None);
            // For each part: the time when it enters the queue, and the total of bytes that have passed when the part
            // is complete.
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
                        gentle.observe(at_s, sent, took_s);
                        pace.set(gentle.bytes_per_s);
                        (answer, asks_at_s) = (None, now_s + EVERY.as_secs_f64());
                    }
                    if self.part_bytes == 0 {
                        fluid_bytes += gentle.bytes_per_s * STEP_S;
                        queue_bytes += gentle.bytes_per_s * STEP_S;
                    } else {
                        blocks.retain(|(_, gone)| gone.is_none_or(|gone| gone_bytes < gone));
                        while blocks.len() < AT_ONCE {
                            let turn = pace.turn_at(began + Duration::from_secs_f64(now_s), self.part_bytes);
                            blocks.push(((turn - began).as_secs_f64() + round_trip_s, None));
                        }
                        for (comes_at_s, gone) in &mut blocks {
                            if gone.is_none() && now_s >= *comes_at_s {
                                queue_bytes += self.part_bytes as f64;
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
    fn the_queue_stays_short_and_the_path_is_used() {
        for (bytes_per_s, round_trip_s, most_added_s) in [
            (2.5e6, 0.01, 0.06),
            (10e6, 0.02, 0.02),
            (0.5e6, 0.03, 0.06),
            (100e6, 0.02, 0.03),
            (5e6, 0.1, 0.06),
            (1e6, 0.2, 0.1),
        ] {
            let part_bytes = part_bytes(Duration::from_secs_f64(most_added_s)) as u64;
            let path = Path { bytes_per_s, round_trip_s, most_added_s, part_bytes: 0 };
            let [(late, used), _] = path.play(20.0, 0.0, 0.0);
            assert!(late < 0.05 && used > 0.7, "{bytes_per_s} {round_trip_s} {most_added_s}: late {late}, used {used}");
            // On some paths, a single part already adds more latency than is permitted. Such paths are tested only with
            // bytes that flow continuously.
            if part_bytes as f64 / bytes_per_s < most_added_s {
                let [(late, used), _] = Path { part_bytes, ..path }.play(20.0, 0.0, 0.0);
                assert!(late < 0.05 && used > 0.4, "{bytes_per_s} {round_trip_s} in blocks: late {late}, used {used}");
            }
        }
    }

    #[test]
    fn a_path_that_has_become_longer_is_used_again() {
        for part_bytes in [0, 65_536] {
            let path = Path { bytes_per_s: 2.5e6, round_trip_s: 0.01, most_added_s: 0.06, part_bytes };
            let [(_, before), (late, used)] = path.play(60.0, 0.1, 0.0);
            assert!(late < 0.05 && used > before / 2.0, "{part_bytes}: {before} before, late {late}, used {used}");
        }
    }

    /// If another sender keeps a queue, we add at most the permitted latency to it, even if answers take longer than a
    /// second.
    #[test]
    fn only_the_permitted_latency_is_added_to_the_queue_of_another_sender() {
        for (bytes_per_s, round_trip_s, most_added_s) in [(2.5e6, 0.01, 0.06), (1e6, 0.2, 0.1)] {
            for (part_bytes, others_s) in [(0, 0.1), (0, 0.4), (0, 1.0), (65_536, 0.1), (65_536, 0.4), (65_536, 1.0)] {
                let path = Path { bytes_per_s, round_trip_s, most_added_s, part_bytes };
                let [_, (late, used)] = path.play(200.0, 0.0, others_s);
                let case = format!("{bytes_per_s} {part_bytes} {others_s}");
                assert!(late < 0.05 && used > 0.01, "{case}: late {late}, used {used}");
            }
        }
    }

    /// The rate does not grow while nothing is sent, and never exceeds the bandwidth limit.
    #[test]
    fn without_traffic_the_rate_does_not_grow() {
        let mut gentle = CongestionControl::new(0.02, Some(400e3));
        for step in 0..100 {
            gentle.observe(f64::from(step) * 0.06, 0.0, 0.01);
        }
        assert_eq!(gentle.bytes_per_s, FIRST_BYTES_PER_S);
        for step in 100..200 {
            gentle.observe(f64::from(step) * 0.06, f64::from(step) * 24e3, 0.01);
        }
        assert_eq!(gentle.bytes_per_s, 400e3);
    }
}
