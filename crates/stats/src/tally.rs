//! How many trials there were, and how many of them succeeded.

use crate::Error;
use std::ops::{Add, AddAssign};

/// A count of Bernoulli trials and of the successes among them: all that a judge needs to know of them.
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
    /// Trials counted, at most [`Tally::MAX_TRIALS`].
    pub trials: u64,
    /// Trials that succeeded, at most `trials`.
    pub successes: u64,
}

impl Tally {
    /// 2^53, the most trials that every function here still counts exactly.
    pub const MAX_TRIALS: u64 = 1 << 53;

    /// A tally of `successes` among `trials`.
    ///
    /// # Errors
    /// [`Error::SuccessesExceedTrials`] and [`Error::TooManyTrials`].
    pub fn new(trials: u64, successes: u64) -> Result<Tally, Error> {
        Tally { trials, successes }.checked()
    }

    /// This tally again, if it can be one: its fields are public.
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

    /// Trials that did not succeed; none where the fields are not those of a tally.
    pub fn failures(&self) -> u64 {
        self.trials.saturating_sub(self.successes)
    }

    /// Counts one more trial.
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
