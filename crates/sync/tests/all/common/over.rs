//! Threads that work until a test is over.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when it is dropped, so that threads that check it end, even if the test fails.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
