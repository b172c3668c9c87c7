//! Measures the cost of evidence: the time to record a row, and the time to end a run with a million rows and a claim.
//! Also measures the time and memory for reading the rows back, from `trials.parquet` and from `trials.jsonl`.
//!
//! `cargo run --release --example evidence_cost [RUNS]`; the run is kept below RUNS if one is given.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use ascertain_engine::claim::Claim;
use ascertain_engine::evidence::{self, Header, Writer};
use ascertain_engine::experiment::{Arm, Better, Metric, Point, Sample, Spec, Status, Variant};
use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::{Config, Plan};
use ascertain_engine::recorded;
use ascertain_engine::unit::Unit;
use ascertain_sys::clock;
use ascertain_sys::machine::{self, Machine};

const TRIALS: u64 = 250_000;
const VARIANTS: [&str; 2] = ["naive", "kahan-avx512"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    // Each reading runs in a separate process, so that only the memory for reading is measured.
    if let [read, run] = arguments.as_slice()
        && read == "--read"
    {
        return self::read(Path::new(run));
    }
    let kept = arguments.first().map(PathBuf::from);
    let runs = kept.clone().unwrap_or_else(|| env::temp_dir().join("evidence_cost"));
    let machine = machine::describe();
    let run_id = evidence::new_run_id(clock::unix_ns(), clock::now_ns());
    let mut writer = Writer::create(&runs, header(&run_id, &machine), None)?;
    let spec = spec();
    let arms = VARIANTS.map(|variant| writer.add_arm(&spec, 0, &arm(variant)));

    let mut recording_ns = 0;
    let mut writing_ns = 0;
    for trial in 0..TRIALS {
        let samples = samples(trial);
        let start_ns = clock::now_ns();
        for (position, &arm) in arms.iter().enumerate() {
            writer.record(arm, trial, position as u32, start_ns, &samples);
        }
        let recorded_ns = clock::now_ns();
        writer.end_trial(0.0)?;
        recording_ns += recorded_ns - start_ns;
        writing_ns += clock::now_ns() - recorded_ns;
    }
    let rows = TRIALS as f64 * 4.0;
    println!("record: {:.0} ns per row", recording_ns as f64 / rows);
    println!("write:  {:.0} ns per row", writing_ns as f64 / rows);

    let start_ns = clock::now_ns();
    let run = writer.finish(outcome(run_id, machine))?;
    println!("finish: {:.2} s for {rows} rows", (clock::now_ns() - start_ns) as f64 / 1e9);
    let parquet = run.join("trials.parquet");
    let aside = parquet.with_extension("aside");
    for file in ["trials.parquet", "trials.jsonl"] {
        print!("{file}, {:.1} MB: ", fs::metadata(run.join(file))?.len() as f64 / 1e6);
        std::io::Write::flush(&mut std::io::stdout())?;
        Command::new(env::current_exe()?).arg("--read").arg(&run).status()?;
        if parquet.exists() {
            fs::rename(&parquet, &aside)?;
        }
    }
    fs::rename(&aside, &parquet)?;
    match kept {
        Some(_) => println!("{}", run.display()),
        None => fs::remove_dir_all(&run)?,
    }
    Ok(())
}

fn read(run: &Path) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let run = recorded::read(run)?;
    println!(
        "read {} rows in {:.2} s{}",
        run.rows,
        start.elapsed().as_secs_f64(),
        memory(run.rows).unwrap_or_default()
    );
    Ok(())
}

/// Returns the peak memory of this process and the peak per row, as text; `None` if the system is not Linux.
fn memory(rows: u64) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let bytes = line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0;
    Some(format!(", {:.0} MB peak memory, {:.0} B per row", bytes / 1e6, bytes / rows as f64))
}

fn arm(variant: &str) -> Arm {
    Arm { variant: variant.into(), point: Point::default().with("elements", 187_500).with("type", "f32") }
}

/// Returns the two samples of a trial: a time whose text needs all digits of a double, and a whole number of bytes.
fn samples(trial: u64) -> [Sample; 2] {
    let noise = trial.wrapping_mul(0x9e37_79b9_7f4a_7c15) as f64 / u64::MAX as f64;
    let sample = |metric, value| Sample { metric, key: "".into(), offset_ns: 0, value, status: Status::Ok };
    [sample(0, 51_234.5 * (1.0 + 0.1 * noise)), sample(1, (65_536.0 * noise).round())]
}

fn header(run_id: &str, machine: &Machine) -> Header {
    Header {
        schema: evidence::SCHEMA.into(),
        run_id: run_id.into(),
        started: evidence::rfc3339(clock::unix_ns()),
        ascertain_version: env!("CARGO_PKG_VERSION").into(),
        command_line: env::args().collect(),
        render: Default::default(),
        label: None,
        revision: None,
        machine: machine.clone(),
        experiments: vec![spec()],
        plan: Plan {
            claims: vec![Claim::order("sum", &Metric::time("time", ""), &arm(VARIANTS[1]), &arm(VARIANTS[0]))],
            tables: vec![],
            config: Config { exact_trials: Some(TRIALS), ..Config::default() },
            ..Plan::default()
        },
        unavailable: vec![],
        outcome: None,
        lines_bytes: None,
        lines_checksum: None,
        parquet_checksum: None,
    }
}

fn spec() -> Spec {
    let metric = |name: &str, unit| Metric::new(name, "", unit, Better::Lower);
    let variants = VARIANTS.map(|name| Variant { name: name.into(), about: String::new() });
    Spec {
        id: "sum".into(),
        variants: variants.to_vec(),
        metrics: vec![metric("time", Unit::Nanosecond), metric("memory_peak", Unit::Byte)],
        ..Spec::default()
    }
}

fn outcome(run_id: String, machine: Machine) -> Outcome {
    Outcome {
        schema: ascertain_engine::outcome::SCHEMA.into(),
        run_id,
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
    }
}
