//! Sequential tests, confidence sequences and exact bounds for Bernoulli claims.
//!
//! A claim says that something succeeds at a rate of at least `p0`. Its trials come in one by one, one looks at them as
//! often as one likes, and stops when the evidence suffices:
//!
//! ```
//! use ascertain_stats::{Judge, Verdict};
//!
//! let mut judge = Judge::new(0.5, 0.001)?;
//! let mut outcomes = std::iter::repeat([true, true, true, true, false]).flatten();
//! while judge.observe(outcomes.next().unwrap()).is_none() {}
//! assert_eq!(judge.verdict(), Some(Verdict::Holds));
//! # Ok::<(), ascertain_stats::Error>(())
//! ```
//!
//! | for | take |
//! |---|---|
//! | a claim whose trials come in | [`Judge`], with a margin [`MarginJudge`] |
//! | which of two is faster, from pairs of times | [`OrderJudge`] |
//! | a count that exists or that others keep | [`verdict()`], [`log_e_holds`], [`log_e_refuted`] |
//! | which rates are possible | [`RateSequence`], [`rate_interval`]; after one look [`credible_interval`] |
//! | a p-value that can only be sampled, as by reshuffling | [`BettingTest`] |
//! | the published criterion of Robbins, to compare with | [`csm_verdict`], [`csm_interval`], [`log_level`] |
//! | between which values a quantile lies | [`quantile_ranks`] |
//! | a summary of many values in little memory | [`Moments`], [`StreamQuantiles`] |
//! | how long it will take | [`power()`], [`power_growth`], [`expected_growth`], [`soonest`], [`soonest_verdict`], [`soonest_order_verdict`] |
//!
//! # Guarantee
//!
//! All but the credible interval are valid at every trial at once: the chance that a verdict or an interval is *ever*
//! wrong is at most its error, whoever looks and whenever they stop. That is exact arithmetic's guarantee and survives
//! rounding: each bound is rounded to the safe side.
//!
//! This crate is probability only: no input or output, clock, threads or random numbers.

mod betting;
mod boundary;
mod csm;
mod deviance;
mod double_double;
mod eprocess;
mod error;
mod incomplete_beta;
mod interval;
mod judge;
mod magnitude;
mod margin;
mod moments;
mod order;
mod power;
mod quantile;
mod rate;
mod root;
mod stream_quantiles;
mod tally;

pub use betting::{BettingDecision, BettingTest, betting_log_wealth};
pub use csm::{csm_interval, csm_verdict, log_level};
pub use deviance::{bd0, binomial_deviance, excess, log_binomial, stirling_remainder};
pub use eprocess::{expected_growth, log_e_holds, log_e_refuted};
pub use error::Error;
pub use interval::{Interval, RateSequence, credible_interval, rate_interval};
pub use judge::{Judge, Verdict, soonest, soonest_verdict, verdict};
pub use margin::MarginJudge;
pub use moments::Moments;
pub use order::{OrderJudge, soonest_order_verdict};
pub use power::{Power, PowerGrowth, power, power_growth};
pub use quantile::{QuantileRanks, median_sorted, quantile_ranks, quantile_sorted};
pub use stream_quantiles::StreamQuantiles;
pub use tally::Tally;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
