//! Counts the memory allocations that the program makes while a function runs.
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
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};

/// The present mode: [`OFF`], [`COUNTING`] or [`HOLDING`].
static MODE: AtomicU8 = AtomicU8::new(OFF);
const OFF: u8 = 0;
/// Allocations are counted, as [`count`] needs.
const COUNTING: u8 = 1;
/// The bytes that are held are tracked, as [`peak_bytes`] needs.
const HOLDING: u8 = 2;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// Bytes that are held beyond those at the start of [`peak_bytes`], and their maximum.
static HELD: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// A global allocator that wraps another one and counts the allocations while [`count`] or [`peak_bytes`] runs.
/// Otherwise each allocation only reads one flag.
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

/// The number and the size of the allocations during the call of a closure, as [`count`] returns them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Number of requests to the allocator: allocations and reallocations.
    pub allocations: u64,
    /// Number of requested bytes. A reallocation counts only the bytes by which the allocation grows.
    pub bytes: u64,
}

/// Calls `f` and returns the number and size of the allocations during the call, on all threads of the program. Drops
/// the result of `f` after counting has ended. Only one thread may call this at a time: another call would change the
/// counts.
pub fn count<T>(f: impl FnOnce() -> T) -> Allocations {
    let read = || [ALLOCATIONS.load(Relaxed), BYTES.load(Relaxed)];
    let before = read();
    MODE.store(COUNTING, Relaxed);
    let result = black_box(f());
    MODE.store(OFF, Relaxed);
    let after = read();
    drop(result);
    Allocations { allocations: after[0] - before[0], bytes: after[1] - before[1] }
}

/// Returns whether the program's allocator is a [`CountingAllocator`].
pub fn is_installed() -> bool {
    count(|| Box::new(0_u64)).allocations > 0
}

/// Calls `f` and returns the most bytes that its allocations held at any moment, on all threads of the program. Memory
/// that was allocated before the call counts only if it is freed or grows. As for [`count`], only one thread may call
/// this at a time.
pub fn peak_bytes<T>(f: impl FnOnce() -> T) -> u64 {
    HELD.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    MODE.store(HOLDING, Relaxed);
    let result = black_box(f());
    MODE.store(OFF, Relaxed);
    drop(result);
    u64::try_from(PEAK.load(Relaxed)).unwrap_or(0)
}

/// Counts an allocation, or a reallocation from `old` to `new` bytes.
fn add(old: usize, new: usize) {
    match MODE.load(Relaxed) {
        COUNTING => {
            ALLOCATIONS.fetch_add(1, Relaxed);
            BYTES.fetch_add(new.saturating_sub(old) as u64, Relaxed);
        }
        HOLDING => hold(new as i64 - old as i64),
        _ => {}
    }
}

/// Adds to the bytes that are held.
fn hold(bytes: i64) {
    let held = HELD.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(held, Relaxed);
}

// SAFETY: all memory comes from the wrapped allocator; adding to the counters neither allocates nor panics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(0, layout.size());
        // SAFETY: this method has the same safety conditions as `alloc` of the wrapped allocator, and the caller keeps
        // them.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(0, layout.size());
        // SAFETY: this method has the same safety conditions as `alloc_zeroed` of the wrapped allocator, and the caller
        // keeps them.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        add(layout.size(), new_size);
        // SAFETY: `pointer` is from the wrapped allocator, because all memory is. The caller keeps the other conditions
        // of `realloc`, which are also those of this method.
        unsafe { self.0.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if MODE.load(Relaxed) == HOLDING {
            hold(-(layout.size() as i64));
        }
        // SAFETY: `pointer` is from the wrapped allocator, because all memory is. The caller keeps the other conditions
        // of `dealloc`, which are also those of this method.
        unsafe { self.0.dealloc(pointer, layout) }
    }
}
