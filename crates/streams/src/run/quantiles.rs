//! Quantiles of windows: exact by selection up to 16,384 values, and from a flat table above.

use super::RunError;
use super::cursor::SlidingCursor;
use super::memory::filled;
use super::state::Sketch;
use super::window::{Collected, DisjointPlace};
use crate::table::{FlatTable, interpolate};

/// Bucket number that stands for a null in the queue of a sliding window.
const NULL: u32 = u32::MAX;

/// A quantile of windows.
#[derive(Clone, Debug)]
pub(crate) struct QuantileWindow {
    place: Place,
    values: Values,
}

/// The values of a window, of which a quantile is wanted.
#[derive(Clone, Debug)]
struct Values {
    level: f64,
    store: Store,
}

/// The place in a series of windows.
#[derive(Clone, Debug)]
enum Place {
    Disjoint(DisjointPlace),
    Sliding {
        length: u64,
        step: u64,
        /// Values of the current window so far.
        place: u64,
        /// The place of the oldest value in the store.
        index: usize,
    },
}

#[derive(Clone, Debug)]
enum Store {
    Exact { values: Box<[f64]>, len: usize },
    ExactSliding(SlidingCursor),
    Table(FlatTable),
    TableSliding { queue: Box<[u32]>, table: FlatTable },
}

impl QuantileWindow {
    pub fn new(level: f64, length: u64, step: u64, sketch: Sketch) -> Result<QuantileWindow, RunError> {
        let store = match sketch {
            Sketch::Exact { values } => Store::Exact { values: filled(values as usize, 0.0)?, len: 0 },
            Sketch::ExactSliding { values } => Store::ExactSliding(SlidingCursor::new(values)?),
            Sketch::Table { is_signed, carries } => Store::Table(FlatTable::new(is_signed, carries as usize)?),
            Sketch::TableSliding { is_signed, carries, values } => Store::TableSliding {
                queue: filled(values as usize, NULL)?,
                table: FlatTable::new(is_signed, carries as usize)?,
            },
        };
        let place = match step < length {
            true => Place::Sliding { length, step, place: 0, index: 0 },
            false => Place::Disjoint(DisjointPlace::new(length, step)),
        };
        Ok(QuantileWindow { place, values: Values { level, store } })
    }

    /// Replaces the first values of the slice by the results. Returns their number.
    pub fn process(&mut self, values: &mut [f64]) -> Result<usize, RunError> {
        let window = &mut self.values;
        let (length, step, place, index) = match &mut self.place {
            Place::Disjoint(place) => return place.process(values, window),
            Place::Sliding { length, step, place, index } => (*length, *step, place, index),
        };
        let mut results = 0;
        for at in 0..values.len() {
            window.store.replace(*index, values[at])?;
            *index += 1;
            if *index as u64 == length {
                *index = 0;
            }
            *place += 1;
            if *place == length {
                // The next result is due after another step.
                *place -= step;
                values[results] = window.store.quantile(window.level);
                results += 1;
            }
        }
        Ok(results)
    }

    /// Replaces each value by the quantile of all values up to it.
    pub fn running(&mut self, values: &mut [f64]) -> Result<(), RunError> {
        let Values { level, store } = &mut self.values;
        for value in values {
            if let Store::Table(table) = store
                && !value.is_nan()
            {
                table.insert(*value)?;
            }
            *value = store.quantile(*level);
        }
        Ok(())
    }
}

impl Collected for Values {
    fn extend(&mut self, values: &[f64]) -> Result<(), RunError> {
        match &mut self.store {
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
            Store::Table(table) => table.extend(values),
            Store::ExactSliding(_) | Store::TableSliding { .. } => Ok(()),
        }
    }

    fn take(&mut self) -> f64 {
        let quantile = self.store.quantile(self.level);
        match &mut self.store {
            Store::Exact { len, .. } => *len = 0,
            Store::Table(table) => table.clear(),
            Store::ExactSliding(_) | Store::TableSliding { .. } => {}
        }
        quantile
    }
}

impl Store {
    /// Adds a value to a sliding window in the place of the oldest one.
    fn replace(&mut self, index: usize, value: f64) -> Result<(), RunError> {
        match self {
            Store::ExactSliding(cursor) => {
                cursor.replace(index, value);
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
            Store::ExactSliding(cursor) => cursor.quantile(level),
            Store::Table(table) | Store::TableSliding { table, .. } => table.quantile(level).unwrap_or(f64::NAN),
        }
    }
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
