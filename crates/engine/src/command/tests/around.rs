//! What is run before and after, and when.

use super::*;
use crate::experiment::{Accepts, Factor, Level};

fn around(log: &Log, name: &str) -> NamedCommand {
    let note = |what: &str| Some(log.note(&format!("{what}-{name}")));
    NamedCommand {
        name: name.into(),
        line: log.note(name),
        setup: note("setup"),
        prepare: note("prepare"),
        cleanup: note("cleanup"),
    }
}

#[test]
fn set_up_and_clean_up_once_and_prepare_before_each_observation() {
    let log = Log::new();
    let experiment = CommandExperiment::new(shell(vec![around(&log, "a"), around(&log, "b")])).unwrap();
    assert!(log.read().is_empty(), "nothing is run yet");
    let mut session = open(&experiment).unwrap();
    assert_eq!(log.read(), ["setup-a", "setup-b"]);
    for arm in [1, 0, 1] {
        session.verify(arm).unwrap();
        measure(&mut *session, arm, 0).unwrap();
    }
    drop(session);
    let run = ["setup-a", "setup-b", "prepare-b", "b", "prepare-a", "a", "prepare-b", "b"];
    assert_eq!(log.read()[..8], run);
    assert_eq!(log.read()[8..], ["cleanup-a", "cleanup-b"]);
    assert!(experiment.cleanup_failures().is_empty());
}

#[test]
fn clean_up_comes_after_a_failure_too() {
    let log = Log::new();
    let experiment =
        CommandExperiment::new(shell(vec![NamedCommand { line: "exit 1".into(), ..around(&log, "a") }])).unwrap();
    let mut session = open(&experiment).unwrap();
    failed(measure(&mut *session, 0, 0));
    drop(session);
    assert_eq!(log.read(), ["setup-a", "prepare-a", "cleanup-a"]);
}

#[test]
fn a_set_up_that_fails_is_named_and_those_before_it_are_cleaned_up_after() {
    let log = Log::new();
    let broken = NamedCommand { setup: Some("exit 7".into()), ..around(&log, "b") };
    let experiment = CommandExperiment::new(shell(vec![around(&log, "a"), broken])).unwrap();
    let reason = failed(open(&experiment));
    assert!(reason.contains("set-up `exit 7` ended with exit code 7"), "{reason}");
    assert_eq!(log.read(), ["setup-a", "cleanup-a"]);
}

#[test]
fn a_preparation_that_fails_is_named_and_the_command_is_not_run() {
    let log = Log::new();
    let broken = NamedCommand { prepare: Some("exit 7".into()), ..around(&log, "a") };
    let experiment = CommandExperiment::new(shell(vec![broken])).unwrap();
    let reason = failed(measure(&mut *open(&experiment).unwrap(), 0, 0));
    assert!(reason.contains("preparation `exit 7` ended with exit code 7"), "{reason}");
    assert_eq!(log.read(), ["setup-a", "cleanup-a"]);
}

#[test]
fn a_clean_up_that_fails_is_told_of() {
    let log = Log::new();
    let broken = NamedCommand { cleanup: Some("exit 7".into()), ..around(&log, "a") };
    let experiment = CommandExperiment::new(shell(vec![broken, around(&log, "b")])).unwrap();
    drop(open(&experiment).unwrap());
    assert_eq!(log.read(), ["setup-a", "setup-b", "cleanup-b"]);
    let failures = experiment.cleanup_failures();
    assert!(failures.len() == 1 && failures[0].contains("clean-up `exit 7`: exit status: 7"), "{failures:?}");
}

#[test]
fn arms_and_sessions_share_the_same_set_up() {
    let log = Log::new();
    let same = |name: &str| NamedCommand {
        name: name.into(),
        setup: Some(log.note("setup")),
        cleanup: Some(log.note("cleanup")),
        ..command("true")
    };
    let experiment = CommandExperiment::new(shell(vec![same("a"), same("b")])).unwrap();
    let (first, mut second) = (open(&experiment).unwrap(), open(&experiment).unwrap());
    drop(first);
    assert_eq!(log.read(), ["setup"], "the second session still needs it");
    measure(&mut *second, 1, 0).unwrap();
    drop(second);
    assert_eq!(log.read(), ["setup", "cleanup"]);
    drop(open(&experiment).unwrap());
    assert_eq!(log.read(), ["setup", "cleanup", "setup", "cleanup"]);
}

#[test]
fn parameters_are_replaced_in_every_line() {
    let log = Log::new();
    let levels = vec![Level::Integer(1), Level::Text("two".into())];
    let parameter = Factor {
        name: "n".into(),
        about: String::new(),
        default: levels[0].clone(),
        accepts: Accepts::OneOf(levels.clone()),
    };
    let set = CommandSet { parameters: vec![parameter], ..shell(vec![around(&log, "{n}-{m}")]) };
    let experiment = CommandExperiment::new(set).unwrap();
    let arm = |level: &Level| Arm { variant: "{n}-{m}".into(), point: Point::default().with("n", level.clone()) };
    let arms: Vec<Arm> = levels.iter().map(arm).collect();
    let mut session = experiment.open(&arms, &Setup { seed: 0, ..Setup::default() }).unwrap();
    measure(&mut *session, 1, 0).unwrap();
    drop(session);
    let expected = ["setup-1-{m}", "setup-two-{m}", "prepare-two-{m}", "two-{m}", "cleanup-1-{m}", "cleanup-two-{m}"];
    assert_eq!(log.read(), expected);
    drop(open(&experiment).unwrap());
    assert_eq!(log.read()[6..], ["setup-1-{m}", "cleanup-1-{m}"], "the default, where no level is named");
}

#[test]
fn a_program_may_be_made_beforehand() {
    let log = Log::new();
    let program = log.path("program");
    let quoted = format!("'{program}'");
    // Not a copy: temporary files may lie where no programs are started.
    let make = Some(format!("ln -sf /bin/sh '{program}'"));
    let by_setup = NamedCommand { setup: make.clone(), cleanup: Some(format!("rm '{program}'")), ..command(&quoted) };
    let by_preparation = NamedCommand { prepare: make, ..command(&quoted) };
    for command in [by_setup, by_preparation] {
        measure_once(CommandSet { commands: vec![command], ..plain(&[]) }).unwrap();
    }
    let _ = fs::remove_file(&program);
    let never = NamedCommand { setup: Some("true".into()), ..command(&quoted) };
    let reason = failed(measure_once(CommandSet { commands: vec![never], ..plain(&[]) }));
    assert!(reason.contains("was not found"), "{reason}");
}
