//! A signal in the middle of an observation. Signals belong to a whole process: hence a test by itself.

use ascertain::command::{CommandExperiment, CommandSet, NamedCommand};
use ascertain::experiment::{Arm, Experiment, Point, Samples, Setup, TargetError, Trial};
use ascertain_sys::interrupt;

#[test]
fn an_interrupted_observation_is_no_observation_and_is_cleaned_up_after() {
    interrupt::install().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cleaned = folder.path().join("cleaned");
    let experiment = CommandExperiment::new(CommandSet {
        id: "interrupt".into(),
        commands: vec![NamedCommand {
            name: "command".into(),
            // The command's parent is this process.
            line: "kill -TERM $PPID; sleep 300".into(),
            cleanup: Some(format!("touch '{}'", cleaned.display())),
            ..NamedCommand::default()
        }],
        shell: Some("sh".into()),
        ..CommandSet::default()
    })
    .unwrap();
    let arm = Arm { variant: "command".into(), point: Point::default() };
    let mut session = experiment.open(&[arm], &Setup { seed: 0 }).unwrap();
    let trial = Trial { number: 0, seed: 0 };
    // From now on nothing else is started either.
    for _ in 0..2 {
        let measured = session.measure(0, &trial, &mut Samples::default());
        assert_eq!(measured, Err(TargetError::Interrupted));
    }
    assert!(!cleaned.exists());
    drop(session);
    assert!(cleaned.exists());
    assert!(experiment.cleanup_failures().is_empty());
}
