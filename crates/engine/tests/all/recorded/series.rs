//! Tests of series with keys and offsets, from their session to a report.

use std::borrow::Cow;
use std::fs;

use ascertain_engine::experiment::{
    Arm, ArmId, Better, Experiment, Metric, Point, Reduce, Sample, Samples, Session, Setup, Spec, Status, TargetError,
    Trial, Variant,
};
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::recorded::Series;
use ascertain_engine::unit::Unit;

use super::record;
use crate::common::{Scripted, plan};

const SERVERS: [&str; 3] = ["server-1", "server-2", "a \"third\",\n{of} them"];
const CORES: usize = 4;

/// A curve with one key per server and many offsets, a matrix with one key per pair of cores, and a scalar.
struct Swept(Spec);

impl Swept {
    fn new() -> Swept {
        let metric = |name: &str, unit, better| Metric::new(name, "", unit, better);
        let rate = Metric { reduce: Reduce::Quantile(0.5), ..metric("rate", Unit::BytePerSecond, Better::Higher) };
        Swept(Spec {
            id: "swept".into(),
            title: String::new(),
            readme: String::new(),
            emulates: None,
            variants: ["a", "b"].map(|name| Variant { name: name.into(), about: String::new() }).to_vec(),
            factors: Vec::new(),
            metrics: vec![
                rate,
                metric("latency", Unit::Nanosecond, Better::Lower),
                metric("errors", Unit::One, Better::Lower),
            ],
            plots: Vec::new(),
        })
    }
}

struct Sweep(Vec<Arm>);

/// Returns the value of a server's curve at a step. One step was not observed, and one was cut off.
fn rate(variant: &str, trial: u64, server: usize, step: u64) -> f64 {
    let rate = (variant.len() as u64 * 1_000 + trial * 100 + server as u64 * 10 + step) as f64 / 3.0;
    if (server, step) == (1, 2) { f64::NAN } else { rate }
}

fn latency(trial: u64, from: usize, to: usize) -> f64 {
    if (from, to, trial % 2) == (0, 3, 1) {
        f64::INFINITY
    } else {
        (trial + 1) as f64 * 0.1 + (from * CORES + to) as f64
    }
}

fn errors(variant: &str) -> f64 {
    if variant == "b" { 0.0 } else { 1.0 }
}

impl Session for Sweep {
    fn verify(&mut self, _: ArmId) -> Result<(), TargetError> {
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let mut push = |metric, key: Cow<'static, str>, offset_ns, value| {
            out.push_sample(Sample { metric, key, offset_ns, value, status: Status::Ok });
        };
        for step in 0..5 {
            for (server, name) in SERVERS.into_iter().enumerate() {
                push(0, name.into(), step * 1_000_000, rate(&self.0[arm].variant, trial.number, server, step));
            }
        }
        for from in 0..CORES {
            for to in 0..CORES {
                push(1, format!("{from}-{to}").into(), 0, latency(trial.number, from, to));
            }
        }
        out.push_with(2, errors(&self.0[arm].variant), Status::Failed);
        Ok(())
    }
}

impl Experiment for Swept {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Ok(Box::new(Sweep(arms.to_vec())))
    }
}

fn arm(variant: &str) -> Arm {
    Arm { variant: variant.into(), point: Point::default() }
}

#[test]
fn curves_and_matrices_come_back_from_both_files() {
    const TRIALS: u64 = 6;
    let swept = Swept::new();
    let arms = vec![arm("b"), arm("a")];
    let tables = vec![Table { experiment: "swept".into(), arms: arms.clone() }];
    // A claim about the single number of each trial: the median over all servers.
    let mut claim = Scripted::new(&[], |_, _| Ok(0.0)).predicate("fast", "a", "time > 0 ns", 0.5);
    let predicate = Predicate::parse("rate >= 1 B/s", &swept.0.metrics).unwrap();
    let of_arm = |variant| ascertain_engine::claim::Test::predicate(arm(variant), predicate.clone());
    claim.experiment = "swept".into();
    claim.asked.tests = vec![of_arm("a"), of_arm("b")];
    let config = Config { exact_trials: Some(TRIALS), ..Config::default() };
    let ran = record(&[&swept], &Plan { tables, ..plan(vec![claim], config) });

    let from_parquet = ran.read();
    fs::rename(ran.file("trials.parquet"), ran.file("away")).unwrap();
    let from_lines = ran.read();
    // Compared as text, because a value that was not observed is not equal to itself.
    assert_eq!(format!("{from_parquet:?}"), format!("{from_lines:?}"));
    fs::rename(ran.file("away"), ran.file("trials.parquet")).unwrap();
    fs::remove_file(ran.file("trials.jsonl")).unwrap();
    assert_eq!(format!("{from_parquet:?}"), format!("{:?}", ran.read()));

    let series = from_parquet.series;
    assert_eq!(from_parquet.rows, TRIALS * 2 * (5 * 3 + 16 + 1));
    let names: Vec<_> =
        series.iter().map(|series| (&series.arm, series.metric.as_str(), series.key.as_str())).collect();
    let mut expected: Vec<(&Arm, &str, String)> = Vec::new();
    for arm in &arms {
        expected.extend(SERVERS.map(|server| (arm, "rate", server.to_string())));
        let pairs = (0..CORES).flat_map(|from| (0..CORES).map(move |to| format!("{from}-{to}")));
        expected.extend(pairs.map(|pair| (arm, "latency", pair)));
        expected.push((arm, "errors", String::new()));
    }
    assert_eq!(names, expected.iter().map(|(arm, metric, key)| (*arm, *metric, key.as_str())).collect::<Vec<_>>());
    series.iter().for_each(|series| assert_series(series, TRIALS));
    let scalar = ran.outcome().points.iter().find(|point| point.metric == "rate" && point.arm.variant == "a").unwrap();
    assert_eq!(scalar.n, TRIALS, "a trial has one number, whatever its keys");
}

fn assert_series(series: &Series, trials: u64) {
    let variant = &series.arm.variant;
    let expected: Vec<(u64, u64, f64)> = match series.metric.as_str() {
        "rate" => {
            let server = SERVERS.iter().position(|server| *server == series.key).unwrap();
            let steps = (0..trials).flat_map(|trial| (0..5).map(move |step| (trial, step)));
            steps.map(|(trial, step)| (trial, step * 1_000_000, rate(variant, trial, server, step))).collect()
        }
        "latency" => {
            let (from, to) = series.key.split_once('-').unwrap();
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            (0..trials).map(|trial| (trial, 0, latency(trial, from, to))).collect()
        }
        _ => (0..trials).map(|trial| (trial, 0, errors(variant))).collect(),
    };
    let has_offsets = series.metric == "rate";
    assert_eq!(series.offsets_ns.len(), if has_offsets { expected.len() } else { 0 });
    assert_eq!((series.trials.len(), series.values.len()), (expected.len(), expected.len()));
    for (row, (trial, offset_ns, value)) in expected.into_iter().enumerate() {
        assert_eq!(series.trials[row], trial);
        assert_eq!(series.offsets_ns.get(row).copied().unwrap_or(0), offset_ns);
        assert!(series.values[row] == value || series.values[row].is_nan() && value.is_nan(), "{} {row}", series.key);
    }
}
