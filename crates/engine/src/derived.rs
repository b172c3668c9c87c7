//! Derived metrics: expressions over the metrics of an arm, as claims may use them.

use ascertain_streams::{OneClock, Plan, PlanOptions, Problem, Unit as StreamUnit, is_call, parse};

use crate::claim::Measure;
use crate::experiment::{Better, Metric, Spec};
use crate::unit::Unit;

/// The units of metrics.
const UNITS: [Unit; 5] = [Unit::Nanosecond, Unit::Byte, Unit::BytePerSecond, Unit::PerSecond, Unit::One];

/// An expression over metrics, of which each value comes from trials of its own.
#[derive(Clone, Debug)]
pub(crate) struct DerivedMetric {
    pub plan: Plan,
    /// For each series of the plan, the index of its metric in the experiment.
    pub inputs: Vec<usize>,
    unit: Unit,
    better: Option<Better>,
}

/// Returns whether a text that is not the name of a metric is meant as an expression, and not as the pattern of a printed
/// metric.
pub(crate) fn is_expression(text: &str) -> bool {
    let is_name = !text.contains(['(', ')', '+', '*', '/']) && !text.contains(" - ");
    !is_name && (is_call(text) || parse(text).is_ok())
}

impl DerivedMetric {
    /// Plans an expression over the metrics of an experiment.
    ///
    /// # Errors
    /// A message for the user, if the expression is refused, or if its values depend on one another.
    pub fn new(text: &str, spec: &Spec) -> Result<DerivedMetric, String> {
        let unit = |unit: Unit| StreamUnit::of_symbol(unit.symbol()).unwrap_or(StreamUnit::ONE);
        let metrics: Vec<(&str, StreamUnit)> =
            spec.metrics.iter().map(|metric| (metric.name.as_str(), unit(metric.unit))).collect();
        let options = PlanOptions { block: 1, has_ranges: true, is_endless: false };
        let plan = Plan::with(text, &OneClock::new(&metrics), options).map_err(|error| match error.problem() {
            Problem::Series(problem) => problem.replace("there is no series", "there is no metric"),
            _ => error.to_string(),
        })?;
        plan.check_independent().map_err(|error| error.problem().to_string())?;
        if plan.uses_times() {
            return Err("a window of time has an unknown number of trials; use a window \
                        of a number of trials, such as `mean(window(wall, 10))`"
                .into());
        }
        let inputs = plan.series();
        let symbol = plan.unit().symbol();
        let unit = UNITS.into_iter().find(|unit| Some(unit.symbol()) == symbol).ok_or_else(|| {
            "the expression is a condition, and a claim compares numbers; use a predicate on the numbers".to_string()
        })?;
        let better = direction(unit, inputs.iter().map(|input| &spec.metrics[*input]));
        Ok(DerivedMetric { plan, inputs, unit, better })
    }

    /// Returns the number of trials for each value; `None` if `where` selects trials.
    pub fn trials_per_value(&self) -> Option<u64> {
        self.plan.observations_per_result()
    }

    /// Returns the better direction of the values; `None` if it is unknown.
    pub fn better(&self) -> Option<Better> {
        self.better
    }

    /// Returns the expression as a metric with this text as its name.
    pub fn metric(&self, text: &str) -> Metric {
        Metric::new(text, "", self.unit, self.better.unwrap_or(Better::Lower))
    }

    /// Returns the expression as a measure with this text as its name.
    pub fn measure(&self, text: &str, spec: &Spec) -> Measure {
        let inputs = self.inputs.iter().map(|input| spec.metrics[*input].name.clone()).collect();
        Measure { inputs, ..(&self.metric(text)).into() }
    }
}

/// Returns the better direction of an expression in this unit. It is the direction of the metrics, if all have this unit
/// and the same direction. Otherwise the unit decides: less time and memory, and higher rates.
fn direction<'m>(unit: Unit, metrics: impl Iterator<Item = &'m Metric> + Clone) -> Option<Better> {
    let first = metrics.clone().next()?;
    let are_alike = |metric: &Metric| metric.unit == unit && metric.better == first.better;
    match unit {
        _ if metrics.clone().all(are_alike) => Some(first.better),
        Unit::Nanosecond | Unit::Byte => Some(Better::Lower),
        Unit::BytePerSecond | Unit::PerSecond => Some(Better::Higher),
        Unit::One => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_expression;

    #[test]
    fn patterns_and_names_are_no_expressions() {
        for text in ["mean(window(wall, 10))", "max(window(wall", "memory / time", "(wall)", "wall - user"] {
            assert!(is_expression(text), "{text}");
        }
        for text in ["wall", "cpu-time", "throughput=([0-9.]+) MB/s", "json:.stats.p99", "([0-9.]+) MB/s", ".a/b"] {
            assert!(!is_expression(text), "{text}");
        }
    }
}
