//! The error type of this crate: invalid arguments.

/// The reason why an argument is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The rate is not strictly between 0 and 1. A rate of 1 needs no test, because a single failure refutes it. A rate
    /// of 0 needs no test, because no outcome can refute "at least 0".
    #[error(
        "the rate must lie strictly between 0 and 1, but is {rate}: write 99 % as 0.99, and \"always\" as a rate just below 1, such as 0.999"
    )]
    Rate {
        /// The rate that was passed.
        rate: f64,
    },
    /// The rate is too close to 0 for a verdict within a number of trials that can be counted.
    #[error("the rate {rate:e} is too small to be judged; use at least {LEAST_RATE:e}")]
    RateTooSmall {
        /// The rate that was passed.
        rate: f64,
    },
    /// The error probability is not strictly between 0 and 1: no verdict is free of error.
    #[error(
        "the error must lie strictly between 0 and 1, but is {error}: 0.001 is usual, and a smaller error needs more trials"
    )]
    ErrorProbability {
        /// The error probability that was passed.
        error: f64,
    },
    /// There are more successes than trials.
    #[error(
        "{successes} successes in {trials} trials: there are never more successes than trials, so give successes/trials in this order"
    )]
    SuccessesExceedTrials {
        /// The number of trials that was passed.
        trials: u64,
        /// The number of successes that was passed.
        successes: u64,
    },
    /// There are more trials than a double counts exactly.
    #[error("{trials} trials are more than 2^53, the largest number that is counted exactly; judge fewer trials")]
    TooManyTrials {
        /// The number of trials that was passed.
        trials: u64,
    },
    /// The quantile is not strictly between 0 and 1: the smallest and the greatest value have no interval.
    #[error("the quantile must lie strictly between 0 and 1, but is {quantile}: write p99 as 0.99")]
    Quantile {
        /// The quantile that was passed.
        quantile: f64,
    },
    /// A t distribution has no degrees of freedom, because a sample has a single value.
    #[error("the degrees of freedom must be above 0, but are {degrees}: a sample needs at least two values")]
    Degrees {
        /// The degrees of freedom that were passed.
        degrees: f64,
    },
    /// The rate minus the margin, or the rate plus the margin, is not strictly between 0 and 1, or the margin is not
    /// above 0.
    #[error(
        "the margin {margin} must be above 0, and {rate} - margin and {rate} + margin strictly between 0 and 1; use a smaller margin, or judge the rate without one"
    )]
    Margin {
        /// The rate that was passed.
        rate: f64,
        /// The margin that was passed.
        margin: f64,
    },
}

/// Returns whether `value` is a probability strictly between 0 and 1. Returns `false` for NaN.
fn is_inside(value: f64) -> bool {
    value > 0.0 && value < 1.0
}

/// The smallest rate that can be judged. With a smaller rate, the search for a boundary would leave the range of a
/// double. The limit excludes no rate of practical use: a verdict about a rate of 2^-64 already needs more trials than
/// can be counted.
const LEAST_RATE: f64 = 1e-100;

/// Returns the rate, or an error if the rate is too small or outside of (0, 1).
pub(crate) fn check_rate(rate: f64) -> Result<f64, Error> {
    match rate {
        rate if !is_inside(rate) => Err(Error::Rate { rate }),
        rate if rate < LEAST_RATE => Err(Error::RateTooSmall { rate }),
        rate => Ok(rate),
    }
}

/// Returns the error probability, or an error if it is not within (0, 1).
pub(crate) fn check_error(error: f64) -> Result<f64, Error> {
    if is_inside(error) { Ok(error) } else { Err(Error::ErrorProbability { error }) }
}

/// Returns the quantile, or an error if it is not within (0, 1).
pub(crate) fn check_quantile(quantile: f64) -> Result<f64, Error> {
    if is_inside(quantile) { Ok(quantile) } else { Err(Error::Quantile { quantile }) }
}
