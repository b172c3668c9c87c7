//! Exact quantiles of a sliding window, from its values in order of time and the values near the wanted rank.

use super::RunError;
use super::memory::filled;
use crate::table::interpolate;

/// Maximum number of distinct values in the sorted list. The wanted rank moves by at most one per step, usually back
/// and forth. It therefore leaves the list only after a number of steps that is about the square of this constant.
pub(crate) const MOST_NEAR: u64 = 64;

/// The values of a sliding window, and a sorted list of the values near the wanted rank.
///
/// A value that enters or leaves the window changes the list only if it is near the wanted rank. Otherwise it changes
/// at most the number of values below the cursor. If the rank leaves the list, a pass over the window finds its new
/// neighbours.
#[derive(Clone, Debug)]
pub(crate) struct SlidingCursor {
    queue: Box<[f64]>,
    /// Values in the window that are not null.
    known: u64,
    /// The distinct values of the window from `low` to `high`, in ascending order, each with the number of times that
    /// it occurs. Only the first `len` entries are used.
    near: Box<[(f64, u64)]>,
    len: usize,
    low: f64,
    high: f64,
    /// Entry of `near` at the cursor, and its value. The value stays when `near` is empty.
    at: usize,
    value: f64,
    /// Values in the window that are less than the cursor's.
    less: u64,
}

impl SlidingCursor {
    /// Returns the size of the memory in bytes.
    pub fn bytes(length: u64) -> u64 {
        8 * length + 16 * SlidingCursor::near(length)
    }

    /// Returns the size of the sorted list. For a short window, it has room for all values, and for the value at the
    /// cursor after it has left the window.
    fn near(length: u64) -> u64 {
        (length + 1).min(MOST_NEAR)
    }

    pub fn new(length: u64) -> Result<SlidingCursor, RunError> {
        Ok(SlidingCursor {
            queue: filled(length as usize, f64::NAN)?,
            known: 0,
            near: filled(SlidingCursor::near(length) as usize, (0.0, 0))?,
            len: 0,
            // No value is in this interval, so the first quantile searches.
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            at: 0,
            value: f64::NEG_INFINITY,
            less: 0,
        })
    }

    /// Puts a value in the place of the one at `index`, which leaves the window.
    pub fn replace(&mut self, index: usize, value: f64) {
        let oldest = std::mem::replace(&mut self.queue[index], value);
        // Comparisons with a null are false.
        self.known -= u64::from(!oldest.is_nan());
        self.known += u64::from(!value.is_nan());
        self.less -= u64::from(oldest < self.value);
        // This may move the cursor, so the new value is compared with it afterwards.
        if self.low <= oldest && oldest <= self.high {
            self.remove(oldest);
        }
        self.less += u64::from(value < self.value);
        if self.low <= value && value <= self.high {
            self.insert(value);
        }
    }

    /// Returns the quantile, or null if all values are null.
    pub fn quantile(&mut self, level: f64) -> f64 {
        let Some(last) = self.known.checked_sub(1) else { return f64::NAN };
        let position = level * last as f64;
        let rank = (position as u64).min(last);
        let fraction = position - rank as f64;
        self.seek(rank);
        if fraction == 0.0 || self.less + self.near[self.at].1 > rank + 1 {
            return self.value;
        }
        if self.at + 1 == self.len {
            self.gather(self.value);
        }
        let next = self.near[..self.len].get(self.at + 1).map_or(self.value, |(next, _)| *next);
        interpolate(self.value, next, fraction)
    }

    /// Moves the cursor to the value with this rank, counted from 0.
    fn seek(&mut self, rank: u64) {
        if self.is_at(rank) || self.walk(rank) {
            return;
        }
        // The rank is usually just outside the sorted list, so it is among the neighbours of the end of the list.
        self.gather(self.value);
        if !self.walk(rank) {
            let value = self.search(rank);
            self.gather(value);
        }
    }

    fn is_at(&self, rank: u64) -> bool {
        self.at < self.len && self.less <= rank && rank < self.less + self.near[self.at].1
    }

    /// Moves the cursor towards a rank. Returns whether the rank is among the ordered values.
    fn walk(&mut self, rank: u64) -> bool {
        if self.len == 0 {
            return false;
        }
        while self.less > rank && self.at > 0 {
            self.at -= 1;
            self.less -= self.near[self.at].1;
        }
        while self.less + self.near[self.at].1 <= rank && self.at + 1 < self.len {
            self.less += self.near[self.at].1;
            self.at += 1;
        }
        self.value = self.near[self.at].0;
        self.is_at(rank)
    }

    /// Returns the first entry of `near` that is not less than a value.
    fn place_of(&self, value: f64) -> usize {
        self.near[..self.len].partition_point(|(near, _)| *near < value)
    }

    /// Adds a value between `low` and `high`. If the list is then too long, drops the end that is farther from the
    /// cursor.
    fn insert(&mut self, value: f64) {
        let mut place = self.place_of(value);
        if place < self.len && self.near[place].0 == value {
            self.near[place].1 += 1;
            return;
        }
        let last = self.len.saturating_sub(1);
        if self.len == 0 {
            // No other value is between the old cursor and this one.
            self.less -= u64::from(value < self.value);
            (self.at, self.value) = (0, value);
        } else if self.len < self.near.len() {
            self.at += usize::from(place <= self.at);
        } else if self.at > last / 2 {
            self.low = self.near[0].0;
            if place == 0 {
                return;
            }
            self.near.rotate_left(1);
            place -= 1;
            self.low = if place == 0 { value } else { self.near[0].0 };
            self.at -= usize::from(place > self.at - 1);
            self.len = last;
        } else {
            self.high = self.near[last].0;
            if place == self.len {
                return;
            }
            self.high = if place == last { value } else { self.near[last - 1].0 };
            self.at += usize::from(place <= self.at);
            self.len = last;
        }
        self.near.copy_within(place..self.len, place + 1);
        self.near[place] = (value, 1);
        self.len += 1;
    }

    /// Removes a value between `low` and `high`.
    fn remove(&mut self, value: f64) {
        let place = self.place_of(value);
        self.near[place].1 -= 1;
        if self.near[place].1 == 0 {
            self.remove_entry(place);
        }
    }

    /// Removes an entry that stands for no values. The cursor goes to the next entry, or to the last one.
    fn remove_entry(&mut self, place: usize) {
        self.near.copy_within(place + 1..self.len, place);
        self.len -= 1;
        if place < self.at {
            self.at -= 1;
        } else if place == self.at && self.len > 0 {
            if self.at == self.len {
                self.at -= 1;
                self.less -= self.near[self.at].1;
            }
            self.value = self.near[self.at].0;
        }
    }

    /// Collects the neighbours of a value in one pass, and puts the cursor there.
    fn gather(&mut self, value: f64) {
        (self.low, self.high) = (f64::NEG_INFINITY, f64::INFINITY);
        (self.at, self.value, self.less) = (0, value, 0);
        self.near[0] = (value, 0);
        self.len = 1;
        for index in 0..self.queue.len() {
            let other = self.queue[index];
            self.less += u64::from(other < value);
            if self.low <= other && other <= self.high {
                self.insert(other);
            }
        }
        if self.near[self.at].1 == 0 {
            self.remove_entry(self.at);
        }
    }

    /// Finds the value with a rank among all values. Each pass halves the number of candidates, on average.
    fn search(&self, rank: u64) -> f64 {
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        // A fixed sequence of places makes the pivots independent of the order of the values.
        let mut place = self.queue.len() as u64;
        loop {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let start = ((place >> 16) % self.queue.len() as u64) as usize;
            let after = self.queue[start..].iter().chain(&self.queue[..start]);
            let Some(pivot) = after.copied().find(|value| low <= *value && *value <= high) else { return low };
            let (less, equal) = self.ranks_of(pivot);
            if less > rank {
                high = self.greatest_below(pivot);
            } else if less + equal <= rank {
                low = self.least_above(pivot);
            } else {
                return pivot;
            }
        }
    }

    /// Returns the number of values below a value, and of those that equal it.
    fn ranks_of(&self, value: f64) -> (u64, u64) {
        let (mut less, mut equal) = (0, 0);
        for other in &self.queue {
            less += u64::from(*other < value);
            equal += u64::from(*other == value);
        }
        (less, equal)
    }

    fn least_above(&self, value: f64) -> f64 {
        let above = |least: f64, other: f64| if other > value && other < least { other } else { least };
        fold(&self.queue, f64::INFINITY, above)
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
