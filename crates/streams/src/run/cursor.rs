//! Exact quantiles of a sliding window, from its values in order of time alone.

use super::RunError;
use super::memory::filled;
use crate::table::interpolate;

/// Ranks that the cursor moves one by one. A greater distance is searched by halving.
const NEAR: u64 = 8;

/// The values of a sliding window, and a cursor at the value with the wanted rank.
///
/// A new value and the one that leaves change the ranks by at most one, and only if they are on different sides of the
/// cursor. The cursor then moves to the neighbouring value, which takes one pass over the window. For a quantile in the
/// tail this is rare, because most values are on one side.
#[derive(Clone, Debug)]
pub(crate) struct SlidingCursor {
    queue: Box<[f64]>,
    /// Values in the window that are not null.
    known: u64,
    /// The value at the cursor. It need not be in the window any more.
    value: f64,
    /// Values in the window that are less than the cursor, and that equal it.
    less: u64,
    equal: u64,
    /// The least value in the window that is greater than the cursor, if it is known.
    next: Option<f64>,
}

impl SlidingCursor {
    pub fn new(length: u64) -> Result<SlidingCursor, RunError> {
        let queue = filled(length as usize, f64::NAN)?;
        Ok(SlidingCursor { queue, known: 0, value: f64::NEG_INFINITY, less: 0, equal: 0, next: None })
    }

    /// Puts a value in the place of the one at `index`, which leaves the window.
    pub fn replace(&mut self, index: usize, value: f64) {
        let oldest = std::mem::replace(&mut self.queue[index], value);
        // Comparisons with a null are false.
        self.known -= u64::from(!oldest.is_nan());
        self.less -= u64::from(oldest < self.value);
        self.equal -= u64::from(oldest == self.value);
        self.known += u64::from(!value.is_nan());
        self.less += u64::from(value < self.value);
        self.equal += u64::from(value == self.value);
        if let Some(next) = self.next {
            if oldest == next {
                self.next = None;
            } else if value > self.value && value < next {
                self.next = Some(value);
            }
        }
    }

    /// Returns the quantile, or null if all values are null.
    pub fn quantile(&mut self, level: f64) -> f64 {
        let Some(last) = self.known.checked_sub(1) else { return f64::NAN };
        let position = level * last as f64;
        let rank = (position as u64).min(last);
        let fraction = position - rank as f64;
        self.seek(rank);
        if fraction == 0.0 || self.less + self.equal > rank + 1 {
            return self.value;
        }
        let next = self.next();
        interpolate(self.value, next, fraction)
    }

    /// Moves the cursor to the value with this rank, counted from 0.
    fn seek(&mut self, rank: u64) {
        let distance = self.less.saturating_sub(rank).max((rank + 1).saturating_sub(self.less + self.equal));
        if distance > NEAR {
            self.search(rank);
            return;
        }
        while self.less > rank {
            let value = self.greatest_below(self.value);
            self.move_to(value);
        }
        while self.less + self.equal <= rank {
            let next = self.next();
            self.move_to(next);
        }
    }

    /// Finds the value with this rank among all values. Each pass halves the number of candidates, on average.
    fn search(&mut self, rank: u64) {
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        // A fixed sequence of places makes the pivots independent of the order of the values.
        let mut place = self.queue.len() as u64;
        loop {
            let is_candidate = |value: f64| low <= value && value <= high && (low < high || value == low);
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let start = ((place >> 16) % self.queue.len() as u64) as usize;
            let after = self.queue[start..].iter().chain(&self.queue[..start]);
            let Some(pivot) = after.copied().find(|value| is_candidate(*value)) else { return };
            self.move_to(pivot);
            if self.less > rank {
                high = self.greatest_below(pivot);
            } else if self.less + self.equal <= rank {
                low = self.next();
            } else {
                return;
            }
        }
    }

    /// Puts the cursor at a value, and counts the values below it.
    fn move_to(&mut self, value: f64) {
        let (mut less, mut equal) = (0, 0);
        for other in &self.queue {
            less += u64::from(*other < value);
            equal += u64::from(*other == value);
        }
        (self.value, self.less, self.equal, self.next) = (value, less, equal, None);
    }

    /// Returns the least value that is greater than the cursor, or infinity.
    fn next(&mut self) -> f64 {
        let (queue, value) = (&self.queue, self.value);
        *self.next.get_or_insert_with(|| {
            let above = |least: f64, other: f64| if other > value && other < least { other } else { least };
            fold(queue, f64::INFINITY, above)
        })
    }

    fn greatest_below(&self, value: f64) -> f64 {
        let below = |most: f64, other: f64| if other < value && other > most { other } else { most };
        fold(&self.queue, f64::NEG_INFINITY, below)
    }
}

/// Folds values in eight independent chains, so that the processor need not wait for one result before the next.
#[inline(always)]
fn fold(values: &[f64], start: f64, of: impl Fn(f64, f64) -> f64) -> f64 {
    let mut chains = [start; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for (chain, value) in chains.iter_mut().zip(chunk) {
            *chain = of(*chain, *value);
        }
    }
    chains.iter().chain(rest).fold(start, |folded, value| of(folded, *value))
}
