//! Values that were cut off: results are ranges that contain every possible result.

use ascertain_streams::{Plan, PlanOptions, Recorded};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{catalogue, run, run_on};

const EXPRESSIONS: &[&str] = &[
    "x + lag(y, 1)",
    "x - lag(x, 2)",
    "x * (y - 5)",
    "x / (y + 1)",
    "(x - 3) / y",
    "1 / x",
    "-x + 2",
    "ewma(x, .5)",
    "mean(window(x, 5, 1)) - x",
    "sum(window(x, 4))",
    "min(window(x, 6, 2))",
    "max(x)",
    "count(window(x, 6, 2))",
    "quantile(.5, window(x, 9))",
    "quantile(.9, window(x, 9, 1)) / hold(x)",
    "repeat(every(x, 3), 3) - x",
];

#[test]
fn every_completion_of_censored_values_is_in_the_range() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    for text in EXPRESSIONS {
        let plan =
            Plan::with(text, &catalogue(), PlanOptions { block: 8, has_ranges: true, is_endless: false }).unwrap();
        for _ in 0..40 {
            let lows: Vec<f64> = (0..60).map(|_| f64::from(rng.random_range(0..20))).collect();
            let is_cut: Vec<bool> = lows.iter().map(|_| rng.random_range(0..6) == 0).collect();
            let highs: Vec<f64> =
                lows.iter().zip(&is_cut).map(|(low, cut)| if *cut { f64::INFINITY } else { *low }).collect();
            let (found_lows, found_highs) = run(&plan, &mut Recorded::ranges(&[[lows.as_slice(), &highs]; 4]));
            for _ in 0..5 {
                let value =
                    |(low, cut): (&f64, &bool)| if *cut { low + f64::from(rng.random_range(1..50)) } else { *low };
                let completed: Vec<f64> = lows.iter().zip(&is_cut).map(value).collect();
                let results = run_on(text, &completed, 8);
                assert_eq!(results.len(), found_lows.len());
                for (index, value) in results.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
                    let (low, high) = (found_lows[index], found_highs[index]);
                    let slack = if value.is_finite() { 1e-9 * (1.0 + value.abs()) } else { 0.0 };
                    assert!(
                        low - slack <= *value && *value <= high + slack,
                        "{text}: {value} is not in {low} to {high}"
                    );
                }
            }
        }
    }
}

#[test]
fn ends_of_ranges_are_attained_by_monotone_expressions() {
    let lows: Vec<f64> = (0..60).map(|index| f64::from(index * 7 % 20)).collect();
    let highs: Vec<f64> =
        lows.iter().enumerate().map(|(index, low)| if index % 6 == 2 { f64::INFINITY } else { *low }).collect();
    let increasing = [
        "x + lag(y, 1)",
        "2 * x",
        "ewma(x, .5)",
        "mean(window(x, 5, 1))",
        "sum(window(x, 4))",
        "min(window(x, 6, 2))",
        "max(x)",
        "quantile(.5, window(x, 9))",
        "quantile(.9, window(x, 9, 1)) + hold(x)",
        "repeat(every(x, 3), 3) + x",
    ];
    let decreasing = ["-x + 2", "1 / (x + 1)", "3 - x"];
    let all = increasing.map(|text| (text, &lows, &highs)).into_iter();
    for (text, of_low, of_high) in all.chain(decreasing.map(|text| (text, &highs, &lows))) {
        let plan =
            Plan::with(text, &catalogue(), PlanOptions { block: 8, has_ranges: true, is_endless: false }).unwrap();
        let (found_lows, found_highs) = run(&plan, &mut Recorded::ranges(&[[lows.as_slice(), &highs]; 4]));
        for (found, values) in [(found_lows, of_low), (found_highs, of_high)] {
            assert_eq!(format!("{found:?}"), format!("{:?}", run_on(text, values, 8)), "{text}");
        }
    }
}

#[test]
fn a_quantile_with_censored_values_is_a_range() {
    let lows = [1.0, 2.0, 3.0, 4.0, 5.0];
    let highs = [1.0, f64::INFINITY, 3.0, 4.0, f64::INFINITY];
    let of = |text: &str| {
        let plan =
            Plan::with(text, &catalogue(), PlanOptions { block: 2, has_ranges: true, is_endless: false }).unwrap();
        run(&plan, &mut Recorded::ranges(&[[&lows[..], &highs[..]]; 4]))
    };
    assert_eq!(of("quantile(.5, window(x, 5))"), (vec![3.0], vec![4.0]));
    assert_eq!(of("quantile(.75, window(x, 5))"), (vec![4.0], vec![f64::INFINITY]));
    assert_eq!(of("quantile(0, window(x, 5))"), (vec![1.0], vec![1.0]));
}

#[test]
fn a_condition_that_a_censored_value_leaves_open_selects_nothing() {
    let (lows, highs) = ([1.0, 2.0, 6.0], [1.0, f64::INFINITY, f64::INFINITY]);
    let plan =
        Plan::with("where(x, x > 5)", &catalogue(), PlanOptions { block: 2, has_ranges: true, is_endless: false })
            .unwrap();
    let mut engine = ascertain_streams::Engine::new(&plan).unwrap();
    let mut found = Vec::new();
    let mut evidence = Recorded::ranges(&[[&lows[..], &highs[..]]; 4]);
    engine
        .run(&mut evidence, |results| {
            found.extend_from_slice(results.lows);
            true
        })
        .unwrap();
    assert_eq!((found, engine.undecided()), (vec![6.0], 1));
}
