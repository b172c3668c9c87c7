//! What `ascertain calibrate-here` says of a machine.

use ascertain_engine::outcome::Decision;
use ascertain_engine::unit::significant;
use serde::Serialize;

use crate::figure::{brief_odds, exact_percent, percent};
use crate::json;
use crate::terminal::Style;
use crate::text::{counted, plain, quoted, shortened};

/// The name and version of the schema of [`Calibration`] in JSON.
pub const SCHEMA: &str = "ascertain.calibration/1";

/// A command compared with itself. Differences are shares: 0.01 is one of 1 %. What is not known is `None`, in JSON
/// `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command.
    pub command: String,
    /// Where the run's random numbers started, and those of the minutes that were made up.
    pub seed: u64,
    /// The chance that the decision is wrong, at most; that of the minutes too.
    pub error: f64,
    /// How long it took.
    pub elapsed_s: f64,
    /// So many pairs were measured.
    pub pairs: u64,
    /// Two runs of the command differ by that much at the median.
    pub difference_median: Option<f64>,
    /// And by more than that in 1 of 20 pairs.
    pub difference_p95: Option<f64>,
    /// Whether one of the two was called faster or slower.
    pub decision: Option<Decision>,
    /// So many pairs fit in a minute.
    pub minute_pairs: u64,
    /// So many of them were judged in each minute that was made up: all, or as many as there was time to judge.
    pub calculated_pairs: u64,
    /// What is seen in a minute is seen in that share of them.
    pub seen_share: f64,
    /// The least difference that is; `None`: there is none up to the limit.
    pub seen_difference: Option<f64>,
    /// The greatest difference that was looked for.
    pub seen_difference_limit: f64,
}

impl Calibration {
    /// What was measured, how much two runs differ, whether they were told apart, and what a minute shows.
    pub fn sentences(&self) -> Vec<String> {
        let Calibration { pairs, elapsed_s, .. } = self;
        let command = plain(&shortened(&quoted(&self.command), &[]));
        let (Some(median), Some(p95)) = (self.difference_median, self.difference_p95) else {
            return vec![format!("No pair of {command} and itself was measured.")];
        };
        let a_second = significant(*pairs as f64 / elapsed_s);
        let few = if *pairs < FEW_PAIRS { " So few say little: --max-time takes more." } else { "" };
        let pairs = counted(*pairs, "pair");
        vec![
            format!("{pairs} of {command} and itself in {elapsed_s:.1} s, {a_second} a second.{few}"),
            format!(
                "Two runs of the same command differ by {} typically (median), by more than {} in 1 of 20 pairs.",
                differing(median),
                differing(p95)
            ),
            self.told_apart(),
            self.seen(),
        ]
    }

    fn told_apart(&self) -> String {
        let word = match self.decision {
            Some(decision @ (Decision::Faster | Decision::Slower)) => decision.word(),
            _ => return "Neither was called faster than the other, which is right.".into(),
        };
        format!(
            "The second of the two was called {word}, which is wrong: by chance that happens in at most {} of such \
             runs. When it happens again, something here favours one of them.",
            exact_percent(self.error)
        )
    }

    fn seen(&self) -> String {
        let Calibration { minute_pairs, calculated_pairs, elapsed_s, pairs, .. } = self;
        let pairs_said = match calculated_pairs < minute_pairs {
            true => {
                let seconds = *calculated_pairs as f64 / (*pairs as f64 / elapsed_s);
                format!(
                    "In {calculated_pairs} pairs ({seconds:.1} s; a minute has {minute_pairs} pairs, which detect smaller \
                     differences)"
                )
            }
            false => format!("In a minute of pairs ({minute_pairs})"),
        };
        let often = format!("{:.0} of 10 times, error {}", self.seen_share * 10.0, brief_odds(self.error));
        match self.seen_difference {
            Some(difference) => {
                format!("{pairs_said}, a difference of {} is detected ({often}).", percent(difference))
            }
            None => format!(
                "{pairs_said}, no difference of up to {} is detected ({often}).",
                exact_percent(self.seen_difference_limit)
            ),
        }
    }
}

/// Of fewer, what 1 of 20 does is not known.
const FEW_PAIRS: u64 = 40;

/// A difference in percent. One of the two may have been stopped, and the difference have no end.
fn differing(share: f64) -> String {
    if share.is_finite() { format!("±{}", percent(share)) } else { "what a time limit hides".into() }
}

/// The sentences.
pub fn text(calibration: &Calibration, style: &Style) -> String {
    calibration.sentences().iter().map(|sentence| style.paragraph(sentence)).collect()
}

/// The whole calibration as one object.
pub fn json(calibration: &Calibration) -> String {
    json::object(calibration)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration() -> Calibration {
        Calibration {
            schema: SCHEMA.into(),
            command: "true".into(),
            seed: 1,
            error: 0.001,
            elapsed_s: 10.0,
            pairs: 500,
            difference_median: Some(0.0213),
            difference_p95: Some(0.31),
            decision: Some(Decision::Undecided),
            minute_pairs: 3000,
            calculated_pairs: 3000,
            seen_share: 0.8,
            seen_difference: Some(0.00456),
            seen_difference_limit: 1.0,
        }
    }

    #[test]
    fn sentences_of_a_calibration() {
        assert_eq!(
            calibration().sentences(),
            [
                "500 pairs of `true` and itself in 10.0 s, 50.00 a second.",
                "Two runs of the same command differ by ±2.1 % typically (median), by more than ±31 % in 1 of 20 \
                 pairs.",
                "Neither was called faster than the other, which is right.",
                "In a minute of pairs (3000), a difference of 0.46 % is detected (8 of 10 times, error 0.001).",
            ]
        );
    }

    #[test]
    fn what_is_wrong_not_calculated_or_not_seen_is_said() {
        let last = |calibration: Calibration| calibration.sentences().pop().unwrap();
        let capped = last(Calibration { minute_pairs: 3000, calculated_pairs: 2000, ..calibration() });
        assert!(capped.starts_with("In 2000 pairs (40.0 s; a minute has 3000 pairs, "), "{capped}");
        let unseen = last(Calibration { seen_difference: None, ..calibration() });
        assert!(unseen.contains("no difference of up to 100 % is detected"), "{unseen}");
        let wrong = Calibration { decision: Some(Decision::Slower), ..calibration() }.sentences()[2].clone();
        assert!(wrong.contains("called slower, which is wrong") && wrong.contains("0.1 %"), "{wrong}");
        let one = Calibration { pairs: 1, ..calibration() }.sentences()[0].clone();
        assert_eq!(
            one,
            "1 pair of `true` and itself in 10.0 s, 0.1000 a second. So few say little: --max-time takes more."
        );
        let none = last(Calibration { difference_median: None, difference_p95: None, ..calibration() });
        assert_eq!(none, "No pair of `true` and itself was measured.");
    }
}
