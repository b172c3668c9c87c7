//! Objects whose ends are counted, for the tests of reclamation.
#![allow(dead_code)] // each test uses a part

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many of its objects have been dropped.
#[derive(Clone, Debug, Default)]
pub struct Drops(Arc<AtomicUsize>);

#[derive(Debug)]
pub struct Counted {
    pub value: usize,
    drops: Drops,
    panics: bool,
}

impl Drops {
    pub fn object(&self, value: usize) -> Counted {
        Counted { value, drops: self.clone(), panics: false }
    }

    pub fn object_that_panics(&self) -> Counted {
        Counted { value: 0, drops: self.clone(), panics: true }
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.value = usize::MAX;
        self.drops.0.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "as the test wants it");
    }
}

/// A test for each barrier: the name is that of a function of a barrier. Miri has fences alone.
#[macro_export]
macro_rules! with_each_barrier {
    ($name:ident) => {
        mod $name {
            #[test]
            fn with_fences() {
                super::$name(ascertain_sync::barrier::Fences);
            }

            #[test]
            #[cfg(not(miri))]
            fn with_membarrier() {
                use $crate::left_out::or_left_out;
                if let Some(barrier) = or_left_out(ascertain_sync::barrier::Expedited::new()) {
                    super::$name(barrier);
                }
                if let Some(barrier) = or_left_out(ascertain_sync::barrier::Global::new()) {
                    super::$name(barrier);
                }
            }
        }
    };
}

/// Runs `body` in a child made by fork(2), and asserts that it returns true there.
#[cfg(all(unix, not(miri)))]
pub fn in_child(body: impl FnOnce() -> bool) {
    // SAFETY: fork takes nothing. The child runs `body` alone and ends; of other threads' locks it may meet only the
    // allocator's, which the C library sees to.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            let is_right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
            // SAFETY: it ends the child without running what belongs to its parent.
            unsafe { libc::_exit(i32::from(!is_right)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: `status` is one to write to, and the child is ours.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!((waited, status), (child, 0), "the child says no, or died");
        }
    }
}

/// Where there is no fork(2).
#[cfg(not(all(unix, not(miri))))]
pub fn in_child(_body: impl FnOnce() -> bool) {}
