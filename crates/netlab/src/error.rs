//! The errors of this crate.

/// What can go wrong: what was tried, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rate at which nothing would ever arrive.
    #[error("{what} is 0 bits a second, at which nothing ever arrives: give a rate, or leave it out")]
    NoRate {
        /// Which of the rates.
        what: &'static str,
    },
    /// A share that is none.
    #[error("a loss of {loss} is not a share: give a number from 0 to 1")]
    NotAShare {
        /// What was given.
        loss: f64,
    },
}
