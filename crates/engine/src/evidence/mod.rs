//! The evidence of a run: a folder with everything that was observed.
//!
//! | file | contents | written |
//! |---|---|---|
//! | `run.json` | [`Header`]: machine, versions, plan, experiments as data, and finally the outcome | at the start, and again when the run ends |
//! | `trials.jsonl` | one row per observation, as JSON lines | after each trial, or ten times a second for fast trials; only ever appended to, and emptied when `trials.parquet` has every row |
//! | `trials.parquet` | the same rows | when the run ends, with the feature `parquet` |
//! | `begun` | for each lane, the number of trials that have begun | during the run |
//!
//! JSON lines need thirty times as much space as the Parquet file. When a run ends, the Parquet file is read back and
//! turned into lines again. If these lines have the checksum of `trials.jsonl`, that file is emptied. The empty file
//! stays, because its lock shows whether the run is in progress. A continuation first restores the lines, byte for
//! byte, and then appends new lines. If the process is killed at any moment, one of the two files has every row. This
//! file is `trials.parquet` until all lines are restored, and `trials.jsonl` after the first new trial. Without the
//! feature `parquet` the lines stay.
//!
//! `run.json` and `trials.parquet` are written under another name and then renamed, so they are never half-written. A
//! killed run loses at most its last tenth of a second. If trials take longer than 0.1 ms, it loses only the last
//! trial. Nothing is synced to the disk, because that would disturb the measurement. If the machine crashes, data that
//! the kernel had not written yet is therefore lost.
//!
//! # Columns
//!
//! Both files have the same columns, in this order and of these types, so that one query can read any number of runs:
//! `from read_parquet('runs/*/trials.parquet')`. Programs that read the JSON lines have to guess the types. For
//! example, they may read a column as dates if all its texts look like dates.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `run_id` | text | id of the run, which is the name of its folder |
//! | `experiment` | text | id of the experiment |
//! | `lane` | integer | index of the lane in the run; the arms of a lane are measured together |
//! | `variant` | text | the variant of the experiment that was measured |
//! | `point` | text | the point: a JSON object of factors and levels, `{"elements":187500}` |
//! | `trial` | integer | index of the trial within the experiment, from 0 |
//! | `position` | integer | position of the arm in the trial's random order, from 0 |
//! | `metric` | text | name of the metric |
//! | `key` | text | key of the series; empty for a scalar |
//! | `offset_ns` | integer | time since the measurement began; 0 for a scalar |
//! | `value` | real | the value in `unit`; see below |
//! | `unit` | text | `ns`, `B`, `B/s`, `1/s` or `1` |
//! | `status` | text | `ok`, `failed`, `censored` (cut off: the true value is above this one), `lost` (the trial was cut off before the value was observed) |
//! | `start_ns` | integer | time from the start of the run to the start of the measurement |
//! | `worker` | text | the machine that measured; empty for the machine in `run.json` |
//!
//! A value that reached its time limit is `censored`, and so is a value that was being measured when a signal arrived.
//! The other values of that trial are `lost`. A continuation of a killed run first appends the trials that had been
//! begun but not recorded; all their values are `lost`. In `trials.jsonl`, a `null` is a value that is not a number. If
//! such a value is `censored`, it was cut off before anything was observed, and `trials.parquet` has infinity instead.
//!
//! `run.json` has a checksum of each file, so that a damaged file is not used. The rows are read from `trials.parquet`,
//! or else from `trials.jsonl`. If `trials.jsonl` was changed or is missing too, reading fails. If it was cut off, the
//! remaining rows are read, and the caller also gets an error for the missing rows.
//!
//! A space at the end of a line of `trials.jsonl` marks the last line of a trial. Up to that line the file contains
//! only complete trials, even if it is cut off anywhere later. So a continuation can remove an incomplete last trial.

mod error;
mod folder;
mod journal;
mod known;
mod lines;
mod moment;
mod numbers;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
mod parquet;
mod read_back;
mod row;
mod trials;
mod word_file;
mod writer;

#[cfg(test)]
mod tests;

pub use error::Error;
pub(crate) use folder::{FinalLines, lines_bytes};
pub use folder::{Header, Revision, SCHEMA, is_run_id, known_folder, new_run_id, read_header, runs_folder};
pub use known::{forget_run, is_known};
pub use moment::rfc3339;
pub use numbers::{NumberRow, RowKind};
pub use read_back::{RowCursor, RunEvidence, read_rows};
pub(crate) use read_back::{read_run, was_continued};
pub use row::Row;
pub use trials::{Series, Trials};
#[cfg(feature = "commands")]
pub(crate) use writer::RowsFile;
#[cfg(feature = "parquet")]
pub use writer::write_simulated;
pub use writer::{Writer, is_going_on};
