//! Options of `slo` for long measurements with percentiles by window.

use std::time::Duration;

use anyhow::bail;
use ascertain::slo::Long;
use ascertain_engine::command::LineMetric;
use ascertain_engine::unit::Unit;
use ascertain_engine::windows::Around;

use crate::options::{count, duration, memory_limit};

/// Options for a long measurement.
#[derive(clap::Args, Clone, Debug)]
pub struct Windows {
    /// Time for which to measure, such as `10m`; shows percentiles by window, in memory known beforehand
    ///
    /// The run goes on to its end after a verdict. Without --at-least, there is no verdict. The memory does not depend on
    /// the number of observations, because only some of them are recorded: see --record-every and --around.
    #[arg(long = "for", id = "lasts", value_name = "TIME", value_parser = duration,
          conflicts_with_all = ["max_time", "max_trials", "spread", "plot"], help_heading = "Windows")]
    lasts: Option<Duration>,
    /// Length of a window [default: a sixtieth of the time, rounded, and at least 1 s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "lasts", help_heading = "Windows")]
    window: Option<Duration>,
    /// Mean pause between two observations; each pause has a random length
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "lasts", conflicts_with = "lines",
          help_heading = "Windows")]
    gap: Option<Duration>,
    /// Run the command once, and take an observation from each line that it prints, such as `12.5 ms`
    ///
    /// A line is a number with a unit, or a number in the --unit of all lines. The observations are the metric `value`,
    /// for --require. An observation belongs to the window in which its line arrives.
    #[arg(long, requires = "lasts", help_heading = "Windows",
          conflicts_with_all = ["recorded", "metric", "better", "warmup", "prepare", "conclude", "setup", "cleanup",
                                "output", "show_output", "time_limit"])]
    lines: bool,
    /// Count a line that is not an observation as a failure, instead of ending the run
    #[arg(long, requires = "lines", help_heading = "Windows")]
    count_bad_lines: bool,
    /// Derived series of the observations, computed live: an expression as in `ascertain series`. Give the option again
    /// for further series
    #[arg(long, value_name = "EXPR", requires = "lasts", allow_hyphen_values = true, help_heading = "Windows")]
    series: Vec<String>,
    /// Record every N-th observation [default: every observation at first, and half as many after each 50,000 rows]
    #[arg(long, value_name = "N", requires = "lasts", value_parser = count, help_heading = "Windows")]
    record_every: Option<u64>,
    /// Number of observations to record before each failure, and after it
    #[arg(long, value_name = "N", requires = "lasts", default_value_t = Around::default().observations,
          help_heading = "Windows")]
    around: u64,
    /// Maximum number of observations to record around failures
    #[arg(long, value_name = "N", requires = "lasts", default_value_t = Around::default().most, help_heading = "Windows")]
    around_limit: u64,
    /// Memory limit for buffers and states [default: the memory of the machine, or of the control group]
    #[arg(long, value_name = "SIZE", requires = "lasts", value_parser = memory_limit, help_heading = "Windows")]
    memory: Option<u64>,
}

impl Windows {
    /// Returns the long measurement that the options describe; `None` without `--for`.
    pub fn long(&self) -> Option<Long> {
        Some(Long {
            duration: self.lasts?,
            window: self.window,
            record_every: self.record_every,
            around: Around { observations: self.around, most: self.around_limit },
            series: self.series.clone(),
            memory_limit_bytes: self.memory,
        })
    }

    /// Returns whether the command prints its observations.
    pub fn has_lines(&self) -> bool {
        self.lines
    }

    /// Returns the mean pause between observations.
    pub fn gap(&self) -> Option<Duration> {
        self.gap
    }

    /// Returns the metric of the lines; `None` without `--lines`. `units` has the given units.
    ///
    /// # Errors
    /// If a unit is unknown, or if several are given.
    pub fn lines(&self, units: &[String]) -> anyhow::Result<Option<LineMetric>> {
        if !self.lines {
            return Ok(None);
        }
        let (unit, factor) = match units {
            [] => (Unit::Nanosecond, None),
            [number] if number == "1" => (Unit::One, Some(1.0)),
            [spelling] => match Unit::of_spelling(spelling) {
                Some((unit, factor)) => (unit, Some(factor)),
                None => bail!("--unit {spelling} is not a unit; give a unit such as ms or MB, or 1 for plain numbers"),
            },
            _ => bail!("--unit is given {} times, but all lines have the same unit; give it once", units.len()),
        };
        Ok(Some(LineMetric { unit, factor, counts_bad_lines: self.count_bad_lines }))
    }
}
