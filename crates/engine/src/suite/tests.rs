//! Tests of suites: the three intervals, time limits, missing workloads, and builds.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::builds::{BuildLogs, group};
use super::compare::{Pairs, add_pairs};
use super::*;
use crate::values::Bounds;

const STRICT: f64 = 0.001;

pub fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

fn pairs(workload: &str, candidate: &[f64], baseline: &[f64]) -> Pairs {
    let values =
        |of: &[f64]| (0..).zip(of.iter().map(|value| Bounds::exact(*value)).collect::<Vec<_>>()).collect::<Vec<_>>();
    Pairs::new(workload, values(candidate).into_iter(), values(baseline).into_iter()).unwrap()
}

fn compared(all: &[Pairs]) -> SuiteComparison {
    let mut comparison = SuiteComparison::default();
    add_pairs(&mut comparison, all, STRICT);
    comparison
}

/// The answer must not depend on the length of a workload. Tools that add or subtract seconds fail here.
#[test]
fn the_mean_is_unchanged_when_a_workload_is_ten_times_as_long() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut values = |mean: f64| (0..12).map(|_| mean * (1.0 + 0.02 * normal(&mut rng))).collect::<Vec<f64>>();
    let data: Vec<(Vec<f64>, Vec<f64>)> = [1.3, 1.2, 0.9].map(|ratio| (values(1.0), values(ratio))).into();
    let suite = |scale: f64| {
        let names = ["a", "b", "c"];
        let all = data.iter().zip(names).map(|((candidate, baseline), name)| {
            let scale = if name == "b" { scale } else { 1.0 };
            let scaled = |of: &[f64]| of.iter().map(|value| value * scale).collect::<Vec<f64>>();
            pairs(name, &scaled(candidate), &scaled(baseline))
        });
        compared(&all.collect::<Vec<_>>()).mean.unwrap()
    };
    let (one, ten) = (suite(1.0), suite(10.0));
    let close = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 1e-12;
    assert!(close(one.ratio.value(), ten.ratio.value()));
    for (a, b) in
        [(one.this_suite.unwrap(), ten.this_suite.unwrap()), (one.like_these.unwrap(), ten.like_these.unwrap())]
    {
        assert!(close(a.low, b.low) && close(a.high, b.high));
    }
}

#[test]
fn ten_workloads_have_nine_degrees_of_freedom_and_two_have_no_interval() {
    let all = |count: usize| -> Vec<Pairs> {
        (0..count).map(|index| pairs(&index.to_string(), &[1.0, 1.01], &[1.1, 1.1 + 0.01 * index as f64])).collect()
    };
    let ten = compared(&all(10));
    assert_eq!(ten.mean.unwrap().like_these.unwrap().degrees, 9.0);
    assert_eq!(ten.without.len(), 10);
    let two = compared(&all(2)).mean.unwrap();
    assert!(two.like_these.is_none() && two.this_suite.is_some());
    assert!(compared(&[]).mean.is_none());
}

/// A process that was stopped has a time above the limit. The mean is then only known from one side.
#[test]
fn a_time_at_the_limit_makes_the_mean_an_interval() {
    let exact = pairs("a", &[1.0; 6], &[1.2, 1.21, 1.19, 1.2, 1.2, 1.22]);
    let of = |candidate: Bounds, baseline: Bounds| {
        let values = |bounds: Bounds| (0..6).map(move |trial| (trial, bounds));
        Pairs::new("b", values(candidate), values(baseline))
    };
    // The baseline was stopped, so the candidate is more than twice as fast.
    let slow = of(Bounds::exact(5.0), Bounds::above(10.0)).unwrap();
    let comparison = compared(&[exact, slow]);
    let mean = comparison.mean.unwrap();
    assert_eq!((mean.ratio.value(), mean.ratio.high), (None, None));
    assert!((mean.ratio.low.unwrap() - (1.2033_f64 * 2.0).sqrt()).abs() < 1e-3);
    let ends = mean.this_suite.unwrap();
    assert!(ends.high.is_none() && ends.low.unwrap() < mean.ratio.low.unwrap() && ends.contains(3.0));
    assert_eq!(comparison.workloads[1].censored, 6);
    // If both were stopped, the ratio can be anything, and the workload is left out on both sides.
    assert_eq!(of(Bounds::above(10.0), Bounds::above(10.0)).err(), Some((WorkloadLack::BothStopped, [true; 2])));
    // A failure has no value. It removes the workload on both sides, whatever the other side measured.
    assert_eq!(of(Bounds::exact(1.0), Bounds::UNKNOWN).err(), Some((WorkloadLack::Failed, [false, true])));
    assert_eq!(of(Bounds::CUT_OFF, Bounds::exact(1.0)).err(), Some((WorkloadLack::Failed, [true, false])));
}

#[test]
fn values_are_paired_by_their_trials() {
    let at = |trials: &[u64], scale: f64| {
        trials.iter().map(|t| (*t, Bounds::exact(scale * (*t + 1) as f64))).collect::<Vec<_>>()
    };
    let pairs = Pairs::new("a", at(&[0, 2, 3, 7], 1.0).into_iter(), at(&[1, 2, 7, 8], 3.0).into_iter()).unwrap();
    assert_eq!(pairs.trials, [2, 7]);
    assert!(pairs.ranges.iter().all(|[low, high]| low == high && (low - 3_f64.ln()).abs() < 1e-12));
    let apart = Pairs::new("a", at(&[0], 1.0).into_iter(), at(&[1], 1.0).into_iter());
    assert_eq!(apart.err(), Some((WorkloadLack::Failed, [true; 2])));
}

/// Simulates suites from a population of workloads, whose ratios differ, with the noise of busy machines: the trials of
/// a workload differ, and a trial shifts both arms. Returns how many of 2,000 intervals miss: for this suite, and for
/// workloads like these.
fn missed(seed: u64, workloads: usize, trials: usize) -> [usize; 2] {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut missed = [0; 2];
    for _ in 0..2000 {
        let truths: Vec<f64> = (0..workloads).map(|_| 0.2 + 0.15 * normal(&mut rng)).collect();
        let all = truths.iter().enumerate().map(|(index, truth)| {
            let of_trial = |rng: &mut Xoshiro256PlusPlus| {
                let load = (0.3 * normal(rng)).exp();
                let noise = 0.02 + 0.005 * index as f64;
                [(load * (noise * normal(rng)).exp()), load * (truth + noise * normal(rng)).exp()]
            };
            let values: Vec<[f64; 2]> = (0..trials).map(|_| of_trial(&mut rng)).collect();
            let side = |side: usize| values.iter().map(|pair| pair[side]).collect::<Vec<f64>>();
            pairs(&index.to_string(), &side(0), &side(1))
        });
        let mean = compared(&all.collect::<Vec<_>>()).mean.unwrap();
        let of_suite = (truths.iter().sum::<f64>() / workloads as f64).exp();
        missed[0] += usize::from(!mean.this_suite.unwrap().contains(of_suite));
        missed[1] += usize::from(!mean.like_these.unwrap().contains(0.2_f64.exp()));
    }
    missed
}

/// Of 2,000 intervals at 95 %, 100 should miss. The limits are five standard deviations.
#[test]
fn intervals_of_suites_and_of_workloads_miss_one_time_in_twenty() {
    for (workloads, trials) in [(10, 12), (3, 5)] {
        let missed = missed(5, workloads, trials);
        assert!(missed.iter().all(|missed| (52..=148).contains(missed)), "{workloads} {trials}: {missed:?}");
    }
}

/// A build whose trials have these means; without trials, the first arm.
fn build(name: &str, trials: Option<&[f64]>) -> BuildLogs {
    let mean = trials.map_or(0.0, |trials| trials.iter().sum::<f64>() / trials.len() as f64);
    let trials = trials.map(|trials| (0..).zip(trials.iter().copied()).collect());
    BuildLogs { name: name.into(), mean, trials, workloads: vec![("calls".into(), mean), ("regex".into(), 2.0 * mean)] }
}

/// A build whose trials differ little.
fn steady(name: &str, mean: f64) -> BuildLogs {
    let trials: Vec<f64> = (0..20).map(|trial| mean + if trial % 2 == 0 { 0.004 } else { -0.004 }).collect();
    build(name, Some(&trials))
}

/// Builds of a version differ by 3 %, and each comparison has noise of 1 %, part of which all of them share.
#[test]
fn intervals_of_builds_miss_at_most_one_time_in_twenty() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut missed = 0;
    for _ in 0..2000 {
        let shared: Vec<f64> = (0..20).map(|_| 0.032 * normal(&mut rng)).collect();
        let of_build = |index: usize| {
            let mean = 0.2 + 0.03 * normal(&mut rng);
            let trials: Vec<f64> = shared.iter().map(|shared| mean + shared + 0.032 * normal(&mut rng)).collect();
            build(&index.to_string(), Some(&trials))
        };
        let builds: Vec<BuildLogs> = (0..4).map(of_build).collect();
        let base = [build("base", None)];
        let group = group(("3.14", &builds), Vec::new(), Some(("3.13", &base)));
        missed += usize::from(!group.like_these.unwrap().contains(0.2_f64.exp()));
    }
    assert!((52..=148).contains(&missed), "{missed}");
}

#[test]
fn builds_of_one_version_show_how_much_a_build_weighs() {
    let builds = [build("a", None), steady("b", 0.05), steady("c", -0.03)];
    let alone = group(("3.11", &builds), vec!["copy".into()], None);
    assert_eq!((alone.ratio, alone.like_these), (None, None));
    assert!((alone.range.unwrap() - 0.08_f64.exp()).abs() < 1e-12);
    let (workload, factor) = alone.most.unwrap();
    assert_eq!(workload, "regex");
    assert!((factor - 0.16_f64.exp()).abs() < 1e-12);
    assert!(alone.two_builds.unwrap() > 0.08_f64.exp());
    assert_eq!(alone.copies, ["copy"]);
    // Two builds are no sample.
    let two = group(("3.11", &builds[..2]), Vec::new(), Some(("3.10", &builds[2..])));
    assert_eq!((two.like_these, two.two_builds), (None, None));
    assert!((two.ratio.unwrap() - 0.055_f64.exp()).abs() < 1e-12);
    // A sample on the side of the baseline alone is enough.
    let other = [steady("x", 0.3)];
    let ends = group(("3.12", &other), Vec::new(), Some(("3.11", &builds))).like_these.unwrap();
    assert!(ends.contains(0.2933_f64.exp()) && !ends.contains(1.0));
}

#[test]
fn unpaired_samples_say_so() {
    let samples = |workload: &str, candidate: &[f64], baseline: &[f64]| Samples {
        workload: workload.into(),
        candidate: candidate.into(),
        baseline: baseline.into(),
    };
    let all = [samples("a", &[1.0, 1.1], &[2.0, 2.1, 2.2]), samples("b", &[0.5], &[0.5]), samples("c", &[], &[1.0])];
    let compared = compare_samples("new", "old", &all);
    assert!(!compared.is_paired);
    assert_eq!(compared.left_out[0].arms, ["new"]);
    // A single process has no interval, so neither has this suite.
    assert!(compared.workloads[0].interval.is_some() && compared.workloads[1].interval.is_none());
    assert!(compared.mean.unwrap().this_suite.is_none());
}

/// In files of pyperf, one side often has few processes. Of 2,000 pairs of files without a difference, at most 100
/// intervals should miss, and five standard deviations more.
#[test]
fn intervals_of_few_processes_are_not_too_narrow() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    for (workloads, processes) in
        [(1, [20, 2]), (1, [20, 3]), (3, [20, 2]), (10, [20, 2]), (10, [2, 2]), (10, [20, 20])]
    {
        let missed = (0..2000).filter(|_| {
            let mut values = |count: usize| (0..count).map(|_| (0.03 * normal(&mut rng)).exp()).collect::<Vec<f64>>();
            let samples = (0..workloads).map(|index: usize| Samples {
                workload: index.to_string(),
                candidate: values(processes[0]),
                baseline: values(processes[1]),
            });
            let compared = compare_samples("new", "old", &samples.collect::<Vec<_>>());
            !compared.mean.unwrap().this_suite.unwrap().contains(1.0)
        });
        let missed = missed.count();
        assert!(missed <= 148, "{workloads} {processes:?}: {missed}");
    }
}

/// If ten workloads do not differ, intervals at 95 % would often show a difference in at least one of them. The ten
/// verdicts together are wrong in at most 5 of 100 files.
#[test]
fn verdicts_on_unpaired_workloads_are_right_together() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let wrong = (0..400).filter(|_| {
        let mut values = || (0..10).map(|_| (0.03 * normal(&mut rng)).exp()).collect::<Vec<f64>>();
        let samples =
            (0..10).map(|index| Samples { workload: index.to_string(), candidate: values(), baseline: values() });
        let compared = compare_samples("new", "old", &samples.collect::<Vec<_>>());
        compared.workloads.iter().any(|of| of.decision != Some(Decision::Undecided))
    });
    // 20 of 400 are expected at most; the limit is five standard deviations.
    let wrong = wrong.count();
    assert!(wrong <= 41, "{wrong}");
}

#[test]
fn a_level_may_have_a_name() {
    assert_eq!(split_name("old=/opt/a/bin/python3"), (Some("old"), "/opt/a/bin/python3"));
    assert_eq!(split_name("3.14=python3"), (Some("3.14"), "python3"));
    assert_eq!(split_name("/opt/a=b/python3"), (None, "/opt/a=b/python3"));
    assert_eq!(split_name("./a=b"), (None, "./a=b"));
    assert_eq!(split_name("python3.11"), (None, "python3.11"));
    assert_eq!(split_name("=x"), (None, "=x"));
}
