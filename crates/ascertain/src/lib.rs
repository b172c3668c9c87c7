// The README links to items of all features.
#![cfg_attr(feature = "full", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "full"), doc = "Tests performance claims: see [`bench`](mod@bench).")]

pub mod arguments;
pub mod bench;
#[cfg(feature = "commands")]
pub mod calibrate_here;
#[cfg(feature = "claims")]
pub mod check;
#[cfg(feature = "commands")]
pub mod compare;
#[cfg(feature = "recorded")]
mod continue_run;
#[cfg(feature = "cost")]
pub mod cost;
mod error;
pub mod experiments;
#[cfg(feature = "recorded")]
pub mod history;
pub mod judge;
pub mod names;
#[cfg(feature = "permute")]
pub mod permute;
#[cfg(feature = "plot")]
pub mod power;
#[cfg(all(feature = "plot", feature = "recorded", feature = "html"))]
pub mod pyperf;
pub mod revision;
mod run;
#[cfg(feature = "recorded")]
pub mod runs;
#[cfg(feature = "series")]
pub mod series;
#[cfg(feature = "commands")]
pub mod slo;

pub use ascertain_engine as engine;
pub use ascertain_engine::result::{Ending, GatedVerdict, RunResult};
pub use ascertain_report as report;
pub use ascertain_stats as stats;
#[cfg(feature = "transfer")]
pub use ascertain_transfer as transfer;
#[cfg(feature = "recorded")]
pub use continue_run::{Continuation, continue_run, executed_lines};
pub use error::Error;
pub use run::{Request, RunContext, run};

/// The documents `README.md` and `docs/functions.md`, whose code examples run as doc tests of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/functions.md")]
struct Documents;
