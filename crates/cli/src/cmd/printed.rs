//! Metrics that commands print, as options of `compare` and `slo`.

use anyhow::bail;
use ascertain_engine::command::PrintedMetric;
use ascertain_engine::experiment::Better;

use crate::options::{Word, one_of};

/// The unit and the direction of printed metrics.
#[derive(clap::Args, Clone, Debug)]
pub struct Printed {
    /// Unit of the printed --metric, such as `ms` or `MB/s`, if it does not follow the figure in its regular
    /// expression (once for all, or one for each)
    #[arg(long, value_name = "UNIT", help_heading = "Judging")]
    unit: Vec<String>,
    /// Which way the printed --metric is better; times and sizes are better if they are lower, and rates if they are
    /// higher (once for all, or one for each)
    #[arg(long, value_name = "WAY", value_parser = one_of(WAYS), help_heading = "Judging")]
    better: Vec<Better>,
}

const WAYS: &[Word<Better>] = &[
    (&["higher"], "More is better: a throughput", Better::Higher),
    (&["lower"], "Less is better: a latency", Better::Lower),
];

impl Printed {
    /// The printed ones of these metrics.
    pub fn metrics(&self, metrics: &[String]) -> anyhow::Result<Vec<PrintedMetric>> {
        let printed: Vec<&String> = metrics.iter().filter(|metric| PrintedMetric::describes(metric)).collect();
        let count = printed.len();
        for (option, is_given) in [("unit", !self.unit.is_empty()), ("better", !self.better.is_empty())] {
            if is_given && count == 0 {
                bail!("--{option} is for a metric that the commands print: --metric NAME=REGEX or --metric json:.PATH");
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

/// The value of an option for the printed metric with this index.
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
