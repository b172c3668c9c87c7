//! The collector that needs no thinking of, and each thread's handle of it.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{Collector, Guard, Handle};
use crate::barrier::ExpeditedOrFences;

type Default = ExpeditedOrFences;

/// Null until it is first asked for. Never freed.
static COLLECTOR: AtomicPtr<Collector<Default>> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// This thread's handle, or null. It has no destructor, so that it can be looked at until the thread has ended.
    static HANDLE: Cell<*mut Handle<Default>> = const { Cell::new(ptr::null_mut()) };
    static END: End = const { End };
}

/// What gives the handle up when the thread ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        let handle = HANDLE.try_with(|handle| handle.replace(ptr::null_mut())).ok();
        if let Some(handle) = handle.and_then(NonNull::new) {
            // SAFETY: it comes from a box, and nothing led to it but `HANDLE` and guards.
            unsafe { Handle::leave(handle) };
        }
    }
}

/// The collector of [`pin`], over [`ExpeditedOrFences`]. There is one in a process, which never ends.
pub fn default_collector() -> &'static Collector<ExpeditedOrFences> {
    // SAFETY: null, or never freed.
    unsafe { COLLECTOR.load(Ordering::Acquire).as_ref() }.unwrap_or_else(first)
}

/// Without a lock, which a child process might find closed for ever: who comes second takes the first one's.
#[cold]
fn first() -> &'static Collector<Default> {
    let new = Box::into_raw(Box::new(Collector::new(Default::of_this_machine())));
    if COLLECTOR.compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Relaxed).is_ok() {
        // SAFETY: it comes from a box, and is never freed from now on.
        unsafe { &*new }
    } else {
        // SAFETY: nobody else has seen it.
        drop(unsafe { Box::from_raw(new) });
        default_collector()
    }
}

/// Pins this thread by a handle of its own of the [`default_collector`], as [`Handle::pin`].
///
/// The thread gets its handle the first time. When it ends it leaves what it has not freed to the collector, without
/// running others' destructors or blocking. It may pin until its very end, in the destructors of its thread-locals too,
/// and a guard may outlast the handle there.
///
/// # Panics
/// As of [`Handle::pin`].
#[inline]
pub fn pin() -> Guard<'static> {
    let handle = HANDLE.try_with(Cell::get).ok().and_then(NonNull::new);
    match handle {
        // SAFETY: from a box; it is freed when the thread ends, or by the last guard.
        Some(handle) => unsafe { Handle::pin_at(handle) },
        None => pin_first(),
    }
}

#[cold]
fn pin_first() -> Guard<'static> {
    // SAFETY: a box is not at null.
    let handle = unsafe { NonNull::new_unchecked(Box::into_raw(Box::new(default_collector().register()))) };
    // SAFETY: as in `pin`.
    let guard = unsafe { Handle::pin_at(handle) };
    // Making `END` has it dropped when the thread ends. After that the handle is one for this guard and what is nested
    // in it.
    let is_kept = END.try_with(|_| ()).and_then(|()| HANDLE.try_with(|local| local.set(handle.as_ptr()))).is_ok();
    if !is_kept {
        // SAFETY: it comes from a box, and only the guard leads to it.
        unsafe { Handle::leave(handle) };
    }
    guard
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    /// Nothing but the collector's own pointer orders the threads: with a weaker ordering there, Miri reports that one
    /// reads what another has made before that is there. Not of every thread: one that finds the pointer as it was
    /// before makes a collector of its own, and is ordered by the fences with which that ends.
    #[test]
    fn all_threads_have_the_same_collector() {
        const READERS: usize = 16;
        let look = || (default_collector().epoch(), ptr::from_ref(default_collector()).addr());
        let is_made = AtomicBool::new(false);
        thread::scope(|scope| {
            let read = || {
                while !is_made.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                look()
            };
            let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
            let made = look();
            is_made.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|reader| assert_eq!(reader.join().unwrap(), made));
        });
    }
}
