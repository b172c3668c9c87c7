//! Tests of checks before the first trial: runs that do not fit in memory are refused, and arms that cannot be measured
//! are recorded.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{LazyLock, OnceLock};

use ascertain_engine::Error;
use ascertain_engine::claim::{Bound, Judging};
use ascertain_engine::evidence::read_header;
use ascertain_engine::experiment::{Accepts, Arm, Experiment, Factor, Point};
use ascertain_engine::finding::{Reason, Unavailable};
use ascertain_engine::outcome::{Absence, LeftOut, Verdict};
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::result::RunResult;
use ascertain_engine::run::{Recording, Silent};
use ascertain_sys::machine;
use tempfile::TempDir;

use crate::common::{Scripted, arm, noisy, plan, run, versus};

fn tabled(variants: &[&str]) -> Plan {
    let tables = vec![Table { experiment: "scripted".into(), arms: variants.iter().map(|name| arm(name)).collect() }];
    Plan { tables, ..plan(Vec::new(), Config { table_trials: Some(5), ..Config::default() }) }
}

fn run_of(experiment: &Scripted, plan: &Plan) -> Result<RunResult, Error> {
    run(plan, &[experiment as &dyn Experiment], Recording::None, &Default::default(), &mut Silent)
}

#[test]
fn an_arm_that_does_not_fit_is_unavailable_and_so_are_its_claims() {
    let experiment = Scripted { bytes_each: u64::MAX, ..Scripted::new(&["slow", "fast"], noisy) };
    let claim = versus("claim", "fast", "slow", Bound::AtLeast(1.0), Judging::Rate);
    let plan = Plan { claims: vec![claim], ..tabled(&["slow", "fast"]) };
    let run = run_of(&experiment, &plan).unwrap();
    assert!(!run.target_failed);
    assert_eq!(run.outcome.claims[0].verdict, Verdict::Unavailable);
    for left_out in &run.outcome.left_out {
        assert_eq!(left_out.absence, Absence::Unavailable);
        let Reason::Unavailable { lack, .. } = &left_out.reason else { panic!("{left_out:?}") };
        assert!(lack.to_string().contains(&format!("({} bytes)", u64::MAX)), "{lack}");
    }
    assert_eq!(run.outcome.left_out.len(), 2);
}

/// Each of the two arms alone fits into memory, but not both together. Without the check, the kernel would kill the
/// process.
#[test]
fn what_does_not_fit_together_is_refused() {
    static MEASURED: AtomicU32 = AtomicU32::new(0);
    let machine = machine::describe();
    let half = machine.memory_limit_bytes.unwrap_or(machine.memory_bytes) / 2;
    let experiment = Scripted {
        bytes_each: half / 3 * 2,
        ..Scripted::new(&["slow", "fast"], |variant, trial| {
            MEASURED.fetch_add(1, Relaxed);
            noisy(variant, trial)
        })
    };
    assert!(run_of(&experiment, &tabled(&["slow"])).is_ok());
    let measured = MEASURED.load(Relaxed);
    let error = run_of(&experiment, &tabled(&["slow", "fast"])).unwrap_err();
    assert!(matches!(error, Error::Memory(_)), "{error}");
    assert!(error.to_string().contains(&format!("({} bytes)", 2 * experiment.bytes_each)), "{error}");
    assert_eq!(MEASURED.load(Relaxed), measured, "no time is spent on it");
}

#[test]
fn what_can_not_be_measured_is_recorded_before_the_first_trial() {
    static RUNS: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
    static RECORDED: OnceLock<Vec<LeftOut>> = OnceLock::new();
    let experiment = Scripted {
        missing: &["fast", "even"],
        ..Scripted::new(&["slow", "fast", "even"], |variant, trial| {
            RECORDED.get_or_init(|| {
                let folder = fs::read_dir(RUNS.path()).unwrap().next().unwrap().unwrap().path();
                read_header(&folder).unwrap().unavailable
            });
            noisy(variant, trial)
        })
    };
    // One arm that only a claim needs, and one that a table needs.
    let claim = versus("claim", "even", "slow", Bound::AtLeast(1.0), Judging::Rate);
    let plan = Plan { claims: vec![claim], ..tabled(&["slow", "fast"]) };
    let runs = RUNS.path().to_owned();
    let recording = Recording::New {
        runs,
        command_line: Vec::new(),
        render: serde_json::Value::Null,
        label: None,
        revision: None,
        known: None,
    };
    run(&plan, &[&experiment as &dyn Experiment], recording, &Default::default(), &mut Silent).unwrap();
    let recorded: Vec<_> = RECORDED.get().unwrap().iter().map(|arm| (&*arm.arm.variant, &arm.reason)).collect();
    let lacks = Reason::Unavailable { arm: None, lack: Unavailable::other("needs a unicorn") };
    assert_eq!(recorded, [("even", &lacks), ("fast", &lacks)]);
}

/// A plan that was written by hand may have a level that its factor does not accept. Such an arm is not measured,
/// because experiments only handle accepted levels.
#[test]
fn a_level_that_is_none_of_its_factor_is_unavailable() {
    let mut experiment = Scripted::new(&["slow"], noisy);
    let accepts = Accepts::Integers { min: 1, max: 2 };
    experiment.spec.factors.push(Factor::new("lines", "how many", 1, accepts));
    let at = |lines: u64| Arm { variant: "slow".into(), point: Point::default().with("lines", lines) };
    let tables = vec![Table { experiment: "scripted".into(), arms: vec![at(2), at(7)] }];
    let run = run_of(&experiment, &Plan { tables, ..tabled(&[]) }).unwrap();
    let [left_out] = &run.outcome.left_out[..] else { panic!("{:?}", run.outcome.left_out) };
    assert_eq!(left_out.arm.point, at(7).point);
    let Reason::Unavailable { lack, .. } = &left_out.reason else { panic!("{left_out:?}") };
    assert_eq!(lack.to_string(), "`lines` accepts whole numbers from 1 to 2, not 7");
}
