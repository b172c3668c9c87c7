//! The search for the sizes at which the faster store changes. It judges single sizes by signs, and assumes no model of
//! the times.
//!
//! The search first measures the sizes of a grid, each [`GRID_STEP`] times as large as the previous size. Then it
//! bisects between neighbours with different winners. If the winner changes twice between two neighbours of the grid,
//! neither crossover is found.
//!
//! For each size, two tests run: "the first store is faster in more than half of the pairs", and the same for the
//! second store. A pair without a clear winner, such as one with a timeout, counts against both. The error is divided
//! among the sizes beforehand: half for the grid, half for at most [`REFINEMENTS`] sizes of the bisection. So all
//! decisions together are wrong with a probability of at most the error, whenever the search is stopped.

use ascertain_stats::{Error, Judge, Verdict};

/// Ratio of neighbouring sizes of the grid.
pub const GRID_STEP: u64 = 4;
/// Maximum number of sizes that the bisection adds.
const REFINEMENTS: usize = 24;
/// Number of pairs after which a size stays undecided. Sizes close to a crossover would need too many.
const MOST_PAIRS: u64 = 64;
/// Number of pairs that a size usually needs, for forecasts.
pub const USUAL_PAIRS: u64 = 14;
/// Largest share of requests that a store may refuse, or leave without a complete answer, if it is to be named faster.
const MOST_INCOMPLETE: f64 = 0.05;
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

/// Consecutive sizes with the same winner; the winner is `None` if it was not decided.
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
    /// All pairs, and the incomplete requests of each store in them.
    total: Counts,
}

struct SizeTest {
    bytes: u64,
    /// The tests for the first and for the second store.
    judges: [Judge; 2],
    counts: Counts,
}

/// Counts pairs of requests, and the incomplete requests of both stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub pairs: u64,
    pub incomplete: [u64; 2],
}

impl Counts {
    fn add(&mut self, incomplete: [bool; 2]) {
        self.pairs += 1;
        (0..2).for_each(|store| self.incomplete[store] += u64::from(incomplete[store]));
    }

    /// Returns whether a store left so few requests incomplete that it may be named faster.
    fn may_win(&self, winner: Winner) -> bool {
        self.incomplete[winner as usize] as f64 <= MOST_INCOMPLETE * self.pairs as f64
    }
}

impl Search {
    /// Starts a search for crossovers at sizes from `smallest` to `largest` bytes.
    ///
    /// # Errors
    /// Fails if the error is not between 0 and 1.
    pub fn new(smallest: u64, largest: u64, error: f64) -> Result<Self, Error> {
        let grid = grid(smallest, largest);
        let share = error / 2.0 / grid.len() as f64;
        let sizes = grid.into_iter().map(|bytes| SizeTest::new(bytes, share)).collect::<Result<_, _>>()?;
        let refinement_error = error / 2.0 / REFINEMENTS as f64;
        Ok(Self { sizes, refinement_error, refinements_left: REFINEMENTS, total: Counts::default() })
    }

    /// Returns the sizes that need another pair. The list is empty if the search is over.
    pub fn open_sizes(&mut self) -> Vec<u64> {
        let sizes = self.still_open();
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
        self.still_open()
    }

    fn still_open(&self) -> Vec<u64> {
        self.sizes.iter().filter(|size| self.is_open(size)).map(|size| size.bytes).collect()
    }

    /// Returns whether a size needs more pairs: it has no winner, and fewer than [`MOST_PAIRS`] pairs.
    fn is_open(&self, size: &SizeTest) -> bool {
        self.winner(size).is_none() && size.counts.pairs < MOST_PAIRS
    }

    /// Returns the winner of a size. A store that leaves too many requests incomplete, at this size or altogether, is
    /// not the winner, even if an earlier answer named it.
    fn winner(&self, size: &SizeTest) -> Option<Winner> {
        size.decided().filter(|winner| size.counts.may_win(*winner) && self.total.may_win(*winner))
    }

    /// Adds a pair. `incomplete` shows which stores left their request without a complete answer.
    pub fn observe(&mut self, bytes: u64, outcome: PairOutcome, incomplete: [bool; 2]) {
        self.total.add(incomplete);
        if let Some(size) = self.sizes.iter_mut().find(|size| size.bytes == bytes) {
            size.counts.add(incomplete);
            size.observe(outcome);
        }
    }

    /// Returns the ranges of sizes with the same winner, in ascending order.
    pub fn ranges(&self) -> Vec<SizeRange> {
        let mut ranges: Vec<SizeRange> = Vec::new();
        for size in &self.sizes {
            let winner = self.winner(size);
            match ranges.last_mut() {
                Some(last) if last.winner == winner => last.to_bytes = size.bytes,
                _ => ranges.push(SizeRange { from_bytes: size.bytes, to_bytes: size.bytes, winner }),
            }
        }
        ranges
    }

    /// Returns whether more pairs would not change the answer.
    pub fn is_finished(&self) -> bool {
        let has_next = self.refinements_left > 0 && !self.next_sizes().is_empty();
        !has_next && self.still_open().is_empty()
    }

    /// Estimates the number of pairs until the search is finished.
    pub fn pairs_left(&self) -> u64 {
        let open = self.sizes.iter().filter(|size| self.is_open(size));
        let open: u64 = open.map(|size| USUAL_PAIRS.saturating_sub(size.counts.pairs).max(1)).sum();
        let winners = self.sizes.iter().filter_map(|size| Some((size.bytes as f64, self.winner(size)?)));
        let winners: Vec<_> = winners.collect();
        let changes = winners.windows(2).filter(|pair| pair[0].1 != pair[1].1);
        // Each step of the bisection halves the logarithm of the interval.
        let steps = changes.map(|pair| ((pair[1].0 / pair[0].0).ln() / PRECISION.ln()).log2().ceil().max(0.0) as u64);
        open + steps.sum::<u64>().min(self.refinements_left as u64) * USUAL_PAIRS
    }

    /// Returns the counts of all pairs so far.
    pub fn counts(&self) -> Counts {
        self.total
    }

    /// Returns each judged size with its winner.
    #[cfg(test)]
    pub fn winners(&self) -> Vec<(u64, Option<Winner>)> {
        self.sizes.iter().map(|size| (size.bytes, self.winner(size))).collect()
    }

    /// Returns the sizes for the bisection: the middles between neighbouring decided sizes with different winners. If
    /// undecided sizes lie between two decided sizes, returns the middles on both sides of the undecided sizes.
    fn next_sizes(&self) -> Vec<u64> {
        let winners: Vec<_> = self.sizes.iter().map(|size| self.winner(size)).collect();
        let decided: Vec<usize> = (0..winners.len()).filter(|at| winners[*at].is_some()).collect();
        let mut middles = Vec::new();
        for pair in decided.windows(2) {
            let (low, high) = (pair[0], pair[1]);
            if winners[low] == winners[high] {
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
        Ok(Self { bytes, judges: [judge()?, judge()?], counts: Counts::default() })
    }

    fn observe(&mut self, outcome: PairOutcome) {
        if outcome != PairOutcome::Tie {
            for (judge, winner) in self.judges.iter_mut().zip([Winner::First, Winner::Second]) {
                judge.observe(outcome == PairOutcome::Faster(winner));
            }
        }
    }

    /// Returns the store that the tests call faster, unless later pairs contradict them.
    fn decided(&self) -> Option<Winner> {
        let is_faster = |winner: &Winner| {
            let judge = &self.judges[*winner as usize];
            judge.verdict() == Some(Verdict::Holds) && !judge.contradicted()
        };
        [Winner::First, Winner::Second].into_iter().find(is_faster)
    }
}

/// Returns `smallest`, `largest`, and sizes between them, each [`GRID_STEP`] times as large as the previous size.
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
            sizes.into_iter().for_each(|bytes| search.observe(bytes, winner(bytes), [false; 2]));
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
    }

    /// A store that refuses too many requests is not named faster. Refusals at another size count, too, also if they
    /// come after the decision.
    #[test]
    fn refusals_withdraw_a_winner() {
        let first = PairOutcome::Faster(Winner::First);
        let mut search = Search::new(1, 4, 0.05).unwrap();
        let winners = |search: &Search| search.winners().into_iter().map(|(_, winner)| winner).collect::<Vec<_>>();
        (0..30).for_each(|_| search.observe(1, first, [false; 2]));
        assert_eq!(winners(&search), [Some(Winner::First), None]);
        // One refusal of 16 is more than 5 % of this size, but less of all requests.
        (0..16).for_each(|number| search.observe(4, first, [number == 0, false]));
        assert_eq!(winners(&search), [Some(Winner::First), None]);
        assert_eq!(search.open_sizes(), [4]);
        (0..4).for_each(|_| search.observe(4, first, [false; 2]));
        assert_eq!(winners(&search), [Some(Winner::First); 2]);
        (0..3).for_each(|_| search.observe(4, PairOutcome::Unclear, [true, false]));
        assert_eq!(winners(&search), [None; 2]);
        assert_eq!(search.counts(), Counts { pairs: 53, incomplete: [4, 0] });
    }
}
