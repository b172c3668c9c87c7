//! Suites of whole runs in which some arms lack a workload: means of builds, verdicts on means, and files of pyperf.

use std::time::Duration;

use ascertain_engine::claim::{Bound, Claim, Effect, Hypothesis, Judging, Test};
use ascertain_engine::experiment::{
    Accepts, Arm, ArmId, Experiment, Factor, Metric, Plot, Point, Sample, Samples, Session, Setup, Spec, Status,
    TargetError, Trial, Variant,
};
use ascertain_engine::finding::Threat;
use ascertain_engine::outcome::Decision;
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::pyperf::PyperfSuite;
use ascertain_engine::recorded::read;
use ascertain_engine::result::RunResult;
use ascertain_engine::run::{Recording, Silent};
use ascertain_engine::suite::{Suite, WorkloadLack};

/// Returns the time of a workload in a runtime and a trial, with its status. `Lost` stands for a failed process.
type Times = fn(runtime: &str, workload: &str, trial: u64) -> (f64, Status);

const WORKLOADS: [&str; 4] = ["calls", "control", "regex", "sort"];

struct Runtimes {
    spec: Spec,
    times: Times,
}

impl Runtimes {
    fn new(times: Times) -> Runtimes {
        let time = Metric { is_by_key: true, ..Metric::time("time", "") };
        let forest = Plot::Forest {
            metric: "time".into(),
            mean: "suite".into(),
            factor: "runtime".into(),
            drift: "drift".into(),
            control: "control".into(),
        };
        let spec = Spec {
            id: "runtimes".into(),
            variants: vec![Variant { name: "python".into(), about: String::new() }],
            factors: vec![
                Factor::new("runtime", "", "found", Accepts::Anything),
                Factor::new("phase", "", "warm", Accepts::Anything),
            ],
            metrics: vec![Metric::time("suite", ""), time],
            plots: vec![forest],
            ..Spec::default()
        };
        Runtimes { spec, times }
    }

    /// Measures the runtimes in twenty trials, and records them in the folder.
    fn measure(&self, runtimes: &[&str], folder: &tempfile::TempDir) -> RunResult {
        // A name may have a phase, as in `base@start`.
        let arm = |name: &&str| {
            let (runtime, phase) = name.split_once('@').unwrap_or((name, "warm"));
            Arm { variant: "python".into(), point: Point::default().with("runtime", runtime).with("phase", phase) }
        };
        let arms: Vec<Arm> = runtimes.iter().map(arm).collect();
        let claim = |candidate: &Arm| {
            let phase = candidate.point.get("phase");
            let baseline =
                arms.iter().find(|arm| arm.point.get("phase") == phase).filter(|first| *first != candidate)?;
            let test = Test::Versus {
                measure: (&self.spec.metrics[0]).into(),
                candidate: candidate.clone(),
                baseline: baseline.clone(),
                scale: Effect::Ratio,
                bound: Bound::AtLeast(1.0),
            };
            let id = format!("{}-{}", candidate.point.get("runtime").unwrap(), phase.unwrap());
            let claim = Claim::in_half("runtimes", id.clone(), id, test);
            let asked = Hypothesis { judging: Judging::Order, ..claim.asked };
            Some(Claim { restated: String::new(), asked, ..claim })
        };
        let config = Config {
            exact_trials: Some(20),
            table_trials: Some(20),
            max_time: Duration::from_secs(3600),
            seed: 7,
            ..Config::default()
        };
        let tables = vec![Table { experiment: "runtimes".into(), arms: arms.clone() }];
        let plan = Plan { claims: arms.iter().filter_map(claim).collect(), tables, config, ..Plan::default() };
        let recording = Recording::New {
            runs: folder.path().into(),
            command_line: vec!["test".into()],
            render: Default::default(),
            label: None,
            revision: None,
            known: None,
        };
        crate::common::run(&plan, &[self], recording, &Default::default(), &mut Silent).unwrap()
    }
}

impl Experiment for Runtimes {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let names = arms.iter().map(|arm| arm.point.get("runtime").unwrap().to_string()).collect();
        Ok(Box::new(Playing { names, times: self.times }))
    }
}

struct Playing {
    names: Vec<String>,
    times: Times,
}

impl Session for Playing {
    fn verify(&mut self, _: ArmId) -> Result<(), TargetError> {
        Ok(())
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        Ok(Point::default().with("compiler", &*self.names[arm]))
    }

    /// Adds a time for each workload, and the mean over the workloads that all runtimes complete.
    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let time = |name: &String, workload: &str| (self.times)(name, workload, trial.number);
        let is_common = |workload: &&&str| {
            self.names.iter().all(|name| time(name, workload).1 == Status::Ok) && **workload != "control"
        };
        let common: Vec<f64> =
            WORKLOADS.iter().filter(is_common).map(|workload| time(&self.names[arm], workload).0.ln()).collect();
        out.push(0, (common.iter().sum::<f64>() / common.len() as f64).exp());
        for workload in WORKLOADS {
            let (value, status) = time(&self.names[arm], workload);
            out.push_sample(Sample { metric: 1, key: workload.into(), offset_ns: 0, value, status });
        }
        Ok(())
    }
}

fn only(result: &RunResult) -> &Suite {
    let [suite] = &result.outcome.suites[..] else { panic!("{:?}", result.outcome.suites) };
    suite
}

/// `calls` is twice as fast in each build. The other workloads are much faster in the first build, but another build
/// fails in one of them, and is stopped in the other. They must not count for the means of the remaining builds.
#[test]
fn means_of_builds_are_over_the_workloads_that_all_builds_completed() {
    let runtimes = Runtimes::new(|runtime, workload, _| match (runtime, workload) {
        ("base", _) => (64.0, Status::Ok),
        ("v=broken", _) => (f64::NAN, Status::Lost),
        (_, "calls") => (32.0, Status::Ok),
        ("v=a", _) => (1.0, Status::Ok),
        ("v=b", "regex") => (f64::NAN, Status::Lost),
        ("v=c", "sort") => (90.0, Status::Censored),
        _ => (64.0, Status::Ok),
    });
    let folder = tempfile::tempdir().unwrap();
    let result = runtimes.measure(&["base", "v=a", "v=b", "v=c", "v=broken"], &folder);
    let [group] = &only(&result).builds[..] else { panic!("{:?}", only(&result).builds) };
    let ratios: Vec<(&str, f64)> = group.builds.iter().map(|build| (build.name.as_str(), build.ratio)).collect();
    // A build that completes nothing is not a build of the sample, and removes nothing from the others.
    assert_eq!(ratios.len(), 3, "{ratios:?}");
    assert!(ratios.iter().all(|(_, ratio)| (ratio - 2.0).abs() < 1e-12), "{ratios:?}");
    assert!((group.range.unwrap() - 1.0).abs() < 1e-12 && (group.ratio.unwrap() - 2.0).abs() < 1e-12);
    assert_eq!(group.most.as_ref().unwrap().0, "calls");
    // The comparisons themselves keep all workloads that both of their arms completed.
    let names = |index: usize| only(&result).comparisons[index].workloads.iter().map(|of| of.workload.as_str());
    assert_eq!(names(0).collect::<Vec<_>>(), ["calls", "regex", "sort"]);
    assert_eq!(names(1).collect::<Vec<_>>(), ["calls", "sort"]);
}

/// Returns the number of workloads and the decision of each comparison with `base`.
fn decisions(runtimes: &[&str], times: Times) -> Vec<(usize, Option<Decision>)> {
    let folder = tempfile::tempdir().unwrap();
    let result = Runtimes::new(times).measure(runtimes, &folder);
    let comparisons = only(&result).comparisons.iter();
    comparisons.map(|of| (of.workloads.len(), of.mean.unwrap().decision)).collect()
}

/// The run is judged by the workloads that all arms complete. The verdict that is printed beside a mean must be about
/// the workloads of this mean.
#[test]
fn the_verdict_on_a_mean_is_about_its_own_workloads() {
    let (faster, slower) = (Some(Decision::Faster), Some(Decision::Slower));
    let three = ["base", "one", "other"];
    let all = decisions(&three, |runtime, _, _| (if runtime == "base" { 2.0 } else { 1.0 }, Status::Ok));
    assert_eq!(all, [(3, faster), (3, faster)]);
    // `one` is faster in `calls` and `sort`, but slower in the mean of all three workloads.
    let some = decisions(&three, |runtime, workload, trial| match (runtime, workload) {
        ("other", "regex") if trial == 3 => (f64::NAN, Status::Lost),
        ("one", "regex") => (100.0, Status::Ok),
        ("base", _) => (2.0, Status::Ok),
        _ => (1.0, Status::Ok),
    });
    assert_eq!(some, [(3, slower), (2, faster)]);
}

/// `one` is much faster in `regex`, and slower in the other workloads. `regex` fails in a late trial, so it is part of
/// the judged means of the earlier trials, and of no ratio.
#[test]
fn a_late_failure_changes_the_verdict_with_the_mean() {
    let late = decisions(&["base", "one"], |runtime, workload, trial| match (runtime, workload) {
        ("one", "regex") if trial == 19 => (f64::NAN, Status::Lost),
        ("one", "regex") => (1.0, Status::Ok),
        ("base", _) => (50.0, Status::Ok),
        _ => (51.0, Status::Ok),
    });
    assert_eq!(late, [(2, Some(Decision::Slower))]);
}

/// Two of three runtimes are stopped in `regex`, so the judged means leave it out. The printed means of both runtimes
/// contain it, and only their upper bounds are known. These bounds are below 1.
#[test]
fn a_workload_in_which_two_runtimes_are_stopped_is_part_of_the_verdict() {
    let stopped = decisions(&["base", "one", "other"], |runtime, workload, _| match (runtime, workload) {
        ("base", "regex") => (1.0, Status::Ok),
        (_, "regex") => (100.0, Status::Censored),
        ("base", _) => (11.0, Status::Ok),
        _ => (10.0, Status::Ok),
    });
    assert_eq!(stopped, [(3, Some(Decision::Slower)); 2]);
}

/// Each runtime has two phases. They are two suites, and two sets of files that must not be compared with one another.
#[test]
fn suites_under_two_conditions_are_kept_apart() {
    let runtimes = Runtimes::new(|runtime, _, _| (if runtime == "base" { 2e9 } else { 1e9 }, Status::Ok));
    let folder = tempfile::tempdir().unwrap();
    let result = runtimes.measure(&["base@start", "base@warm", "new@start", "new@warm"], &folder);
    let suites = &result.outcome.suites;
    let conditions: Vec<String> = suites.iter().map(|suite| suite.conditions.to_string()).collect();
    assert_eq!(conditions, ["phase=start", "phase=warm"]);
    assert!(suites.iter().all(|suite| suite.comparisons[0].mean.unwrap().decision == Some(Decision::Faster)));
    let is_unlike = |threat: &&Threat| matches!(threat, Threat::UnlikeBuilds { .. });
    assert_eq!(result.outcome.threats.iter().filter(is_unlike).count(), 1, "{:?}", result.outcome.threats);
    let recorded = read(result.folder.as_ref().unwrap()).unwrap();
    let of_run = PyperfSuite::of_run(&recorded);
    let names: Vec<(&str, &str)> = of_run.iter().map(|of| (of.name.as_str(), of.conditions.as_str())).collect();
    let expected = [("base", "phase=start"), ("new", "phase=start"), ("base", "phase=warm"), ("new", "phase=warm")];
    let expected = expected.map(|(name, conditions)| (format!("{name} ({conditions})"), conditions));
    assert_eq!(names, expected.each_ref().map(|(name, conditions)| (name.as_str(), *conditions)));
}

/// pyperf cannot store that a process was stopped or failed. A file without these processes would be too fast, so the
/// file of this runtime lacks the whole workload.
#[test]
fn files_of_pyperf_have_complete_workloads_and_no_control() {
    let runtimes = Runtimes::new(|runtime, workload, trial| match (runtime, workload) {
        ("new=b", "regex") if trial == 19 => (90.0, Status::Censored),
        ("new=b", "sort") if trial == 4 => (f64::NAN, Status::Lost),
        _ => (1e9 * (trial + 1) as f64, Status::Ok),
    });
    let folder = tempfile::tempdir().unwrap();
    let result = runtimes.measure(&["old=a", "new=b"], &folder);
    assert!(only(&result).comparisons[0].control.is_some(), "the run has a control");
    let recorded = read(result.folder.as_ref().unwrap()).unwrap();
    let [old, new] = &PyperfSuite::of_run(&recorded)[..] else { panic!("{:?}", recorded.outcome) };
    let names = |suite: &PyperfSuite| suite.benchmarks.iter().map(|of| of.name.clone()).collect::<Vec<_>>();
    assert_eq!((old.name.as_str(), names(old)), ("old", ["calls", "regex", "sort"].map(String::from).into()));
    assert_eq!((new.name.as_str(), names(new)), ("new", vec!["calls".to_string()]));
    assert_eq!((&old.incomplete[..], &new.incomplete[..]), (&[][..], &["regex", "sort"].map(String::from)[..]));
    // Each process has one value, in seconds.
    let seconds: Vec<Vec<f64>> = (1..=20).map(|trial| vec![f64::from(trial)]).collect();
    assert_eq!((new.benchmarks[0].unit.as_str(), &new.benchmarks[0].runs), ("second", &seconds));
    // A comparison of the two files names the workloads that one of them lacks.
    let compared = ascertain_engine::pyperf::compare(new, old).times;
    assert_eq!(compared.workloads.len(), 1);
    let left_out: Vec<_> = compared.left_out.iter().map(|of| (of.workload.as_str(), &of.arms[..], of.reason)).collect();
    let new = [String::from("new")];
    assert_eq!(left_out, [("regex", &new[..], WorkloadLack::Failed), ("sort", &new[..], WorkloadLack::Failed)]);
}
