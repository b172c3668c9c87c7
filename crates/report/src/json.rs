//! JSON for programs: one object, with `null` for unknown values.
//!
//! The keys `reason`, `unlike` and `threats` have sentences for people. Each has a counterpart for programs, such as
//! `reason_codes`, with a `code` and its numbers.
//!
//! A value above the `limit` at which observations were stopped is `null`; `censored` is the number of such
//! observations.

use ascertain_engine::claim::{Effect, Test};
use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{ClaimResult, Outcome};
use serde_json::Value;

use crate::amount;
use crate::clause;
use crate::finding;
use crate::text::is_harmless;

/// Returns the outcome of a run in the JSON schema [`ascertain_engine::outcome::SCHEMA`], indented, with a newline at
/// the end.
pub fn outcome(outcome: &Outcome) -> String {
    let mut whole = outcome.to_json();
    say(&mut whole, "threats", "threat_codes", outcome.threats.iter().map(finding::threat_sentence).collect());
    for (value, claim) in parts(&mut whole, "claims").zip(&outcome.claims) {
        say_of_claim(value, claim);
        for (value, counter) in parts(value, "counters").zip(&claim.counters) {
            say_of_claim(value, counter);
        }
    }
    for (value, left_out) in parts(&mut whole, "left_out").zip(&outcome.left_out) {
        say(value, "reason", "reason_code", finding::reason(&left_out.reason).into());
    }
    for (value, one) in parts(&mut whole, "remarks").zip(&outcome.remarks) {
        say(value, "remark", "remark_code", finding::remark(&one.remark).into());
    }
    object(&whole)
}

fn parts<'a>(whole: &'a mut Value, of: &str) -> impl Iterator<Item = &'a mut Value> {
    whole.get_mut(of).and_then(Value::as_array_mut).into_iter().flatten()
}

fn say_of_claim(value: &mut Value, claim: &ClaimResult) {
    say(value, "reason", "reason_codes", finding::reasons(claim).into());
    say(value, "unlike", "unlike_codes", claim.unlike.iter().map(|sign| finding::unlike(sign, claim)).collect());
    add_size(value, claim);
}

/// Adds two entries to a claim about a ratio: the size of the difference in words, and as a number with its interval.
/// If only a bound of the ratio is known, the words are the same as in the table: "at least 3.1 times as fast". The
/// number is the candidate's metric divided by the baseline's. It is 2 for a candidate that took twice as long as the
/// baseline.
fn add_size(value: &mut Value, claim: &ClaimResult) {
    let [Test::Versus { measure, scale: Effect::Ratio, .. }] = claim.asked.tests.as_slice() else { return };
    let has_ratio = clause::has_ratio(claim);
    let quotient = |ratio: Option<f64>| {
        let ratio = ratio.filter(|ratio| has_ratio && *ratio > 0.0 && ratio.is_finite())?;
        Some(if measure.better == Better::Lower { 1.0 / ratio } else { ratio })
    };
    let [at_ratio, at_low, at_high] = [claim.ratio, claim.ratio_low, claim.ratio_high].map(quotient);
    let (low, high) = if measure.better == Better::Lower { (at_high, at_low) } else { (at_low, at_high) };
    let bound = || amount::size_of_median(claim, measure).filter(|_| has_ratio).map(|[_, in_table]| in_table.value);
    let words = claim.ratio.filter(|ratio| has_ratio && *ratio > 0.0 && ratio.is_finite());
    value["size"] = words.map(|ratio| amount::one_size(measure, ratio)).or_else(bound).into();
    value["times_baseline"] = at_ratio.into();
    value["times_baseline_low"] = low.into();
    value["times_baseline_high"] = high.into();
}

/// Moves the value at `key`, which is for programs, to the key `codes`. Puts `words`, which are for people, at `key`
/// instead.
fn say(object: &mut Value, key: &str, codes: &str, words: Value) {
    let found = object[key].take();
    object[key] = words;
    object[codes] = found;
}

pub(crate) fn object(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    escaped(&text.expect("plain data with string keys can be written as JSON")) + "\n"
}

/// Escapes the characters in JSON strings that control a terminal or a text viewer. The escapes are those of JSON, so
/// that programs read the original text. Newlines are kept, because JSON has them only between strings.
fn escaped(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match c == '\n' || is_harmless(c) {
            true => shown.push(c),
            false => shown.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_reads_back() {
        let names = ["\u{202e}evil\u{9b}2J\u{7f}\u{1b}", "\u{e0041}", "naïve 和 🚀\n"];
        let text = object(&names);
        assert!(text.contains(r#""\u202eevil\u009b2J\u007f\u001b""#) && text.contains(r"\udb40\udc41"), "{text}");
        assert!(text.contains("naïve 和 🚀\\n"), "{text}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), names);
    }
}
