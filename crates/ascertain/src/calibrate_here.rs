//! Measures how noisy this machine is, and how small a difference it can detect within a minute.

use std::time::Duration;

use ascertain_engine::command::CommandSet;
use ascertain_engine::plan::{Config, Plan, UseCase};

use crate::compare::{self, Compare};
use crate::error::Error;

/// Time limit of one execution of the command. The result is the smallest difference that a comparison detects within a
/// minute, so no execution may take longer than that.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A request to measure how noisy this machine is, by comparing a command with itself. Pass the result to
/// [`calibrate`](ascertain_engine::calibration::calibrate).
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrateHere {
    /// The command line to run.
    pub line: String,
    /// The error probability, the limits of time and trials, and the seed.
    pub config: Config,
}

impl Default for CalibrateHere {
    /// Uses `true`, a command that exists on every machine and does nothing.
    fn default() -> CalibrateHere {
        CalibrateHere { line: "true".into(), config: Config { max_time: Duration::from_secs(10), ..compare::config() } }
    }
}

impl CalibrateHere {
    /// Returns the plan: compare the command with itself until the time is up, even after the answer is known.
    ///
    /// # Errors
    /// If the command line is invalid.
    pub fn plan(self) -> Result<Plan, Error> {
        let commands =
            CommandSet { time_limit: Some(TIME_LIMIT), ..CommandSet::new(compare::ID, [&self.line, &self.line]) };
        let config = Config { until_time_is_up: true, longest_time: None, ..self.config };
        let plan = Compare { config, ..Compare::new(commands) }.plan()?;
        Ok(Plan { use_case: UseCase::CalibrateHere, ..plan })
    }
}
