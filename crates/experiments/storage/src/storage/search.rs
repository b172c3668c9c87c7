//! The search for the sizes at which the faster store changes. It judges single sizes by signs, and assumes no model of
//! the times.
//!
//! The search first measures the sizes of a grid, each [`GRID_STEP`] times the one before. Then it bisects between
//! neighbours with different winners. If the winner changes twice between two neighbours of the grid, neither crossover
//! is found.
//!
//! For each size, two tests run: "the first store is faster in more than half of the pairs", and the same for the second
//! store. A pair without a clear winner, such as one with a timeout, counts against both. The error is divided among the
//! sizes beforehand: half for the grid, half for at most [`REFINEMENTS`] sizes of the bisection. So all decisions
//! together are wrong with a probability of at most the error, whenever the search is stopped.

use ascertain_stats::{Error, Judge, Verdict};

/// Ratio of neighbouring sizes of the grid.
pub const GRID_STEP: u64 = 4;
/// Maximum number of sizes that the bisection adds.
const REFINEMENTS: usize = 24;
/// Number of pairs after which a size stays undecided. Sizes close to a crossover would need too many.
const MOST_PAIRS: u64 = 64;
/// The bisection ends when the ends of the interval differ by less than this factor.
pub const PRECISION: f64 = 1.1;

/// A store of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Winner {
    First,
    Second,
}

/// The result of one pair of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairOutcome {
    /// This store was certainly faster.
    Faster(Winner),
    /// Both times are equal. The pair does not count.
    Tie,
    /// The winner is not known, for example because both requests timed out.
    Unclear,
}

/// Sizes that follow each other and have the same winner; `None` if it was not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    pub from_bytes: u64,
    pub to_bytes: u64,
    pub winner: Option<Winner>,
}

/// The search for the crossovers of two stores.
pub struct Search {
    /// In ascending order of sizes.
    sizes: Vec<SizeTest>,
    refinement_error: f64,
    refinements_left: usize,
}

struct SizeTest {
    bytes: u64,
    /// The tests for the first and for the second store.
    judges: [Judge; 2],
    pairs: u64,
    winner: Option<Winner>,
}

impl Search {
    /// Starts a search from `smallest` to `largest` bytes.
    ///
    /// # Errors
    /// Fails if the error is not between 0 and 1.
    pub fn new(smallest: u64, largest: u64, error: f64) -> Result<Self, Error> {
        let grid = grid(smallest, largest);
        let share = error / 2.0 / grid.len() as f64;
        let sizes = grid.into_iter().map(|bytes| SizeTest::new(bytes, share)).collect::<Result<_, _>>()?;
        let refinement_error = error / 2.0 / REFINEMENTS as f64;
        Ok(Self { sizes, refinement_error, refinements_left: REFINEMENTS })
    }

    /// Returns the sizes that need another pair. Empty if the search is over.
    pub fn open_sizes(&mut self) -> Vec<u64> {
        let open = |sizes: &[SizeTest]| sizes.iter().filter(|size| size.is_open()).map(|size| size.bytes).collect();
        let sizes: Vec<u64> = open(&self.sizes);
        if !sizes.is_empty() {
            return sizes;
        }
        for bytes in self.next_sizes() {
            let Ok(size) = SizeTest::new(bytes, self.refinement_error) else { break };
            if self.refinements_left == 0 {
                break;
            }
            self.refinements_left -= 1;
            let place = self.sizes.partition_point(|size| size.bytes < bytes);
            self.sizes.insert(place, size);
        }
        open(&self.sizes)
    }

    /// Adds a pair. `may_win` is `false` for a store that refuses too many requests, and so must not be called faster.
    pub fn observe(&mut self, bytes: u64, outcome: PairOutcome, may_win: [bool; 2]) {
        if let Some(size) = self.sizes.iter_mut().find(|size| size.bytes == bytes && size.is_open()) {
            size.observe(outcome, may_win);
        }
    }

    /// Returns the ranges of sizes with the same winner, in ascending order.
    pub fn ranges(&self) -> Vec<SizeRange> {
        let mut ranges: Vec<SizeRange> = Vec::new();
        for size in &self.sizes {
            match ranges.last_mut() {
                Some(last) if last.winner == size.winner => last.to_bytes = size.bytes,
                _ => ranges.push(SizeRange { from_bytes: size.bytes, to_bytes: size.bytes, winner: size.winner }),
            }
        }
        ranges
    }

    /// Returns whether more pairs would not change the answer.
    pub fn is_finished(&self) -> bool {
        let has_next = self.refinements_left > 0 && !self.next_sizes().is_empty();
        !has_next && self.sizes.iter().all(|size| !size.is_open())
    }

    /// Returns the number of pairs so far.
    pub fn pairs(&self) -> u64 {
        self.sizes.iter().map(|size| size.pairs).sum()
    }

    /// Returns the sizes for the bisection: the middles between neighbouring decided sizes with different winners. If
    /// there are undecided sizes between two decided ones, returns the middles on both sides of the undecided sizes.
    fn next_sizes(&self) -> Vec<u64> {
        let decided: Vec<usize> = (0..self.sizes.len()).filter(|at| self.sizes[*at].winner.is_some()).collect();
        let mut middles = Vec::new();
        for pair in decided.windows(2) {
            let (low, high) = (pair[0], pair[1]);
            if self.sizes[low].winner == self.sizes[high].winner {
                continue;
            }
            middles.extend(middle(self.sizes[low].bytes, self.sizes[low + 1].bytes));
            if low + 1 < high {
                middles.extend(middle(self.sizes[high - 1].bytes, self.sizes[high].bytes));
            }
        }
        middles
    }
}

impl SizeTest {
    fn new(bytes: u64, error: f64) -> Result<Self, Error> {
        let judge = || Judge::new(0.5, error / 2.0);
        Ok(Self { bytes, judges: [judge()?, judge()?], pairs: 0, winner: None })
    }

    fn is_open(&self) -> bool {
        self.winner.is_none() && self.pairs < MOST_PAIRS
    }

    fn observe(&mut self, outcome: PairOutcome, may_win: [bool; 2]) {
        self.pairs += 1;
        if outcome == PairOutcome::Tie {
            return;
        }
        for (index, winner) in [Winner::First, Winner::Second].into_iter().enumerate() {
            let verdict = self.judges[index].observe(outcome == PairOutcome::Faster(winner));
            if verdict == Some(Verdict::Holds) && may_win[index] {
                self.winner = self.winner.or(Some(winner));
            }
        }
    }
}

/// Returns `smallest`, `largest`, and the sizes between them that are [`GRID_STEP`] times the one before.
fn grid(smallest: u64, largest: u64) -> Vec<u64> {
    let powers = std::iter::successors(Some(smallest.max(1)), |bytes| bytes.checked_mul(GRID_STEP));
    let mut sizes: Vec<u64> = powers.take_while(|bytes| *bytes < largest).collect();
    sizes.push(largest.max(1));
    sizes
}

/// Returns the geometric mean of two sizes; `None` if they are so close that the bisection ends.
fn middle(low: u64, high: u64) -> Option<u64> {
    let middle = (low as f64 * high as f64).sqrt().round() as u64;
    (high as f64 / low as f64 >= PRECISION && low < middle && middle < high).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search in which the winner at each size is always the same.
    fn ranges(winner: impl Fn(u64) -> PairOutcome) -> Vec<(u64, u64, Option<Winner>)> {
        let mut search = Search::new(1, 1 << 30, 0.05).unwrap();
        loop {
            let sizes = search.open_sizes();
            if sizes.is_empty() {
                break;
            }
            sizes.into_iter().for_each(|bytes| search.observe(bytes, winner(bytes), [true; 2]));
        }
        search.ranges().into_iter().map(|range| (range.from_bytes, range.to_bytes, range.winner)).collect()
    }

    #[test]
    fn the_grid_has_both_ends() {
        assert_eq!(grid(1, 100), [1, 4, 16, 64, 100]);
        assert_eq!((grid(5, 5), grid(16_000, 64_000)), (vec![5], vec![16_000, 64_000]));
    }

    #[test]
    fn a_single_crossover_is_bisected() {
        use Winner::{First, Second};
        let at = |bytes| PairOutcome::Faster(if bytes < 5_000_000 { First } else { Second });
        let [(1, low, Some(First)), (high, _, Some(Second))] = ranges(at)[..] else { panic!("{:?}", ranges(at)) };
        assert!(low < 5_000_000 && high >= 5_000_000 && (high as f64) < 1.1 * low as f64, "{low} {high}");
    }

    /// A store with a step at 8 KiB and half of the bandwidth: the other store is faster below the step and for large
    /// sizes. A search by halving would name a single size.
    #[test]
    fn a_step_gives_two_crossovers() {
        let time = |bytes: f64| (if bytes <= 8192.0 { 0.042 } else { 0.002 + bytes / 2e8 }, 0.010 + bytes / 4e8);
        let outcome = |bytes: u64| {
            let (first, second) = time(bytes as f64);
            PairOutcome::Faster(if first < second { Winner::First } else { Winner::Second })
        };
        let ranges = ranges(outcome);
        let winners: Vec<_> = ranges.iter().map(|(.., winner)| winner.unwrap()).collect();
        assert_eq!(winners, [Winner::Second, Winner::First, Winner::Second]);
        assert!(ranges[0].1 <= 8192 && ranges[1].0 > 8192 && ranges[1].0 < 16_384, "{ranges:?}");
        assert!(ranges[1].1 < 3_200_000 && ranges[2].0 >= 3_200_000, "{ranges:?}");
    }

    #[test]
    fn neither_ties_nor_unclear_pairs_make_a_winner() {
        assert_eq!(ranges(|_| PairOutcome::Tie), [(1, 1 << 30, None)]);
        assert_eq!(ranges(|_| PairOutcome::Unclear), [(1, 1 << 30, None)]);
        let mut search = Search::new(1, 1, 0.05).unwrap();
        (0..MOST_PAIRS).for_each(|_| search.observe(1, PairOutcome::Faster(Winner::First), [false, true]));
        assert_eq!(search.ranges()[0].winner, None, "a store that refuses too many requests is never named faster");
    }
}
