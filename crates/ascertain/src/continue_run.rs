//! Continues a recorded run.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use ascertain_engine::evidence;
use ascertain_engine::experiment::Level;
use ascertain_engine::plan::{Config, Plan};
use ascertain_engine::result::{GatedVerdict, RunResult};
use ascertain_engine::run::{self, Recording};

use crate::error::{Error, refused};
use crate::run::RunContext;

/// A request to continue a recorded run, with the settings that change.
#[derive(Clone, Debug, PartialEq)]
pub struct Continuation {
    /// Folder of the run to continue.
    pub folder: PathBuf,
    /// Time limit of the continuation alone; `None` keeps the time limit of the run.
    pub max_time: Option<Duration>,
    /// Maximum number of trials in each lane (group of arms that are measured together). The trials that are already
    /// recorded are included. `None` keeps the maximum of the run.
    pub max_trials: Option<u64>,
    /// Precision to reach for the interval of each ratio; `None` keeps the precision of the run.
    pub precision: Option<f64>,
    /// Verdicts that make the run fail; `None` keeps the verdicts that the run has set.
    pub fail_on: Option<Vec<GatedVerdict>>,
    /// Values for the environment variables of the commands, as pairs of name and value. They are used if the recorded
    /// run contains only the names of the variables.
    pub env: Vec<(String, String)>,
}

/// Continues a recorded run with the changed settings. All other settings and the claims stay the same.
///
/// # Errors
/// If the run can't be read, if another process is measuring it, or if the registry lacks its experiments.
pub fn continue_run(continuation: Continuation, context: RunContext) -> Result<RunResult, Error> {
    let known = evidence::known_folder();
    let header = evidence::read_header(&continuation.folder).map_err(ascertain_engine::Error::from)?;
    if header.plan.windows.is_some() {
        return refused(
            "the run measured for a fixed time, and its evidence has only a part of its observations, so it can't be \
             continued; measure again"
                .into(),
        );
    }
    if header.plan.commands.iter().flat_map(|set| &set.commands).any(|command| command.revision.is_some()) {
        return refused(
            "the run compared revisions, whose folders were removed at its end, so it can't be continued; measure again"
                .into(),
        );
    }
    let parts = evidence::Writer::resume(&continuation.folder, Some(&known)).map_err(ascertain_engine::Error::from)?;
    let plan = continuation.apply(&parts.1.header.plan);
    let recording = Recording::Continue(Box::new(parts));
    Ok(run::run(&plan, context.registry, recording, &context.stop, context.observer)?)
}

impl Continuation {
    /// Returns the run's plan with the changed settings.
    fn apply(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        if let Some(max_time) = self.max_time {
            plan.config.limit_time(max_time);
        }
        if self.max_trials.is_some() {
            // The new maximum replaces an exact number of trials, too.
            (plan.config.max_trials, plan.config.exact_trials) = (self.max_trials, None);
        }
        if self.precision.is_some() {
            let config = &mut plan.config;
            (config.precision, config.precision_time) = (self.precision, None);
            // The precision replaces an exact number of trials. Such a run may have no time limit.
            config.exact_trials = None;
            if config.max_time == Duration::MAX {
                config.limit_time(Config::default().max_time);
            }
        }
        if let Some(fail_on) = &self.fail_on {
            plan.config.fail_on.clone_from(fail_on);
        }
        let commands = plan.commands.iter_mut().flat_map(|set| &mut set.commands);
        for (name, value) in commands.flat_map(|command| &mut command.env).filter(|(_, value)| value.is_none()) {
            *value = self.env.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        }
        plan
    }
}

/// Lists everything that a continuation executes, one item per line. If someone else recorded the run, the user can
/// read this list before the run is continued. For commands, the list has command lines, hooks and environment
/// variables. For experiments, it has the texts that are passed to them, such as addresses.
#[must_use]
pub fn executed_lines(plan: &Plan) -> Vec<String> {
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
