//! Children made by fork(2).

/// Runs `body` in a child made by fork(2), and asserts that it returns true there. The child has copies of the locks and
/// descriptors of all threads, so the test must be [alone](ascertain_sys::testing::alone) in its process.
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
