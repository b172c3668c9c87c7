//! Counts observations in the table of their window, and summarises windows that have ended.

use ascertain_stats::Moments;
use ascertain_streams::{FlatTable, RunError};

use super::{MemoryReport, WindowPlan, WindowSummary};

/// Largest number of groups of windows, for a table that fits on a screen.
const MOST_GROUPS: u64 = 20;

/// Number of carries of a table with one side: one for each bucket. No counter is then ever full.
const CARRIES: usize = 1 << 16;

/// Makes a table that is never full.
pub(super) fn table(is_signed: bool) -> Result<FlatTable, RunError> {
    FlatTable::new(is_signed, carries(is_signed))
}

/// Returns the size in bytes of the memory of a table that is never full.
pub(super) fn table_bytes(is_signed: bool) -> u64 {
    FlatTable::bytes(is_signed, carries(is_signed) as u64)
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
/// let mut meter = Meter::new(&plan, false)?;
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
    table: FlatTable,
    /// The counts. The quantiles are computed when the part ends.
    counts: WindowSummary,
    least: f64,
    most: f64,
}

impl Part {
    fn new(is_signed: bool) -> Result<Part, RunError> {
        let counts = WindowSummary { windows: 1, ..WindowSummary::default() };
        Ok(Part { table: table(is_signed)?, counts, least: f64::INFINITY, most: f64::NEG_INFINITY })
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
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        // With a carry for each bucket, the table is full only after 2^48 values.
        let _ = self.table.merge(&other.table);
    }

    fn summary(&mut self) -> WindowSummary {
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        // A quantile of the table may be slightly outside of the exact extremes.
        let (least, most) = (self.least, self.most);
        let mut quantile = |level| {
            finite(self.table.quantile(level)).map(|value| if least <= most { value.clamp(least, most) } else { value })
        };
        let [median, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(&mut quantile);
        let most = if self.counts.stopped > 0 { None } else { finite(Some(self.most)) };
        WindowSummary { least: finite(Some(self.least)), median, p90, p99, p999, most, ..self.counts }
    }

    /// Removes all observations. The part then begins with this window.
    fn clear(&mut self, window: u64, start_ns: u64) {
        self.table.clear();
        self.counts = WindowSummary { window, windows: 1, start_ns, end_ns: start_ns, ..WindowSummary::default() };
        (self.least, self.most) = (f64::INFINITY, f64::NEG_INFINITY);
    }
}

impl Meter {
    /// Allocates the memory that [`announce`](Meter::announce) reports. `is_signed` is `true` if values can be negative.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(plan: &WindowPlan, is_signed: bool) -> Result<Meter, RunError> {
        let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Ok(Meter {
            window_ns: nanoseconds(plan.window).max(1),
            duration_ns: nanoseconds(plan.duration),
            per_group: plan.windows().div_ceil(MOST_GROUPS).max(1),
            open: Part::new(is_signed)?,
            group: Part::new(is_signed)?,
            total: Part::new(is_signed)?,
            moments: Moments::new(),
            windows: Vec::with_capacity(plan.windows() as usize),
            groups: Vec::with_capacity(MOST_GROUPS as usize),
        })
    }

    /// Adds the memory of a meter to a report.
    pub fn announce(plan: &WindowPlan, is_signed: bool, report: &mut MemoryReport) {
        report.add("3 quantile tables", 3 * table_bytes(is_signed));
        let row = size_of::<WindowSummary>() as u64;
        let windows = plan.windows();
        report.add(format!("figures of {windows} windows and 20 groups"), (windows + MOST_GROUPS) * row);
    }

    /// Counts an observation. A value that was not observed is NaN, and one that reached its time limit is infinite.
    /// `success` is `None` if it is unknown whether the observation was a success.
    pub fn add(&mut self, value: f64, success: Option<bool>) {
        let counts = &mut self.open.counts;
        counts.observations += 1;
        counts.successes += u64::from(success == Some(true));
        counts.unknown += u64::from(success.is_none());
        if value.is_nan() {
            counts.without_value += 1;
            return;
        }
        let _ = self.open.table.insert(value);
        self.open.least = self.open.least.min(value);
        if value == f64::INFINITY {
            counts.stopped += 1;
        } else {
            self.open.most = self.open.most.max(value);
            self.moments.push(value);
        }
    }

    /// Counts observations of the open window. A value that was not observed is NaN; all other values are finite.
    pub fn add_all(&mut self, values: &[f64], successes: u64) {
        let open = &mut self.open;
        let mut nulls = 0;
        for value in values {
            if value.is_nan() {
                nulls += 1;
                continue;
            }
            let _ = open.table.insert(*value);
            open.least = open.least.min(*value);
            open.most = open.most.max(*value);
            self.moments.push(*value);
        }
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
    pub fn advance(&mut self, now_ns: u64, mut ended: impl FnMut(&WindowSummary, &FlatTable)) {
        while now_ns >= self.window_ends_ns() && self.has_open() {
            let end_ns = self.window_ends_ns();
            self.end_window(end_ns, &mut ended);
        }
    }

    /// Ends the run at this time. The open window is then shorter than the others.
    pub fn finish(&mut self, now_ns: u64, mut ended: impl FnMut(&WindowSummary, &FlatTable)) {
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

    fn end_window(&mut self, end_ns: u64, ended: &mut impl FnMut(&WindowSummary, &FlatTable)) {
        self.open.counts.end_ns = end_ns;
        let summary = self.open.summary();
        self.windows.push(summary);
        self.group.merge(&self.open);
        ended(&summary, &self.open.table);
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

    /// Returns the table of all observations in groups that have ended, and their moments.
    pub(super) fn all(&mut self) -> (&mut FlatTable, &Moments) {
        (&mut self.total.table, &self.moments)
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
