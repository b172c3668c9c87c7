#![doc = include_str!("../README.md")]

// Each folder has the name of its experiment on the command line.
#[path = "cbrt/experiment.rs"]
mod cbrt;
#[path = "decimal/experiment.rs"]
mod decimal;
#[path = "format-scaling/experiment.rs"]
mod format_scaling;
#[path = "polynomial/experiment.rs"]
mod polynomial;
#[path = "sum/experiment.rs"]
mod sum;

pub use cbrt::Cbrt;
pub use decimal::Decimal;
pub use format_scaling::FormatScaling;
pub use polynomial::Polynomial;
pub use sum::Sum;
