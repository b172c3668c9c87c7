//! Simulates how often the experiment finds that a download is favoured, on fair links (false alarms) and on cheating
//! ones. Downloads run over the model of the experiment's links, on a virtual clock, and are judged like the
//! experiment's claims.

use ascertain_engine::experiment::Experiment;
use ascertain_netlab::model::Line;
use ascertain_stats::{Judge, Verdict};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::{FAIR, Favouritism};
use super::*;
use crate::simulated::{SEGMENT_BYTES, Sender, download};

const RUNS: u64 = 500;
const CHEATS: u64 = 100;
const ERROR: f64 = 0.01;
/// The factor by which the measured download is faster during a speed test, according to the simulated claim.
const FAVOUR: f64 = 1.2;
const MOST_TRIALS: u64 = 300;

/// Returns the throughput of the measured download in an arm of one trial, in bytes per second. The rate of the
/// simulated line is `speed` times the usual one.
fn throughput(arm: &Arm, streams: u64, others: u64, speed: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let ns = |factor| arm.integer(factor).unwrap() * 1_000_000;
    let (rtt_ns, start_ns) = (ns("rtt_ms"), ns("left_out_ms"));
    let end_ns = start_ns + ns("measured_ms");
    let mut conditions = link_conditions(arm, &links::limited(arm, BURST_BYTES).unwrap()).unwrap()[1].clone();
    conditions.rate_bits_per_s = conditions.rate_bits_per_s.map(|rate| (rate as f64 * speed) as u64);
    (conditions.loss, conditions.seed) = (0.002, rng.random());
    let mut line = Line::new(&conditions).unwrap();
    // The measured download, the streams of the speed test, and unrelated downloads from another port.
    let mut senders = vec![Sender::new(OWN_PORT, 0, end_ns)];
    senders.extend((0..streams).map(|_| Sender::new(TEST_PORT, 0, end_ns)));
    senders.extend((0..others).map(|_| {
        let begin_ns = rng.random_range(0..end_ns);
        Sender::new(443, begin_ns, rng.random_range(begin_ns..=end_ns))
    }));
    let mut counted_bytes = 0;
    download(&mut line, rtt_ns, senders, |index, now_ns| {
        if index == 0 && (start_ns..end_ns).contains(&now_ns) {
            counted_bytes += SEGMENT_BYTES;
        }
    });
    counted_bytes as f64 * 1e9 / (end_ns - start_ns) as f64
}

/// Simulates a run over a link whose speed drifts. `link` selects a fair or a cheating link. Returns the verdict on the
/// claim; `None` if it stays undecided.
fn judged(seed: u64, link: &str) -> Option<Verdict> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let rate_mbit_s = rng.random_range(5..=20);
    // Without streams, the speed test takes another path and takes nothing from the measured download.
    let streams = if link == FAIR { rng.random_range(0..=2) } else { rng.random_range(1..=2) };
    // During a speed test, the measured download's share of the rate is at least 1.4 times the throttled rate.
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
            // The speed of the line drifts from download to download.
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
