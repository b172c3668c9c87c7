//! The `main` of a user's own benches: functions measured against each other, with verdicts.
//!
//! A bench is a file under `benches/` with `harness = false`:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use ascertain::bench::{Group, Throughput, black_box, run};
//!
//! fn main() -> ExitCode {
//!     let data: Vec<f64> = (0..10_000).map(f64::from).collect();
//!     let group = Group::new("sum")
//!         .throughput(Throughput::Elements(10_000))
//!         .function("loop", || black_box(&data).iter().sum::<f64>())
//!         .function("chunks", || black_box(&data).chunks(8).map(|c| c.iter().sum::<f64>()).sum::<f64>());
//!     run([group])
//! }
//! ```
//!
//! `cargo bench --bench NAME -- --help` lists its options, which mean what they mean to `ascertain compare`, but for
//! one default: `--margin 1%`. Two functions that are equal to the letter may differ by their place in the program,
//! by less than a percent and in earnest: an answer that counts wins would call one of them faster, and be right. Who
//! benches a change of the code wants to hear *same*. `--margin 0` counts wins.
//!
//! `cargo test --benches` calls each function once, checks its answer, and times nothing.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod main;
mod measure;
mod options;

pub use ascertain_engine::black_box;
pub use ascertain_engine::function::{Group, Throughput};

pub use self::main::run;
