//! The `main` of a user's own benches: functions measured against each other, with verdicts.
//!
//! A bench is a file under `benches/` with `harness = false`:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use ascertain_report::bench::{Group, Throughput, black_box, run};
//!
//! fn main() -> ExitCode {
//!     let data: Vec<f64> = (0..10_000).map(f64::from).collect();
//!     let group = Group::new("sum")
//!         .throughput(Throughput::Elements(10_000))
//!         .function("loop", || black_box(&data).iter().sum::<f64>())
//!         .function("chunks", || black_box(&data).chunks(8).map(|c| c.iter().sum::<f64>()).sum::<f64>());
//!     run([group])
//! }
//! ```
//!
//! `cargo bench --bench NAME -- [FILTER …]` takes `--error`, `--max-time`, `--margin`, `--precision`,
//! `--seed`, `--format table|json|csv|markdown`, `--evidence DIR` and `--no-evidence`, which mean what
//! they mean to `ascertain compare`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub use ascertain::black_box;
pub use ascertain::function::{Group, Throughput};

use ascertain::claim::Claim;
use ascertain::experiment::{Arm, Experiment, Point};
use ascertain::plan::{Config, Plan, Table};
use ascertain::run::{Recording, Run, Silent};
use ascertain::unit::{Unit, parse_quantity};
use ascertain_sys::{clock, interrupt};
use lexopt::prelude::*;

use crate::terminal::{self, Style};
use crate::{csv, json, markdown};

/// What is asked for on the command line.
struct Options {
    filters: Vec<String>,
    config: Config,
    format: String,
    evidence: Option<PathBuf>,
    no_evidence: bool,
}

/// Measures the groups one after the other and prints what came of each. The first function of a group
/// is the reference. Exit code 0: done; 2: usage; 4: no function passes the filter; 5: a wrong answer;
/// 130: interrupted.
pub fn run<'a>(groups: impl IntoIterator<Item = Group<'a>>) -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => return fail(&error, 2),
    };
    if let Err(error) = interrupt::install() {
        return fail(&error, 2);
    }
    let mut measured = false;
    for mut group in groups {
        let id = group.spec().id.clone();
        let wanted = |name: &str| {
            let path = format!("{id}/{name}");
            options.filters.is_empty() || options.filters.iter().any(|filter| path.contains(filter))
        };
        group.retain(wanted);
        if group.spec().variants.is_empty() {
            continue;
        }
        measured = true;
        match measure(&group, &options) {
            Err(error) => return fail(&error, 2),
            Ok(run) if run.outcome.interrupted => return ExitCode::from(130),
            Ok(run) if run.target_failed => return ExitCode::from(5),
            Ok(_) => {}
        }
    }
    ExitCode::from(if measured { 0 } else { 4 })
}

fn fail(error: &dyn std::error::Error, code: u8) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(code)
}

fn measure(group: &Group, options: &Options) -> Result<Run, ascertain::Error> {
    let spec = group.spec();
    let arm = |name: &str| Arm { variant: name.to_string(), point: Point::default() };
    let arms: Vec<Arm> = spec.variants.iter().map(|variant| arm(&variant.name)).collect();
    let claims: Vec<Claim> = arms[1..].iter().map(|candidate| Claim::order(&spec.id, candidate, &arms[0])).collect();
    let table_trials = claims.is_empty().then_some(ALONE_TRIALS);
    let plan = Plan {
        claims,
        tables: vec![Table { experiment: spec.id.clone(), arms }],
        commands: Vec::new(),
        config: Config { table_trials, ..options.config.clone() },
    };
    let recording = match options.no_evidence {
        true => Recording::None,
        false => Recording::New {
            runs: options.evidence.clone().unwrap_or_else(ascertain::evidence::runs_folder),
            command_line: std::env::args().collect(),
        },
    };
    let run = ascertain::run::run(&plan, &[group], recording, &mut Silent)?;
    match options.format.as_str() {
        "json" => print!("{}", json::outcome(&run.outcome)),
        "csv" => print!("{}", csv::outcome(&run.outcome)),
        "markdown" => print!("{}", markdown::outcome(&run.outcome)),
        _ => println!("{}\n{}", spec.id, terminal::compare_table(&run.outcome, &Style { color: false, width: 100 })),
    }
    Ok(run)
}

/// One function alone has nothing to be compared with: this many batches describe it.
const ALONE_TRIALS: u64 = 100;

fn options() -> Result<Options, lexopt::Error> {
    let seed = clock::unix_ns() % 1_000_000_007;
    let mut options = Options {
        filters: Vec::new(),
        config: Config { seed, max_time: Duration::from_secs(10), ..Config::default() },
        format: "table".into(),
        evidence: None,
        no_evidence: false,
    };
    let share = |text: String| parse_quantity(&text, Unit::One).map_err(|error| error.to_string());
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Value(filter) => options.filters.push(filter.string()?),
            // What `cargo bench` passes to every bench.
            Long("bench") => {}
            Long("error") => options.config.error = parser.value()?.parse_with(|text| share(text.into()))?,
            Long("margin") => options.config.margin = Some(parser.value()?.parse_with(|text| share(text.into()))?),
            Long("precision") => {
                options.config.precision = Some(parser.value()?.parse_with(|text| share(text.into()))?)
            }
            Long("seed") => options.config.seed = parser.value()?.parse()?,
            Long("max-time") => {
                let parse = |text: &str| parse_quantity(text, Unit::Nanosecond);
                options.config.max_time = Duration::from_nanos(parser.value()?.parse_with(parse)? as u64);
            }
            Long("format") => {
                let format = parser.value()?.string()?;
                if !["table", "json", "csv", "markdown"].contains(&format.as_str()) {
                    return Err(format!("--format {format}: it is table, json, csv or markdown").into());
                }
                options.format = format;
            }
            Long("evidence") => options.evidence = Some(parser.value()?.into()),
            Long("no-evidence") => options.no_evidence = true,
            other => return Err(other.unexpected()),
        }
    }
    Ok(options)
}
