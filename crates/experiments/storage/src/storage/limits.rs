//! Names the limit that requests have reached, and the knee of the throughput over the number of streams.

use std::collections::BTreeMap;

use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::finding::{Remark, ScaledThroughput, StoreLimit};
use ascertain_stats::{median_sorted, quantile_sorted};

use super::attempt::Outcome;
use super::workload::{Load, Shape};

/// Number of requests before the shape of their distribution is judged.
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

/// The requests of one arm so far.
#[derive(Default)]
pub struct LoadHistory {
    /// Bytes per second of each complete request.
    rates: Vec<f64>,
    refused: BTreeMap<u16, u64>,
    cpu_shares: Vec<f64>,
    totals: Vec<f64>,
}

impl LoadHistory {
    /// Adds a trial.
    pub fn add(&mut self, load: &Load, shape: &Shape) {
        let mut bytes = 0;
        for (answer, _) in &load.answers {
            match &answer.outcome {
                Outcome::Complete if answer.bytes >= LEAST_BYTES => {
                    self.rates.push(answer.bytes as f64 / answer.time.as_secs_f64());
                }
                Outcome::Refused(status) => *self.refused.entry(*status).or_default() += 1,
                _ => {}
            }
            bytes += if answer.outcome == Outcome::Complete { answer.bytes } else { 0 };
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
        let refusals =
            self.refused.iter().map(|(status, count)| StoreLimit::Refusals { status: *status, count: *count });
        let mut limits: Vec<StoreLimit> = refusals.collect();
        let cpu = median(&self.cpu_shares).filter(|share| *share >= USED_UP);
        limits.extend(cpu.map(|share| StoreLimit::ClientCpu { share }));
        let share = self.total().zip(line_bytes_per_s).map(|(total, line)| total / line);
        limits.extend(share.filter(|share| *share >= USED_UP).map(|share| StoreLimit::Line { share }));
        limits.extend(flat_tail(&self.rates).map(|bytes_per_s| StoreLimit::OneConnection { bytes_per_s }));
        limits
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

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_sorted(&sorted)
}

/// Returns the levels of an arm that must be equal if its throughput is compared with that of other numbers of streams.
pub fn alike(arm: &Arm) -> (String, Point) {
    (arm.variant.clone(), arm.point.only(|factor, _| !["concurrency", "requests"].contains(&&**factor)))
}

/// Describes how the throughput grows with the number of streams. `totals` has the median throughput of each number of
/// streams. `None` for fewer than two numbers.
pub fn scaling(totals: &BTreeMap<u64, f64>) -> Option<Remark> {
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
    Some(Remark::Scaling { levels: totals.iter().map(level).collect(), knee, is_flat })
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

    /// The figures of the source: reads of 1, 5, 10 and 20 objects from Google.
    #[test]
    fn the_knee_is_where_more_streams_stop_helping() {
        let totals = [(1, 113e6), (5, 480e6), (10, 641e6), (20, 845e6)].into_iter().collect();
        let Some(Remark::Scaling { levels, knee, is_flat }) = scaling(&totals) else { panic!("levels") };
        assert_eq!((knee, is_flat), (20, false));
        assert!((levels[3].share_of_linear - 0.37).abs() < 0.005, "{levels:?}");
        let totals = [(1, 1e8), (2, 2e8), (4, 2.1e8), (8, 2.1e8)].into_iter().collect();
        assert!(matches!(scaling(&totals), Some(Remark::Scaling { knee: 2, is_flat: true, .. })));
        assert!(scaling(&[(1, 1e8)].into_iter().collect()).is_none());
    }
}
