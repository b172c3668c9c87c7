//! Tests of drivers, and of processes of pyperformance, which need no installation.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::runtimes::tests::{Bench, arms, python};
use crate::runtimes::{JAVASCRIPT, PYTHON};

/// Returns the passes that a driver prints for a trivial workload.
fn passes(program: &Path, language: &str, source: &str, least_ns: &str) -> Passes {
    let folder = Folder::new().unwrap();
    folder.write_all().unwrap();
    let extension = if language == PYTHON { "py" } else { "js" };
    let workload = folder.write(&format!("trivial.{extension}"), source).unwrap();
    let mut command = Command::new(program);
    command.arg(folder.path().join(language).join(format!("drive.{extension}"))).arg(workload).arg(least_ns);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    read_passes(&String::from_utf8(output.stdout).unwrap(), 0).unwrap()
}

/// A fast workload has very many passes. If all were printed, the line with the result would be lost.
#[test]
fn drivers_print_a_limited_number_of_passes_with_their_drift() {
    let node = crate::runtimes::discover::installed(crate::runtimes::languages::named(JAVASCRIPT)).into_iter().next();
    let python = python().map(|path| (path, PYTHON, "def run():\n    return 7\n"));
    let node = node.map(|node| (node.program.path.clone(), JAVASCRIPT, "function run() { return 7; }\n"));
    for (program, language, source) in [python, node].into_iter().flatten() {
        let many = passes(&program, language, source, "200000000");
        assert!(many.times_ns.len() <= 100 && many.result == "7", "{language}: {}", many.times_ns.len());
        // However slow a pass is, there are enough to see whether they are steady.
        let few = passes(&program, language, source, "0");
        assert_eq!(few.times_ns.len(), 4, "{language}");
        assert!(many.drift().is_some() && few.drift().is_some(), "{language}");
        let alone = passes(&program, language, source, "-1");
        assert_eq!((alone.times_ns.len(), alone.drift()), (1, None), "{language}");
    }
}

/// A value of pyperformance is the time of one loop of many. The limit of the process is no bound of it.
#[test]
fn a_worker_of_pyperformance_has_one_loop_at_the_start_and_no_bound_at_the_limit() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    bench.write("bm_nbody/run_benchmark.py", "");
    bench.write("bm_nbody/pyproject.toml", "dependencies = [\"pyperf\"]\n");
    let script = pyperformance::scripts_in(&bench.path(""), None).unwrap().remove(0);
    let workload = Workload { name: "nbody".into(), source: Source::Pyperformance(script) };
    let ran = Ran { exit: Exit::TimedOut, start_ns: 0, wall_ns: 0, output: String::new(), error_output: String::new() };
    let path = python.display().to_string();
    for (phase, loops, bound, sample) in [
        ("start", "1", 20e9, "for workloads of pyperformance, from the start to the end of the process"),
        ("first", "40", LEAST_NS, "for workloads of pyperformance, the mean of the first passes"),
        ("warm", "40", LEAST_NS, "for workloads of pyperformance, the mean of passes of about 50 ms"),
    ] {
        let levels = [("phase", phase), ("limit_s", "20")];
        let arms = arms(PYTHON, &[&path, &format!("again={path}")], &levels).unwrap();
        let mut session = RuntimesSession::open(&arms, &Setup::default()).unwrap();
        session.loops.insert("nbody".into(), 40);
        let arguments = session.arguments(0, &workload, 1).unwrap();
        let place = arguments.iter().position(|argument| argument == "--loops").unwrap();
        assert_eq!(arguments[place + 1], loops, "{phase}");
        assert_eq!(session.least_time(0, &workload, &ran, 20e9), bound, "{phase}");
        session.arms[0].workloads.push(workload.clone());
        let fact = session.facts_of(0).get("sample").unwrap().to_string();
        assert!(fact.contains(sample), "{fact}");
    }
}
