//! Counts observations in the table of their window, and summarises windows that have ended.

use ascertain_stats::Moments;
use ascertain_streams::{FlatTable, RunError};

use super::values::WindowValues;
use super::{MemoryReport, WindowPlan, WindowSummary};
use crate::values::Bounds;

/// Largest number of groups of windows, for a table that fits on a screen.
const MOST_GROUPS: u64 = 20;

/// Number of carries of a table with one side: one for each bucket. No counter is then ever full.
const CARRIES: usize = 1 << 16;

/// Allocates tables that are never full. `has_ranges` is `true` if values can be cut off.
pub(super) fn values(is_signed: bool, has_ranges: bool) -> Result<WindowValues, RunError> {
    WindowValues::new(is_signed, has_ranges, carries(is_signed))
}

/// Returns the size in bytes of tables that are never full.
pub(super) fn values_bytes(is_signed: bool, has_ranges: bool) -> u64 {
    FlatTable::bytes(is_signed, carries(is_signed) as u64) * if has_ranges { 2 } else { 1 }
}

fn carries(is_signed: bool) -> usize {
    if is_signed { 2 * CARRIES } else { CARRIES }
}

/// The state of a long measurement: the open window, its group, and all observations. Nothing is allocated after
/// [`new`](Meter::new).
///
/// ```
/// use std::time::Duration;
/// use ascertain_engine::claim::Test;
/// use ascertain_engine::experiment::{Arm, Point};
/// use ascertain_engine::windows::{Around, Meter, WindowPlan};
///
/// let arm = Arm { variant: "cat times".into(), point: Point::default() };
/// let success = Test::Predicate { arm, predicate: String::new(), measure: None, conditions: Vec::new() };
/// let (duration, window) = (Duration::from_secs(60), Duration::from_secs(1));
/// let (around, series) = (Around::default(), Vec::new());
/// let plan =
///     WindowPlan { duration, window, success, record_every: None, around, series, memory_limit_bytes: None };
/// let mut meter = Meter::new(&plan, false, false)?;
/// meter.add_all(&[2e6, 3e6, 7e6], 3);
/// meter.finish(500_000_000, |_, _| {});
/// assert_eq!((meter.total().observations, meter.total().most), (3, Some(7e6)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Meter {
    window_ns: u64,
    duration_ns: u64,
    per_group: u64,
    open: Part,
    group: Part,
    total: Part,
    /// All values of which nothing was cut off.
    moments: Moments,
    windows: Vec<WindowSummary>,
    groups: Vec<WindowSummary>,
}

/// The observations of some windows.
#[derive(Debug)]
struct Part {
    values: WindowValues,
    /// The counts. The figures are computed when the part ends.
    counts: WindowSummary,
}

impl Part {
    fn new(is_signed: bool, has_ranges: bool) -> Result<Part, RunError> {
        let counts = WindowSummary { windows: 1, ..WindowSummary::default() };
        Ok(Part { values: values(is_signed, has_ranges)?, counts })
    }

    /// Adds the observations of another part, which follows this one.
    fn merge(&mut self, other: &Part) {
        let (counts, more) = (&mut self.counts, &other.counts);
        counts.observations += more.observations;
        counts.successes += more.successes;
        counts.unknown += more.unknown;
        counts.without_value += more.without_value;
        counts.stopped += more.stopped;
        counts.end_ns = more.end_ns;
        counts.windows = more.window + more.windows - counts.window;
        self.values.merge(&other.values);
    }

    fn summary(&mut self) -> WindowSummary {
        self.values.summary(self.counts)
    }

    /// Removes all observations. The part then begins with this window.
    fn clear(&mut self, window: u64, start_ns: u64) {
        self.values.clear();
        self.counts = WindowSummary { window, windows: 1, start_ns, end_ns: start_ns, ..WindowSummary::default() };
    }
}

impl Meter {
    /// Allocates the memory that [`announce`](Meter::announce) reports. `is_signed` is `true` if values can be
    /// negative, and `has_ranges` if they can be cut off.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(plan: &WindowPlan, is_signed: bool, has_ranges: bool) -> Result<Meter, RunError> {
        let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Ok(Meter {
            window_ns: nanoseconds(plan.window).max(1),
            duration_ns: nanoseconds(plan.duration),
            per_group: plan.windows().div_ceil(MOST_GROUPS).max(1),
            open: Part::new(is_signed, has_ranges)?,
            group: Part::new(is_signed, has_ranges)?,
            total: Part::new(is_signed, has_ranges)?,
            moments: Moments::new(),
            windows: Vec::with_capacity(plan.windows() as usize),
            groups: Vec::with_capacity(MOST_GROUPS as usize),
        })
    }

    /// Adds the memory of a meter to a report.
    pub fn announce(plan: &WindowPlan, is_signed: bool, has_ranges: bool, report: &mut MemoryReport) {
        let name = if has_ranges { "6 quantile tables" } else { "3 quantile tables" };
        report.add(name, 3 * values_bytes(is_signed, has_ranges));
        let row = size_of::<WindowSummary>() as u64;
        let windows = plan.windows();
        report.add(format!("figures of {windows} windows and 20 groups"), (windows + MOST_GROUPS) * row);
    }

    /// Counts an observation. A value that was not observed is [`Bounds::NONE`], and one that was cut off is a range.
    /// `success` is `None` if it is unknown whether the observation was a success.
    pub fn add(&mut self, value: Bounds, success: Option<bool>) {
        let counts = &mut self.open.counts;
        counts.observations += 1;
        counts.successes += u64::from(success == Some(true));
        counts.unknown += u64::from(success.is_none());
        if value.is_none() {
            counts.without_value += 1;
            return;
        }
        self.open.values.insert(value);
        match value.value() {
            Some(value) => self.moments.push(value),
            None => counts.stopped += 1,
        }
    }

    /// Counts observations of the open window. A value that was not observed is NaN; all other values are finite.
    pub fn add_all(&mut self, values: &[f64], successes: u64) {
        let (open, moments) = (&mut self.open, &mut self.moments);
        let nulls = open.values.insert_all(values, |value| moments.push(value));
        open.counts.observations += values.len() as u64;
        open.counts.successes += successes;
        open.counts.without_value += nulls;
    }

    /// Returns the time at which the open window ends, in nanoseconds since the start of the run.
    #[must_use]
    pub fn window_ends_ns(&self) -> u64 {
        ((self.open.counts.window + 1).saturating_mul(self.window_ns)).min(self.duration_ns)
    }

    /// Ends every window that is over at this time since the start of the run. Calls `ended` with each of them.
    pub fn advance(&mut self, now_ns: u64, mut ended: impl FnMut(&WindowSummary, &WindowValues)) {
        while now_ns >= self.window_ends_ns() && self.has_open() {
            let end_ns = self.window_ends_ns();
            self.end_window(end_ns, &mut ended);
        }
    }

    /// Ends the run at this time. The open window is then shorter than the others.
    pub fn finish(&mut self, now_ns: u64, mut ended: impl FnMut(&WindowSummary, &WindowValues)) {
        self.advance(now_ns, &mut ended);
        if self.has_open() && (now_ns > self.open.counts.start_ns || self.open.counts.observations > 0) {
            self.end_window(now_ns.max(self.open.counts.start_ns), &mut ended);
        }
        if self.group.counts.window < self.open.counts.window {
            self.end_group();
        }
    }

    /// Returns whether a window is open, because the run is not over.
    fn has_open(&self) -> bool {
        self.windows.len() < self.windows.capacity() && self.open.counts.start_ns < self.duration_ns
    }

    fn end_window(&mut self, end_ns: u64, ended: &mut impl FnMut(&WindowSummary, &WindowValues)) {
        self.open.counts.end_ns = end_ns;
        let summary = self.open.summary();
        self.windows.push(summary);
        self.group.merge(&self.open);
        ended(&summary, &self.open.values);
        let next = self.open.counts.window + 1;
        self.open.clear(next, end_ns);
        if next.is_multiple_of(self.per_group) {
            self.end_group();
        }
    }

    fn end_group(&mut self) {
        self.groups.push(self.group.summary());
        self.total.merge(&self.group);
        let counts = self.open.counts;
        self.group.clear(counts.window, counts.start_ns);
    }

    /// Returns the figures of the windows that have ended.
    #[must_use]
    pub fn windows(&self) -> &[WindowSummary] {
        &self.windows
    }

    /// Returns the figures of the groups of windows that have ended.
    #[must_use]
    pub fn groups(&self) -> &[WindowSummary] {
        &self.groups
    }

    /// Returns the figures of all observations in groups that have ended.
    pub fn total(&mut self) -> WindowSummary {
        self.total.summary()
    }

    /// Returns the values of all observations in groups that have ended, and the moments of those that are known.
    pub(super) fn all(&mut self) -> (&mut WindowValues, &Moments) {
        (&mut self.total.values, &self.moments)
    }

    /// Returns the number of observations so far.
    #[must_use]
    pub fn observations(&self) -> u64 {
        self.total.counts.observations + self.group.counts.observations + self.open.counts.observations
    }

    /// Returns the number of successes so far.
    #[must_use]
    pub fn successes(&self) -> u64 {
        self.total.counts.successes + self.group.counts.successes + self.open.counts.successes
    }
}
