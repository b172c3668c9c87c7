//! Tests whether a command succeeds often enough, and in time.

use std::time::Duration;

use ascertain_engine::claim::{Claim, Hypothesis, Judging, Test};
use ascertain_engine::command::CommandSet;
use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::plan::{Config, Plan, Table, UseCase};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::result::GatedVerdict;
use ascertain_report::figure::exact_percent;
use ascertain_stats::{Verdict, soonest};

use crate::error::Error;

/// Id of the experiment whose variant is the command.
pub const ID: &str = "slo";

/// An objective: a minimum share of successful trials of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// The set that contains only the command to test. The `id` of the set must be [`ID`].
    pub command: CommandSet,
    /// The minimum share of successful trials, in (0, 1).
    pub at_least: f64,
    /// The conditions of a success, such as `wall <= 200 ms`. A condition is on `wall`, `user`, `system`,
    /// `memory_peak`, `exit` or a [printed](CommandSet::printed) metric. If no condition is on `exit`, the exit code
    /// must be 0.
    pub require: Vec<String>,
    /// Time over which the first trials are spread. The number of these trials is the smallest one that can show that
    /// the objective holds. Later trials start at the same mean interval. With `None`, each trial follows the previous
    /// one immediately.
    pub spread: Option<Duration>,
    /// Tolerance around the required share. If the true share is within it, either verdict is acceptable.
    pub margin: Option<f64>,
    /// Time limit; by default 30 s plus four times `spread`.
    pub max_time: Option<Duration>,
    /// All other settings for measuring and judging.
    pub config: Config,
}

impl Slo {
    /// Returns an objective with default settings. The run fails if the objective is refuted or undecided.
    #[must_use]
    pub fn new(command: CommandSet, at_least: f64, require: &str) -> Slo {
        Slo {
            command,
            at_least,
            require: vec![require.to_string()],
            spread: None,
            margin: None,
            max_time: None,
            config: Config { fail_on: vec![GatedVerdict::Refuted, GatedVerdict::Undecided], ..Config::default() },
        }
    }

    /// Returns the plan: the command to measure and the claim to judge.
    ///
    /// # Errors
    /// If a condition is not a predicate on a command's metrics.
    pub fn plan(self) -> Result<Plan, Error> {
        let metrics = self.command.metrics();
        let required = self.require.join(" and ");
        let asked = if required.is_empty() { None } else { Some(Predicate::parse(&required, &metrics)?) };
        let predicate = match asked {
            Some(predicate) if predicate.mentions("exit") => predicate,
            // Show the condition on the exit code to readers, so that a failing command is not mistaken for a slow one.
            Some(_) => Predicate::parse(&format!("exit == 0 and {required}"), &metrics)?,
            None => Predicate::parse("exit == 0", &metrics)?,
        };
        let Some(named) = self.command.commands.first() else {
            return Err(Error::Request("there is no command".into()));
        };
        let arm = Arm { variant: named.name.clone(), point: Point::default() };
        let says = says(&named.line, &predicate.to_string(), self.at_least);
        let test = Test::predicate(arm.clone(), predicate);
        let id = &self.command.id;
        let claim = Claim {
            restated: String::new(),
            asked: Hypothesis { judging: Judging::Rate, margin: self.margin, tests: vec![test.clone()] },
            rate: self.at_least,
            look_every: self.command.requests.as_ref().map_or(1, Vec::len) as u64,
            ..Claim::in_half(id, id.clone(), says, test)
        };
        let config = self.config();
        let tables = vec![Table { experiment: self.command.id.clone(), arms: vec![arm] }];
        Ok(Plan { use_case: UseCase::Slo, claims: vec![claim], tables, commands: vec![self.command], config })
    }

    fn config(&self) -> Config {
        // Smallest number of trials after which the claim can hold. It can be refuted after fewer trials.
        let rate = self.at_least - self.margin.unwrap_or(0.0);
        let shortest = soonest(Verdict::Holds, rate, self.config.error);
        let gap = self.spread.map(|spread| spread.div_f64(shortest as f64));
        // Most verdicts need more than the fewest trials, so allow four times as long.
        let max_time = self.config.max_time + 4 * self.spread.unwrap_or_default();
        Config { gap, max_time: self.max_time.unwrap_or(max_time), ..self.config.clone() }
    }
}

fn says(line: &str, predicate: &str, at_least: f64) -> String {
    format!("{line}: {predicate} in at least {} of the trials", exact_percent(at_least))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share 0.29 must be shown as 29 %, although 100 times the double 0.29 is 28.999999999999996.
    #[test]
    fn the_share_is_said_as_it_was_given() {
        assert_eq!(says("true", "exit == 0", 0.29), "true: exit == 0 in at least 29 % of the trials");
        assert_eq!(says("true", "exit == 0", 0.9999), "true: exit == 0 in at least 99.99 % of the trials");
    }
}
