//! What a run is asked to do, as plain data: `run.json` keeps it, so that a run can be continued.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::claim::Claim;
use crate::command::CommandSet;
use crate::experiment::{Arm, Experiment};
use crate::outcome::Gate;

/// Everything a run is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What is to be judged.
    pub claims: Vec<Claim>,
    /// What is to be measured whether or not a claim needs it.
    pub tables: Vec<Table>,
    /// The experiments that are commands; all others are in the program.
    pub commands: Vec<CommandSet>,
    /// How.
    pub config: Config,
}

impl Plan {
    /// Every arm that a table or a claim asks for, with its experiment; one that several ask for, as often.
    pub fn arms(&self) -> impl Iterator<Item = (&str, &Arm)> {
        let tables = self.tables.iter().flat_map(|table| table.arms.iter().map(|arm| (table.experiment.as_str(), arm)));
        let claims = self.claims.iter().flat_map(|claim| {
            let arms = claim.arms().into_iter();
            arms.map(|arm| (claim.experiment.as_str(), arm))
        });
        tables.chain(claims)
    }
}

/// Arms of one experiment that are measured together for their own sake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The experiment's id.
    pub experiment: String,
    /// Its arms.
    pub arms: Vec<Arm>,
}

/// How a run is to go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The chance that any verdict of the run is wrong, in (0, 1).
    pub error: f64,
    /// No new trial after that.
    pub max_time: Duration,
    /// No new trial of a lane after that many.
    pub max_trials: Option<u64>,
    /// Exactly so many trials of each lane, whatever is decided.
    pub exact_trials: Option<u64>,
    /// Trials of each lane that are thrown away first.
    pub warmup_trials: u64,
    /// Where the plan's random numbers start.
    pub seed: u64,
    /// Go on until each ratio's interval is this narrow: half of its width by its middle.
    pub precision: Option<f64>,
    /// `compare`: answer from the ratio's interval against [1/(1+m), 1+m].
    pub margin: Option<f64>,
    /// What comparisons fail for, where somebody gates on it: with a margin they end as soon as that is settled.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// Start trials at random moments, this far apart on average.
    pub gap: Option<Duration>,
    /// Trials that a table takes, after which its arms are measured no more; `None`: its arms are in
    /// every trial, for as long as a claim is open.
    pub table_trials: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            error: 0.001,
            max_time: Duration::from_secs(30),
            max_trials: None,
            exact_trials: None,
            warmup_trials: 0,
            seed: 0,
            precision: None,
            margin: None,
            gate: None,
            gap: None,
            table_trials: None,
        }
    }
}

/// The experiments that a run may name.
pub type Registry<'a> = [&'a dyn Experiment];
