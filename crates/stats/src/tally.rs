//! The number of trials, and how many of them succeeded.

use crate::Error;
use std::ops::{Add, AddAssign};

/// The number of Bernoulli trials, and of successes among them. A judge needs nothing else.
///
/// ```
/// use ascertain_stats::Tally;
/// let mut tally = Tally::new(3999, 3971)?;
/// tally.add(true);
/// assert_eq!(tally, Tally { trials: 4000, successes: 3972 });
/// assert_eq!(tally.failures(), 28);
/// assert_eq!((tally + Tally::new(10, 9)?).trials, 4010);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of trials, at most [`Tally::MAX_TRIALS`].
    pub trials: u64,
    /// Number of successful trials, at most `trials`.
    pub successes: u64,
}

impl Tally {
    /// The largest number of trials that every function of this crate counts exactly: 2^53.
    pub const MAX_TRIALS: u64 = 1 << 53;

    /// Creates a tally of `successes` among `trials`.
    ///
    /// # Errors
    /// Returns [`Error::SuccessesExceedTrials`] or [`Error::TooManyTrials`].
    pub fn new(trials: u64, successes: u64) -> Result<Tally, Error> {
        Tally { trials, successes }.checked()
    }

    /// Returns this tally, or an error if it is invalid. A check is needed because the fields are public.
    pub(crate) fn checked(self) -> Result<Tally, Error> {
        let Tally { trials, successes } = self;
        if successes > trials {
            return Err(Error::SuccessesExceedTrials { trials, successes });
        }
        if trials > Tally::MAX_TRIALS {
            return Err(Error::TooManyTrials { trials });
        }
        Ok(self)
    }

    /// Returns the number of trials that failed, or 0 if the tally is invalid.
    pub fn failures(&self) -> u64 {
        self.trials.saturating_sub(self.successes)
    }

    /// Counts one more trial, with its outcome.
    pub fn add(&mut self, success: bool) {
        self.trials += 1;
        self.successes += u64::from(success);
    }
}

impl Add for Tally {
    type Output = Tally;

    fn add(self, more: Tally) -> Tally {
        Tally { trials: self.trials + more.trials, successes: self.successes + more.successes }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Tally) {
        *self = *self + more;
    }
}
