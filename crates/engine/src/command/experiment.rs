//! Commands as an experiment.

use ascertain_sys::machine::Machine;

use super::check::check;
use super::hooks::Hooks;
use super::session::CommandSession;
use super::{CommandError, CommandSet};
use crate::experiment::{Arm, Experiment, Session, Setup, Spec, TargetError, Unavailable};

/// A set of commands that can be measured.
///
/// ```
/// use ascertain_engine::command::{CommandExperiment, CommandSet, NamedCommand};
/// use ascertain_engine::experiment::Experiment;
///
/// let line = |line: &str| NamedCommand { line: line.into(), ..NamedCommand::default() };
/// let set = CommandSet {
///     id: "compare".into(),
///     commands: vec![line("true"), line("true")],
///     ..CommandSet::default()
/// };
/// let experiment = CommandExperiment::new(set.clone()).unwrap();
/// let names = experiment.spec().variants.iter().map(|variant| variant.name.as_str());
/// assert_eq!(names.collect::<Vec<_>>(), ["true", "true (2)"]);
///
/// let missing = CommandSet { commands: vec![line("no-such-program")], ..set };
/// let error = CommandExperiment::new(missing).err().unwrap();
/// assert!(error.to_string().contains("`no-such-program` was not found"));
/// ```
pub struct CommandExperiment {
    pub(super) set: CommandSet,
    pub(super) hooks: Hooks,
    spec: Spec,
}

impl CommandExperiment {
    /// Makes an experiment of commands. Nothing is run yet.
    ///
    /// # Errors
    /// Whatever can be known to be wrong beforehand: see [`CommandError`].
    pub fn new(set: CommandSet) -> Result<Self, CommandError> {
        let set = set.with_distinct_names();
        check(&set)?;
        Ok(CommandExperiment { spec: set.spec(), hooks: Hooks::default(), set })
    }

    /// What went wrong in cleaning up so far. Sessions clean up when they end, where no error can be
    /// returned.
    pub fn cleanup_failures(&self) -> Vec<String> {
        self.hooks.failures()
    }
}

impl Experiment for CommandExperiment {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        match self.set.command(&arm.variant) {
            Some(_) => Ok(()),
            None => Err(Unavailable::other(format!("there is no command `{}`", arm.variant))),
        }
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session + '_>, TargetError> {
        Ok(Box::new(CommandSession::open(self, arms, setup)?))
    }
}
