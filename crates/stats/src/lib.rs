//! Sequential tests, confidence sequences and exact bounds for Bernoulli claims.
//!
//! A claim states that something succeeds at a rate of at least `p0`. Its trials come in one by one. You may look at
//! them as often as you like, and stop when there is enough evidence:
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
//! | purpose | item |
//! |---|---|
//! | a claim whose trials come in one by one | [`Judge`], with a margin [`Judge::with_margin`] |
//! | which of two alternatives is faster, from pairs of times | [`OrderJudge`] |
//! | which of two alternatives is more often above a threshold in the tail, from pairs of values | [`TailJudge`], after the last pair [`tail_excess`] |
//! | a count that exists already or is kept elsewhere | [`verdict()`], [`log_e_holds`], [`log_e_refuted`] |
//! | the possible rates | [`RateSequence`], [`rate_interval`]; after a single look [`credible_interval`] |
//! | a p-value that can only be sampled, for example by reshuffling | [`BettingTest`] |
//! | the places where the level of a series changes | [`change_points`] |
//! | the published criterion of Robbins, for comparison | [`csm_verdict`], [`csm_interval`], [`log_level`] |
//! | the values between which a quantile lies | [`quantile_ranks`] |
//! | the mean of a sample, or of several samples, with an interval by Student's t | [`mean_interval`], [`combined_mean_interval`], [`student_size`] |
//! | a summary of many values in little memory | [`Moments`] |
//! | the number of trials that will be needed | [`power()`], [`power_growth`], [`expected_growth`], [`soonest`], [`soonest_verdict`], [`soonest_order_verdict`] |
//!
//! # Guarantee
//!
//! Everything except the credible interval and the intervals of means is valid at every trial at once. The chance that
//! a verdict or an interval is *ever* wrong is at most its error, whenever you look and stop. This guarantee holds in
//! exact arithmetic and survives rounding, because each bound is rounded to the safe side.
//!
//! This crate only computes probabilities. It has no input or output, clock, threads or random numbers.

mod banerjee;
mod betting;
mod boundary;
mod changes;
mod csm;
mod deviance;
mod double_double;
mod eprocess;
mod error;
mod incomplete_beta;
mod interval;
mod judge;
mod magnitude;
mod moments;
mod order;
mod power;
mod quantile;
mod rate;
mod root;
mod student;
mod tail;
mod tally;

pub use banerjee::cautious_mean_interval;
pub use betting::{BettingDecision, BettingTest, betting_log_wealth};
pub use changes::{ChangePoint, VALUES_PER_FALSE_ALARM, change_points};
pub use csm::{csm_interval, csm_verdict, log_level};
pub use deviance::{bd0, binomial_deviance, excess, log_binomial, stirling_remainder};
pub use eprocess::{expected_growth, log_e_holds, log_e_refuted};
pub use error::Error;
pub use interval::{Interval, RateSequence, credible_interval, rate_interval};
pub use judge::{Judge, Verdict, soonest, soonest_verdict, verdict};
pub use moments::Moments;
pub use order::{OrderJudge, soonest_order_verdict};
pub use power::{Power, PowerGrowth, power, power_growth};
pub use quantile::{QuantileRanks, median_sorted, quantile_ranks, quantile_sorted};
pub use student::{
    MeanInterval, MeanPart, combined_mean_interval, mean_interval, means_without_each, skewed_mean_interval,
    student_size, student_tails,
};
pub use tail::{TailCounts, TailExcess, TailJudge, TailValue, soonest_tail_verdict, tail_excess, tail_pairs_before};
pub use tally::Tally;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
