//! What `ascertain judge` says of counts that somebody else made.

use ascertain_engine::outcome::Verdict;
use serde::Serialize;

use crate::figure::{brief_odds, exact_percent, odds, percent};

/// The name and version of the schema of [`Judgement`] in JSON.
pub const SCHEMA: &str = "ascertain.judgement/1";

/// The stateless test of S successes in N trials against a rate. What is not known is `None`, in JSON
/// `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What was concluded: holds, refuted or undecided.
    pub verdict: Verdict,
    /// N.
    pub trials: u64,
    /// S.
    pub successes: u64,
    /// The test: `mixture` or `csm`.
    pub method: String,
    /// The rate that was claimed.
    pub rate_claimed: f64,
    /// The chance that the verdict is wrong, at most.
    pub error: f64,
    /// CSM's logarithm of (n+1)·C(n,s)·p^s·(1−p)^(n−s), never below the exact value.
    pub log_level: Option<f64>,
    /// Natural logarithm of the evidence that the claim holds.
    pub log_e_holds: Option<f64>,
    /// Natural logarithm of the evidence that it does not.
    pub log_e_refuted: Option<f64>,
    /// S/N.
    pub rate: Option<f64>,
    /// The lower end of the rate's confidence sequence, that of the method. By the mixture each end is wrong with a
    /// chance of at most `error`, both together with at most twice that; by CSM both together with at most `error`.
    pub rate_low: Option<f64>,
    /// The upper end of the rate's confidence sequence.
    pub rate_high: Option<f64>,
    /// The lower end of the equal-tailed credible interval at `error`, outside of the error budget.
    pub credible_low: Option<f64>,
    /// Its upper end.
    pub credible_high: Option<f64>,
}

impl Judgement {
    /// What the ends of the rate's interval may be wrong with: "each end wrong with a chance of at most 0.001".
    pub(crate) fn of_interval(&self) -> String {
        let error = brief_odds(self.error);
        match self.method.as_str() {
            "csm" => format!("by CSM, both ends together wrong with a chance of at most {error}"),
            _ => format!("each end wrong with a chance of at most {error}"),
        }
    }

    /// The verdict as one plain sentence.
    pub fn sentence(&self) -> String {
        let Judgement { trials, successes, .. } = self;
        let (claimed, error) = (exact_percent(self.rate_claimed), odds(self.error));
        let share = self.rate.map_or_else(String::new, |rate| format!(" ({})", percent(rate)));
        let seen = format!("{successes} of {trials} trials succeeded{share}");
        match self.verdict {
            Verdict::Holds => {
                format!("Holds: {seen}, so the rate is at least {claimed}; wrong with a chance of at most {error}.")
            }
            Verdict::Refuted => {
                format!("Refuted: {seen}, so the rate is below {claimed}; wrong with a chance of at most {error}.")
            }
            _ => format!(
                "Undecided: {seen}. That is too little to tell whether the rate is at least {claimed} with an error of at \
                 most {}.",
                brief_odds(self.error)
            ),
        }
    }
}
