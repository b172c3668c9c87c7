//! Claims files: TOML files with a `[[claim]]` for each claim. Shipped claims and a user's claims have the same form.
//!
//! ```toml
//! [[claim]]
//! id = "sum.kahan-avx512-8x-naive"
//! says = "Kahan summation with AVX-512 is at least 8 times as fast as the naive loop"
//! source = "the paper"
//! source_value = "8x"
//! experiment = "sum"
//! at = { elements = 187500, type = "f32" }
//! candidate = { variant = "kahan-avx512", accumulators = 4 }
//! baseline = "naive"
//! at_least = 8.0
//!
//! [[claim]]
//! id = "health.p99"
//! command = "curl -fsS http://localhost:8080/health"
//! predicate = "exit == 0 and wall <= 50 ms"
//! rate = 0.99
//! time_limit = "10 s"
//! ```
//!
//! An editor can complete and check such a file with [`json_schema`]. [`parse`] finds all mistakes in a file at once,
//! each with line and column.
//!
//! # Texts of a claim
//!
//! | key | value | |
//! |---|---|---|
//! | `id` | `a-z`, `0-9`, `.`, `_`, `-` | required; unique in a run |
//! | `says` | string | the claim as a sentence; by default made from the other keys |
//! | `source` | string | origin of the claim, such as a document or a URL |
//! | `source_value` | string | the figure that the claim states, as written in the source |
//! | `analysis` | string | the reasons why the claim should hold, and the conditions under which it will not |
//! | `restated` | string | the claim as a rate of successful trials, if `says` does not state a rate |
//!
//! # Subject of the measurement
//!
//! One of three: `experiment`, `command`, or command lines as `candidate` and `baseline`.
//!
//! | key | value | |
//! |---|---|---|
//! | `experiment` | an experiment's id | |
//! | `command` | command line | the command that a `predicate` is about |
//! | `candidate` | arm, or command line | the arm that the claim is about; for a `predicate` on an experiment, by default its first variant |
//! | `baseline` | arm, or command line | the arm to compare the candidate with; required with `at_least`, `at_most` and `within`, and only allowed there |
//! | `at` | `{ factor = level }` | the level of each factor. A factor that is missing here has its default level; a factor that no arm of the claim has is an error. For commands these are parameters: `{name}` in a command line is replaced by the level |
//! | `over` | `"each"`, `"every"` | required if `at` has lists. `"each"`: one claim per point, with the levels in its id, such as `id[elements=1024]`. `"every"`: a single claim, which is true in a trial if it is true at every point |
//!
//! An *arm* is the name of a variant; it is measured at the levels in `at`. An arm may also be a table with the levels
//! in which the arm differs: `{ variant = "kahan-avx512", accumulators = 4 }`. A *level* is a whole number, or a string
//! such as `"f32"` or `"64Ki"`; in `at` it may also be a list of levels. Several lists give all combinations of their
//! levels.
//!
//! # Condition on a trial
//!
//! A claim has exactly one of the first four keys.
//!
//! | key | value | |
//! |---|---|---|
//! | `at_least` | bound | the candidate is at least this many times better |
//! | `at_most` | bound | the candidate is at most this many times better |
//! | `within` | `[bound, bound]` | the candidate is better by a factor in this range, both ends included |
//! | `predicate` | string | comparisons `metric op quantity` with `<=`, `<`, `>=`, `>`, `==`, `!=`, joined by `and` |
//! | `metric` | a metric's name, an expression, or `NAME=PATTERN` for a printed one | the metric to compare; by default the first of `metrics`, or else the experiment's first metric (`wall` for commands) |
//! | `metrics` | `{ NAME = PATTERN }` | figures that the commands print |
//! | `difference` | `true`, `false` | `true`: bounds are differences in the metric's unit, not factors |
//!
//! A *bound* is a factor above zero: baseline/candidate if lower is better, else candidate/baseline. If `difference` is
//! `true`, it is a quantity in the metric's unit such as `"5 ms"`, which may be negative. The metrics of commands are
//! `wall`, `user`, `system`, `memory_peak` and `exit`, and the figures that the commands print.
//!
//! A *pattern* is a regular expression with one group, such as `([0-9.]+) MB/s`, or a path into JSON, such as
//! `json:.stats.p99`. If the pattern alone is not enough, write a table, for example
//! `{ pattern = "json:.stats.score", better = "higher" }`. The table sets the unit, unless a unit follows the group. It
//! also sets the better direction, unless the unit implies one. A trial without the figure has failed: it counts
//! against a predicate, and ends a comparison.
//!
//! # Expressions
//!
//! A metric in `metric` or in a `predicate` may be an expression over the metrics of an arm. The language is that of
//! `ascertain series`: `mean(window(wall, 10))`, or `quantile(.9, window(wall, 20)) <= 50 ms`. Each value is one outcome
//! of the claim, so the rate is a share of values, and `trials` in the result counts values. `max_trials` counts the
//! measured trials.
//!
//! Each value must come from trials of its own, because a verdict needs outcomes that do not depend on one another.
//! Therefore, these are mistakes: overlapping windows, windows of time, `lag`, `ewma`, `hold`, `repeat`, aggregates of
//! all values so far, and `where` in a comparison. A predicate with an expression may also compare `exit`, but no
//! other metric. A command that fails in any trial makes the outcome false, unless the predicate mentions `exit`.
//! Values that were cut off make a range, which counts only if all of it does.
//!
//! # Judging
//!
//! | key | value | |
//! |---|---|---|
//! | `rate` | in (0, 1) | the share of trials in which the condition must be true; 0.5 by default for comparisons, required for a `predicate` |
//! | `margin` | in (0, 1) | rates within this distance of `rate` need not be distinguished from it, so that the measurement always ends; `rate` ± `margin` must lie in (0, 1) |
//! | `error` | in (0, 1) | highest probability of a wrong verdict; by default an equal share of the run's error |
//! | `kind` | `"rate"`, `"exact"` | `"exact"`: the metric is deterministic (an error bound, a size) and is checked once, without `rate`, `margin` and `error` |
//! | `max_time` | `"30 s"` | limit of the measuring time for this claim; no trial starts after it |
//! | `max_trials` | from 1 | maximum number of trials |
//!
//! # For commands only
//!
//! | key | value | |
//! |---|---|---|
//! | `time_limit` | `"10 s"` | time limit of each execution; a command that takes longer is stopped, and its time counts as longer than the limit |
//! | `shell` | `true`, `false` | `true`: run the command lines with `sh -c` |
//! | `setup` | command line | run once before the first trial |
//! | `prepare` | command line | run before each observation, untimed |
//! | `cleanup` | command line | run once after the last trial |
//!
//! Without a shell, a command line with characters that a shell would interpret is a mistake. Parameters are replaced
//! in all of these lines.
//!
//! A command that fails makes a `predicate` false, unless the predicate mentions `exit` itself. In a comparison, a
//! command that fails ends the run.

mod error;
mod keys;
mod printed;
mod question;
mod read;
mod schema;
mod subject;
#[cfg(test)]
mod tests;

pub use error::{ClaimsFileError, Mistake};
pub use read::{ClaimsFile, merge, parse};
pub use schema::json_schema;
