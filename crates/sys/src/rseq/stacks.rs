//! A stack of pointers for each CPU.
//!
//! Here memory's safety is at stake: a slot that two write at once, or a top that two move, may lie outside of the
//! memory. So nobody gets at a single stack but its CPU's sequences and who has [stopped](Stacks::stop) those or has
//! all stacks to themselves, and the number of a stack is that of its CPU for as long as it exists.

use std::io;
use std::mem::size_of;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};

use super::fence;
use super::plain::STRIDE_SHIFT;

/// A stack of pointers for each CPU; they are not followed. [`Area::push`](super::Area::push) and
/// [`Area::pop`](super::Area::pop) work on that of the CPU that the thread is on.
///
/// ```
/// use ascertain_sys::rseq::Stacks;
/// use std::ptr::NonNull;
///
/// let mut stacks = Stacks::new(1, 16);
/// // Not on every machine can sequences be stopped.
/// if let Ok(Some(mut stack)) = stacks.stop(0) {
///     assert!(stack.push(NonNull::dangling()));
/// }
/// assert!(stacks.stop(1).is_err());
/// assert!(stacks.drain().count() <= 1);
/// ```
///
/// Nobody gets a part of them, in which another CPU's would be the first:
///
/// ```compile_fail,E0608
/// let stacks = ascertain_sys::rseq::Stacks::new(2, 16);
/// let others = &stacks[1..];
/// ```
#[derive(Debug)]
pub struct Stacks {
    /// Never handed out, in whole or in part.
    pub(super) of_cpus: Box<[Stack]>,
}

impl Stacks {
    /// Empty stacks for the CPUs below `cpus`, each for so many pointers at most, rounded up to fill cache lines.
    ///
    /// # Panics
    /// If a stack would be larger than an allocation may be (`isize::MAX`).
    #[must_use]
    pub fn new(cpus: usize, capacity: usize) -> Self {
        Self { of_cpus: (0..cpus).map(|_| Stack::new(capacity)).collect() }
    }

    /// How many CPUs have one.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.of_cpus.len()
    }

    /// How many pointers that CPU's stack holds, about: its sequences go on. None on a CPU that has no stack.
    #[must_use]
    pub fn len(&self, cpu: usize) -> usize {
        self.of_cpus.get(cpu).map_or(0, Stack::len)
    }

    /// How many pointers each can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.of_cpus.first().map_or(0, |stack| stack.capacity)
    }

    /// Stops the sequences on that CPU's stack, and waits for one that is under way: the caller has the stack to itself
    /// until it drops what it gets. None where somebody else has it.
    ///
    /// # Errors
    /// Those of [`fence`](super::fence()); sequences go on, then. [`InvalidInput`](io::ErrorKind::InvalidInput) for a
    /// CPU that has no stack.
    pub fn stop(&self, cpu: usize) -> io::Result<Option<Stopped<'_>>> {
        self.stop_by(cpu, fence)
    }

    pub(super) fn stop_by(
        &self,
        cpu: usize,
        fence: impl FnOnce(Option<usize>) -> io::Result<()>,
    ) -> io::Result<Option<Stopped<'_>>> {
        let Some(stack) = self.of_cpus.get(cpu) else {
            let message = format!("CPU {cpu} has no stack: they are for {} CPUs", self.of_cpus.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        // What its last user did is seen. x86's exchange is a full barrier: Acquire is for the compiler.
        if stack.is_stopped.swap(true, Acquire) {
            return Ok(None);
        }
        stack.admit(false);
        let stopped = Stopped(stack);
        fence(Some(cpu)).map(|()| Some(stopped))
    }

    /// Takes every pointer off every stack.
    pub fn drain(&mut self) -> impl Iterator<Item = NonNull<()>> {
        // Nobody else has the stacks.
        self.of_cpus.iter().flat_map(|stack| std::iter::from_fn(|| stack.pop()))
    }
}

/// A CPU's stack that no sequence can touch while this exists: see [`Stacks::stop`].
#[derive(Debug)]
pub struct Stopped<'a>(&'a Stack);

impl Stopped<'_> {
    /// How many pointers it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What [`Area::push`](super::Area::push) does; false where it is full.
    #[must_use]
    pub fn push(&mut self, item: NonNull<()>) -> bool {
        self.0.push(item)
    }

    /// What [`Area::pop`](super::Area::pop) does.
    #[must_use]
    pub fn pop(&mut self) -> Option<NonNull<()>> {
        self.0.pop()
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.admit(true);
        self.0.is_stopped.store(false, Release);
    }
}

/// One CPU's.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Stack {
    /// The first slot that is not in use.
    pub(super) top: AtomicPtr<Slot>,
    /// Sequences push below this only, and pop above `floor` only: the slots' end and beginning, but the other way
    /// round while somebody on another CPU has the stack, so that one comparison tells both.
    pub(super) ceiling: AtomicPtr<Slot>,
    pub(super) floor: AtomicPtr<Slot>,
    is_stopped: AtomicBool,
    first: NonNull<Slot>,
    capacity: usize,
}

const _: () = assert!(size_of::<Stack>() == 1 << STRIDE_SHIFT);

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
    pub(super) fn new(capacity: usize) -> Self {
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
        // A sequence that sees this sees what the stack's user did before. x86 keeps stores in order: it is for the
        // compiler.
        self.floor.store(floor.as_ptr(), Release);
        self.ceiling.store(ceiling.as_ptr(), Release);
    }

    pub(super) fn len(&self) -> usize {
        (self.top.load(Relaxed).addr() - self.first.addr().get()) / size_of::<Slot>()
    }

    /// One of the slots, or their end.
    fn slot(&self, index: usize) -> NonNull<Slot> {
        assert!(index <= self.capacity, "a stack ends at its capacity");
        // SAFETY: there are `capacity` slots.
        unsafe { self.first.add(index) }
    }

    /// What a sequence does, for who has the stack: two at once lose items, but stay within the slots.
    pub(super) fn push(&self, item: NonNull<()>) -> bool {
        let len = self.len();
        if len >= self.capacity {
            return false;
        }
        // SAFETY: the slot is not the end, and lives as long as the stack.
        unsafe { self.slot(len).as_ref() }.store(item.as_ptr(), Relaxed);
        self.top.store(self.slot(len + 1).as_ptr(), Relaxed);
        true
    }

    /// As `push`.
    pub(super) fn pop(&self) -> Option<NonNull<()>> {
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
