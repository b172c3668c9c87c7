//! Measures experiments, and judges claims about them.

use std::time::Duration;

use ascertain_engine::claim::Claim;
use ascertain_engine::experiment::Experiment;
use ascertain_engine::plan::{Config, Plan, Table, UseCase};

/// A request to measure experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiments {
    /// The arms to measure, in one table for each experiment.
    pub tables: Vec<Table>,
    /// Claims to judge in the same run. They may also be about experiments without a table in `tables`.
    pub claims: Vec<Claim>,
    /// Settings for measuring and judging. By default [`config`].
    pub config: Config,
}

/// Default time for an experiment that states no other.
const RUN_TIME: Duration = Duration::from_secs(45);

/// Returns the default configuration for a run of these experiments: for each, the time that it states, or 45 s.
#[must_use]
pub fn config(experiments: &[&dyn Experiment]) -> Config {
    let max_time = experiments.iter().map(|experiment| experiment.run_time().unwrap_or(RUN_TIME)).sum();
    Config { max_time, ..Config::default() }
}

impl Experiments {
    /// Returns the plan: the tables to measure and the claims to judge.
    #[must_use]
    pub fn plan(self) -> Plan {
        let Experiments { tables, claims, config } = self;
        Plan { use_case: UseCase::Run, claims, tables, commands: Vec::new(), config, windows: None }
    }
}
