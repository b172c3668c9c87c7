//! The size of a difference in words: "it took 9.3 % longer", "2.5 times as fast", "uses 12 % less memory".
//!
//! A ratio is above 1 if the candidate is better, for every metric. A ratio below 1 is easily read the wrong way round,
//! so readers get the direction and the size of the difference in words.

use ascertain_engine::claim::{Judging, Measure};
use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{ClaimResult, Decision};
use ascertain_engine::unit::Unit;

use crate::clause::{self, ArmComparison};
use crate::figure::{Figure, chance, exact_percent, percent};

/// The words that compare amounts of a metric other than time, as in "uses less memory".
pub(crate) struct Amount {
    /// The verb in the third person, then its infinitive: "uses" and "use".
    verbs: (&'static str, &'static str),
    noun: &'static str,
    is_counted: bool,
}

impl Amount {
    /// Returns the words for comparing amounts of this metric. `None` for time, which has other words ("faster"), and
    /// for metrics without such words.
    pub fn new(measure: &Measure) -> Option<Amount> {
        const USES: (&str, &str) = ("uses", "use");
        const HAS: (&str, &str) = ("has", "have");
        let (verbs, noun, is_counted) = match measure.metric.as_str() {
            "user" => (USES, "user time", false),
            "system" => (USES, "system time", false),
            "memory_peak" => (USES, "memory", false),
            "instructions" => (("executes", "execute"), "instructions", true),
            "cycles" => (("takes", "take"), "cycles", true),
            "cache_references" => (HAS, "cache references", true),
            "cache_misses" => (HAS, "cache misses", true),
            "branch_misses" => (HAS, "branch misses", true),
            "page_faults" => (HAS, "page faults", true),
            "context_switches" => (HAS, "context switches", true),
            "cpu_migrations" => (HAS, "CPU migrations", true),
            _ => return None,
        };
        Some(Amount { verbs, noun, is_counted })
    }

    /// Returns the words for the metric of a comparison; `None` for time and for other claims.
    pub fn of_order(claim: &ClaimResult) -> Option<Amount> {
        ArmComparison::new(claim).and_then(|comparison| Amount::new(comparison.measure))
    }

    /// Returns the comparative for the metric's noun: "less" or "more" for amounts, "fewer" or "more" for counters.
    pub fn word(&self, is_less: bool) -> &'static str {
        match (is_less, self.is_counted) {
            (true, true) => "fewer",
            (true, false) => "less",
            (false, _) => "more",
        }
    }

    /// Returns the word for a decision about this metric in tables: "less", "more" or "equal".
    pub fn answer(&self, decision: Decision) -> &'static str {
        match decision {
            Decision::Faster => self.word(true),
            Decision::Slower => self.word(false),
            Decision::NotSlower => "not more",
            Decision::NotFaster if self.is_counted => "not fewer",
            Decision::NotFaster => "not less",
            Decision::Same | Decision::Undecided => decision.word(),
        }
    }

    /// Returns the words that compare equal amounts: "as much", or "as many" for a counter.
    pub fn as_much(&self) -> &'static str {
        if self.is_counted { "as many" } else { "as much" }
    }

    /// Returns the axis label for pictures of the ratio.
    #[cfg(feature = "html")]
    pub fn ratio(&self) -> String {
        format!("{}: reference divided by candidate (above 1: {})", self.noun, self.word(true))
    }

    pub fn noun(&self) -> &'static str {
        self.noun
    }
}

/// The words that join the names of the two sides of a comparison.
pub(crate) struct Wording {
    /// The predicate of the better side in the singular: "is faster", "uses less memory".
    pub is_better: String,
    /// The predicate of the better side in the plural: "are faster", "use less memory".
    #[cfg_attr(not(feature = "html"), allow(dead_code))]
    pub are_better: String,
    /// The better side compared with the other: "is faster than", or "uses less memory than".
    pub better: String,
    /// The worse side compared with the other: "is slower than", or "uses more memory than".
    pub worse: String,
    /// One of two equal sides compared with the other: "is as fast as", or "uses as much memory as".
    pub equal: String,
    /// The negation of `better`: "is not faster than", or "does not use less memory than".
    pub not_better: String,
    /// The negation of `worse`: "is not slower than", or "does not use more memory than".
    pub not_worse: String,
    /// The metric, as it is written after the name of the other side: " in `throughput`". Empty if the other words
    /// already name the metric.
    pub in_metric: String,
}

impl Wording {
    pub fn new(measure: &Measure) -> Wording {
        Wording::after("is ", measure)
    }

    /// Returns the words without a leading "is": "faster than". Other verbs, as in "uses less memory than", stay.
    #[cfg(feature = "html")]
    pub fn without_is(measure: &Measure) -> Wording {
        Wording::after("", measure)
    }

    fn after(is: &str, measure: &Measure) -> Wording {
        let (verbs, [better, worse, equal]) = match Amount::new(measure) {
            None => {
                let (good, better) = clause::adjective(measure);
                let verbs = [is.to_string(), "is ".into(), "are ".into(), format!("{is}not ")];
                (verbs, [better.into(), clause::worse(measure).into(), format!("as {good} as")])
            }
            Some(amount) => {
                let (uses, r#use) = amount.verbs;
                let verbs = [format!("{uses} "), format!("{uses} "), format!("{use} "), format!("does not {use} ")];
                let [less, more] = [true, false].map(|is_less| format!("{} {}", amount.word(is_less), amount.noun));
                (verbs, [less, more, format!("{} {} as", amount.as_much(), amount.noun)])
            }
        };
        let [is, has, have, is_not] = verbs;
        Wording {
            is_better: format!("{has}{better}"),
            are_better: format!("{have}{better}"),
            better: format!("{is}{better} than"),
            worse: format!("{is}{worse} than"),
            equal: format!("{is}{equal}"),
            not_better: format!("{is_not}{better} than"),
            not_worse: format!("{is_not}{worse} than"),
            in_metric: if Amount::new(measure).is_some() { String::new() } else { clause::in_metric(measure) },
        }
    }
}

/// The smallest ratio that is written as a multiple ("2 times as fast"); a smaller one is written in percent.
const TIMES: f64 = 1.5;

/// The words that describe a ratio, as in "it took 9.3 % longer" and "it was 2.5 times as fast".
struct RatioWording {
    /// The words before the number: "it took ", "its `error` was "; empty if the words after the number name the
    /// metric.
    before: String,
    /// The name of the metric before the number in tables, for example "error "; empty if the words after the number
    /// name the metric.
    name: String,
    /// Converts a ratio (above 1 if the candidate is better) to the number that is written.
    number: fn(f64) -> f64,
    /// `true` if the number is a share that is written in percent.
    is_share: bool,
    /// The words after the number: " longer", " times as fast".
    after: String,
    /// The words that replace a share of 0 %: "about the same time".
    same: &'static str,
}

impl RatioWording {
    /// Returns the words that suit the size and direction of `ratio`, which is above 1 if the candidate is better.
    fn new(measure: &Measure, ratio: f64) -> RatioWording {
        let words = |[before, name]: [&str; 2], number, is_share, after: &str, same| RatioWording {
            before: before.into(),
            name: name.into(),
            number,
            is_share,
            after: after.into(),
            same,
        };
        if is_time(measure) {
            let same = "about the same time";
            return match ratio {
                TIMES.. => words(["it was ", ""], |ratio| ratio, false, " times as fast", same),
                1.0.. => words(["it took ", ""], |ratio| 1.0 - 1.0 / ratio, true, " less time", same),
                _ if ratio > 1.0 / TIMES => words(["it took ", ""], |ratio| 1.0 / ratio - 1.0, true, " longer", same),
                _ => words(["it took ", ""], |ratio| 1.0 / ratio, false, " times as long", same),
            };
        }
        let amount = Amount::new(measure);
        let name = clause::metric_name(measure);
        let (its, name, same) = match &amount {
            Some(Amount { is_counted: true, .. }) => (String::new(), String::new(), "about the same number"),
            Some(_) => (String::new(), String::new(), "about the same amount"),
            None => (format!("its {name} was "), format!("{} ", measure.metric.replace('_', " ")), "about the same"),
        };
        let [times, more, less] = match (&amount, measure.unit) {
            (Some(amount), _) => {
                [format!(" times {}", amount.as_much()), " more".into(), format!(" {}", amount.word(true))]
            }
            (None, Unit::Byte) => [" times as large", " larger", " smaller"].map(String::from),
            (None, _) => [" times as high", " higher", " lower"].map(String::from),
        };
        // Three functions of the ratio, with an example each. The first returns the candidate's amount divided by the
        // baseline's: 1.2. The second returns by which share the candidate's amount is larger: 0.2. The third returns
        // by which share it is smaller: 0.2 if the first returns 0.8.
        let [share, more_by, less_by]: [fn(f64) -> f64; 3] = match measure.better {
            Better::Lower => [|ratio| 1.0 / ratio, |ratio| 1.0 / ratio - 1.0, |ratio| 1.0 - 1.0 / ratio],
            Better::Higher => [|ratio| ratio, |ratio| ratio - 1.0, |ratio| 1.0 - ratio],
        };
        let of_ratio = share(ratio);
        match of_ratio {
            TIMES.. => words([&its, &name], share, false, &times, same),
            1.0.. => words([&its, &name], more_by, true, &more, same),
            _ => words([&its, &name], less_by, true, &less, same),
        }
    }

    /// Returns the words for a share in percent, in the direction of `ratio`: " less time", " longer".
    fn in_percent(measure: &Measure, ratio: f64) -> RatioWording {
        RatioWording::new(measure, if ratio >= 1.0 { 1.01 } else { 0.99 })
    }

    /// Returns the words for a multiple of the reference's amount: " times as long", " times as much".
    fn in_times(measure: &Measure) -> RatioWording {
        let ratio = if measure.better == Better::Lower { 0.1 } else { 10.0 };
        RatioWording::new(measure, ratio)
    }

    fn figure(&self, value: Option<f64>, low: Option<f64>, high: Option<f64>) -> Figure {
        if self.is_share { Figure::of_share(value, low, high, 0.0) } else { Figure::new(value, low, high, &[1.0]) }
    }

    /// Returns the number followed by its words: "9.3 % longer".
    fn written(&self, number: &str) -> String {
        if is_zero(number) { self.same.into() } else { format!("{number}{}", self.after) }
    }
}

/// Returns whether a written number is a share of 0 %.
fn is_zero(number: &str) -> bool {
    number.ends_with(" %") && number.chars().all(|c| "-0. %".contains(c))
}

/// The form of a range of ratios next to the size of a difference.
#[derive(Clone, Copy, PartialEq)]
enum RangeForm {
    /// Numbers in the unit of the size, without its words: "8.1 to 15 %".
    Bare,
    /// Percentages with words: "9.1 % less time to 25 % longer", "3.5 to 18 % longer".
    Percent,
    /// Multiples with words: "0.81 to 8.0 times as long".
    Times,
}

/// The size of the difference between candidate and reference in words, for a sentence or a table. It exists only if
/// their ratio is known.
struct Size<'a> {
    claim: &'a ClaimResult,
    measure: &'a Measure,
    words: RatioWording,
    /// The number that is written with `words`, and its interval, the lower end first.
    figure: Figure,
    has_interval: bool,
}

impl<'a> Size<'a> {
    fn new(claim: &'a ClaimResult, measure: &'a Measure) -> Option<Size<'a>> {
        let ratio = claim.ratio.filter(|ratio| *ratio > 0.0 && ratio.is_finite())?;
        let words = RatioWording::new(measure, ratio);
        let (low, high) = between(&words, claim.ratio_low, claim.ratio_high);
        let figure = match (low, high) {
            (None, None) if claim.asked.judging != Judging::Exact && !words.is_share => {
                Figure::unbounded(Some((words.number)(ratio)))
            }
            _ => words.figure(Some((words.number)(ratio)), low, high),
        };
        Some(Size { claim, measure, words, figure, has_interval: (low, high) != (None, None) })
    }

    /// Returns the interval of the ratio in words: "5 % less time to 3 % longer". Empty if there is none.
    fn range(&self, form: RangeForm) -> String {
        let Size { claim, figure, .. } = self;
        if let Some(reason) = self.no_interval() {
            return reason;
        }
        match self.has_interval {
            true => self.in_words([claim.ratio_low, claim.ratio_high], form).unwrap_or_else(|| figure.range.clone()),
            false => String::new(),
        }
    }

    /// Returns the form of ranges next to the value, so that all of them have the same unit. `ratios` are the ends of
    /// the ranges.
    fn form(&self, ratios: &[Option<f64>]) -> RangeForm {
        let Size { measure, words, .. } = self;
        let ends = || ratios.iter().filter_map(|ratio| known(*ratio));
        let is_turned_over = |end: f64| end != 1.0 && RatioWording::in_percent(measure, end).after != words.after;
        match () {
            () if !words.is_share => RangeForm::Bare,
            () if ends().any(|end| needs_times(measure, end)) => RangeForm::Times,
            () if ends().any(is_turned_over) => RangeForm::Percent,
            () => RangeForm::Bare,
        }
    }

    /// Returns a text that replaces the interval: the reason why the ratio has none, or an empty text if the ratio is
    /// exact. `None` if there is an interval, or if it is missing only because there are too few trials.
    fn no_interval(&self) -> Option<String> {
        let Size { claim, measure, .. } = self;
        let is_open = !self.has_interval && claim.ratio_low == Some(0.0);
        match () {
            () if claim.asked.judging == Judging::Exact => Some(String::new()),
            () if claim.has_lost_interval(false) => Some(clause::NOT_ALIKE.into()),
            // If both values of a pair are zero, or both times were stopped at a limit, their ratio may be anything.
            () if is_open && Amount::new(measure).is_some() => Some("no interval: zeros or time-outs".into()),
            () if is_open => Some("no interval: time-outs".into()),
            () => None,
        }
    }

    /// Returns the range of the ratios of all pairs, from the smallest to the largest, in words. Empty if all are
    /// equal or there is only one pair.
    fn pairs(&self, form: RangeForm) -> String {
        let Size { claim, words, .. } = self;
        match between(words, claim.ratio_min, claim.ratio_max) {
            (Some(low), Some(high)) if claim.trials > 1 && low < high => {
                let plain = || words.figure(None, Some(low), Some(high)).range;
                self.in_words([claim.ratio_min, claim.ratio_max], form).unwrap_or_else(plain)
            }
            _ => String::new(),
        }
    }

    /// Returns both ends of a range of ratios in words: "9.1 % less time to 25 % longer". If only one end is known: "at
    /// worst 25 % longer". `None` if the words of `self` suit both ends.
    fn in_words(&self, ends: [Option<f64>; 2], form: RangeForm) -> Option<String> {
        let Size { measure, words, .. } = self;
        if form == RangeForm::Bare {
            return None;
        }
        let has_other = |end: f64| end != 1.0 && RatioWording::new(measure, end).after != words.after;
        match ends.map(known) {
            [Some(worst), None] => has_other(worst).then(|| format!("at worst {}", one_size(measure, worst))),
            [None, Some(best)] => has_other(best).then(|| format!("at best {}", one_size(measure, best))),
            [Some(low), Some(high)] => Some(sizes_in(measure, [low, high], form, " to ")),
            [None, None] => None,
        }
    }

    /// Returns the interval for a table. If an interval in percent includes 0 %, its ends have signs: `-9.1 to +25 %`.
    /// A negative end means less of the metric. If one end is unknown, only the other one decides whether the interval
    /// includes 0 %.
    fn range_with_signs(&self) -> String {
        let Size { claim, measure, words, .. } = self;
        let change = |ratio: f64| match measure.better {
            Better::Lower => 1.0 / ratio - 1.0,
            Better::Higher => ratio - 1.0,
        };
        if let Some(reason) = self.no_interval() {
            return reason;
        }
        let [low, high] = [claim.ratio_low, claim.ratio_high].map(known);
        let includes_one = low.is_none_or(|low| low < 1.0) && high.is_none_or(|high| high > 1.0);
        if !(words.is_share && self.has_interval && includes_one) {
            return self.figure.range.clone();
        }
        let [low, high] = match measure.better {
            Better::Lower => [high, low],
            Better::Higher => [low, high],
        }
        .map(|end| end.map(change));
        let range = Figure::of_share(claim.ratio.map(change), low, high, 0.0).range;
        // The upper end is positive. It may be "over 0", which needs no sign.
        range.replace(" to ", " to +").replace("at most ", "at most +").replace("+over", "over")
    }
}

/// Converts both ends of a range of ratios to the numbers that are written with these words. Returns the lower number
/// first. With words such as "longer", a higher ratio is a lower number, so the ends change places. An end of 0 or
/// infinity becomes `None`.
fn between(words: &RatioWording, low: Option<f64>, high: Option<f64>) -> (Option<f64>, Option<f64>) {
    let [low, high] = [low, high].map(|end| known(end).map(words.number));
    if is_turned(words) { (high, low) } else { (low, high) }
}

/// Returns whether a higher ratio is written as a lower number, as it is with "longer".
fn is_turned(words: &RatioWording) -> bool {
    (words.number)(1.0) > (words.number)(2.0)
}

/// Returns the end of an interval; `None` if it is 0 or infinite and so gives no bound.
fn known(end: Option<f64>) -> Option<f64> {
    end.filter(|end| *end > 0.0 && end.is_finite())
}

/// Returns the size of the difference for a sentence. Its value is the size in words: "it took 9.3 % longer", "it was
/// 2.5 times as fast", "12 % less". Its range has the interval, and the smallest and the largest difference in a pair:
/// "99.9 % interval: 8.1 to 15 %; single pairs: 3 to 31 %". `None` if nothing is known about the ratio.
pub(crate) fn size(claim: &ClaimResult, measure: &Measure) -> Option<Figure> {
    let Some(size) = Size::new(claim, measure) else { return bounded(claim, measure) };
    let form = size.form(&[claim.ratio_low, claim.ratio_high, claim.ratio_min, claim.ratio_max]);
    let (range, pairs) = (size.range(form), size.pairs(form));
    let interval = interval_name(std::slice::from_ref(claim));
    let range = match (range.as_str(), pairs.as_str()) {
        ("", "") => String::new(),
        ("", pairs) => format!("single pairs: {pairs}"),
        (reason, "") if size.no_interval().is_some() => reason.to_string(),
        (reason, pairs) if size.no_interval().is_some() => format!("{reason}; single pairs: {pairs}"),
        (range, "") => format!("{interval}: {range}"),
        (range, pairs) if range == pairs => format!("{interval} and single pairs: {range}"),
        (range, pairs) => format!("{interval}: {range}; single pairs: {pairs}"),
    };
    Some(Figure { value: size.words.before.clone() + &size.words.written(&size.figure.value), range })
}

/// Returns the size of the difference as the subject of a sentence, with its verb: "The 28 % are", "The factor 3.0 is".
pub(crate) fn size_as_subject(claim: &ClaimResult, measure: &Measure) -> String {
    match Size::new(claim, measure).filter(|size| !is_zero(&size.figure.value)) {
        Some(Size { words, figure, .. }) if words.is_share => format!("The {} are", figure.value),
        Some(Size { figure, .. }) => format!("The factor {} is", figure.value),
        None => "The size is".into(),
    }
}

/// Returns the name of the intervals of the claims' ratios, with their confidence level: "99.9 % interval". The level
/// is left out if the claims have different ones.
pub(crate) fn interval_name(claims: &[ClaimResult]) -> String {
    // The error is rounded up as in the sentences, so that the level is never rounded up.
    let level = claims.first().and_then(|first| Some(1.0 - chance(first.error).parse::<f64>().ok()?));
    match level.filter(|_| claims.iter().all(|claim| claim.error == claims[0].error)) {
        Some(level) => format!("{} interval", exact_percent(level)),
        None => "interval".into(),
    }
}

/// Returns the size of the difference with its interval, but without the smallest and the largest ratio of single
/// pairs. The first item is worded for a sentence: "its `error` was 16 times as high". The second is worded for a
/// table: "error 16 times as high". `None` if nothing is known about the ratio.
pub(crate) fn size_of_median(claim: &ClaimResult, measure: &Measure) -> Option<[Figure; 2]> {
    let Some(size) = Size::new(claim, measure) else {
        let clause = bounded(claim, measure)?;
        let value = clause.value.trim_start_matches("it took ").trim_start_matches("it was ").to_string();
        let in_table = Figure { value, range: clause.range.clone() };
        return Some([clause, in_table]);
    };
    let range = size.range(size.form(&[claim.ratio_low, claim.ratio_high]));
    let written = size.words.written(&size.figure.value);
    let RatioWording { before, name, .. } = &size.words;
    Some([before, name].map(|lead| Figure { value: format!("{lead}{written}"), range: range.clone() }))
}

/// Returns the size of the difference and its interval as two cells of a table, "9.3 % longer" and "8.1 to 15 %". They
/// don't name the metric, because the heading of the table does.
pub(crate) fn size_cells(claim: &ClaimResult, measure: &Measure) -> Figure {
    if !clause::has_ratio(claim) {
        return clause::ratio_figure(claim, &[]);
    }
    // If the answer is that one side is better, "about the same time" would be a contradiction.
    let differs = matches!(claim.decision, Some(Decision::Faster | Decision::Slower));
    match Size::new(claim, measure) {
        Some(size) => {
            let value = match claim.ratio {
                Some(ratio) if differs && is_zero(&size.figure.value) => one_size(measure, ratio),
                _ => size.words.written(&size.figure.value),
            };
            Figure { value, range: size.range_with_signs() }
        }
        None => size_of_median(claim, measure).map_or_else(|| clause::ratio_figure(claim, &[]), |[_, cell]| cell),
    }
}

/// Returns the size of the difference if only a bound of the ratio is known, because times were stopped at a limit: "it
/// was at least 3.1 times as fast".
fn bounded(claim: &ClaimResult, measure: &Measure) -> Option<Figure> {
    let is_slow = is_time(measure) && claim.ratio_high.is_some_and(|high| high < 1.0);
    let (it, figure) = match Amount::new(measure) {
        Some(amount) => ("", clause::times_apart(&inverse(claim), &format!(" times {}", amount.as_much()), &[1.0])?),
        None if is_slow => ("it took ", clause::times_apart(&inverse(claim), " times as long", &[1.0])?),
        None => {
            let words = format!(" times as {}", clause::adjective(measure).0);
            ("it was ", clause::times_apart(claim, &words, &[1.0])?)
        }
    };
    Some(Figure { value: format!("{it}{}", figure.value), ..figure })
}

/// Returns a single ratio in words, without "it took" or "it was": "19 % longer", "2.5 times as fast".
pub(crate) fn one_size(measure: &Measure, ratio: f64) -> String {
    let words = RatioWording::new(measure, ratio);
    let number = (words.number)(ratio);
    let number = if words.is_share { percent(number) } else { Figure::unbounded(Some(number)).value };
    words.written(&number)
}

/// A range in percent whose upper end has more than this multiple of the baseline's amount is written in multiples.
const MOST_IN_PERCENT: f64 = 4.0;

/// Returns whether a range with this end is written in multiples instead of in percent.
fn needs_times(measure: &Measure, ratio: f64) -> bool {
    (RatioWording::in_times(measure).number)(ratio) > MOST_IN_PERCENT
}

/// Returns a range of ratios in words. Both ends are written in percent, or both as multiples: "19 % less time to 25 %
/// longer", "0.81 to 8.0 times as long". `to` is the text between the ends.
pub(crate) fn both_sizes(measure: &Measure, ends: [f64; 2], to: &str) -> String {
    let needs_times = ends.into_iter().any(|end| needs_times(measure, end));
    sizes_in(measure, ends, if needs_times { RangeForm::Times } else { RangeForm::Percent }, to)
}

/// Returns a range of ratios in words. The end with the lower amount of the metric comes first.
fn sizes_in(measure: &Measure, ends: [f64; 2], form: RangeForm, to: &str) -> String {
    let times = RatioWording::in_times(measure);
    let amount = |end: f64| (times.number)(end);
    let [less, more] = if amount(ends[0]) <= amount(ends[1]) { ends } else { [ends[1], ends[0]] };
    let words = [less, more].map(|end| RatioWording::in_percent(measure, end));
    let shared = if form == RangeForm::Times { &times } else { &words[0] };
    if form == RangeForm::Times || words[0].after == words[1].after {
        let [one, other] = [less, more].map(shared.number);
        let range = shared.figure(None, Some(one.min(other)), Some(one.max(other))).range;
        return shared.written(&range.replace(" to ", to));
    }
    let write = |words: &RatioWording, end: f64| words.written(&percent((words.number)(end)));
    format!("{}{to}{}", write(&words[0], less), write(&words[1], more))
}

/// Returns whether the metric is a time, and shorter times are better.
pub(crate) fn is_time(measure: &Measure) -> bool {
    clause::metric_name(measure) == "time" && measure.better == Better::Lower
}

/// Returns the claim with inverted ratios: the candidate's amount divided by the reference's.
pub(crate) fn inverse(claim: &ClaimResult) -> ClaimResult {
    let inverse = |ratio: Option<f64>| ratio.map(f64::recip).filter(|ratio| ratio.is_finite());
    let (low, high) = (inverse(claim.ratio_high), inverse(claim.ratio_low));
    // A lower end of 0 without an upper end means that the ratio may be anything, because both sides can be zero. The
    // inverse may then be anything too, so its lower end is 0 as well.
    let low = low.or(claim.ratio_low.filter(|low| *low == 0.0));
    ClaimResult { ratio: inverse(claim.ratio), ratio_low: low, ratio_high: high, ..claim.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(metric: &str, better: Better) -> Measure {
        Measure { metric: metric.into(), unit: Unit::Nanosecond, better, inputs: Vec::new() }
    }

    #[test]
    fn a_ratio_is_said_in_percent_below_one_and_a_half() {
        let said = |metric: &str, better, ratio| one_size(&measure(metric, better), ratio);
        for (ratio, words) in [
            (2.5, "2.5 times as fast"),
            (1.5, "1.5 times as fast"),
            (1.25, "20 % less time"),
            (1.0 / 1.09, "9 % longer"),
            (1.0 / 1.5, "1.5 times as long"),
            (0.1, "10 times as long"),
        ] {
            assert_eq!(said("wall", Better::Lower, ratio), words);
        }
        let both = |metric: &str, better, ends| both_sizes(&measure(metric, better), ends, " to ");
        assert_eq!(both("wall", Better::Lower, [1.25, 0.6]), "20 % less time to 67 % longer", "percent at both ends");
        assert_eq!(both("wall", Better::Lower, [0.9, 3.0]), "67 % less time to 11 % longer", "less comes first");
        assert_eq!(both("wall", Better::Lower, [0.8, 0.9]), "11 to 25 % longer", "the same words at both ends");
        assert_eq!(both("wall", Better::Lower, [1.25, 0.1]), "0.80 to 10 times as long", "multiples at both ends");
        assert_eq!(both("wall", Better::Lower, [0.1, 1.25]), "0.80 to 10 times as long");
        assert_eq!(both("throughput", Better::Higher, [0.75, 5.0]), "0.75 to 5.0 times as high");
        assert_eq!(said("memory_peak", Better::Lower, 1.25), "20 % less");
        assert_eq!(said("memory_peak", Better::Lower, 0.5), "2.0 times as much");
        assert_eq!(said("page_faults", Better::Lower, 4.0), "75 % fewer");
        assert_eq!(said("error", Better::Lower, 0.5), "2.0 times as high");
        assert_eq!(said("throughput", Better::Higher, 1.25), "25 % higher");
        assert_eq!(said("throughput", Better::Higher, 0.75), "25 % lower");
    }
}
