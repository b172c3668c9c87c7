//! Going on with a run that is recorded.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use ascertain_engine::claim::Judging;
use ascertain_engine::evidence::{self, Header};
use ascertain_engine::experiment::Level;
use ascertain_engine::outcome::Gate;
use ascertain_engine::plan::Plan;
use ascertain_engine::run::Recording;

use crate::error::Error;
use crate::request::{GatedVerdict, Request};
use crate::run::{Done, RunContext, go};

/// Returns what continuing a run carries out, a line each, for the user to agree to when somebody else recorded it: its
/// command lines with what goes around them and into them, and its experiments with the texts they are given, such as
/// addresses.
#[must_use]
pub fn carried_out(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for set in &plan.commands {
        let shell = set.shell.as_deref().map_or_else(String::new, |shell| format!(" (given to {shell})"));
        for command in &set.commands {
            let around = [&command.setup, &command.prepare, &command.conclude, &command.cleanup];
            let env = command.env.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
            let all = around.into_iter().flatten().cloned().chain([command.line.clone()]).chain(env);
            lines.extend(all.map(|line| format!("{line}{shell}")));
        }
        let requests = set.requests.iter().flatten();
        lines.extend(requests.map(|request| format!("with the request {request}")));
    }
    for (experiment, arm) in plan.arms() {
        let is_command = plan.commands.iter().any(|set| set.id == experiment);
        let of = if is_command { "with".to_string() } else { format!("experiment {experiment}") };
        let texts = arm.point.0.iter().filter(|(_, level)| matches!(level, Level::Text(_)));
        let texts: Vec<String> = texts.map(|(factor, level)| format!("{factor}={level}")).collect();
        if !is_command || !texts.is_empty() {
            lines.push([&[of], &texts[..]].concat().join(" "));
        }
    }
    let mut known = BTreeSet::new();
    lines.retain(|line| known.insert(line.clone()));
    lines
}

/// A recorded run, and what is to be otherwise from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Continue {
    /// The run's folder.
    pub folder: PathBuf,
    /// Time for the continuation; without it, as much as the run had.
    pub max_time: Option<Duration>,
    /// Trials of each lane in all; without it, as many as the run had.
    pub max_trials: Option<u64>,
    /// Verdicts that fail, instead of those that the run said.
    pub fail_on: Option<Vec<GatedVerdict>>,
    /// What it fails for, of a run of the first version, whose plan does not have it.
    pub gate: Option<Gate>,
    /// Values of the environment variables whose values the run did not record.
    pub env: Vec<(String, String)>,
}

impl Continue {
    /// The plan of a run, with what is to be otherwise.
    #[must_use]
    pub fn plan(&self, header: &Header) -> Plan {
        let mut plan = header.plan.clone();
        if let Some(max_time) = self.max_time {
            // A time of one's own is kept to, also where no answer is possible within.
            (plan.config.max_time, plan.config.longest_time) = (max_time, None);
        }
        if self.max_trials.is_some() {
            // It takes the place of `compare -r`, too.
            (plan.config.max_trials, plan.config.exact_trials) = (self.max_trials, None);
        }
        plan.config.gate = plan.config.gate.or(self.gate);
        let commands = plan.commands.iter_mut().flat_map(|set| &mut set.commands);
        for (name, value) in commands.flat_map(|command| &mut command.env).filter(|(_, value)| value.is_none()) {
            *value = self.env.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        }
        plan
    }

    /// Goes on with the run. Its error budget stays what it was, and so do its tables, gates and purpose: `run.json`
    /// has them, and [`Request::of_recorded`] reads the request there.
    ///
    /// # Errors
    /// When the run can't be read, or goes on elsewhere, or its experiments are not here.
    pub fn carry_out(self, mut request: Request, context: RunContext) -> Result<Done, Error> {
        let parts = Box::new(
            evidence::Writer::resume(&self.folder, Some(&evidence::known_folder()))
                .map_err(ascertain_engine::Error::from)?,
        );
        let plan = self.plan(&parts.1.header);
        if let Some(fail_on) = self.fail_on {
            if plan.claims.iter().any(|claim| claim.judging == Judging::Order) {
                let way_out = "and its --fail-if stays what it was";
                return Err(Error::Request(format!("--fail-on is for claims; this run compares commands, {way_out}")));
            }
            request.fail_on = fail_on;
        }
        let recorded_trials = parts.1.trials.count();
        let recording = Recording::Continue(parts);
        go(request, plan, (recording, recorded_trials), context.registry, (&context.stop, context.observer))
    }
}
