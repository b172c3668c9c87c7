//! Calibration of the three intervals by simulation from recorded samples. Each simulation draws from the samples as
//! from a population, whose true mean is therefore known. A simulated run stops as a real one does: when the verdicts
//! on all its means are reached, or after a number of trials. Nothing is timed, and all seeds are fixed.

#![expect(clippy::print_stdout, reason = "METHODOLOGY.md has the figures")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use ascertain_stats::OrderJudge;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::builds::{BuildLogs, group};
use super::compare::{Pairs, add_pairs};
use super::observed::build_logs;
use super::tests::normal;
use super::{ERROR, SuiteComparison};
use crate::values::Bounds;

/// The folder of recorded samples, in the folder of this package. A file has Python 3.10 and other runtimes, recorded
/// by `ascertain run runtimes` and converted by `crates/experiments/host/check/record.py`. A row has a runtime, a
/// workload, and its times in microseconds.
const SAMPLES: &str = "tests/golden/runtimes";
/// The file with ten workloads and four builds of Python 3.11.
const BUILDS: &str = "builds.csv";
const BASELINE: &str = "3.10";
const DRAWS: usize = 2000;
/// The number of simulated runs of each pair of runtimes in a file.
const DRAWS_OF_PAIR: usize = 500;
/// The error of each verdict, which is the default error of a run.
const VERDICT_ERROR: f64 = 0.001;
/// The number of trials after which a run stops without a verdict. A run of ten workloads has about as many in its
/// time.
const MOST_TRIALS: usize = 40;

/// The times of each workload in a runtime.
type OfRuntime = BTreeMap<String, Vec<f64>>;
/// The times of each workload, by runtime.
type Times = BTreeMap<String, OfRuntime>;

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

/// Returns the numbers of intervals at 95 % that may miss: the expected number, and five standard deviations in both
/// directions.
fn may_miss(intervals: usize) -> RangeInclusive<usize> {
    let expected = ERROR * intervals as f64;
    let deviation = (expected * (1.0 - ERROR)).sqrt();
    (expected - 5.0 * deviation).max(0.0).ceil() as usize..=(expected + 5.0 * deviation).floor() as usize
}

/// Draws this number of indices below `count`, with replacement.
fn draw(rng: &mut Xoshiro256PlusPlus, number: usize, count: usize) -> Vec<usize> {
    (0..number).map(|_| rng.random_range(0..count)).collect()
}

/// Draws trials with replacement, until the verdict on each mean is reached. `means` has the logarithm of the mean
/// ratio of each trial, for each comparison of the run.
fn draw_until_decided(rng: &mut Xoshiro256PlusPlus, means: &[Vec<f64>]) -> Vec<usize> {
    let judge = || OrderJudge::new(VERDICT_ERROR / 2.0, VERDICT_ERROR / 2.0).unwrap();
    let mut judges: Vec<OrderJudge> = means.iter().map(|_| judge()).collect();
    let mut trials = Vec::new();
    while trials.len() < MOST_TRIALS && judges.iter().any(|judge| judge.verdict().is_none()) {
        let trial = rng.random_range(0..means[0].len());
        trials.push(trial);
        judges.iter_mut().zip(means).for_each(|(judge, means)| _ = judge.observe(means[trial]));
    }
    trials
}

/// Returns the logarithm of the mean ratio of each trial.
fn means_of_trials(workloads: &[(&Vec<f64>, &Vec<f64>)]) -> Vec<f64> {
    let of_trial =
        |trial: usize| mean(workloads.iter().map(|(candidate, baseline)| (baseline[trial] / candidate[trial]).ln()));
    (0..workloads[0].0.len()).map(of_trial).collect()
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
/// Each runtime is compared with each other one, so some pairs differ much, and others little.
#[test]
fn intervals_of_this_suite_are_right_95_times_in_100() {
    for (file, times) in samples() {
        let runtimes: Vec<&String> = times.keys().collect();
        let mut of_all = 0;
        let pairs_of = (0..runtimes.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        for (seed, (candidate, baseline)) in pairs_of.enumerate() {
            let (candidate, baseline) = (runtimes[candidate], runtimes[baseline]);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed as u64);
            let workloads: Vec<(&Vec<f64>, &Vec<f64>)> =
                times[candidate].iter().map(|(workload, times_of)| (times_of, &times[baseline][workload])).collect();
            let means = [means_of_trials(&workloads)];
            let truth = mean(means[0].iter().copied()).exp();
            let missed = (0..DRAWS_OF_PAIR).filter(|_| {
                let trials = draw_until_decided(&mut rng, &means);
                let all = workloads.iter().enumerate();
                let all =
                    all.map(|(index, (candidate, baseline))| pairs(&index.to_string(), candidate, baseline, &trials));
                let found = compared(&all.collect::<Vec<_>>()).mean.unwrap();
                !found.this_suite.unwrap().contains(truth)
            });
            let missed = missed.count();
            assert!(missed <= *may_miss(DRAWS_OF_PAIR).end(), "{file}, {candidate} and {baseline}: {missed}");
            of_all += missed;
        }
        println!("{file}, this suite: {of_all}");
        let all_draws = DRAWS_OF_PAIR * runtimes.len() * (runtimes.len() - 1) / 2;
        assert!(may_miss(all_draws).contains(&of_all), "{file}: {of_all} of {all_draws}");
    }
}

/// A simulated run draws ten workloads of many, and the recorded trials. Each workload in each build counts as a
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
            let drawn: Vec<(&Vec<f64>, &Vec<f64>)> =
                draw(&mut rng, 10, workloads.len()).into_iter().map(|workload| workloads[workload]).collect();
            let trials = draw_until_decided(&mut rng, &[means_of_trials(&drawn)]);
            let all = drawn.into_iter().enumerate();
            let all = all.map(|(index, (candidate, baseline))| pairs(&index.to_string(), candidate, baseline, &trials));
            let found = compared(&all.collect::<Vec<_>>()).mean.unwrap().like_these.unwrap();
            assert_eq!(found.degrees, 9.0);
            !found.contains(truth)
        });
        let missed = missed.count();
        println!("{file}, workloads like these: {missed}");
        assert!(may_miss(DRAWS).contains(&missed), "{file}: {missed}");
    }
}

/// A simulated build has effects on all workloads together. They are normal, and have the variances and covariances of
/// the recorded builds. Its noise is that of one of these builds, in all workloads of a trial together. All builds of a
/// simulated run are compared with the same trials of the baseline.
#[test]
fn intervals_of_builds_like_these_are_right_95_times_in_100() {
    let times = read(BUILDS);
    let baseline = &times[BASELINE];
    let recorded: Vec<_> = times.iter().filter(|(name, _)| *name != BASELINE).map(|(_, of_build)| of_build).collect();
    let workloads: Vec<&String> = baseline.keys().collect();
    // For each recorded build and workload, the mean of the logarithms of its ratios.
    let of_build = |of: &&OfRuntime| -> Vec<f64> {
        workloads.iter().map(|workload| log_ratio(&of[*workload], &baseline[*workload])).collect()
    };
    let effects: Vec<Vec<f64>> = recorded.iter().map(of_build).collect();
    let centre: Vec<f64> = (0..workloads.len()).map(|workload| mean(effects.iter().map(|of| of[workload]))).collect();
    let truth = mean(centre.iter().copied());
    for (seed, count) in [(4, 3), (5, 6)] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let missed = (0..DRAWS).filter(|_| {
            let simulated: Vec<Vec<Vec<f64>>> =
                (0..count).map(|_| simulated_build(&mut rng, (&recorded, baseline), (&effects, &centre))).collect();
            let with_base = |times: &Vec<Vec<f64>>| {
                let both: Vec<(&Vec<f64>, &Vec<f64>)> = times.iter().zip(baseline.values()).collect();
                means_of_trials(&both)
            };
            let trials = draw_until_decided(&mut rng, &simulated.iter().map(with_base).collect::<Vec<_>>());
            let build = |(name, times): (usize, &Vec<Vec<f64>>)| {
                let all = times.iter().zip(baseline);
                let all = all.map(|(times, (workload, base))| pairs(workload, times, base, &trials));
                build_logs(&name.to_string(), &all.collect::<Vec<_>>()).unwrap()
            };
            let builds: Vec<BuildLogs> = simulated.iter().enumerate().map(build).collect();
            let base = [BuildLogs { name: "base".into(), mean: 0.0, trials: None, workloads: Vec::new() }];
            let found = group(("3.11", &builds), Vec::new(), Some((BASELINE, &base)));
            !found.like_these.unwrap().contains(truth.exp())
        });
        let missed = missed.count();
        println!("{count} builds: {missed}");
        assert!(may_miss(DRAWS).contains(&missed), "{count} builds: {missed}");
    }
}

/// Returns the times of a simulated build, for each workload in the order of the baseline.
fn simulated_build(
    rng: &mut Xoshiro256PlusPlus,
    (recorded, baseline): (&[&OfRuntime], &OfRuntime),
    (effects, centre): (&[Vec<f64>], &[f64]),
) -> Vec<Vec<f64>> {
    let noisy = rng.random_range(0..recorded.len());
    // A sum of the deviations with these weights has their covariance.
    let weights: Vec<f64> = effects.iter().map(|_| normal(rng) / ((effects.len() - 1) as f64).sqrt()).collect();
    let of_workload = |(index, (workload, base)): (usize, (&String, &Vec<f64>))| {
        let effect: f64 = weights.iter().zip(effects).map(|(weight, of)| weight * (of[index] - centre[index])).sum();
        // The ratio of the recorded build moves from its own mean to that of the simulated build.
        let shift = centre[index] + effect - effects[noisy][index];
        assert_eq!(base.len(), recorded[noisy][workload].len());
        recorded[noisy][workload].iter().map(|time| time / shift.exp()).collect()
    };
    baseline.iter().enumerate().map(of_workload).collect()
}
