//! Simulates downloads over the model of the experiment's links. Some links have a credit, a number of bytes that pass
//! at the full rate. The analysis must detect when the credit runs out, and must detect nothing on links without a
//! credit.

use ascertain_netlab::model::Line;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use ascertain_engine::experiment::Experiment;

use super::super::{LinkThroughput, OWN};
use super::*;
use crate::simulated::{SEGMENT_BYTES, Sender, download};

const RUNS: u64 = 1_000;
const BUCKETS: u64 = 200;

/// Simulates downloads by `streams` senders, together with other flows. `others` has the start and the end of each of
/// these flows. Returns the bytes of IP packets that arrived in each interval. Also returns the time at which the
/// link's burst credit ran out, as seen by the receiver; `None` if it did not run out. The credit is the number of
/// bytes that the link carries at the full rate before it slows down.
fn curve(
    conditions: &Conditions,
    rtt_ns: u64,
    streams: u64,
    others: &[[u64; 2]],
    intervals: u64,
) -> (Curve, Option<f64>) {
    let [left_out_ns, interval_ns] = [200_000_000, 20_000_000];
    let end_ns = left_out_ns + intervals * interval_ns;
    let mut line = Line::new(conditions).unwrap();
    let mut senders: Vec<_> = (0..streams).map(|_| Sender::new(5200, 0, end_ns)).collect();
    senders.extend(others.iter().map(|[begin_ns, end_ns]| Sender::new(443, *begin_ns, *end_ns)));
    let mut bytes = vec![0; (end_ns / interval_ns) as usize];
    // The token bucket, its content in bytes, and when the content was last updated.
    let mut tokens = conditions.bucket.map(|bucket| (bucket, bucket.burst_bytes as f64, 0));
    let mut ran_out_ns = None;
    download(&mut line, rtt_ns, senders, |index, now_ns| {
        let at_ns = now_ns - rtt_ns / 2;
        if let Some((bucket, held, before_ns)) = &mut tokens {
            let filled = (at_ns - *before_ns) as f64 * bucket.rate_bits_per_s as f64 / 8e9;
            *held = (*held + filled).min(bucket.burst_bytes as f64) - SEGMENT_BYTES as f64;
            *before_ns = at_ns;
            if *held < SEGMENT_BYTES as f64 && ran_out_ns.is_none() {
                ran_out_ns = Some(at_ns as f64);
            }
        }
        let counted = bytes.get_mut((at_ns / interval_ns) as usize);
        if let Some(bytes) = counted.filter(|_| (index as u64) < streams) {
            *bytes += SEGMENT_BYTES;
        }
    });
    let left_out = (left_out_ns / interval_ns) as usize;
    (Curve { interval: Duration::from_nanos(interval_ns), bytes, left_out }, ran_out_ns)
}

/// Returns the conditions and the round-trip time of a random link.
fn link(rng: &mut Xoshiro256PlusPlus, burst_kb: u64, rate_mbit_s: u64, refill_mbit_s: u64) -> (Conditions, u64) {
    let rtt_ms = rng.random_range(5..=20);
    let levels =
        [("rate_mbit_s", rate_mbit_s), ("refill_mbit_s", refill_mbit_s), ("burst_kb", burst_kb), ("rtt_ms", rtt_ms)];
    let point =
        levels.iter().fold(LinkThroughput.spec().default_point(), |point, (factor, level)| point.with(factor, *level));
    let arm = Arm { variant: OWN.into(), point };
    let [_, conditions] = link_conditions(&arm, &links::limited(&arm, LEAST_QUEUE_BYTES).unwrap()).unwrap();
    (Conditions { seed: rng.random(), ..conditions }, rtt_ms * 1_000_000)
}

/// Tests links with losses and with other traffic that comes and goes, in runs of any length.
#[test]
fn at_most_one_fair_link_in_a_hundred_is_said_to_run_out() {
    let found = (0..RUNS).filter(|seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(*seed);
        let rate_mbit_s = rng.random_range(5..=40);
        let (conditions, rtt_ns) = link(&mut rng, 0, rate_mbit_s, 1);
        let loss = [0.0, 0.0005, 0.002, 0.01][rng.random_range(0..4)];
        let intervals = rng.random_range(20..=150);
        let end_ns = 200_000_000 + intervals * 20_000_000;
        let others: Vec<_> = (0..rng.random_range(0..=6))
            .map(|_| {
                let begin_ns = rng.random_range(0..end_ns);
                [begin_ns, begin_ns + rng.random_range(0..end_ns / 3)]
            })
            .collect();
        let streams = rng.random_range(1..=4);
        let (curve, _) = curve(&Conditions { loss, ..conditions }, rtt_ns, streams, &others, intervals);
        Bucket::find(&curve).is_some()
    });
    let found = found.count() as u64;
    assert!(found * 100 <= RUNS, "{found} of {RUNS}");
}

/// For random token buckets, tests that the detected capacity, refill rate and time of depletion are within 5 % of the
/// true values.
#[test]
fn buckets_are_found_as_they_are() {
    let mut missed = Vec::new();
    for seed in 0..BUCKETS {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let rate_mbit_s = rng.random_range(20..=60);
        let refill_mbit_s = rng.random_range(rate_mbit_s / 10..=rate_mbit_s * 6 / 10);
        // The credit runs out after 0.6 to 1.6 of the 2.2 seconds.
        let ran_out_ms = rng.random_range(600..=1_600);
        let burst_kb = (rate_mbit_s - refill_mbit_s) * ran_out_ms / 8;
        let (conditions, rtt_ns) = link(&mut rng, burst_kb, rate_mbit_s, refill_mbit_s);
        let streams = rng.random_range(1..=4);
        let (curve, ran_out_ns) = curve(&conditions, rtt_ns, streams, &[], 100);
        let truth = [burst_kb as f64 * 1e3, refill_mbit_s as f64 * 1e6 / 8.0, ran_out_ns.unwrap()];
        let found = Bucket::find(&curve);
        let found = found.map(|found| [found.burst_bytes, found.bytes_per_s, found.ran_out.as_nanos() as f64]);
        let off = found.map(|found| [0, 1, 2].map(|of| found[of] / truth[of] - 1.0));
        if off.is_none_or(|off| off.iter().any(|off| off.abs() > 0.05)) {
            missed.push(format!("{seed}: {truth:?}, {rate_mbit_s} Mbit/s, {streams}: {off:?}"));
        }
    }
    assert!(missed.is_empty(), "{} of {BUCKETS}:\n{}", missed.len(), missed.join("\n"));
}
