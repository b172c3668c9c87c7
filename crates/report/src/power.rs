//! Power analyses: the output of `ascertain power`. It shows how likely each verdict of a claim is, by the true rate.

use ascertain_engine::claim::Judging;
use ascertain_engine::unit::Unit;
use serde::Serialize;

use crate::csv::record;
use crate::figure::{error_in_words, exact_percent};
use crate::formats::{Element, Report};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::plot::{Axis, Layer, Plot, Scale, Which};
use crate::text::capitalised;

/// The exact probability of each verdict of a claim, computed before any measurement. Unknown values are `None`, in
/// JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PowerAnalysis {
    /// The kind of claim. `rate` is a claim that a condition is true in at least a given share of the trials. `order`
    /// is a comparison of two arms by the number of pairs that each wins, as in `compare`.
    pub judging: Judging,
    /// The claimed rate; 0.5 for a comparison (`order`).
    pub rate_claimed: f64,
    /// The margin: if the true rate differs from the claimed one by at most this much, both verdicts are acceptable.
    pub margin: Option<f64>,
    /// The highest probability that the verdict *holds* (for a comparison: *faster*) is wrong.
    pub error_holds: f64,
    /// The highest probability that the verdict *refuted* (for a comparison: *slower*) is wrong.
    pub error_refuted: f64,
    /// The largest number of trials (for a comparison: of pairs without ties). If the claim has no verdict after that
    /// many trials, it is undecided.
    pub max_trials: u64,
    /// The results for the true rates in the table.
    pub rates: Vec<PowerAt>,
    /// The results for the true rates in the plot, in ascending order of the rates.
    pub curve: Vec<PowerAt>,
}

/// The probabilities of the verdicts at one true rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PowerAt {
    /// The true rate of successful trials; for a comparison, the share of pairs that the candidate wins.
    pub true_rate: f64,
    /// The probability of the verdict *holds*, or *faster*.
    pub holds: f64,
    /// The probability of the verdict *refuted*, or *slower*.
    pub refuted: f64,
    /// The probability that there is no verdict after `max_trials`.
    pub undecided: f64,
    /// The mean number of trials until the test ends, with or without a verdict.
    pub expected_trials: f64,
    /// The smallest number of trials that leads to a verdict with a probability of at least 80 %. `None` if this number
    /// is above `max_trials`.
    pub trials_80: Option<u64>,
    /// The smallest number of trials that leads to a verdict with a probability of at least 95 %. `None` if this number
    /// is above `max_trials`.
    pub trials_95: Option<u64>,
}

/// The words that sentences and tables use for one kind of claim.
struct Terms {
    rate: &'static str,
    trials: &'static str,
    holds: &'static str,
    refuted: &'static str,
}

impl PowerAnalysis {
    fn terms(&self) -> Terms {
        match self.judging {
            Judging::Order => Terms { rate: "Wins", trials: "pairs", holds: "faster", refuted: "slower" },
            _ => Terms { rate: "True rate", trials: "trials", holds: "holds", refuted: "refuted" },
        }
    }

    /// Returns the question, then the answers, then a warning. Each rate has an answer if there are at most three
    /// rates; otherwise one sentence summarises them.
    pub fn sentences(&self) -> Vec<String> {
        let answers = match self.rates.len() {
            ..=3 => self.rates.iter().map(|at| self.answer(at)).collect(),
            _ => vec![self.reach()],
        };
        [self.question()].into_iter().chain(answers).chain(self.caution()).collect()
    }

    fn question(&self) -> String {
        let Terms { trials, .. } = self.terms();
        let most = self.max_trials;
        let error = match self.error_holds == self.error_refuted {
            true => format!("{} for either answer", error_in_words(self.error_holds)),
            false => {
                let [holds, refuted] = [self.error_holds, self.error_refuted].map(error_in_words);
                format!("{holds} if it is reported to hold, and {refuted} if it is reported to be refuted")
            }
        };
        let margin = self.margin.map(|margin| format!(" with a margin of {}", exact_percent(margin)));
        let asked = match self.judging {
            Judging::Order => "Question: which of two wins more often".to_string(),
            _ => format!("Claim: at least {}{}", exact_percent(self.rate_claimed), margin.unwrap_or_default()),
        };
        format!("{asked}. The chance of an error is at most {error}. The test uses at most {most} {trials}.")
    }

    /// Returns a sentence with the probabilities of the verdicts at one true rate.
    fn answer(&self, at: &PowerAt) -> String {
        let Terms { trials, holds, refuted, .. } = self.terms();
        let rate = exact_percent(at.true_rate);
        let opening = match self.judging {
            Judging::Order => format!("If it wins {rate} of the {trials}"),
            _ => format!("If the true rate is {rate}"),
        };
        // Signs such as `<`, which are used in tables, become words.
        let in_words = |chance: f64| rough_percent(chance).replace("< ", "under ").replace("> ", "over ");
        let [says_holds, says_refuted, undecided] = [at.holds, at.refuted, at.undecided].map(in_words);
        let [by_80, by_95] = [at.trials_80, at.trials_95]
            .map(|count| count.map_or_else(|| format!("more than {}", self.max_trials), |count| count.to_string()));
        format!(
            "{opening}, the answer is {holds} with a chance of {says_holds}, {refuted} with {says_refuted}, and \
             undecided with {undecided}. The test needs {} {trials} on average. It has an answer with a chance of 80 % \
             after {by_80} {trials}, and with a chance of 95 % after {by_95}.",
            rough_count(at.expected_trials)
        )
    }

    /// Returns a sentence about the true rates that are likely to get a verdict.
    fn reach(&self) -> String {
        let Terms { trials, .. } = self.terms();
        let mut all: Vec<&PowerAt> = self.rates.iter().chain(&self.curve).collect();
        all.sort_by(|one, other| one.true_rate.total_cmp(&other.true_rate));
        let likely: Vec<&&PowerAt> = all.iter().filter(|at| at.trials_95.is_some()).collect();
        let claimed = self.rate_claimed;
        let low = likely.iter().rev().find(|at| at.true_rate < claimed).map(|at| rough_rate(at.true_rate, false));
        let high = likely.iter().find(|at| at.true_rate > claimed).map(|at| rough_rate(at.true_rate, true));
        let opening =
            format!("Within {} {trials}, a verdict is likely (with a chance of at least 95 %)", self.max_trials);
        let subject = if self.judging == Judging::Order { "one wins" } else { "the true rate is" };
        let closing = match (low, high, self.judging) {
            _ if likely.len() == all.len() => "at each of these rates".to_string(),
            (None, None, _) => "at none of these rates: allow more with --max-trials".to_string(),
            (_, Some(high), Judging::Order) => format!("if {subject} at least {high} of them"),
            (Some(low), Some(high), _) => format!("if {subject} at most {low} or at least {high}"),
            (Some(low), None, _) => format!("if {subject} at most {low}"),
            (None, Some(high), _) => format!("if {subject} at least {high}"),
        };
        format!("{opening} {closing}.")
    }

    /// Returns a warning about true rates that are at or near the claimed one.
    fn caution(&self) -> Option<String> {
        let Terms { trials, .. } = self.terms();
        let claimed = self.rate_claimed;
        let is_within = |at: &PowerAt, margin: f64| (at.true_rate - claimed).abs() < margin;
        match self.margin {
            Some(margin) if self.rates.iter().any(|at| is_within(at, margin)) => Some(format!(
                "Between {} and {}, within the margin, either verdict counts as right, and the test ends with one of them.",
                exact_percent(claimed - margin),
                exact_percent(claimed + margin)
            )),
            None if self.rates.iter().any(|at| at.true_rate == claimed) => Some(match self.judging {
                Judging::Order => "If each wins half of the pairs, there is no difference to find, and an answer is \
                                   an error. Ties do not count. This analysis uses only which one wins; `compare` \
                                   also uses the size of each difference, and usually needs fewer pairs."
                    .to_string(),
                _ => format!(
                    "If the true rate is exactly the claimed {}, the test stays undecided however many {trials} there are, \
                     except by chance. With --margin, the test ends anyway.",
                    exact_percent(claimed)
                ),
            }),
            _ => None,
        }
    }

    fn grid(&self) -> Grid {
        let Terms { rate, trials, holds, refuted } = self.terms();
        let (holds, refuted, mean) = (capitalised(holds), capitalised(refuted), format!("Mean {trials}"));
        let headings = [rate, &holds, &refuted, "Undecided", &mean, "For 80 %", "For 95 %"];
        let mut grid = Grid::new(&headings).kind(ColumnKind::Number, &headings);
        let count =
            |count: Option<u64>| count.map_or_else(|| format!("> {}", self.max_trials), |count| count.to_string());
        for at in &self.rates {
            let [holds, refuted, undecided] = [at.holds, at.refuted, at.undecided].map(rough_percent);
            let [rate, mean] = [exact_percent(at.true_rate), rough_count(at.expected_trials)];
            let cells = [rate, holds, refuted, undecided, mean, count(at.trials_80), count(at.trials_95)];
            grid.rows.push(cells.map(Cell::Text).into());
        }
        grid
    }

    /// Returns a plot of the probability of each verdict, by the true rate.
    pub fn plot(&self) -> Plot {
        let Terms { trials, holds, refuted, .. } = self.terms();
        let (label, claimed) = match self.judging {
            Judging::Order => ("share of pairs won", "even".to_string()),
            _ => ("true rate", format!("claimed: {}", exact_percent(self.rate_claimed))),
        };
        let chances: [fn(&PowerAt) -> f64; 3] = [|at| at.holds, |at| at.refuted, |at| at.undecided];
        let points = |all: &[PowerAt], chance: fn(&PowerAt) -> f64| -> Vec<[f64; 2]> {
            all.iter().map(|at| [at.true_rate, chance(at)]).collect()
        };
        let mut layers = vec![Layer::Rule { on: Which::X, at: self.rate_claimed, label: claimed }];
        layers.extend(chances.into_iter().enumerate().map(|(index, chance)| {
            let points = points(&self.curve, chance);
            Layer::Line { series: Some(index), points, steps: false, dashed: index == 2 }
        }));
        layers.extend(chances.into_iter().enumerate().map(|(index, chance)| Layer::Dots {
            series: Some(index),
            points: points(&self.rates, chance),
            hollow: false,
        }));
        Plot {
            id: "power".into(),
            title: format!("The chance of each verdict in {} {trials}", self.max_trials),
            alt: [self.question(), self.reach()].join(" "),
            x: Axis::new(label, Scale::Logit, Unit::One).percent(),
            y: Axis::new("chance", Scale::Linear, Unit::One).showing(0.0, 1.0).percent(),
            series: [holds, refuted, "undecided"].map(String::from).into(),
            layers,
        }
    }
}

impl Report for PowerAnalysis {
    const SCHEMA: &'static str = "ascertain.power/1";

    fn elements(&self) -> Vec<Element> {
        vec![
            Element::Paragraph(self.sentences()),
            Element::Table(self.grid()),
            Element::Plot(Box::new(self.plot()), None),
        ]
    }

    /// Returns the results as CSV, with a line for each true rate. A number of trials above `max_trials` is left empty.
    fn csv(&self) -> String {
        let mut lines = String::from("true_rate,holds,refuted,undecided,expected_trials,trials_80,trials_95\n");
        for at in &self.rates {
            let PowerAt { true_rate, holds, refuted, undecided, expected_trials, trials_80, trials_95 } = at;
            lines += &record(&[true_rate, holds, refuted, undecided, expected_trials, trials_80, trials_95]);
        }
        lines
    }
}

/// Writes a probability in percent with up to three digits. No probability is rounded to 0 or 100.
fn rough_percent(chance: f64) -> String {
    let percent = chance * 100.0;
    match percent {
        p if p < 0.01 => "< 0.01 %".into(),
        p if p > 99.99 => "> 99.99 %".into(),
        p if !(1.0..=99.0).contains(&p) => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// Writes a rate in percent, such as 50 %, 98.7 % or 99.12 %. It has so many decimals that its distance to 0 % or to
/// 100 %, whichever is smaller, has two significant digits. Rounds the rate up if `up` is `true`, otherwise down.
fn rough_rate(rate: f64, up: bool) -> String {
    let missing = rate.min(1.0 - rate) * 100.0;
    let scale = 10_f64.powf((1.0 - missing.log10().floor()).max(0.0));
    let scaled = rate * 100.0 * scale;
    // Because of the tolerance, a rate that already has so few digits is not changed by a floating-point error.
    let rounded = if up { (scaled - 1e-6).ceil() } else { (scaled + 1e-6).floor() };
    exact_percent(rounded / scale / 100.0)
}

/// Writes a mean number of trials: with one decimal if it is below 100.
fn rough_count(count: f64) -> String {
    if count < 100.0 { format!("{count:.1}") } else { format!("{count:.0}") }
}
