//! A queue in a buffer of fixed size.

use super::RunError;
use super::memory::filled;

/// A queue of values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    values: Box<[f64]>,
    head: usize,
    len: usize,
}

impl Ring {
    pub fn new(capacity: u64) -> Result<Ring, RunError> {
        Ok(Ring { values: filled(capacity as usize, 0.0)?, head: 0, len: 0 })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_full(&self) -> bool {
        self.len == self.values.len()
    }

    /// Adds a value at the end. The caller ensures that the ring is not full.
    pub fn push(&mut self, value: f64) {
        let mut at = self.head + self.len;
        if at >= self.values.len() {
            at -= self.values.len();
        }
        self.values[at] = value;
        self.len += 1;
    }

    /// Returns the first value. The caller ensures that there is one.
    pub fn front(&self) -> f64 {
        self.values[self.head]
    }

    /// Removes the first value. The caller ensures that there is one.
    pub fn pop(&mut self) {
        self.head += 1;
        if self.head == self.values.len() {
            self.head = 0;
        }
        self.len -= 1;
    }

    /// Exchanges values in a ring that is always full: each of the values is replaced by the one that was in the ring
    /// for longest.
    pub fn exchange(&mut self, values: &mut [f64]) {
        let mut rest = values;
        while !rest.is_empty() {
            let most = rest.len().min(self.values.len() - self.head);
            let (now, later) = rest.split_at_mut(most);
            now.swap_with_slice(&mut self.values[self.head..self.head + most]);
            self.head += most;
            if self.head == self.values.len() {
                self.head = 0;
            }
            rest = later;
        }
    }

    /// Fills the ring with copies of a value.
    pub fn fill(&mut self, value: f64) {
        self.values.fill(value);
        (self.head, self.len) = (0, self.values.len());
    }
}
