//! Aggregates of windows of a fixed number of values.

use super::RunError;
use super::accumulator::Accumulator;
use super::memory::filled;
use crate::graph::Aggregate;
use crate::ratio::gcd;

/// The place in a series of windows that share no values.
#[derive(Clone, Debug)]
pub(crate) struct DisjointPlace {
    length: u64,
    step: u64,
    /// Values since the start of the current window.
    place: u64,
}

/// The values of a window, or its aggregate so far.
pub(crate) trait Collected {
    /// Adds values. Nulls are left out.
    fn extend(&mut self, values: &[f64]) -> Result<(), RunError>;

    /// Returns the aggregate and removes all values.
    fn take(&mut self) -> f64;
}

impl DisjointPlace {
    pub fn new(length: u64, step: u64) -> DisjointPlace {
        DisjointPlace { length, step, place: 0 }
    }

    /// Replaces the first values of the slice by the results. Returns their number.
    #[inline(always)]
    pub fn process(&mut self, values: &mut [f64], window: &mut impl Collected) -> Result<usize, RunError> {
        let (mut results, mut at) = (0, 0);
        while at < values.len() {
            let left = (values.len() - at) as u64;
            if self.place < self.length {
                let taken = left.min(self.length - self.place) as usize;
                window.extend(&values[at..at + taken])?;
                at += taken;
                self.place += taken as u64;
                if self.place == self.length {
                    values[results] = window.take();
                    results += 1;
                }
            } else {
                let skipped = left.min(self.step - self.place);
                at += skipped as usize;
                self.place += skipped;
            }
            if self.place == self.step {
                self.place = 0;
            }
        }
        Ok(results)
    }
}

/// A window whose successors share no value with it.
#[derive(Clone, Debug)]
pub(crate) struct DisjointWindow {
    accumulator: Accumulator,
    place: DisjointPlace,
}

impl DisjointWindow {
    pub fn new(aggregate: Aggregate, length: u64, step: u64) -> Result<DisjointWindow, RunError> {
        Ok(DisjointWindow { accumulator: Accumulator::new(aggregate)?, place: DisjointPlace::new(length, step) })
    }

    /// Replaces the first values of the slice by the results. Returns their number.
    pub fn process(&mut self, values: &mut [f64]) -> Result<usize, RunError> {
        self.place.process(values, &mut self.accumulator)
    }
}

impl Collected for Accumulator {
    fn extend(&mut self, values: &[f64]) -> Result<(), RunError> {
        Accumulator::extend(self, values);
        Ok(())
    }

    fn take(&mut self) -> f64 {
        Accumulator::take(self)
    }
}

/// A window that overlaps its successors. Its values are in panes of gcd(length, step) values.
///
/// The panes are a queue of two stacks. The front part holds the aggregate of each pane and all front panes behind it.
/// The back part holds the aggregates of single panes. Removing a pane therefore never subtracts, so neither
/// rounding errors nor infinities remain after their values have left the window.
#[derive(Clone, Debug)]
pub(crate) struct SlidingWindow {
    kind: Aggregate,
    /// The aggregate of each pane, of the back part, and of the pane that is being filled (if it has several values).
    values: Box<[f64]>,
    /// The numbers of values in these, for means and counts.
    counts: Box<[u32]>,
    panes: usize,
    /// Values in a pane.
    pane: u64,
    /// Panes between results.
    step: u64,
    head: usize,
    len: usize,
    /// Panes in the front part.
    front: usize,
    /// Values in the pane that is being filled.
    filled: u64,
    /// Panes until the next result, once the window is full.
    due: u64,
}

/// A partial aggregate: a sum, minimum or maximum, and the number of its values.
type Partial = (f64, u32);

impl SlidingWindow {
    /// Returns the number of partial aggregates.
    fn entries(length: u64, step: u64) -> u64 {
        let pane = gcd(length, step);
        length / pane + 1 + u64::from(pane > 1)
    }

    /// Returns the size of the memory in bytes.
    pub fn bytes(aggregate: Aggregate, length: u64, step: u64) -> u64 {
        let each = u64::from(aggregate != Aggregate::Count) * 8 + u64::from(has_counts(aggregate)) * 4;
        SlidingWindow::entries(length, step).saturating_mul(each)
    }

    pub fn new(aggregate: Aggregate, length: u64, step: u64) -> Result<SlidingWindow, RunError> {
        let entries = SlidingWindow::entries(length, step) as usize;
        let pane = gcd(length, step);
        let mut window = SlidingWindow {
            kind: aggregate,
            values: filled(if aggregate == Aggregate::Count { 0 } else { entries }, f64::NAN)?,
            counts: filled(if has_counts(aggregate) { entries } else { 0 }, 0)?,
            panes: (length / pane) as usize,
            pane,
            step: step / pane,
            head: 0,
            len: 0,
            front: 0,
            filled: 0,
            due: 0,
        };
        window.clear(window.panes);
        if pane > 1 {
            window.clear(window.panes + 1);
        }
        Ok(window)
    }

    fn get(&self, index: usize) -> Partial {
        match self.kind {
            Aggregate::Count => (0.0, self.counts[index]),
            Aggregate::Mean => (self.values[index], self.counts[index]),
            _ => (self.values[index], 0),
        }
    }

    fn set(&mut self, index: usize, (value, count): Partial) {
        if self.kind != Aggregate::Count {
            self.values[index] = value;
        }
        if has_counts(self.kind) {
            self.counts[index] = count;
        }
    }

    fn clear(&mut self, index: usize) {
        self.set(index, (if self.kind == Aggregate::Mean { 0.0 } else { NULL }, 0));
    }

    fn of_value(&self, value: f64) -> Partial {
        match (self.kind, value.is_nan()) {
            (Aggregate::Mean, true) => (0.0, 0),
            (_, true) => (NULL, 0),
            _ => (value, 1),
        }
    }

    fn combine(&self, first: Partial, second: Partial) -> Partial {
        let value = match self.kind {
            Aggregate::Min => first.0.min(second.0),
            Aggregate::Max => first.0.max(second.0),
            Aggregate::Mean => first.0 + second.0,
            Aggregate::Sum => sum(first.0, second.0),
            _ => 0.0,
        };
        (value, first.1 + second.1)
    }

    fn result(&self, (value, count): Partial) -> f64 {
        match self.kind {
            Aggregate::Mean => value / f64::from(count),
            Aggregate::Count => f64::from(count),
            _ => value,
        }
    }

    /// Replaces the first values of the slice by the results. Returns their number.
    pub fn process(&mut self, values: &mut [f64]) -> usize {
        let mut results = 0;
        for at in 0..values.len() {
            let mut pane = self.of_value(values[at]);
            if self.pane > 1 {
                pane = self.combine(self.get(self.panes + 1), pane);
                self.filled += 1;
                if self.filled < self.pane {
                    self.set(self.panes + 1, pane);
                    continue;
                }
                self.filled = 0;
                self.clear(self.panes + 1);
            }
            if let Some(result) = self.push(pane) {
                values[results] = result;
                results += 1;
            }
        }
        results
    }

    /// Adds a complete pane. Returns the aggregate of the window if it is due.
    fn push(&mut self, pane: Partial) -> Option<f64> {
        if self.len == self.panes {
            self.pop();
        }
        let mut tail = self.head + self.len;
        if tail >= self.panes {
            tail -= self.panes;
        }
        self.set(tail, pane);
        self.len += 1;
        let back = self.combine(self.get(self.panes), pane);
        self.set(self.panes, back);
        if self.len < self.panes {
            return None;
        }
        if self.due > 0 {
            self.due -= 1;
            return None;
        }
        self.due = self.step - 1;
        Some(self.result(match self.front {
            0 => back,
            _ => self.combine(self.get(self.head), back),
        }))
    }

    /// Removes the oldest pane.
    fn pop(&mut self) {
        if self.front == 0 {
            // The back part becomes the front part: from the newest pane to the oldest, each aggregate is combined with
            // the aggregates of all newer panes.
            let mut index = (self.head + self.len) % self.panes;
            let mut after: Option<Partial> = None;
            for _ in 0..self.len {
                index = index.checked_sub(1).unwrap_or(self.panes - 1);
                let partial = match after {
                    Some(after) => self.combine(self.get(index), after),
                    None => self.get(index),
                };
                self.set(index, partial);
                after = Some(partial);
            }
            self.front = self.len;
            self.clear(self.panes);
        }
        self.head += 1;
        if self.head == self.panes {
            self.head = 0;
        }
        self.len -= 1;
        self.front -= 1;
    }
}

/// The sum of no values. It differs from the NaN that the processor computes, such as ∞ − ∞.
const NULL: f64 = f64::from_bits(0x7ff8_0000_6e75_6c6c);

/// Adds two sums, each of which may be the sum of no values.
fn sum(first: f64, second: f64) -> f64 {
    if first.to_bits() == NULL.to_bits() {
        return second;
    }
    if second.to_bits() == NULL.to_bits() {
        return first;
    }
    let sum = first + second;
    // A sum that is not a number must not look like a sum of no values.
    if sum.is_nan() { f64::NAN } else { sum }
}

fn has_counts(aggregate: Aggregate) -> bool {
    matches!(aggregate, Aggregate::Mean | Aggregate::Count)
}
