#![doc = include_str!("../README.md")]

pub mod bench;
pub mod calibrate_here;
pub mod check;
pub mod compare;
mod error;
pub mod experiments;
mod request;
pub mod resume;
mod run;
pub mod slo;

pub use ascertain_engine as engine;
pub use ascertain_report as report;
pub use error::Error;
pub use request::{Ending, FailOn, Request, Terms, UseCase};
pub use run::{Done, Setting, carry_out};
