//! A run with one arm, whose values come from a generator of random numbers.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use ascertain_engine::evidence::{self, Error, Header, Row};
use ascertain_engine::experiment::{Better, Metric, Spec, Status, Variant};
use ascertain_engine::outcome::{self, Outcome};
use ascertain_engine::plan::Plan;
use ascertain_engine::unit::Unit;
use ascertain_sys::{clock, machine};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The observations of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One metric, `time`, with a value in each trial.
    Whole,
    /// Two metrics, `time` and `level`. Some values were not observed. Levels can be negative, and many are 0.
    #[allow(dead_code, reason = "not all programs with this module write such runs")]
    Nulls,
    /// The same, but some times were cut off, of which some at an unknown value.
    #[allow(dead_code, reason = "not all programs with this module write such runs")]
    Censored,
}

/// Writes a run in a new folder below `runs`. Returns its folder.
pub fn write(runs: &Path, trials: u64, kind: Kind) -> Result<PathBuf, Error> {
    let run_id = evidence::new_run_id(clock::unix_ns(), clock::now_ns());
    let machine = machine::describe();
    let metric = |name: &str, unit| Metric::new(name, "", unit, Better::Lower);
    let variant = Variant { name: "only".into(), about: String::new() };
    let spec = Spec {
        id: "simulated".into(),
        variants: vec![variant],
        metrics: vec![metric("time", Unit::Nanosecond), metric("level", Unit::One)],
        ..Spec::default()
    };
    let header = Header {
        schema: evidence::SCHEMA.into(),
        run_id: run_id.clone(),
        started: evidence::rfc3339(clock::unix_ns()),
        ascertain_version: env!("CARGO_PKG_VERSION").into(),
        command_line: std::env::args().collect(),
        render: Default::default(),
        label: None,
        revision: None,
        machine: machine.clone(),
        experiments: vec![spec],
        plan: Plan::default(),
        unavailable: vec![],
        outcome: None,
        lines_bytes: None,
        lines_checksum: None,
        parquet_checksum: None,
    };
    let outcome = Outcome {
        schema: outcome::SCHEMA.into(),
        run_id: run_id.clone(),
        machine,
        cpu_times: None,
        threats: vec![],
        seed: 0,
        interrupted: false,
        points: vec![],
        claims: vec![],
        left_out: vec![],
        facts: vec![],
        by_key: vec![],
        remarks: vec![],
        suites: vec![],
        windows: None,
    };
    // The texts of rows must live as long as the program.
    let run_id: &'static str = run_id.leak();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(trials);
    let mut start_ns = 0;
    let metrics = if kind == Kind::Whole { 1 } else { 2 };
    let rows = (0..trials).flat_map(|trial| (0..metrics).map(move |metric| (trial, metric))).map(|(trial, metric)| {
        let [first, second]: [f64; 2] = [random.random(), random.random()];
        start_ns += if metric == 0 { 50_000 + (first * 20_000.0) as u64 } else { 0 };
        let (value, status) = observation(kind, metric, first, second);
        Row {
            run_id: Cow::Borrowed(run_id),
            experiment: "simulated".into(),
            lane: 0,
            variant: "only".into(),
            point: "{}".into(),
            trial,
            position: 0,
            metric: if metric == 0 { "time" } else { "level" }.into(),
            key: "".into(),
            offset_ns: 0,
            value,
            unit: if metric == 0 { Unit::Nanosecond } else { Unit::One },
            status,
            start_ns,
            worker: "".into(),
        }
    });
    evidence::write_simulated(runs, header, outcome, rows)
}

/// Returns a value and its status, from two numbers between 0 and 1.
fn observation(kind: Kind, metric: u64, first: f64, second: f64) -> (f64, Status) {
    let value = match metric {
        0 => 50e3 * (first - 0.5).exp(),
        _ => ((first - 0.5) * 10.0).trunc() * 0.25,
    };
    match kind {
        Kind::Whole => (value, Status::Ok),
        _ if second < 0.07 => (f64::NAN, Status::Lost),
        Kind::Censored if metric == 0 && second < 0.1 => (f64::INFINITY, Status::Censored),
        Kind::Censored if metric == 0 && second < 0.2 => (value, Status::Censored),
        Kind::Nulls | Kind::Censored => (value, Status::Ok),
    }
}
