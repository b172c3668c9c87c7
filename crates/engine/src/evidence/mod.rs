//! What a run leaves behind: one folder with everything that was observed.
//!
//! | file | what | when |
//! |---|---|---|
//! | `run.json` | [`Header`]: machine, versions, plan, experiments as data, and at last the outcome | from the start; anew when the run ends |
//! | `trials.jsonl` | a row for each observation, as JSON lines | after each trial, of fast ones ten times a second; only ever appended to, and emptied when `trials.parquet` has every row |
//! | `trials.parquet` | the same rows | when the run ends, with the feature `parquet` |
//! | `begun` | which trials have been begun | while the run goes on |
//!
//! JSON lines take thirty times the space of the Parquet file. When a run ends, the Parquet file is read back and turned
//! into lines again; if these have the checksum of `trials.jsonl`, that file is emptied. It stays as an empty file,
//! because its lock tells whether the run is going on. A continuation first restores the lines, byte by byte, so that
//! it appends to them as it would have done before, and a kill at any moment leaves one file with every row: the
//! Parquet file until all lines are there again, and the lines from the first new trial on. Without the feature
//! `parquet` the lines stay.
//!
//! `run.json` and `trials.parquet` appear by renaming, so they are never seen half-written. A run that
//! is killed loses at most its last tenth of a second, and of trials that take longer than 0.1 ms only the last. A
//! machine that crashes loses what its kernel had not written yet: syncing to disk while measuring would disturb what
//! is measured.
//!
//! # Columns
//!
//! Both files have the same columns, in this order and of these types, so that one query reads any
//! number of runs: `from read_parquet('runs/*/trials.parquet')`. A reader of JSON has to guess the types:
//! a column in which all texts look like dates, say, it may take for dates.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `run_id` | text | the run, the name of its folder |
//! | `experiment` | text | what was measured |
//! | `lane` | integer | which arms were measured together: the number of the run's lane; 4294967295 in rows of the first versions, whose own files lack it (`union_by_name` reads both) |
//! | `variant` | text | what was measured of it |
//! | `point` | text | where: a JSON object of factors and levels, `{"elements":187500}` |
//! | `trial` | integer | its number within the experiment, from 0 |
//! | `position` | integer | the arm's place in the trial's random order, from 0 |
//! | `metric` | text | what was observed |
//! | `key` | text | which of several series; empty for a scalar |
//! | `offset_ns` | integer | when, since the measurement began; 0 for a scalar |
//! | `value` | real | in `unit`; see below |
//! | `unit` | text | `ns`, `B`, `B/s`, `1/s` or `1` |
//! | `status` | text | `ok`, `failed`, `censored` (cut off: the true value is above this one), `lost` (its trial was cut off before it was seen) |
//! | `start_ns` | integer | when the measurement began, since the run started |
//! | `worker` | text | who measured; empty for the machine in `run.json` |
//!
//! What met its time limit is `censored` there, and so is what was being measured when a signal came; whatever else the
//! trial was to hold is `lost` then. A killed run says at the end of its lines, once it is continued, which trials had
//! been begun and not recorded: all of them are lost. Earlier versions recorded what met its limit as `null` in JSON
//! and infinite in Parquet. Any other `null` is a value that is not a number.
//!
//! `run.json` has a checksum of each, so that a damaged file is not taken for data: the rows are read from
//! `trials.parquet`, else from `trials.jsonl`, and where that was changed or is gone too it is an error. One
//! that was cut off is read as far as it goes, and whoever reads it is told that rows are missing.
//!
//! A line of `trials.jsonl` that ends in a space ends a trial: the file may be cut anywhere behind it,
//! and what stands before is whole. That is how a killed run is continued without half a trial.

mod begun;
mod error;
mod folder;
mod known;
mod lines;
mod moment;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "no_parquet.rs"]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_reader;
#[cfg(feature = "recorded")]
mod read_back;
mod shape;
mod trials;
mod writer;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use folder::{Header, Revision, SCHEMA, is_readable, is_run_id, known_folder, new_run_id, runs_folder};
pub(crate) use folder::{LinesThen, lines_bytes};
pub use known::{forget, is_known};
pub use moment::rfc3339;
#[cfg(feature = "recorded")]
pub(crate) use read_back::{ReadBack, read_trials, went_on};
pub use writer::{Recorded, Writer, is_going_on};
#[cfg(feature = "recorded")]
pub use {
    folder::read_header,
    lines::Row,
    read_back::{Rows, read_rows},
    trials::{Series, Trials},
};
