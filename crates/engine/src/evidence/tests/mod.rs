mod broken;
mod journal;
mod killed;
#[cfg(feature = "parquet")]
mod removed;
mod round_trip;

use std::path::Path;

use ascertain_sys::clock;
use ascertain_sys::machine::Machine;

use super::{Header, Row, SCHEMA, Writer, read_rows, rfc3339};
use crate::experiment::{Accepts, Arm, Better, Factor, Level, Metric, Point, Sample, Spec, Status, Variant};
use crate::finding::Threat;
use crate::outcome::{self, Outcome};
use crate::plan::{Config, Plan, Table};
use crate::unit::Unit;

const RUN_ID: &str = "20261121T093012Z-k3f9";

fn spec() -> Spec {
    let metric = |name: &str, unit, better| Metric::new(name, &format!("about {name}"), unit, better);
    Spec {
        id: "sum".into(),
        title: "Summation".into(),
        readme: "# Summation\n\nWhich is \"fast\"?\n".into(),
        emulates: None,
        variants: vec![Variant { name: "naive".into(), about: "a plain loop".into() }],
        factors: vec![Factor {
            name: "elements".into(),
            about: "how many".into(),
            default: Level::Integer(187_500),
            accepts: Accepts::Integers { min: 1, max: 1 << 30 },
        }],
        plots: Vec::new(),
        metrics: vec![
            metric("time", Unit::Nanosecond, Better::Lower),
            metric("throughput", Unit::BytePerSecond, Better::Higher),
        ],
    }
}

fn arm() -> Arm {
    Arm { variant: "naive".into(), point: Point::default().with("elements", 187_500).with("type", "f32") }
}

fn header() -> Header {
    let machine = Machine {
        cpu_model: "A processor".into(),
        architecture: "x86_64".into(),
        cpus_online: 2,
        clock_step_ns: 10.0,
        ..Machine::default()
    };
    let table = Table { experiment: "sum".into(), arms: vec![arm()] };
    Header {
        schema: SCHEMA.into(),
        run_id: RUN_ID.into(),
        started: rfc3339(1_795_253_412_345_678_901),
        ascertain_version: "0.1.0".into(),
        command_line: vec!["ascertain".into(), "run".into(), "sum".into()],
        render: Default::default(),
        label: None,
        revision: None,
        machine,
        experiments: vec![spec()],
        plan: Plan { claims: vec![], tables: vec![table], config: Config::default(), ..Plan::default() },
        unavailable: vec![],
        outcome: None,
        lines_bytes: None,
        lines_checksum: None,
        parquet_checksum: None,
    }
}

fn outcome() -> Outcome {
    Outcome {
        schema: outcome::SCHEMA.into(),
        run_id: RUN_ID.into(),
        machine: header().machine,
        cpu_times: None,
        threats: vec![Threat::Load { load_1m: 6.0, cpus: 2 }],
        seed: 7,
        interrupted: false,
        points: vec![],
        claims: vec![],
        left_out: vec![],
        facts: Vec::new(),
        by_key: Vec::new(),
        remarks: Vec::new(),
        suites: Vec::new(),
        windows: None,
    }
}

fn sample(metric: usize, value: f64) -> Sample {
    Sample { metric, key: "".into(), offset_ns: 0, value, status: Status::Ok }
}

/// Records a trial in which one arm is measured twice: four rows.
fn record_trial(writer: &mut Writer, arm: usize, trial: u64) {
    for position in 0..2 {
        let samples = [sample(0, trial as f64 + 0.25), sample(1, f64::from(position))];
        writer.record(arm, trial, position, clock::now_ns(), &samples);
    }
}

fn rows(run: &Path) -> Vec<Row<'static>> {
    read_rows(run).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Restores the JSON lines of a run that has ended, as a continuation does.
fn restore_lines(run: &Path) {
    drop(Writer::resume(run, None).unwrap());
}
