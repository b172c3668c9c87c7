//! Objects whose drops are counted, for the tests of reclamation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Creates objects and counts how many of them have been dropped.
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
        assert!(!self.panics, "on purpose");
    }
}

/// Runs the body of a test directly, in the process that runs all tests.
pub fn in_place(body: impl FnOnce()) {
    body();
}

/// Defines a module with one test for fences and one for both kinds of membarrier(2). Each test passes its barrier to
/// the function that has the same name as the module. Under Miri there are only fences. The second argument is the
/// function that runs the body of each test, such as [`alone`](ascertain_sys::testing::alone).
#[macro_export]
macro_rules! with_each_barrier {
    ($name:ident) => {
        $crate::with_each_barrier!($name, $crate::common::reclaimed::in_place);
    };
    ($name:ident, $run:path) => {
        mod $name {
            #[test]
            fn with_fences() {
                $run(|| super::$name(ascertain_sync::barrier::Fences));
            }

            #[test]
            #[cfg(not(miri))]
            fn with_membarrier() {
                use ascertain_sys::testing::or_left_out;
                $run(|| {
                    if let Some(barrier) = or_left_out(ascertain_sync::barrier::Expedited::new()) {
                        super::$name(barrier);
                    }
                    if let Some(barrier) = or_left_out(ascertain_sync::barrier::Global::new()) {
                        super::$name(barrier);
                    }
                });
            }
        }
    };
}
