//! Tests of a signal that arrives during an observation.

use ascertain_engine::command::{CommandExperiment, CommandSet, NamedCommand};
use ascertain_engine::experiment::{Arm, Experiment, Point, Samples, Setup, Status, TargetError, Trial};
use ascertain_sys::{interrupt, testing};

#[test]
fn an_interrupted_observation_says_what_had_gone_by_and_is_cleaned_up_after() {
    // The signal goes to the whole process.
    testing::alone(|| {
        interrupt::install().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let [cleaned, late] = ["cleaned", "late"].map(|name| folder.path().join(name));
        let experiment = CommandExperiment::new(CommandSet {
            id: "interrupt".into(),
            commands: vec![NamedCommand {
                name: "command".into(),
                // The command's parent is this process.
                line: format!("kill -TERM $PPID; sleep 300; touch '{}'", late.display()),
                cleanup: Some(format!("touch '{}'", cleaned.display())),
                ..NamedCommand::default()
            }],
            shell: Some("sh".into()),
            ..CommandSet::default()
        })
        .unwrap();
        let arm = Arm { variant: "command".into(), point: Point::default() };
        let mut session = experiment.open(&[arm], &Setup { seed: 0, ..Setup::default() }).unwrap();
        let trial = Trial { number: 0, seed: 0 };
        let mut samples = Samples::default();
        assert_eq!(session.measure(0, &trial, &mut samples), Err(TargetError::Interrupted));
        let wall = samples.iter().find(|sample| sample.metric == 0).unwrap();
        assert!(wall.status == Status::Censored && wall.value > 0.0, "{wall:?}");
        assert!(!late.exists(), "the signal ends the command");
        assert!(samples.iter().all(|sample| sample.metric != 4), "it has no exit code");
        // After the signal, no other command is started.
        let mut samples = Samples::default();
        assert_eq!(session.measure(0, &trial, &mut samples), Err(TargetError::Interrupted));
        assert_eq!(samples.iter().count(), 0);
        assert!(!cleaned.exists());
        drop(session);
        assert!(cleaned.exists());
        assert!(experiment.cleanup_failures().is_empty());
    });
}
