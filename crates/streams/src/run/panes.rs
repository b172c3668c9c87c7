//! Aggregates of windows of time. Each window consists of panes, whose aggregates are merged.

use super::RunError;
use super::accumulator::{Accumulator, add, merge, reset, result};
use super::memory::filled;
use crate::graph::Aggregate;
use crate::table::FlatTable;

/// Room for full counters in the table of a pane: enough for 67 million values.
const CARRIES_OF_PANE: u64 = 1 << 10;
/// Room for full counters in a table whose number of values is not known: enough for 10^9 values.
const CARRIES: u64 = 1 << 14;

/// Returns the room for full counters in a table whose number of values is not known. With `is_endless`, it is never
/// full.
pub(crate) fn carries(is_signed: bool, is_endless: bool) -> u64 {
    if is_endless { FlatTable::buckets(is_signed) } else { CARRIES }
}

fn carries_of_pane(is_signed: bool, is_endless: bool) -> u64 {
    if is_endless { FlatTable::buckets(is_signed) } else { CARRIES_OF_PANE }
}

/// The aggregate of a window of time, as a step of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Panes {
    aggregate: Aggregate,
    step_ns: f64,
    /// Number of observations in each pane, with nulls. The pane with number p is at p modulo the length.
    observations: Box<[u32]>,
    store: Store,
    /// The number of the pane of the latest observation, and of the first pane.
    current: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
enum Store {
    /// The states of the panes, one after another, and that of the merged window.
    Numbers(Box<[f64]>),
    Tables {
        panes: Box<[FlatTable]>,
        merged: FlatTable,
    },
    /// Only the value after the window is needed.
    Nothing,
}

impl Panes {
    /// Returns the size of the memory in bytes.
    pub fn bytes(aggregate: Aggregate, panes: u64, is_signed: bool, is_endless: bool) -> u64 {
        let observations = panes.saturating_mul(4);
        let store = match aggregate {
            Aggregate::Closing => 0,
            Aggregate::Quantile(_) => {
                let carries = carries_of_pane(is_signed, is_endless);
                let pane = FlatTable::bytes(is_signed, carries) + size_of::<FlatTable>() as u64;
                let merged = FlatTable::bytes(is_signed, self::carries(is_signed, is_endless));
                pane.saturating_mul(panes).saturating_add(merged)
            }
            aggregate => (panes + 1).saturating_mul(8 * Accumulator::numbers(aggregate)),
        };
        observations.saturating_add(store)
    }

    /// Allocates the panes. With `is_endless`, their quantile tables are never full.
    pub fn new(
        aggregate: Aggregate,
        panes: u64,
        step_ns: u64,
        is_signed: bool,
        is_endless: bool,
    ) -> Result<Panes, RunError> {
        let store = match aggregate {
            Aggregate::Closing => Store::Nothing,
            Aggregate::Quantile(_) => {
                let mut tables = Vec::with_capacity(panes as usize);
                let carries = carries_of_pane(is_signed, is_endless) as usize;
                for _ in 0..panes {
                    tables.push(FlatTable::new(is_signed, carries)?);
                }
                let merged = FlatTable::new(is_signed, self::carries(is_signed, is_endless) as usize)?;
                Store::Tables { panes: tables.into_boxed_slice(), merged }
            }
            aggregate => {
                let numbers = Accumulator::numbers(aggregate) as usize;
                let mut states = filled((panes as usize + 1) * numbers, 0.0)?;
                states.chunks_exact_mut(numbers).for_each(|state| reset(aggregate, state));
                Store::Numbers(states)
            }
        };
        let observations = filled(panes as usize, 0)?;
        Ok(Panes { aggregate, step_ns: step_ns as f64, observations, store, current: None })
    }

    /// Adds observations at these times, and writes the results of all windows that end before them. Windows without
    /// observations have no result. Returns the number of results.
    pub fn process(&mut self, values: &[f64], times: &[f64], results: &mut [f64]) -> Result<usize, RunError> {
        let mut written = 0;
        for (value, time) in values.iter().zip(times) {
            let pane = (time / self.step_ns) as u64;
            let (current, first) = *self.current.get_or_insert((pane, pane));
            // Times come in order; a time that goes back counts for the current pane.
            let pane = pane.max(current);
            let length = self.observations.len() as u64;
            // After `length` panes without observations, all panes are empty.
            for closed in current..pane.min(current.saturating_add(length)) {
                let is_whole = closed + 1 >= first + length;
                if is_whole && self.observations.iter().any(|observations| *observations > 0) {
                    results[written] = self.result(*value)?;
                    written += 1;
                }
                self.clear(((closed + 1) % length) as usize);
            }
            if pane > current {
                let at = (pane % length) as usize;
                self.clear(at);
            }
            self.current = Some((pane, first));
            self.insert((pane % length) as usize, *value)?;
        }
        Ok(written)
    }

    fn insert(&mut self, pane: usize, value: f64) -> Result<(), RunError> {
        self.observations[pane] = self.observations[pane].saturating_add(1);
        match &mut self.store {
            Store::Numbers(states) => {
                let numbers = Accumulator::numbers(self.aggregate) as usize;
                add(self.aggregate, &mut states[pane * numbers..][..numbers], value);
                Ok(())
            }
            Store::Tables { panes, .. } if !value.is_nan() => panes[pane].insert(value),
            Store::Tables { .. } | Store::Nothing => Ok(()),
        }
    }

    fn clear(&mut self, pane: usize) {
        self.observations[pane] = 0;
        match &mut self.store {
            Store::Numbers(states) => {
                let numbers = Accumulator::numbers(self.aggregate) as usize;
                reset(self.aggregate, &mut states[pane * numbers..][..numbers]);
            }
            Store::Tables { panes, .. } => panes[pane].clear(),
            Store::Nothing => {}
        }
    }

    /// Returns the aggregate of all panes. `closing` is the value that follows the window.
    fn result(&mut self, closing: f64) -> Result<f64, RunError> {
        match (&mut self.store, self.aggregate) {
            (Store::Nothing, _) => Ok(closing),
            (Store::Numbers(states), aggregate) => {
                let numbers = Accumulator::numbers(aggregate) as usize;
                let (panes, merged) = states.split_at_mut(self.observations.len() * numbers);
                reset(aggregate, merged);
                panes.chunks_exact(numbers).for_each(|pane| merge(aggregate, merged, pane));
                Ok(result(aggregate, merged))
            }
            (Store::Tables { panes, merged }, aggregate) => {
                let Aggregate::Quantile(level) = aggregate else { return Ok(f64::NAN) };
                merged.clear();
                panes.iter().try_for_each(|pane| merged.merge(pane))?;
                Ok(merged.quantile(level).unwrap_or(f64::NAN))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two thousand counters are full, which is more than the pane of a recorded series has room for.
    #[test]
    fn panes_of_an_endless_series_are_never_full() {
        let fill = |is_endless: bool| {
            let mut panes = Panes::new(Aggregate::Quantile(0.5), 1, 10, false, is_endless).unwrap();
            let Store::Tables { panes: tables, .. } = &mut panes.store else { panic!("a quantile needs tables") };
            let filled = (0..2000).try_for_each(|value| tables[0].insert_times(1.01_f64.powi(value), 1 << 16));
            panes.observations[0] = 1;
            panes.current = Some((0, 0));
            let mut results = [0.0];
            filled.and_then(|()| panes.process(&[1.0], &[10.0], &mut results)).map(|count| (count, results[0]))
        };
        assert!(matches!(fill(false), Err(RunError::TableFull { .. })));
        let (count, median) = fill(true).unwrap();
        assert!(count == 1 && median > 1.01_f64.powi(998) && median < 1.01_f64.powi(1001), "{median}");
    }
}
