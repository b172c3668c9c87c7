//! Aggregates of values that are added one by one and never removed.

use super::RunError;
use super::memory::filled;
use crate::graph::Aggregate;

/// An aggregate so far. Nulls are left out.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    kind: Aggregate,
    state: Box<[f64]>,
}

impl Accumulator {
    /// Returns the number of numbers that the aggregate keeps.
    pub fn numbers(kind: Aggregate) -> u64 {
        match kind {
            Aggregate::Mean => 3,
            Aggregate::Sum => 2,
            _ => 1,
        }
    }

    pub fn new(kind: Aggregate) -> Result<Accumulator, RunError> {
        let mut accumulator = Accumulator { kind, state: filled(Accumulator::numbers(kind) as usize, 0.0)? };
        reset(kind, &mut accumulator.state);
        Ok(accumulator)
    }

    /// Replaces each value by the aggregate of all values up to it.
    pub fn running(&mut self, values: &mut [f64]) {
        for value in values {
            add(self.kind, &mut self.state, *value);
            *value = result(self.kind, &self.state);
        }
    }

    /// Adds all values.
    pub fn extend(&mut self, values: &[f64]) {
        match (self.kind, &mut *self.state) {
            (Aggregate::Min, [least]) => *least = values.iter().fold(*least, |least, value| least.min(*value)),
            (Aggregate::Max, [most]) => *most = values.iter().fold(*most, |most, value| most.max(*value)),
            (Aggregate::Count, [count]) => *count += values.iter().filter(|value| !value.is_nan()).count() as f64,
            (kind, state) => values.iter().for_each(|value| add(kind, state, *value)),
        }
    }

    /// Returns the aggregate and removes all values.
    pub fn take(&mut self) -> f64 {
        let value = result(self.kind, &self.state);
        reset(self.kind, &mut self.state);
        value
    }
}

/// Sets the state of an aggregate without values.
pub(crate) fn reset(kind: Aggregate, state: &mut [f64]) {
    state.fill(match kind {
        Aggregate::Count | Aggregate::Mean => 0.0,
        _ => f64::NAN,
    });
    if kind == Aggregate::Sum {
        state[1] = 0.0;
    }
}

/// Adds a value, unless it is null.
pub(crate) fn add(kind: Aggregate, state: &mut [f64], value: f64) {
    match (kind, state) {
        (_, state) if value.is_nan() => debug_assert!(!state.is_empty()),
        (Aggregate::Min, [least]) => *least = least.min(value),
        (Aggregate::Max, [most]) => *most = most.max(value),
        (Aggregate::Count, [count]) => *count += 1.0,
        (Aggregate::Mean, [sum, lost, count]) => {
            *count += 1.0;
            add_exactly(sum, lost, value);
        }
        // The state `lost` is NaN as soon as the sum is not a number.
        (Aggregate::Sum, [sum, lost]) if sum.is_nan() && !lost.is_nan() => *sum = value,
        (Aggregate::Sum, [sum, lost]) => add_exactly(sum, lost, value),
        _ => {}
    }
}

/// Adds a value to a sum, and the rounding error to `lost`.
fn add_exactly(sum: &mut f64, lost: &mut f64, value: f64) {
    let total = *sum + value;
    let added = total - *sum;
    *lost += (*sum - (total - added)) + (value - added);
    *sum = total;
}

/// Returns the aggregate, or null if it has no values.
pub(crate) fn result(kind: Aggregate, state: &[f64]) -> f64 {
    let total = |sum: f64, lost: f64| if sum.is_finite() { sum + lost } else { sum };
    match (kind, state) {
        (Aggregate::Mean, [sum, lost, count]) => total(*sum, *lost) / count,
        (Aggregate::Sum, [sum, lost]) => total(*sum, *lost),
        (_, [value, ..]) => *value,
        _ => f64::NAN,
    }
}

/// Adds the values of another state of the same aggregate.
pub(crate) fn merge(kind: Aggregate, state: &mut [f64], other: &[f64]) {
    match (kind, state, other) {
        (Aggregate::Count, [count], [more]) => *count += more,
        (Aggregate::Mean, [sum, lost, count], [other_sum, other_lost, more]) => {
            *count += more;
            add_exactly(sum, lost, *other_sum);
            *lost += other_lost;
        }
        (Aggregate::Sum, _, [other_sum, other_lost]) if other_sum.is_nan() && !other_lost.is_nan() => {}
        (Aggregate::Sum, state, [other_sum, other_lost]) => {
            if state[0].is_nan() && !state[1].is_nan() {
                state[0] = *other_sum;
            } else {
                let [sum, lost] = state else { return };
                add_exactly(sum, lost, *other_sum);
            }
            state[1] += other_lost;
        }
        (kind, state, other) => add(kind, state, other[0]),
    }
}
