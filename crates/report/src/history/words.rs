//! Pieces of text that several tables of the history have.

use ascertain::experiment::Point;

use crate::text::harmless;

/// `2026-11-21T09:30:12.000Z` to the minute: `2026-11-21 09:30`.
pub(super) fn minute(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16)) {
        (Some(date), Some(time)) => format!("{date} {time}"),
        _ => rfc3339.to_string(),
    }
}

/// At most so many characters; where some are left out, the last says so.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let text = harmless(text);
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text,
    }
}

/// Where a line of a table or plot is: the variant and the factors that others do not share.
pub(super) fn label(variant: &str, at: &Point) -> String {
    match at.0.is_empty() {
        true => variant.to_string(),
        false => format!("{variant} ({at})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_commands_are_shortened() {
        assert_eq!(minute("2026-11-21T09:30:12.000Z"), "2026-11-21 09:30");
        assert_eq!(minute("then"), "then");
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }
}
