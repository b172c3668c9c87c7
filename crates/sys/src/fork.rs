//! Telling a child made by fork(2) from its parent.

/// A number that this process keeps, and that none of its ancestors had. Threads and locks that memory speaks of are
/// this process's own only if it was the same when they came to be: a child has its parent's memory, and none of its
/// threads.
///
/// The process's number would not do: a child in a namespace of its own may have its parent's (both are 1). Costs two
/// loads. Children that share the parent's memory (vfork(2)) count as the parent; on kernels before Linux 4.14 so do
/// those that the C library did not make (a bare `clone`). Where the system is not Linux it is the process's number for
/// all that.
///
/// ```
/// assert_eq!(ascertain_sys::fork::generation(), ascertain_sys::fork::generation());
/// ```
#[must_use]
pub fn generation() -> u64 {
    imp::generation()
}

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use std::ptr;
    use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
    use std::sync::atomic::{AtomicPtr, AtomicU64};

    use rustix::mm::{self, Advice, MapFlags, ProtFlags};

    /// Memory that the kernel wipes in a child, before anything runs there.
    struct Page {
        /// The number here, once somebody asked for it.
        number: AtomicU64,
        /// 1, and 0 in the first child: where that is not so the kernel wipes nothing.
        is_whole: AtomicU64,
    }

    /// Found without a lock: a thread that held it might not be in the child.
    static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());
    /// The last number given, to an ancestor or to this process.
    static LAST: AtomicU64 = AtomicU64::new(0);
    /// What `PAGE` points to where the kernel has no memory that it wipes.
    static NOT_WIPED: Page = Page { number: AtomicU64::new(0), is_whole: AtomicU64::new(1) };

    const BYTES: usize = size_of::<Page>();

    pub fn generation() -> u64 {
        // SAFETY: neither the static nor the memory, once it is in `PAGE`, is ever given back.
        let number = unsafe { &(*page()).number };
        match number.load(Relaxed) {
            0 => {
                let new = LAST.fetch_add(1, Relaxed) + 1;
                number.compare_exchange(0, new, Relaxed, Relaxed).map_or_else(|other| other, |_| new)
            }
            known => known,
        }
    }

    /// What the C library calls in a child, after what others had it call who came before: for kernels, and emulators,
    /// that wipe nothing. Elsewhere the child may have its number by then, and keeps it.
    extern "C" fn wipe() {
        // SAFETY: as in `generation`.
        if let Some(page) = unsafe { PAGE.load(Relaxed).as_ref() }
            && page.is_whole.load(Relaxed) != 0
        {
            page.number.store(0, Relaxed);
        }
    }

    fn page() -> *const Page {
        let known = PAGE.load(Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: it stores to an atomic, which is allowed in a child. Twice does no harm; nor does not at all, where
        // the kernel wipes the page.
        unsafe { libc::pthread_atfork(None, None, Some(wipe)) };
        let new = wiped().unwrap_or((&raw const NOT_WIPED).cast_mut());
        match PAGE.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                if !ptr::eq(new, &raw const NOT_WIPED) {
                    // SAFETY: it is ours, and nobody else has seen it.
                    let _ = unsafe { mm::munmap(new.cast(), BYTES) };
                }
                other
            }
        }
    }

    /// Made whole, and zeros in each child.
    fn wiped() -> Option<*mut Page> {
        // SAFETY: the kernel chooses where, so that nothing of ours is replaced. The page is zeros, of which atomics
        // may consist, and is unmapped where nobody has it.
        unsafe {
            let page =
                mm::mmap_anonymous(ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
                    .ok()?;
            if mm::madvise(page, BYTES, Advice::LinuxWipeOnFork).is_err() {
                let _ = mm::munmap(page, BYTES);
                return None;
            }
            let page: *mut Page = page.cast();
            (*page).is_whole.store(1, Relaxed);
            Some(page)
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod imp {
    pub fn generation() -> u64 {
        std::process::id().into()
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    /// What `child` returns in a child made by fork, from 0 to 255; more where it died.
    fn in_child(child: impl FnOnce() -> u8) -> i32 {
        // SAFETY: the child calls what allocates nothing and takes no lock, and ends by `_exit`.
        unsafe {
            match libc::fork() {
                0 => libc::_exit(child().into()),
                pid => {
                    let mut status = -1;
                    assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
                    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1000 + status }
                }
            }
        }
    }

    #[test]
    fn each_descendant_has_a_number_of_its_own() {
        let first = generation();
        let distinct = in_child(|| {
            let second = generation();
            let third = in_child(|| u8::from(![first, second].contains(&generation())));
            u8::from(second != first && second == generation() && third == 1)
        });
        assert_eq!((distinct, generation()), (1, first));
    }
}
