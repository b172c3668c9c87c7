//! What reading a run costs that has a million rows and claims about them, from either file: seconds, and
//! the most memory that the process has had.
//!
//! `cargo run --release --example read_cost`

#![expect(clippy::print_stdout, reason = "it is what an example is for")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ascertain::claim::Claim;
use ascertain::experiment::{
    Arm, ArmId, Better, Experiment, Metric, Point, Samples, Session, Setup, Spec, TargetError, Trial, Unavailable,
    Variant,
};
use ascertain::plan::{Config, Plan};
use ascertain::recorded;
use ascertain::run::{Recording, Silent, run};
use ascertain::unit::Unit;
use ascertain_sys::machine::Machine;

const TRIALS: u64 = 250_000;
const VARIANTS: [&str; 2] = ["naive", "kahan-avx512"];

fn main() -> Result<(), Box<dyn Error>> {
    // Each reading has a process of its own, whose memory is that of reading alone.
    if let Some(folder) = env::args_os().nth(1) {
        return read(Path::new(&folder));
    }
    let runs = env::temp_dir().join(format!("read_cost-{}", std::process::id()));
    let run = record(&runs)?;
    for file in ["trials.parquet", "trials.jsonl"] {
        print!("{file}, {:.0} MB: ", fs::metadata(run.join(file))?.len() as f64 / 1e6);
        std::io::Write::flush(&mut std::io::stdout())?;
        Command::new(env::current_exe()?).arg(&run).status()?;
        let _ = fs::remove_file(run.join("trials.parquet"));
    }
    fs::remove_dir_all(&runs)?;
    Ok(())
}

fn read(folder: &Path) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let run = recorded::read(folder)?;
    let elapsed_s = start.elapsed().as_secs_f64();
    println!("{} rows in {elapsed_s:.2} s{}", run.rows, memory_peak().unwrap_or_default());
    Ok(())
}

/// Linux says how much memory the process has had at most.
fn memory_peak() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(format!(", {:.0} MB at most", kib * 1024.0 / 1e6))
}

fn record(runs: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let measured = Measured(spec());
    let arm = |variant: &str| Arm {
        variant: variant.into(),
        point: Point::default().with("elements", 187_500).with("type", "f32"),
    };
    let plan = Plan {
        claims: vec![Claim::order("sum", &arm(VARIANTS[1]), &arm(VARIANTS[0]))],
        tables: Vec::new(),
        commands: Vec::new(),
        config: Config { exact_trials: Some(TRIALS), max_time: Duration::from_secs(3600), ..Config::default() },
    };
    let recording = Recording::New { runs: runs.to_path_buf(), command_line: env::args().collect() };
    let run = run(&plan, &[&measured], recording, &mut Silent)?;
    Ok(run.folder.ok_or("the run kept no evidence")?)
}

fn spec() -> Spec {
    let variants = VARIANTS.map(|name| Variant { name: name.into(), about: String::new() });
    let metric = |name, unit| Metric::new(name, "", unit, Better::Lower);
    Spec {
        id: "sum".into(),
        title: String::new(),
        readme: String::new(),
        variants: variants.to_vec(),
        factors: vec![],
        metrics: vec![metric("time", Unit::Nanosecond), metric("memory_peak", Unit::Byte)],
        plots: vec![],
    }
}

/// A time with all its digits, and a whole number.
struct Measured(Spec);

struct Values;

impl Session for Values {
    fn verify(&mut self, _: ArmId) -> Result<(), TargetError> {
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let noise = trial.seed.rotate_left(arm as u32) as f64 / u64::MAX as f64;
        out.push(0, 51_234.5 * (1.0 + 0.1 * noise));
        out.push(1, (65_536.0 * noise).round());
        Ok(())
    }
}

impl Experiment for Measured {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn available(&self, _: &Arm, _: &Machine) -> Result<(), Unavailable> {
        Ok(())
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Ok(Box::new(Values))
    }
}
