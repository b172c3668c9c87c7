//! The memory of a long measurement. All of it is allocated before the first observation.

use super::derived::LiveSeries;
use super::line_feed::LineBuffers;
use super::meter::Meter;
use super::record::Recorder;
use super::totals::MetricTotal;
use super::{MemoryReport, WindowError, WindowPlan};
use crate::command::CommandSet;
use crate::experiment::Spec;
use crate::judging::ClaimJudge;
use crate::unit::Unit;

/// The command and the expressions of a long measurement.
#[derive(Clone, Copy)]
pub(super) struct Measured<'p> {
    pub windows: &'p WindowPlan,
    pub set: &'p CommandSet,
    pub spec: &'p Spec,
    /// Index of the metric whose quantiles are reported.
    pub primary: usize,
    pub plans: &'p [ascertain_streams::Plan],
}

/// Everything that observations are counted in.
pub(super) struct State<'p> {
    pub meter: Meter,
    pub series: Vec<LiveSeries<'p>>,
    /// The totals of all metrics. That of the reported metric stays empty.
    pub others: Vec<MetricTotal<'p>>,
    /// The buffers for lines; `None` if the command prints no observations.
    pub lines: Option<LineBuffers>,
    pub judge: ClaimJudge,
}

impl Measured<'_> {
    /// Returns the memory that [`State::new`] and a [`Recorder`] allocate.
    pub fn announce(self, is_recorded: bool) -> MemoryReport {
        let Measured { windows, set, spec, primary, plans } = self;
        let mut memory = MemoryReport::default();
        Meter::announce(windows, self.is_signed(), self.has_ranges(), &mut memory);
        MetricTotal::announce(spec, primary, &mut memory);
        plans.iter().for_each(|plan| LiveSeries::announce(plan, windows.windows(), &mut memory));
        if set.lines.is_some() {
            LineBuffers::announce(&mut memory);
        }
        if is_recorded {
            Recorder::announce(windows, spec.metrics.len(), &mut memory);
        }
        memory.add("diagnostics of the observations", ClaimJudge::reserved_bytes());
        memory
    }

    fn is_signed(self) -> bool {
        self.spec.metrics[self.primary].unit == Unit::One
    }

    /// Returns whether values can be cut off. A line always has a complete value.
    pub fn has_ranges(self) -> bool {
        self.set.lines.is_none()
    }
}

impl<'p> State<'p> {
    /// Allocates the memory.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(measured: Measured<'p>, mut judge: ClaimJudge) -> Result<State<'p>, WindowError> {
        let Measured { windows, set, spec, primary, plans } = measured;
        let full = |error: ascertain_streams::RunError| WindowError::State(error.to_string());
        judge.reserve();
        let mut series = Vec::with_capacity(plans.len());
        for plan in plans {
            series.push(LiveSeries::new(plan, windows.windows())?);
        }
        let mut others = Vec::with_capacity(spec.metrics.len());
        for (index, metric) in spec.metrics.iter().enumerate() {
            others.push(MetricTotal::new(metric, index == primary).map_err(full)?);
        }
        Ok(State {
            meter: Meter::new(windows, measured.is_signed(), measured.has_ranges()).map_err(full)?,
            series,
            others,
            lines: set.lines.as_ref().map(LineBuffers::new),
            judge,
        })
    }
}
