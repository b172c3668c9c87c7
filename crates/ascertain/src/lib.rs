// The README names items of all features.
#![cfg_attr(feature = "full", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "full"), doc = "Puts performance claims on trial: see [`bench`](mod@bench).")]

pub mod arguments;
pub mod bench;
#[cfg(feature = "commands")]
pub mod calibrate_here;
#[cfg(feature = "claims")]
pub mod check;
#[cfg(feature = "commands")]
pub mod compare;
mod error;
pub mod experiments;
#[cfg(feature = "recorded")]
pub mod history;
pub mod judge;
#[cfg(feature = "storage")]
pub mod moving;
pub mod names;
#[cfg(feature = "permute")]
pub mod permute;
#[cfg(feature = "plot")]
pub mod power;
mod request;
#[cfg(feature = "recorded")]
mod resume;
mod revision;
mod run;
#[cfg(feature = "recorded")]
pub mod runs;
#[cfg(feature = "commands")]
pub mod slo;

pub use ascertain_engine as engine;
pub use ascertain_report as report;
pub use ascertain_stats as stats;
pub use error::Error;
pub use request::{Ending, GatedVerdict, Request, Terms};
#[cfg(feature = "recorded")]
pub use resume::{Continue, carried_out};
pub use run::{Done, RunContext, carry_out};
