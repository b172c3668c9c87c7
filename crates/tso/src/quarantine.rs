//! Memory that is freed in a model and kept until the execution has ended.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An allocator for tests in which a thread may use memory after it was freed. Memory that a thread of a model frees
/// stays unchanged until the execution has ended. So the model detects the error, before it can affect the host.
///
/// ```
/// #[global_allocator]
/// static QUARANTINE: ascertain_tso::Quarantine = ascertain_tso::Quarantine;
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct Quarantine;

/// The header that this allocator puts before each allocation.
struct Header {
    next: *mut Header,
    layout: Layout,
}

static FREED: AtomicPtr<Header> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    static IS_MODEL: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether memory that the current thread frees from now on is kept.
pub(crate) fn keep(is_model: bool) {
    IS_MODEL.set(is_model);
}

/// Frees the memory that was kept. Call this only while no thread of a model runs.
pub(crate) fn release() {
    let mut header = FREED.swap(std::ptr::null_mut(), Ordering::Acquire);
    while !header.is_null() {
        // SAFETY: `dealloc` put the header there once, initialized, and no code uses the memory behind it any more.
        let Header { next, layout } = unsafe { header.read() };
        // SAFETY: no code uses the memory any more. The header is at the place where `dealloc` wrote it, and `layout`
        // is that of the allocation.
        unsafe { free(header, layout) };
        header = next;
    }
}

/// Returns the layout of an allocation together with its header, and the offset of the memory that the caller gets.
/// `None` if that would be too large.
fn with_header(layout: Layout) -> Option<(Layout, usize)> {
    Layout::new::<Header>().extend(layout).ok()
}

/// Frees an allocation together with its header. `layout` is the layout of the memory after the header.
///
/// # Safety
///
/// `header` is directly before memory that was allocated for `layout`, and no other code uses that memory.
unsafe fn free(header: *mut Header, layout: Layout) {
    if let Some((whole, offset)) = with_header(layout) {
        // SAFETY: the caller's memory is `offset` behind the start, and the header is directly before the caller's
        // memory.
        unsafe { System.dealloc(header.add(1).cast::<u8>().sub(offset), whole) };
    }
}

// SAFETY: memory comes from `System`, with room for a header before it, and is returned there once.
unsafe impl GlobalAlloc for Quarantine {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((whole, offset)) = with_header(layout) else { return std::ptr::null_mut() };
        // SAFETY: `whole` is not empty, because it contains a header.
        let start = unsafe { System.alloc(whole) };
        if start.is_null() {
            return start;
        }
        // SAFETY: `offset` is within the allocation.
        unsafe { start.add(offset) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `alloc` left room for an aligned header directly before the memory: `offset` is at least the size of
        // the header, and both are multiples of the header's alignment.
        let header = unsafe { pointer.cast::<Header>().sub(1) };
        if !IS_MODEL.try_with(Cell::get).unwrap_or(false) {
            // SAFETY: `alloc` allocated this memory for `layout`, and the caller of `dealloc` no longer uses it.
            unsafe { free(header, layout) };
            return;
        }
        let mut next = FREED.load(Ordering::Relaxed);
        loop {
            // SAFETY: there is room for an aligned header: see above.
            unsafe { header.write(Header { next, layout }) };
            match FREED.compare_exchange_weak(next, header, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => next = other,
            }
        }
    }
}
