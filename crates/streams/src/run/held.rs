//! Joins with the latest value of another series.

use super::RunError;
use super::arithmetic::operated;
use super::memory::filled;
use super::state::Slot;
use crate::count::Count;
use crate::expression::Binary;

/// The held value of a join, and the numbers of values so far.
#[derive(Clone, Debug)]
pub(crate) struct HeldState {
    /// The held value: one number for each lane.
    held: Box<[f64]>,
    /// Number of values of the series that sets the pace.
    paced: u64,
    /// Number of values of the held series.
    updates: u64,
}

/// The order of the values of both series.
pub(crate) enum Order<'a> {
    /// Both series have a counting function of the same clock.
    Counts { pace: &'a Count, held: &'a Count },
    /// The numbers of the observations are series of their own.
    Numbers { pace: &'a [f64], held: &'a [f64] },
    /// The series have different clocks: all new held values come first.
    Blocks,
}

impl HeldState {
    pub fn new(lanes: usize) -> Result<HeldState, RunError> {
        Ok(HeldState { held: filled(lanes, f64::NAN)?, paced: 0, updates: 0 })
    }

    /// Replaces each value of `output` by the result with the latest held value.
    pub fn process<const L: usize>(
        &mut self,
        operator: Binary,
        factor: f64,
        is_held_first: bool,
        output: &mut Slot,
        held: &Slot,
        order: &Order,
    ) {
        let mut next = 0;
        let mut latest: [f64; L] = std::array::from_fn(|lane| self.held[lane]);
        let value_at = |index: usize| std::array::from_fn(|lane| held.values[lane][index]);
        let number_of_update = |next: usize, updates: u64| match order {
            Order::Counts { held, .. } => held.observation_of(updates + next as u64) as f64,
            Order::Numbers { held, .. } => held[next],
            Order::Blocks => 0.0,
        };
        let mut next_number = if held.len > 0 { number_of_update(0, self.updates) } else { f64::INFINITY };
        for index in 0..output.len {
            let number = match order {
                Order::Counts { pace: Count::Source, .. } => (self.paced + index as u64) as f64,
                Order::Counts { pace, .. } => pace.observation_of(self.paced + index as u64) as f64,
                Order::Numbers { pace, .. } => pace[index],
                Order::Blocks => 0.0,
            };
            while next_number <= number {
                latest = value_at(next);
                next += 1;
                next_number = if next < held.len { number_of_update(next, self.updates) } else { f64::INFINITY };
            }
            let value: [f64; L] = std::array::from_fn(|lane| output.values[lane][index]);
            let result = match is_held_first {
                true => operated(operator, factor, latest, value),
                false => operated(operator, factor, value, latest),
            };
            (0..L).for_each(|lane| output.values[lane][index] = result[lane]);
        }
        if next < held.len {
            latest = value_at(held.len - 1);
        }
        self.held.copy_from_slice(&latest);
        self.paced += output.len as u64;
        self.updates += held.len as u64;
    }
}
