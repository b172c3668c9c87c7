//! Memory that is freed in a model, kept until its execution has ended.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An allocator for tests in which freed memory may be used, so that the model, and not the host, finds it out:
/// what a thread of a model frees stays as it is until the execution has ended.
///
/// ```
/// #[global_allocator]
/// static QUARANTINE: ascertain_tso::Quarantine = ascertain_tso::Quarantine;
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct Quarantine;

/// Before each allocation.
struct Header {
    next: *mut Header,
    layout: Layout,
}

static FREED: AtomicPtr<Header> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    static IS_MODEL: Cell<bool> = const { Cell::new(false) };
}

/// Whether what the current thread frees from now on is kept.
pub(crate) fn keep(is_model: bool) {
    IS_MODEL.set(is_model);
}

/// Frees what was freed. No thread of a model may run.
pub(crate) fn release() {
    let mut header = FREED.swap(std::ptr::null_mut(), Ordering::Acquire);
    while !header.is_null() {
        // SAFETY: `dealloc` put it there once, written, and nobody uses the memory behind it any more.
        let Header { next, layout } = unsafe { header.read() };
        // SAFETY: as above; it begins where the allocation does, and `layout` is what it was made with.
        unsafe { free(header, layout) };
        header = next;
    }
}

/// The allocation's layout with its header, and how far behind the start the caller's part begins.
fn with_header(layout: Layout) -> Option<(Layout, usize)> {
    Layout::new::<Header>().extend(layout).ok()
}

/// # Safety
///
/// `header` lies directly before memory that was allocated for `layout`, and was given to nobody else.
unsafe fn free(header: *mut Header, layout: Layout) {
    if let Some((whole, offset)) = with_header(layout) {
        // SAFETY: the caller's part lies `offset` behind the start, the header directly before the caller's part.
        unsafe { System.dealloc(header.add(1).cast::<u8>().sub(offset), whole) };
    }
}

// SAFETY: memory comes from `System`, with room for a header before it, and goes back there once.
unsafe impl GlobalAlloc for Quarantine {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((whole, offset)) = with_header(layout) else { return std::ptr::null_mut() };
        // SAFETY: `whole` is not empty, for it has a header.
        let start = unsafe { System.alloc(whole) };
        if start.is_null() {
            return start;
        }
        // SAFETY: `offset` is within the allocation.
        unsafe { start.add(offset) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `alloc` left room for a header directly before, aligned: `offset` is at least its size, and both are
        // multiples of its alignment.
        let header = unsafe { pointer.cast::<Header>().sub(1) };
        if !IS_MODEL.try_with(Cell::get).unwrap_or(false) {
            // SAFETY: `alloc` made it for `layout`, and the caller gives it up.
            unsafe { free(header, layout) };
            return;
        }
        let mut next = FREED.load(Ordering::Relaxed);
        loop {
            // SAFETY: there is room for it, aligned: see above.
            unsafe { header.write(Header { next, layout }) };
            match FREED.compare_exchange_weak(next, header, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => next = other,
            }
        }
    }
}
