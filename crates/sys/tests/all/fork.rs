//! Tests a child that requests its generation before this crate's fork handler has run. The C library calls fork
//! handlers in the order of their registration. The test is alone in its process, so that it can register its own
//! handler before this crate's.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ascertain_sys::fork::generation;
use ascertain_sys::testing::{alone, left_out};

static ASKED: AtomicU64 = AtomicU64::new(0);

extern "C" fn request_number() {
    ASKED.store(generation(), Relaxed);
}

fn has_memory_that_is_wiped() -> bool {
    let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the kernel chooses the address, and no code uses the memory.
    unsafe {
        let memory = libc::mmap(ptr::null_mut(), 1, rights, kind, -1, 0);
        memory != libc::MAP_FAILED && libc::madvise(memory, 1, libc::MADV_WIPEONFORK) == 0
    }
}

#[test]
fn a_child_keeps_the_number_that_it_was_given_first() {
    alone(|| {
        if !has_memory_that_is_wiped() {
            return left_out("the kernel has no memory that it wipes in a child (Linux before 4.14)");
        }
        // SAFETY: the handler does only what any thread of a child may do. It is registered before the handler of this
        // crate, so the C library calls it first.
        unsafe { libc::pthread_atfork(None, None, Some(request_number)) };
        let parent = generation();
        // SAFETY: the child compares numbers and ends by `_exit`.
        let child = unsafe {
            match libc::fork() {
                0 => {
                    libc::_exit(i32::from(ASKED.load(Relaxed) != generation()) + 2 * i32::from(generation() == parent))
                }
                child => child,
            }
        };
        let mut status = -1;
        // SAFETY: the child is ours, and `status` may be written to.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(
            (status, generation()),
            (0, parent),
            "256: the child has two numbers, 512: it has the number of its parent"
        );
    });
}
