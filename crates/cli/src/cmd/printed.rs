//! Options of `compare` and `slo` for metrics whose values the commands print.

use anyhow::bail;
use ascertain_engine::command::PrintedMetric;
use ascertain_engine::experiment::Better;

use crate::options::{Word, one_of};

/// Options for the unit and the direction of printed metrics.
#[derive(clap::Args, Clone, Debug)]
pub struct Printed {
    /// Unit of a printed --metric, if it does not follow the figure in the regular expression (give this option once
    /// for all metrics, or once for each)
    #[arg(long, value_name = "UNIT", help_heading = "Judging")]
    unit: Vec<String>,
    /// Direction in which a printed --metric is better (give this option once for all metrics, or once for each)
    /// [default: lower for times and sizes, higher for rates]
    #[arg(long, value_name = "WAY", value_parser = one_of(WAYS), help_heading = "Judging")]
    better: Vec<Better>,
}

const WAYS: &[Word<Better>] = &[
    (&["higher"], "Higher values are better, as for a throughput", Better::Higher),
    (&["lower"], "Lower values are better, as for a latency", Better::Lower),
];

impl Printed {
    /// Returns the given units.
    pub fn units(&self) -> &[String] {
        &self.unit
    }

    /// Returns the printed metrics among `metrics`, with their units and directions.
    pub fn metrics(&self, metrics: &[String]) -> anyhow::Result<Vec<PrintedMetric>> {
        let printed: Vec<&String> = metrics.iter().filter(|metric| PrintedMetric::describes(metric)).collect();
        let count = printed.len();
        for (option, is_given) in [("unit", !self.unit.is_empty()), ("better", !self.better.is_empty())] {
            if is_given && count == 0 {
                bail!(
                    "--{option} needs a metric that the commands print; add --metric NAME=REGEX or --metric json:.PATH"
                );
            }
        }
        let read = |(index, text): (usize, &String)| {
            let mut metric = PrintedMetric::parse(text)?;
            if let Some(unit) = of_metric(&self.unit, "unit", index, count)? {
                metric = metric.in_unit(unit)?;
            }
            if let Some(better) = of_metric(&self.better, "better", index, count)? {
                metric = metric.with_better(*better);
            }
            Ok(metric)
        };
        printed.into_iter().enumerate().map(read).collect()
    }
}

/// Returns the value of an option for the printed metric with this index. An option given once applies to all of them.
fn of_metric<'g, T>(given: &'g [T], option: &str, index: usize, count: usize) -> anyhow::Result<Option<&'g T>> {
    match given {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        each if each.len() == count => Ok(Some(&each[index])),
        each => bail!(
            "--{option} is given {} times for {count} printed metrics; give it once for all of them, or once for each",
            each.len()
        ),
    }
}
