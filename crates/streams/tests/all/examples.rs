//! The examples of the README and of the conjecture's page.

use ascertain_streams::{Engine, Failure, Memory, Plan, PlanOptions, Problem, Ratio, Recorded, RunError};

use crate::{catalogue, run_on};

fn plan(text: &str) -> Plan {
    Plan::with(text, &catalogue(), PlanOptions { block: 1, has_ranges: false }).unwrap()
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
fn the_plan_prints_the_method_of_a_quantile() {
    let exact = plan("quantile(.99, window(time, 16384))").to_string();
    assert!(exact.contains("131,072 B  exact, by selection among 16,384 values"), "{exact}");
    let table = plan("quantile(.99, window(time, 16385))").to_string();
    assert!(table.contains("131,072 B  flat table, relative error 0.0367 %"), "{table}");
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
        let ways_out = [unbounded.hold.as_ref(), Some(&unbounded.again), unbounded.buffer.as_ref()];
        assert!(ways_out.iter().all(Option::is_some), "{text} has three ways out");
        for way_out in ways_out.into_iter().flatten() {
            Plan::new(way_out, &catalogue()).unwrap_or_else(|error| panic!("{way_out}: {error}"));
        }
    }
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
fn a_full_buffer_ends_the_run() {
    let values = [1.0; 1000];
    for block in [1, 64] {
        let options = PlanOptions { block, has_ranges: false };
        let plan = Plan::with("every(x, 2) - buffer(x, 100)", &catalogue(), options).unwrap();
        let mut engine = Engine::new(&plan).unwrap();
        match engine.run(&mut Recorded::new(&[&values[..]; 4]), |_| true) {
            Err(Failure::Run(RunError::BufferFull { values, results })) => {
                assert!(values == 100 && (100..=132).contains(&results), "{results}");
            }
            other => panic!("{other:?}"),
        }
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
        let plan = Plan::with(&text(100), &catalogue(), PlanOptions { block, has_ranges: false }).unwrap();
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
