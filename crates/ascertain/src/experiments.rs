//! What experiments measure here, and whether claims about them hold.

use std::time::Duration;

use ascertain_engine::claim::Claim;
use ascertain_engine::plan::{Config, Plan, Table};

use crate::request::{GatedVerdict, Request, Terms};

/// Its name in `run.json`, which is that of its subcommand.
pub const USE_CASE: &str = "run";

/// Time for each experiment that is named.
const MAX_TIME_EACH: Duration = Duration::from_secs(45);

/// Experiments to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiments {
    /// Their arms.
    pub tables: Vec<Table>,
    /// Trials of each table.
    pub trials: u64,
    /// Claims to be judged meanwhile.
    pub claims: Vec<Claim>,
    /// The verdicts that fail.
    pub fail_on: Vec<GatedVerdict>,
    /// Error, time, trials, seed.
    pub terms: Terms,
}

impl Experiments {
    /// What to measure and judge. `named` experiments share the time.
    #[must_use]
    pub fn plan(self, named: usize) -> (Request, Plan) {
        let max_time = MAX_TIME_EACH * u32::try_from(named).unwrap_or(u32::MAX);
        let config = Config { table_trials: Some(self.trials), ..self.terms.config(max_time) };
        let request = Request { fail_on: self.fail_on, ..Request::new(USE_CASE) };
        (request, Plan { claims: self.claims, tables: self.tables, commands: Vec::new(), config })
    }
}
