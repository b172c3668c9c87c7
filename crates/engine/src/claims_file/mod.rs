//! Claims files: TOML, one `[[claim]]` after another. Shipped claims and a user's own are written
//! alike.
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
//! An editor completes and checks such a file by [`json_schema`]. [`parse`] finds all mistakes of a
//! file at once, each with line and column.
//!
//! # What a claim says
//!
//! | key | value | |
//! |---|---|---|
//! | `id` | `a-z`, `0-9`, `.`, `_`, `-` | required; unique in a run |
//! | `says` | string | the claim as a sentence; made from the rest unless given |
//! | `source` | string | who says so: a document, a URL |
//! | `source_value` | string | the source's figure, as it is written there |
//! | `analysis` | string | why it should hold, and when it will not |
//! | `restated` | string | how a sentence that is not Bernoulli was put |
//!
//! # What is measured
//!
//! One of three: `experiment`, `command`, or command lines as `candidate` and `baseline`.
//!
//! | key | value | |
//! |---|---|---|
//! | `experiment` | an experiment's id | |
//! | `command` | command line | what a `predicate` is about |
//! | `candidate` | arm, or command line | what the claim speaks for; for a `predicate` on an experiment, its first variant unless given |
//! | `baseline` | arm, or command line | what the candidate is held against; required with `at_least`, `at_most` and `within`, and only there |
//! | `at` | `{ factor = level }` | where; a factor left out has its default, and one that no arm of the claim has is a mistake. For commands these are parameters: `{name}` in a command line is replaced by the level |
//! | `over` | `"each"`, `"every"` | required where `at` has lists: a claim for each point, whose ids end in the levels, as `id[elements=1024]`; or one claim that is true in a trial when it is true at every point |
//!
//! An *arm* is a variant's name, which means that variant at `at`, or a table with the levels in which
//! it differs: `{ variant = "kahan-avx512", accumulators = 4 }`. A *level* is a whole number, or a
//! string such as `"f32"` or `"64Ki"`; in `at` also a list of them. Several lists are multiplied.
//!
//! # What must be true of a trial
//!
//! Exactly one of the first four.
//!
//! | key | value | |
//! |---|---|---|
//! | `at_least` | bound | so many times better the candidate is, or more |
//! | `at_most` | bound | so many times better the candidate is, or less |
//! | `within` | `[bound, bound]` | from the first to the second, both included |
//! | `predicate` | string | comparisons `metric op quantity` with `<=`, `<`, `>=`, `>`, `==`, `!=`, joined by `and` |
//! | `metric` | a metric's name, or `NAME=PATTERN` for a printed one | the metric to compare; by default the first of `metrics`, or else the experiment's first metric (for commands `wall`) |
//! | `metrics` | `{ NAME = PATTERN }` | figures that the commands print |
//! | `difference` | `true`, `false` | by how much better, not how many times |
//!
//! A *bound* is a number above zero (how many times better: baseline/candidate where lower is better,
//! else candidate/baseline), or with `difference = true` a quantity in the metric's unit such as
//! `"5 ms"`, which may be negative. The metrics of commands are `wall`, `user`, `system`,
//! `memory_peak` and `exit`, and those that they print.
//!
//! A *pattern* is a regular expression with one group, such as `([0-9.]+) MB/s`, or a path into JSON, such as
//! `json:.stats.p99`. A table gives the unit, if it does not follow the group, and which way is better, if the unit does
//! not imply it: `{ pattern = "json:.stats.score", better = "higher" }`. A trial without the figure has failed: it counts
//! against a predicate, and ends a comparison.
//!
//! # How it is judged
//!
//! | key | value | |
//! |---|---|---|
//! | `rate` | in (0, 1) | the rate at which it must be true; 0.5 for comparisons, required for a `predicate` |
//! | `margin` | in (0, 1) | rates this close to `rate` need not be told apart, so that the claim always ends; `rate` ± `margin` must lie in (0, 1) |
//! | `error` | in (0, 1) | the chance of a wrong verdict; an even share of the run's unless given |
//! | `kind` | `"rate"`, `"exact"` | `"exact"`: the metric has no chance in it (an error bound, a size); checked once, without `rate`, `margin` and `error` |
//! | `max_time` | `"30 s"` | no new trial after that much measuring |
//! | `max_trials` | from 1 | no new trial after that many |
//!
//! # For commands only
//!
//! | key | value | |
//! |---|---|---|
//! | `time_limit` | `"10 s"` | an observation that takes longer is stopped: it took more than that, and no more is known of it |
//! | `shell` | `true`, `false` | whether `sh -c` runs the command lines |
//! | `setup` | command line | run once before the first trial |
//! | `prepare` | command line | run before each observation, untimed |
//! | `cleanup` | command line | run once after the last trial |
//!
//! Without a shell, a line with characters that one would act on is a mistake. Parameters are replaced
//! in all of these lines.
//!
//! A command that fails makes a `predicate` false, unless it speaks of `exit` itself; where commands
//! are compared, it ends the run.

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
