//! A description of this machine, which is recorded with results, and the conditions that disturb measurements on it.
//!
//! The data comes from the kernel's text files. Each file is parsed by a function that takes only text.

mod cgroup;
mod cpu;
mod cpu_times;
mod description;

pub use cpu::Cache;
pub(crate) use cpu::features as instruction_sets;
pub use cpu_times::{CpuTimes, cpu_times};
pub use description::{Machine, describe, usable_memory_bytes};
