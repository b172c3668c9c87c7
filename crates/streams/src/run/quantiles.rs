//! Quantiles of windows: exact by selection up to 16,384 values, and from a flat table above.

use super::RunError;
use super::memory::filled;
use super::state::Sketch;
use crate::table::{FlatTable, interpolate};

/// Bucket number that stands for a null in the queue of a sliding window.
const NULL: u32 = u32::MAX;

/// A quantile of windows.
#[derive(Clone, Debug)]
pub(crate) struct QuantileWindow {
    level: f64,
    length: u64,
    step: u64,
    /// Values since the start of the window, or since the first value for a sliding window.
    place: u64,
    store: Store,
}

#[derive(Clone, Debug)]
enum Store {
    Exact { values: Box<[f64]>, len: usize },
    ExactSliding { queue: Box<[f64]>, sorted: Box<[f64]>, len: usize },
    Table(FlatTable),
    TableSliding { queue: Box<[u32]>, table: FlatTable },
}

impl QuantileWindow {
    pub fn new(level: f64, length: u64, step: u64, sketch: Sketch) -> Result<QuantileWindow, RunError> {
        let store = match sketch {
            Sketch::Exact { values } => Store::Exact { values: filled(values as usize, 0.0)?, len: 0 },
            Sketch::ExactSliding { values } => {
                let values = values as usize;
                Store::ExactSliding { queue: filled(values, 0.0)?, sorted: filled(values, 0.0)?, len: 0 }
            }
            Sketch::Table { is_signed, carries } => Store::Table(FlatTable::new(is_signed, carries as usize)?),
            Sketch::TableSliding { is_signed, carries, values } => Store::TableSliding {
                queue: filled(values as usize, NULL)?,
                table: FlatTable::new(is_signed, carries as usize)?,
            },
        };
        Ok(QuantileWindow { level, length, step, place: 0, store })
    }

    /// Replaces the first values of the slice by the results. Returns their number.
    pub fn process(&mut self, values: &mut [f64]) -> Result<usize, RunError> {
        if self.step < self.length {
            return self.sliding(values);
        }
        let (mut results, mut at) = (0, 0);
        while at < values.len() {
            let left = (values.len() - at) as u64;
            if self.place < self.length {
                let taken = left.min(self.length - self.place) as usize;
                self.store.extend(&values[at..at + taken])?;
                at += taken;
                self.place += taken as u64;
                if self.place == self.length {
                    values[results] = self.store.take(self.level);
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

    fn sliding(&mut self, values: &mut [f64]) -> Result<usize, RunError> {
        let mut results = 0;
        for at in 0..values.len() {
            let index = (self.place % self.length) as usize;
            self.store.replace(index, values[at], self.place >= self.length)?;
            self.place += 1;
            let after_first = self.place.checked_sub(self.length);
            if after_first.is_some_and(|after_first| after_first.is_multiple_of(self.step)) {
                values[results] = self.store.quantile(self.level);
                results += 1;
            }
        }
        Ok(results)
    }

    /// Replaces each value by the quantile of all values up to it.
    pub fn running(&mut self, values: &mut [f64]) -> Result<(), RunError> {
        for value in values {
            self.store.extend(&[*value])?;
            *value = self.store.quantile(self.level);
        }
        Ok(())
    }
}

impl Store {
    /// Adds values to a disjoint window. Nulls are left out.
    fn extend(&mut self, values: &[f64]) -> Result<(), RunError> {
        match self {
            Store::Exact { values: store, len } => {
                for value in values {
                    // A null is overwritten by the next value.
                    if *len < store.len() {
                        store[*len] = *value;
                    }
                    *len += usize::from(!value.is_nan());
                }
                Ok(())
            }
            Store::Table(table) => {
                values.iter().filter(|value| !value.is_nan()).try_for_each(|value| table.insert(*value))
            }
            Store::ExactSliding { .. } | Store::TableSliding { .. } => Ok(()),
        }
    }

    /// Returns the quantile and removes all values.
    fn take(&mut self, level: f64) -> f64 {
        let quantile = self.quantile(level);
        match self {
            Store::Exact { len, .. } => *len = 0,
            Store::Table(table) => table.clear(),
            Store::ExactSliding { .. } | Store::TableSliding { .. } => {}
        }
        quantile
    }

    /// Adds a value to a sliding window in the place of the oldest one, if the window is full.
    fn replace(&mut self, index: usize, value: f64, is_full: bool) -> Result<(), RunError> {
        match self {
            Store::ExactSliding { queue, sorted, len } => {
                let oldest = std::mem::replace(&mut queue[index], value);
                let removed = if is_full && !oldest.is_nan() { Some(place(&sorted[..*len], oldest)) } else { None };
                let added = if value.is_nan() { None } else { Some(place(&sorted[..*len], value)) };
                match (removed, added) {
                    // Only the values between the two places move.
                    (Some(from), Some(to)) if from < to => {
                        sorted.copy_within(from + 1..to, from);
                        sorted[to - 1] = value;
                    }
                    (Some(from), Some(to)) => {
                        sorted.copy_within(to..from, to + 1);
                        sorted[to] = value;
                    }
                    (Some(from), None) => {
                        sorted.copy_within(from + 1..*len, from);
                        *len -= 1;
                    }
                    (None, Some(to)) => {
                        sorted.copy_within(to..*len, to + 1);
                        sorted[to] = value;
                        *len += 1;
                    }
                    (None, None) => {}
                }
                Ok(())
            }
            Store::TableSliding { queue, table } => {
                let bucket = if value.is_nan() { NULL } else { table.bucket(value) };
                let oldest = std::mem::replace(&mut queue[index], bucket);
                if oldest != NULL {
                    table.remove_bucket(oldest);
                }
                if bucket == NULL { Ok(()) } else { table.insert_bucket(bucket) }
            }
            Store::Exact { .. } | Store::Table(_) => Ok(()),
        }
    }

    fn quantile(&mut self, level: f64) -> f64 {
        match self {
            Store::Exact { values, len } => select(&mut values[..*len], level),
            Store::ExactSliding { sorted, len, .. } => {
                let Some((rank, fraction)) = position(*len, level) else { return f64::NAN };
                interpolate(sorted[rank], sorted[(rank + 1).min(*len - 1)], fraction)
            }
            Store::Table(table) | Store::TableSliding { table, .. } => table.quantile(level).unwrap_or(f64::NAN),
        }
    }
}

/// Returns the place of a value in a sorted slice: before the first value that is not less.
fn place(sorted: &[f64], value: f64) -> usize {
    sorted.partition_point(|known| known.total_cmp(&value).is_lt())
}

/// Returns the rank below a quantile, counted from 0, and the fraction of the way to the next rank.
fn position(len: usize, level: f64) -> Option<(usize, f64)> {
    let last = len.checked_sub(1)?;
    let position = level * last as f64;
    let rank = (position as usize).min(last);
    Some((rank, position - rank as f64))
}

/// Returns a quantile by selection. Changes the order of the values.
fn select(values: &mut [f64], level: f64) -> f64 {
    let Some((rank, fraction)) = position(values.len(), level) else { return f64::NAN };
    let (_, low, above) = values.select_nth_unstable_by(rank, f64::total_cmp);
    let low = *low;
    let next = if fraction == 0.0 { None } else { above.iter().copied().reduce(f64::min) };
    interpolate(low, next.unwrap_or(low), fraction)
}
