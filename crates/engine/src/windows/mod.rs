//! Long measurements of one command: percentiles over windows of time, in memory that is known before the run.
//!
//! A run with a [`WindowPlan`] observes one command until its time is up. It keeps no values. Each observation is
//! counted in the quantile table of its window, tested against the condition of a success, and judged. When a window
//! ends, its table is summarised and merged into the table of its group and into the table of all observations.
//!
//! The folder of such a run has these files, in addition to those of every run ([`evidence`](crate::evidence)):
//!
//! | file | contents | written |
//! |---|---|---|
//! | `trials.jsonl` | every n-th observation, as the rows of every run | during the run |
//! | `trials.parquet` | the same rows, in place of `trials.jsonl` | at the end |
//! | `windows.jsonl` | a [`WindowLine`] for each window: its figures and its histogram | at the end of the window |
//! | `around.jsonl` | all observations around a failure, in the columns of `trials.jsonl` | during the run |
//!
//! If the process is killed, each file has complete lines up to the last tenth of a second, and perhaps an incomplete
//! last line, which readers ignore.

#[cfg(feature = "commands")]
mod derived;
mod drift;
mod error;
#[cfg(feature = "commands")]
mod feed;
mod histogram;
mod judge;
#[cfg(feature = "commands")]
mod line_feed;
#[cfg(feature = "commands")]
mod lines;
#[cfg(feature = "commands")]
mod meter;
mod plan;
#[cfg(feature = "commands")]
mod record;
mod report;
#[cfg(feature = "commands")]
mod run;
#[cfg(feature = "commands")]
mod state;
#[cfg(feature = "recorded")]
mod stored;
#[cfg(feature = "commands")]
mod totals;
#[cfg(any(feature = "commands", feature = "recorded", test))]
mod values;

pub use drift::{Drift, Trend};
pub use error::WindowError;
pub use histogram::{HISTOGRAMS, WindowLine};
#[cfg(feature = "commands")]
pub use meter::Meter;
pub use plan::{Around, LEAST_WINDOW, MOST_WINDOWS, WindowPlan, default_window};
pub use report::{
    Ended, MemoryPart, MemoryReport, Range, Ranges, RecordedReport, SeriesReport, SeriesWindow, WindowReport,
    WindowSummary,
};
#[cfg(feature = "commands")]
pub(crate) use run::run;
#[cfg(feature = "commands")]
#[doc(hidden)]
pub use run::{allocated, fed};
#[cfg(feature = "recorded")]
pub(crate) use stored::complete;
#[cfg(feature = "recorded")]
pub use stored::recorded_every;
#[cfg(feature = "commands")]
pub use values::WindowValues;
