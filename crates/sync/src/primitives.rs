//! The atomics, locks and threads that the protocols of this crate use, under the names of the standard library. A
//! model checker replaces these types by its own, so it can run the same code.
//!
//! | built with | types | shows |
//! |---|---|---|
//! | nothing | those of the standard library, and the kernel's futex | |
//! | `--cfg model="loom"` | those of loom | acquire and release, on any machine that Rust allows |
//! | `--cfg model="portable"` | those of the first row, without assembly | errors that ThreadSanitizer can detect |
//! | `--cfg model="tso"` | those of `ascertain-tso` | store buffers of x86, asymmetric barriers, and time |
//!
//! Two types differ from the standard library: `UnsafeCell` is accessed through `with` and `with_mut`, and `Futex` is
//! an `AtomicU32` on which threads can sleep. Loom treats sequentially consistent accesses as acquire and release, so
//! use `fence`. An unbounded loop that waits for another thread must call `spin_loop` or `thread::yield_now` in each
//! round. A loop with a limited number of rounds, such as spinning before a sleep, must have no rounds in a model. Its
//! rounds would only add executions that the model checker has to explore.

#![allow(unused_imports)] // all protocols share these lists, which may have more entries than the protocols use

#[cfg(model = "loom")]
pub(crate) use self::loom::*;
#[cfg(not(any(model = "loom", model = "tso")))]
pub(crate) use native::*;
#[cfg(model = "tso")]
pub(crate) use tso::*;

/// The types of the standard library, and the kernel's futex.
#[cfg(not(any(model = "loom", model = "tso")))]
mod native {
    use std::ops::Deref;
    use std::time::Duration;

    use ascertain_sys::futex::{self, Scope};

    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
    };
    pub(crate) use std::thread;
    pub(crate) use std::time::Instant;

    pub(crate) use super::cell::UnsafeCell;

    /// A word of this process on which threads can sleep.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub(crate) struct Futex(AtomicU32);

    impl Futex {
        pub(crate) const fn new(value: u32) -> Self {
            Self(AtomicU32::new(value))
        }

        /// Sleeps while the word is `expected`, until a wake-up or for at most `timeout`. It may also return earlier.
        pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
            futex::wait(&self.0, expected, timeout, Scope::Process);
        }

        /// Wakes all threads that sleep on the word.
        pub(crate) fn wake_all(&self) {
            futex::wake_all(&self.0, Scope::Process);
        }
    }

    impl Deref for Futex {
        type Target = AtomicU32;

        fn deref(&self) -> &AtomicU32 {
            &self.0
        }
    }
}

/// The types of loom, and a futex that is built from its mutex and condition variable.
#[cfg(model = "loom")]
mod loom {
    use std::ops::Deref;
    use std::time::Duration;

    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::hint::spin_loop;
    use loom::sync::Condvar;
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::thread;
    pub(crate) use std::sync::atomic::compiler_fence;
    pub(crate) use std::time::Instant;

    /// A word on which threads can sleep. As for the kernel's futex, the comparison and the start of the sleep are one
    /// atomic step with respect to wake-ups.
    #[derive(Debug)]
    pub(crate) struct Futex {
        word: AtomicU32,
        queue: Mutex<()>,
        woken: Condvar,
    }

    impl Futex {
        pub(crate) fn new(value: u32) -> Self {
            Self { word: AtomicU32::new(value), queue: Mutex::new(()), woken: Condvar::new() }
        }

        /// Sleeps without a timeout, so that code which relies on a timeout sleeps for ever and loom reports it.
        pub(crate) fn wait(&self, expected: u32, _timeout: Option<Duration>) {
            let queue = self.queue.lock().unwrap();
            if self.word.load(Ordering::Relaxed) == expected {
                drop(self.woken.wait(queue).unwrap());
            }
        }

        pub(crate) fn wake_all(&self) {
            let _queue = self.queue.lock().unwrap();
            self.woken.notify_all();
        }
    }

    impl Default for Futex {
        fn default() -> Self {
            Self::new(0)
        }
    }

    impl Deref for Futex {
        type Target = AtomicU32;

        fn deref(&self) -> &AtomicU32 {
            &self.word
        }
    }
}

/// The types of `ascertain-tso`. That crate is a dev-dependency, so only the tests of this crate can be built with its
/// types.
#[cfg(model = "tso")]
mod tso {
    pub(crate) use super::cell::UnsafeCell;
    pub(crate) use ascertain_tso::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Futex, Instant, Mutex, fence, spin_loop, thread,
    };
    pub(crate) use std::sync::atomic::{Ordering, compiler_fence};
}

/// Data that only one thread at a time may write.
#[cfg(not(model = "loom"))]
mod cell {
    /// The `UnsafeCell` of the standard library, with loom's functions for reading and writing.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        /// Calls `read` with a pointer to the data. No thread may write the data during the call.
        #[inline]
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        /// Calls `write` with a pointer to the data. No other thread may use the data during the call.
        #[inline]
        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}

/// Prevents the compiler from reordering memory accesses across this call. It has no instructions.
///
/// This is `compiler_fence(SeqCst)`, except that data which no other thread can reach may stay in registers. After a
/// compiler fence, such data would be loaded again, and the load would wait for the store before it.
#[inline(always)]
pub(crate) fn keep_order() {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(any(miri, model = "portable"))))]
    // SAFETY: the block has no instructions. For the compiler, it may read and write all memory that other threads can
    // reach, and may contain fences of the compiler.
    unsafe {
        std::arch::asm!("", options(nostack, preserves_flags));
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(any(miri, model = "portable")))))]
    compiler_fence(Ordering::SeqCst);
}
