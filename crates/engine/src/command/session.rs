//! Commands that are being measured.

use ascertain_sys::interrupt::Stop;

use super::hooks::{Around, Entered};
use super::line::Line;
use super::outcome::{observe, run_untimed};
use super::requests::Requests;
use super::{CommandError, CommandExperiment, CommandSet};
use crate::experiment::{Arm, ArmId, Experiment, Point, Samples, Session, Setup, TargetError, Trial};

/// Commands with their set-ups in force, until it is dropped.
pub(super) struct CommandSession<'e> {
    set: &'e CommandSet,
    targets: Vec<Target>,
    requests: Option<Requests>,
    stop: Stop,
    /// Dropped last: clean-ups come after everything else.
    _entered: Vec<Entered<'e>>,
}

/// One arm.
struct Target {
    line: Line,
    prepare: Option<Line>,
}

impl<'e> CommandSession<'e> {
    /// Makes the arms ready and runs their set-ups.
    ///
    /// # Errors
    /// When a set-up fails. Those before it are cleaned up after.
    pub fn open(experiment: &'e CommandExperiment, arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let set = &experiment.set;
        let default = experiment.spec().default_point();
        let ready = arms.iter().map(|arm| Target::new(set, &default, arm));
        let (targets, around): (Vec<Target>, Vec<Around>) = ready.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let entered = around.into_iter().map(|around| experiment.hooks.enter(around, &setup.stop));
        Ok(CommandSession {
            set,
            targets,
            requests: set.requests.clone().map(|texts| Requests::new(texts, setup.seed)),
            stop: setup.stop.clone(),
            _entered: entered.collect::<Result<_, _>>()?,
        })
    }
}

impl Target {
    fn new(set: &CommandSet, default: &Point, arm: &Arm) -> Result<(Target, Around), TargetError> {
        let mut point = default.clone();
        point.0.extend(arm.point.0.clone());
        let missing = || TargetError::Failed(format!("there is no command `{}`", arm.variant));
        let command = set.command(&arm.variant).ok_or_else(missing)?;
        let make = || -> Result<_, CommandError> {
            let prepare = command.prepare.as_ref();
            let prepare = prepare.map(|line| Line::around(set, "preparation", line, &point)).transpose()?;
            let line = Line::measured(set, &command.line, &point)?;
            Ok((Target { line, prepare }, Around::new(set, command, &point)?))
        };
        make().map_err(|error| TargetError::Failed(error.to_string()))
    }
}

impl Session for CommandSession<'_> {
    /// A command's answer is its exit code, which each observation sees.
    fn verify(&mut self, _: ArmId) -> Result<(), TargetError> {
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Target { line, prepare } = &self.targets[arm];
        if let Some(prepare) = prepare {
            run_untimed(prepare, &self.stop)?;
        }
        let request = self.requests.as_mut().map(|requests| requests.of(trial.number));
        let usage = line.run(request, self.set.time_limit, &self.stop)?;
        observe(&usage, self.set, line, out)
    }
}
