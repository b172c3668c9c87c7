//! Access to this machine and its properties: clocks, processes, signals, CPUs.
//!
//! This is the only crate that makes system calls directly. It does so if rustix lacks a call, or implements the call
//! in an unsuitable way. `unsafe` code is found here, in the numeric crate and in the synchronization crate. This crate
//! does not depend on experiments, claims or statistics, prints nothing, and can be used alone.
//!
//! - [`clock`]: monotonic time and the smallest step of the clock
//! - [`process`]: commands started without a shell, with the kernel's accounting for each
//! - [`interrupt`]: SIGINT, SIGTERM and SIGHUP as a flag
//! - [`machine`]: a description of this machine, which is recorded with results, and the conditions that disturb
//!   measurements on it
//! - [`membarrier`]: memory barriers on behalf of other threads
//! - [`rseq`]: restartable sequences on data of one CPU
//! - [`affinity`]: the CPUs that this thread may use
//! - `allocations`: the allocations of a call, with the feature of that name
//! - [`perf`]: counters of the processor and the kernel for a command
//! - [`page_cache`]: the share of a file that the kernel keeps in memory (Linux)
//! - [`files`]: files that no other user can redirect by a link, and that get their name once they are complete
//! - [`scratch`]: private folders for temporary files
//! - [`descriptors`]: descriptors that a child would inherit
//! - [`fork`]: distinguishing a child from its parent
//! - [`futex`]: sleeping until a word in memory changes; [`journal`]: words that outlive the process (Linux)
//! - [`terminal`]: the width of a terminal; [`standard`]: whether standard input and output were closed
//! - [`bpf`], [`mapping`], [`socket`], [`cpus`], [`privileges`]: the kernel interfaces that a daemon uses (Linux)
//! - [`tcp`]: the kernel's data about a connection; [`tether`]: children that do not outlive this process (Linux)
//! - [`datagrams`]: datagrams received many at a time, with the times at which the kernel received them
//! - [`namespace`], [`netlink`], [`tun`], [`packet`]: the kernel interfaces that an emulated network uses (Linux)
//! - [`threads`]: threads that work at the same time
//! - [`cpu_level`]: the instruction sets that the environment variable `ASCERTAIN_CPU` allows
//! - [`compiled`]: C and C++ code of this program, compiled when it is needed
//!
//! The crate is made for Linux on x86-64 and aarch64. It compiles on other Unix systems. There, a missing value is
//! absent from the description, and a missing function returns an [`Error`] that names the reason.

#[cfg(feature = "measuring")]
pub mod affinity;
#[cfg(feature = "allocations")]
pub mod allocations;
#[cfg(all(feature = "daemon", target_os = "linux"))]
pub mod bpf;
pub mod clock;
#[cfg(feature = "measuring")]
pub mod command;
#[cfg(feature = "commands")]
pub mod compiled;
pub mod cpu_level;
pub mod cpus;
#[cfg(feature = "network")]
pub mod datagrams;
pub mod descriptors;
#[cfg(feature = "measuring")]
mod error;
#[cfg(feature = "files")]
pub mod files;
pub mod fork;
#[cfg(feature = "sharing")]
pub mod futex;
#[cfg(feature = "measuring")]
pub mod interrupt;
#[cfg(target_os = "linux")]
pub mod journal;
#[cfg(feature = "measuring")]
pub mod machine;
#[cfg(all(feature = "sharing", target_os = "linux"))]
pub mod mapping;
pub mod membarrier;
#[cfg(all(feature = "network", target_os = "linux"))]
pub mod namespace;
#[cfg(all(feature = "network", target_os = "linux"))]
pub mod netlink;
#[cfg(all(feature = "network", target_os = "linux"))]
pub mod packet;
#[cfg(all(feature = "sharing", target_os = "linux"))]
pub mod page_cache;
#[cfg(feature = "commands")]
pub mod perf;
#[cfg(feature = "commands")]
pub mod piped;
#[cfg(all(feature = "daemon", target_os = "linux"))]
pub mod privileges;
#[cfg(feature = "commands")]
pub mod process;
pub mod rseq;
#[cfg(feature = "files")]
pub mod scratch;
#[cfg(all(feature = "daemon", target_os = "linux"))]
pub mod socket;
#[cfg(feature = "measuring")]
pub mod standard;
#[cfg(target_os = "linux")]
mod syscall;
#[cfg(all(feature = "network", target_os = "linux"))]
pub mod tcp;
#[cfg(feature = "measuring")]
pub mod terminal;
#[doc(hidden)]
pub mod testing;
#[cfg(all(any(feature = "commands", feature = "network"), target_os = "linux"))]
pub mod tether;
#[cfg(feature = "measuring")]
pub mod threads;
#[cfg(all(feature = "network", target_os = "linux"))]
pub mod tun;

#[cfg(feature = "measuring")]
pub use error::Error;

#[cfg(all(doctest, feature = "commands"))]
#[doc = include_str!("../README.md")]
struct Readme;
