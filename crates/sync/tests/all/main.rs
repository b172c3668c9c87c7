//! The tests of this crate that need no model checker, in one program. Tests that need their own process start the
//! program again with `ascertain_sys::testing::alone`.
#![cfg(not(any(model = "loom", model = "tso")))]
#![allow(missing_docs, clippy::print_stdout)] // the figures of long runs

#[macro_use]
mod common;

mod barrier;
#[cfg(all(target_os = "linux", not(miri)))]
mod barrier_fork;
#[cfg(all(target_os = "linux", not(miri)))]
mod barrierd;
mod epoch;
mod epoch_default;
mod event_count;
mod hazard;
mod panics;
mod per_cpu;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod per_cpu_machine;
mod per_cpu_pinned;
mod reclamation;
#[cfg(all(unix, not(miri)))]
mod reclamation_fork;
mod reclamation_stress;
mod ring;
