//! Tests of the experiment with the Python of this machine. Each test that repeats a public report names it.

mod faults;
mod own;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ascertain_engine::experiment::{Arm, Experiment, Level};
use ascertain_engine::finding::Remark;
use ascertain_engine::outcome::ArmRemark;
use ascertain_engine::plan::{Config, Plan, Table, UseCase};
use ascertain_engine::run::{Recording, Silent, run};
use ascertain_engine::suite::SuiteComparison;
use ascertain_engine::{Error, RunResult};
use ascertain_sys::interrupt::Stop;
use ascertain_sys::testing::left_out;

use super::discover::installed;
use super::languages::named;
use super::{PYTHON, Runtimes};

/// Returns the Python that tests measure; `None` if this machine has none.
pub fn python() -> Option<PathBuf> {
    let found = installed(named(PYTHON)).into_iter().find(|runtime| runtime.version().starts_with("3."));
    if found.is_none() {
        left_out("Python 3 is not installed");
    }
    found.map(|runtime| runtime.program.path.clone())
}

/// A folder with programs and workloads for a test.
pub struct Bench(tempfile::TempDir);

impl Bench {
    pub fn new() -> Bench {
        Bench(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Writes a script that starts the program, after `before`.
    pub fn wrapper(&self, name: &str, before: &str, program: &Path) -> String {
        self.script(name, &format!("#!/bin/sh\n{before} exec '{}' \"$@\"\n", program.display()))
    }

    /// Writes an executable script through another process. If this process wrote it, a child of another test that is
    /// between `fork` and `exec` could still have it open, and the script could not be started.
    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(&path).stdin(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{path:?}");
        path.display().to_string()
    }
}

/// Returns the arms that a user gets with these levels.
pub fn arms(variant: &str, runtimes: &[&str], levels: &[(&str, &str)]) -> Result<Vec<Arm>, String> {
    let spec = Runtimes.spec();
    let settled = |factor: &str, level: &str| Runtimes.settled(factor, Level::parse(level));
    let mut arms = Vec::new();
    for runtime in runtimes {
        let mut point = spec.default_point().with("runtime", settled("runtime", runtime)?);
        for (factor, level) in levels {
            point = point.with(factor, settled(factor, level)?);
        }
        arms.push(Runtimes.trimmed(&Arm { variant: variant.into(), point }));
    }
    Runtimes.chosen(arms, true)
}

/// Measures the arms in this number of trials, as the command `run` does.
pub fn measured(arms: Vec<Arm>, trials: u64) -> Result<RunResult, Error> {
    let config = Config {
        exact_trials: Some(trials),
        table_trials: Some(trials),
        max_time: Duration::from_secs(3600),
        seed: 5,
        ..Config::default()
    };
    let claims = Runtimes.claims_about(&arms);
    let tables = vec![Table { experiment: "runtimes".into(), arms }];
    let plan = Plan { use_case: UseCase::Run, tables, claims, config, ..Plan::default() };
    run(&plan, &[&Runtimes], Recording::None, &Stop::default(), &mut Silent)
}

/// Measures files in Python runtimes, and returns the result.
pub fn files(runtimes: &[&str], files: &[&str], trials: u64) -> RunResult {
    let list = files.join(",");
    measured(arms(PYTHON, runtimes, &[("workloads", &list), ("limit_s", "60")]).unwrap(), trials).unwrap()
}

/// Returns the only comparison of a result.
pub fn only(result: &RunResult) -> &SuiteComparison {
    let [suite] = &result.outcome.suites[..] else { panic!("{:?}", result.outcome) };
    let [comparison] = &suite.comparisons[..] else { panic!("{:?}", suite.comparisons) };
    comparison
}

/// Returns the remarks about the runtime with this name.
pub fn remarks<'a>(result: &'a RunResult, name: &str) -> Vec<&'a Remark> {
    let is_of = |one: &&ArmRemark| super::levels::name(&one.arm) == name;
    result.outcome.remarks.iter().filter(is_of).map(|one| &one.remark).collect()
}
