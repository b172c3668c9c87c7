//! The default collector, and each thread's handle of it.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{Collector, Guard, Handle};
use crate::barrier::ExpeditedOrFences;

type Default = ExpeditedOrFences;

/// The default collector. It is null until it is first used, and never freed.
static COLLECTOR: AtomicPtr<Collector<Default>> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// This thread's handle, or null. The variable has no destructor, so it is accessible until the thread has ended.
    static HANDLE: Cell<*mut Handle<Default>> = const { Cell::new(ptr::null_mut()) };
    static END: End = const { End };
}

/// A value whose destructor runs when the thread ends. It leaves the thread's handle to the guards that still exist,
/// and the last guard frees the handle.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        let handle = HANDLE.try_with(|handle| handle.replace(ptr::null_mut())).ok();
        if let Some(handle) = handle.and_then(NonNull::new) {
            // SAFETY: the handle is allocated in a box, and only `HANDLE` and guards used it.
            unsafe { Handle::leave(handle) };
        }
    }
}

/// Returns the collector that [`pin`] uses, with the barrier [`ExpeditedOrFences`]. Each process has one such
/// collector, which is never freed.
pub fn default_collector() -> &'static Collector<ExpeditedOrFences> {
    // SAFETY: the pointer is null, or its collector is never freed.
    unsafe { COLLECTOR.load(Ordering::Acquire).as_ref() }.unwrap_or_else(first)
}

/// Creates the default collector. Takes no lock, because a lock might stay locked for ever in a child process. If
/// another thread was faster, returns that thread's collector.
#[cold]
fn first() -> &'static Collector<Default> {
    let new = Box::into_raw(Box::new(Collector::new(Default::for_this_machine())));
    if COLLECTOR.compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Relaxed).is_ok() {
        // SAFETY: `new` is from `Box::into_raw`, and is never freed from now on.
        unsafe { &*new }
    } else {
        // SAFETY: `new` is from `Box::into_raw`, and no other thread has seen it.
        drop(unsafe { Box::from_raw(new) });
        default_collector()
    }
}

/// Pins this thread's own handle of the [`default_collector`], as [`Handle::pin`] does.
///
/// The thread gets its handle at the first call. When the thread ends, the objects that it has not freed go to the
/// collector. The end of a thread neither blocks nor runs the destructors of those objects. Until the thread has ended,
/// it may call `pin`, even in the destructors of its thread-local variables. If guards still exist when the thread
/// gives up its handle, the last guard frees the handle.
///
/// # Panics
/// Panics in the same cases as [`Handle::pin`].
#[inline]
pub fn pin() -> Guard<'static> {
    let handle = HANDLE.try_with(Cell::get).ok().and_then(NonNull::new);
    match handle {
        // SAFETY: the handle is allocated in a box; it is freed when the thread ends, or by the last guard.
        Some(handle) => unsafe { Handle::pin_at(handle) },
        None => pin_first(),
    }
}

#[cold]
fn pin_first() -> Guard<'static> {
    // SAFETY: a box is not at address null.
    let handle = unsafe { NonNull::new_unchecked(Box::into_raw(Box::new(default_collector().register()))) };
    // SAFETY: the handle is allocated in a box; it is freed when the thread ends, or by the last guard.
    let guard = unsafe { Handle::pin_at(handle) };
    // Initializing `END` makes its destructor run when the thread ends. If the thread has already destroyed `END`, the
    // handle serves only this guard and the guards nested in it.
    let is_kept = END.try_with(|_| ()).and_then(|()| HANDLE.try_with(|local| local.set(handle.as_ptr()))).is_ok();
    if !is_kept {
        // SAFETY: the handle is allocated in a box, and only the guard uses it.
        unsafe { Handle::leave(handle) };
    }
    guard
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    /// This test fails under Miri if the ordering of `COLLECTOR` is too weak: a thread then reads another thread's
    /// collector before that collector is complete. Many readers are needed. Some still find null and create their own
    /// collector, whose fences order the threads and hide the error.
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
