//! What a command takes beside its time, in the words of a comparison: "uses 12 % less memory".
//!
//! A comparison by time says how many times as fast a command is. Of anything else that is better when it is less it
//! says how much of it there is against the reference: the inverse.

use ascertain_engine::claim::Judging;
use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{ClaimResult, Decision, Measure};

use crate::clause;
use crate::figure::Figure;

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

    /// "uses 0.98 times as much memory as `b` (0.96 to 1.01)"; none where nothing bounds it.
    pub fn times(&self, claim: &ClaimResult, baseline: &str, marks: &[f64]) -> Option<String> {
        let word = format!(" times {} {} as {baseline}", self.as_much(), self.noun);
        clause::times(&inverse(claim), &word, marks).map(|times| format!("{} {times}", self.verbs.0))
    }

    /// "12 % less (11 to 13 %)"; from twice as much on, and where its interval has no difference in it as well, "2.1
    /// times as much (1.9 to 2.2)".
    fn change(&self, claim: &ClaimResult, marks: &[f64]) -> Option<Figure> {
        let inverse = inverse(claim);
        let in_percent = match [inverse.ratio, inverse.ratio_low, inverse.ratio_high] {
            [Some(value), Some(low), Some(high)] => percent_off([value, low, high], marks),
            _ => None,
        };
        let said = in_percent.map(|(Figure { value, range, .. }, is_less)| {
            Figure::said(format!("{value} % {}", self.word(is_less)), format!("{range} %"))
        });
        said.or_else(|| clause::times_apart(&inverse, &format!(" times {}", self.as_much()), marks))
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

/// How far apart the two sides are: "1.052 times as fast" and "1.047 to 1.058", "12 % less" and "11 to 13 %".
pub(crate) fn apart(claim: &ClaimResult, measure: &Measure, marks: &[f64]) -> Option<Figure> {
    match Amount::of(measure) {
        Some(amount) => amount.change(claim, marks),
        None => clause::times_apart(claim, &format!(" times as {}", clause::adjective(measure).0), marks),
    }
}

/// Whether less of it is a shorter time.
pub(crate) fn is_time(measure: &Measure) -> bool {
    clause::named(measure) == "time" && measure.better == Better::Lower
}

/// How many times as long as its reference a command takes, where that is more than twice: "59 times as long" and
/// "55 to 63". A lower end of 0 is that of time-outs, of which more is not known.
pub(crate) fn times_as_long(claim: &ClaimResult, measure: &Measure, word: &str) -> Option<Figure> {
    let is_clear = is_time(measure) && claim.ratio_low != Some(0.0);
    let is_long = claim.ratio.is_some_and(|ratio| ratio > 0.0 && ratio < 0.5);
    if is_clear && is_long { clause::times_apart(&inverse(claim), word, &[1.0]) } else { None }
}

/// By how many percent an amount is off the reference's, where all of it is on one side, and whether it is less.
fn percent_off([value, low, high]: [f64; 3], marks: &[f64]) -> Option<(Figure, bool)> {
    let is_less = value < 1.0 && high < 1.0;
    let is_more = low > 1.0 && value < 2.0;
    let off = |amount: f64| 100.0 * if is_less { 1.0 - amount } else { amount - 1.0 };
    let [low, high] = if is_less { [off(high), off(low)] } else { [off(low), off(high)] };
    let marks: Vec<f64> = marks.iter().map(|mark| off(*mark)).collect();
    (is_less || is_more).then(|| (Figure::new(Some(off(value)), Some(low), Some(high), &marks), is_less))
}

/// Whose metric a ratio divides by whose, as what follows "it" or stands for it: "it takes 8.3 times as long as `b`",
/// "it takes 9 % longer than `b`", "its `error` is 12 % of that of `b`". None where there is no ratio, or it may be
/// that of equals.
pub(crate) fn against(claim: &ClaimResult, measure: &Measure, other: &str) -> Option<String> {
    let of_it = match measure.better {
        Better::Lower => inverse(claim),
        Better::Higher => claim.clone(),
    };
    let ends = of_it.ratio_low.zip(of_it.ratio_high).filter(|(low, high)| *low > 0.0 && high.is_finite());
    let is_apart = ends.is_none_or(|(low, high)| low >= 1.0 || high <= 1.0);
    let share = of_it.ratio.filter(|share| *share > 0.0 && share.is_finite() && *share != 1.0 && is_apart)?;
    // How far it is off.
    let off = |sign: f64| {
        let change = |share: f64| sign * (share - 1.0);
        let ends = ends.map(|(low, high)| (change(low).min(change(high)), change(low).max(change(high))));
        let (low, high) = ends.filter(|(low, _)| *low > 0.0).unzip();
        Figure::of_share(Some(change(share)), low, high, 0.0).value
    };
    let (low, high) = ends.unzip();
    let whole = || Figure::of_share(Some(share), low, high, 0.0).value;
    let times = || match ends {
        None if claim.asked.judging != Judging::Exact => Figure::unbounded(Some(share)).value,
        _ => Figure::new(Some(share), low, high, &[1.0]).value,
    };
    let its = format!("its {} is", clause::named(measure));
    Some(match (share, is_time(measure)) {
        (2.0.., true) => format!("it takes {} times as long as {other}", times()),
        (2.0.., false) => format!("{its} {} times that of {other}", times()),
        (1.0.., true) => format!("it takes {} longer than {other}", off(1.0)),
        (1.0.., false) => format!("{its} {} more than that of {other}", off(1.0)),
        (0.5.., true) => format!("it takes {} less time than {other}", off(-1.0)),
        (0.5.., false) => format!("{its} {} less than that of {other}", off(-1.0)),
        (_, true) => format!("it takes {} of the time of {other}", whole()),
        (_, false) => format!("{its} {} of that of {other}", whole()),
    })
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
    use super::*;

    #[test]
    fn off_by_so_many_percent() {
        let off = |value, low, high| {
            let (Figure { value, range, .. }, is_less) = percent_off([value, low, high], &[1.0])?;
            Some(format!("{value} % {} ({range})", if is_less { "less" } else { "more" }))
        };
        assert_eq!(off(0.88, 0.87, 0.89).as_deref(), Some("12 % less (11 to 13)"));
        assert_eq!(off(1.3, 1.25, 1.36).as_deref(), Some("30 % more (25 to 36)"));
        assert_eq!(off(0.9, 0.8, 0.99996).as_deref(), Some("10.0 % less (0.0040 to 20)"));
        assert_eq!(off(0.98, 0.9, 1.1), None, "either way");
        assert_eq!(off(2.5, 2.4, 2.6), None, "times are plainer");
        assert_eq!(off(1.0, 1.0, 1.0), None);
    }
}
