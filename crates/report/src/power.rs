//! What `ascertain power` says: how a claim will fare, by the true rate.

use ascertain_engine::claim::Judging;
use ascertain_engine::unit::Unit;
use serde::Serialize;

use crate::csv::record;
use crate::figure::{exact_percent, odds};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::plot::{Axis, Layer, Plot, Scale, Which, text};
use crate::terminal::Style;
use crate::{json, markdown};

/// The name and version of the schema of [`PowerAnalysis`] in JSON.
pub const SCHEMA: &str = "ascertain.power/1";

/// How a claim will fare, exactly and before anything is measured. What is not known is `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PowerAnalysis {
    /// [`SCHEMA`].
    pub schema: String,
    /// `rate`: a claim "at least so often". `order`: `compare`, which asks of pairs which of two wins more often.
    pub judging: Judging,
    /// The rate that is claimed; ½ for an order.
    pub rate_claimed: f64,
    /// Rates this close to the claimed one need not be told apart.
    pub margin: Option<f64>,
    /// The chance that *holds* (for an order: *faster*) is wrong, at most.
    pub error_holds: f64,
    /// The chance that *refuted* (for an order: *slower*) is wrong, at most.
    pub error_refuted: f64,
    /// Trials (for an order: pairs that are no ties) after which it stays undecided.
    pub max_trials: u64,
    /// By true rate, those that the table has.
    pub rates: Vec<PowerAt>,
    /// By true rate, ascending, those that the plot has.
    pub curve: Vec<PowerAt>,
}

/// How a claim fares where it is true at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PowerAt {
    /// The rate at which trials succeed; for an order, the share of the pairs that one wins.
    pub true_rate: f64,
    /// The chance of *holds*, or *faster*.
    pub holds: f64,
    /// The chance of *refuted*, or *slower*.
    pub refuted: f64,
    /// The chance that the trials end before a verdict.
    pub undecided: f64,
    /// The mean number of trials, those of the undecided included.
    pub expected_trials: f64,
    /// The fewest trials by which a verdict falls with a chance of at least 80 %; `None`: more than there are.
    pub trials_80: Option<u64>,
    /// The same with a chance of at least 95 %.
    pub trials_95: Option<u64>,
}

/// The words of a question.
struct Words {
    rate: &'static str,
    trials: &'static str,
    holds: &'static str,
    refuted: &'static str,
}

impl PowerAnalysis {
    fn words(&self) -> Words {
        match self.judging {
            Judging::Order => Words { rate: "Wins", trials: "pairs", holds: "faster", refuted: "slower" },
            _ => Words { rate: "True rate", trials: "trials", holds: "holds", refuted: "refuted" },
        }
    }

    /// The question, the answer for each rate where there are few of them, else for all together, and what a
    /// reader might miss.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![self.question()];
        if self.rates.len() <= 3 {
            sentences.extend(self.rates.iter().map(|at| self.answer(at)));
        } else {
            sentences.push(self.reach());
        }
        sentences.extend(self.caution());
        sentences
    }

    fn question(&self) -> String {
        let Words { trials, .. } = self.words();
        let most = self.max_trials;
        let error = match self.error_holds == self.error_refuted {
            true => format!("{} each way", odds(self.error_holds)),
            false => format!("{} for it and {} against it", odds(self.error_holds), odds(self.error_refuted)),
        };
        let margin = self.margin.map(|margin| format!(", give or take {}", exact_percent(margin)));
        let asked = match self.judging {
            Judging::Order => "Which of two wins more often".to_string(),
            _ => format!("At least {}{}", exact_percent(self.rate_claimed), margin.unwrap_or_default()),
        };
        format!("{asked}, wrong with a chance of at most {error}, in at most {most} {trials}.")
    }

    /// What becomes of it at one true rate.
    fn answer(&self, at: &PowerAt) -> String {
        let Words { trials, holds, refuted, .. } = self.words();
        let rate = exact_percent(at.true_rate);
        let opening = match self.judging {
            Judging::Order => format!("Where it wins {rate} of the {trials}"),
            _ => format!("Where the true rate is {rate}"),
        };
        let [says_holds, says_refuted, undecided] = [at.holds, at.refuted, at.undecided].map(|chance| {
            // The signs of a table as words.
            rough_percent(chance).replace("< ", "under ").replace("> ", "over ")
        });
        let by = |count: Option<u64>| match count {
            Some(count) => count.to_string(),
            None => format!("more than {}", self.max_trials),
        };
        let (by_80, by_95) = (by(at.trials_80), by(at.trials_95));
        format!(
            "{opening}, the answer is {holds} with a chance of {says_holds}, {refuted} with {says_refuted}, and \
             undecided with {undecided}. It takes {} {trials} on average, {by_80} to have it with a chance of 80 %, \
             {by_95} with one of 95 %.",
            rough_count(at.expected_trials)
        )
    }

    /// Between which true rates a verdict can't be counted on.
    fn reach(&self) -> String {
        let Words { trials, .. } = self.words();
        let mut all: Vec<&PowerAt> = self.rates.iter().chain(&self.curve).collect();
        all.sort_by(|one, other| one.true_rate.total_cmp(&other.true_rate));
        let likely: Vec<&&PowerAt> = all.iter().filter(|at| at.trials_95.is_some()).collect();
        let claimed = self.rate_claimed;
        let low = likely.iter().rev().find(|at| at.true_rate < claimed).map(|at| rough_rate(at.true_rate, false));
        let high = likely.iter().find(|at| at.true_rate > claimed).map(|at| rough_rate(at.true_rate, true));
        let opening =
            format!("Within {} {trials} a verdict can be counted on (with a chance of 95 %)", self.max_trials);
        let subject = if self.judging == Judging::Order { "one wins" } else { "the true rate is" };
        let closing = match (low, high, self.judging) {
            _ if likely.len() == all.len() => "at each of these rates".to_string(),
            (None, None, _) => "at none of these rates: allow more with --max-trials".to_string(),
            (_, Some(high), Judging::Order) => format!("where {subject} at least {high} of them"),
            (Some(low), Some(high), _) => format!("where {subject} at most {low} or at least {high}"),
            (Some(low), None, _) => format!("where {subject} at most {low}"),
            (None, Some(high), _) => format!("where {subject} at least {high}"),
        };
        format!("{opening} {closing}.")
    }

    /// What holds of true rates at the claimed one.
    fn caution(&self) -> Option<String> {
        let Words { trials, .. } = self.words();
        let claimed = self.rate_claimed;
        let is_within = |at: &PowerAt, margin: f64| (at.true_rate - claimed).abs() < margin;
        match self.margin {
            Some(margin) if self.rates.iter().any(|at| is_within(at, margin)) => Some(format!(
                "Between {} and {}, within the margin, either verdict is right, and one comes in the end.",
                exact_percent(claimed - margin),
                exact_percent(claimed + margin)
            )),
            None if self.rates.iter().any(|at| at.true_rate == claimed) => Some(match self.judging {
                Judging::Order => "Where each wins half of the pairs there is no answer to find: one comes by error \
                                   alone, and ties do not count. This is by who wins; `compare` bets on by how much as \
                                   well, and mostly needs fewer pairs."
                    .to_string(),
                _ => format!(
                    "Where the true rate is the claimed {}, no number of {trials} decides: a verdict comes by error \
                     alone. A --margin has it end.",
                    exact_percent(claimed)
                ),
            }),
            _ => None,
        }
    }

    fn grid(&self) -> Grid {
        let Words { rate, trials, holds, refuted } = self.words();
        let title = |word: &str| word[..1].to_uppercase() + &word[1..];
        let (holds, refuted, mean) = (title(holds), title(refuted), format!("Mean {trials}"));
        let headings = [rate, &holds, &refuted, "Undecided", &mean, "For 80 %", "For 95 %"];
        let mut grid = Grid::new(&headings.map(|heading| (heading, ColumnKind::Number)));
        for at in &self.rates {
            let count =
                |count: Option<u64>| count.map_or_else(|| format!("> {}", self.max_trials), |count| count.to_string());
            let cells = [
                exact_percent(at.true_rate),
                rough_percent(at.holds),
                rough_percent(at.refuted),
                rough_percent(at.undecided),
                rough_count(at.expected_trials),
                count(at.trials_80),
                count(at.trials_95),
            ];
            grid.rows.push(cells.map(Cell::Text).into());
        }
        grid
    }

    /// The chance of each verdict over the true rate.
    pub fn plot(&self) -> Plot {
        let Words { trials, holds, refuted, .. } = self.words();
        let (label, claimed) = match self.judging {
            Judging::Order => ("share of the pairs that it wins", "even".to_string()),
            _ => ("true rate", format!("claimed: {}", exact_percent(self.rate_claimed))),
        };
        let chances: [fn(&PowerAt) -> f64; 3] = [|at| at.holds, |at| at.refuted, |at| at.undecided];
        let points = |all: &[PowerAt], chance: fn(&PowerAt) -> f64| -> Vec<[f64; 2]> {
            all.iter().map(|at| [at.true_rate, chance(at)]).collect()
        };
        let rule = Layer::Rule { on: Which::X, at: self.rate_claimed, label: claimed };
        let line = |(index, chance): (usize, fn(&PowerAt) -> f64)| Layer::Line {
            series: Some(index),
            points: points(&self.curve, chance),
            steps: false,
            dashed: index == 2,
        };
        let dots = |(index, chance): (usize, fn(&PowerAt) -> f64)| Layer::Dots {
            series: Some(index),
            points: points(&self.rates, chance),
            hollow: false,
        };
        let lines = chances.into_iter().enumerate().map(line);
        Plot {
            id: "power".into(),
            title: format!("The chance of each verdict in {} {trials}", self.max_trials),
            alt: [self.question(), self.reach()].join(" "),
            x: Axis::new(label, Scale::Logit, Unit::One).percent(),
            y: Axis::new("chance", Scale::Linear, Unit::One).showing(0.0, 1.0).percent(),
            series: [holds, refuted, "undecided"].map(String::from).into(),
            layers: [rule].into_iter().chain(lines).chain(chances.into_iter().enumerate().map(dots)).collect(),
        }
    }
}

/// Lines that the plot takes in a terminal.
const PLOT_LINES: usize = 18;

/// The sentences, the table and the plot.
pub fn table(analysis: &PowerAnalysis, style: &Style) -> String {
    let sentences: String = analysis.sentences().iter().map(|sentence| style.paragraph(sentence)).collect();
    let plot = text::render(&analysis.plot(), style.width, PLOT_LINES, style.color);
    format!("{sentences}\n{}\n{plot}", style.table(&analysis.grid()))
}

/// The sentences and the table.
pub fn markdown(analysis: &PowerAnalysis) -> String {
    let sentences = analysis.sentences().join(" ");
    format!("{}\n{}", markdown::paragraph(&sentences), markdown::table(&analysis.grid()))
}

/// The whole analysis as one object.
pub fn json(analysis: &PowerAnalysis) -> String {
    json::object(analysis)
}

/// The table, a line a true rate; a number of trials beyond the most is empty.
pub fn csv(analysis: &PowerAnalysis) -> String {
    let mut lines = String::from("true_rate,holds,refuted,undecided,expected_trials,trials_80,trials_95\n");
    for at in &analysis.rates {
        let PowerAt { true_rate, holds, refuted, undecided, expected_trials, trials_80, trials_95 } = at;
        lines += &record(&[true_rate, holds, refuted, undecided, expected_trials, trials_80, trials_95]);
    }
    lines
}

/// A chance in percent as a plan needs it: three digits, and never rounded onto "never" or "always".
fn rough_percent(chance: f64) -> String {
    let percent = chance * 100.0;
    match percent {
        p if p < 0.01 => "< 0.01 %".into(),
        p if p > 99.99 => "> 99.99 %".into(),
        p if !(1.0..=99.0).contains(&p) => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// A rate in percent, rounded away from the claimed one in two digits of what is missing to 0 or 100.
fn rough_rate(rate: f64, up: bool) -> String {
    let missing = rate.min(1.0 - rate) * 100.0;
    let scale = 10_f64.powf((1.0 - missing.log10().floor()).max(0.0));
    let scaled = rate * 100.0 * scale;
    // A rate that is such a number already must not be rounded off it by the last bit.
    let rounded = if up { (scaled - 1e-6).ceil() } else { (scaled + 1e-6).floor() };
    exact_percent(rounded / scale / 100.0)
}

/// A mean number of trials.
fn rough_count(count: f64) -> String {
    if count < 100.0 { format!("{count:.1}") } else { format!("{count:.0}") }
}
