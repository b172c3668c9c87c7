//! Words that are not known, and what is known.

use super::mistakes::{CLAIM, COMMAND, COMPARISON, SUM, check};
use super::registry::read;

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
            r#"4:13: `candidate` names no variant; write { variant = "…", … }"#,
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
            "6:26: `elements` has the level 1024 twice",
        ),
        (COMPARISON, "at = { elements = [] }\nover = 'each'\nat_least = 2", "6:19: `elements` has an empty list"),
        (
            COMPARISON,
            "at = { elements = [1, 2] }\nat_least = 2",
            r#"6:19: `elements` has a list; add over = "each" (one claim a point) or over = "every" (one claim for all points)"#,
        ),
        (
            COMPARISON,
            "at = { elements = 1 }\nover = 'each'\nat_least = 2",
            "7:1: `over` goes with a list in `at`; there is none",
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
            "4:13: `1 kB` is not in a unit that fits here; write it in ns, us, µs, ms, s, min, m, h",
        ),
        (
            SUM,
            "predicate = 'time <= 1'\nrate = 0.9",
            "4:13: `1` is not in a unit that fits here; write it in ns, us, µs, ms, s, min, m, h",
        ),
        (COMMAND, "at = { n = 1 }", "6:8: unknown parameter `n`; no command line has `{n}`"),
        (
            SUM,
            "candidate = { varaint = 'kahan' }\nbaseline = 'naive'\nat_least = 2",
            "4:13: `candidate` names no variant; write { variant = \"…\", … }\n4:15: unknown factor `varaint`; known are variant, elements, type, accumulators; did you mean `variant`?",
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
            "3:11: `command`: column 8 of it: '|' is for a shell; quote it, or add shell = true",
        ),
        (
            CLAIM,
            "candidate = 'A=1 a'\nbaseline = 'if b'\nat_least = 1",
            "3:13: `candidate`: \"A=1\" is for a shell; add shell = true\n4:12: `baseline`: \"if\" is for a shell; add shell = true",
        ),
        (COMMAND, "setup = 'echo \"'", "6:9: `setup`: column 6: the quote \" is not closed"),
    ]);
    let with_shell = format!("{CLAIM}command = 'sort x | uniq'\npredicate = 'exit == 0'\nrate = 0.9\nshell = true");
    assert!(read(&with_shell).is_ok());
}
