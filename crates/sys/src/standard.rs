//! Standard input and output that were closed when the program started.
//!
//! Rust opens `/dev/null` in place of a closed standard stream before `main` runs. Without this module a program would
//! take a closed standard input for an empty one, and would write to a closed standard output without an error.

use std::sync::atomic::{AtomicU8, Ordering};

/// The standard streams that were closed when the program started: one bit for each of the descriptors 0 to 2.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Returns whether standard input was closed when the program started. Outside of Linux and macOS this is not known,
/// and the result is `false`.
#[must_use]
pub fn input_was_closed() -> bool {
    was_closed(0)
}

/// Returns whether standard output was closed when the program started. Outside of Linux and macOS this is not known,
/// and the result is `false`.
#[must_use]
pub fn output_was_closed() -> bool {
    was_closed(1)
}

fn was_closed(descriptor: u8) -> bool {
    CLOSED.load(Ordering::Relaxed) & (1 << descriptor) != 0
}

// SAFETY: The loader calls each function in this section once, before `main` and before Rust's runtime starts. `look`
// has the expected signature and needs nothing of the runtime.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static LOOK: extern "C" fn() = look;

#[cfg(any(target_os = "linux", target_os = "macos"))]
extern "C" fn look() {
    for descriptor in 0..3 {
        // SAFETY: F_GETFD takes any number, and fails if the number is not an open descriptor.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}
