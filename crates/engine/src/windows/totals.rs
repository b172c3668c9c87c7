//! The values of all metrics over a whole long measurement.

use ascertain_stats::Moments;
use ascertain_streams::RunError;

use super::MemoryReport;
use super::meter;
use super::values::WindowValues;
use crate::experiment::{Arm, Metric, Spec};
use crate::outcome::PointSummary;
use crate::unit::Unit;
use crate::values::Bounds;

/// Returns the range of a value for a table. A value that only the end of the run cut off is left out, because it says
/// nothing about the command.
pub(super) fn counted(bounds: Bounds, unit: Unit, is_interrupted: bool) -> Bounds {
    if is_interrupted && bounds.value().is_none() { Bounds::NONE } else { bounds.in_unit(unit) }
}

/// The values of a metric over the whole run.
pub(super) struct MetricTotal<'m> {
    metric: &'m Metric,
    /// The values; `None` for the metric whose quantiles are reported by window.
    values: Option<WindowValues>,
    moments: Moments,
    censored: u64,
    limit: Option<f64>,
    seen: Option<f64>,
}

impl<'m> MetricTotal<'m> {
    pub fn new(metric: &'m Metric, is_primary: bool) -> Result<MetricTotal<'m>, RunError> {
        let values = if is_primary { None } else { Some(meter::values(metric.unit == Unit::One, true)?) };
        Ok(MetricTotal { metric, values, moments: Moments::new(), censored: 0, limit: None, seen: None })
    }

    /// Adds the memory of the totals of all metrics to a report.
    pub fn announce(spec: &Spec, primary: usize, report: &mut MemoryReport) {
        let others = spec.metrics.iter().enumerate().filter(|(index, _)| *index != primary);
        let bytes: u64 = others.map(|(_, metric)| meter::values_bytes(metric.unit == Unit::One, true)).sum();
        let states = (spec.metrics.len() * size_of::<MetricTotal>()) as u64;
        report.add("totals of the metrics", bytes + states);
    }

    pub fn add(&mut self, bounds: Bounds, is_interrupted: bool) {
        let value = counted(bounds, self.metric.unit, is_interrupted);
        if value.is_none() {
            return;
        }
        let seen = Some(bounds.low).filter(|low| low.is_finite() && *low != f64::MIN);
        match value.value() {
            None => {
                self.censored += 1;
                self.limit = seen.map(|limit| self.limit.map_or(limit, |known| known.min(limit)));
            }
            Some(value) if self.values.is_some() => self.moments.push(value),
            Some(_) => {}
        }
        self.seen = seen.map_or(self.seen, |seen| Some(self.seen.map_or(seen, |known| known.max(seen))));
        self.values.iter_mut().for_each(|values| values.insert(value));
    }

    /// Returns the summary of the metric.
    pub fn summary(&mut self, spec: &Spec, arm: &Arm) -> PointSummary {
        let Some(mut values) = self.values.take() else { return self.empty(spec, arm) };
        let moments = self.moments;
        self.summary_of(spec, arm, &mut values, &moments, self.censored)
    }

    fn empty(&self, spec: &Spec, arm: &Arm) -> PointSummary {
        PointSummary {
            experiment: spec.id.clone(),
            arm: arm.clone(),
            metric: self.metric.name.clone(),
            key: String::new(),
            unit: self.metric.unit,
            better: self.metric.better,
            is_share: self.metric.is_share,
            n: 0,
            median: None,
            median_low: None,
            median_high: None,
            p90: None,
            p99: None,
            mean: None,
            std: None,
            min: None,
            max: None,
            censored: self.censored,
            limit: self.limit,
            seen: self.seen,
        }
    }

    /// Returns the summary of a metric from its values, and from the moments of those that were observed completely.
    pub fn summary_of(
        &mut self,
        spec: &Spec,
        arm: &Arm,
        values: &mut WindowValues,
        moments: &Moments,
        stopped: u64,
    ) -> PointSummary {
        let n = values.count();
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let [median_low, median_high] = values.median_interval();
        let [median, p90, p99] =
            [0.5, 0.9, 0.99].map(|level| finite(values.quantile(level).and_then(Bounds::estimate)));
        let is_whole = stopped == 0;
        PointSummary {
            n,
            median,
            median_low,
            median_high,
            p90,
            p99,
            mean: moments.mean().filter(|_| is_whole),
            std: moments.standard_deviation().filter(|_| is_whole),
            min: moments.min(),
            max: moments.max().filter(|_| is_whole),
            censored: stopped,
            seen: self.seen.or(moments.max()),
            ..self.empty(spec, arm)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Better, Point};

    #[test]
    fn a_value_that_was_cut_off_at_an_unknown_number_bounds_nothing() {
        let rate = Metric::new("throughput", "", Unit::BytePerSecond, Better::Higher);
        let mut total = MetricTotal::new(&rate, false).unwrap();
        (1..=95).for_each(|value| total.add(Bounds::exact(f64::from(value)), false));
        (0..5).for_each(|_| total.add(Bounds::CUT_OFF, false));
        // The end of the run says nothing about the command.
        total.add(Bounds::CUT_OFF, true);
        let spec = Spec { id: "rates".into(), metrics: vec![rate.clone()], ..Spec::default() };
        let arm = Arm { variant: "a".into(), point: Point::default() };
        let point = total.summary(&spec, &arm);
        assert_eq!((point.n, point.censored, point.limit, point.seen), (100, 5, None, Some(95.0)));
        // The median lies between 45.5 and 50.5, and the 99th percentile may be anything from 94.01 on.
        assert!((point.median.unwrap() / 48.0 - 1.0).abs() < 1e-3, "{point:?}");
        assert_eq!((point.p99, point.mean, point.max), (None, None, None));
    }
}
