//! Pieces of text that several tables of the history have.

use ascertain_engine::evidence::Revision;

use crate::text::escape_controls;

/// `2026-11-21T09:30:12.000Z` to the minute: `2026-11-21 09:30`.
pub(super) fn minute(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16)) {
        (Some(date), Some(time)) => format!("{date} {time}"),
        _ => rfc3339.to_string(),
    }
}

/// `a0e851a7c4-dirty`; nothing for a run without a revision.
pub(super) fn revision(revision: Option<&Revision>) -> String {
    revision.map(|revision| escape_controls(&revision.to_string())).unwrap_or_default()
}

/// A fact's place in a run's header in words: `commands.0.commands.1.line` as "command 2: line".
pub(super) fn of_place(place: &str) -> String {
    let parts = place.split('.').map(|part| match part.parse::<usize>() {
        Ok(index) => (index + 1).to_string(),
        Err(_) => part.replace('_', " "),
    });
    let parts: Vec<String> = parts.collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["ascertain version"] => "version of Ascertain".into(),
        ["config", rest @ ..] => format!("option: {}", rest.join(" ")),
        // Nearly all runs have one set of commands, if any.
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
    fn places_are_said_in_words() {
        for (place, words) in [
            ("commands.0.time_limit", "commands: time limit"),
            ("commands.0.commands.1.line", "command 2: line"),
            ("commands.1.shell", "commands: 2 shell"),
            ("config.max_time", "option: max time"),
            ("machine.kernel", "machine: kernel"),
            ("ascertain_version", "version of Ascertain"),
            ("commands", "commands"),
        ] {
            assert_eq!(of_place(place), words);
        }
    }

    #[test]
    fn times_are_to_the_minute() {
        assert_eq!(minute("2026-11-21T09:30:12.000Z"), "2026-11-21 09:30");
        assert_eq!(minute("then"), "then");
    }
}
