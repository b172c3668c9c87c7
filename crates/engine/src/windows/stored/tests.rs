use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ascertain_sys::machine::Machine;

use super::*;
use crate::claim::{Claim, Test};
use crate::command::{CommandExperiment, CommandSet};
use crate::evidence::{SCHEMA, Writer, rfc3339};
use crate::experiment::{Arm, Experiment, Point, Sample, Spec};
use crate::plan::Plan;
use crate::predicate::Predicate;
use crate::recorded;
use crate::windows::histogram::write_line;
use crate::windows::{Around, Meter, WindowPlan};

const MS: f64 = 1e6;
const WINDOW_NS: u64 = 1_000_000_000;

fn set() -> CommandSet {
    CommandSet { time_limit: Some(Duration::from_millis(200)), ..CommandSet::new("slo", ["true"]) }
}

fn plan() -> Plan {
    let arm = Arm { variant: "true".into(), point: Point::default() };
    let predicate = Predicate::parse("exit == 0 and wall <= 20 ms", &set().metrics()).unwrap();
    let success = Test::predicate(arm, predicate);
    let windows = WindowPlan {
        duration: Duration::from_secs(40),
        window: Duration::from_nanos(WINDOW_NS),
        success: success.clone(),
        record_every: None,
        around: Around::default(),
        series: Vec::new(),
        memory_limit_bytes: None,
    };
    let claims = vec![Claim::in_half("slo", "slo".into(), "in time".into(), success)];
    Plan { claims, commands: vec![set()], windows: Some(windows), ..Plan::default() }
}

fn header(spec: &Spec) -> Header {
    Header {
        schema: SCHEMA.into(),
        run_id: "20261121T093012Z-k3f9".into(),
        started: rfc3339(1_795_253_412_345_678_901),
        ascertain_version: "0.1.0".into(),
        command_line: Vec::new(),
        render: Default::default(),
        label: None,
        revision: None,
        machine: Machine::default(),
        experiments: vec![spec.clone()],
        plan: plan(),
        unavailable: Vec::new(),
        outcome: None,
        lines_bytes: None,
        lines_checksum: None,
        parquet_checksum: None,
    }
}

/// Writes a run that was killed, with rows of these trials. The peak of the memory is the number of the trial.
fn killed(runs: &Path, trials: impl Iterator<Item = u64>) -> PathBuf {
    let experiment = CommandExperiment::new(set()).unwrap();
    let spec = experiment.spec();
    let mut writer = Writer::create(runs, header(spec), None).unwrap();
    let arm = writer.add_arm(spec, 0, &Arm { variant: "true".into(), point: Point::default() });
    for trial in trials {
        let value = |name: &str| if name == "exit" { 0.0 } else { trial as f64 };
        let samples = spec.metrics.iter().enumerate().map(|(metric, of)| Sample {
            value: value(&of.name),
            status: crate::experiment::Status::Ok,
            ..Sample::lost(metric)
        });
        writer.record(arm, trial, 0, ascertain_sys::clock::now_ns(), &samples.collect::<Vec<_>>());
    }
    writer.flush().unwrap();
    writer.folder().to_path_buf()
}

/// Writes the lines of windows with these values, in which the broken conditions are counted. Returns the meter.
fn write_windows(folder: &Path, windows: &[Vec<Bounds>]) -> Meter {
    let mut meter = Meter::new(plan().windows.as_ref().unwrap(), false, true).unwrap();
    let (mut text, mut slow) = (Vec::new(), 0);
    for (index, values) in (1..).zip(windows) {
        for value in values {
            let is_fast = value.high <= 20.0 * MS;
            slow += u64::from(!is_fast);
            meter.add(*value, Some(is_fast));
        }
        meter.advance(index * WINDOW_NS, |summary, values| {
            write_line(&mut text, summary, 1, values, &[0, slow]).unwrap();
        });
    }
    meter.finish(windows.len() as u64 * WINDOW_NS, |_, _| {});
    fs::write(folder.join(HISTOGRAMS), text).unwrap();
    meter
}

/// In the early windows, no value is above 10 ms. In the late ones, some are up to 80 ms and one reaches the time
/// limit.
#[test]
fn the_figures_of_a_killed_run_are_those_that_the_run_had() {
    let runs = tempfile::tempdir().unwrap();
    let folder = killed(runs.path(), 0..1);
    let window = |index: u64| {
        let most = if index < 6 { 10.0 } else { 80.0 };
        let mut values: Vec<Bounds> =
            (1..=1000).map(|value| Bounds::exact(f64::from(value) / 1000.0 * most * MS)).collect();
        if index >= 6 {
            values.push(Bounds::above(200.0 * MS));
        }
        values
    };
    let windows: Vec<Vec<Bounds>> = (0..12).map(window).collect();
    let mut meter = write_windows(&folder, &windows);
    let read = recorded::read(&folder).unwrap();
    let report = read.outcome.windows.unwrap();
    let p99 = report.total.p99.unwrap();
    assert!((p99 / (78.4 * MS) - 1.0).abs() < 0.01, "{p99}");
    assert_eq!(
        (&report.total, &report.groups, &report.windows),
        (&meter.total(), &meter.groups().to_vec(), &meter.windows().to_vec())
    );
    let point = read.outcome.points.iter().find(|point| point.metric == "wall").unwrap();
    assert_eq!((point.p99, point.censored), (Some(p99), 6));
    // The interval and the threat are about all windows. The only row says nothing about either.
    let interval = [point.median_low, point.median_high].map(Option::unwrap);
    assert!(interval[0] < point.median.unwrap() && point.median.unwrap() < interval[1], "{interval:?}");
    let stopped: Vec<&Threat> =
        read.outcome.threats.iter().filter(|threat| matches!(threat, Threat::Stopped { .. })).collect();
    assert!(matches!(stopped[..], [Threat::Stopped { trials: 6, all: 12_006, .. }]), "{stopped:?}");
    // The report knows the time limit, and how often each condition was false.
    assert_eq!(report.limit, Some(200.0 * MS));
    let slow = windows.iter().flatten().filter(|value| value.high > 20.0 * MS).count() as u64;
    let broken: Vec<(&str, u64)> =
        read.outcome.claims[0].broken.iter().map(|broken| (broken.metric.as_str(), broken.trials)).collect();
    assert_eq!(broken, [("wall", slow)]);
}

/// The rows are dense at the start. Only those at equal distances stand for the whole run.
#[test]
fn the_rows_of_a_killed_run_are_at_equal_distances() {
    let runs = tempfile::tempdir().unwrap();
    let trials = (0..500).chain((500..1500).step_by(2)).chain((1500..3500).step_by(4));
    let folder = killed(runs.path(), trials);
    let read = recorded::read(&folder).unwrap();
    assert_eq!(recorded_every(&folder, &read.header), 4);
    assert_eq!(read.outcome.windows.as_ref().unwrap().recorded.every, 4);
    let point = read.outcome.points.iter().find(|point| point.metric == "memory_peak").unwrap();
    assert_eq!((point.n, point.median, point.min, point.max), (875, Some(1748.0), Some(0.0), Some(3496.0)));
    assert!(read.series.iter().all(|series| series.trials == (0..3500).step_by(4).collect::<Vec<u64>>()));
    // With a single trial, there is no distance.
    let runs = tempfile::tempdir().unwrap();
    let folder = killed(runs.path(), 0..1);
    assert_eq!(recorded_every(&folder, &recorded::read(&folder).unwrap().header), 1);
}
