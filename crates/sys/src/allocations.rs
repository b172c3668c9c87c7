//! Allocations of a call, counted by the program's allocator.
//!
//! ```
//! use ascertain_sys::allocations::{CountingAllocator, count};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator::system();
//!
//! let counted = count(|| Vec::<u64>::with_capacity(4));
//! assert_eq!((counted.allocations, counted.bytes), (1, 32));
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Wraps a global allocator, and counts what is allocated while [`count`] asks for it. Otherwise it reads one flag for
/// each allocation.
pub struct CountingAllocator<A = System>(A);

impl CountingAllocator {
    /// Wraps the system's allocator.
    pub const fn system() -> Self {
        CountingAllocator(System)
    }
}

impl<A> CountingAllocator<A> {
    /// Wraps another allocator.
    pub const fn wrapping(allocator: A) -> Self {
        CountingAllocator(allocator)
    }
}

/// The allocations of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Number of requests: allocations and reallocations.
    pub allocations: u64,
    /// Number of requested bytes. A reallocation counts with the bytes that it adds.
    pub bytes: u64,
}

/// Calls `f` and returns what the program allocated meanwhile, on all of its threads. The result is dropped before it
/// returns. Only one thread may count at a time.
pub fn count<T>(f: impl FnOnce() -> T) -> Allocations {
    let read = || [ALLOCATIONS.load(Relaxed), BYTES.load(Relaxed)];
    let before = read();
    IS_COUNTING.store(true, Relaxed);
    let result = black_box(f());
    IS_COUNTING.store(false, Relaxed);
    let after = read();
    drop(result);
    Allocations { allocations: after[0] - before[0], bytes: after[1] - before[1] }
}

/// Returns whether the program's allocator is a [`CountingAllocator`].
pub fn is_installed() -> bool {
    count(|| Box::new(0_u64)).allocations > 0
}

fn add(bytes: usize) {
    if IS_COUNTING.load(Relaxed) {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
}

// SAFETY: memory is that of the wrapped allocator, and adding numbers neither allocates nor panics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        add(new_size.saturating_sub(layout.size()));
        // SAFETY: `pointer` is of the wrapped allocator, since all memory is; the rest is the caller's, as above.
        unsafe { self.0.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as of `realloc`.
        unsafe { self.0.dealloc(pointer, layout) }
    }
}
