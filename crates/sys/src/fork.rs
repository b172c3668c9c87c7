//! A number that distinguishes a child made by fork(2) from its parent.

/// Returns a number that stays the same in this process and that none of its ancestors had. A child has the memory of
/// its parent, but not the parent's threads. So a record of threads or locks in memory is valid only if this number has
/// not changed since the record was made.
///
/// The process ID would not be enough: a child in its own namespace may have the same ID as its parent (1 for both). A
/// call costs two loads. On systems other than Linux, this is the process ID. A child that shares the memory of its
/// parent (vfork(2)) has the number of its parent. Before Linux 4.14, the same applies to a child that a bare `clone`
/// created, without the C library.
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

    /// Memory that the kernel fills with zeros in a child made by fork(2), before the child runs any code.
    struct Page {
        /// The number that [`generation`] returns in this process, or 0 if no code has requested it yet.
        number: AtomicU64,
        /// 1 in the process that mapped the page. In a child it is 0 if the kernel has wiped the page there, and still
        /// 1 if the kernel has not.
        is_whole: AtomicU64,
    }

    /// The page of this process. It is found without a lock, because a lock might stay locked for ever in a child.
    static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());
    /// The last number that [`generation`] has assigned in this process or an ancestor.
    static LAST: AtomicU64 = AtomicU64::new(0);
    /// The page that is used if the kernel cannot wipe memory in a child.
    static NOT_WIPED: Page = Page { number: AtomicU64::new(0), is_whole: AtomicU64::new(1) };

    const BYTES: usize = size_of::<Page>();

    pub fn generation() -> u64 {
        // SAFETY: the static is never freed, and neither is the memory once its address is in `PAGE`.
        let number = unsafe { &(*page()).number };
        match number.load(Relaxed) {
            0 => {
                let new = LAST.fetch_add(1, Relaxed) + 1;
                number.compare_exchange(0, new, Relaxed, Relaxed).map_or_else(|other| other, |_| new)
            }
            known => known,
        }
    }

    /// The C library calls this in a child, after the handlers that were registered earlier. Only kernels and emulators
    /// that do not wipe memory need this. On other kernels the child may already have its number by then, and keeps it.
    extern "C" fn wipe() {
        // SAFETY: the address is null or that of memory that is never freed.
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
        // SAFETY: the handler only stores to an atomic, which is allowed in a child. Registering it twice does no harm.
        // If it cannot be registered, the number is still right on kernels that wipe the page.
        unsafe { libc::pthread_atfork(None, None, Some(wipe)) };
        let new = wiped().unwrap_or((&raw const NOT_WIPED).cast_mut());
        match PAGE.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                if !ptr::eq(new, &raw const NOT_WIPED) {
                    // SAFETY: we mapped it, and no other thread has seen it.
                    let _ = unsafe { mm::munmap(new.cast(), BYTES) };
                }
                other
            }
        }
    }

    /// Maps a page and sets its flag `is_whole`. The kernel fills the page with zeros in each child, which also clears
    /// the flag.
    fn wiped() -> Option<*mut Page> {
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced. The page is zero, which is valid
        // for atomics, and it is unmapped while no other code has its address.
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

    /// Runs `child` in a child made by fork(2). Returns its result, from 0 to 255, or a larger number if the child
    /// died.
    fn in_child(child: impl FnOnce() -> u8) -> i32 {
        // SAFETY: the child calls code that neither allocates nor takes a lock, and ends by `_exit`.
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
