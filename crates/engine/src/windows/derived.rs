//! Derived series of a long measurement, computed while the observations come.

use std::convert::Infallible;

use ascertain_streams::{Advance, Engine, Evidence, Failure, OneClock, Plan, PlanOptions, Unit as StreamUnit};

use super::{MemoryReport, SeriesReport, SeriesWindow, WindowError};
use crate::experiment::Spec;
use crate::unit::Unit;

/// Most observations that are passed to the series at once.
pub(super) const BLOCK: usize = 1024;

/// Plans the expressions over the metrics of a command.
///
/// # Errors
/// If an expression is refused, or reads its observations twice.
pub(super) fn plans(expressions: &[String], spec: &Spec, has_ranges: bool) -> Result<Vec<Plan>, WindowError> {
    let unit = |unit: Unit| StreamUnit::of_symbol(unit.symbol()).unwrap_or(StreamUnit::ONE);
    let metrics: Vec<(&str, StreamUnit)> =
        spec.metrics.iter().map(|metric| (metric.name.as_str(), unit(metric.unit))).collect();
    let catalogue = OneClock::new(&metrics);
    let planned = |expression: &String| {
        let refused = |reason: String| WindowError::Series { expression: expression.clone(), reason };
        let block = if has_ranges { 1 } else { BLOCK };
        let plan = Plan::with(expression, &catalogue, PlanOptions { block, has_ranges });
        let plan = plan.map_err(|error| refused(error.to_string()))?;
        if plan.readings() > 1 {
            return Err(refused(
                "`again` reads the observations a second time, and a long measurement does not keep them; use `hold`, or \
                 compute the series from the recorded observations afterwards"
                    .into(),
            ));
        }
        Ok(plan)
    };
    expressions.iter().map(planned).collect()
}

/// A derived series, with its results by window.
pub(super) struct LiveSeries<'p> {
    plan: &'p Plan,
    engine: Engine<'p>,
    open: Results,
    windows: Vec<SeriesWindow>,
}

/// The results in the open window.
#[derive(Clone, Copy, Default)]
struct Results {
    results: u64,
    nulls: u64,
    finite: u64,
    sum: f64,
    least: f64,
    most: f64,
}

impl Results {
    fn add(&mut self, low: f64, high: f64) {
        self.results += 1;
        if low.is_nan() || high.is_nan() {
            self.nulls += 1;
        } else if low.is_finite() && high.is_finite() {
            if self.finite == 0 {
                (self.least, self.most) = (f64::INFINITY, f64::NEG_INFINITY);
            }
            self.finite += 1;
            self.sum += f64::midpoint(low, high);
            (self.least, self.most) = (self.least.min(low), self.most.max(high));
        }
    }

    fn summary(self) -> SeriesWindow {
        let some = |value: f64| (self.finite > 0).then_some(value);
        SeriesWindow {
            results: self.results,
            nulls: self.nulls,
            least: some(self.least),
            mean: some(self.sum / self.finite as f64),
            most: some(self.most),
        }
    }
}

impl<'p> LiveSeries<'p> {
    /// Adds the memory of a series to a report.
    pub fn announce(plan: &Plan, windows: u64, report: &mut MemoryReport) {
        report.add(format!("series {}", plan.text()), plan.memory().total());
        report.add(format!("figures of {}", plan.text()), windows * size_of::<SeriesWindow>() as u64);
    }

    /// Allocates the memory of a series.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(plan: &'p Plan, windows: u64) -> Result<LiveSeries<'p>, WindowError> {
        let engine = Engine::new(plan).map_err(|error| WindowError::State(error.to_string()))?;
        Ok(LiveSeries { plan, engine, open: Results::default(), windows: Vec::with_capacity(windows as usize) })
    }

    /// Adds observations. Each column has the lower and the upper bounds of a metric.
    ///
    /// # Errors
    /// If a buffer of the expression is full.
    pub fn add(&mut self, columns: &[[&[f64]; 2]], times: &[f64]) -> Result<(), WindowError> {
        let mut feed = Feed { columns, times, start: 0, end: 0 };
        let open = &mut self.open;
        let ran = self.engine.run(&mut feed, |results| {
            results.lows.iter().zip(results.highs).for_each(|(low, high)| open.add(*low, *high));
            true
        });
        ran.map_err(|failure| {
            let reason = match failure {
                Failure::Run(error) => error.to_string(),
                Failure::Evidence(never) => match never {},
            };
            WindowError::Series { expression: self.plan.text().to_string(), reason }
        })
    }

    /// Ends the open window.
    pub fn end_window(&mut self) {
        if self.windows.len() < self.windows.capacity() {
            self.windows.push(std::mem::take(&mut self.open).summary());
        }
    }

    pub fn report(self) -> SeriesReport {
        const UNITS: [Unit; 5] = [Unit::Nanosecond, Unit::Byte, Unit::BytePerSecond, Unit::PerSecond, Unit::One];
        let symbol = self.plan.unit().symbol();
        let unit = UNITS.into_iter().find(|unit| Some(unit.symbol()) == symbol).unwrap_or(Unit::One);
        SeriesReport { expression: self.plan.text().to_string(), unit, windows: self.windows }
    }
}

/// Observations that have just come.
struct Feed<'a> {
    columns: &'a [[&'a [f64]; 2]],
    times: &'a [f64],
    start: usize,
    end: usize,
}

impl Evidence for Feed<'_> {
    type Error = Infallible;

    fn advance(&mut self, _: usize, _: Option<usize>, most: usize) -> Result<Advance, Infallible> {
        self.start = self.end;
        self.end = (self.start + most).min(self.times.len());
        Ok(Advance { clock: 0, observations: self.end - self.start })
    }

    fn fill(&self, _: usize, series: usize, lows: &mut [f64], highs: &mut [f64]) {
        let [all_lows, all_highs] = self.columns[series];
        lows.copy_from_slice(&all_lows[self.start..self.end]);
        if !highs.is_empty() {
            highs.copy_from_slice(&all_highs[self.start..self.end]);
        }
    }

    fn fill_times(&self, _: usize, times: &mut [f64]) {
        times.copy_from_slice(&self.times[self.start..self.end]);
    }
}
