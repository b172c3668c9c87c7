//! The examples of the README and of the conjecture's page.

use ascertain_streams::{
    Catalogue, Engine, Failure, Memory, OneClock, Plan, PlanOptions, Problem, Ratio, Recorded, RunError, Series, Way,
    WayOut, parse,
};

use crate::{catalogue, commands, run_on};

fn plan(text: &str) -> Plan {
    Plan::with(text, &catalogue(), PlanOptions { block: 1, has_ranges: false, is_endless: false }).unwrap()
}

#[test]
fn memory_of_the_examples() {
    for (text, states, in_flight) in [
        ("ewma(time, .01) / lag(ewma(time, .01), 1000)", 8_008, 16),
        ("time / hold(quantile(.99, window(time, 1000)))", 8_008, 16),
        ("time - repeat(every(time, 2), 2)", 8, 16),
        ("repeat(every(time, 6), 4) - repeat(every(time, 3), 2)", 8, 32),
        ("time - mean(window(time, 1000, 1))", 7_992 + 12_012, 16),
        ("time", 0, 8),
        ("time - time", 0, 16),
        ("time / again(every(time, 2))", 0, 24),
        ("every(time, 2) / buffer(time, 100)", 800, 16),
    ] {
        let Memory { states: found, in_flight: flying, .. } = plan(text).memory();
        assert_eq!((found, flying), (states, in_flight), "{text}\n{}", plan(text));
    }
}

#[test]
fn the_readme_has_these_counts() {
    let readme = include_str!("../../README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| `") && line.contains(" B"));
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let text = cells[0].trim_start_matches("| `").trim_end_matches('`');
        let Memory { states, in_flight, .. } = plan(text).memory();
        let together: u64 = cells[3].chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
        assert_eq!(states + in_flight, together, "{text}");
        count += 1;
    }
    assert_eq!(count, 5);
}

#[test]
fn the_page_of_the_conjecture_has_the_plan() {
    let page = include_str!("../../../../docs/streams-conjecture.md");
    let plan = Plan::new("every(wall, 2) / again(wall)", &commands()).unwrap().to_string();
    // The list of steps depends on the compiler.
    let (steps, _) = plan.rsplit_once('\n').unwrap();
    assert!(page.contains(&format!("```\n{steps}\nmemory: ")), "{plan}");
}

#[test]
fn the_plan_prints_the_method_of_a_quantile() {
    let exact = plan("quantile(.99, window(time, 16384))").to_string();
    assert!(exact.contains("131,072 B  exact, by selection among 16,384 values"), "{exact}");
    let table = plan("quantile(.99, window(time, 16385))").to_string();
    assert!(
        table.contains("131,072 B  flat table, relative error 0.0367 %; values within 2^-16 of 0 count as 0"),
        "{table}"
    );
    let signed = plan("quantile(.99, window(time - lag(time, 1), 1000000))").to_string();
    assert!(signed.contains("262,264 B  flat table"), "{signed}");
}

#[test]
fn both_expressions_of_the_source_are_refused() {
    for (text, growth, is_before_repeat) in
        [("every(time, 2) / time", (1, 2), false), ("repeat(time, 2) / time", (1, 2), true)]
    {
        let error = Plan::new(text, &catalogue()).unwrap_err();
        let Problem::Unbounded(unbounded) = error.problem() else { panic!("{error}") };
        assert_eq!((unbounded.growth.parts(), unbounded.is_before_repeat), (growth, is_before_repeat), "{text}");
        assert_eq!(unbounded.paths[1], ("time".into(), Ratio::ONE));
        let ways: Vec<Way> = unbounded.ways.iter().map(|way_out| way_out.way).collect();
        assert_eq!(ways, [Way::Hold, Way::Every, Way::Again, Way::Buffer], "{text}");
        for WayOut { expression, .. } in &unbounded.ways {
            Plan::new(expression, &catalogue()).unwrap_or_else(|error| panic!("{expression}: {error}"));
        }
    }
}

/// Returns the expressions that a message suggests, without those that use `every`.
fn suggestions(problem: &Problem) -> Vec<String> {
    match problem {
        Problem::Unbounded(unbounded) => {
            let others = unbounded.ways.iter().filter(|way_out| way_out.way != Way::Every);
            others.map(|way_out| way_out.expression.clone()).collect()
        }
        Problem::Clocks(text) => text.split("instead: `").skip(1).map(|rest| rest.replace('`', "")).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_suggestion_is_accepted_and_keeps_the_sides() {
    for (text, expected) in [
        ("(every(x, 2) + 1) * x", 3),
        ("x * (every(x, 2) + 1)", 3),
        ("x - (every(x, 2) - every(x, 2))", 3),
        ("(every(time, 2) + every(time, 2)) / time", 3),
        ("(x > 1 or y > 2) and (every(x, 2) > 1 or every(y, 2) > 2)", 3),
        ("every(where(x, x > 1), 2) / where(x, x > 1)", 2),
        ("(every(where(x, x > 1), 2) + 1) * (where(x, x > 1) - 1)", 2),
        ("every(mean(window(x, 1 s)), 2) - mean(window(x, 1 s))", 2),
        ("where(x, every(x, 2) > 5)", 1),
        ("where(x, x > 1) - (y - x)", 1),
        ("(where(x, x > 1) + 1) * (y + 1)", 1),
        ("where(x, x > 1) - buffer(y, 10)", 1),
        ("buffer(y, 10) - where(x, x > 1)", 1),
        ("where(x, x > 1) > 1 and (y > 2 or x > 2)", 1),
    ] {
        let error = Plan::new(text, &catalogue()).unwrap_err();
        let suggested = suggestions(error.problem());
        assert_eq!(suggested.len(), expected, "{text}: {error}");
        // Without the functions that a way out adds, each suggestion is the expression itself.
        let without = |text: &str| {
            let printed = parse(text).unwrap().to_string();
            let plain = ["hold", "again", "buffer"].iter().fold(printed, |text, name| text.replace(name, ""));
            plain.replace(", 1000000", "").replace(", 10)", ")").replace(['(', ')', ' '], "")
        };
        for suggestion in suggested {
            Plan::new(&suggestion, &catalogue()).unwrap_or_else(|error| panic!("{suggestion}: {error}"));
            assert_eq!(without(&suggestion), without(text));
            assert_eq!(parse(&suggestion).unwrap().to_string(), suggestion);
        }
    }
}

#[test]
fn ways_out_are_whole_expressions() {
    for (text, expected) in [
        (
            "repeat(time, 2) / time",
            &[
                "hold(repeat(time, 2)) / time",
                "every(repeat(time, 2), 2) / time",
                "again(repeat(time, 2)) / time",
                "buffer(repeat(time, 2), 1000000) / time",
            ][..],
        ),
        (
            "1 - mean(window((every(x, 2) + x) * 2, 10))",
            &[
                "1 - mean(window((every(x, 2) + hold(x)) * 2, 10))",
                "1 - mean(window((every(x, 2) + every(x, 2)) * 2, 10))",
                "1 - mean(window((every(x, 2) + again(x)) * 2, 10))",
                "1 - mean(window((every(x, 2) + buffer(x, 1000000)) * 2, 10))",
            ],
        ),
        // Each rate is divided by the other one.
        (
            "every(x, 4) - repeat(every(x, 6), 5)",
            &[
                "every(x, 4) - hold(repeat(every(x, 6), 5))",
                "every(every(x, 4), 3) - every(repeat(every(x, 6), 5), 10)",
                "every(x, 4) - again(repeat(every(x, 6), 5))",
                "every(x, 4) - buffer(repeat(every(x, 6), 5), 1000000)",
            ],
        ),
        // A way out is used for each join, also if a join occurs twice.
        (
            "(every(x, 2) - x) * (every(x, 2) - x) + hold(every(y, 3) - y)",
            &[
                "(every(x, 2) - hold(x)) * (every(x, 2) - hold(x)) + hold(every(y, 3) - hold(y))",
                "(every(x, 2) - every(x, 2)) * (every(x, 2) - every(x, 2)) + hold(every(y, 3) - every(y, 3))",
                "(every(x, 2) - again(x)) * (every(x, 2) - again(x)) + hold(every(y, 3) - again(y))",
                "(every(x, 2) - buffer(x, 1000000)) * (every(x, 2) - buffer(x, 1000000)) + hold(every(y, 3) - \
                 buffer(y, 1000000))",
            ],
        ),
        (
            "where(where(x, x > 1), every(where(y, x > 1), 2) > 5)",
            &["where(every(where(x, x > 1), 2), every(where(y, x > 1), 2) > 5)"],
        ),
    ] {
        let error = Plan::new(text, &catalogue()).unwrap_err();
        let Problem::Unbounded(unbounded) = error.problem() else { panic!("{error}") };
        let ways: Vec<&str> = unbounded.ways.iter().map(|way_out| way_out.expression.as_str()).collect();
        assert_eq!(ways, expected, "{text}");
        for way in ways {
            Plan::new(way, &catalogue()).unwrap_or_else(|error| panic!("{way}: {error}"));
            assert!(error.to_string().contains(&format!("\n  {way}\n      ")), "{error}");
        }
    }
    let error = Plan::new("(every(x, 2) - x) + time", &catalogue()).unwrap_err().to_string();
    let end = "\nwith each way out, the expression has another problem: `every(x, 2) - hold(x) + time` has 1 on the \
               left and ns on the right of `+`.";
    assert!(error.contains(end) && !error.contains("choose a way out"), "{error}");
}

#[test]
fn memory_of_a_refused_join_of_ranges_is_that_of_ranges() {
    for (has_ranges, memory) in [(false, "6.000 GB"), (true, "12.000 GB")] {
        let options = PlanOptions { has_ranges, ..PlanOptions::default() };
        let error = Plan::with("repeat(repeat(time, 2), 2) / time", &catalogue(), options).unwrap_err();
        let expected = format!("3t/4 values would wait, counted before they are repeated: {memory}");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

/// Series with clocks of their own: the clock of an arm is the length of its name.
struct Arms;

impl Catalogue for Arms {
    fn find(&self, arm: Option<&str>, metric: &str) -> Result<(usize, Series), String> {
        let (index, series) = OneClock::new(&[("x", ascertain_streams::Unit::ONE)]).find(None, metric)?;
        Ok((index, Series { clock: arm.map_or(0, str::len), ..series }))
    }
}

#[test]
fn a_second_reading_has_a_single_clock() {
    let error = Plan::new("every(a.x, 2) / again(a.x / hold(bb.x))", &Arms).unwrap_err();
    let expected = "column 23: `a.x / hold(bb.x)` has series with different clocks, and `again` reads a single clock; \
                    put `again` around a series with one clock";
    assert_eq!(error.to_string(), expected);
    let error = Plan::new("every(a.x, 2) / (a.x / hold(bb.x))", &Arms).unwrap_err();
    let suggested = suggestions(error.problem());
    assert_eq!(suggested.len(), 2, "{error}");
    for suggestion in suggested {
        Plan::new(&suggestion, &Arms).unwrap_or_else(|error| panic!("{suggestion}: {error}"));
    }
    assert!(Plan::new("every(a.x, 2) / again(a.x) - hold(bb.x)", &Arms).is_ok());
}

#[test]
fn a_condition_that_reads_again_also_selects_times() {
    let values: Vec<f64> = (0..300).map(f64::from).collect();
    for block in [1, 7, 256] {
        for (again, plain) in [
            ("x - hold(where(x, again(x) > 50))", "x - hold(where(x, x > 50))"),
            ("max(window(where(x, again(x) > 50), 20 ms))", "max(window(where(x, x > 50), 20 ms))"),
            ("min(where(x, again(x) > 50))", "min(where(x, x > 50))"),
        ] {
            let is_same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
            let (found, expected) = (run_on(again, &values, block), run_on(plain, &values, block));
            assert!(found.len() == expected.len() && found.iter().zip(&expected).all(is_same), "{again} {found:?}");
            assert!(found.len() > 10, "{again}");
        }
        // Value i is 2i, appears with observation 2i, and is selected from i = 51 on.
        let found = run_on("x - hold(where(every(x, 2), again(x) > 50))", &values, block);
        assert!(found[..102].iter().all(|value| value.is_nan()), "{found:?}");
        assert!(found[102..].iter().enumerate().all(|(index, value)| *value == (index % 2) as f64), "{found:?}");
    }
}

#[test]
fn joins_with_a_buffer_have_times_and_numbers() {
    let values: Vec<f64> = (0..200).map(f64::from).collect();
    for block in [1, 8, 256] {
        // Value i is 2i − i, and appears with observation 2i.
        let means = run_on("mean(window(every(x, 2) - buffer(x, 1000), 10 ms))", &values, block);
        assert_eq!(means, (0..19).map(|window| f64::from(5 * window + 2)).collect::<Vec<_>>());
        let held = run_on("x - hold(where(every(x, 2) - buffer(x, 200), every(x, 2) > 1))", &values, block);
        assert!(held[0].is_nan() && held[1].is_nan());
        assert!(held[2..].iter().zip(2..).all(|(value, t)| *value == f64::from(t - t / 2)), "{held:?}");
    }
}

#[test]
fn equal_second_readings_are_one() {
    for (text, readings) in [
        ("every(x, 2) / again(x) + lag(every(x, 2) / again(x), 1)", 2),
        ("where(x, again(y) > 1) - where(x, again(y) > 1)", 2),
        ("every(x, 2) - -again(x)", 2),
        ("(every(x, 2) - again(x)) - hold(every(x, 3) - again(x))", 3),
    ] {
        assert_eq!(plan(text).readings(), readings, "{text}");
    }
}

#[test]
fn the_latest_value_can_be_part_of_a_sum() {
    let values: Vec<f64> = (1..100).map(f64::from).collect();
    for (text, expected) in [
        ("x / (hold(mean(window(x, 10))) * 2)", "x / hold(mean(window(x, 10)) * 2)"),
        ("x + -hold(every(x, 3))", "x - hold(every(x, 3))"),
        ("x - (1 - hold(every(x, 3)))", "x - hold(1 - every(x, 3))"),
        ("where(x, x > 5 and hold(every(x, 7)) > 20)", "where(x, x > 5 and hold(every(x, 7) > 20))"),
    ] {
        let (found, expected) = (run_on(text, &values, 16), run_on(expected, &values, 16));
        assert!(!found.is_empty() && format!("{found:?}") == format!("{expected:?}"), "{text}: {found:?}");
    }
}

#[test]
fn a_length_that_is_computed_can_be_a_time() {
    let values: Vec<f64> = (0..100).map(f64::from).collect();
    let expected = run_on("mean(window(x, 10 ms, step 5 ms))", &values, 16);
    assert_eq!(run_on("mean(window(x, 2 * 5 ms, step 10 ms / 2))", &values, 16), expected);
}

#[test]
fn each_undecided_value_is_counted_once() {
    let values = [1.0, f64::NAN, 3.0, f64::NAN, 5.0, 6.0];
    for (text, undecided) in [
        ("where(x, x > 1)", 2),
        ("where(x, x > 1) - where(y, x > 1)", 2),
        ("where(x, x > 1) - hold(max(window(where(x, x > 1), 2 ms)))", 2),
        ("where(x, x > 1) - hold(where(x, x > 2))", 4),
    ] {
        let plan = plan(text);
        let mut engine = Engine::new(&plan).unwrap();
        engine.run(&mut Recorded::new(&[&values[..]; 4]), |_| true).unwrap();
        assert_eq!(engine.undecided(), undecided, "{text}");
    }
}

#[test]
fn a_run_without_results_can_be_stopped() {
    let plan = plan("drop(x, 1000)");
    let values = [1.0; 100];
    let mut blocks = 0;
    let observe = |_: ascertain_streams::Results| {
        blocks += 1;
        blocks < 10
    };
    Engine::new(&plan).unwrap().run(&mut Recorded::new(&[&values[..]; 4]), observe).unwrap();
    assert_eq!(blocks, 10);
}

#[test]
fn large_plans_are_made_in_a_short_time() {
    // Each join has a period of 988,027 observations.
    let term = |index: usize| {
        let n = [997, 991][index % 2];
        format!("repeat(every(drop(x, {index}), {n}), {n})")
    };
    let terms: Vec<String> = (0..30).map(term).collect();
    let plan = plan(&terms.join(" + ")).to_string();
    assert!(plan.contains("B  at most"), "{plan}");
    assert!(Plan::new(&format!("{}x", "-".repeat(60)), &catalogue()).is_ok());
    // The values in flight are more than a number of 64 bits can count.
    let terms: Vec<String> = (1..10).map(|index| format!("lag(repeat(repeat(x, 2e9), 2e9), {index}) + (")).collect();
    let large = format!("{}x{}", terms.concat(), ")".repeat(terms.len()));
    let large = large.replace("x)", "repeat(repeat(x, 2e9), 2e9))");
    assert!(self::plan(&large).to_string().contains("18,446,744,073,709,551,615 B"));
}

#[test]
fn the_ways_out_compute_what_they_state() {
    let values: Vec<f64> = (0..1000).map(f64::from).collect();
    for block in [1, 7, 256] {
        let again = run_on("every(x, 2) - again(x)", &values, block);
        assert_eq!(again, (0..500).map(f64::from).collect::<Vec<_>>(), "x_2i − x_i = i");
        let again = run_on("again(repeat(x, 2)) - x", &values, block);
        assert_eq!(again, (0..1000).map(|i| f64::from(i / 2 - i)).collect::<Vec<_>>());
        // The slower side can read again too: the run ends when the second reading reaches the end.
        let again = run_on("again(every(x, 2)) - x", &values, block);
        assert_eq!(again, (0..500).map(f64::from).collect::<Vec<_>>());
        let held = run_on("every(x, 2) - hold(x)", &values, block);
        assert_eq!(held, vec![0.0; 500]);
        let dropped = run_on("every(repeat(x, 2), 2) - x", &values, block);
        assert_eq!(dropped, vec![0.0; 1000]);
        let buffered = run_on("every(x, 2) - buffer(x, 500)", &values, block);
        assert_eq!(buffered, (0..500).map(f64::from).collect::<Vec<_>>());
    }
}

#[test]
fn claims_accept_expressions_with_one_fresh_outcome_per_trial() {
    for text in ["time", "time / 2 ms", "mean(window(time, 10))", "x / y", "every(x, 3)", "where(x, y > 1)"] {
        assert_eq!(plan(text).check_independent(), Ok(()), "{text}");
    }
    for (text, operator) in [
        ("mean(window(time, 10, 5))", "mean of window 10 step 5"),
        ("lag(x, 1)", "lag 1"),
        ("ewma(x, .1)", "ewma 0.1"),
        ("max(x)", "max so far"),
        ("repeat(x, 2)", "repeat 2"),
        ("x - drop(x, 1)", "- of values with different indices"),
        ("x - hold(every(x, 9))", "- hold"),
    ] {
        let error = plan(text).check_independent().unwrap_err();
        let expected = format!(
            "column 1: `{operator}` makes outcomes that depend on one another, and a claim needs one fresh outcome per \
             trial; use windows that do not overlap, such as `mean(window(series, 10))`"
        );
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn a_buffer_behind_a_reading_that_ended_is_reported_only_if_results_are_missing() {
    let values: Vec<f64> = (0..1000).map(f64::from).collect();
    // The left side has its last value after 500 of 1,000 observations. 500 values wait then, and more would come.
    let text = |most: u32| format!("(repeat(x, 2) - again(x)) + buffer(repeat(x, 3), {most})");
    let expected: Vec<f64> = (0..1000).map(|i| f64::from(i / 2 - i + i / 3)).collect();
    for block in [1, 7, 64] {
        assert_eq!(run_on(&text(600), &values, block), expected, "block {block}");
        let plan =
            Plan::with(&text(100), &catalogue(), PlanOptions { block, has_ranges: false, is_endless: false }).unwrap();
        let mut engine = Engine::new(&plan).unwrap();
        let ran = engine.run(&mut Recorded::new(&[&values[..]; 4]), |_| true);
        assert!(matches!(ran, Err(Failure::Run(RunError::BufferFull { values: 100, .. }))), "block {block}: {ran:?}");
    }
    // The buffered side ends, and the other side is ahead from then on.
    let text = "(repeat(x, 2) - again(x)) - buffer(repeat(repeat(x, 2) - again(x), 2), 3000)";
    assert_eq!(run_on(text, &values, 16).len(), 1000);
}

#[test]
fn gaps_are_refused_unless_the_expression_accepts_them() {
    let values = [1.0, f64::NAN, 3.0];
    assert_eq!(run_on("count(with_gaps(gappy))", &values, 4), [1.0, 1.0, 2.0]);
    assert_eq!(run_on("where(with_gaps(gappy), x > 2)", &values, 4), [3.0]);
    for text in ["gappy", "with_gaps(gappy) + gappy", "count(where(x, gappy > 2))"] {
        let error = Plan::new(text, &catalogue()).unwrap_err();
        assert!(matches!(error.problem(), Problem::Gaps(_)), "{error}");
        assert_eq!(error.place().len(), "gappy".len(), "{text}");
    }
}

#[test]
fn where_joins_only_with_the_same_condition() {
    let values: Vec<f64> = (0..100).map(f64::from).collect();
    let same = run_on("where(x, x > 50) - where(y, x > 50)", &values, 16);
    assert_eq!(same, [0.0; 49]);
    let held = run_on("where(x, x > 50) - hold(where(y, y > 70))", &values, 16);
    assert!(held[..20].iter().all(|value| value.is_nan()) && held[20..].iter().all(|value| *value == 0.0), "{held:?}");
    let error = Plan::new("where(x, x > 50) - where(y, y > 50)", &catalogue()).unwrap_err();
    assert!(matches!(error.problem(), Problem::Clocks(_)), "{error}");
}
