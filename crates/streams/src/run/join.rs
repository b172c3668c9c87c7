//! Joins of two series by index.

use super::RunError;
use super::arithmetic::joined;
use super::ring::Ring;
use super::state::Slot;
use crate::graph::Joined;

/// The values of a join that wait for their partners.
#[derive(Clone, Debug)]
pub(crate) struct JoinState {
    /// One ring for each lane. All values in it are of the side that is ahead.
    rings: [Ring; 2],
    /// The side that is ahead.
    ahead: usize,
    /// The number of times that the first value in the ring was already used.
    taken: u64,
    capacity: u64,
    results: u64,
}

/// A side of a join while a block is processed.
struct Side<'a> {
    /// The slot of the side; `None` if it is the slot of the results.
    slot: Option<&'a Slot>,
    /// The number of times that each value is used.
    factor: u64,
    /// Index of the next value of the block.
    next: usize,
    /// The number of times that the next value was already used.
    taken: u64,
}

impl JoinState {
    pub fn new(capacity: u64, lanes: usize) -> Result<JoinState, RunError> {
        let second = if lanes == 2 { Ring::new(capacity)? } else { Ring::default() };
        Ok(JoinState { rings: [Ring::new(capacity)?, second], ahead: 0, taken: 0, capacity, results: 0 })
    }

    /// Returns the side of the values that wait.
    pub fn ahead(&self) -> usize {
        self.ahead
    }

    /// Returns whether values wait.
    pub fn has_waiting(&self) -> bool {
        self.rings[0].len() > 0
    }

    /// Returns the number of further values that can wait.
    pub fn room(&self) -> u64 {
        self.capacity - self.rings[0].len() as u64
    }

    /// Returns the number of results so far.
    pub fn results(&self) -> u64 {
        self.results
    }

    /// Returns the number of values that wait, counted after they are repeated, if they are of this side.
    pub fn waiting(&self, side: usize, factor: u64) -> u64 {
        if self.ahead == side { self.rings[0].len() as u64 * factor - self.taken } else { 0 }
    }

    /// Joins the values of two slots, after those that wait. The results replace the values of `output`, which is also
    /// the slot of the side without a slot.
    pub fn process<const L: usize>(
        &mut self,
        operator: Joined,
        factor: f64,
        output: &mut Slot,
        slots: [Option<&Slot>; 2],
        factors: [u64; 2],
    ) -> Result<(), RunError> {
        let taken = std::mem::take(&mut self.taken);
        let mut sides = [0, 1].map(|side| Side {
            slot: slots[side],
            factor: factors[side],
            next: 0,
            taken: if side == self.ahead { taken } else { 0 },
        });
        let block = output.len;
        let available = [0, 1].map(|side| {
            let waiting = if side == self.ahead { self.rings[0].len() } else { 0 };
            let fresh = sides[side].slot.map_or(block, |slot| slot.len);
            (waiting + fresh) as u64 * sides[side].factor - sides[side].taken
        });
        let results = available[0].min(available[1]) as usize;
        let is_direct = self.rings[0].len() == 0 && factors == [1, 1];
        if is_direct {
            direct::<L>(operator, factor, output, slots, results);
            sides.iter_mut().for_each(|side| side.next = results);
        } else {
            // The values of the output's own side leave through the ring if values of that side wait.
            let queued = sides
                .iter()
                .position(|side| side.slot.is_none())
                .filter(|side| *side == self.ahead && self.rings[0].len() > 0);
            for index in 0..results {
                let [first, second] = &mut sides;
                let a = self.take::<L>(0, first, output, block, queued == Some(0));
                let b = self.take::<L>(1, second, output, block, queued == Some(1));
                let result = joined(operator, factor, a, b);
                (0..L).for_each(|lane| output.values[lane][index] = result[lane]);
            }
        }
        self.results += results as u64;
        output.len = results;
        (0..2).try_for_each(|side| self.keep::<L>(side, &sides[side], output, block))
    }

    /// Returns the next value of a side.
    #[inline(always)]
    fn take<const L: usize>(
        &mut self,
        index: usize,
        side: &mut Side,
        output: &Slot,
        block: usize,
        is_queued: bool,
    ) -> [f64; L] {
        let is_waiting = index == self.ahead && self.rings[0].len() > 0;
        let slot = side.slot.unwrap_or(output);
        let value = match is_waiting {
            true => std::array::from_fn(|lane| self.rings[lane].front()),
            false => std::array::from_fn(|lane| slot.values[lane][side.next]),
        };
        side.taken += 1;
        if side.taken < side.factor {
            return value;
        }
        side.taken = 0;
        if is_waiting {
            self.rings[..L].iter_mut().for_each(Ring::pop);
        } else {
            side.next += 1;
        }
        if is_queued && side.next < block {
            (0..L).for_each(|lane| self.rings[lane].push(slot.values[lane][side.next]));
            side.next += 1;
        }
        value
    }

    /// Keeps the values of a side that have no partner yet.
    fn keep<const L: usize>(&mut self, index: usize, side: &Side, output: &Slot, block: usize) -> Result<(), RunError> {
        let slot = side.slot.unwrap_or(output);
        let len = side.slot.map_or(block, |slot| slot.len);
        let was_ahead = index == self.ahead && self.rings[0].len() > 0;
        if side.next == len && !was_ahead {
            return Ok(());
        }
        self.ahead = index;
        self.taken = side.taken;
        for at in side.next..len {
            if self.rings[0].is_full() {
                self.taken = if self.rings[0].len() == 0 { 0 } else { self.taken };
                return Err(RunError::BufferFull { values: self.capacity, results: self.results });
            }
            (0..L).for_each(|lane| self.rings[lane].push(slot.values[lane][at]));
        }
        Ok(())
    }
}

/// Joins values one to one, from the start of both slots.
fn direct<const L: usize>(operator: Joined, factor: f64, output: &mut Slot, slots: [Option<&Slot>; 2], results: usize) {
    // Each operator has its own loop, which the compiler can turn into vector instructions.
    macro_rules! for_each_operator {
        ($($operator:pat => $constant:expr),*) => {
            match operator { $($operator => loop_of::<L>($constant, factor, output, slots, results),)* }
        };
    }
    use crate::expression::Binary::{Add, Divide, Multiply, Subtract};
    use Joined::{Later, Operator, Select};
    for_each_operator!(
        Operator(Add) => Operator(Add),
        Operator(Subtract) => Operator(Subtract),
        Operator(Multiply) => Operator(Multiply),
        Operator(Divide) => Operator(Divide),
        Select => Select,
        Later => Later,
        Operator(other) => Operator(other)
    );
}

#[inline(always)]
fn loop_of<const L: usize>(
    operator: Joined,
    factor: f64,
    output: &mut Slot,
    slots: [Option<&Slot>; 2],
    results: usize,
) {
    if L == 1 {
        let values = &mut output.values[0][..results];
        match slots {
            [None, Some(second)] => {
                let second = &second.values[0][..results];
                values.iter_mut().zip(second).for_each(|(a, b)| [*a] = joined(operator, factor, [*a], [*b]));
            }
            [Some(first), None] => {
                let first = &first.values[0][..results];
                first.iter().zip(values).for_each(|(a, b)| [*b] = joined(operator, factor, [*a], [*b]));
            }
            [Some(first), Some(second)] => {
                let both = first.values[0][..results].iter().zip(&second.values[0][..results]);
                values.iter_mut().zip(both).for_each(|(result, (a, b))| {
                    [*result] = joined(operator, factor, [*a], [*b]);
                });
            }
            [None, None] => {}
        }
        return;
    }
    for index in 0..results {
        let [a, b] = slots.map(|slot| {
            let values = &slot.unwrap_or(output).values;
            std::array::from_fn::<f64, L, _>(|lane| values[lane][index])
        });
        let result = joined(operator, factor, a, b);
        (0..L).for_each(|lane| output.values[lane][index] = result[lane]);
    }
}
