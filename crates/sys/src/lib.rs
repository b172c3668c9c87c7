//! What this machine is and can do: clocks, processes, signals, CPUs.
//!
//! The one crate that makes system calls by hand, where rustix lacks them or does worse; `unsafe` code is here, in the
//! numeric crate and in that of synchronization. It knows nothing of experiments, claims or statistics, prints nothing,
//! and can be used alone.
//!
//! - [`clock`]: monotonic time and the clock's step
//! - [`process`]: commands started without a shell, with the kernel's own account of each
//! - [`interrupt`]: SIGINT, SIGTERM and SIGHUP as a flag
//! - [`machine`]: a description for the record, and what threatens a measurement here
//! - [`membarrier`]: memory barriers on other threads' behalf
//! - [`rseq`]: restartable sequences on a CPU's own data
//! - [`affinity`]: which CPUs this thread may use
//! - `allocations`: what a call allocates, with the feature of that name
//! - [`perf`]: what the processor and the kernel count of a command
//! - [`page_cache`]: what the kernel has in memory of a file (Linux)
//! - [`files`]: files that nobody else can redirect, and that have their name once they are whole
//! - [`fork`]: telling a child from its parent
//! - [`futex`]: sleeping until a word in memory changes; [`journal`]: words that outlive the process (Linux)
//! - [`terminal`]: how wide it is; [`standard`]: whether standard input and output were closed
//! - [`bpf`], [`mapping`], [`socket`], [`cpus`], [`privileges`]: what a daemon beside the kernel is made of (Linux)
//! - [`tcp`]: what the kernel knows of a connection; [`tether`]: children that do not outlive us (Linux)
//! - [`datagrams`]: received many at a time, with when the kernel had them
//! - [`namespace`], [`netlink`], [`tun`], [`packet`]: what an emulated network is made of (Linux)
//! - [`threads`]: threads that work at the same time
//! - [`compiled`]: C and C++ of ours, compiled when it is needed
//!
//! Linux on x86-64 and aarch64 is what it is made for. Elsewhere on Unix it compiles; what is
//! missing is absent from the description or an [`Error`] that says so.

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
pub mod cpus;
#[cfg(feature = "network")]
pub mod datagrams;
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
#[cfg(all(feature = "daemon", target_os = "linux"))]
pub mod privileges;
#[cfg(feature = "commands")]
pub mod process;
pub mod rseq;
#[cfg(all(feature = "daemon", target_os = "linux"))]
pub mod socket;
#[cfg(feature = "measuring")]
pub mod standard;
#[cfg(all(feature = "network", target_os = "linux"))]
pub mod tcp;
#[cfg(feature = "measuring")]
pub mod terminal;
#[doc(hidden)]
pub mod testing;
#[cfg(all(feature = "network", target_os = "linux"))]
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
