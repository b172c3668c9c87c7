//! What the protocols are written in, under the names of the standard library, so that a model checker can run the
//! same code.
//!
//! | built with | types | shows |
//! |---|---|---|
//! | nothing | the standard library's, and the kernel's futex | |
//! | `--cfg model="loom"` | loom's | acquire and release, on any machine that Rust allows |
//! | `--cfg model="portable"` | as with nothing, and no assembly | what ThreadSanitizer can see |
//! | `--cfg model="tso"` | those of `ascertain-tso` | store buffers of x86, asymmetric barriers, and time |
//!
//! Beyond the standard library: `UnsafeCell` is used through `with` and `with_mut`, and `Futex` is an `AtomicU32`
//! that threads can sleep on. Loom treats sequentially consistent accesses as acquire and release: use `fence`.
//! An unbounded loop that waits for another thread must call `spin_loop` or `thread::yield_now` in each round; a
//! bounded one must not run at all in a model.

#![allow(unused_imports)] // one list for all protocols: what one of them stops using stays

#[cfg(model = "loom")]
pub(crate) use self::loom::*;
#[cfg(not(any(model = "loom", model = "tso")))]
pub(crate) use native::*;
#[cfg(model = "tso")]
pub(crate) use tso::*;

/// The standard library's, and the kernel's futex.
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

    /// A word of this process that threads can sleep on.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub(crate) struct Futex(AtomicU32);

    impl Futex {
        pub(crate) const fn new(value: u32) -> Self {
            Self(AtomicU32::new(value))
        }

        /// Sleeps while the word is `expected`, until woken, for `timeout` at most. May return for no reason.
        pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
            futex::wait(&self.0, expected, timeout, Scope::Process);
        }

        /// Wakes all that sleep.
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

/// Loom's, and a futex built of its mutex and condition variable.
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

    /// As the kernel's: comparing and falling asleep are one step to those who wake.
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

        /// A time-out never ends here: who relies on one is found to sleep for ever.
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

/// Those of `ascertain-tso`, which is a dev-dependency: only the crate's own tests can be built so.
#[cfg(model = "tso")]
mod tso {
    pub(crate) use super::cell::UnsafeCell;
    pub(crate) use ascertain_tso::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Futex, Instant, Mutex, fence, spin_loop, thread,
    };
    pub(crate) use std::sync::atomic::{Ordering, compiler_fence};
}

/// Data that one thread at a time may write.
#[cfg(not(model = "loom"))]
mod cell {
    /// The standard library's, with loom's way to read and write it.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        /// Calls `read` with a pointer that nobody may write through meanwhile.
        #[inline]
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        /// Calls `write` with a pointer that nobody else may use meanwhile.
        #[inline]
        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}
