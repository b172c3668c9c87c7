//! Every execution of a small program on an x86 with store buffers, one after the other.
//!
//! The machine is x86-TSO (Sewell, Sarkar, Owens, Zappa Nardelli and Myreen, 2010): a store goes to its thread's
//! buffer, first in, first out; the oldest leaves it at any time; a load sees the newest store of its own thread to
//! that place, or else memory; an instruction with LOCK, a fence and a system call empty the buffer first. Added are
//!
//! - [`heavy`], the barrier of somebody else: it empties all buffers;
//! - time: it passes when a sleep times out, and no store stays in a buffer for a second of it, for the processor is
//!   interrupted more often than that;
//! - [`Futex`], and [`Atomic::add_unlocked`], the addition to memory in one instruction without LOCK: interrupts, and
//!   so the two above, come before or after it, never between its load and its store.
//!
//! [`explore`] runs a closure under every order of these steps that could make a difference, by running it again and
//! again from the start, its threads as coroutines on one of the host's. Orders that differ only in steps that have
//! nothing to do with one another are run once: sleep sets (Godefroid, 1996). Nor is a state explored again in which
//! memory, buffers and clock are as before, and each thread has seen the same. An execution fails when something
//! panics, when all threads wait for one another (a lost wake-up), when something is used after it was dropped, or when
//! it has no end. The failure tells what happened step by step.
//!
//! It checks what the processor does, not what the compiler may do: an access is where it was written, and its
//! `Ordering` matters only where it makes another instruction of it (a sequentially consistent store is an exchange).
//! Loom is for the rest. Plain data is written at once.
//!
//! The program must be the same whenever it is run: no addresses, clocks or random numbers may decide what it does.
//! Loops that wait must call [`spin_loop`] or [`thread::yield_now`], which return when memory has changed.
//! What is local to a thread of the host is shared by all threads of a model, and what threads share by other means
//! than the types here must not decide what they do.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::Ordering::Relaxed;
//!
//! use ascertain_tso::{AtomicU32, explore, thread};
//!
//! // Each thread may miss the other's store, which still sits in a buffer.
//! let failure = explore(|| {
//!     let (x, y) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
//!     let other = thread::spawn({
//!         let (x, y) = (x.clone(), y.clone());
//!         move || {
//!             x.store(1, Relaxed);
//!             y.load(Relaxed)
//!         }
//!     });
//!     y.store(1, Relaxed);
//!     let saw = x.load(Relaxed);
//!     assert!(saw == 1 || other.join().unwrap() == 1);
//! })
//! .unwrap_err();
//! assert!(failure.to_string().contains("assertion failed"));
//! ```

mod atomic;
mod explorer;
mod futex;
mod machine;
mod mutex;
mod quarantine;
mod schedule;
pub mod thread;
mod time;

pub use atomic::{
    Atomic, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Integer, Value, fence, heavy, spin_loop,
};
pub use explorer::{Explored, Failure, explore};
pub use futex::Futex;
pub use mutex::{Mutex, MutexGuard};
pub use quarantine::Quarantine;
pub use time::Instant;
