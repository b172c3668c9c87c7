//! Does a command succeed, and in time, often enough.

use std::time::Duration;

use ascertain_engine::claim::{Claim, Judging, Test};
use ascertain_engine::command::CommandSet;
use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::predicate::Predicate;
use ascertain_report::figure::exact_percent;
use ascertain_stats::{Verdict, soonest};

use crate::error::Error;
use crate::request::{GatedVerdict, Request, Terms};

/// Its name in `run.json`, which is that of its subcommand.
pub const USE_CASE: &str = "slo";

const MAX_TIME: Duration = Duration::from_secs(30);

/// A share of observations of one command that must succeed.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// The command alone; its `id` is `slo`.
    pub command: CommandSet,
    /// The share, in (0, 1).
    pub at_least: f64,
    /// The conditions of a success: comparisons of `wall`, `user`, `system`, `memory_peak`, `exit` or a
    /// [printed](CommandSet::printed) metric, such as `wall <= 200 ms`. Unless one tests `exit`, it must be 0.
    pub require: Vec<String>,
    /// Spread the fewest trials that can decide over that long.
    pub spread: Option<Duration>,
    /// Rates this close to the one asked for need not be told apart.
    pub margin: Option<f64>,
    /// Trials that are thrown away first.
    pub warmup: u64,
    /// The verdicts that fail.
    pub fail_on: Vec<GatedVerdict>,
    /// Whether the rate and the quantiles are drawn.
    pub plot: bool,
    /// Error, time, trials, seed.
    pub terms: Terms,
}

impl Slo {
    /// Without options; undecided and refuted fail.
    #[must_use]
    pub fn new(command: CommandSet, at_least: f64, require: &str) -> Slo {
        Slo {
            command,
            at_least,
            require: vec![require.to_string()],
            spread: None,
            margin: None,
            warmup: 0,
            fail_on: vec![GatedVerdict::Refuted, GatedVerdict::Undecided],
            plot: false,
            terms: Terms::default(),
        }
    }

    /// What to measure and judge.
    ///
    /// # Errors
    /// When what is required is not a predicate on a command's metrics.
    pub fn plan(self) -> Result<(Request, Plan), Error> {
        let metrics = self.command.metrics();
        let required = self.require.join(" and ");
        let asked = if required.is_empty() { None } else { Some(Predicate::parse(&required, &metrics)?) };
        let exit = metrics.iter().position(|metric| metric.name == "exit");
        let speaks_of_exit = |predicate: &Predicate| exit.is_some_and(|exit| predicate.mentions(exit));
        let predicate = match asked {
            Some(predicate) if speaks_of_exit(&predicate) => predicate,
            // Said, so that a failing command is not taken for a slow one.
            Some(_) => Predicate::parse(&format!("exit == 0 and {required}"), &metrics)?,
            None => Predicate::parse("exit == 0", &metrics)?,
        };
        let Some(named) = self.command.commands.first() else {
            return Err(Error::Request("there is no command".into()));
        };
        let arm = Arm { variant: named.name.clone(), point: Point::default() };
        let claim = Claim {
            id: self.command.id.clone(),
            says: says(&named.line, &predicate.spelled(&metrics), self.at_least),
            source: String::new(),
            source_value: String::new(),
            analysis: String::new(),
            restated: String::new(),
            experiment: self.command.id.clone(),
            tests: vec![Test::Predicate { arm: arm.clone(), predicate }],
            judging: Judging::Rate,
            rate: self.at_least,
            margin: self.margin,
            error: None,
            look_every: self.command.requests.as_ref().map_or(1, Vec::len) as u64,
            max_time: None,
            max_trials: None,
            counters: Vec::new(),
        };
        let config = self.config();
        let tables = vec![Table { experiment: self.command.id.clone(), arms: vec![arm] }];
        let request = Request { fail_on: self.fail_on, plot: self.plot, ..Request::new(USE_CASE) };
        Ok((request, Plan { claims: vec![claim], tables, commands: vec![self.command], config }))
    }

    fn config(&self) -> Config {
        // The soonest that it could hold: refuting takes fewer trials.
        let rate = self.at_least - self.margin.unwrap_or(0.0);
        let shortest = soonest(Verdict::Holds, rate, self.terms.error);
        let gap = self.spread.map(|spread| spread.div_f64(shortest as f64));
        // A verdict rarely comes at the soonest: leave room for four times as many trials.
        let max_time = self.spread.map_or(MAX_TIME, |spread| MAX_TIME + 4 * spread);
        Config { gap, warmup_trials: self.warmup, ..self.terms.config(max_time) }
    }
}

fn says(line: &str, predicate: &str, at_least: f64) -> String {
    format!("{line}: {predicate} in at least {} of the trials", exact_percent(at_least))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 times the double 0.29 is 28.999999999999996.
    #[test]
    fn the_share_is_said_as_it_was_given() {
        assert_eq!(says("true", "exit == 0", 0.29), "true: exit == 0 in at least 29 % of the trials");
        assert_eq!(says("true", "exit == 0", 0.9999), "true: exit == 0 in at least 99.99 % of the trials");
    }
}
