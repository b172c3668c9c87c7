//! What `ascertain permute` says of samples that exist already.

use ascertain_engine::unit::{Unit, significant};
use ascertain_permute::{Alternative, Comparison, Decision, End};
use serde::Serialize;

use crate::csv::{self, Field};
use crate::figure::{Figure, brief_odds, odds};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::terminal::Style;
use crate::text::{capitalised, counted, plain, quoted};
use crate::{json, markdown};

/// The version of what `--format json` prints.
pub const SCHEMA: &str = "ascertain.permute/1";

/// A permutation test. What is not known, or what its method does not say, is `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Permutation {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was concluded: `different`, `not_shown` or `undecided`.
    pub decision: Decision,
    /// Why it ended: `decided`, `max_shuffles`, `max_time` or `interrupted`.
    pub end: End,
    /// The sequential test: `betting` or `csm`.
    pub method: String,
    /// What each sample is summed up by: `mean`, `std`, `median`, `p99`.
    pub statistic: String,
    /// How they are compared: `difference` or `ratio`.
    pub comparison: Comparison,
    /// What counts against the null hypothesis: `two_sided`, `greater` or `less`.
    pub alternative: Alternative,
    /// The null hypothesis has the second sample as `scale` times the first plus this, in the values' unit.
    pub shift: f64,
    /// And this many times as large.
    pub scale: f64,
    /// The level: of the test, or where the p-value is compared with.
    pub alpha: f64,
    /// By CSM: the chance that what is said of the p-value is wrong, at most.
    pub error: Option<f64>,
    /// The unit of the values, of their statistics and differences.
    pub unit: Unit,
    /// The samples.
    pub samples: Vec<SampleSummary>,
    /// The comparison of the samples as they are.
    pub observed: f64,
    /// The comparison that the null hypothesis expects.
    pub expected: f64,
    /// Reshuffles made.
    pub shuffles: u64,
    /// Those that were at least as far from the null hypothesis as the samples.
    pub exceedances: u64,
    /// By betting: the anytime-valid p-value, never below 0.9 of alpha.
    pub p_anytime: Option<f64>,
    /// By betting: natural logarithm of the wealth at the end.
    pub log_wealth: Option<f64>,
    /// By CSM: the share of exceedances.
    pub p: Option<f64>,
    /// By CSM: the lower end of the p-value's confidence sequence.
    pub p_low: Option<f64>,
    /// By CSM: its upper end.
    pub p_high: Option<f64>,
    /// The seed of the reshuffles.
    pub seed: u64,
    /// The time that the reshuffles took.
    pub elapsed_ns: u64,
}

/// A sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleSummary {
    /// The file's name, or the arm's.
    pub name: String,
    /// The first line of its file, where that was taken as the column's heading.
    pub heading: Option<String>,
    /// How many values it has.
    pub n: u64,
    /// Its statistic, in the values' unit.
    pub value: f64,
}

/// The table of samples, the conclusion as a sentence, and the p-value.
pub fn terminal(permutation: &Permutation, style: &Style) -> String {
    let sentences = [style.paragraph(&permutation.sentence()), style.paragraph(&plain(&permutation.p_value()))];
    format!("{}\n{}", style.table(&permutation.grid()), sentences.concat())
}

/// The same in Markdown.
pub fn markdown(permutation: &Permutation) -> String {
    let paragraphs = [permutation.marked(), permutation.p_value()].map(|sentence| markdown::paragraph(&sentence));
    [vec![markdown::table(&permutation.grid())], paragraphs.to_vec()].concat().join("\n")
}

/// One object of schema [`SCHEMA`].
pub fn json(permutation: &Permutation) -> String {
    json::object(permutation)
}

/// A line a sample, each with the whole conclusion before it.
pub fn csv(permutation: &Permutation) -> String {
    let Permutation { method, statistic, shift, scale, alpha, error, samples, observed, expected, .. } = permutation;
    let Permutation { shuffles, exceedances, p_anytime, log_wealth, p, p_low, p_high, seed, elapsed_ns, .. } =
        permutation;
    let (decision, end) = (permutation.decision.word(), permutation.end.word());
    let (comparison, alternative) = (permutation.comparison.word(), permutation.alternative.word());
    let (unit, count) = (permutation.unit.symbol(), samples.len());
    let asked: [&dyn Field; 9] = [&decision, &end, method, statistic, &comparison, &alternative, shift, scale, alpha];
    let seen: [&dyn Field; 7] = [error, &unit, &count, observed, expected, shuffles, exceedances];
    let said: [&dyn Field; 7] = [p_anytime, log_wealth, p, p_low, p_high, seed, elapsed_ns];
    let line = |SampleSummary { name, heading, n, value }: &SampleSummary| {
        csv::record(&[&asked[..], &seen, &said, &[name, heading, n, value]].concat())
    };
    format!(
        "decision,end,method,statistic,comparison,alternative,shift,scale,alpha,error,unit,samples,observed,expected,\
         shuffles,exceedances,p_anytime,log_wealth,p,p_low,p_high,seed,elapsed_ns,sample,heading,n,value\n{}",
        samples.iter().map(line).collect::<String>()
    )
}

impl Permutation {
    /// The conclusion as one plain sentence.
    pub fn sentence(&self) -> String {
        plain(&self.marked())
    }

    /// The sentence with its names marked.
    fn marked(&self) -> String {
        let (seen, reshuffles) = (self.seen(), self.reshuffles());
        let alpha = brief_odds(self.alpha);
        // What is as the null hypothesis has it is what most reshuffles do.
        let but = if self.observed == self.expected { "and" } else { "but" };
        let chance_or_null = if self.is_plain() { "chance" } else { "the null hypothesis" };
        let by = if self.is_plain() { "By chance" } else { "Under the null hypothesis" };
        match (self.decision, self.error) {
            (Decision::Different, None) => {
                format!(
                    "Different: {seen}, and {reshuffles}. {by}, that has a probability of at most {}.",
                    odds(self.alpha)
                )
            }
            (Decision::Different, Some(error)) => format!(
                "Different: {seen}, and {reshuffles}, so the p-value is below {alpha}; error at most {}.",
                odds(error)
            ),
            (Decision::NotShown, None) => format!(
                "Not shown: {seen}, {but} {reshuffles}, so {chance_or_null} may explain it at the level {alpha}; that \
                 is no proof that it does."
            ),
            (Decision::NotShown, Some(error)) => format!(
                "Not shown: {seen}, {but} {reshuffles}, so the p-value is above {alpha} (error at most {}); that is \
                 no proof that {chance_or_null} explains it.",
                odds(error)
            ),
            (Decision::Undecided, _) => {
                let why = match self.end {
                    End::Interrupted => "it was interrupted",
                    End::MaxTime => "the time was over",
                    End::MaxShuffles | End::Decided => "no more were to be made",
                };
                format!("Undecided: {seen}; {reshuffles} when {why}. That is too little to tell at the level {alpha}.")
            }
        }
    }

    /// What the test says of the p-value.
    fn p_value(&self) -> String {
        let null = match (self.samples.as_slice(), (self.scale, self.shift)) {
            (_, (1.0, 0.0)) => "one distribution".to_string(),
            ([first, second], (1.0, shift)) => {
                format!("{} is {} plus {}", quoted(&second.name), quoted(&first.name), self.unit.exact(shift))
            }
            ([first, second], (scale, 0.0)) => {
                format!("{} is {} times {}", quoted(&second.name), Unit::One.exact(scale), quoted(&first.name))
            }
            (samples, (scale, shift)) => {
                let name = |index: usize| samples.get(index).map_or_else(String::new, |sample| quoted(&sample.name));
                format!("{} is {} times {} plus {}", name(1), Unit::One.exact(scale), name(0), self.unit.exact(shift))
            }
        };
        let p = match (self.p_anytime, self.error) {
            (Some(p), _) if p >= 1.0 => "1, no evidence against the null hypothesis".into(),
            (Some(p), _) => format!("at most {}, valid at any time of stopping (by betting)", brief_odds(p)),
            (None, Some(error)) => {
                let of = |p, low| Figure::new(p, low, self.p_high, &[0.0, 1.0, self.alpha]);
                let p = match self.exceedances {
                    0 => of(None, None).range,
                    _ => of(self.p, self.p_low).to_string(),
                };
                format!("{p}, at error {} (by CSM)", brief_odds(error))
            }
            (None, None) => "-".into(),
        };
        format!("p-value: {p}. Null hypothesis: {null}. Seed: {}.", self.seed)
    }

    /// "the mean of `b` is 1.171 ms above that of `a` (23.4 ms against 22.2 ms)"
    fn seen(&self) -> String {
        let statistic = &self.statistic;
        let value = |sample: &SampleSummary| self.shown(sample);
        if let [first, second] = self.samples.as_slice() {
            let how = match self.comparison {
                _ if first.value == second.value => "equal to".into(),
                Comparison::Ratio => format!("{} times", significant(self.observed)),
                Comparison::Difference if self.observed > 0.0 => format!("{} above", self.unit.human(self.observed)),
                Comparison::Difference => format!("{} below", self.unit.human(-self.observed)),
            };
            let (second_name, first_name) = (quoted(&second.name), quoted(&first.name));
            let values = format!("{} against {}", value(second), value(first));
            return format!("the {statistic} of {second_name} is {how} that of {first_name} ({values})");
        }
        let by_value = |a: &&SampleSummary, b: &&SampleSummary| a.value.total_cmp(&b.value);
        let ends = (self.samples.iter().max_by(by_value), self.samples.iter().min_by(by_value));
        let (Some(greatest), Some(least)) = ends else { return "there are no samples".into() };
        let how = match self.comparison {
            Comparison::Difference => format!("{} above", self.unit.human(self.observed)),
            Comparison::Ratio => format!("{} times", significant(self.observed)),
        };
        format!(
            "the greatest {statistic}, {} of {}, is {how} the least, {} of {}",
            value(greatest),
            quoted(&greatest.name),
            value(least),
            quoted(&least.name)
        )
    }

    /// A sample's statistic, in as many digits as show by how much the samples differ, and four at least.
    fn shown(&self, sample: &SampleSummary) -> String {
        let values = || self.samples.iter().map(|sample| sample.value);
        let range = values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min);
        let four_digits = sample.value.abs() / 1e3;
        let fine = if range > 0.0 { four_digits.min(range / 1e2) } else { four_digits };
        let [low, high] = [sample.value - fine, sample.value + fine].map(Some);
        Figure::of_unit(self.unit, Some(sample.value), low, high).value
    }

    /// "none of 50 reshuffles differed as much"
    fn reshuffles(&self) -> String {
        let (count, all) = (self.exceedances, self.shuffles);
        let share = if count == 0 { "none".to_string() } else { count.to_string() };
        let as_much = match self.alternative {
            Alternative::Greater => "came out as high",
            Alternative::Less => "came out as low",
            Alternative::TwoSided if self.is_plain() => "differed as much",
            Alternative::TwoSided => "came out as far from the null hypothesis",
        };
        format!("{share} of {} {as_much}", counted(all, "reshuffle"))
    }

    /// Whether the null hypothesis is "one distribution".
    fn is_plain(&self) -> bool {
        (self.scale, self.shift) == (1.0, 0.0)
    }

    fn grid(&self) -> Grid {
        let statistic = capitalised(&self.statistic);
        let mut grid = Grid::new(&[
            ("Sample", ColumnKind::Prose),
            ("Values", ColumnKind::Number),
            (&statistic, ColumnKind::Number),
        ]);
        grid.rows = self
            .samples
            .iter()
            .map(|sample| {
                let name = Cell::Code(sample.name.clone());
                vec![name, sample.n.to_string().into(), self.shown(sample).into()]
            })
            .collect();
        grid
    }
}
