//! JSON: one object, with `null` for what is not known.
//!
//! Where a run says why something is so (`reason`, `unlike`, `threats`) there are sentences, for people, and beside
//! them (`reason_codes` and so on) the same as data: a `code` each, with its figures.
//!
//! What lies above the `limit` where observations were cut off is not known and `null`; `censored` says how many were.

use ascertain_engine::outcome::{ClaimResult, Outcome};
use serde_json::Value;

use crate::finding;
use crate::judgement::Judgement;
use crate::text::is_harmless;

/// A run in the schema [`ascertain_engine::outcome::SCHEMA`], indented, with a newline at its end.
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
    say(value, "unlike", "unlike_codes", claim.unlike.iter().map(finding::unlike).collect());
}

/// Puts words where findings stand, and those at the end under another name.
fn say(object: &mut Value, key: &str, codes: &str, words: Value) {
    let found = object[key].take();
    object[key] = words;
    object[codes] = found;
}

/// What `ascertain judge --format json` prints.
pub fn judgement(judgement: &Judgement) -> String {
    object(judgement)
}

pub(crate) fn object(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    escaped(&text.expect("plain data with text as keys is always JSON")) + "\n"
}

/// JSON in which what steers a terminal or a viewer is escaped as JSON has it, so that programs read the same:
/// outside of texts there is nothing of the kind but ends of lines.
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
