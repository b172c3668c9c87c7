//! Searches the crossovers of two stores, by pairs of requests for the same size.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use ascertain_engine::experiment::{Sample, Samples, Status, TargetError};
use ascertain_engine::finding::{LatencyFit, LineFill, Remark, SizeWinner};
use ascertain_stats::median_sorted;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::runtime::Runtime;

use super::attempt::{Answer, Outcome};
use super::fit::{Fit, fit};
use super::search::{PRECISION, PairOutcome, Search, SizeRange, Winner};
use super::workload::Workload;
use super::{FIRST_TIME, SECOND_TIME, TIME};

/// The highest probability that the answer about a pair of stores is wrong.
pub const ERROR: f64 = 0.05;
/// Sizes of requests in bytes. For each of these sizes, the answer states how many requests in flight reach the goal.
const FILL_BYTES: [f64; 3] = [1e6, 8e6, 64e6];
/// The largest number of requests in flight that is considered for the cheapest ranged read. The source used 1,000
/// CPUs.
const MOST_IN_FLIGHT: u64 = 1_000;
/// Duration of one trial. A trial measures pairs until this time has passed.
const TRIAL: Duration = Duration::from_millis(500);

/// The search for the crossovers of two stores.
pub struct Crossover {
    search: Search,
    names: [String; 2],
    /// Sizes to measure before the next call of [`Search::open_sizes`].
    queue: Vec<u64>,
    /// The workloads of both stores for each size, in the level's bytes.
    workloads: BTreeMap<u64, [Workload; 2]>,
    /// The times of complete requests, in nanoseconds, by size.
    times_ns: BTreeMap<u64, [Vec<f64>; 2]>,
    is_same_store: bool,
    /// The rate that many requests together should reach, in bytes per second.
    goal_bytes_per_s: Option<f64>,
    /// The factor by which sizes and times are reduced.
    scale: u64,
}

impl Crossover {
    pub fn new(
        names: [String; 2],
        [smallest, largest]: [u64; 2],
        is_same_store: bool,
        goal_bytes_per_s: Option<f64>,
        scale: u64,
    ) -> Result<Self, TargetError> {
        let search = Search::new(smallest, largest, ERROR).map_err(|error| TargetError::Failed(error.to_string()))?;
        Ok(Self {
            search,
            names,
            queue: Vec::new(),
            workloads: BTreeMap::new(),
            times_ns: BTreeMap::new(),
            is_same_store,
            goal_bytes_per_s,
            scale,
        })
    }

    /// Measures pairs for about half a second; the order within each pair is random. Does nothing if the search is
    /// over. `make` creates the workload of a store (0 or 1) for a size.
    pub fn measure(
        &mut self,
        runtime: &Runtime,
        seed: u64,
        make: impl Fn(usize, u64) -> Result<Workload, TargetError>,
        out: &mut Samples,
    ) -> Result<(), TargetError> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let start = Instant::now();
        while start.elapsed() < TRIAL {
            if self.queue.is_empty() {
                self.queue = self.search.open_sizes();
                self.queue.shuffle(&mut random);
            }
            let Some(bytes) = self.queue.pop() else { break };
            if let Entry::Vacant(free) = self.workloads.entry(bytes) {
                let mut pair = [make(0, bytes)?, make(1, bytes)?];
                for workload in &mut pair {
                    runtime.block_on(workload.prepare())?;
                }
                // Only a pair whose objects exist can be measured.
                free.insert(pair);
            }
            self.measure_pair(runtime, bytes, random.random(), out)?;
        }
        Ok(())
    }

    fn measure_pair(
        &mut self,
        runtime: &Runtime,
        bytes: u64,
        swaps: bool,
        out: &mut Samples,
    ) -> Result<(), TargetError> {
        let Some(pair) = self.workloads.get_mut(&bytes) else { return Ok(()) };
        let mut times = [None; 2];
        for store in if swaps { [1, 0] } else { [0, 1] } {
            let load = runtime.block_on(pair[store].run())?;
            let Some((answer, _)) = load.answers.first() else { continue };
            let time = PairTime::new(answer);
            times[store] = Some(time);
            if !time.is_censored {
                self.times_ns.entry(bytes).or_default()[store].push(time.ns);
            }
            let status = if time.is_censored { Status::Censored } else { Status::Ok };
            let metric = [FIRST_TIME, SECOND_TIME][store];
            out.push_with(TIME, time.ns, status);
            out.push_sample(Sample {
                metric,
                key: format!("{bytes:>10}").into(),
                offset_ns: 0,
                value: time.ns,
                status,
            });
        }
        let [Some(first), Some(second)] = times else { return Ok(()) };
        self.search.observe(bytes, outcome(first, second), [first.is_censored, second.is_censored]);
        Ok(())
    }

    /// Returns the answer so far.
    pub fn remark(&self) -> Remark {
        let winner = |range: &SizeRange| SizeWinner {
            from_bytes: range.from_bytes,
            to_bytes: range.to_bytes,
            winner: range.winner.map(|winner| self.names[usize::from(winner == Winner::Second)].clone()),
        };
        let fits = [0, 1].map(|store| self.fit(store));
        let fit_crossover_bytes = match &fits {
            [Some(first), Some(second)] => first.crossover_bytes(second),
            _ => None,
        };
        let counts = self.search.counts();
        let refused = |store: usize| match counts.incomplete[store] {
            0 => None,
            count => Some((self.names[store].clone(), count, counts.pairs)),
        };
        Remark::Crossover {
            stores: self.names.clone().into(),
            ranges: self.search.ranges().iter().map(winner).collect(),
            pairs: counts.pairs,
            error: ERROR,
            fits: fits.iter().zip(&self.names).filter_map(|(fit, name)| Some(described(name, (*fit)?))).collect(),
            fit_crossover_bytes,
            fill: fits.iter().zip(&self.names).filter_map(|(fit, name)| self.fill(name, (*fit)?)).collect(),
            incomplete: [0, 1].into_iter().filter_map(refused).collect(),
            is_same_store: self.is_same_store,
            is_finished: self.search.is_finished(),
            pairs_left: if self.search.is_finished() { 0 } else { self.search.pairs_left() },
            precision: PRECISION,
        }
    }

    /// Returns the numbers of requests in flight that reach the goal, and the cheapest size of a ranged read that
    /// reaches it.
    fn fill(&self, store: &str, fit: Fit) -> Option<LineFill> {
        let line_bytes_per_s = self.goal_bytes_per_s?;
        let requests = |bytes: f64| (bytes, fit.requests_in_flight(bytes, line_bytes_per_s).ceil());
        Some(LineFill {
            store: store.into(),
            line_bytes_per_s,
            requests: FILL_BYTES.map(requests).into(),
            most_requests: MOST_IN_FLIGHT,
            cheapest_range_bytes: fit.cheapest_range_bytes(MOST_IN_FLIGHT, line_bytes_per_s),
        })
    }

    /// Fits the medians of a store's times by size, at full size.
    fn fit(&self, store: usize) -> Option<Fit> {
        let median = |(bytes, times_ns): (&u64, &[Vec<f64>; 2])| {
            let mut sorted = times_ns[store].clone();
            sorted.sort_by(f64::total_cmp);
            Some((*bytes as f64, median_sorted(&sorted)? * self.scale as f64))
        };
        fit(&self.times_ns.iter().filter_map(median).collect::<Vec<_>>())
    }
}

fn described(store: &str, fit: Fit) -> LatencyFit {
    let Fit { latency_ns, bytes_per_s, off, off_at_bytes } = fit;
    let bytes_per_s = Some(bytes_per_s).filter(|rate| rate.is_finite());
    LatencyFit { store: store.into(), latency_ns, bytes_per_s, off, off_at_bytes }
}

/// The time of one request of a pair. A censored time is a lower bound.
#[derive(Clone, Copy)]
struct PairTime {
    ns: f64,
    is_censored: bool,
}

impl PairTime {
    fn new(answer: &Answer) -> Self {
        Self { ns: answer.time.as_nanos() as f64, is_censored: answer.outcome != Outcome::Complete }
    }
}

/// Returns the winner of a pair, as far as it is certain.
fn outcome(first: PairTime, second: PairTime) -> PairOutcome {
    match (first.is_censored, second.is_censored) {
        (false, false) if first.ns == second.ns => PairOutcome::Tie,
        (false, _) if first.ns < second.ns => PairOutcome::Faster(Winner::First),
        (_, false) if second.ns < first.ns => PairOutcome::Faster(Winner::Second),
        _ => PairOutcome::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A refusal after 1 ms is no evidence against a request that takes 500 ms, but a timeout after 900 ms is.
    #[test]
    fn a_censored_time_never_wins() {
        let time = |ns, is_censored| PairTime { ns, is_censored };
        let of = |first, second| outcome(first, second);
        assert_eq!(of(time(1e6, true), time(5e8, false)), PairOutcome::Unclear);
        assert_eq!(of(time(9e8, true), time(5e8, false)), PairOutcome::Faster(Winner::Second));
        assert_eq!(of(time(1e6, false), time(2e6, true)), PairOutcome::Faster(Winner::First));
        assert_eq!(of(time(3e6, true), time(2e6, true)), PairOutcome::Unclear);
        assert_eq!(of(time(3e6, false), time(3e6, false)), PairOutcome::Tie);
    }
}
