//! The plans and the messages, in golden files. `BLESS=1` writes them.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use ascertain_streams::{Memory, Plan, PlanOptions, grouped};

use crate::{catalogue, commands};

fn compare(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("BLESS").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{}: if the change is right, run the test with BLESS=1", path.display());
}

const REFUSED: &[&str] = &[
    "",
    "time +",
    "time memory",
    "time / (memory",
    "time)",
    "time = 5",
    "time & memory",
    "'time'",
    "\"time",
    "5 parsecs",
    "1e999 * time",
    "x.",
    "x < y < 2",
    "timr",
    "arm.time",
    "evry(time, 2)",
    "y / ewma(gappy, .1)",
    "with_gaps(time, 2)",
    "every(time)",
    "every(time, 0)",
    "every(time, 1.5)",
    "every(time, 2 s)",
    "every(time, x)",
    "repeat(time, 0)",
    "window(time, 0)",
    "mean(window(time, 0))",
    "mean(window(time, 1000001))",
    "drop(time, 1000000)",
    "mean(window(time, 10 s, step 3 s))",
    "mean(window(time, 10 s, step 3))",
    "mean(window(time, 10 s, step 0 s))",
    "mean(window(time, 10 s, step 0))",
    "mean(window(time, 10, step 0))",
    "mean(window(time, 0 s, step 1 s))",
    "window(time, 1000)",
    "window(time, 1000) / time",
    "quantile(99, window(time, 1000))",
    "ewma(time, 0)",
    "time / 0",
    "1 < 2",
    "7",
    "time + memory",
    "time / memory",
    "time < memory",
    "time and x > 1",
    "-(x > 1)",
    "not x",
    "where(time, x)",
    "where(time < 2 ms, time)",
    "where(every(x > 1, 2), time)",
    "every(2, time)",
    "ewma(.01, time)",
    "buffer(100, time) + x",
    "window(1000, time, 10)",
    "quantile(window(time, 100), .99)",
    "time > 0",
    "5 < time",
    "memory - -1e6",
    "where(time, memory / time > 99)",
    "where(time, time > 99%)",
    "per_second(count(window(time, 1 s))) + 5",
    "where(x, memory * memory)",
    "where(x, x > 1 and memory)",
    "mean(x > 1)",
    "(x > 1) + 1",
    "hold(time)",
    "hold(x) / hold(y)",
    "buffer(x, 10)",
    "buffer(every(x, 2), 10) / y",
    "every(time, 2) / time",
    "repeat(time, 2) / time",
    "mean(window(time, 1000, 10)) / time",
    "where(time, every(x, 2) > 5)",
    "mean(window(every(time, 2) / time, 10))",
    "every(time, 2) + time - memory",
    "where(x, x > 1) - y",
    "where(x, x > 1) - where(x, x > 2)",
    "count(window(x, 1 s)) - x",
    "x - hold(again(y))",
    "again(time)",
    "mean(window(again(time), 10))",
    "again(x) - again(y)",
    "where(again(x), again(x) > 1)",
    "where(x, x > 1) - again(y)",
    "(every(x, 2) + 1) * x",
    "x - (every(x, 2) - every(x, 2))",
    "where(x, x > 1) - (y - x)",
    "where(x, x > 1) - buffer(y, 10)",
    "where(x, where(y, y > 1) > 2)",
    "every(where(x, x > 1), 2) / where(x, x > 1)",
    "where(where(x, x > 1), every(where(y, x > 1), 2) > 5)",
    "repeat(repeat(time, 2), 2) / time",
    "hold(x) * 2",
    "-hold(x)",
    "x * (1 / 0)",
    "x * (1e300 * 1e300)",
    "x * 2/s_max",
    "mean(window(x, 1e10, 5e9))",
    "per_second(x)",
    "per_second(mean(window(memory, 1 s)))",
    "repeat(repeat(repeat(repeat(repeat(repeat(x, 1e12), 1e12), 1e12), 1e12), 1e12), 1e12)",
    "every(every(every(every(every(every(x, 1e12), 1e12), 1e12), 1e12), 1e12), 1e12)",
];

#[test]
fn messages_name_the_place_and_the_way_out() {
    let catalogue = catalogue().with_observations(1_000_000);
    let mut text = String::new();
    for expression in REFUSED {
        let error = match Plan::new(expression, &catalogue) {
            Err(error) => error,
            Ok(plan) => panic!("accepted: {plan}"),
        };
        assert!(expression.get(error.place()).is_some(), "{expression}");
        writeln!(text, "{expression}\n{error}\n").unwrap();
    }
    compare("messages.txt", &text);
}

#[test]
fn advice_can_be_pasted() {
    for (text, advice) in [
        ("where(time < 2 ms, time)", "where(time, time < 2 ms)"),
        ("where(every(x > 1, 2), every(time, 2))", "where(every(time, 2), every(x > 1, 2))"),
        ("every(2, time)", "every(time, 2)"),
        ("repeat(1 + 1, time)", "repeat(time, 1 + 1)"),
        ("mean(window(1000, time, 10))", "window(time, 1000, step 10)"),
        ("quantile(time, 99%)", "quantile(99%, time)"),
        ("time > 0", "time > 0 s"),
        ("5 < time", "5 s < time"),
        ("time + -3", "time + -3 s"),
        ("memory - 1e6", "memory - 1e6 B"),
        ("memory / time > 99", "memory / time > 99 B/s"),
        ("1 / time > 5", "1 / time > 5 /s"),
        ("not time", "time > 0 s"),
        ("where(x, x + y)", "x + y > 0"),
        ("x > 1 and memory / time", "memory / time > 0 B/s"),
        ("buffer(every(x, 2), 10) / y", "every(x, 2) / buffer(y, 10)"),
        ("y / buffer(every(x, 2), 10)", "buffer(y, 10) / every(x, 2)"),
    ] {
        let error = Plan::new(text, &catalogue()).unwrap_err().to_string();
        assert!(error.contains(&format!("`{advice}`")) || error.contains(&format!("\n  {advice}\n")), "{error}");
        let is_window = advice.starts_with("window");
        let whole = if is_window { format!("mean({advice})") } else { advice.to_string() };
        Plan::new(&whole, &catalogue()).unwrap_or_else(|error| panic!("{advice}: {error}"));
    }
}

#[test]
fn plans_show_steps_rates_and_memory() {
    let mut text = String::new();
    for (expression, block, has_ranges) in [
        ("ewma(time, .01) / lag(ewma(time, .01), 1000)", 1, false),
        ("time / hold(quantile(.99, window(time, 1000)))", 1, false),
        ("time / hold(quantile(.99, window(time, 1000)))", 256, true),
        ("time - repeat(every(time, 2), 2)", 1, false),
        ("repeat(every(time, 6), 4) - repeat(every(time, 3), 2)", 1, false),
        ("time - mean(window(time, 1000, 1))", 256, false),
        ("repeat(every(time, 1009), 1009) - repeat(every(time, 1013), 1013)", 1, false),
        ("every(time, 2) / again(time)", 256, false),
        ("every(time, 2) / buffer(time, 1000)", 256, false),
        ("where(memory, time > 5 ms) / hold(max(window(where(memory, time > 5 ms), 10 s, step 1 s)))", 256, false),
        ("quantile(.5, window(time - lag(time, 1), 100000, 10))", 256, false),
        ("quantile(.5, window(time, 100, 1))", 256, false),
        ("per_second(count(window(time, 10 s, step 1 s)))", 256, false),
        ("1.5 MB - memory * 2 > 0 B and not memory / time < 2 kB/s", 256, false),
        ("mean(window(time, 100 ms)) + 250 us", 256, false),
    ] {
        let plan = Plan::with(expression, &catalogue(), PlanOptions { block, has_ranges, is_endless: false }).unwrap();
        let Memory { states, in_flight, steps } = plan.memory();
        let plan = plan.to_string();
        // The list of steps depends on the compiler.
        let (lines, memory) = plan.rsplit_once('\n').unwrap();
        let [total, states, in_flight, steps] = [states + in_flight + steps, states, in_flight, steps].map(grouped);
        let parts = format!("{states} B buffers and states + {in_flight} B in flight + {steps} B list of steps");
        assert_eq!(memory, format!("memory: {total} B = {parts}"));
        writeln!(text, "{lines}\n").unwrap();
    }
    compare("plans.txt", &text);
}

/// The page about the conjecture prints the answers to both examples of the source, and ways out that are accepted.
#[test]
fn the_page_about_the_conjecture_has_the_answers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/streams-conjecture.md");
    let page = fs::read_to_string(path).unwrap();
    for expression in ["every(wall, 2) / wall", "repeat(wall, 2) / wall"] {
        let error = Plan::new(expression, &commands()).unwrap_err();
        let block = format!("```console\n$ ascertain series latest '{expression}'\nerror: {error}\n```\n");
        assert!(page.contains(&block), "the page has not:\n{block}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains(" / "));
    let ways: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    assert_eq!(ways.len(), 8, "{ways:?}");
    for way in ways {
        assert!(Plan::new(way, &commands()).is_ok(), "{way}");
    }
}
