//! What can be wrong with the numbers that a caller gives.

/// An argument that no statement about a rate can be made with.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rate that is not strictly between 0 and 1: a single failure refutes "always", and nothing refutes "at least
    /// 0".
    #[error(
        "the rate must lie strictly between 0 and 1, but is {rate}: write 99 % as 0.99, and \"always\" as a rate just below 1, such as 0.999"
    )]
    Rate {
        /// The rate that was given.
        rate: f64,
    },
    /// A rate so close to 0 that no number of trials that a computer can count says anything of it.
    #[error("the rate {rate:e} is too small to be judged: the smallest that can be is {LEAST_RATE:e}")]
    RateTooSmall {
        /// The rate that was given.
        rate: f64,
    },
    /// An error probability that is not strictly between 0 and 1: no verdict is free of error.
    #[error(
        "the error must lie strictly between 0 and 1, but is {error}: a smaller error needs more trials, 0.001 is usual"
    )]
    ErrorProbability {
        /// The error probability that was given.
        error: f64,
    },
    /// More successes than trials.
    #[error(
        "{successes} successes in {trials} trials: there are never more successes than trials, so give successes/trials in this order"
    )]
    SuccessesExceedTrials {
        /// The number of trials that was given.
        trials: u64,
        /// The number of successes that was given.
        successes: u64,
    },
    /// More trials than a double counts exactly.
    #[error("{trials} trials are more than 2^53, beyond which a double no longer counts exactly: judge fewer trials")]
    TooManyTrials {
        /// The number of trials that was given.
        trials: u64,
    },
    /// A quantile's level that is not strictly between 0 and 1: the least and the greatest value have no interval.
    #[error("the quantile must lie strictly between 0 and 1, but is {quantile}: write p99 as 0.99")]
    Quantile {
        /// The level that was given.
        quantile: f64,
    },
    /// A margin that leaves nothing to reject on one of its sides.
    #[error(
        "the margin must be more than 0 and leave {rate} - margin and {rate} + margin strictly between 0 and 1, but is {margin}: take a smaller margin, or judge the rate without one"
    )]
    Margin {
        /// The rate that was given.
        rate: f64,
        /// The margin that was given.
        margin: f64,
    },
    /// A value that is not a number has no place in an order.
    #[error("NaN has no place among the values that quantiles are taken of: leave it out, or count it as infinite")]
    NotANumber,
}

/// Whether `value` is a probability that is neither certain nor impossible. False for NaN.
fn is_inside(value: f64) -> bool {
    value > 0.0 && value < 1.0
}

/// Below this rate the searches for a boundary would leave the range of a double. Even a rate of 2^-64 would take more
/// trials than can be counted.
const LEAST_RATE: f64 = 1e-100;

/// The rate, if it lies within (0, 1).
pub(crate) fn check_rate(rate: f64) -> Result<f64, Error> {
    match rate {
        rate if !is_inside(rate) => Err(Error::Rate { rate }),
        rate if rate < LEAST_RATE => Err(Error::RateTooSmall { rate }),
        rate => Ok(rate),
    }
}

/// The error probability, if it lies within (0, 1).
pub(crate) fn check_error(error: f64) -> Result<f64, Error> {
    if is_inside(error) { Ok(error) } else { Err(Error::ErrorProbability { error }) }
}

/// The level of a quantile, if it lies within (0, 1).
pub(crate) fn check_quantile(quantile: f64) -> Result<f64, Error> {
    if is_inside(quantile) { Ok(quantile) } else { Err(Error::Quantile { quantile }) }
}
