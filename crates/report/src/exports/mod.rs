//! Exports: files in the formats of other tools, written during and after a run.
//!
//! | option `--export-…` | read by |
//! |---|---|
//! | `json`, `json-1` | tools for the JSON of hyperfine 2 and of hyperfine 1 |
//! | `csv`, `markdown`, `asciidoc`, `orgmode` | tools for hyperfine 1's other files |
//! | `junit` | CI servers: a test case for each claim |
//! | `github` | the summary page of a job on GitHub |
//! | `bencher` | Bencher: the Bencher Metric Format |
//! | `go` | benchstat: the Go benchmark format |
//! | `google-benchmark` | Google Benchmark's `compare.py` |
//!
//! [`FORMATS`] is the only list of formats: options, help and man page are generated from it. A new format needs a
//! source file and an entry in this list. [`Files`] writes the files of a run.

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
pub use results::{ArmResults, Mark, Results};
