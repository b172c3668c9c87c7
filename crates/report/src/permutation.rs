//! Permutation tests of samples that Ascertain did not measure: the output of `ascertain permute`.

use ascertain_engine::unit::{Unit, significant};
use ascertain_permute::{Alternative, Comparison, Decision, End};
use serde::Serialize;

use crate::csv::{self, Field};
use crate::figure::{Figure, chance, error_in_words};
use crate::formats::{Element, Report};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::text::{capitalised, counted, plain, quoted};

/// The result of a permutation test. Values are `None`, in JSON `null`, if they are unknown or the method does not
/// compute them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Permutation {
    /// The conclusion: `different`, `not_shown` or `undecided`.
    pub decision: Decision,
    /// The reason why the test ended: `decided`, `max_shuffles`, `max_time` or `interrupted`.
    pub end: End,
    /// The name of the sequential test: `betting` or `csm`.
    pub method: String,
    /// The statistic that is computed for each sample, such as `mean`, `std`, `median` or `p99`.
    pub statistic: String,
    /// The way in which the statistics of the samples are compared: by `difference` or `ratio`.
    pub comparison: Comparison,
    /// The alternative to the null hypothesis, by the direction of the effect: `two_sided`, `greater` or `less`.
    pub alternative: Alternative,
    /// The shift in the null hypothesis, in the unit of the values. The hypothesis is: second sample = `scale` · first
    /// sample + `shift`.
    pub shift: f64,
    /// The factor in the null hypothesis, see `shift`.
    pub scale: f64,
    /// The significance level.
    pub alpha: f64,
    /// For `csm`: the highest probability that the statement about the p-value is wrong.
    pub error: Option<f64>,
    /// The unit of the values, of the statistics and of their difference.
    pub unit: Unit,
    /// The samples that were compared.
    pub samples: Vec<SampleSummary>,
    /// The difference or ratio of the statistics of the original samples.
    pub observed: f64,
    /// The difference or ratio that the null hypothesis predicts.
    pub expected: f64,
    /// Number of random reassignments (reshuffles) of the values to the samples.
    pub shuffles: u64,
    /// Number of reshuffles that were exceedances: their difference or ratio was at least as far from the null
    /// hypothesis as the observed one.
    pub exceedances: u64,
    /// For `betting`: the anytime-valid p-value. It is never below 0.9 · `alpha`, because the test only decides whether
    /// the p-value is at most `alpha`, not how small it is.
    pub p_anytime: Option<f64>,
    /// For `betting`: the natural logarithm of the bettor's wealth at the end of the test, an e-value.
    pub log_wealth: Option<f64>,
    /// For `csm`: the p-value, estimated by the share of exceedances.
    pub p: Option<f64>,
    /// For `csm`: the lower end of the confidence sequence for the p-value.
    pub p_low: Option<f64>,
    /// For `csm`: the upper end of the confidence sequence for the p-value.
    pub p_high: Option<f64>,
    /// The seed of the random reshuffles.
    pub seed: u64,
    /// The time that the reshuffles took, in nanoseconds.
    pub elapsed_ns: u64,
}

/// One of the compared samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleSummary {
    /// The name of the sample's file or arm.
    pub name: String,
    /// The first line of the file, if it is a heading instead of a number.
    pub heading: Option<String>,
    /// Number of values in the sample.
    pub n: u64,
    /// The value of the statistic, in the unit of the values.
    pub value: f64,
}

impl Report for Permutation {
    const SCHEMA: &'static str = "ascertain.permute/1";

    /// Returns the table of samples, the conclusion as a sentence, and the p-value.
    fn elements(&self) -> Vec<Element> {
        vec![Element::Table(self.grid()), Element::Sentences(vec![self.conclusion(), self.p_value()])]
    }

    /// Returns the result as CSV, with a line for each sample. Every line repeats the conclusion and the settings of
    /// the test.
    fn csv(&self) -> String {
        let Permutation { method, statistic, shift, scale, alpha, error, samples, observed, expected, .. } = self;
        let Permutation { shuffles, exceedances, p_anytime, log_wealth, p, p_low, p_high, seed, elapsed_ns, .. } = self;
        let (decision, end, comparison) = (self.decision.word(), self.end.word(), self.comparison.word());
        let (alternative, unit, count) = (self.alternative.word(), self.unit.symbol(), samples.len());
        let question: [&dyn Field; 9] =
            [&decision, &end, method, statistic, &comparison, &alternative, shift, scale, alpha];
        let counts: [&dyn Field; 7] = [error, &unit, &count, observed, expected, shuffles, exceedances];
        let p_values: [&dyn Field; 7] = [p_anytime, log_wealth, p, p_low, p_high, seed, elapsed_ns];
        let line = |SampleSummary { name, heading, n, value }: &SampleSummary| {
            csv::record(&[&question[..], &counts, &p_values, &[name, heading, n, value]].concat())
        };
        format!(
            "decision,end,method,statistic,comparison,alternative,shift,scale,alpha,error,unit,samples,observed,\
             expected,shuffles,exceedances,p_anytime,log_wealth,p,p_low,p_high,seed,elapsed_ns,sample,heading,n,value\n{}",
            samples.iter().map(line).collect::<String>()
        )
    }
}

impl Permutation {
    /// Returns the conclusion as one sentence.
    pub fn sentence(&self) -> String {
        plain(&self.conclusion())
    }

    /// Returns the conclusion as a sentence in which the names of samples are marked, see `crate::text::quoted`.
    fn conclusion(&self) -> String {
        let (observation, reshuffles) = (self.observation(), self.reshuffles());
        let alpha = chance(self.alpha);
        // If the samples are exactly as the null hypothesis predicts, the reshuffles confirm it, so "but" would be
        // wrong.
        let but = if self.observed == self.expected { "and" } else { "but" };
        let chance_or_null = if self.is_plain() { "chance" } else { "the null hypothesis" };
        let by = if self.is_plain() { "By chance" } else { "Under the null hypothesis" };
        match (self.decision, self.error) {
            (Decision::Different, None) => {
                format!(
                    "Different: {observation}, and {reshuffles}. {by}, this has a probability of at most {}.",
                    error_in_words(self.alpha)
                )
            }
            (Decision::Different, Some(error)) => format!(
                "Different: {observation}, and {reshuffles}, so the p-value is below {alpha}; error at most {}.",
                error_in_words(error)
            ),
            (Decision::NotShown, None) => format!(
                "Not shown: {observation}, {but} {reshuffles}, so {chance_or_null} may explain it at the level {alpha}. This \
                 does not prove that {chance_or_null} explains it."
            ),
            (Decision::NotShown, Some(error)) => format!(
                "Not shown: {observation}, {but} {reshuffles}, so the p-value is above {alpha} (error at most {}). This does \
                 not prove that {chance_or_null} explains it.",
                error_in_words(error)
            ),
            (Decision::Undecided, _) => {
                let why = match self.end {
                    End::Interrupted => "the test was interrupted",
                    End::MaxTime => "the time ran out",
                    End::MaxShuffles | End::Decided => "the limit of reshuffles was reached",
                };
                format!(
                    "Undecided: {observation}; {reshuffles} when {why}. More reshuffles are needed to decide at the level {alpha}."
                )
            }
        }
    }

    /// Returns a sentence with the p-value, the null hypothesis and the seed.
    fn p_value(&self) -> String {
        let null = match (self.samples.as_slice(), (self.scale, self.shift)) {
            (_, (1.0, 0.0)) => "all samples have the same distribution".to_string(),
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
            (Some(p), _) if p >= 1.0 => "1 (no evidence of a difference)".into(),
            (Some(p), _) => format!("at most {} (by betting; valid whenever the test is stopped)", chance(p)),
            (None, Some(error)) => {
                let of = |p, low| Figure::new(p, low, self.p_high, &[0.0, 1.0, self.alpha]);
                let p = match self.exceedances {
                    0 => of(None, None).range,
                    _ => of(self.p, self.p_low).to_string(),
                };
                format!("{p}, at error {} (by the confidence sequence method)", error_in_words(error))
            }
            (None, None) => "-".into(),
        };
        format!("p-value: {p}. Null hypothesis: {null}. Seed: {}.", self.seed)
    }

    /// Returns the observed difference or ratio in words: "the mean of `b` is 1.171 ms above that of `a` (23.4 ms
    /// against 22.2 ms)".
    fn observation(&self) -> String {
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

    /// Writes the statistic of a sample in at least four digits, and in enough digits to show how the samples differ.
    fn shown(&self, sample: &SampleSummary) -> String {
        let values = || self.samples.iter().map(|sample| sample.value);
        let range = values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min);
        let four_digits = sample.value.abs() / 1e3;
        let fine = if range > 0.0 { four_digits.min(range / 1e2) } else { four_digits };
        let [low, high] = [sample.value - fine, sample.value + fine].map(Some);
        Figure::of_unit(self.unit, Some(sample.value), low, high).value
    }

    /// Returns the number of exceedances in words: "none of 50 reshuffles differed as much".
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

    /// Returns whether the null hypothesis is that all samples have the same distribution, without a shift or a factor.
    fn is_plain(&self) -> bool {
        (self.scale, self.shift) == (1.0, 0.0)
    }

    fn grid(&self) -> Grid {
        let statistic = capitalised(&self.statistic);
        let mut grid = Grid::new(&["Sample", "Values", &statistic]).kind(ColumnKind::Number, &["Values", &statistic]);
        grid.rows.extend(self.samples.iter().map(|sample| {
            vec![Cell::Code(sample.name.clone()), sample.n.to_string().into(), self.shown(sample).into()]
        }));
        grid
    }
}
