#![doc = include_str!("../README.md")]

mod contrast;
mod decide;
mod dyadic;
mod enclosure;
mod error;
mod exactly;
mod pool;
mod precision;
mod question;
mod reshuffles;
mod shuffled;
mod subset;
mod subset_statistics;

#[cfg(test)]
mod tests;

pub use decide::{Budget, Conclusion, Decision, End, Method, Progress, decide};
pub use error::Error;
pub use question::{Alternative, Comparison, Null, Question, Sample, Statistic};
pub use reshuffles::{Observation, Reshuffle, Reshuffles, Technique};
