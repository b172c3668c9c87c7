//! Derived series of a long measurement, computed while the observations come.

use std::convert::Infallible;

use ascertain_streams::{
    Advance, Engine, Evidence, Failure, OneClock, Plan, PlanOptions, RunError, Unit as StreamUnit, grouped,
};

use super::{MemoryReport, SeriesReport, SeriesWindow, WindowError, WindowPlan};
use crate::experiment::Spec;
use crate::unit::Unit;

/// Most observations that are passed to the series at once.
pub(super) const BLOCK: usize = 1024;

/// Plans the expressions of a run over the metrics of its command.
///
/// # Errors
/// If an expression is refused, or reads its observations twice.
pub(super) fn plans(windows: &WindowPlan, spec: &Spec, has_ranges: bool) -> Result<Vec<Plan>, WindowError> {
    let unit = |unit: Unit| StreamUnit::of_symbol(unit.symbol()).unwrap_or(StreamUnit::ONE);
    let metrics: Vec<(&str, StreamUnit)> =
        spec.metrics.iter().map(|metric| (metric.name.as_str(), unit(metric.unit))).collect();
    let last_ns = u64::try_from(windows.duration.as_nanos()).unwrap_or(u64::MAX).saturating_sub(1);
    let catalogue = OneClock::new(&metrics).with_times([0, last_ns]);
    let planned = |expression: &String| {
        let refused = |reason: String| WindowError::Series { expression: expression.clone(), reason };
        let block = if has_ranges { 1 } else { BLOCK };
        let plan = Plan::with(expression, &catalogue, PlanOptions { block, has_ranges, is_endless: true });
        let plan = plan.map_err(|error| refused(error.without_again().to_string()))?;
        if plan.readings() > 1 {
            return Err(refused(
                "`again` reads the observations a second time, and a long measurement does not keep them; use `hold`, or \
                 compute the series from the recorded observations afterwards"
                    .into(),
            ));
        }
        Ok(plan)
    };
    windows.series.iter().map(planned).collect()
}

/// A derived series, with its results by window.
pub(super) struct LiveSeries<'p> {
    plan: &'p Plan,
    engine: Engine<'p>,
    open: Results,
    windows: Vec<SeriesWindow>,
    /// The error that ended the series. The windows are those before it.
    error: Option<String>,
}

/// The results in the open window.
#[derive(Clone, Copy, Default)]
struct Results {
    results: u64,
    nulls: u64,
    unbounded: u64,
    /// Number of results with a finite lower bound.
    bounded_below: u64,
    /// Sum of the middles of the results with two finite bounds.
    middles: f64,
    /// Sum of the finite lower bounds.
    lows: f64,
    least: f64,
    most: f64,
}

impl Results {
    fn add(&mut self, low: f64, high: f64) {
        if self.results == self.nulls {
            (self.least, self.most) = (f64::INFINITY, f64::NEG_INFINITY);
        }
        self.results += 1;
        if low.is_nan() || high.is_nan() {
            self.nulls += 1;
            return;
        }
        if low.is_finite() {
            self.bounded_below += 1;
            self.lows += low;
        }
        match low.is_finite() && high.is_finite() {
            true => self.middles += f64::midpoint(low, high),
            false => self.unbounded += 1,
        }
        (self.least, self.most) = (self.least.min(low), self.most.max(high));
    }

    fn summary(self) -> SeriesWindow {
        let finite = |value: f64| (self.results > self.nulls && value.is_finite()).then_some(value);
        let sum = if self.unbounded > 0 { self.lows } else { self.middles };
        SeriesWindow {
            results: self.results,
            nulls: self.nulls,
            unbounded: self.unbounded,
            least: finite(self.least),
            // Without a lower bound of each result, there is none of their mean.
            mean: finite(sum / self.bounded_below as f64).filter(|_| self.least > f64::NEG_INFINITY),
            most: finite(self.most),
        }
    }
}

impl<'p> LiveSeries<'p> {
    /// Adds the memory of a series to a report.
    pub fn announce(plan: &Plan, windows: u64, report: &mut MemoryReport) {
        let state = size_of::<LiveSeries>() as u64;
        report.add(format!("series {}", plan.text()), plan.memory().total() + state);
        report.add(format!("figures of {}", plan.text()), windows * size_of::<SeriesWindow>() as u64);
    }

    /// Allocates the memory of a series.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(plan: &'p Plan, windows: u64) -> Result<LiveSeries<'p>, WindowError> {
        let engine = Engine::new(plan).map_err(|error| WindowError::State(error.to_string()))?;
        Ok(LiveSeries {
            plan,
            engine,
            open: Results::default(),
            windows: Vec::with_capacity(windows as usize),
            error: None,
        })
    }

    /// Adds observations. Each column has the lower and the upper bounds of a metric. If a buffer of the expression is
    /// full, the series ends, and the measurement goes on without it.
    pub fn add(&mut self, columns: &[[&[f64]; 2]], times: &[f64]) {
        if self.error.is_some() {
            return;
        }
        let mut feed = Feed { columns, times, start: 0, end: 0 };
        let open = &mut self.open;
        let ran = self.engine.run(&mut feed, |results| {
            results.lows.iter().zip(results.highs).for_each(|(low, high)| open.add(*low, *high));
            true
        });
        if let Err(failure) = ran {
            if self.windows.len() < self.windows.capacity() {
                self.windows.push(std::mem::take(open).summary());
            }
            self.error = Some(match failure {
                Failure::Run(RunError::BufferFull { values, results }) => format!(
                    "the buffer of {} values is full after {} results; allow more values, or use `hold`",
                    grouped(values),
                    grouped(results)
                ),
                Failure::Run(error) => error.to_string(),
                Failure::Evidence(never) => match never {},
            });
        }
    }

    /// Ends the open window.
    pub fn end_window(&mut self) {
        if self.error.is_none() && self.windows.len() < self.windows.capacity() {
            self.windows.push(std::mem::take(&mut self.open).summary());
        }
    }

    pub fn report(self) -> SeriesReport {
        const UNITS: [Unit; 5] = [Unit::Nanosecond, Unit::Byte, Unit::BytePerSecond, Unit::PerSecond, Unit::One];
        let symbol = self.plan.unit().symbol();
        let unit = UNITS.into_iter().find(|unit| Some(unit.symbol()) == symbol).unwrap_or(Unit::One);
        SeriesReport { expression: self.plan.text().to_string(), unit, windows: self.windows, error: self.error }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::claim::Test;
    use crate::experiment::{Arm, Better, Metric, Point};
    use crate::windows::Around;

    fn planned(expression: &str) -> Result<Vec<Plan>, WindowError> {
        let arm = Arm { variant: "true".into(), point: Point::default() };
        let windows = WindowPlan {
            duration: Duration::from_secs(10),
            window: Duration::from_secs(1),
            success: Test::Predicate { arm, predicate: String::new(), measure: None, conditions: Vec::new() },
            record_every: None,
            around: Around::default(),
            series: vec![expression.to_string()],
            memory_limit_bytes: None,
        };
        let spec = Spec { metrics: vec![Metric::new("wall", "", Unit::Nanosecond, Better::Lower)], ..Spec::default() };
        plans(&windows, &spec, false)
    }

    #[test]
    fn a_window_as_long_as_the_run_is_refused() {
        assert!(planned("mean(window(wall, 9 s))").is_ok());
        let refused = planned("mean(window(wall, 10 s))").unwrap_err().to_string();
        assert!(refused.contains("no window of 10 s ends before the last observation of `wall`"), "{refused}");
    }

    /// The second side waits in a buffer of ten values, which is full after 21 observations.
    #[test]
    fn a_full_buffer_ends_the_series() {
        let plans = planned("every(wall, 2) / buffer(wall, 10)").unwrap();
        let mut series = LiveSeries::new(&plans[0], 3).unwrap();
        for _ in 0..3 {
            series.add(&[[&[1.0; 15], &[1.0; 15]]], &[0.0; 15]);
            series.end_window();
        }
        let SeriesReport { windows, error, .. } = series.report();
        let results: Vec<u64> = windows.iter().map(|window| window.results).collect();
        // No window comes after the end of the series. Its last result is that of the 21st observation.
        assert_eq!(results, [8, 3]);
        let error = error.unwrap();
        assert!(error.contains("the buffer of 10 values is full") && !error.contains("again"), "{error}");
    }

    fn summary(results: &[[f64; 2]]) -> SeriesWindow {
        let mut window = Results::default();
        results.iter().for_each(|[low, high]| window.add(*low, *high));
        window.summary()
    }

    #[test]
    fn results_without_an_upper_bound_count_with_their_lower_bound() {
        let null = [f64::NAN; 2];
        let window = summary(&[null, [1.0, 3.0], [200.0, f64::INFINITY], null, [6.0, 6.0]]);
        let expected =
            SeriesWindow { results: 5, nulls: 2, unbounded: 1, least: Some(1.0), mean: Some(69.0), most: None };
        assert_eq!(window, expected);
        let known = summary(&[null, [1.0, 3.0], [6.0, 6.0]]);
        assert_eq!((known.unbounded, known.least, known.mean, known.most), (0, Some(1.0), Some(4.0), Some(6.0)));
        let open = summary(&[[f64::NEG_INFINITY, 3.0], [6.0, 6.0]]);
        assert_eq!((open.unbounded, open.least, open.mean, open.most), (1, None, None, Some(6.0)));
        let infinite = summary(&[[f64::INFINITY; 2]]);
        assert_eq!((infinite.unbounded, infinite.least, infinite.mean, infinite.most), (1, None, None, None));
        assert_eq!(summary(&[null]), SeriesWindow { results: 1, nulls: 1, ..SeriesWindow::default() });
    }
}
