//! Each verdict as one plain sentence.
//!
//! A sentence says what was seen, what follows from it, and how sure that is. What follows is about the
//! rate while it was measured: a verdict does not speak of other times or machines.

use ascertain::outcome::{ClaimResult, LeftOut};

use crate::text::plain;

pub(crate) mod marked;
mod order;

/// The verdict on a claim as one plain sentence, and the reason where there is one. Names are between
/// backticks.
///
/// ```text
/// Holds: `kahan` was at least 8 times as fast as `naive` in 17 of 18 trials, so while it was measured
/// this was true at least half of the time, wrong with a chance of at most 0.00003; at the median it was
/// 9.1 times as fast (8.9 to 9.3).
/// ```
pub fn claim(claim: &ClaimResult) -> String {
    plain(&marked::claim(claim))
}

/// What speaks against the trials being alike and what that means for the reader; `None` where nothing
/// does.
pub fn warning(claim: &ClaimResult) -> Option<String> {
    marked::warning(claim).as_deref().map(plain)
}

/// Why an arm that was asked for has no figures.
pub fn left_out(arm: &LeftOut) -> String {
    plain(&marked::left_out(arm))
}
