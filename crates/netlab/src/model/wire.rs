//! One segment after the other, at a rate.

use super::ns_for;

/// What sends segments at a rate, without rounding errors that add up.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    /// Without, everything is sent at once.
    rate_bits_per_s: Option<u64>,
    /// When it is done with what it was given, in whole nanoseconds.
    pub free_ns: u64,
    /// What of that nanosecond is left: less than the rate.
    spare_nanobits: u128,
}

impl Wire {
    pub fn new(rate_bits_per_s: Option<u64>) -> Self {
        Self { rate_bits_per_s, free_ns: 0, spare_nanobits: 0 }
    }

    /// Begins to send a segment, once it is free, and says when it is done.
    pub fn send(&mut self, begins_ns: u64, nanobits: u128) -> u64 {
        // What is left of a nanosecond is for the segment that follows at once.
        let spare = if begins_ns == self.free_ns { self.spare_nanobits } else { 0 };
        self.free_ns = begins_ns;
        if let Some(rate) = self.rate_bits_per_s {
            let needed = nanobits.saturating_sub(spare);
            let takes_ns = ns_for(needed, rate);
            self.free_ns = begins_ns.saturating_add(takes_ns);
            // Less than nothing only at the end of time.
            self.spare_nanobits = (u128::from(takes_ns) * u128::from(rate) + spare).saturating_sub(nanobits);
        }
        self.free_ns
    }
}
