//! Detects a token bucket on the network path, from the bytes that arrive per interval.

use std::time::Duration;

/// The bytes that arrived in each interval of a measurement, which show how the rate changed over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// Length of each interval.
    pub interval: Duration,
    /// Number of bytes that arrived in each interval, starting with the first interval.
    pub bytes: Vec<u64>,
    /// Number of intervals at the beginning that [`Curve::rates`] leaves out. In these intervals, the connections had
    /// not reached their full rate yet.
    pub left_out: usize,
}

impl Curve {
    /// Returns the rate of each interval, in bytes per second, without the intervals that are left out.
    pub fn rates(&self) -> Vec<f64> {
        let interval_s = self.interval.as_secs_f64();
        self.bytes.iter().skip(self.left_out).map(|bytes| *bytes as f64 / interval_s).collect()
    }
}

/// A token bucket that was full when a measurement began, and became empty during it. The network of some machines has
/// such a bucket, and is fast until the bucket is empty. [`model::TokenBucket`](crate::model::TokenBucket) simulates
/// the same kind of bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Capacity of the bucket, in bytes.
    pub burst_bytes: f64,
    /// Rate at which the bucket is refilled, in bytes per second. Traffic is limited to this rate once the bucket is
    /// empty.
    pub bytes_per_s: f64,
    /// Time from the beginning of the measurement until the bucket was empty.
    pub ran_out: Duration,
}

/// Approximate number of groups into which the intervals are divided. A fall of the rate is searched for between
/// groups, not between single intervals, because a short disturbance changes single intervals and could hide the fall.
/// For example, packets are lost when a bucket becomes empty, and this delays the data of some intervals.
const BLOCKS: usize = 25;
/// Minimum number of groups of intervals before a fall of the rate, and also after it.
const FEWEST: usize = 5;
/// Minimum share of pairs that confirm a fall of the rate. A pair is one group of intervals before the fall and one
/// after it. It confirms the fall if the earlier group has the higher rate.
const APART: f64 = 0.9;
/// Minimum size of a fall of the rate, as a share of the rate before it. A smaller fall may be the network's normal
/// variation.
const LEAST: f64 = 0.2;
/// Maximum ratio of two sums of squared deviations of the rates. The first sum is for two constant rates, one before
/// and one after the fall. The second sum is for a single straight line. If a rate drifts steadily, the line fits
/// better, so the ratio is too high.
const OF_A_LINE: f64 = 0.6;
/// Minimum share of steady sections among the sections after the fall (see [`parts`]). Traffic through an empty bucket
/// is steady, whereas traffic that shares a link with other traffic varies more. A few sections need not be steady,
/// because lost packets or a machine that reads too late may disturb them.
const MOST: f64 = 0.6;
/// Maximum deviation of a steady section from the rate after the fall, as a share of that rate.
const STEADY: f64 = 0.05;
/// Approximate number of sections into which [`parts`] divides the intervals after a fall. There are fewer if a section
/// would hold less than [`FEWEST_BYTES`].
const PARTS: usize = 20;
/// Minimum size of a section: about thirty packets, so that one packet more or less makes little difference.
const FEWEST_BYTES: f64 = 45_000.0;

impl Bucket {
    /// Finds the bucket behind a curve whose rate falls once and stays low; `None` if there is no such fall.
    ///
    /// The result is in bytes of received payload. If a bucket also counts the headers of packets, its real capacity
    /// and rate are larger by the share of these headers. False detections are rare in a network that shares its rate
    /// fairly with other traffic: see the tests of the experiment `link-throughput` of Ascertain.
    pub fn find(curve: &Curve) -> Option<Self> {
        let rates = curve.rates();
        let each = (rates.len() / BLOCKS).max(1);
        let blocks: Vec<f64> = rates.chunks_exact(each).map(mean).collect();
        let at = fall(&blocks)?;
        // The group in which the rate fell has intervals with the high rate and with the low rate, so it is left out.
        let (before, after) = (curve.left_out..curve.left_out + at * each, curve.left_out + (at + 1) * each..);
        let [fast, slow] = [&curve.bytes[before], &curve.bytes[after]].map(parts);
        let [before, after] = [&fast, &slow].map(|parts| level(parts));
        let is_steady = |part: &&f64| (**part - after).abs() <= STEADY * after;
        let steady = slow.iter().filter(is_steady).count();
        if before - after < LEAST * before || (steady as f64) < MOST * slow.len() as f64 {
            return None;
        }
        // These intervals contain the moment of the fall. They begin one group before the split `at`, and end halfway
        // between the split and the last interval. All data that was delayed by lost packets has arrived by this end.
        let from = curve.left_out + (at - 1) * each;
        let around = &curve.bytes[from..usize::midpoint(from + each, curve.bytes.len())];
        let excess = around.iter().sum::<u64>() as f64 - after * around.len() as f64;
        let fast_intervals = (excess / (before - after)).clamp(0.0, around.len() as f64);
        // Adds the bytes that the connections took out of the bucket, and subtracts the bucket's refill per interval.
        // The sum never falls below 0, because a full bucket loses new tokens.
        let spent = |spent: f64, bytes: &u64| (spent + *bytes as f64 - after).max(0.0);
        let burst_bytes = curve.bytes[..from].iter().fold(0.0, spent) + fast_intervals * (before - after);
        let interval_s = curve.interval.as_secs_f64();
        let ran_out = Duration::try_from_secs_f64((from as f64 + fast_intervals) * interval_s).ok()?;
        Some(Self { burst_bytes, bytes_per_s: after / interval_s, ran_out })
    }
}

/// Finds the fall of the rate; `values` has the rate of each group of intervals. The fall is at the split whose two
/// sides deviate least from their own mean rates (least squares). Returns the index of the first group after the split;
/// the rate fell in this group or just before it. `None` if the rates do not show a fall.
fn fall(values: &[f64]) -> Option<usize> {
    let (mean, all) = (mean(values), around_mean(values));
    let mut sum = 0.0;
    let sums: Vec<f64> = values.iter().map(|value| (sum, sum += value - mean).0).collect();
    // The deviations from the overall mean add up to 0. So the sum before a split and the sum after it differ only in
    // their sign, and one of them suffices.
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

/// Divides the intervals into sections of equal length, and returns the mean number of bytes per interval of each
/// section. `bytes` has the number of bytes of each interval.
fn parts(bytes: &[u64]) -> Vec<f64> {
    let bytes: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64).collect();
    let intervals = (FEWEST_BYTES / mean(&bytes).max(1.0)).ceil().min(bytes.len() as f64 / 4.0) as usize;
    bytes.chunks_exact(intervals.max(bytes.len() / PARTS).max(1)).map(mean).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sum of the squared deviations of the values from their mean.
fn around_mean(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Returns the sum of the squared deviations of the values from the straight line that fits best.
fn around_line(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let (mean_at, mean) = ((count - 1.0) / 2.0, mean(values));
    let centred = || values.iter().enumerate().map(|(at, value)| (at as f64 - mean_at, value - mean));
    let slope = centred().map(|(at, value)| at * value).sum::<f64>() / centred().map(|(at, _)| at * at).sum::<f64>();
    centred().map(|(at, value)| (value - slope * at).powi(2)).sum()
}

/// Returns the mean of the middle half of the values, which extreme values hardly change.
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

    /// The rate is 10 MB/s until 1.25 s, and 2 MB/s after that.
    #[test]
    fn a_bucket_is_found_between_intervals() {
        let mut bytes = vec![1_000_000; 12];
        bytes.push(600_000);
        bytes.extend([200_000; 15]);
        let bucket = Bucket::find(&curve(bytes.clone())).unwrap();
        assert_eq!((bucket.burst_bytes.round(), bucket.bytes_per_s), (10_000_000.0, 2_000_000.0));
        assert_eq!(bucket.ran_out.as_micros(), 1_250_000);
        // The intervals that are left out take tokens out of the bucket, too, except for the first three. Their traffic
        // stays below the refill, so the bucket remains full.
        let late = Bucket::find(&Curve { left_out: 5, ..curve([&[0, 0, 100_000][..], &bytes].concat()) }).unwrap();
        assert_eq!((late.burst_bytes.round(), late.ran_out.as_micros()), (10_000_000.0, 1_550_000));
    }

    /// The bytes per interval of 20 ms, as observed on a link of 50 Mbit/s whose bucket of 25 Mbit/s became empty.
    #[test]
    fn what_is_held_back_for_a_while_does_not_hide_it() {
        let after = [
            48, 27, 0, 51, 68, 8, 5, 7, 84, 24, 12, 28, 0, 0, 179, 0, 174, 41, 42, 40, 39, 45, 43, 42, 41, 42, 41, 42,
            42, 42, 41, 42, 35, 48, 42, 42, 38, 42, 45, 38, 45, 42, 41, 42, 38, 45, 39, 45, 41, 39, 44, 42, 42, 42,
        ];
        let segments = [[83; 81].as_slice(), &after].concat();
        let bytes = segments.iter().map(|segments| segments * 1_500).collect();
        let bucket = Bucket::find(&Curve { interval: Duration::from_millis(20), bytes, left_out: 10 }).unwrap();
        assert!((bucket.bytes_per_s / 3_125_000.0 - 1.0).abs() < 0.02, "{bucket:?}");
        assert!((bucket.ran_out.as_secs_f64() / 1.62 - 1.0).abs() < 0.03, "{bucket:?}");
        assert!((bucket.burst_bytes / 5_000_000.0 - 1.0).abs() < 0.03, "{bucket:?}");
    }

    #[test]
    fn what_is_no_bucket_is_none() {
        let find = |bytes: Vec<u64>| Bucket::find(&curve(bytes));
        let steps = |levels: &[u64]| levels.iter().flat_map(|level| [*level; 10]).collect::<Vec<_>>();
        for bytes in [
            vec![],
            vec![7],
            vec![0; 30],
            vec![7; 30],
            // The high rate of the first curve is too short, and the fall of the second is too small.
            vec![9, 9, 9, 9, 1, 1, 1, 1, 1, 1],
            steps(&[100, 85]),
            // A rate that rises, one that falls and rises again, and one that drifts.
            steps(&[1, 9]),
            steps(&[9, 1, 9]),
            (0..40).rev().collect(),
            vec![u64::MAX >> 12; 12],
        ] {
            assert_eq!(find(bytes.clone()), None, "{bytes:?}");
        }
        assert!(find(steps(&[9, 9, 1])).is_some());
    }

    /// Returns the bytes that arrive over a line with a bucket, if the source is always slightly faster than the line.
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
            // Intervals with few segments give inaccurate rates.
            prop_assume!(refill * interval_ms / 8_000 > 10 * segment_bytes as u64);
            let bytes = arrives(bucket, rate_bits_per_s, interval_ns, segment_bytes, delay_ms * 1_000_000);
            let found = Bucket::find(&Curve { interval, bytes, left_out: 1 }).unwrap();
            // The curve has the times of arrival, which are later by the delay.
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
