//! Compares the memory that derived series announce with the memory that they need while they read a run. This is a
//! program of its own, because the allocator counts the allocations of all threads.

#![allow(clippy::print_stdout, reason = "the figures are for GOALS.md")]

mod simulated;

use std::path::Path;

use ascertain::series;
use ascertain_sys::allocations::{CountingAllocator, peak_bytes};
use ascertain_sys::interrupt::Stop;

use simulated::Kind;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::system();

const EXPRESSIONS: &[&str] = &[
    "time",
    "ewma(time, .01) / lag(ewma(time, .01), 1000)",
    "time / hold(quantile(.99, window(time, 1000)))",
    "time - mean(window(time, 1000, 1))",
    "quantile(.5, window(time, 70000, 7))",
    "quantile(.99, time)",
    "quantile(.9, window(time, 1 s, step 250 ms))",
    "lag(time, 200000)",
];

/// Returns the most bytes that are held while the run is planned, and while it is read beyond the announced memory. The
/// latter is the same for every expression, because only the library for Parquet needs it.
fn beyond_forecasts(run: &Path) -> [u64; 2] {
    let planning = peak_bytes(|| series::plan(run, EXPRESSIONS[0]).unwrap());
    let beyond = EXPRESSIONS.iter().map(|expression| {
        let planned = series::plan(run, expression).unwrap();
        let announced = planned.plan().memory().total() + planned.reading_bytes();
        let mut results = 0_u64;
        let peak = peak_bytes(|| {
            planned.compute(&Stop::default(), |some| {
                results += some.lows.len() as u64;
                true
            })
        });
        assert!(results > 0, "{expression} has no results");
        (peak.checked_sub(announced), expression)
    });
    let beyond: Vec<(Option<u64>, &&str)> = beyond.collect();
    assert!(beyond.iter().all(|(bytes, _)| *bytes == beyond[0].0), "forecasts are wrong: {beyond:?}");
    [planning, beyond[0].0.expect("the peak is below the forecast")]
}

/// Checks that the memory beyond the forecast is the same for runs with these numbers of trials.
fn check_flat(numbers: &[u64]) {
    let runs = tempfile::tempdir().unwrap();
    let all = numbers.iter().map(|trials| {
        let trials = *trials;
        let run = simulated::write(runs.path(), trials, Kind::Whole).unwrap();
        let beyond = beyond_forecasts(&run);
        std::fs::remove_dir_all(&run).unwrap();
        beyond
    });
    let all: Vec<[u64; 2]> = all.collect();
    for (bytes, first) in all.iter().flat_map(|each| each.iter().zip(&all[0])) {
        // The pages of a Parquet file differ by a few bytes.
        assert!(bytes.abs_diff(*first) < 4096, "{all:?} bytes");
        assert!(*bytes < series::MOST_PARQUET_BYTES, "{all:?} bytes");
    }
}

#[test]
fn memory_is_the_forecast_and_the_same_for_longer_runs() {
    // A row group has 262,144 rows, so these runs have two and three.
    check_flat(&[270_000, 530_000]);
}

#[test]
#[ignore = "takes minutes in a release build"]
fn memory_is_the_same_for_a_hundred_million_observations() {
    check_flat(&[1_000_000, 10_000_000, 100_000_000]);
}
