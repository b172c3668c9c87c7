//! What a command takes beside its time, in the words of a comparison: "uses 12 % less memory".
//!
//! A comparison by time says how many times as fast a command is. Of anything else that is better when it is less it
//! says how much of it there is against the reference: the inverse.

use ascertain_engine::claim::Judging;
use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{ClaimResult, Decision, Measure};

use crate::clause;
use crate::figure::{Figure, percent};

/// What sentences call a metric that a comparison is by.
pub(crate) struct Amount {
    /// "uses", and after "does not".
    verbs: (&'static str, &'static str),
    noun: &'static str,
    is_counted: bool,
}

impl Amount {
    /// None of time, and of what is no command's.
    pub fn of(measure: &Measure) -> Option<Amount> {
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

    /// That which an order is by.
    pub fn of_order(claim: &ClaimResult) -> Option<Amount> {
        clause::ordered(claim).and_then(|(measure, ..)| Amount::of(measure))
    }

    /// "less", "more", "fewer".
    pub fn word(&self, is_less: bool) -> &'static str {
        match (is_less, self.is_counted) {
            (true, true) => "fewer",
            (true, false) => "less",
            (false, _) => "more",
        }
    }

    /// The word in tables for an answer.
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

    /// "as much", "as many".
    pub fn as_much(&self) -> &'static str {
        if self.is_counted { "as many" } else { "as much" }
    }

    /// What the ratio in pictures is, which is above 1 where the command has less of it.
    #[cfg(feature = "html")]
    pub fn ratio(&self) -> String {
        format!("reference's {} by its own", self.noun)
    }

    pub fn noun(&self) -> &'static str {
        self.noun
    }
}

/// What stands between the two sides of a comparison.
pub(crate) struct Wording {
    /// "is faster", "uses less memory".
    pub is_better: String,
    /// The same of several: "are faster", "use less memory".
    #[cfg_attr(not(feature = "html"), allow(dead_code))]
    pub are_better: String,
    /// "is faster than".
    pub better: String,
    /// "is slower than".
    pub worse: String,
    /// "is as fast as".
    pub equal: String,
    /// "is not faster than".
    pub not_better: String,
    /// "is not slower than".
    pub not_worse: String,
    /// " in `throughput`" after the other side, where the rest does not say it.
    pub in_metric: String,
}

impl Wording {
    pub fn of(measure: &Measure) -> Wording {
        Wording::after("is ", measure)
    }

    /// The same without the verb of adjectives: "faster than", and "uses less memory than".
    #[cfg(feature = "html")]
    pub fn without_is(measure: &Measure) -> Wording {
        Wording::after("", measure)
    }

    fn after(is: &str, measure: &Measure) -> Wording {
        let Some(amount) = Amount::of(measure) else {
            let ((good, better), worse) = (clause::adjective(measure), clause::worse(measure));
            return Wording {
                is_better: format!("is {better}"),
                are_better: format!("are {better}"),
                better: format!("{is}{better} than"),
                worse: format!("{is}{worse} than"),
                equal: format!("{is}as {good} as"),
                not_better: format!("{is}not {better} than"),
                not_worse: format!("{is}not {worse} than"),
                in_metric: clause::in_metric(measure),
            };
        };
        let Amount { verbs: (uses, r#use), noun, .. } = amount;
        let [less, more] = [true, false].map(|is_less| format!("{} {noun}", amount.word(is_less)));
        Wording {
            is_better: format!("{uses} {less}"),
            are_better: format!("{use} {less}"),
            better: format!("{uses} {less} than"),
            worse: format!("{uses} {more} than"),
            equal: format!("{uses} {} {noun} as", amount.as_much()),
            not_better: format!("does not {use} {less} than"),
            not_worse: format!("does not {use} {more} than"),
            in_metric: String::new(),
        }
    }
}

/// From this ratio on a difference is said in times, below it in percent.
const TIMES: f64 = 1.5;

/// A way to say a ratio in words.
struct Words {
    before: String,
    /// The number for a ratio.
    number: fn(f64) -> f64,
    is_share: bool,
    after: String,
}

impl Words {
    /// For ratios like this one of how many times better a command is.
    fn of(measure: &Measure, ratio: f64) -> Words {
        let words = |before: &str, number, is_share, after: &str| Words {
            before: before.into(),
            number,
            is_share,
            after: after.into(),
        };
        if is_time(measure) {
            return match ratio {
                TIMES.. => words("it was ", |ratio| ratio, false, " times as fast"),
                1.0.. => words("it took ", |ratio| 1.0 - 1.0 / ratio, true, " less time"),
                _ if ratio > 1.0 / TIMES => words("it took ", |ratio| 1.0 / ratio - 1.0, true, " longer"),
                _ => words("it took ", |ratio| 1.0 / ratio, false, " times as long"),
            };
        }
        let amount = Amount::of(measure);
        let its = amount.as_ref().map_or_else(|| format!("its {} was ", clause::named(measure)), |_| String::new());
        let [times, more, less] = match &amount {
            Some(amount) => [format!(" times {}", amount.as_much()), " more".into(), format!(" {}", amount.word(true))],
            None => [" times as high", " higher", " lower"].map(String::from),
        };
        // Of the metric, the command's by the reference's: so many times, more by a part, less by a part.
        let [share, more_by, less_by]: [fn(f64) -> f64; 3] = match measure.better {
            Better::Lower => [|ratio| 1.0 / ratio, |ratio| 1.0 / ratio - 1.0, |ratio| 1.0 - 1.0 / ratio],
            Better::Higher => [|ratio| ratio, |ratio| ratio - 1.0, |ratio| 1.0 - ratio],
        };
        let of_ratio = share(ratio);
        match of_ratio {
            TIMES.. => words(&its, share, false, &times),
            1.0.. => words(&its, more_by, true, &more),
            _ => words(&its, less_by, true, &less),
        }
    }

    fn figure(&self, value: Option<f64>, low: Option<f64>, high: Option<f64>) -> Figure {
        if self.is_share { Figure::of_share(value, low, high, 0.0) } else { Figure::new(value, low, high, &[1.0]) }
    }

    fn written(&self, number: &str) -> String {
        match number {
            "0 %" | "-0 %" if self.before.ends_with("took ") => "it took the same time".into(),
            _ => format!("{}{number}{}", self.before, self.after),
        }
    }
}

/// The distance between the two sides: "it took 9.3 % longer" and "8.1 to 15 %; single pairs 3 to 31 %", "it was 2.5 times
/// as fast", "12 % less". `None` if nothing bounds the ratio.
pub(crate) fn size(claim: &ClaimResult, measure: &Measure) -> Option<Figure> {
    let Some(ratio) = claim.ratio.filter(|ratio| *ratio > 0.0 && ratio.is_finite()) else {
        return bounded(claim, measure);
    };
    let words = Words::of(measure, ratio);
    let is_turned = (words.number)(1.0) > (words.number)(2.0);
    let between = |low: Option<f64>, high: Option<f64>| {
        let [low, high] = [low, high].map(|end| end.filter(|end| *end > 0.0 && end.is_finite()).map(words.number));
        if is_turned { (high, low) } else { (low, high) }
    };
    let (low, high) = between(claim.ratio_low, claim.ratio_high);
    // If the unit of the figure does not suit both ends of its range, each end has its own unit.
    let in_words = |low: Option<f64>, high: Option<f64>| {
        let has_other = |end: f64| end != 1.0 && Words::of(measure, end).after != words.after;
        let known = |end: Option<f64>| end.filter(|end| *end > 0.0 && end.is_finite());
        let [low, high] = [known(low)?, known(high)?];
        let ends = if is_turned { [high, low] } else { [low, high] };
        (words.is_share && ends.into_iter().any(has_other)).then(|| ends.map(|end| one_size(measure, end)).join(" to "))
    };
    let figure = match (low, high) {
        (None, None) if claim.asked.judging != Judging::Exact && !words.is_share => {
            Figure::unbounded(Some((words.number)(ratio)))
        }
        _ => words.figure(Some((words.number)(ratio)), low, high),
    };
    let is_known = (low, high) != (None, None);
    let range = match () {
        () if claim.has_lost_interval(false) => clause::NOT_ALIKE.into(),
        () if is_known => in_words(claim.ratio_low, claim.ratio_high).unwrap_or_else(|| figure.range.clone()),
        // Two time-outs, or zeros on either side.
        () if claim.ratio_low == Some(0.0) && Amount::of(measure).is_some() => "no interval: zeros or time-outs".into(),
        () if claim.ratio_low == Some(0.0) => "no interval: time-outs".into(),
        () => String::new(),
    };
    let pairs = match between(claim.ratio_min, claim.ratio_max) {
        (Some(low), Some(high)) if claim.trials > 1 && low < high => {
            let plain = || words.figure(None, Some(low), Some(high)).range;
            in_words(claim.ratio_min, claim.ratio_max).unwrap_or_else(plain)
        }
        _ => String::new(),
    };
    let range = match (range.as_str(), pairs.as_str()) {
        (_, "") => range,
        ("", pairs) => format!("single pairs {pairs}"),
        (range, pairs) if range == pairs => format!("{range}, as in single pairs"),
        (range, pairs) => format!("{range}; single pairs {pairs}"),
    };
    Some(Figure::said(words.written(&figure.value), range))
}

/// The size where times were cut off, so that only a bound is known: "it was at least 3.1 times as fast".
fn bounded(claim: &ClaimResult, measure: &Measure) -> Option<Figure> {
    let is_slow = is_time(measure) && claim.ratio_high.is_some_and(|high| high < 1.0);
    let (it, figure) = match Amount::of(measure) {
        Some(amount) => ("", clause::times_apart(&inverse(claim), &format!(" times {}", amount.as_much()), &[1.0])?),
        None if is_slow => ("it took ", clause::times_apart(&inverse(claim), " times as long", &[1.0])?),
        None => {
            let words = format!(" times as {}", clause::adjective(measure).0);
            ("it was ", clause::times_apart(claim, &words, &[1.0])?)
        }
    };
    Some(Figure::said(format!("{it}{}", figure.value), figure.range))
}

/// One ratio in the same words, without "it": "19 % longer", "2.5 times as fast".
pub(crate) fn one_size(measure: &Measure, ratio: f64) -> String {
    let words = Words::of(measure, ratio);
    let number = (words.number)(ratio);
    let number = if words.is_share { percent(number) } else { Figure::unbounded(Some(number)).value };
    format!("{number}{}", words.after)
}

/// Whether less of it is a shorter time.
pub(crate) fn is_time(measure: &Measure) -> bool {
    clause::named(measure) == "time" && measure.better == Better::Lower
}

/// The claim with the command's amount divided by the reference's.
pub(crate) fn inverse(claim: &ClaimResult) -> ClaimResult {
    let inverse = |ratio: Option<f64>| ratio.map(f64::recip).filter(|ratio| ratio.is_finite());
    let (low, high) = (inverse(claim.ratio_high), inverse(claim.ratio_low));
    // That of zeros is open at both ends, whichever way it is looked at.
    let low = low.or(claim.ratio_low.filter(|low| *low == 0.0));
    ClaimResult { ratio: inverse(claim.ratio), ratio_low: low, ratio_high: high, ..claim.clone() }
}

#[cfg(test)]
mod tests {
    use ascertain_engine::unit::Unit;

    use super::*;

    fn measure(metric: &str, better: Better) -> Measure {
        Measure { metric: metric.into(), unit: Unit::Nanosecond, better }
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
        assert_eq!(said("memory_peak", Better::Lower, 1.25), "20 % less");
        assert_eq!(said("memory_peak", Better::Lower, 0.5), "2.0 times as much");
        assert_eq!(said("page_faults", Better::Lower, 4.0), "75 % fewer");
        assert_eq!(said("error", Better::Lower, 0.5), "2.0 times as high");
        assert_eq!(said("throughput", Better::Higher, 1.25), "25 % higher");
        assert_eq!(said("throughput", Better::Higher, 0.75), "25 % lower");
    }
}
