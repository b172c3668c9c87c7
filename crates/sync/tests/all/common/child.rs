//! A helper that runs part of a test in a child made by fork(2).

/// Runs `body` in a child made by fork(2), and asserts that it returns true there. The child has copies of the locks and
/// descriptors of all threads, so the test must be [alone](ascertain_sys::testing::alone) in its process.
#[cfg(all(unix, not(miri)))]
pub fn in_child(body: impl FnOnce() -> bool) {
    // SAFETY: fork has no arguments. The child only runs `body` and ends. The only lock of another thread that `body`
    // may need is the lock of the allocator, which the C library handles.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            let is_right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
            // SAFETY: `_exit` ends the child without running code that belongs to its parent.
            unsafe { libc::_exit(i32::from(!is_right)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: `status` may be written to, and the child is ours.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!((waited, status), (child, 0), "the body returned false, or the child died");
        }
    }
}

/// Does nothing, because the system does not have fork(2).
#[cfg(not(all(unix, not(miri))))]
pub fn in_child(_body: impl FnOnce() -> bool) {}
