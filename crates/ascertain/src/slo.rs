//! Tests whether a command succeeds often enough, and in time.

use std::time::Duration;

use ascertain_engine::claim::{Claim, Hypothesis, Judging, Test};
use ascertain_engine::command::CommandSet;
use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::plan::{Config, Plan, Table, UseCase};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::result::GatedVerdict;
use ascertain_engine::windows::{Around, WindowPlan, default_window};
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
    /// The minimum share of successful trials, in (0, 1). `None` for a [long measurement](Slo::long) without a verdict.
    pub at_least: Option<f64>,
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
    /// A long measurement with percentiles by window; `None` to end as soon as there is a verdict.
    pub long: Option<Long>,
    /// All other settings for measuring and judging.
    pub config: Config,
}

/// The settings of a long measurement. Its memory is known before it starts, and does not depend on the number of
/// observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Long {
    /// Duration of the run. It goes on to its end after a verdict.
    pub duration: Duration,
    /// Length of a window; `None` for [a usual length](default_window).
    pub window: Option<Duration>,
    /// Every n-th observation is recorded; `None` for an n that grows with the run, so that there are at most about 10⁶
    /// rows.
    pub record_every: Option<u64>,
    /// The observations that are recorded around failures.
    pub around: Around,
    /// Expressions over the metrics, which are computed live.
    pub series: Vec<String>,
    /// Limit of the memory in bytes; `None` for the memory of the machine.
    pub memory_limit_bytes: Option<u64>,
}

impl Long {
    /// Returns a long measurement with default settings.
    #[must_use]
    pub fn new(duration: Duration) -> Long {
        let (around, series) = (Around::default(), Vec::new());
        Long { duration, window: None, record_every: None, around, series, memory_limit_bytes: None }
    }
}

impl Slo {
    /// Returns an objective with default settings. The run fails if the objective is refuted or undecided.
    #[must_use]
    pub fn new(command: CommandSet, at_least: f64, require: &str) -> Slo {
        Slo {
            command,
            at_least: Some(at_least),
            require: vec![require.to_string()],
            spread: None,
            long: None,
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
            // A command that prints its observations has no exit code for each of them.
            None if self.command.lines.is_some() => Predicate(Vec::new()),
            Some(predicate) if self.command.lines.is_some() || predicate.mentions("exit") => predicate,
            // Show the condition on the exit code to readers, so that a failing command is not mistaken for a slow one.
            Some(_) => Predicate::parse(&format!("exit == 0 and {required}"), &metrics)?,
            None => Predicate::parse("exit == 0", &metrics)?,
        };
        if predicate.0.is_empty() && self.at_least.is_some() {
            return Err(Error::Request("a share of successes needs a condition, such as `value <= 20 ms`".into()));
        }
        let Some(named) = self.command.commands.first() else {
            return Err(Error::Request("there is no command".into()));
        };
        let arm = Arm { variant: named.name.clone(), point: Point::default() };
        let text = predicate.to_string();
        let test = Test::predicate(arm.clone(), predicate);
        let id = &self.command.id;
        let claim = |at_least: f64| Claim {
            restated: String::new(),
            asked: Hypothesis { judging: Judging::Rate, margin: self.margin, tests: vec![test.clone()] },
            rate: at_least,
            look_every: self.command.requests.as_ref().map_or(1, Vec::len) as u64,
            ..Claim::in_half(id, id.clone(), says(&named.line, &text, at_least), test.clone())
        };
        let claims: Vec<Claim> = self.at_least.map(claim).into_iter().collect();
        if claims.is_empty() && self.long.is_none() {
            return Err(Error::Request("an objective needs the share of trials that must succeed".into()));
        }
        let config = self.config();
        let tables = vec![Table { experiment: self.command.id.clone(), arms: vec![arm] }];
        let windows = self.long.map(|long| WindowPlan {
            duration: long.duration,
            window: long.window.unwrap_or_else(|| default_window(long.duration)),
            success: test,
            record_every: long.record_every,
            around: long.around,
            series: long.series,
            memory_limit_bytes: long.memory_limit_bytes,
        });
        Ok(Plan { use_case: UseCase::Slo, claims, tables, commands: vec![self.command], config, windows })
    }

    fn config(&self) -> Config {
        let (Some(at_least), None) = (self.at_least, &self.long) else {
            let max_time = self.long.as_ref().map_or(self.config.max_time, |long| long.duration);
            return Config { max_time, ..self.config.clone() };
        };
        // Smallest number of trials after which the claim can hold. It can be refuted after fewer trials.
        let rate = at_least - self.margin.unwrap_or(0.0);
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
    use ascertain_engine::command::LineMetric;
    use ascertain_engine::unit::Unit;

    use super::*;

    /// The share 0.29 must be shown as 29 %, although 100 times the double 0.29 is 28.999999999999996.
    #[test]
    fn the_share_is_said_as_it_was_given() {
        assert_eq!(says("true", "exit == 0", 0.29), "true: exit == 0 in at least 29 % of the trials");
        assert_eq!(says("true", "exit == 0", 0.9999), "true: exit == 0 in at least 99.99 % of the trials");
    }

    #[test]
    fn a_long_measurement_has_windows_and_perhaps_a_claim() {
        let command = CommandSet::new(ID, ["true"]);
        let long = Some(Long::new(Duration::from_secs(600)));
        let slo = Slo { long, at_least: None, ..Slo::new(command.clone(), 0.99, "wall <= 20 ms") };
        let plan = slo.clone().plan().unwrap();
        let windows = plan.windows.unwrap();
        assert_eq!((plan.claims.len(), windows.windows()), (0, 60));
        assert!(
            matches!(&windows.success, Test::Predicate { predicate, .. } if predicate.starts_with("exit == 0 and wall"))
        );
        let judged = Slo { at_least: Some(0.99), ..slo.clone() }.plan().unwrap();
        assert_eq!(judged.claims[0].asked.tests, [windows.success]);
        assert_eq!(judged.config.max_time, Duration::from_secs(600));
        assert!(Slo { long: None, ..slo }.plan().is_err());
    }

    #[test]
    fn lines_have_a_value_and_no_exit_code() {
        let lines = Some(LineMetric { unit: Unit::Nanosecond, factor: None, counts_bad_lines: false });
        let command = CommandSet { lines, ..CommandSet::new(ID, ["cat times"]) };
        let long = Some(Long::new(Duration::from_secs(60)));
        let slo = Slo { long, require: vec!["value <= 20 ms".into()], ..Slo::new(command, 0.99, "") };
        assert!(slo.clone().plan().unwrap().claims[0].says.contains("value <= 20 ms"));
        let open = Slo { require: Vec::new(), ..slo };
        assert!(open.clone().plan().unwrap_err().to_string().contains("needs a condition"));
        assert!(Slo { at_least: None, ..open }.plan().unwrap().claims.is_empty());
    }
}
