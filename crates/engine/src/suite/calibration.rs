//! Calibration of the three intervals by simulation from recorded samples. Each simulation draws from the samples as
//! from a population, whose true mean is therefore known. Nothing is timed, and all seeds are fixed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::SuiteComparison;
use super::builds::{BuildLogs, group};
use super::compare::{Pairs, add_pairs};
use super::observed::build_logs;
use crate::values::Bounds;

/// The folder of recorded samples, in the folder of this package. A file has Python 3.10 and other runtimes, recorded by
/// `ascertain run runtimes` and converted by `crates/experiments/host/check/record.py`. A row has a runtime, a workload,
/// and its times in microseconds.
const SAMPLES: &str = "tests/golden/runtimes";
/// The file with ten workloads and four builds of Python 3.11.
const BUILDS: &str = "builds.csv";
const BASELINE: &str = "3.10";
const DRAWS: usize = 2000;
/// The numbers of intervals that may miss, of 2,000 at 95 %: 100, and five standard deviations in both directions.
const MAY_MISS: std::ops::RangeInclusive<usize> = 52..=148;

/// The times of each workload, by runtime.
type Times = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

/// Reads the times of a file of recorded samples.
fn read(name: &str) -> Times {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLES).join(name);
    let mut all = Times::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let cells: Vec<&str> = line.split(',').collect();
        let times = cells[2..].iter().map(|cell| cell.parse().unwrap()).collect();
        all.entry(cells[0].into()).or_default().insert(cells[1].into(), times);
    }
    all
}

/// Returns all files of recorded samples: their names and their times.
fn samples() -> Vec<(String, Times)> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLES)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.contains(&BUILDS.to_string()));
    names.into_iter().map(|name| (name.clone(), read(&name))).collect()
}

/// Draws this number of indices below `count`, with replacement.
fn draw(rng: &mut Xoshiro256PlusPlus, number: usize, count: usize) -> Vec<usize> {
    (0..number).map(|_| rng.random_range(0..count)).collect()
}

/// Pairs the times of these trials.
fn pairs(name: &str, candidate: &[f64], baseline: &[f64], trials: &[usize]) -> Pairs {
    let of = |times: &[f64]| (0..).zip(trials.iter().map(|trial| Bounds::exact(times[*trial])).collect::<Vec<_>>());
    Pairs::new(name, of(candidate), of(baseline)).unwrap()
}

fn log_ratio(candidate: &[f64], baseline: &[f64]) -> f64 {
    let logs = candidate.iter().zip(baseline).map(|(candidate, baseline)| (baseline / candidate).ln());
    logs.sum::<f64>() / candidate.len() as f64
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn compared(all: &[Pairs]) -> SuiteComparison {
    let mut comparison = SuiteComparison::default();
    add_pairs(&mut comparison, all, 0.001);
    comparison
}

/// A simulated run draws whole trials, so the workloads of a trial depend on one another as they did when recorded.
#[test]
fn intervals_of_this_suite_are_right_95_times_in_100() {
    for (file, times) in samples() {
        let baseline = &times[BASELINE];
        for (index, (name, candidate)) in times.iter().filter(|(name, _)| *name != BASELINE).enumerate() {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(index as u64);
            let truth = mean(candidate.iter().map(|(workload, times)| log_ratio(times, &baseline[workload]))).exp();
            let missed = (0..DRAWS).filter(|_| {
                let trials = draw(&mut rng, 12, baseline.values().next().unwrap().len());
                let all =
                    candidate.iter().map(|(workload, times)| pairs(workload, times, &baseline[workload], &trials));
                let found = compared(&all.collect::<Vec<_>>()).mean.unwrap();
                !found.this_suite.unwrap().contains(truth)
            });
            let missed = missed.count();
            assert!(MAY_MISS.contains(&missed), "{file}, {name}: {missed}");
        }
    }
}

/// A simulated run draws ten workloads of many, and five of the recorded trials. Each workload in each build counts as a
/// workload, so the file of builds has forty.
#[test]
fn intervals_of_workloads_like_these_are_right_95_times_in_100() {
    for (file, times) in samples() {
        let baseline = &times[BASELINE];
        let workloads: Vec<(&Vec<f64>, &Vec<f64>)> = times
            .iter()
            .filter(|(name, _)| *name != BASELINE)
            .flat_map(|(_, of_build)| of_build.iter().map(|(workload, times)| (times, &baseline[workload])))
            .collect();
        assert!(workloads.len() >= 40, "{file}: {} workloads", workloads.len());
        let truth = mean(workloads.iter().map(|(candidate, baseline)| log_ratio(candidate, baseline))).exp();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let missed = (0..DRAWS).filter(|_| {
            let drawn = draw(&mut rng, 10, workloads.len());
            let trials = draw(&mut rng, 5, workloads[0].0.len());
            let all = drawn.into_iter().enumerate().map(|(index, workload)| {
                let (candidate, baseline) = workloads[workload];
                pairs(&index.to_string(), candidate, baseline, &trials)
            });
            let found = compared(&all.collect::<Vec<_>>()).mean.unwrap().like_these.unwrap();
            assert_eq!(found.degrees, 9.0);
            !found.contains(truth)
        });
        let missed = missed.count();
        assert!(MAY_MISS.contains(&missed), "{file}: {missed}");
    }
}

/// A simulated build takes the times of each workload from one of the recorded builds. All builds of a simulated run
/// are compared with the same trials of the baseline.
#[test]
fn intervals_of_builds_like_these_are_right_95_times_in_100() {
    let times = read(BUILDS);
    let baseline = &times[BASELINE];
    let recorded: Vec<_> = times.iter().filter(|(name, _)| *name != BASELINE).map(|(_, of_build)| of_build).collect();
    let truth = mean(
        recorded
            .iter()
            .map(|of_build| mean(of_build.iter().map(|(workload, times)| log_ratio(times, &baseline[workload])))),
    );
    for (seed, count) in [(4, 3), (5, 6)] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let missed = (0..DRAWS).filter(|_| {
            let trials = draw(&mut rng, 12, baseline.values().next().unwrap().len());
            let mut build = |name: usize| {
                let all = baseline.iter().map(|(workload, base)| {
                    let of_build = recorded[rng.random_range(0..recorded.len())];
                    pairs(workload, &of_build[workload], base, &trials)
                });
                build_logs(&name.to_string(), &all.collect::<Vec<_>>()).unwrap()
            };
            let builds: Vec<BuildLogs> = (0..count).map(&mut build).collect();
            let base = [BuildLogs { name: "base".into(), mean: 0.0, trials: None, workloads: Vec::new() }];
            let found = group(("3.11", &builds), Vec::new(), Some((BASELINE, &base)));
            !found.like_these.unwrap().contains(truth.exp())
        });
        let missed = missed.count();
        assert!(MAY_MISS.contains(&missed), "{count} builds: {missed}");
    }
}
