//! Pieces of text that several tables of the history have.

use crate::text::harmless;

/// `2026-11-21T09:30:12.000Z` to the minute: `2026-11-21 09:30`.
pub(super) fn minute(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16)) {
        (Some(date), Some(time)) => format!("{date} {time}"),
        _ => rfc3339.to_string(),
    }
}

/// Times to the minute without the year, or the whole date, where all of them have it in common.
pub(super) fn without_common_start(minutes: Vec<String>) -> Vec<String> {
    let common = |length: usize| minutes.iter().all(|minute| minute.get(..length) == minutes[0].get(..length));
    let start = [11, 5].into_iter().find(|&length| minutes.len() > 1 && common(length)).unwrap_or(0);
    minutes.into_iter().map(|minute| minute.get(start..).unwrap_or(&minute).to_string()).collect()
}

/// At most so many characters; where some are left out, the last says so.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let text = harmless(text);
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_commands_are_shortened() {
        assert_eq!(minute("2026-11-21T09:30:12.000Z"), "2026-11-21 09:30");
        assert_eq!(minute("then"), "then");
        let without = |times: &[&str]| without_common_start(times.iter().map(|time| time.to_string()).collect());
        assert_eq!(without(&["2026-11-21 09:30", "2026-11-21 10:30"]), ["09:30", "10:30"]);
        assert_eq!(without(&["2026-11-20 09:30", "2026-11-21 10:30"]), ["11-20 09:30", "11-21 10:30"]);
        assert_eq!(without(&["2025-11-20 09:30", "2026-11-21 10:30"]), ["2025-11-20 09:30", "2026-11-21 10:30"]);
        assert_eq!(without(&["then", "now"]), ["then", "now"]);
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }
}
