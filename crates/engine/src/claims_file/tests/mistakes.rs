//! Each mistake that can be made in a file, with the whole message: mistakes of the file itself, and keys
//! that do not go together.

use super::read;

pub(super) const NOTHING: &str = "";
pub(super) const CLAIM: &str = "[[claim]]\nid = 'x'\n";
pub(super) const SUM: &str = "[[claim]]\nid = 'x'\nexperiment = 'sum'\n";
pub(super) const COMPARISON: &str =
    "[[claim]]\nid = 'x'\nexperiment = 'sum'\ncandidate = 'kahan'\nbaseline = 'naive'\n";
pub(super) const PREDICATE: &str = "[[claim]]\nid = 'x'\nexperiment = 'sum'\npredicate = 'time <= 1 ms'\n";
pub(super) const COMMAND: &str = "[[claim]]\nid = 'x'\ncommand = 'true'\npredicate = 'exit == 0'\nrate = 0.9\n";

/// The beginning of a file, what is added to it, and the message.
pub(super) type Case = (&'static str, &'static str, &'static str);

pub(super) fn message(text: &str) -> String {
    read(text).map_or_else(|error| error.to_string(), |_| "no mistake".into())
}

pub(super) fn check(cases: &[Case]) {
    for (beginning, rest, expected) in cases {
        let expected: Vec<String> = expected.lines().map(|line| format!("claims.toml:{line}")).collect();
        assert_eq!(message(&format!("{beginning}{rest}")), expected.join("\n"), "{rest}");
    }
}

#[test]
fn an_unknown_key_names_all_keys() {
    let known = "id, says, source, source_value, analysis, restated, experiment, command, at, over, metric, candidate, \
                 baseline, at_least, at_most, within, predicate, difference, kind, rate, margin, error, max_time, \
                 max_trials, time_limit, shell, setup, prepare, cleanup";
    let expected = format!("claims.toml:7:1: unknown key `at_lest`; known are {known}; did you mean `at_least`?");
    assert_eq!(message(&format!("{COMPARISON}at_least = 2\nat_lest = 2")), expected);
}

#[test]
fn the_same_id_twice() {
    let text = COMMAND.repeat(2);
    assert_eq!(message(&text), "claims.toml:7:6: the id `x` is taken by the claim at claims.toml:2:6");
}

#[test]
fn too_many_points_in_a_claim() {
    let levels: Vec<String> = (1..=1001).map(|level| level.to_string()).collect();
    let text = format!("{COMPARISON}at = {{ elements = [{}] }}\nover = 'each'\nat_least = 2", levels.join(", "));
    assert_eq!(message(&text), "claims.toml:6:6: `at` has more than 1000 points; split the claim");
}

#[test]
fn all_mistakes_are_reported_together_in_the_order_of_the_file() {
    let text = format!(
        "{COMPARISON}at_most = -1\nrate = 2\nmax_time = '5 MB'\n\n\
         [[claim]]\nid = 'x'\nexperiment = 'sun'\npredicate = 'time <= 1 ms'\n\n[[clam]]\n"
    );
    let message = message(&text);
    let places: Vec<&str> = message.lines().map(|line| line.split(": ").next().unwrap()).collect();
    let expected = ["6:11", "7:8", "8:12", "10:1", "11:6", "12:14", "15:3"].map(|place| format!("claims.toml:{place}"));
    assert_eq!(places, expected, "{message}");
}

#[test]
fn columns_count_characters() {
    let text = format!("{COMPARISON}at_least = 2\nat = {{ 'größe' = 1, type = 'f16' }}");
    assert!(message(&text).ends_with("claims.toml:7:28: `type` accepts f32, f64, not \"f16\""), "{}", message(&text));
}

#[test]
fn a_message_is_one_line_without_control_characters() {
    let text = message(&format!("{COMPARISON}at_least = 2\n\"a\\n\\u001b[31m\" = 1"));
    assert!(text.starts_with("claims.toml:7:1: unknown key `a  [31m`; known are"), "{text}");
}

#[test]
fn a_file_that_is_no_list_of_claims() {
    check(&[
        (NOTHING, "", "1:1: there is no claim; a claims file is a list of claims, each under `[[claim]]`"),
        (NOTHING, "claim = []", "1:1: there is no claim; a claims file is a list of claims, each under `[[claim]]`"),
        (NOTHING, "[claim]\nid = 'x'", "1:2: a claims file is a list of claims, each under `[[claim]]`"),
        (NOTHING, "claim = [1]", "1:10: a claims file is a list of claims, each under `[[claim]]`"),
        (NOTHING, "[[claims]]\nid = 'x'", "1:3: unknown key `claims`; known are claim; did you mean `claim`?"),
        (
            CLAIM,
            "at_least = \nrate = 0.5 0.6\n[[claim",
            "3:12: string values must be quoted, expected literal string\n4:8: string values must be quoted, expected literal string\n5:8: unclosed array table, expected `]]`",
        ),
        (CLAIM, "rate = 0.5\nrate = 0.6", "4:1: duplicate key"),
    ]);
}

#[test]
fn keys_that_do_not_go_together() {
    check(&[
        (COMPARISON, "", "1:1: the bound is missing; give one of `at_least`, `at_most`, `within`, `predicate`"),
        (
            COMPARISON,
            "at_least = 2\nat_most = 3",
            "7:1: `at_most` beside `at_least`; give exactly one of `at_least`, `at_most`, `within`, `predicate`",
        ),
        (
            PREDICATE,
            "rate = 0.9\nat_most = 3",
            "6:1: `at_most` beside `predicate`; give exactly one of `at_least`, `at_most`, `within`, `predicate`",
        ),
        (
            SUM,
            "candidate = 'kahan'\nat_least = 2",
            "1:1: `baseline` is missing; `at_least` compares a candidate with a baseline",
        ),
        (
            SUM,
            "baseline = 'kahan'\nat_least = 2",
            "1:1: `candidate` is missing; `at_least` compares a candidate with a baseline",
        ),
        (
            PREDICATE,
            "rate = 0.9\nbaseline = 'naive'",
            "6:1: `baseline` goes with `at_least`, `at_most` or `within`, not with `predicate`",
        ),
        (
            PREDICATE,
            "rate = 0.9\nmetric = 'time'",
            "6:1: `metric` goes with `at_least`, `at_most` or `within`, not with `predicate`",
        ),
        (
            PREDICATE,
            "rate = 0.9\ndifference = true",
            "6:1: `difference` goes with `at_least`, `at_most` or `within`, not with `predicate`",
        ),
        (
            PREDICATE,
            "kind = 'exact'\nrate = 0.9",
            r#"6:1: `rate` goes with claims that are judged by rate, not with kind = "exact""#,
        ),
        (
            PREDICATE,
            "kind = 'exact'\nmargin = 0.1",
            r#"6:1: `margin` goes with claims that are judged by rate, not with kind = "exact""#,
        ),
        (
            SUM,
            "candidate = { variant = 'kahan', type = 'f32' }\nbaseline = 'kahan'\nat_least = 1",
            "5:12: `candidate` and `baseline` are the same; nothing is compared",
        ),
        (
            CLAIM,
            "candidate = 'true'\nbaseline = 'true'\nat_least = 1",
            "4:12: `candidate` and `baseline` are the same; nothing is compared",
        ),
        (
            CLAIM,
            "at_least = 2",
            "1:1: nothing to measure; give `experiment`, `command`, or `candidate` and `baseline` command lines",
        ),
        (
            CLAIM,
            "candidate = 'true'\nat_least = 1",
            "1:1: `baseline` is missing; `at_least` compares a candidate with a baseline",
        ),
        (PREDICATE, "rate = 0.9\ncommand = 'true'", "6:1: `command` beside `experiment`; give one of them"),
        (PREDICATE, "rate = 0.9\nshell = true", "6:1: `shell` goes with commands; an experiment runs in this program"),
        (
            CLAIM,
            "command = 'true'\nat_least = 2",
            "3:1: `command` goes with `predicate`; to compare, give the command lines as `candidate` and `baseline`",
        ),
        (
            COMMAND,
            "candidate = 'false'",
            "3:1: `command` goes with `predicate`; to compare, give the command lines as `candidate` and `baseline`",
        ),
        (
            CLAIM,
            "candidate = 'true'\npredicate = 'exit == 0'\nrate = 0.9",
            "3:1: a predicate on a command names it as `command`, not as `candidate`",
        ),
    ]);
}
