//! From options to a run: the plan's configuration, where its evidence goes, Ctrl-C, progress.

use std::time::Duration;

use anyhow::Context;
use ascertain::command::CommandExperiment;
use ascertain::experiment::Experiment;
use ascertain::plan::{Config, Plan};
use ascertain::run::{Recording, Run};
use ascertain_sys::{clock, interrupt};

use crate::options::Common;
use crate::output;
use crate::progress::Line;

/// The configuration that the common options ask for.
pub fn config(common: &Common, max_time: Duration) -> Config {
    Config {
        error: common.error,
        max_time: common.max_time.unwrap_or(max_time),
        max_trials: common.max_trials,
        // Any seed is as good as another; the one taken is printed and stored.
        seed: common.seed.unwrap_or_else(|| (clock::unix_ns() ^ u64::from(std::process::id())) % 1_000_000_007),
        ..Config::default()
    }
}

/// Carries out a plan with the shipped experiments and the plan's own commands.
pub fn carry_out(plan: &Plan, common: &Common) -> anyhow::Result<Run> {
    let recording = match common.no_evidence {
        true => Recording::None,
        false => Recording::New {
            runs: common.evidence.clone().unwrap_or_else(ascertain::evidence::runs_folder),
            command_line: std::env::args().collect(),
        },
    };
    let run = carry_out_with(plan, recording, common.display.quiet)?;
    if let (Some(folder), false) = (&run.folder, common.display.quiet) {
        output::note(&format!("evidence: {}", folder.display()));
    }
    Ok(run)
}

/// Carries out a plan, its evidence going where it is told to.
pub fn carry_out_with(plan: &Plan, recording: Recording, quiet: bool) -> anyhow::Result<Run> {
    interrupt::install().context("Ctrl-C can't be caught")?;
    let commands = plan.commands.iter().cloned().map(CommandExperiment::new);
    let commands = commands.collect::<Result<Vec<_>, _>>()?;
    let mut registry: Vec<&dyn Experiment> = ascertain_experiments::registry().to_vec();
    registry.extend(commands.iter().map(|command| command as &dyn Experiment));
    let mut line = Line::new(quiet);
    let run = ascertain::run::run(plan, &registry, recording, &mut line)?;
    drop(line);
    for failure in commands.iter().flat_map(CommandExperiment::cleanup_failures) {
        output::note(&format!("warning: {failure}"));
    }
    Ok(run)
}
