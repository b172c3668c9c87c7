//! Simulated pairs of stores with known crossovers, a third of which do not follow the model L + size/B.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::crossover::ERROR;
use super::super::search::{PairOutcome, Search, Winner};

const LARGEST: u64 = 1_000_000_000;

/// The median time of a simulated store in seconds, by size in bytes.
#[derive(Clone, Copy)]
enum Store {
    Linear {
        latency_s: f64,
        bytes_per_s: f64,
    },
    /// Slower by a step up to a size, as with delayed acknowledgements.
    Step {
        latency_s: f64,
        bytes_per_s: f64,
        step_s: f64,
        until: f64,
    },
    /// Quicker up to a size, as with a cache of small objects.
    Cached {
        latency_s: f64,
        bytes_per_s: f64,
        cached_s: f64,
        until: f64,
    },
    /// The rate falls beyond a number of bytes, as with a burst.
    Capped {
        latency_s: f64,
        bytes_per_s: f64,
        burst: f64,
        capped: f64,
    },
}

impl Store {
    fn draw(random: &mut Xoshiro256PlusPlus, is_linear: bool) -> Self {
        let mut log = |low: f64, high: f64| (low.ln() + (high / low).ln() * random.random::<f64>()).exp();
        let (latency_s, bytes_per_s) = (log(0.005, 0.12), log(1e7, 2e8));
        let kind = log(1.0, 4.0);
        match () {
            () if is_linear => Self::Linear { latency_s, bytes_per_s },
            () if kind < 1.6 => Self::Step { latency_s, bytes_per_s, step_s: 0.04, until: 14_000.0 },
            () if kind < 2.5 => {
                Self::Cached { latency_s, bytes_per_s, cached_s: latency_s / 4.0, until: log(1e4, 1e6) }
            }
            () => Self::Capped { latency_s, bytes_per_s, burst: log(1e6, 1e8), capped: bytes_per_s / 4.0 },
        }
    }

    fn median_s(self, bytes: f64) -> f64 {
        match self {
            Self::Linear { latency_s, bytes_per_s } => latency_s + bytes / bytes_per_s,
            Self::Step { latency_s, bytes_per_s, step_s, until } => {
                latency_s + bytes / bytes_per_s + if bytes <= until { step_s } else { 0.0 }
            }
            Self::Cached { latency_s, bytes_per_s, cached_s, until } => {
                bytes / bytes_per_s + if bytes <= until { cached_s } else { latency_s }
            }
            Self::Capped { latency_s, bytes_per_s, burst, capped } => {
                latency_s + bytes.min(burst) / bytes_per_s + (bytes - burst).max(0.0) / capped
            }
        }
    }
}

/// Returns the sizes at which the first store stops or starts to have the smaller median, by a fine scan.
fn truth(pair: [Store; 2]) -> Vec<(u64, u64)> {
    let is_first = |bytes: f64| pair[0].median_s(bytes) < pair[1].median_s(bytes);
    let sizes: Vec<f64> = (0..=20_000).map(|step| (LARGEST as f64).powf(f64::from(step) / 20_000.0)).collect();
    let changes = sizes.windows(2).filter(|pair| is_first(pair[0]) != is_first(pair[1]));
    changes.map(|pair| (pair[0] as u64, pair[1].ceil() as u64)).collect()
}

/// Runs a search with times that vary around the medians, and returns each judged size with its winner.
fn search(pair: [Store; 2], random: &mut Xoshiro256PlusPlus) -> Vec<(u64, Option<Winner>)> {
    let noise = LogNormal::new(0.0, 0.25).unwrap();
    let mut search = Search::new(1, LARGEST, ERROR).unwrap();
    loop {
        let sizes = search.open_sizes();
        if sizes.is_empty() {
            break;
        }
        for bytes in sizes {
            let [first, second] = pair.map(|store| store.median_s(bytes as f64) * noise.sample(random));
            let winner = if first < second { Winner::First } else { Winner::Second };
            search.observe(bytes, PairOutcome::Faster(winner), [false; 2]);
        }
    }
    search.winners()
}

/// Returns whether the answer agrees with the medians. Each decided size must have the right winner. No true crossover
/// may be between two neighbouring sizes with the same winner.
fn is_right(pair: [Store; 2], winners: &[(u64, Option<Winner>)]) -> bool {
    let is_first = |bytes: u64| pair[0].median_s(bytes as f64) < pair[1].median_s(bytes as f64);
    let are_right =
        winners.iter().all(|(bytes, winner)| winner.is_none_or(|winner| is_first(*bytes) == (winner == Winner::First)));
    let hides = |low: (u64, Option<Winner>), high: (u64, Option<Winner>)| {
        let is_inside = |(from, to): &(u64, u64)| low.0 <= *from && *to <= high.0;
        low.1.is_some() && low.1 == high.1 && truth(pair).iter().any(is_inside)
    };
    are_right && !winners.windows(2).any(|two| hides(two[0], two[1]))
}

/// The intervals of at least 95 of 100 pairs contain the true crossovers, and those between the decided sizes are found
/// in nearly all pairs.
#[test]
fn intervals_contain_the_true_crossovers() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(35);
    let (mut right, mut with_crossover, mut found) = (0, 0, 0);
    for number in 0..100 {
        let pair = [0, 1].map(|_| Store::draw(&mut random, number % 3 != 0));
        let winners = search(pair, &mut random);
        right += u32::from(is_right(pair, &winners));
        let decided: Vec<_> = winners.iter().filter(|(_, winner)| winner.is_some()).collect();
        let intervals: Vec<(u64, u64)> =
            decided.windows(2).filter(|two| two[0].1 != two[1].1).map(|two| (two[0].0, two[1].0)).collect();
        if let [(low, high)] = truth(pair)[..] {
            with_crossover += 1;
            found += u32::from(intervals.len() == 1 && intervals[0].0 <= high && low <= intervals[0].1);
        }
    }
    assert!(right >= 95, "{right} of 100 answers are right");
    // Nothing is claimed if the medians are close over a wide range, or if they cross at an end of the range.
    assert!(found * 10 >= with_crossover * 8, "{found} of {with_crossover} single crossovers were found");
}

/// One store under two addresses is called faster in at most the permitted share of runs.
#[test]
fn a_store_is_not_faster_than_itself() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let store = Store::Linear { latency_s: 0.02, bytes_per_s: 1e8 };
    let runs = 400;
    let called =
        (0..runs).filter(|_| search([store; 2], &mut random).iter().any(|(_, winner)| winner.is_some())).count();
    assert!(called as f64 <= ERROR * f64::from(runs), "{called} of {runs}");
}
