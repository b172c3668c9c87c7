//! Tests of every mistake that a claims file can have, with the complete message. There are mistakes of the file itself,
//! keys that cannot be combined, unknown words, and values of the wrong type, form, unit or size.

use super::read;

const NOTHING: &str = "";
const CLAIM: &str = "[[claim]]\nid = 'x'\n";
const SUM: &str = "[[claim]]\nid = 'x'\nexperiment = 'sum'\n";
const COMPARISON: &str = "[[claim]]\nid = 'x'\nexperiment = 'sum'\ncandidate = 'kahan'\nbaseline = 'naive'\n";
const PREDICATE: &str = "[[claim]]\nid = 'x'\nexperiment = 'sum'\npredicate = 'time <= 1 ms'\n";
const COMMAND: &str = "[[claim]]\nid = 'x'\ncommand = 'true'\npredicate = 'exit == 0'\nrate = 0.9\n";

/// Three texts: the claim up to the tested keys, the tested keys, and the expected message.
type Case<'c> = (&'static str, &'static str, &'c str);

fn message(text: &str) -> String {
    read(text).map_or_else(|error| error.to_string(), |_| "no mistake".into())
}

fn check(cases: &[Case]) {
    for (beginning, rest, expected) in cases {
        let expected: Vec<String> = expected.lines().map(|line| format!("claims.toml:{line}")).collect();
        assert_eq!(message(&format!("{beginning}{rest}")), expected.join("\n"), "{rest}");
    }
}

#[test]
fn an_unknown_key_names_all_keys() {
    let known = "id, says, source, source_value, analysis, restated, experiment, command, at, over, metric, metrics, candidate, \
                 baseline, at_least, at_most, within, predicate, difference, kind, rate, margin, error, max_time, \
                 max_trials, time_limit, shell, setup, prepare, cleanup";
    let expected = format!("claims.toml:7:1: unknown key `at_lest`; known are {known}; did you mean `at_least`?");
    assert_eq!(message(&format!("{COMPARISON}at_least = 2\nat_lest = 2")), expected);
}

#[test]
fn a_misspelled_key_comes_before_the_key_that_it_leaves_missing() {
    let message = message(&format!("{SUM}predicat = 'time <= 1 ms'\nrate = 0.9"));
    let [first, second] = message.lines().collect::<Vec<_>>().try_into().unwrap();
    assert!(first.starts_with("claims.toml:4:1: unknown key `predicat`; "), "{first}");
    assert!(second.starts_with("claims.toml:1:1: the bound is missing; "), "{second}");
}

#[test]
fn the_same_id_twice() {
    let text = COMMAND.repeat(2);
    assert_eq!(
        message(&text),
        "claims.toml:7:6: the claim at claims.toml:2:6 already has the id `x`; choose another id"
    );
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
    let expected = ["6:11", "7:8", "8:12", "11:6", "12:14", "10:1", "15:3"].map(|place| format!("claims.toml:{place}"));
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
        (NOTHING, "", "1:1: the file has no claims; a claims file is a list of claims, each under `[[claim]]`"),
        (
            NOTHING,
            "claim = []",
            "1:1: the file has no claims; a claims file is a list of claims, each under `[[claim]]`",
        ),
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
            "7:1: `at_most` and `at_least` cannot be combined; give exactly one of `at_least`, `at_most`, `within`, `predicate`",
        ),
        (
            PREDICATE,
            "rate = 0.9\nat_most = 3",
            "6:1: `at_most` and `predicate` cannot be combined; give exactly one of `at_least`, `at_most`, `within`, `predicate`",
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
            "6:1: `baseline` is only allowed with `at_least`, `at_most` or `within`, not with `predicate`",
        ),
        (
            PREDICATE,
            "rate = 0.9\nmetric = 'time'",
            "6:1: `metric` is only allowed with `at_least`, `at_most` or `within`, not with `predicate`",
        ),
        (
            PREDICATE,
            "rate = 0.9\ndifference = true",
            "6:1: `difference` is only allowed with `at_least`, `at_most` or `within`, not with `predicate`",
        ),
        (
            PREDICATE,
            "kind = 'exact'\nrate = 0.9",
            r#"6:1: `rate` is only allowed for claims that are judged by rate, not with kind = "exact""#,
        ),
        (
            PREDICATE,
            "kind = 'exact'\nmargin = 0.1",
            r#"6:1: `margin` is only allowed for claims that are judged by rate, not with kind = "exact""#,
        ),
        (
            SUM,
            "candidate = { variant = 'kahan', type = 'f32' }\nbaseline = 'kahan'\nat_least = 1",
            "5:12: `candidate` and `baseline` are the same arm; compare two different arms",
        ),
        (
            CLAIM,
            "candidate = 'true'\nbaseline = 'true'\nat_least = 1",
            "4:12: `candidate` and `baseline` are the same arm; compare two different arms",
        ),
        (
            CLAIM,
            "at_least = 2",
            "1:1: nothing to measure; give `experiment`, `command`, or both `candidate` and `baseline`",
        ),
        (
            CLAIM,
            "candidate = 'true'\nat_least = 1",
            "1:1: `baseline` is missing; `at_least` compares a candidate with a baseline",
        ),
        (
            PREDICATE,
            "rate = 0.9\ncommand = 'true'",
            "6:1: `command` and `experiment` cannot be combined; give one of them",
        ),
        (
            PREDICATE,
            "rate = 0.9\nshell = true",
            "6:1: `shell` is only allowed for commands; leave it out for an experiment",
        ),
        (
            CLAIM,
            "command = 'true'\nat_least = 2",
            "3:1: `command` is only for a `predicate`; to compare commands, give them as `candidate` and `baseline`",
        ),
        (
            COMMAND,
            "candidate = 'false'",
            "3:1: `command` is only for a `predicate`; to compare commands, give them as `candidate` and `baseline`",
        ),
        (
            CLAIM,
            "candidate = 'true'\npredicate = 'exit == 0'\nrate = 0.9",
            "3:1: a predicate on a command needs `command` instead of `candidate`",
        ),
    ]);
}

#[test]
fn keys_and_types() {
    check(&[
        (
            NOTHING,
            "\n[[claim]]\nexperiment = 'sum'\ncandidate = 'kahan'\nbaseline = 'naive'\nat_least = 2",
            "2:1: `id` is missing",
        ),
        (
            NOTHING,
            "[[claim]]\nid = 'Ä b'\nexperiment = 'sum'\ncandidate = 'kahan'\nbaseline = 'naive'\nat_least = 2",
            r#"2:6: `id` must be a name made of the characters a-z, 0-9, `.`, `_` and `-`, not "Ä b""#,
        ),
        (
            NOTHING,
            "[[claim]]\nid = 'sum'\ncommand = 'true'\npredicate = 'exit == 0'\nrate = 0.9\n",
            r#"2:6: the id "sum" belongs to an experiment; choose another id for a claim about commands"#,
        ),
        (
            CLAIM,
            "says = 3\nexperiment = 'sum'\ncandidate = 'kahan'\nbaseline = 'naive'\nat_least = 2",
            "3:8: `says` must be a string, not 3",
        ),
        (
            COMPARISON,
            "at_least = true",
            r#"6:12: `at_least` must be a number such as 8.0, or with `difference = true` a quantity such as "5 ms", not true"#,
        ),
        (COMPARISON, "within = [1, 2, 3]", "6:10: `within` must be two bounds, [low, high], not a list"),
        (
            COMPARISON,
            "at = 'elements'\nat_least = 2",
            r#"6:6: `at` must be a table of levels such as { elements = 1024 }, not "elements""#,
        ),
        (
            SUM,
            "candidate = ['kahan']\nbaseline = 'naive'\nat_least = 2",
            r#"4:13: `candidate` must be a name such as "naive", or a table such as { variant = "naive", elements = 1024 }, not a list"#,
        ),
        (COMPARISON, "at_least = 2\ndifference = 1", "7:14: `difference` must be true or false, not 1"),
        (COMPARISON, "at_least = 2\nmax_trials = 0", "7:14: `max_trials` must be a whole number from 1, not 0"),
        (COMPARISON, "at_least = 2\nmax_trials = 1.5", "7:14: `max_trials` must be a whole number from 1, not 1.5"),
        (
            COMPARISON,
            "at_least = 2\nmax_time = '30'",
            "7:12: `max_time`: `30` needs a unit; write it in ns, us, µs, ms, s, min, m, h",
        ),
        (
            COMPARISON,
            "at_least = 2\nmax_time = 30",
            r#"7:12: `max_time` must be a time above zero such as "30 s", not 30"#,
        ),
        (
            COMMAND,
            "time_limit = '5 MB'",
            "6:14: `time_limit`: `5 MB` is not in a suitable unit; write it in ns, us, µs, ms, s, min, m, h",
        ),
        (
            COMMAND,
            "time_limit = '5 parsecs'",
            "6:14: `time_limit`: `5 parsecs`: unknown unit `parsecs`; write it in ns, us, µs, ms, s, min, m, h",
        ),
        (COMMAND, "time_limit = '0 s'", r#"6:14: `time_limit` must be a time above zero such as "30 s", not "0 s""#),
        (
            COMPARISON,
            "at_least = 2\nat = { elements = [1, 2] }\nover = 'evry'",
            r#"8:8: `over` must be "each" or "every", not "evry"; did you mean `every`?"#,
        ),
        (
            COMPARISON,
            "at_least = 2\nkind = 'exakt'",
            r#"7:8: `kind` must be "rate" or "exact", not "exakt"; did you mean `exact`?"#,
        ),
        (
            CLAIM,
            "command = ' '\npredicate = 'exit == 0'\nrate = 0.9",
            r#"3:11: `command` must be a command line: a string that is not empty, not " ""#,
        ),
        (
            CLAIM,
            "candidate = { variant = 'kahan' }\nbaseline = 'naive'\nat_least = 2",
            "3:13: without `experiment`, `candidate` must be a command line: a string that is not empty",
        ),
        (
            COMMAND,
            "time_limit = '5 msec'",
            "6:14: `time_limit`: `5 msec`: unknown unit `msec`; write it in ns, us, µs, ms, s, min, m, h; did you mean `ms`?",
        ),
    ]);
}

#[test]
fn numbers_out_of_range_in_a_claim() {
    check(&[
        (PREDICATE, "rate = 1", "5:8: `rate` must be a number above 0 and below 1, not 1"),
        (PREDICATE, "rate = 0.0", "5:8: `rate` must be a number above 0 and below 1, not 0.0"),
        (PREDICATE, "rate = '99%'", r#"5:8: `rate` must be a number above 0 and below 1, not "99%""#),
        (PREDICATE, "rate = nan", "5:8: `rate` must be a number above 0 and below 1, not nan"),
        (
            PREDICATE,
            "",
            r#"1:1: `rate` is missing; say how often the predicate must hold, such as rate = 0.99, or add kind = "exact""#,
        ),
        (PREDICATE, "rate = 0.9\nerror = 0", "6:9: `error` must be a number above 0 and below 1, not 0"),
        (PREDICATE, "rate = 0.9\nerror = 1.0", "6:9: `error` must be a number above 0 and below 1, not 1.0"),
        (PREDICATE, "rate = 0.9\nmargin = 0", "6:10: `margin` must be a number above 0 and below 1, not 0"),
        (
            PREDICATE,
            "rate = 0.9\nmargin = 0.2",
            "6:10: rate ± margin must be between 0 and 1, but is 0.9 ± 0.2; lower `margin`",
        ),
        (
            PREDICATE,
            "rate = 0.1\nmargin = 0.1",
            "6:10: rate ± margin must be between 0 and 1, but is 0.1 ± 0.1; lower `margin`",
        ),
        (
            COMPARISON,
            "at_least = 0",
            r#"6:12: `at_least`: expected a factor above 0 such as 8.0, not 0; for a difference such as "5 ms" add difference = true"#,
        ),
        (
            COMPARISON,
            "at_most = -1.5",
            r#"6:11: `at_most`: expected a factor above 0 such as 8.0, not -1.5; for a difference such as "5 ms" add difference = true"#,
        ),
        (
            COMPARISON,
            "at_most = inf",
            r#"6:11: `at_most`: expected a factor above 0 such as 8.0, not inf; for a difference such as "5 ms" add difference = true"#,
        ),
        (
            COMPARISON,
            "at_least = '5 ms'",
            r#"6:12: `at_least`: expected a factor above 0 such as 8.0, not "5 ms"; for a difference such as "5 ms" add difference = true"#,
        ),
        (
            COMPARISON,
            "within = [0, 2]",
            r#"6:11: `within`: expected a factor above 0 such as 8.0, not 0; for a difference such as "5 ms" add difference = true"#,
        ),
        (COMPARISON, "within = [2, 1]", "6:10: `within` must be [low, high] with low no greater than high"),
        (
            COMPARISON,
            "difference = true\nat_least = 5",
            "7:12: `at_least`: `5` needs a unit; write it in ns, us, µs, ms, s, min, m, h",
        ),
        (
            COMPARISON,
            "difference = true\nat_least = '5 MB'",
            "7:12: `at_least`: `5 MB` is not in a suitable unit; write it in ns, us, µs, ms, s, min, m, h",
        ),
        (COMPARISON, "difference = true\nat_least = '1e999 ms'", "7:12: `at_least`: `1e999 ms` is too large"),
    ]);
}

#[test]
fn words_that_are_not_known() {
    check(&[
        (
            CLAIM,
            "experiment = 'sim'\npredicate = 'time <= 1 ms'\nrate = 0.9",
            "3:14: unknown experiment `sim`; known are sum, fill-rate; did you mean `sum`?",
        ),
        (
            SUM,
            "candidate = 'kahn'\nbaseline = 'naive'\nat_least = 2",
            "4:13: unknown variant `kahn`; known are naive, kahan, kahan-avx512; did you mean `kahan`?",
        ),
        (
            SUM,
            "candidate = { variant = 'zebra' }\nbaseline = 'naive'\nat_least = 2",
            "4:25: unknown variant `zebra`; known are naive, kahan, kahan-avx512",
        ),
        (
            SUM,
            "candidate = { variant = 1 }\nbaseline = 'naive'\nat_least = 2",
            "4:25: `variant` must be a string, not 1",
        ),
        (
            SUM,
            "candidate = { type = 'f64' }\nbaseline = 'naive'\nat_least = 2",
            r#"4:13: `candidate` has no variant; write { variant = "…", … }"#,
        ),
        (
            COMPARISON,
            "at = { element = 5 }\nat_least = 2",
            "6:8: unknown factor `element`; known are elements, type, accumulators; did you mean `elements`?",
        ),
        (
            SUM,
            "candidate = { variant = 'kahan', typ = 'f64' }\nbaseline = 'naive'\nat_least = 2",
            "4:34: unknown factor `typ`; known are variant, elements, type, accumulators; did you mean `type`?",
        ),
        (COMPARISON, "at = { type = 'f16' }\nat_least = 2", r#"6:15: `type` accepts f32, f64, not "f16""#),
        (
            COMPARISON,
            "at = { elements = [1, '2Gi'] }\nover = 'each'\nat_least = 2",
            r#"6:23: `elements` accepts whole numbers from 1 to 1073741824, not "2Gi""#,
        ),
        (
            COMPARISON,
            "at = { elements = -1 }\nat_least = 2",
            "6:19: `elements` accepts whole numbers from 1 to 1073741824, not -1",
        ),
        (
            COMPARISON,
            "at = { elements = 1.5 }\nat_least = 2",
            "6:19: `elements` accepts whole numbers from 1 to 1073741824, not 1.5",
        ),
        (COMPARISON, "at = { accumulators = 3 }\nat_least = 2", "6:23: `accumulators` accepts 1, 2, 4, 8, not 3"),
        (
            COMPARISON,
            "at = { elements = [1024, '1Ki'] }\nover = 'each'\nat_least = 2",
            "6:26: `elements` has the level 1024 twice; remove one of them",
        ),
        (
            COMPARISON,
            "at = { elements = [] }\nover = 'each'\nat_least = 2",
            "6:19: `elements` has an empty list; give at least one level",
        ),
        (
            COMPARISON,
            "at = { elements = [1, 2] }\nat_least = 2",
            r#"6:19: `elements` has a list; add over = "each" (one claim per point) or over = "every" (one claim for all points)"#,
        ),
        (
            COMPARISON,
            "at = { elements = 1 }\nover = 'each'\nat_least = 2",
            "7:1: `over` needs a list of levels in `at`, but there is none; leave it out",
        ),
        (
            COMPARISON,
            "at = { elements = [1, 2, 3, 4, 5, 6, 7, 8, 9] }\nover = 'every'\nat_least = 2",
            r#"7:8: a trial of this claim has 18 arms, and at most 16 fit; use over = "each", or fewer levels"#,
        ),
        (
            COMPARISON,
            "metric = 'tine'\nat_least = 2",
            "6:10: unknown metric `tine`; known are time, error, memory, throughput; did you mean `time`?",
        ),
        (
            CLAIM,
            "candidate = 'a'\nbaseline = 'b'\nmetric = 'time'\nat_least = 2",
            "5:10: unknown metric `time`; known are wall, user, system, memory_peak, exit",
        ),
        (
            SUM,
            "predicate = 'tame <= 1 ms'\nrate = 0.9",
            "4:13: unknown metric `tame`; known are time, error, memory, throughput; did you mean `time`?",
        ),
        (
            SUM,
            "predicate = 'fast'\nrate = 0.9",
            "4:13: `fast` is not a comparison; write `metric op quantity`, with op one of <= < >= > == !=, joined by `and`",
        ),
        (
            SUM,
            "predicate = 'time <= 1 kB'\nrate = 0.9",
            "4:13: `1 kB` is not in a suitable unit; write it in ns, us, µs, ms, s, min, m, h",
        ),
        (
            SUM,
            "predicate = 'time <= 1'\nrate = 0.9",
            "4:13: `1` needs a unit; write it in ns, us, µs, ms, s, min, m, h",
        ),
        (
            COMMAND,
            "at = { n = 1 }",
            "6:8: unknown parameter `n`; no command line has `{n}`; add it to a command line, or leave out the parameter",
        ),
        (
            SUM,
            "candidate = { varaint = 'kahan' }\nbaseline = 'naive'\nat_least = 2",
            "4:13: `candidate` has no variant; write { variant = \"…\", … }\n4:15: unknown factor `varaint`; known are variant, elements, type, accumulators; did you mean `variant`?",
        ),
        (
            COMPARISON,
            "at = { type = 'f322' }\nat_least = 2",
            r#"6:15: `type` accepts f32, f64, not "f322"; did you mean `f32`?"#,
        ),
    ]);
}

#[test]
fn lines_that_need_a_shell() {
    check(&[
        (
            CLAIM,
            "command = 'sort x | uniq'\npredicate = 'exit == 0'\nrate = 0.9",
            "3:11: `command`: '|' in column 8 needs a shell; quote it, or add shell = true",
        ),
        (
            CLAIM,
            "candidate = 'A=1 a'\nbaseline = 'if b'\nat_least = 1",
            "3:13: `candidate`: \"A=1\" needs a shell; add shell = true\n4:12: `baseline`: \"if\" needs a shell; add shell = true",
        ),
        (COMMAND, "setup = 'echo \"'", "6:9: `setup`: column 6: the quote \" is not closed"),
    ]);
    let with_shell = format!("{CLAIM}command = 'sort x | uniq'\npredicate = 'exit == 0'\nrate = 0.9\nshell = true");
    assert!(read(&with_shell).is_ok());
}

#[test]
fn a_level_that_no_arm_has() {
    const FILL: &str = "[[claim]]\nid = 'x'\nexperiment = 'fill-rate'\npredicate = 'fill_rate > 0.9'\nrate = 0.9\n";
    let says = "`capacity` does not apply to `greedy` at the other levels of the claim; leave out `capacity`";
    let of_one = "`capacity` does not apply to `greedy` at `bins=1`; make a separate claim without `capacity`";
    check(&[
        (FILL, "at = { capacity = 9, bins = 1 }", &format!("6:8: {says}")),
        (FILL, "at = { bins = 1, capacity = [8, 9] }\nover = 'each'", &format!("6:18: {says}")),
        (FILL, "at = { bins = [1, 2], capacity = 9 }\nover = 'each'", &format!("6:23: {of_one}")),
        (FILL, "at = { bins = [1, 2], capacity = [8, 9] }\nover = 'each'", &format!("6:23: {of_one}")),
        (FILL, "candidate = { variant = 'greedy', bins = 1, capacity = 9 }", &format!("6:45: {says}")),
    ]);
    let of_some = format!("{FILL}at = {{ bins = [1, 2], capacity = 9 }}\nover = 'every'");
    assert_eq!(message(&of_some), "no mistake", "some of the claim's arms have it");
}

#[test]
fn printed_metrics_that_are_wrong() {
    const COMMANDS: &str = "[[claim]]\nid = 'x'\ncandidate = 'a'\nbaseline = 'b'\nat_least = 2\n";
    check(&[
        (
            COMMANDS,
            "metric = 'p=x'",
            "6:10: `x` has 0 capture groups and needs exactly one; put parentheses around the figure, and write any other group as (?:…)",
        ),
        (
            COMMANDS,
            "metric = 'p=(x)'",
            "6:10: it is unknown whether higher or lower `p` is better; write metrics = { p = { pattern = …, better = \"higher\" } }, or \"lower\", \
             or a unit that implies it",
        ),
        (
            COMMANDS,
            "metric = 'p=(x) s'\nmetrics = { p = '(x) s' }",
            "6:10: the metric `p` is given twice; give each metric its own name",
        ),
        (COMMANDS, "metrics = { p = { unit = 's' } }", "6:17: `p` has no `pattern`; add one"),
        (
            COMMANDS,
            "metrics = { p = { pattern = '(x)', unit = 'parsec', better = 'up' } }",
            "6:43: unknown unit `parsec`; known are ns, us, µs, ms, s, min, m, h, B, kB, MB, GB, KiB, MiB, GiB, B/s, kB/s, \
             MB/s, GB/s, KiB/s, MiB/s, GiB/s, Mbit/s, Gbit/s, /s, 1/s, k/s, M/s, G/s, %",
        ),
        (
            COMMANDS,
            "metrics = { p = { pattern = '(x)', better = 'up' } }",
            "6:45: `better` must be \"higher\" or \"lower\", not \"up\"",
        ),
        (
            COMMANDS,
            "metrics = { p = { pattern = '(x) s', bettr = 'higher' } }",
            "6:38: unknown key `bettr`; known are pattern, unit, better; did you mean `better`?",
        ),
        (COMMANDS, "metrics = { p = { pattern = 5 } }", "6:29: `pattern` must be a string, not 5"),
        (
            COMMANDS,
            "metrics = { p = 5 }",
            "6:17: `p` must be a pattern such as \"([0-9.]+) MB/s\", or a table such as { pattern = …, unit = \"MB/s\" }, \
             not 5",
        ),
        (
            COMMANDS,
            "metrics = 5",
            "6:11: `metrics` must be a table of printed metrics such as { throughput = \"([0-9.]+) MB/s\" }, not 5",
        ),
        (
            COMPARISON,
            "at_least = 2\nmetrics = { p = '(x) s' }",
            "7:1: `metrics` is only allowed for commands; leave it out for an experiment",
        ),
    ]);
}

#[test]
fn expressions_without_a_fresh_value_for_each_outcome() {
    let fresh = "makes outcomes that depend on one another, and a claim needs one fresh outcome per trial; use windows \
                 that do not overlap, such as `mean(window(series, 10))`";
    let no_metric = "`mean(window(tim, 10))`: there is no metric `tim`; the series are time, error, memory, throughput; did you \
                     mean `time`?";
    let overlap = format!("6:10: `mean(window(time, 10, 5))`: `mean of window 10 step 5` {fresh}");
    let lag = format!("4:13: `time / lag(time, 1)`: `lag 1` {fresh}");
    let unknown = format!("6:10: {no_metric}");
    check(&[
        (COMPARISON, "metric = 'mean(window(time, 10, 5))'\nat_least = 2", &overlap),
        (SUM, "predicate = 'time / lag(time, 1) >= 2'\nrate = 0.9", &lag),
        (COMPARISON, "metric = 'mean(window(tim, 10))'\nat_least = 2", &unknown),
        (
            COMPARISON,
            "metric = 'where(time, time > 1 ms)'\nat_least = 2",
            "6:10: `where` may select other trials of each arm, so their values are not pairs; compare without it",
        ),
        (
            COMPARISON,
            "metric = 'memory / max(memory, 1)'\nat_least = 2",
            "6:10: `memory / max(memory, 1)`: column 10: `max` has 2 arguments; write it as `max(window(series, 1000))`",
        ),
        (
            COMPARISON,
            "metric = 'mean(window(time / 1 ms, 10))'\nat_least = 2",
            "6:10: it is unknown whether higher or lower values of this expression are better; use an expression with a \
             unit, or a predicate",
        ),
        (
            SUM,
            "predicate = 'mean(window(time, 10)) <= 1 ms and memory <= 1 MB'\nrate = 0.9",
            "4:13: `mean(window(time, 10))` has one value for several trials, and `memory` has other values; make a claim \
             for each",
        ),
        (
            SUM,
            "predicate = 'mean(window(time, 10)) <= 1 ms'\nkind = 'exact'",
            "4:13: an exact claim is checked in one trial; name a metric instead of an expression",
        ),
        (
            SUM,
            "predicate = 'mean(window(time, 10 s)) <= 1 ms'\nrate = 0.9",
            "4:13: `mean(window(time, 10 s))`: a window of time has an unknown number of trials; use a window of a number \
             of trials, such as `mean(window(wall, 10))`",
        ),
    ]);
}
