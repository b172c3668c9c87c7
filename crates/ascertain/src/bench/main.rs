//! What a bench does from its command line to its exit code.

use std::process::ExitCode;

use ascertain_engine::experiment::{Arm, Experiment};
use ascertain_engine::function::Group;
use ascertain_report::exports::{Files, Purpose};
use ascertain_report::terminal::escape_controls;
use ascertain_sys::{clock, interrupt};

use super::measure::Bench;
use super::options::{HELP, Options, Task};

/// Measures the groups one after the other and prints what came of each. The first function of a group
/// is the reference. Exit code 0: done; 2: usage; 4: no function passes the filter; 5: a wrong answer;
/// 130: interrupted.
pub fn run<'a>(groups: impl IntoIterator<Item = Group<'a>>) -> ExitCode {
    let seed = clock::unix_ns() % 1_000_000_007;
    let options = match Options::read(std::env::args_os().skip(1), seed) {
        Ok(options) => options,
        Err(error) => return fail(&error, 2),
    };
    if options.task == Task::Help {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let wanted = groups.into_iter().filter_map(|mut group| {
        let id = group.spec().id.clone();
        group.retain(|name| options.wants(&id, name));
        (!group.spec().variants.is_empty()).then_some(group)
    });
    match options.task {
        Task::List => list(wanted),
        Task::Test => test(wanted, &options),
        _ => measure(wanted, &options),
    }
}

fn fail(error: &dyn std::error::Error, code: u8) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(code)
}

/// What a function at an input is called, and filtered by.
fn path(group: &Group, arm: &Arm) -> String {
    format!("{}/{}", escape_controls(&group.spec().id), escape_controls(&arm.to_string()))
}

/// A line a function, as other benches list theirs.
fn list<'a>(groups: impl Iterator<Item = Group<'a>>) -> ExitCode {
    for group in groups {
        for arm in group.table_arms() {
            println!("{}: benchmark", path(&group, &arm));
        }
    }
    ExitCode::SUCCESS
}

fn test<'a>(groups: impl Iterator<Item = Group<'a>>, options: &Options) -> ExitCode {
    let mut all_right = true;
    for group in groups {
        for (arm, is_right) in group.call_each_once() {
            let word = if is_right { "ok" } else { "WRONG ANSWER" };
            println!("{}: {word}", path(&group, &arm));
            all_right &= is_right;
        }
    }
    if !options.is_bench {
        eprintln!("Each function was called once; `cargo bench`, or --bench, measures.");
    }
    ExitCode::from(if all_right { 0 } else { 5 })
}

fn measure<'a>(groups: impl Iterator<Item = Group<'a>>, options: &Options) -> ExitCode {
    if let Err(error) = interrupt::install() {
        return fail(&error, 2);
    }
    let exports = options.exports.iter().map(|(kind, path)| (*kind, path.as_path()));
    let mut bench = match Files::open(exports, Purpose::default()) {
        Ok(files) => Bench::new(options, files),
        Err(error) => return fail(&error, 2),
    };
    let mut stopped = None;
    for group in groups {
        stopped = match bench.measure(&group) {
            // What was measured until then is exported all the same.
            Err(error) => {
                fail(&error, 2);
                Some(2)
            }
            Ok(run) if run.outcome.interrupted => Some(130),
            Ok(run) if run.target_failed => Some(5),
            Ok(_) => continue,
        };
        break;
    }
    let code = stopped.unwrap_or_else(|| {
        bench.end();
        match bench.has_measured() || options.ignored_only {
            true => 0,
            false => {
                eprintln!("No function passes the filter; --list names them.");
                4
            }
        }
    });
    let unwritten = if code == 130 { 130 } else { 2 };
    bench.write_exports().map_or_else(|error| fail(&error, unwritten), |()| ExitCode::from(code))
}
