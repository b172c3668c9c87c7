//! Verdicts on counts that Ascertain did not measure: the output of `ascertain judge`.

use ascertain_engine::outcome::Verdict;
use serde::Serialize;

use crate::csv::{Field, record};
use crate::figure::{Figure, error_in_words, exact_percent, percent};
use crate::formats::{Element, Report};
use crate::terminal::Style;
use crate::text::{capitalised, counted};

/// The result of testing whether S successes in N trials support a rate. Unknown values are `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The verdict: holds, refuted or undecided.
    pub verdict: Verdict,
    /// The number of trials, N.
    pub trials: u64,
    /// The number of successes, S.
    pub successes: u64,
    /// The name of the test: `mixture` or `csm`.
    pub method: String,
    /// The claimed rate.
    pub rate_claimed: f64,
    /// The highest probability that the verdict is wrong.
    pub error: f64,
    /// For `csm`: an upper bound on the natural logarithm of (n+1)·C(n,s)·p^s·(1−p)^(n−s), for n trials, s successes
    /// and the claimed rate p. There is a verdict if this bound is at most the logarithm of `error`.
    pub log_level: Option<f64>,
    /// The natural logarithm of the e-value for *holds*.
    pub log_e_holds: Option<f64>,
    /// The natural logarithm of the e-value for *refuted*.
    pub log_e_refuted: Option<f64>,
    /// The observed rate, S/N.
    pub rate: Option<f64>,
    /// The lower end of the confidence sequence for the rate, by the same method. With `mixture`, each end is wrong
    /// with a probability of at most `error`. The whole interval is therefore wrong with a probability of at most twice
    /// `error`. With `csm`, the whole interval is wrong with a probability of at most `error`.
    pub rate_low: Option<f64>,
    /// The upper end of the confidence sequence for the rate.
    pub rate_high: Option<f64>,
    /// The lower end of the equal-tailed credible interval for the rate, at level 1 − `error`. The error budget does
    /// not include this interval.
    pub credible_low: Option<f64>,
    /// The upper end of the credible interval for the rate.
    pub credible_high: Option<f64>,
}

impl Judgement {
    /// Returns the verdict with the counts and the error, as one sentence.
    pub fn sentence(&self) -> String {
        let Judgement { trials, successes, .. } = self;
        let (claimed, error) = (exact_percent(self.rate_claimed), error_in_words(self.error));
        let share = self.rate.map_or_else(String::new, |rate| format!(" ({})", percent(rate)));
        let seen = format!("{successes} of {} succeeded{share}", counted(*trials, "trial"));
        match self.verdict {
            Verdict::Holds => {
                format!("Holds: {seen}, so the rate is at least {claimed} (error at most {error}).")
            }
            Verdict::Refuted => {
                format!("Refuted: {seen}, so the rate is below {claimed} (error at most {error}).")
            }
            _ => format!(
                "Undecided: {seen}. More trials are needed to decide whether the rate is at least {claimed} with an error of \
                 at most {}.",
                error_in_words(self.error)
            ),
        }
    }
}

impl Report for Judgement {
    const SCHEMA: &'static str = "ascertain.judgement/1";

    fn elements(&self) -> Vec<Element> {
        vec![Element::Sentences(vec![self.sentence()])]
    }

    /// Returns the verdict as a sentence, the rate, and both intervals.
    fn text(&self, style: &Style) -> String {
        let Judgement { rate, rate_low, rate_high, credible_low, credible_high, rate_claimed, .. } = self;
        let share = Figure::of_share(*rate, *rate_low, *rate_high, *rate_claimed);
        let credible = Figure::of_share(*rate, *credible_low, *credible_high, *rate_claimed);
        let error = format!("error at most {}", error_in_words(self.error));
        let of_interval = if self.method == "csm" {
            "for both ends together (by the confidence sequence method)"
        } else {
            "for each end"
        };
        let mut text = style.sentence(&self.sentence(), Some(&capitalised(self.verdict.word())));
        if rate.is_some() {
            text += &style.paragraph(&format!("Rate: {share}, {error} {of_interval}."));
        }
        if credible_low.is_some() || credible_high.is_some() {
            let note = "equal-tailed, not part of the error budget";
            text += &style.paragraph(&format!("Credible interval: {} ({note}).", credible.range));
        }
        text
    }

    fn csv(&self) -> String {
        let Judgement { verdict, trials, successes, method, rate_claimed, error, log_level, log_e_holds, .. } = self;
        let Judgement { log_e_refuted, rate, rate_low, rate_high, credible_low, credible_high, .. } = self;
        let verdict = verdict.word();
        let question: [&dyn Field; 6] = [&verdict, trials, successes, method, rate_claimed, error];
        let evidence: [&dyn Field; 3] = [log_level, log_e_holds, log_e_refuted];
        let intervals: [&dyn Field; 5] = [rate, rate_low, rate_high, credible_low, credible_high];
        format!(
            "verdict,trials,successes,method,rate_claimed,error,log_level,log_e_holds,log_e_refuted,rate,rate_low,\
             rate_high,credible_low,credible_high\n{}",
            record(&[&question[..], &evidence, &intervals].concat())
        )
    }
}
