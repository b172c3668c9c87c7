//! Sentences about the time that an answer needs.

use ascertain_engine::finding::{AtError, Least};
use ascertain_engine::outcome::{ClaimResult, Verdict};
use ascertain_engine::run::Outlook;
use ascertain_engine::unit::Unit;

use crate::text::counted;

/// The longest time that is printed, in seconds: about a year. A longer one is printed as "no end".
const ENDLESS_S: f64 = 3e7;

/// Returns how many trials an answer needs and how many fit in the time limit. The duration of a trial must be known.
///
/// ```
/// use std::time::Duration;
/// use ascertain_engine::finding::{AtError, Least};
/// use ascertain_engine::run::Outlook;
/// use ascertain_report::outlook;
///
/// let at_error = Some(AtError { error: 0.05, trials: 7 });
/// let least = Least { verdict: None, trials: 13, takes_ns: Some(84e9), at_error };
/// let outlook = Outlook { least, allowed: 5, max_time: Duration::from_secs(30), is_longer: false };
/// assert_eq!(
///     outlook::sentence(&outlook),
///     "at least 13 pairs are needed, about 84 s, but 30 s allow only 5: use `--max-time 2min`, or `--error 0.05` (7 pairs)"
/// );
/// let longer = Outlook { max_time: Duration::from_secs(105), is_longer: true, ..outlook };
/// assert_eq!(
///     outlook::sentence(&longer),
///     "at least 13 pairs are needed, about 84 s, so this takes up to 1 min 45 s; Ctrl-C ends it and keeps the results so far"
/// );
/// ```
pub fn sentence(outlook: &Outlook) -> String {
    let Outlook { least, allowed, max_time, is_longer } = outlook;
    let time = span(max_time.as_secs_f64());
    match is_longer {
        true => format!("{}, so this takes up to {time}; Ctrl-C ends it and keeps the results so far", needed(least)),
        false => format!("{}, but {time} allow only {allowed}: use {}", needed(least), ways_out(least)),
    }
}

/// Returns the smallest number of trials that an answer needs, with their time: "at least 13 pairs are needed, about 84
/// s".
pub(crate) fn needed(least: &Least) -> String {
    let to_say = match least.verdict {
        None => "",
        Some(Verdict::Refuted) => " to refute it",
        Some(_) => " to show that it holds",
    };
    let trials = counted(least.trials, noun(least));
    let are = if least.trials == 1 { "is" } else { "are" };
    let about = least.takes_ns.map_or_else(String::new, |takes_ns| format!(", about {}", span(takes_ns / 1e9)));
    format!("at least {trials} {are} needed{to_say}{about}")
}

fn noun(least: &Least) -> &'static str {
    if least.verdict.is_none() { "pair" } else { "trial" }
}

/// Returns the options that make an answer possible: "`--max-time 2min`, or `--error 0.05` (7 pairs)".
pub(crate) fn ways_out(least: &Least) -> String {
    let time = least.takes_ns.map_or("TIME".into(), |takes_ns| allowance(takes_ns / 1e9));
    format!("`--max-time {time}`{}", least.at_error.map_or_else(String::new, |at| at_error(at, noun(least))))
}

/// Returns the option for a higher error probability, which needs fewer trials: ", or `--error 0.05` (9 pairs)". `noun`
/// is the word for a trial.
pub(crate) fn at_error(at: AtError, noun: &str) -> String {
    format!(", or `--error {}` ({})", at.error, counted(at.trials, noun))
}

/// Estimates the total duration, in seconds, of a comparison that runs until the interval of its ratio is as narrow as
/// `precision`. The width of an interval shrinks with the square root of the number of pairs. `None` if the interval or
/// the duration so far is unknown.
pub fn seconds_to(claim: &ClaimResult, precision: f64) -> Option<f64> {
    let widths = claim.precision().filter(|_| claim.elapsed_ns > 0)? / precision;
    Some(claim.elapsed_ns as f64 / 1e9 * widths * widths)
}

/// Writes an estimated duration with one digit: "about 8 s", "about 40 s", "about 2 min".
pub(crate) fn about(seconds: f64) -> String {
    let step = match seconds {
        ..10.0 => 1.0,
        10.0..45.0 => 10.0,
        45.0..3600.0 => 60.0,
        _ => 3600.0,
    };
    format!("about {}", span((seconds / step).round().max(1.0) * step))
}

/// Returns a round value for `--max-time` that is at least 25 % above the given time: "2min" for 84 s.
pub fn allowance(seconds: f64) -> String {
    const ROUND_S: [u32; 16] = [10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 480, 600, 900, 1200, 1800];
    let wanted = 1.25 * seconds;
    match ROUND_S.into_iter().find(|round| wanted <= f64::from(*round)) {
        Some(round) if round % 60 == 0 => format!("{}min", round / 60),
        Some(round) => format!("{round}s"),
        None => format!("{}h", (wanted / 1800.0).ceil() / 2.0),
    }
}

/// Writes a duration with few digits: "840 ms", "84 s", "4 min 12 s", "25 min", "1 h 5 min".
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        s if s.is_nan() || s >= ENDLESS_S => "no end".into(),
        s if s < 0.00095 => Unit::Nanosecond.human(s * 1e9),
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1} s").replace(".0 ", " "),
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 599.5 => in_sixties(s.round() as u64, ["min", "s"]),
        s if s < 3570.0 => format!("{:.0} min", s / 60.0),
        s if s < 86_400.0 => in_sixties((s / 60.0).round() as u64, ["h", "min"]),
        s => format!("{:.1} days", s / 86_400.0).replace(".0 ", " "),
    }
}

/// Writes an amount in two units, where one large unit is 60 small units: 252 s as "4 min 12 s".
fn in_sixties(amount: u64, [large, small]: [&str; 2]) -> String {
    match (amount / 60, amount % 60) {
        (whole, 0) => format!("{whole} {large}"),
        (whole, rest) => format!("{whole} {large} {rest} {small}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_wait_for_them() {
        let said = [0.0421, 0.9, 1.0, 4.24, 12.4, 84.0, 100.0, 105.0, 252.4, 300.0, 1500.0, 3600.0, 3900.0, 2e5, 1e9];
        let words = [
            "42 ms",
            "900 ms",
            "1 s",
            "4.2 s",
            "12 s",
            "84 s",
            "1 min 40 s",
            "1 min 45 s",
            "4 min 12 s",
            "5 min",
            "25 min",
            "1 h",
            "1 h 5 min",
            "2.3 days",
            "no end",
        ];
        assert_eq!(said.map(span), words);
        assert_eq!(
            [0.2, 8.4, 34.0, 50.0, 103.0, 5000.0].map(about),
            ["about 1 s", "about 8 s", "about 30 s", "about 60 s", "about 2 min", "about 1 h"]
        );
        assert_eq!(
            [5.0, 36.0, 84.0, 400.0, 1400.0, 1500.0, 7200.0].map(allowance),
            ["10s", "45s", "2min", "10min", "30min", "1h", "2.5h"]
        );
    }
}
