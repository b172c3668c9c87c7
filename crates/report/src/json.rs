//! JSON: one object, with `null` for what is not known.
//!
//! What lies above the `limit` where observations were cut off is not known and `null`; `censored` says how many were.

use ascertain::outcome::Outcome;

use crate::judgement::Judgement;
use crate::text::is_harmless;

/// A run in the schema [`ascertain::outcome::SCHEMA`], indented, with a newline at its end.
pub fn outcome(outcome: &Outcome) -> String {
    object(outcome)
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
