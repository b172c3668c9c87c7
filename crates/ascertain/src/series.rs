//! Computes derived series of a recorded run, in memory that is known before anything runs.

use std::cell::RefCell;
use std::path::Path;

use ascertain_engine::evidence;
use ascertain_engine::series::{RunCatalogue, RunSeries};
use ascertain_engine::unit::Unit;
use ascertain_engine::windows;
use ascertain_streams::{Catalogue, Engine, Failure};
pub use ascertain_streams::{Memory, Plan, PlanOptions, Problem, Results};
use ascertain_sys::interrupt::Stop;

use crate::error::{Error, refused};

/// Most bytes that the library for Parquet needs for each reading of a run, whatever its length. Runs with unusually
/// long names need more.
pub const MOST_PARQUET_BYTES: u64 = 4 << 20;

/// An expression over the series of a recorded run, with its plan. See [`plan`].
#[derive(Debug)]
pub struct Series {
    series: RunSeries,
    plan: Plan,
}

/// The end of a computation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeriesEnd {
    /// Number of values that `where` left out because its condition was null for them.
    pub undecided: u64,
    /// `true` if a stop was requested before the end of the evidence.
    pub was_stopped: bool,
}

/// Plans an expression over the series of the run in a folder. Reads the rows once, to learn which series there are,
/// how long they are, and whether observations were cut off.
///
/// # Errors
/// If the run is still being written or can't be read, or if the expression is refused. A series with gaps is refused
/// unless it is in `with_gaps(…)`. If the run recorded only a part of its observations, sums and counts of windows of time
/// and of all values so far are refused.
pub fn plan(run: &Path, expression: &str) -> Result<Series, Error> {
    if evidence::is_going_on(run) {
        return refused(format!("{} is still being written; wait until the run has ended", run.display()));
    }
    let stride = windows::recorded_every(run, &evidence::read_header(run)?);
    let series = RunSeries::read(run, stride)?;
    let catalogue = series.catalogue();
    let used = UsedSeries { catalogue, indices: RefCell::default() };
    let plan_with = |has_ranges| Plan::with(expression, &used, PlanOptions { has_ranges, ..PlanOptions::default() });
    let mut plan = plan_with(false);
    // A refusal names sizes too, so it is also repeated with ranges.
    if used.indices.borrow().iter().any(|index| catalogue.has_ranges(*index)) {
        plan = plan_with(true);
    }
    let plan = plan?;
    plan.check_sampled(stride)?;
    Ok(Series { series, plan })
}

/// A catalogue that notes which series an expression uses.
struct UsedSeries<'a> {
    catalogue: &'a RunCatalogue,
    indices: RefCell<Vec<usize>>,
}

impl Catalogue for UsedSeries<'_> {
    fn find(&self, arm: Option<&str>, metric: &str) -> Result<(usize, ascertain_streams::Series), String> {
        let found = self.catalogue.find(arm, metric)?;
        self.indices.borrow_mut().push(found.0);
        Ok(found)
    }
}

impl Series {
    /// Returns the plan, which prints itself.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the unit of the results.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match self.plan.unit().symbol() {
            Some("ns") => Unit::Nanosecond,
            Some("B") => Unit::Byte,
            Some("B/s") => Unit::BytePerSecond,
            Some("1/s") => Unit::PerSecond,
            _ => Unit::One,
        }
    }

    /// Returns the size in bytes of the columns into which the rows of a block are read. The library for Parquet needs
    /// up to [`MOST_PARQUET_BYTES`] of its own for each reading.
    #[must_use]
    pub fn reading_bytes(&self) -> u64 {
        RunSeries::reading_bytes(&self.plan)
    }

    /// Returns the memory of the computation in bytes: the plan, and the columns for reading. A limit concerns this total.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.plan.memory().total().saturating_add(self.reading_bytes())
    }

    /// Returns a sentence about the incomplete last trial of a run that was killed. Its rows are left out.
    #[must_use]
    pub fn cut_off(&self) -> Option<String> {
        self.series.catalogue().cut_off()
    }

    /// Returns the n of a run that recorded every n-th observation; 1 if the run recorded all of them.
    #[must_use]
    pub fn recorded_every(&self) -> u64 {
        self.series.catalogue().stride()
    }

    /// Checks that the memory of the plan, and of the columns for reading, is within a limit.
    ///
    /// # Errors
    /// If more memory is needed.
    pub fn check_memory(&self, limit_bytes: u64) -> Result<(), Error> {
        let needed_bytes = self.total_bytes();
        if needed_bytes <= limit_bytes {
            return Ok(());
        }
        Err(Error::SeriesMemory { expression: self.plan.text().to_string(), needed_bytes, limit_bytes })
    }

    /// Reads the evidence block by block. Calls `observe` with the results of each block; if it returns `false`, the
    /// computation ends.
    ///
    /// # Errors
    /// If a row is not valid, or if a buffer of a stated size is full.
    pub fn compute(&self, stop: &Stop, mut observe: impl FnMut(Results) -> bool) -> Result<SeriesEnd, Error> {
        let mut engine = Engine::new(&self.plan)?;
        let mut was_stopped = false;
        let ran = self.series.compute(&self.plan, &mut engine, &mut |results| {
            was_stopped = stop.is_requested();
            !was_stopped && (results.lows.is_empty() || observe(results))
        });
        match ran {
            Ok(()) => Ok(SeriesEnd { undecided: engine.undecided(), was_stopped }),
            Err(Failure::Evidence(error)) => Err(error.into()),
            Err(Failure::Run(error)) => Err(error.into()),
        }
    }
}
