//! The data of one CPU, and what the sequences do with it in plain Rust.
//!
//! The plain functions are for callers who have the data to themselves. Two at once lose updates, but never memory's
//! safety: all is atomic, relaxed.

use std::mem::size_of;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

/// The words that a CPU has beside their owner's: as many as two cache lines hold.
pub const WORDS: usize = 15;

/// A CPU's data begins so many bytes after another's: two cache lines, which some processors fetch together.
pub(super) const STRIDE_SHIFT: u32 = 7;

/// A number of one CPU's. It wraps around.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Count(AtomicU64);

impl Count {
    /// A number to begin with.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    /// What it is now.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// What [`Area::add`](super::Area::add) does.
    pub fn add(&self, delta: u64) {
        self.0.store(self.get().wrapping_add(delta), Relaxed);
    }

    /// Adds atomically, for those who have no CPU's number to themselves.
    pub fn add_shared(&self, delta: u64) {
        self.0.fetch_add(delta, Relaxed);
    }
}

/// A CPU's stack of pointers, which it does not follow.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Stack {
    /// The first slot that is not in use.
    pub(super) top: AtomicPtr<Slot>,
    /// Sequences push below this only, and pop above `floor` only: the slots' end and beginning, but the other way round
    /// while somebody on another CPU has the stack, so that one comparison tells both.
    pub(super) ceiling: AtomicPtr<Slot>,
    pub(super) floor: AtomicPtr<Slot>,
    pub(super) is_stopped: AtomicBool,
    first: NonNull<Slot>,
    capacity: usize,
}

/// Where an item is, or will be.
pub(super) type Slot = AtomicPtr<()>;

// SAFETY: the slots belong to the stack alone, and are atomic.
unsafe impl Send for Stack {}
// SAFETY: as above.
unsafe impl Sync for Stack {}

/// Slots lie on cache lines of their CPU's own.
#[repr(align(128))]
struct Line {
    _slots: [Slot; PER_LINE],
}

const PER_LINE: usize = 128 / size_of::<Slot>();

impl Stack {
    /// An empty stack that holds so many at most, rounded up to fill cache lines.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let lines = capacity.div_ceil(PER_LINE).max(1);
        let line = || Line { _slots: [const { AtomicPtr::new(ptr::null_mut()) }; PER_LINE] };
        let memory: Box<[Line]> = (0..lines).map(|_| line()).collect();
        // SAFETY: a box is not at null. The pointer stands for the whole of it: `Drop` makes the box again.
        let first = unsafe { NonNull::new_unchecked(Box::into_raw(memory).cast::<Slot>()) };
        let stack = Self {
            top: AtomicPtr::new(first.as_ptr()),
            ceiling: AtomicPtr::default(),
            floor: AtomicPtr::default(),
            is_stopped: AtomicBool::new(false),
            first,
            capacity: lines * PER_LINE,
        };
        stack.admit(true);
        stack
    }

    /// Whether sequences may push and pop.
    pub(super) fn admit(&self, is_admitted: bool) {
        let (first, end) = (self.slot(0), self.slot(self.capacity));
        let (floor, ceiling) = if is_admitted { (first, end) } else { (end, first) };
        // A sequence that sees this sees what the stack's user did before.
        self.floor.store(floor.as_ptr(), Release);
        self.ceiling.store(ceiling.as_ptr(), Release);
    }

    /// How many it holds: exactly for those who have it to themselves, else about.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.top.load(Relaxed).addr() - self.first.addr().get()) / size_of::<Slot>()
    }

    /// Whether it holds none, as [`len`](Self::len) says.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// One of the slots, or their end.
    fn slot(&self, index: usize) -> NonNull<Slot> {
        assert!(index <= self.capacity, "a stack ends at its capacity");
        // SAFETY: there are `capacity` slots.
        unsafe { self.first.add(index) }
    }

    /// What [`Area::push`](super::Area::push) does; false where it is full.
    #[must_use]
    pub fn push(&self, item: NonNull<()>) -> bool {
        let len = self.len();
        if len >= self.capacity {
            return false;
        }
        // SAFETY: the slot is not the end, and lives as long as the stack.
        unsafe { self.slot(len).as_ref() }.store(item.as_ptr(), Relaxed);
        self.top.store(self.slot(len + 1).as_ptr(), Relaxed);
        true
    }

    /// What [`Area::pop`](super::Area::pop) does.
    #[must_use]
    pub fn pop(&self) -> Option<NonNull<()>> {
        let slot = self.slot(self.len().checked_sub(1)?);
        // SAFETY: a slot below the top, which lives as long as the stack.
        let item = unsafe { slot.as_ref() }.load(Relaxed);
        self.top.store(slot.as_ptr(), Relaxed);
        NonNull::new(item)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let lines = ptr::slice_from_raw_parts_mut(self.first.as_ptr().cast::<Line>(), self.capacity / PER_LINE);
        // SAFETY: it is the box of as many lines that `new` made.
        drop(unsafe { Box::from_raw(lines) });
    }
}

/// A CPU's words, which its latest acquirer owns. An owner is a generation: one more with each acquirer.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Owned {
    pub(super) generation: AtomicU64,
    /// The words.
    pub words: [AtomicU64; WORDS],
}

impl Owned {
    /// What [`Area::acquire`](super::Area::acquire) does: the new owner.
    pub fn acquire(&self) -> u64 {
        let generation = self.generation.load(Relaxed) + 1;
        self.generation.store(generation, Relaxed);
        generation
    }

    /// What [`Area::store`](super::Area::store) does on the CPU that it was acquired on; false where somebody else owns the
    /// words now.
    #[must_use]
    pub fn store(&self, owner: u64, word: usize, value: u64) -> bool {
        let is_owner = self.is_owned_by(owner);
        if is_owner {
            self.words[word].store(value, Relaxed);
        }
        is_owner
    }

    /// Whether nobody else has acquired the words since.
    #[must_use]
    pub fn is_owned_by(&self, owner: u64) -> bool {
        self.generation.load(Relaxed) == owner
    }

    /// Takes the words from whoever owns them, from any CPU. A store of the old owner's may still be under way until a
    /// [`fence`](super::fence()).
    ///
    /// An acquirer in the middle of its sequence may write over the new generation with the same or an older one: never one
    /// that was owned, since generations that come of this function are nobody's.
    pub fn disown(&self) {
        self.generation.fetch_add(1, Relaxed);
    }
}

const _: () = assert!(size_of::<Count>() == 1 << STRIDE_SHIFT);
const _: () = assert!(size_of::<Stack>() == 1 << STRIDE_SHIFT);
const _: () = assert!(size_of::<Owned>() == 1 << STRIDE_SHIFT);
