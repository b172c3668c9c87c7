//! False alarms and favours that are found, by simulation: downloads over the model of the experiment's links, on a
//! virtual clock, judged as its claims are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ascertain_engine::experiment::Experiment;
use ascertain_netlab::model::{Fate, Flow, Line};
use ascertain_stats::{Judge, Verdict};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::{CHEATING, FAIR, Favouritism};
use super::*;

const RUNS: u64 = 500;
const CHEATS: u64 = 100;
const ERROR: f64 = 0.01;
/// The favour that is looked for.
const FAVOUR: f64 = 1.2;
const MOST_TRIALS: u64 = 300;
const SEGMENT_BYTES: usize = FULL_SEGMENT_BYTES as usize;

/// Somebody who downloads: one's own, a stream of the speed test, or others with another program.
struct Sender {
    flow: Flow,
    /// As Reno has them: the window grows by a segment for each that arrives, or for a whole window; loss halves it.
    window_segments: f64,
    threshold_segments: f64,
    under_way: u32,
    last_halved_ns: u64,
    /// Until when it downloads.
    end_ns: u64,
    counted_bytes: u64,
}

impl Sender {
    fn new(port: u16, end_ns: u64) -> Self {
        let flow = Flow { source: ([198, 18, 1, 1], port).into(), destination: ([198, 18, 0, 1], 50_000).into() };
        let (window_segments, threshold_segments) = (10.0, f64::INFINITY);
        Self { flow, window_segments, threshold_segments, under_way: 0, last_halved_ns: 0, end_ns, counted_bytes: 0 }
    }

    fn learns(&mut self, now_ns: u64, sent_ns: u64, has_arrived: bool, is_counted: bool) {
        self.under_way -= 1;
        if has_arrived {
            let is_slow_start = self.window_segments < self.threshold_segments;
            self.window_segments += if is_slow_start { 1.0 } else { 1.0 / self.window_segments };
            self.counted_bytes += if is_counted { FULL_SEGMENT_BYTES } else { 0 };
        } else if sent_ns >= self.last_halved_ns {
            self.window_segments = (self.window_segments / 2.0).max(1.0);
            self.threshold_segments = self.window_segments;
            self.last_halved_ns = now_ns;
        }
    }
}

/// One's own throughput in a trial's arm [B/s], on a line that is so many times as fast as usual.
fn throughput(arm: &Arm, streams: u64, others: u64, speed: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let ns = |factor| arm.integer(factor).unwrap() * 1_000_000;
    let (rtt_ns, start_ns) = (ns("rtt_ms"), ns("left_out_ms"));
    let end_ns = start_ns + ns("measured_ms");
    let mut conditions = conditions_of(arm, &link_of(arm).unwrap()).unwrap()[1].clone();
    conditions.rate_bits_per_s = conditions.rate_bits_per_s.map(|rate| (rate as f64 * speed) as u64);
    (conditions.loss, conditions.seed) = (0.002, rng.random());
    let mut line = Line::new(&conditions).unwrap();
    let mut senders = vec![Sender::new(OWN_PORT, end_ns)];
    senders.extend((0..streams).map(|_| Sender::new(TEST_PORT, end_ns)));
    // When a sender learns something: it begins, or a segment of that moment arrived, or did not.
    let mut events: BinaryHeap<_> = (0..senders.len()).map(|index| Reverse((0, index, 0, None))).collect();
    for _ in 0..others {
        let begin_ns = rng.random_range(0..end_ns);
        events.push(Reverse((begin_ns, senders.len(), begin_ns, None)));
        senders.push(Sender::new(443, rng.random_range(begin_ns..=end_ns)));
    }
    while let Some(Reverse((now_ns, index, sent_ns, has_arrived))) = events.pop() {
        let sender = &mut senders[index];
        if let Some(has_arrived) = has_arrived {
            sender.learns(now_ns, sent_ns, has_arrived, (start_ns..end_ns).contains(&now_ns));
        }
        while now_ns < sender.end_ns && f64::from(sender.under_way) + 1.0 <= sender.window_segments {
            sender.under_way += 1;
            let (learns_ns, has_arrived) = match line.offer(now_ns, SEGMENT_BYTES, sender.flow) {
                Fate::Due(due_ns) => (due_ns + rtt_ns / 2, true),
                // What came behind it shows that.
                Fate::Dropped(_) => (now_ns + rtt_ns, false),
            };
            events.push(Reverse((learns_ns, index, now_ns, Some(has_arrived))));
        }
    }
    senders[0].counted_bytes as f64 * 1e9 / (end_ns - start_ns) as f64
}

/// What a run says of the favour, over a link of that kind and of any speed.
fn judged(seed: u64, link: &str) -> Option<Verdict> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let rate_mbit_s = rng.random_range(5..=20);
    // A speed test that comes by another way takes nothing from one's own download.
    let streams = if link == FAIR { rng.random_range(0..=2) } else { rng.random_range(1..=2) };
    // One's own part beside the test is at least 1.4 times what is let through without.
    let throttled_mbit_s = (rate_mbit_s * 10 / 14 / (streams + 1)).max(1);
    let levels = [("rate_mbit_s", rate_mbit_s), ("throttled_mbit_s", throttled_mbit_s)];
    let levels = levels.into_iter().chain([("rtt_ms", rng.random_range(5..=20)), ("streams", streams)]);
    let point = Favouritism.spec().default_point().with("link", link);
    let point = levels.fold(point, |point, (factor, level)| point.with(factor, level));
    let arm = Arm { variant: String::new(), point };
    let most_others = rng.random_range(0..=3);
    let mut judge = Judge::new(0.5, ERROR).unwrap();
    let mut speed: f64 = 1.0;
    for _ in 0..MOST_TRIALS {
        let mut throughputs = [0.0; 2];
        let is_alone_first: bool = rng.random();
        for beside in if is_alone_first { [0, 1] } else { [1, 0] } {
            // The line gets faster and slower by itself.
            speed = (speed * rng.random_range(0.9..1.12)).clamp(0.3, 3.0);
            let others = rng.random_range(0..=most_others);
            throughputs[beside as usize] = throughput(&arm, beside * streams, others, speed, &mut rng);
        }
        let verdict = judge.observe(throughputs[1] >= FAVOUR * throughputs[0]);
        if verdict.is_some() {
            return verdict;
        }
    }
    None
}

fn found(link: &str, runs: u64) -> u64 {
    (0..runs).filter(|seed| judged(*seed, link) == Some(Verdict::Holds)).count() as u64
}

#[test]
fn at_most_one_fair_link_in_a_hundred_is_called_favoured() {
    let alarms = found(FAIR, RUNS);
    assert!(alarms * 100 <= RUNS, "{alarms} of {RUNS}");
}

#[test]
fn favours_are_found() {
    let found = found(CHEATING, CHEATS);
    assert!(found * 100 >= 95 * CHEATS, "{found} of {CHEATS}");
}
