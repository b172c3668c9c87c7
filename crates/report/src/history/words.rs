//! Functions for text that several tables of `ascertain history` share.

use ascertain_engine::evidence::Revision;

use crate::text::escape_controls;

/// Writes a time to the minute: `2026-11-21T09:30:12.000Z` becomes `2026-11-21 09:30`.
pub(super) fn minute(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16)) {
        (Some(date), Some(time)) => format!("{date} {time}"),
        _ => rfc3339.to_string(),
    }
}

/// Writes a git revision as `a0e851a7c4-dirty`; empty if it is unknown.
pub(super) fn revision(revision: Option<&Revision>) -> String {
    revision.map(|revision| escape_controls(&revision.to_string())).unwrap_or_default()
}

/// Returns a description of a key path in `run.json`: `commands.0.commands.1.line` becomes "command 2: line".
pub(super) fn place_in_words(place: &str) -> String {
    let parts = place.split('.').map(|part| match part.parse::<usize>() {
        Ok(index) => (index + 1).to_string(),
        Err(_) => part.replace('_', " "),
    });
    let parts: Vec<String> = parts.collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["ascertain version"] => "version of Ascertain".into(),
        ["config", rest @ ..] => format!("option: {}", rest.join(" ")),
        // Nearly all runs have at most one set of commands, so its index is left out.
        ["commands", "1", "commands", number, rest @ ..] => format!("command {number}: {}", rest.join(" ")),
        ["commands", "1", rest @ ..] => format!("commands: {}", rest.join(" ")),
        [first, rest @ ..] if !rest.is_empty() => format!("{first}: {}", rest.join(" ")),
        all => all.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_words() {
        for (place, words) in [
            ("commands.0.time_limit", "commands: time limit"),
            ("commands.0.commands.1.line", "command 2: line"),
            ("commands.1.shell", "commands: 2 shell"),
            ("config.max_time", "option: max time"),
            ("machine.kernel", "machine: kernel"),
            ("ascertain_version", "version of Ascertain"),
            ("commands", "commands"),
        ] {
            assert_eq!(place_in_words(place), words);
        }
    }

    #[test]
    fn times_are_to_the_minute() {
        assert_eq!(minute("2026-11-21T09:30:12.000Z"), "2026-11-21 09:30");
        assert_eq!(minute("then"), "then");
    }
}
