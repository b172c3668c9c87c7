//! Results for the tools of others: each kind of file that they read, written while a run goes on.
//!
//! | kind | read by |
//! |---|---|
//! | `json`, `json-1` | whatever reads the JSON of hyperfine 2 and of hyperfine 1 |
//! | `csv`, `markdown`, `asciidoc`, `orgmode` | whatever reads hyperfine 1's other files |
//! | `junit` | CI servers: a test case for each claim |
//! | `github` | a job's summary page on GitHub |
//! | `bencher` | Bencher: the Bencher Metric Format |
//! | `go` | benchstat: the Go benchmark format |
//! | `google-benchmark` | Google Benchmark's `compare.py` |
//!
//! [`FORMATS`] is the one list of them: options, help and man page come from it. A new kind is one file and
//! one line there. [`Files`] writes the files that a run was asked for.

#[cfg(feature = "exports")]
mod bencher;
mod files;
#[cfg(feature = "exports")]
mod github;
#[cfg(feature = "exports")]
mod go;
#[cfg(feature = "exports")]
mod google_benchmark;
#[cfg(feature = "exports")]
mod junit;
mod results;

pub use files::{ExportFormat, FORMATS, Files};
#[cfg(feature = "exports")]
pub use github::annotations;
pub use results::{ArmResults, Mark, Purpose, Results};
