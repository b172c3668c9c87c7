//! Threads that work until a test is over.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when it is dropped, even if the test fails. The threads of the test check the flag, and end when it is
/// set.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
