//! Data of a CPU's own, against atomics, threads' own data and the allocator.

mod experiment;
mod interruption;
mod session;
mod target;

pub use experiment::PerCpu;
