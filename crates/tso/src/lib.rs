//! Explores, one after the other, all executions of a small program on an x86 processor with store buffers.
//!
//! The machine is x86-TSO (Sewell, Sarkar, Owens, Zappa Nardelli and Myreen, 2010). A store goes to the buffer of its
//! thread, which is first in, first out. The oldest store can leave the buffer at any time. A load returns the newest
//! store of its own thread to that address, or else the value in memory. An instruction with LOCK, a fence and a system
//! call empty the buffer first. This crate adds:
//!
//! - [`heavy`], a barrier on behalf of all threads: it empties all buffers;
//! - time: it passes when a sleep times out. No store stays in a buffer for a whole second, because a processor is
//!   interrupted more often, and each interrupt empties the buffer;
//! - [`Futex`], and [`Atomic::add_unlocked`], the addition to memory in one instruction without LOCK. Interrupts, and
//!   so [`heavy`] and the passing of time, come before or after the addition, never between its load and its store.
//!
//! [`explore`] runs a closure in every order of these steps that could make a difference. It runs the closure
//! repeatedly from the start, with its threads as coroutines on one thread of the host. Orders that differ only in
//! independent steps are run once: sleep sets (Godefroid, 1996). A state is not explored again if memory, buffers and
//! clock are the same as before and each thread has read the same values. An execution fails when code panics, when an
//! object is used after it was dropped, or when the execution has no end. It also fails when all threads wait for one
//! another (a lost wake-up). The failure lists the steps that led to it.
//!
//! This crate checks the effects of the processor, not those of the compiler. Accesses are executed in the order of the
//! source code, and an `Ordering` matters only if it requires another instruction (a sequentially consistent store is
//! an exchange). Use Loom to check the rest. Data that is not atomic is written to memory immediately.
//!
//! The program must behave in the same way in each run: addresses, clocks or random numbers must not influence it.
//! Loops that wait must call [`spin_loop`] or [`thread::yield_now`], which return when memory has changed. All threads
//! of a model share the thread-local data of the host's thread. Threads must not depend on data that they share by
//! other means than the types of this crate.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::Ordering::Relaxed;
//!
//! use ascertain_tso::{AtomicU32, explore, thread};
//!
//! // Each thread may miss the other's store, which is still in a buffer.
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

pub use atomic::{Atomic, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Value, fence, heavy, spin_loop};
pub use explorer::{Exploration, Failure, explore};
pub use futex::Futex;
pub use mutex::{Mutex, MutexGuard};
pub use quarantine::Quarantine;
pub use time::Instant;
