//! Every operator against the plain reference, on random series with gaps, nulls and infinities.

use ascertain_streams::{Plan, PlanOptions, RELATIVE_ERROR, Recorded};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::reference::{Reference, aggregate, call};
use crate::{catalogue, run, run_on};

const AGGREGATES: [&str; 7] = ["min", "max", "sum", "mean", "count", "quantile 0.25", "quantile 0.9"];

/// Returns whole numbers from 0 to 99, with nulls and infinities. Whole numbers have exact sums.
fn random_series(rng: &mut Xoshiro256PlusPlus, has_infinities: bool) -> Vec<f64> {
    let length = rng.random_range(0..400);
    let one = |rng: &mut Xoshiro256PlusPlus| match rng.random_range(0..40) {
        0 => f64::NAN,
        1 if has_infinities => f64::INFINITY,
        2 if has_infinities => f64::NEG_INFINITY,
        _ => f64::from(rng.random_range(0..100)),
    };
    (0..length).map(|_| one(rng)).collect()
}

/// Returns a random expression with one value per observation in the long run.
fn random_expression(rng: &mut Xoshiro256PlusPlus, depth: u32) -> Reference {
    use Reference::{
        Add, Again, Drop, Every, Ewma, Hold, Lag, OverNumber, PlusNumber, Repeat, Running, Series, Subtract, Window,
    };
    if depth == 0 {
        return Series;
    }
    let kind = rng.random_range(0..14);
    let inner = Box::new(random_expression(rng, depth - 1));
    let n = rng.random_range(1..7);
    let aggregate = AGGREGATES[rng.random_range(0..AGGREGATES.len())];
    match kind {
        0 => Add(inner, Box::new(random_expression(rng, depth - 1))),
        1 | 2 => Subtract(inner, Box::new(random_expression(rng, depth - 1))),
        3 => PlusNumber(inner, f64::from(rng.random_range(0..9))),
        4 => OverNumber(inner, 4.0),
        5 => Hold(inner, Box::new(random_slower(rng, depth - 1))),
        6 => Again(inner, Box::new(random_expression(rng, depth - 1))),
        7 => Lag(inner, n),
        8 => Drop(inner, n),
        9 => Ewma(inner, 0.5),
        10 => Running(aggregate_of_running(aggregate), inner),
        11 => Window(aggregate, inner, rng.random_range(1..30), 1),
        12 => Repeat(Box::new(Every(inner, n)), n),
        _ => Every(Box::new(Repeat(inner, n)), n),
    }
}

/// Returns a random expression with any rate, which can be a product or a quotient. These are outermost, so that all
/// numbers before them are exact.
fn random_result(rng: &mut Xoshiro256PlusPlus, depth: u32) -> Reference {
    let first = Box::new(random_expression(rng, depth));
    match rng.random_range(0..8) {
        0 => Reference::Multiply(first, Box::new(random_expression(rng, depth))),
        1 => Reference::Divide(first, Box::new(random_expression(rng, depth))),
        _ => random_slower(rng, depth),
    }
}

/// A running quantile comes from the flat table, which is not exact.
fn aggregate_of_running(aggregate: &'static str) -> &'static str {
    if aggregate.starts_with("quantile") { "max" } else { aggregate }
}

/// Returns a random expression with any rate.
fn random_slower(rng: &mut Xoshiro256PlusPlus, depth: u32) -> Reference {
    use Reference::{Every, Repeat, Where, Window};
    let inner = Box::new(random_expression(rng, depth));
    let n = rng.random_range(1..9);
    let mut other = || Box::new(random_expression(rng, depth));
    let others = [other(), other()];
    match rng.random_range(0..7) {
        0 => Every(inner, n),
        5 => {
            let [first, second] = others;
            Reference::WhereLess(inner, first, second)
        }
        6 => Reference::WhereAgain(inner, others[0].clone(), 40.0),
        1 => Repeat(inner, n),
        2 => Where(Box::new(Reference::Lag(Box::new(Reference::Series), n)), 50.0),
        3 => Window(AGGREGATES[rng.random_range(0..AGGREGATES.len())], inner, rng.random_range(1..30), n),
        _ => *inner,
    }
}

fn is_same(found: f64, expected: f64) -> bool {
    found == expected
        || (found.is_nan() && expected.is_nan())
        || (found - expected).abs() <= 1e-9 * (1.0 + expected.abs())
}

#[test]
fn random_expressions_agree_with_the_reference() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut results = 0;
    for round in 0..6_000 {
        let depth = round % 4;
        let expression = random_result(&mut rng, depth);
        let series = random_series(&mut rng, true);
        let text = expression.text();
        let expected: Vec<f64> = expression.of(&series).into_iter().map(|(_, value)| value).collect();
        for block in [1, rng.random_range(2..40), 512] {
            let found = run_on(&text, &series, block);
            assert_eq!(found.len(), expected.len(), "{text} in blocks of {block} on {series:?}");
            for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(is_same(*found, *expected), "{text} in blocks of {block}: {found} {expected} at {index}");
            }
        }
        results += expected.len();
    }
    assert!(results > 200_000, "{results}");
}

#[test]
fn ranges_without_width_give_the_same_results() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    for round in 0..1_000 {
        let expression = random_result(&mut rng, round % 4);
        let series = random_series(&mut rng, false);
        let text = expression.text();
        let plan =
            Plan::with(&text, &catalogue(), PlanOptions { block: 16, has_ranges: true, is_endless: false }).unwrap();
        let (lows, highs) = run(&plan, &mut Recorded::ranges(&[[series.as_slice(); 2]; 4]));
        let expected = run_on(&text, &series, 16);
        for found in [lows, highs] {
            let is_alike = found.iter().zip(&expected).all(|(found, expected)| is_same(*found, *expected));
            assert!(is_alike && found.len() == expected.len(), "{text}: {found:?} {expected:?}");
        }
    }
}

#[test]
fn windows_of_time_hold_as_many_values_as_arrive() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    for round in 0..600 {
        let series = random_series(&mut rng, round % 3 == 0);
        let mut time = f64::from(rng.random_range(0..5_000));
        let mut next = || {
            // Most observations are close together, and some are after a gap of several windows.
            time += f64::from(if rng.random_range(0..20) == 0 {
                rng.random_range(0..9_000)
            } else {
                rng.random_range(0..90)
            });
            time
        };
        let times: Vec<f64> = series.iter().map(|_| next()).collect();
        let (panes, step) = (rng.random_range(1..6), rng.random_range(1..400));
        let name = AGGREGATES[rng.random_range(0..AGGREGATES.len())];
        // The quantiles of windows of time come from a flat table.
        let slack = if name.starts_with("quantile") { RELATIVE_ERROR * 99.0 } else { 0.0 };
        let text = call(name, &format!("window(x, {} ns, step {step} ns)", panes * step));
        let plan =
            Plan::with(&text, &catalogue(), PlanOptions { block: 7, has_ranges: false, is_endless: false }).unwrap();
        let (found, _) = run(&plan, &mut Recorded::new(&[&series[..]; 4]).at(&times));
        let pane_of = |time: f64| (time / f64::from(step)) as i64;
        let mut expected = Vec::new();
        if let (Some(first), Some(last)) = (times.first(), times.last()) {
            for end in pane_of(*first) + i64::from(panes)..=pane_of(*last) {
                let is_within = |time: f64| (end - i64::from(panes)..end).contains(&pane_of(time));
                let window = times.iter().zip(&series).filter(|(time, _)| is_within(**time));
                let window: Vec<(u64, f64)> = window.map(|(_, value)| (0, *value)).collect();
                if !window.is_empty() {
                    expected.push(aggregate(name, &window));
                }
            }
        }
        assert_eq!(found.len(), expected.len(), "{text}");
        let is_near = |a: f64, b: f64| is_same(a, b) || (a - b).abs() <= slack;
        assert!(found.iter().zip(&expected).all(|(a, b)| is_near(*a, *b)), "{text}: {found:?} {expected:?}");
    }
}

#[test]
fn quantiles_of_time_windows_come_from_merged_panes() {
    let values: Vec<f64> = (0..10_000).map(|index| f64::from(index * 7919 % 1000 + 1)).collect();
    // Observations are 1 ms apart, so a window has 1,000 of them.
    let found = run_on("quantile(.99, window(x, 1 s, step 100 ms))", &values, 100);
    assert_eq!(found.len(), 90);
    assert!(found.iter().all(|quantile| (quantile / 990.01 - 1.0).abs() < 4e-4), "{found:?}");
    let held = run_on("x - hold(max(window(x, 1 s)))", &values, 100);
    assert!(held[..1_000].iter().all(|value| value.is_nan()));
    assert!(held[1_000..].iter().zip(&values[1_000..]).all(|(found, value)| *found == value - 1000.0));
    let rate = run_on("per_second(count(window(x, 2 s, step 1 s)))", &values, 100);
    assert_eq!(rate, [1000.0; 8]);
}

#[test]
fn sliding_quantiles_of_long_windows_are_exact() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    for (length, step) in [(1_000, 1), (997, 100), (3_000, 2_999)] {
        // A drifting series, with ties and nulls, moves the cursor far between results.
        let one = |index: usize| match rng.random_range(0..20) {
            0 => f64::NAN,
            _ => {
                (index / 10) as f64 * if index % 3_000 < 1_500 { 1.0 } else { -1.0 }
                    + f64::from(rng.random_range(0..50))
            }
        };
        let series: Vec<f64> = (0..10_000).map(one).collect();
        for level in [0.0, 0.01, 0.5, 0.99, 1.0] {
            let found = run_on(&format!("quantile({level}, window(x, {length}, {step}))"), &series, 64);
            let starts = (0..=series.len() - length).step_by(step);
            assert_eq!(found.len(), starts.clone().count());
            for (found, start) in found.iter().zip(starts).step_by(if step == 1 { 37 } else { 1 }) {
                let window: Vec<(u64, f64)> = series[start..start + length].iter().map(|value| (0, *value)).collect();
                let expected = aggregate(&format!("quantile {level}"), &window);
                assert!(is_same(*found, expected), "{length} {step} {level} from {start}: {found} {expected}");
            }
        }
    }
}

#[test]
fn sliding_quantiles_of_random_numbers_are_exact() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    for length in [2, 3, 10, 62, 63, 64, 65, 200, 1_000] {
        // Mostly distinct numbers around one value, with infinities, and nulls that fill whole windows.
        let one = |index: usize| match rng.random_range(0..100) {
            _ if index % 2_500 > 1_300 => f64::NAN,
            0 => f64::INFINITY,
            1 => f64::NEG_INFINITY,
            2..5 => 0.5,
            _ => rng.random::<f64>(),
        };
        let series: Vec<f64> = (0..5_000).map(one).collect();
        for level in [0.0, 0.25, 0.5, 0.99, 1.0] {
            let found = run_on(&format!("quantile({level}, window(x, {length}, 1))"), &series, 256);
            assert_eq!(found.len(), series.len() - length + 1);
            for (start, found) in found.iter().enumerate().step_by(if length > 64 { 41 } else { 3 }) {
                let window: Vec<(u64, f64)> = series[start..start + length].iter().map(|value| (0, *value)).collect();
                let expected = aggregate(&format!("quantile {level}"), &window);
                assert!(is_same(*found, expected), "{length} {level} from {start}: {found} {expected}");
            }
        }
    }
}

#[test]
fn infinite_values_in_an_average() {
    let infinite = f64::INFINITY;
    assert_eq!(run_on("ewma(x, 1)", &[infinite, 5.0, f64::NAN, 7.0], 2), [infinite, 5.0, 5.0, 7.0]);
    let found = run_on("ewma(x, .5)", &[f64::NAN, 1.0, infinite, 2.0, -infinite, 3.0], 2);
    assert!(found[0].is_nan() && found[1..4] == [1.0, infinite, infinite], "{found:?}");
    assert!(found[4..].iter().all(|value| value.is_nan()), "∞ − ∞ is undefined, and stays in the average: {found:?}");
}

#[test]
fn conditions_treat_nulls_as_unknown() {
    let values = [1.0, f64::NAN, 3.0, 4.0];
    assert_eq!(run_on("where(x, x > 2 or x <= 2)", &values, 2), [1.0, 3.0, 4.0]);
    assert_eq!(run_on("where(x, not x > 2)", &values, 2), [1.0]);
    assert_eq!(run_on("where(y, x != 3 and y >= 1)", &values, 2), [1.0, 4.0]);
    let known = run_on("x == x or x > 0", &values, 2);
    assert!(known[1].is_nan() && known[0] == 1.0);
}

#[test]
fn quantities_are_converted_to_the_unit_of_the_result() {
    // 8 bytes in 8 ns are 10^9 B/s.
    assert_eq!(run_on("memory / time", &[8.0], 1), [1e9]);
    assert_eq!(run_on("memory / time * time", &[8.0], 1), [8.0]);
    assert_eq!(run_on("1 / time", &[8.0], 1), [1.25e8]);
    assert_eq!(run_on("1 / (1 / time)", &[8.0], 1), [8.0]);
    assert_eq!(run_on("time / 1 ms + memory / 1 kB", &[8.0], 1), [8.0 / 1e6 + 8.0 / 1e3]);
    assert_eq!(run_on("2 s - time", &[5e8], 1), [1.5e9]);
}
