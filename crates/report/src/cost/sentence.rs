//! The answer of a cost calculation in words.

use ascertain_engine::unit::significant;

use super::data::{CostComparison, CostDecision, CostMean, CostReport, Interval, Load};
use crate::figure::Figure;
use crate::text::{counted, plain, quoted};

/// Maximum number of workloads that a sentence names.
const NAMED: usize = 6;

impl CostReport {
    /// Returns the answer about each offer, as one or two sentences each.
    #[must_use]
    pub fn answers(&self) -> Vec<String> {
        self.comparisons.iter().map(|comparison| plain(&answer(comparison))).collect()
    }
}

/// Returns the answer about an offer: a sentence with the decision and the size, and a sentence with the workloads that
/// reverse it, if there are any.
pub(super) fn answer(comparison: &CostComparison) -> String {
    let CostComparison { offer, reference, break_even, decision, suite, reversing, .. } = comparison;
    let (offer, reference) = (quoted(offer), quoted(reference));
    let is_part = suite.as_ref().is_some_and(|suite| suite.load == Load::Part);
    let price = price(*break_even, if is_part { "per core " } else { "" }, &reference);
    let Some(suite) = suite else {
        return format!("It is unknown whether {offer} is worth its price, {price}: no workload of both has a cost.");
    };
    let cost = cost(suite);
    let reversing = reversed(comparison, suite.workloads, reversing);
    match decision {
        CostDecision::Cheaper if *break_even > 1.0 => {
            format!("{offer} is worth its price, {price}: {cost}{reversing}.")
        }
        CostDecision::Cheaper => format!("{offer} is cheaper at its price, {price}: {cost}{reversing}."),
        CostDecision::Dearer if *break_even > 1.0 => {
            format!("{offer} is not worth its price, {price}: {cost}{reversing}.")
        }
        CostDecision::Dearer => format!("{offer} is dearer in spite of its price, {price}: {cost}{reversing}."),
        CostDecision::CheaperOnTheseFigures => {
            format!("{offer} is cheaper according to these figures, at a price {price}: {cost}{reversing}.")
        }
        CostDecision::DearerOnTheseFigures => {
            format!("{offer} is dearer according to these figures, at a price {price}: {cost}{reversing}.")
        }
        CostDecision::Undecided => {
            format!("It is undecided whether {offer} is worth its price, {price}: {cost}{reversing}.")
        }
    }
}

/// Returns the price in relation to the reference: "6.6 % above that of `c6g`". `each` is the unit of the price, such
/// as "an hour".
fn price(break_even: f64, each: &str, reference: &str) -> String {
    match difference(break_even) {
        None => format!("{each}equal to that of {reference}"),
        Some(percent) if break_even > 1.0 => format!("{each}{percent} above that of {reference}"),
        Some(percent) => format!("{each}{percent} below that of {reference}"),
    }
}

/// Returns the cost of a unit of work with its interval: "a unit of work costs 20 % less (28 to 11 % less for workloads
/// like these)".
fn cost(suite: &CostMean) -> String {
    let cost = suite.cost_ratio;
    let range = range(cost);
    let of = match (suite.workloads, suite.speed_other_machines.is_some()) {
        (1 | 2, true) => " on machines like these",
        (1 | 2, false) => " on these machines",
        (_, true) => " for workloads and machines like these",
        (_, false) => " for workloads like these",
    };
    let share = match suite.load {
        Load::Full => "a unit of work costs",
        Load::Part => "a unit of work costs, on the cores in use,",
    };
    match range {
        Some(range) => format!("{share} {} ({range}{of})", more_or_less(cost.value)),
        None => format!("{share} {}; there is no interval", more_or_less(cost.value)),
    }
}

/// Returns the interval of a cost in words: "28 to 11 % less", or "3 % less to 5 % more".
fn range(cost: Interval) -> Option<String> {
    let (low, high) = (cost.low?, cost.high?);
    let (low_text, high_text) = (more_or_less(low), more_or_less(high));
    let of_both = |word: &str| low_text.ends_with(word) && high_text.ends_with(word);
    Some(match () {
        () if low_text == high_text => low_text,
        () if of_both(" % less") || of_both(" % more") => {
            let number = low_text.split(' ').next().unwrap_or_default();
            format!("{number} to {high_text}")
        }
        () => format!("{low_text} to {high_text}"),
    })
}

/// Returns a ratio of costs in words: "20 % less", "5 % more" or "as much".
fn more_or_less(ratio: f64) -> String {
    match difference(ratio) {
        None => "as much".into(),
        Some(percent) if ratio > 1.0 => format!("{percent} more"),
        Some(percent) => format!("{percent} less"),
    }
}

/// Returns the difference of a ratio from 1 as a percentage with two significant digits; `None` if it is below 0.005 %.
fn difference(ratio: f64) -> Option<String> {
    let percent = 100.0 * (ratio - 1.0).abs();
    match percent {
        0.005.. if percent < 0.095 => Some(format!("{percent:.2} %")),
        0.005.. if percent < 9.95 => Some(format!("{percent:.1} %")),
        0.005.. => Some(format!("{percent:.0} %")),
        _ => None,
    }
}

/// Returns a full stop, followed by a sentence that names the workloads for which the answer is the opposite. That
/// sentence has no full stop at its end. Empty if there are no such workloads.
fn reversed(comparison: &CostComparison, all: u64, reversing: &[String]) -> String {
    if reversing.is_empty() || all < 2 {
        return String::new();
    }
    let speed = |name: &String| {
        let of_name = comparison.workloads.iter().filter(|row| row.is_in_mean);
        of_name.filter(|row| row.workload == *name).map(|row| row.speed.value).next()
    };
    let named = reversing.iter().take(NAMED).enumerate().map(|(index, name)| {
        let speed = speed(name).map(significant).unwrap_or_default();
        let unit = if index == 0 { " times as fast" } else { "" };
        format!("{} ({speed}{unit})", quoted(name))
    });
    let named: Vec<String> = named.collect();
    let rest = reversing.len().saturating_sub(NAMED);
    let named = match (named.split_last(), rest) {
        (Some((last, [])), 0) => last.clone(),
        (Some((last, others)), 0) => format!("{} and {last}", others.join(", ")),
        _ => format!("{} and {rest} more", named.join(", ")),
    };
    let (count, cost) = (reversing.len(), if reversing.len() == 1 { "costs" } else { "cost" });
    let is_cheaper = comparison.suite.as_ref().is_some_and(|suite| suite.cost_ratio.value < 1.0);
    let how = if is_cheaper { "more" } else { "less" };
    format!(". But {count} of {all} workloads {cost} {how}: {named}")
}

/// Returns sentences about the size and the certainty of the answer.
pub(super) fn explained(comparison: &CostComparison) -> Option<String> {
    let suite = comparison.suite.as_ref()?;
    let Interval { value, low, high } = suite.speed;
    let break_even = significant(comparison.break_even);
    let figure = Figure::new(Some(value), low, high, &[1.0, comparison.break_even]);
    let speed = if low.is_some() { figure.to_string() } else { significant(value) };
    let mean = match suite.workloads {
        1 => String::new(),
        count => format!(" in the geometric mean of {}", counted(count, "workload")),
    };
    let offer = quoted(&comparison.offer);
    let mut text =
        format!("{offer} is {speed} times as fast{mean}, and cheaper if it is at least {break_even} times as fast.");
    if let Some(other) = suite.speed_other_machines.filter(|_| suite.workloads > 2) {
        let figure = Figure::new(Some(other.value), other.low, other.high, &[1.0, comparison.break_even]);
        text += &format!(" For these workloads alone, on other machines of these types: {} times.", figure.range);
    }
    if let (Some(mean), Some(next)) = (suite.chance_cheaper, suite.chance_next_cheaper) {
        text += &format!(
            " Chance that the mean is cheaper: {}; chance that the next workload like these is cheaper: {}.",
            chance(mean),
            chance(next)
        );
    } else if let Some(mean) = suite.chance_cheaper {
        text += &format!(" Chance of being cheaper: {}.", chance(mean));
    }
    Some(text)
}

/// Returns a chance in percent that never claims certainty: "over 99.9 %".
pub(super) fn chance(chance: f64) -> String {
    match chance {
        0.999.. => "over 99.9 %".into(),
        0.99.. => format!("{:.1} %", 100.0 * chance),
        0.01.. => format!("{:.0} %", 100.0 * chance),
        0.001.. => format!("{:.1} %", 100.0 * chance),
        _ => "under 0.1 %".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_two_digits() {
        for (ratio, expected) in [
            (1.0662, "6.6 % more"),
            (0.8, "20 % less"),
            (1.0, "as much"),
            (0.9993, "0.07 % less"),
            (2.5, "150 % more"),
            (0.9004, "10 % less"),
        ] {
            assert_eq!(more_or_less(ratio), expected, "{ratio}");
        }
        let interval = |low, high| range(Interval { value: 1.0, low: Some(low), high: Some(high) }).unwrap();
        assert_eq!(interval(0.72, 0.89), "28 to 11 % less");
        assert_eq!(interval(0.97, 1.05), "3.0 % less to 5.0 % more");
        assert_eq!(interval(1.02, 1.2), "2.0 to 20 % more");
    }

    #[test]
    fn chances_are_never_certain() {
        let written = [0.0, 0.002, 0.4, 0.993, 0.9999, 1.0].map(chance);
        assert_eq!(written, ["under 0.1 %", "0.2 %", "40 %", "99.3 %", "over 99.9 %", "over 99.9 %"]);
    }
}
