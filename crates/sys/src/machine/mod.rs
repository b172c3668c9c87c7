//! A description of this machine for the record, and what threatens a measurement on it.
//!
//! What is read are text files of the kernel's; each is parsed by a function of text alone.

mod cgroup;
mod cpu;
mod cpu_times;
mod description;

pub use cpu::Cache;
pub use cpu_times::{CpuTimes, cpu_times};
pub use description::{Machine, describe};
