//! A token bucket, as what arrives through it shows it.

use std::time::Duration;

/// What arrived, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// What it is cut into, from the beginning.
    pub interval: Duration,
    /// What arrived in each.
    pub bytes: Vec<u64>,
    /// So many of them are left out where a rate is asked for: connections had not found theirs.
    pub left_out: usize,
}

impl Curve {
    /// Bytes a second, by interval, behind those that are left out.
    #[must_use]
    pub fn rates(&self) -> Vec<f64> {
        let interval_s = self.interval.as_secs_f64();
        self.bytes.iter().skip(self.left_out).map(|bytes| *bytes as f64 / interval_s).collect()
    }
}

/// A bucket that was full at the beginning, and ran out: credit for bursts, as machines have it whose network is fast
/// until it is used up. What [`model::TokenBucket`](crate::model::TokenBucket) does, found again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// What it held.
    pub burst_bytes: f64,
    /// What it is filled with, which is what goes through when it has run out.
    pub bytes_per_s: f64,
    /// When it ran out, since the beginning.
    pub ran_out: Duration,
}

/// Where a rate falls is looked for in as many blocks, if there are intervals for them: what is lost when a bucket runs
/// out holds back what comes behind it, for some intervals.
const BLOCKS: usize = 25;
/// Fewer blocks are no level.
const FEWEST: usize = 5;
/// The share of pairs of a block before and one after in which the first must be larger.
const APART: f64 = 0.9;
/// A fall by less of the rate may be the network's own.
const LEAST: f64 = 0.2;
/// What two levels leave unexplained is at most that share of what a line leaves, which drifts.
const OF_A_LINE: f64 = 0.6;
/// What goes through a bucket that has run out is steady: at least that share of its parts is as near as that to their
/// level. Where others came who stay, one's own part of a link varies by more. The rest may be what a loss, or a
/// machine that looked too late, held back.
const MOST: f64 = 0.6;
const STEADY: f64 = 0.05;
/// So many parts are compared, or a few more; fewer where they would hold less than some thirty packets: one more or
/// less is to be no difference.
const PARTS: usize = 20;
const FEWEST_BYTES: f64 = 45_000.0;

impl Bucket {
    /// The bucket behind a curve, where its rate falls once and stays there.
    ///
    /// It says of the bytes that arrived what the bucket was: where that counts headers, too, it is so much larger.
    /// That a fair network, with others' traffic, is said to have one is rare: see the tests of the experiment
    /// `link-throughput` of Ascertain.
    #[must_use]
    pub fn of(curve: &Curve) -> Option<Self> {
        let rates = curve.rates();
        let each = (rates.len() / BLOCKS).max(1);
        let blocks: Vec<f64> = rates.chunks_exact(each).map(mean).collect();
        let at = fall(&blocks)?;
        // Whichever block it was in had a part of either rate.
        let (before, after) = (curve.left_out..curve.left_out + at * each, curve.left_out + (at + 1) * each..);
        let [fast, slow] = [&curve.bytes[before], &curve.bytes[after]].map(parts);
        let [before, after] = [&fast, &slow].map(|parts| level(parts));
        let is_steady = |part: &&f64| (**part - after).abs() <= STEADY * after;
        let steady = slow.iter().filter(is_steady).count();
        if before - after < LEAST * before || (steady as f64) < MOST * slow.len() as f64 {
            return None;
        }
        // From a block before the moment to the middle of what follows: when all that was held back has arrived.
        let from = curve.left_out + (at - 1) * each;
        let around = &curve.bytes[from..usize::midpoint(from + each, curve.bytes.len())];
        let excess = around.iter().sum::<u64>() as f64 - after * around.len() as f64;
        let fast_intervals = (excess / (before - after)).clamp(0.0, around.len() as f64);
        // What is filled in while it is full is lost: until connections are faster than that.
        let spent = |spent: f64, bytes: &u64| (spent + *bytes as f64 - after).max(0.0);
        let burst_bytes = curve.bytes[..from].iter().fold(0.0, spent) + fast_intervals * (before - after);
        let interval_s = curve.interval.as_secs_f64();
        let ran_out = Duration::try_from_secs_f64((from as f64 + fast_intervals) * interval_s).ok()?;
        Some(Self { burst_bytes, bytes_per_s: after / interval_s, ran_out })
    }
}

/// The first value of a lower level, or the one in which it is reached: where two means leave least.
fn fall(values: &[f64]) -> Option<usize> {
    let (mean, all) = (mean(values), around_mean(values));
    let mut sum = 0.0;
    let sums: Vec<f64> = values.iter().map(|value| (sum, sum += value - mean).0).collect();
    // What lies before a split is as much above the mean of all as the rest is below.
    let left = |at: usize| {
        let parts = 1.0 / at as f64 + 1.0 / (values.len() - at) as f64;
        (at, (all - sums[at] * sums[at] * parts).max(0.0))
    };
    let splits = FEWEST..(values.len() + 1).saturating_sub(FEWEST);
    let (at, left) = splits.map(left).min_by(|one, other| one.1.total_cmp(&other.1))?;
    let (high, low) = values.split_at(at);
    let smaller: usize = high.iter().map(|high| low.iter().filter(|low| *low < high).count()).sum();
    let is_apart = smaller as f64 >= APART * (high.len() * low.len()) as f64;
    (is_apart && left <= OF_A_LINE * around_line(values)).then_some(at)
}

/// What arrived in an interval, by parts that are alike in length.
fn parts(bytes: &[u64]) -> Vec<f64> {
    let bytes: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64).collect();
    let intervals = (FEWEST_BYTES / mean(&bytes).max(1.0)).ceil().min(bytes.len() as f64 / 4.0) as usize;
    bytes.chunks_exact(intervals.max(bytes.len() / PARTS).max(1)).map(mean).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The squares of what the mean leaves.
fn around_mean(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The squares of what the best line leaves.
fn around_line(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let (mean_at, mean) = ((count - 1.0) / 2.0, mean(values));
    let centred = || values.iter().enumerate().map(|(at, value)| (at as f64 - mean_at, value - mean));
    let slope = centred().map(|(at, value)| at * value).sum::<f64>() / centred().map(|(at, _)| at * at).sum::<f64>();
    centred().map(|(at, value)| (value - slope * at).powi(2)).sum()
}

/// The mean of the middle half.
fn level(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    mean(&sorted[sorted.len() / 4..sorted.len() - sorted.len() / 4])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Conditions, Fate, Flow, Line, TokenBucket};

    fn curve(bytes: Vec<u64>) -> Curve {
        Curve { interval: Duration::from_millis(100), bytes, left_out: 0 }
    }

    /// 10 MB/s until 1.25 s, and 2 from then on.
    #[test]
    fn a_bucket_is_found_between_intervals() {
        let mut bytes = vec![1_000_000; 12];
        bytes.push(600_000);
        bytes.extend([200_000; 15]);
        let bucket = Bucket::of(&curve(bytes.clone())).unwrap();
        assert_eq!((bucket.burst_bytes.round(), bucket.bytes_per_s), (10_000_000.0, 2_000_000.0));
        assert_eq!(bucket.ran_out.as_micros(), 1_250_000);
        // What is left out is spent too, but for what is lost while the bucket is full.
        let late = Bucket::of(&Curve { left_out: 5, ..curve([&[0, 0, 100_000][..], &bytes].concat()) }).unwrap();
        assert_eq!((late.burst_bytes.round(), late.ran_out.as_micros()), (10_000_000.0, 1_550_000));
    }

    /// As it was seen on a link of 50 Mbit/s whose bucket of 25 Mbit/s ran out: segments in intervals of 20 ms.
    #[test]
    fn what_is_held_back_for_a_while_does_not_hide_it() {
        let after = [
            48, 27, 0, 51, 68, 8, 5, 7, 84, 24, 12, 28, 0, 0, 179, 0, 174, 41, 42, 40, 39, 45, 43, 42, 41, 42, 41, 42,
            42, 42, 41, 42, 35, 48, 42, 42, 38, 42, 45, 38, 45, 42, 41, 42, 38, 45, 39, 45, 41, 39, 44, 42, 42, 42,
        ];
        let segments = [[83; 81].as_slice(), &after].concat();
        let bytes = segments.iter().map(|segments| segments * 1_500).collect();
        let bucket = Bucket::of(&Curve { interval: Duration::from_millis(20), bytes, left_out: 10 }).unwrap();
        assert!((bucket.bytes_per_s / 3_125_000.0 - 1.0).abs() < 0.02, "{bucket:?}");
        assert!((bucket.ran_out.as_secs_f64() / 1.62 - 1.0).abs() < 0.03, "{bucket:?}");
        assert!((bucket.burst_bytes / 5_000_000.0 - 1.0).abs() < 0.03, "{bucket:?}");
    }

    #[test]
    fn what_is_no_bucket_is_none() {
        let of = |bytes: Vec<u64>| Bucket::of(&curve(bytes));
        let steps = |levels: &[u64]| levels.iter().flat_map(|level| [*level; 10]).collect::<Vec<_>>();
        for bytes in [
            vec![],
            vec![7],
            vec![0; 30],
            vec![7; 30],
            // Too short to be a level, and too small to be a change.
            vec![9, 9, 9, 9, 1, 1, 1, 1, 1, 1],
            steps(&[100, 85]),
            // It rises; it falls and comes back; it drifts.
            steps(&[1, 9]),
            steps(&[9, 1, 9]),
            (0..40).rev().collect(),
            vec![u64::MAX >> 12; 12],
        ] {
            assert_eq!(of(bytes.clone()), None, "{bytes:?}");
        }
        assert!(of(steps(&[9, 9, 1])).is_some());
    }

    /// What arrives by a line with a bucket, of a source that is always a little faster than the line.
    fn arrives(bucket: TokenBucket, rate_bits_per_s: u64, interval_ns: u64, bytes: usize, delay_ns: u64) -> Vec<u64> {
        let conditions = Conditions {
            rate_bits_per_s: Some(rate_bits_per_s),
            delay: Duration::from_nanos(delay_ns),
            queue_bytes: 20 * bytes,
            bucket: Some(bucket),
            ..Conditions::default()
        };
        let mut line = Line::new(&conditions).unwrap();
        let flow = Flow { source: ([198, 18, 0, 1], 1).into(), destination: ([198, 18, 1, 1], 2).into() };
        let mut arrived = vec![0; 60];
        let each_ns = bytes as u64 * 7_500_000_000 / rate_bits_per_s;
        for number in 0..60 * interval_ns / each_ns {
            if let Fate::Due(due_ns) = line.offer(number * each_ns, bytes, flow)
                && let Some(arrived) = arrived.get_mut((due_ns / interval_ns) as usize)
            {
                *arrived += bytes as u64;
            }
        }
        arrived
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]

        #[test]
        fn a_bucket_of_the_model_is_found_within_5_percent(
            rate_mbit_s in 10_u64..100,
            share in 0.05_f64..0.7,
            ran_out in 12.0_f64..45.0,
            interval_ms in 20_u64..60,
            delay_ms in 0_u64..10,
            segment_bytes in 500_usize..1_500,
        ) {
            let rate_bits_per_s = rate_mbit_s * 1_000_000;
            let refill = (rate_bits_per_s as f64 * share) as u64;
            let ran_out_s = ran_out * interval_ms as f64 * 1e-3;
            let burst_bytes = ((rate_bits_per_s - refill) as f64 / 8.0 * ran_out_s) as u64;
            let bucket = TokenBucket { burst_bytes, rate_bits_per_s: refill };
            let interval = Duration::from_millis(interval_ms);
            let interval_ns = interval_ms * 1_000_000;
            // An interval that holds few segments says little.
            prop_assume!(refill * interval_ms / 8_000 > 10 * segment_bytes as u64);
            let bytes = arrives(bucket, rate_bits_per_s, interval_ns, segment_bytes, delay_ms * 1_000_000);
            let found = Bucket::of(&Curve { interval, bytes, left_out: 1 }).unwrap();
            // As it arrives.
            let ran_out_s = ran_out_s + delay_ms as f64 * 1e-3;
            for (found, is) in [
                (found.burst_bytes, burst_bytes as f64),
                (found.bytes_per_s, refill as f64 / 8.0),
                (found.ran_out.as_secs_f64(), ran_out_s),
            ] {
                prop_assert!((found / is - 1.0).abs() < 0.05, "{} instead of {}", found, is);
            }
        }
    }
}
