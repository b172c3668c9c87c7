//! Restartable sequences (rseq(2), Linux 4.18): a few instructions on one CPU's data that either run to their end
//! without anybody else on that CPU in between, or have no effect.
//!
//! The kernel keeps the number of the CPU that a thread runs on in an [`Area`] of the thread's, and looks there,
//! whenever it has stopped the thread, for the sequence that the thread may be in the middle of: such a thread goes on
//! at the sequence's abort handler. A sequence therefore only reads, but for its last instruction, which commits.
//! Each CPU's data is written by whoever runs there, so that no instruction needs to be atomic.
//!
//! A thread has one area, and the C library registers it when the thread starts (glibc since 2.35); the kernel refuses
//! a second one. It is therefore never registered here: without the C library's ([`Unavailable`]) there is none. To
//! register one here instead would take it away from a C library that is loaded later or is newer, and it would have to
//! be given back when the thread ends, after everything that may still use it.
//!
//! | what | sequence | in plain Rust |
//! |---|---|---|
//! | add to a number | [`Area::add`] | [`Count::add`] |
//! | a stack of pointers | [`Area::push`], [`Area::pop`] | [`Stopped::push`], [`Stopped::pop`] |
//! | words that have an owner | [`Area::acquire`], [`Area::store`] | [`Owned::acquire`], [`Owned::store`] |
//!
//! The plain ones do the same for a caller who has the data to itself (a lock, or [`fence`]); they are what runs where
//! there are no sequences, and under Miri. The sequences are written for x86-64; elsewhere there are none, and a
//! program for another architecture has no way to call one.
//!
//! # Which number
//!
//! The data is indexed by `cpu_id`, the CPU. Newer kernels (6.3) also have `mm_cid`, which is dense: below the number
//! of threads, where those are fewer than CPUs. It would save memory that is never touched anyway, and is only promised
//! where the C library says that the area is so long (Debian 12's says 20 bytes; `mm_cid` ends at 28), whereas the
//! CPU's own number has been there from the start, and its data is in that CPU's cache.
//!
//! # Beware
//!
//! - A thread that no C library made (a bare `clone`), or that gave up its registration, has no number: every sequence
//!   is refused. So is it on a CPU beyond the data.
//! - After `vfork` the child shares the parent's area, and the kernel does not watch over the child's sequences: it may
//!   only call `exec`, as it always may.
//! - A debugger that goes from instruction to instruction never gets through a sequence: each step aborts it. A
//!   breakpoint behind it does.
//! - The area may point to a sequence long after it was left: a shared object with sequences in it must not be
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

pub use outcome::{Outcome, Unavailable, Yielded, fence, possible_cpus};
pub use plain::{Count, Owned, WORDS};
pub use sequences::Area;
pub use stacks::{Stacks, Stopped};
