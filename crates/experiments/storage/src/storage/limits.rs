//! Names the limit that requests have reached, and the knee of the throughput over the number of streams.

use std::collections::BTreeMap;

use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::finding::{ReachedRate, Remark, ScaledThroughput, StoreLimit};
use ascertain_stats::{median_sorted, quantile_sorted};

use super::attempt::Outcome;
use super::fit::fit;
use super::streams::Load;
use super::workload::Shape;

/// Smallest number of requests for which the shape of their distribution is judged.
const LEAST_REQUESTS: usize = 50;
/// The right tail is flat if the quickest fifth of the requests differs by less than this share.
const FLAT: f64 = 0.03;
/// The rates of the slower half must differ by more than this share. Otherwise all requests are alike, and no tail
/// stands out.
const NOT_FLAT: f64 = 0.06;
/// Size in bytes below which the rate of a request does not show a limit on the rate.
const LEAST_BYTES: u64 = 100_000;
/// A resource counts as used up if at least this share of it is used.
const USED_UP: f64 = 0.9;
/// The knee is the smallest number of streams with this share of the best throughput.
const KNEE: f64 = 0.9;

/// The codes with which stores limit the rate of requests: those of S3, of other stores with its interface, and of
/// Azure.
const LIMIT_CODES: [&str; 6] =
    ["SlowDown", "SlowDownRead", "SlowDownWrite", "RequestLimitExceeded", "TooManyRequests", "ServerBusy"];

/// The requests of one arm so far.
#[derive(Default)]
pub struct LoadHistory {
    /// Bytes per second of each complete request.
    rates: Vec<f64>,
    /// Times of the complete requests in nanoseconds.
    times_ns: Vec<f64>,
    /// Number of refusals that mean a limit, by status and code.
    refused: BTreeMap<(u16, Option<String>), u64>,
    cpu_shares: Vec<f64>,
    totals: Vec<f64>,
}

impl LoadHistory {
    /// Adds a trial.
    pub fn add(&mut self, load: &Load, shape: &Shape) {
        let mut bytes = 0;
        for (answer, _) in &load.answers {
            match &answer.outcome {
                Outcome::Complete => {
                    bytes += answer.bytes;
                    self.times_ns.push(answer.time.as_nanos() as f64);
                    if answer.bytes >= LEAST_BYTES {
                        self.rates.push(answer.bytes as f64 / answer.time.as_secs_f64());
                    }
                }
                Outcome::Refused { status, code } if is_limit(*status, code.as_deref()) => {
                    *self.refused.entry((*status, code.clone())).or_default() += 1;
                }
                _ => {}
            }
        }
        let took_s = load.took.as_secs_f64().max(1e-9);
        self.totals.push(bytes as f64 / took_s);
        if shape.concurrency > 1 || shape.requests > 1 {
            self.cpu_shares.push(load.cpu_ns as f64 * 1e-9 / took_s);
        }
    }

    /// Returns a remark with the limits that were reached so far; `None` if there are none.
    pub fn remark(&self, line_bytes_per_s: Option<f64>) -> Option<Remark> {
        let limits = self.limits(line_bytes_per_s);
        (!limits.is_empty()).then_some(Remark::Limits { limits })
    }

    /// Returns the median of the throughput of all streams together.
    pub fn total(&self) -> Option<f64> {
        median(&self.totals)
    }

    fn limits(&self, line_bytes_per_s: Option<f64>) -> Vec<StoreLimit> {
        let refusal = |((status, code), count): (&(u16, Option<String>), &u64)| StoreLimit::Refusals {
            status: *status,
            code: code.clone(),
            count: *count,
        };
        let mut limits: Vec<StoreLimit> = self.refused.iter().map(refusal).collect();
        let cpu = median(&self.cpu_shares).filter(|share| *share >= USED_UP);
        limits.extend(cpu.map(|share| StoreLimit::ClientCpu { share }));
        let share = self.total().zip(line_bytes_per_s).map(|(total, line)| total / line);
        limits.extend(share.filter(|share| *share >= USED_UP).map(|share| StoreLimit::Line { share }));
        limits.extend(flat_tail(&self.rates).map(|bytes_per_s| StoreLimit::OneConnection { bytes_per_s }));
        limits
    }
}

/// Returns whether a refusal means that too many requests were sent. A store also refuses requests for other reasons.
fn is_limit(status: u16, code: Option<&str>) -> bool {
    match code {
        Some(code) => LIMIT_CODES.contains(&code) || status == 429,
        None => matches!(status, 429 | 503),
    }
}

/// Returns the rate of a flat right tail, which a limit on one connection causes: the quickest requests have nearly the
/// same rate, although the others differ.
fn flat_tail(rates: &[f64]) -> Option<f64> {
    if rates.len() < LEAST_REQUESTS {
        return None;
    }
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |q| quantile_sorted(&sorted, q).unwrap_or(f64::NAN);
    let (low, middle, high, top) = (at(0.1), at(0.5), at(0.8), at(0.99));
    (top / high - 1.0 < FLAT && middle / low - 1.0 > NOT_FLAT).then_some(top)
}

/// Returns the median of values; `None` if there are none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_sorted(&sorted)
}

/// The measurements of arms that differ only in the size and the number of streams.
#[derive(Default)]
pub struct StreamHistory {
    /// The median throughput by size and number of streams.
    totals: BTreeMap<u64, BTreeMap<u64, f64>>,
    /// The median time of one request in nanoseconds, by size, if there is a single stream.
    times_ns: BTreeMap<u64, f64>,
}

impl StreamHistory {
    /// Replaces the measurement of an arm. The size comes from the arm's level, and times are at full size.
    pub fn add(&mut self, (bytes, streams, scale): (u64, u64, u64), history: &LoadHistory) {
        let total = history.total().map(|total| (streams, total));
        self.totals.entry(bytes).or_default().extend(total);
        let time_ns = median(&history.times_ns).filter(|_| streams == 1).map(|time_ns| (bytes, time_ns * scale as f64));
        self.times_ns.extend(time_ns);
    }

    /// Describes how the throughput of requests of one size grows with the number of streams, and compares it with the
    /// model. `None` for fewer than two numbers of streams.
    pub fn remark(&self, bytes: u64, line_bytes_per_s: Option<f64>) -> Option<Remark> {
        let totals = self.totals.get(&bytes)?;
        let medians: Vec<(f64, f64)> = self.times_ns.iter().map(|(bytes, time_ns)| (*bytes as f64, *time_ns)).collect();
        let time_ns = match fit(&medians) {
            Some(fit) => Some(fit.time_ns(bytes as f64)),
            // With a single size, the model is the time of one stream.
            None => self.times_ns.get(&bytes).copied(),
        };
        let best = totals.values().copied().fold(0.0, f64::max);
        let targets = [Some((KNEE * best, false)), line_bytes_per_s.map(|line| (KNEE * line, true))];
        let reached = targets.into_iter().flatten().filter_map(|(bytes_per_s, is_line)| {
            let measured = totals.iter().find(|(_, total)| **total >= bytes_per_s).map(|(streams, _)| *streams);
            let model = bytes_per_s * time_ns? * 1e-9 / bytes as f64;
            Some(ReachedRate { bytes_per_s, is_line, model, measured })
        });
        scaling(totals, reached.collect())
    }
}

/// Returns the levels of an arm that must be equal if its throughput is compared with that of other numbers of streams.
pub fn alike(arm: &Arm) -> (String, Point) {
    (arm.variant.clone(), arm.point.only(|factor, _| !["size", "concurrency", "requests"].contains(&&**factor)))
}

/// Describes how the throughput grows with the number of streams. `totals` has the median throughput of each number of
/// streams. `None` for fewer than two numbers.
fn scaling(totals: &BTreeMap<u64, f64>, reached: Vec<ReachedRate>) -> Option<Remark> {
    let best = totals.values().copied().fold(0.0, f64::max);
    let (first, rest) = totals.iter().next().map(|(streams, total)| (*total / *streams as f64, totals.len() - 1))?;
    if rest == 0 || best <= 0.0 {
        return None;
    }
    let knee = totals.iter().find(|(_, total)| **total >= KNEE * best).map(|(streams, _)| *streams)?;
    let level = |(streams, total): (&u64, &f64)| ScaledThroughput {
        streams: *streams,
        bytes_per_s: *total,
        share_of_linear: total / (first * *streams as f64),
    };
    let is_flat = totals.keys().next_back().is_some_and(|most| *most >= 2 * knee);
    Some(Remark::Scaling { levels: totals.iter().map(level).collect(), knee, is_flat, reached })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_on_one_connection_shows_as_a_flat_tail() {
        let spread = |index: i32| 5e7 + f64::from(index) * 5e5;
        let free: Vec<f64> = (0..100).map(spread).collect();
        let capped: Vec<f64> = free.iter().map(|rate| rate.min(8e7)).collect();
        assert_eq!((flat_tail(&free), flat_tail(&capped)), (None, Some(8e7)));
        assert_eq!(flat_tail(&[8e7; 100]), None, "all requests are alike");
        assert_eq!(flat_tail(&capped[..20]), None, "too few requests");
    }

    #[test]
    fn only_some_refusals_mean_a_limit() {
        for (status, code, expected) in [
            (429, None, true),
            (503, None, true),
            (503, Some("SlowDown"), true),
            (503, Some("ServiceUnavailable"), false),
            (500, Some("InternalError"), false),
            (500, None, false),
            (400, Some("RequestTimeout"), false),
        ] {
            assert_eq!(is_limit(status, code), expected, "{status} {code:?}");
        }
    }

    /// The figures of the source: reads of 1, 5, 10 and 20 objects from Google.
    #[test]
    fn the_knee_is_where_more_streams_stop_helping() {
        let totals = [(1, 113e6), (5, 480e6), (10, 641e6), (20, 845e6)].into_iter().collect();
        let Some(Remark::Scaling { levels, knee, is_flat, .. }) = scaling(&totals, Vec::new()) else {
            panic!("levels")
        };
        assert_eq!((knee, is_flat), (20, false));
        assert!((levels[3].share_of_linear - 0.37).abs() < 0.005, "{levels:?}");
        let totals = [(1, 1e8), (2, 2e8), (4, 2.1e8), (8, 2.1e8)].into_iter().collect();
        assert!(matches!(scaling(&totals, Vec::new()), Some(Remark::Scaling { knee: 2, is_flat: true, .. })));
        assert!(scaling(&[(1, 1e8)].into_iter().collect(), Vec::new()).is_none());
    }

    /// The model and the measurement are compared for 90 % of the best throughput and for 90 % of the line. A request
    /// of 1 MB takes 10 ms + 10 ms, so one stream reaches 50 MB/s, and the model needs 18 of them for 900 MB/s.
    #[test]
    fn the_model_is_compared_with_the_measurement() {
        let history =
            |total, time_ns| LoadHistory { totals: vec![total], times_ns: vec![time_ns], ..LoadHistory::default() };
        let mut streams = StreamHistory::default();
        streams.add((100_000, 1, 1), &history(9e6, 11e6));
        streams.add((1_000_000, 1, 1), &history(5e7, 20e6));
        streams.add((1_000_000, 16, 1), &history(6e8, 26e6));
        streams.add((1_000_000, 64, 1), &history(6.2e8, 1e8));
        let Some(Remark::Scaling { knee, reached, .. }) = streams.remark(1_000_000, Some(1e9)) else {
            panic!("levels")
        };
        let [best, line] = &reached[..] else { panic!("{reached:?}") };
        assert_eq!((knee, best.measured, best.is_line), (16, Some(16), false));
        assert!((best.model - 0.9 * 6.2e8 * 0.02 / 1e6).abs() < 1e-6, "{best:?}");
        assert_eq!((line.measured, line.is_line, line.bytes_per_s), (None, true, 9e8));
        assert!((line.model - 18.0).abs() < 1e-6, "{line:?}");
        assert!(streams.remark(100_000, None).is_none(), "a single number of streams");
    }
}
