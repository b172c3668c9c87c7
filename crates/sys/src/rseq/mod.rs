//! Restartable sequences (rseq(2), Linux 4.18). A sequence is a few instructions that change the data of one CPU. It
//! either runs to its end without another thread running on that CPU in between, or has no effect.
//!
//! For each thread, the kernel keeps the number of the thread's CPU in an [`Area`] of the thread. Whenever the kernel
//! has stopped the thread, the kernel checks in the area whether the thread is in the middle of a sequence. If so, the
//! thread continues at the abort handler of the sequence. So a sequence only reads, except for its last instruction,
//! which commits. The data of each CPU is written only by threads on that CPU, so no instruction needs to be atomic.
//!
//! A thread has only one area, and the kernel refuses to register a second one. The C library registers the area when
//! the thread starts (glibc since 2.35). This module never registers an area: without the C library's area, sequences
//! are [`Unavailable`]. If this module registered one, a C library that is newer or loaded later could not do so. The
//! area would also have to be unregistered when the thread ends, after everything that may still use it.
//!
//! | data | sequence | in plain Rust |
//! |---|---|---|
//! | add to a number | [`Area::add`] | [`Count::add`] |
//! | a stack of pointers | [`Area::push`], [`Area::pop`] | [`StoppedStack::push`], [`StoppedStack::pop`] |
//! | words that have an owner | [`Area::acquire`], [`Area::store`] | [`OwnedWords::acquire`], [`OwnedWords::store`] |
//!
//! The plain functions do the same for a caller who has exclusive access to the data (by a lock, or [`fence`]). They
//! run where sequences are not available, and under Miri. The sequences are written for x86-64; on other architectures
//! there are none, and a program cannot call one.
//!
//! # Choice of the index
//!
//! The data is indexed by `cpu_id`, the CPU. Newer kernels (6.3) also have `mm_cid`: if there are fewer threads than
//! CPUs, this number is below the number of threads. With `mm_cid`, fewer elements would be enough, but unused elements
//! take up hardly any memory. `mm_cid` is available only if the C library reports a sufficient length of the area
//! (Debian 12's reports 20 bytes; `mm_cid` ends at 28). `cpu_id` is always available, and the data of that CPU is in
//! the CPU's own cache.
//!
//! # Beware
//!
//! - A thread that was not created by a C library (a bare `clone`), or that gave up its registration, has no CPU
//!   number: every sequence is refused. Sequences are also refused on a CPU for which the data has no element.
//! - After `vfork` the child shares the parent's area, and the kernel does not handle the child's sequences: the child
//!   may only call `exec`, as after every `vfork`.
//! - A debugger that executes single instructions never gets through a sequence, because each step aborts it. Set a
//!   breakpoint after the sequence instead.
//! - The area may point to a sequence long after the sequence has ended, so a shared object with sequences must not be
//!   unloaded.

#[cfg(all(test, target_os = "linux", target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
mod model;
pub mod null_gs;
mod outcome;
mod plain;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
#[path = "x86_64.rs"]
mod sequences;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64", not(miri))))]
#[path = "nowhere.rs"]
mod sequences;
mod stacks;
#[cfg(test)]
mod tests;

pub use outcome::{Outcome, Unavailable, fence, possible_cpus};
pub use plain::{Count, OwnedWords, WORDS};
pub use sequences::Area;
pub use stacks::{Stacks, StoppedStack};
