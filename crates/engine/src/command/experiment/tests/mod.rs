//! Tests with real commands, such as `true` and `sh`. Some commands append lines to a log, which the tests read.

mod measured;
mod mistakes;

use std::fs;

use tempfile::TempDir;

use super::CommandExperiment;
use crate::command::{CommandSet, NamedCommand};
use crate::experiment::{Arm, Experiment, Point, Sample, Samples, Session, Setup, TargetError, Trial};

fn command(line: &str) -> NamedCommand {
    NamedCommand { line: line.into(), ..NamedCommand::default() }
}

/// Returns a set of command lines that run without a shell.
fn plain(lines: &[&str]) -> CommandSet {
    CommandSet {
        id: "compare".into(),
        commands: lines.iter().map(|line| command(line)).collect(),
        ..CommandSet::default()
    }
}

/// Returns a set of commands whose lines a shell runs.
fn shell(commands: Vec<NamedCommand>) -> CommandSet {
    CommandSet { commands, shell: Some("sh".into()), ..plain(&[]) }
}

/// Returns one arm per command, with the default parameters.
fn arms(experiment: &CommandExperiment) -> Vec<Arm> {
    let variants = experiment.spec().variants.iter();
    variants.map(|variant| Arm { variant: variant.name.clone(), point: Point::default() }).collect()
}

fn open(experiment: &CommandExperiment) -> Result<Box<dyn Session + '_>, TargetError> {
    experiment.open(&arms(experiment), &Setup { seed: 5, ..Setup::default() })
}

fn measure(session: &mut dyn Session, arm: usize, trial: u64) -> Result<Vec<Sample>, TargetError> {
    let mut samples = Samples::default();
    session.measure(arm, &Trial { number: trial, seed: 0 }, &mut samples)?;
    Ok(samples.0)
}

/// Opens the set and measures its first command once.
fn measure_once(set: CommandSet) -> Result<Vec<Sample>, TargetError> {
    let experiment = CommandExperiment::new(set).unwrap();
    measure(&mut *open(&experiment)?, 0, 0)
}

fn failed(result: Result<impl Sized, TargetError>) -> String {
    match result.err().expect("it fails") {
        TargetError::Command { how, .. } => how,
        other => panic!("{other:?}"),
    }
}

/// A file to which commands append lines.
struct Log(TempDir);

impl Log {
    fn new() -> Log {
        Log(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }

    /// Returns a shell command that appends a word to the file.
    fn note(&self, word: &str) -> String {
        format!("echo {word} >> '{}'", self.path("log"))
    }

    fn read(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_string).collect()
    }
}
