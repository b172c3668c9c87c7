//! The permutation test: do samples that exist already come from one distribution?
//!
//! If they do, it was chance that dealt out the pooled values to the samples, and any other way to deal them out was just as
//! likely. So the values are dealt out anew, again and again (a *reshuffle*), and the share of reshuffles in which the
//! samples differ at least as much as they really do (an *exceedance*) is the p-value. That is exact for every distribution,
//! sample size and statistic. It needs the values to be exchangeable under the null hypothesis: independent draws are,
//! values that drift or that depend on their neighbours are not.
//!
//! ```
//! use ascertain::permutation::{Budget, Decision, Method, Question, Reshuffles, Sample, decide};
//!
//! let a = Sample::new("a", (0..50).map(f64::from).collect());
//! let b = Sample::new("b", (0..60).map(|i| f64::from(i) + 20.0).collect());
//! let mut reshuffles = Reshuffles::new(vec![a, b], &Question::default(), 42)?;
//! assert_eq!(reshuffles.observed().value, 25.0);
//! let conclusion = decide(&mut reshuffles, Method::Betting { alpha: 0.05 }, &Budget::default(), &mut |_| true)?;
//! assert_eq!(conclusion.decision, Decision::Different);
//! # Ok::<(), ascertain::permutation::Error>(())
//! ```
//!
//! # What the null hypothesis may say
//!
//! Of two samples, that the second is distributed as the first one scaled and then shifted ([`Null`]). That is undone on the
//! second sample, the values are pooled and reshuffled, and it is done again before the statistics are compared. A two-sided
//! test asks how far the comparison is from what the null hypothesis expects: a difference from `0`, or from the shift; a
//! ratio from `1`, or from the scale, on a logarithmic scale.
//!
//! # Rounding
//!
//! Reshuffles that tie with the data count as exceedances, and rounding must not undo a tie: the same values added up in
//! another order, or `0.3 − 0.2` against `0.2 − 0.1`. So each statistic comes with a bound of its rounding error, where each
//! value is taken to be known to half a unit in its last place, and a reshuffle is an exceedance unless it certainly differs
//! less than the data. That can only make a p-value larger.
//!
//! # Speed
//!
//! For two samples a reshuffle is a bit mask over pooled values that stay where they are: random bits, made an exactly
//! uniform subset of the second sample's size. Means and standard deviations then are masked sums, quantiles ranks in the
//! mask. Three samples and more are really shuffled; that is also the reference that the mask is tested against.

mod column;
mod contrast;
mod decide;
mod enclosure;
mod error;
mod precision;
mod question;
mod recorded;
mod reshuffles;
mod shuffled;
mod subset;
mod subset_statistics;

#[cfg(test)]
mod tests;

pub use column::{Column, read_column};
pub use decide::{Budget, Conclusion, Decision, End, Method, Progress, decide};
pub use error::{ColumnError, Error};
pub use question::{Alternative, Comparison, Null, Question, Sample, Statistic};
pub use recorded::{RecordedSample, read_recorded};
pub use reshuffles::{Observed, Reshuffle, Reshuffles, Technique};
pub use subset::RandomSubset;
