//! Tests that the parser returns claims, or mistakes with positions inside the text, for any text.

use proptest::prelude::*;

use super::claims::EXAMPLES;
use super::read;

/// Two claims with every kind of value. Mutations start from these and from the examples.
const MORE: &str = r#"
[[claim]]
id = "all.of-it"
experiment = "sum"
at = { elements = [1024, "64Ki"], type = 'f64' }
over = "every"
candidate.variant = "kahan"
candidate.accumulators = 0x4
baseline = "naive"
difference = true
within = ["-5 ms", "1 s"]
rate = 0.9
margin = 0.05
error = 1e-3
max_time = "30 s"
max_trials = 1_000

[[claim]]
id = "commands"
candidate = "new {n}"
baseline = "old {n}"
at.n = [1, 2]
over = "each"
at_most = 2
shell = true
time_limit = "10 s"
prepare = """
sync"""
"#;

/// Parses the text, and checks that the positions of all mistakes are inside the text.
fn read_anything(text: &str) {
    if let Err(error) = read(text) {
        assert!(!error.mistakes.is_empty());
        let lines: Vec<&str> = text.split('\n').collect();
        for mistake in &error.mistakes {
            let place = &mistake.place;
            let line = lines.get(place.line - 1).expect("the line exists");
            assert!((1..=line.chars().count() + 1).contains(&place.column), "{mistake}");
            assert!(!mistake.message.contains(char::is_control), "{mistake}");
        }
    }
}

#[test]
fn the_text_that_is_mutated_is_right() {
    let file = read(&[EXAMPLES, MORE].concat()).unwrap();
    assert_eq!(file.claims.len(), 6);
}

/// Mutates the text: changes a byte, inserts a byte, removes a piece, or copies a piece to another position.
fn mutate(bytes: &mut Vec<u8>, kind: u8, at: usize, other: usize, byte: u8) {
    let (at, other) = (at % bytes.len(), other % bytes.len());
    match kind {
        0 => bytes[at] = byte,
        1 => bytes.insert(at, byte),
        2 => drop(bytes.drain(at.min(other)..at.max(other).min(at.min(other) + 40))),
        _ => {
            let piece = bytes[other..(other + 30).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece).for_each(drop);
        }
    }
}

proptest! {
    #[test]
    fn mutated_files_never_panic(
        mutations in prop::collection::vec((0..4_u8, any::<usize>(), any::<usize>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = [EXAMPLES, MORE].concat().into_bytes();
        for (kind, at, other, byte) in mutations {
            mutate(&mut bytes, kind, at, other, byte);
        }
        read_anything(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn lines_in_any_mixture_never_panic(picks in prop::collection::vec(any::<prop::sample::Index>(), 0..30)) {
        let text = [EXAMPLES, MORE].concat();
        let lines: Vec<&str> = text.lines().collect();
        let mixture: Vec<&str> = picks.iter().map(|pick| *pick.get(&lines)).collect();
        read_anything(&mixture.join("\n"));
    }

    #[test]
    fn any_text_never_panics(text in any::<String>()) {
        read_anything(&text);
    }

    #[test]
    fn any_value_of_any_key_never_panics(
        key in prop::sample::select(vec![
            "id", "at", "over", "candidate", "baseline", "at_least", "within", "predicate", "rate", "margin", "max_time",
        ]),
        value in r#"["'\[{]?[-+0-9a-z_. =%"'\]}]{0,12}["'\]}]?"#,
    ) {
        read_anything(&format!("[[claim]]\nid = 'x'\nexperiment = 'sum'\n{key} = {value}\n"));
        read_anything(&format!("[[claim]]\ncommand = 'true'\n{key} = {value}\n"));
    }
}

#[test]
fn deep_nesting_never_overflows() {
    for deep in [
        format!("a{} = 1", ".a".repeat(50_000)),
        format!("a = {}", "[".repeat(50_000)),
        format!("[a{}]", ".a".repeat(50_000)),
    ] {
        read_anything(&deep);
    }
}
