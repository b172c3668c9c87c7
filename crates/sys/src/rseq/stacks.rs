//! A stack of pointers for each CPU.
//!
//! Memory safety depends on this module: a slot that two threads write at once, or a top that two threads move, could
//! lead to an access outside of the stack. So only two kinds of code can access a single stack: the sequences of its
//! CPU, and a caller who has [stopped](Stacks::stop) these sequences or owns all stacks. A stack belongs to the same
//! CPU as long as it exists.

use std::io;
use std::mem::size_of;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};

use super::fence;
use super::plain::STRIDE_SHIFT;

/// A stack of pointers for each CPU. The pointers are never dereferenced. [`Area::push`](super::Area::push) and
/// [`Area::pop`](super::Area::pop) use the stack of the CPU on which the thread runs.
///
/// ```
/// use ascertain_sys::rseq::Stacks;
/// use std::ptr::NonNull;
///
/// let mut stacks = Stacks::new(1, 16);
/// // Not every machine can stop sequences.
/// if let Ok(Some(mut stack)) = stacks.stop(0) {
///     assert!(stack.push(NonNull::dangling()));
/// }
/// assert!(stacks.stop(1).is_err());
/// assert!(stacks.drain().count() <= 1);
/// ```
///
/// The stacks cannot be sliced. Otherwise the first stack of a slice, which belongs to another CPU, could be mistaken
/// for the stack of CPU 0:
///
/// ```compile_fail,E0608
/// let stacks = ascertain_sys::rseq::Stacks::new(2, 16);
/// let others = &stacks[1..];
/// ```
#[derive(Debug)]
pub struct Stacks {
    /// The stacks, one per CPU. They are private to this type: a caller who has only some of them could use the stack
    /// of one CPU for another CPU.
    pub(super) of_cpus: Box<[Stack]>,
}

impl Stacks {
    /// Creates an empty stack for each CPU whose number is below `cpus`. Each stack holds at most `capacity` pointers,
    /// rounded up to fill cache lines.
    ///
    /// # Panics
    /// If a stack would be larger than an allocation may be (`isize::MAX`).
    #[must_use]
    pub fn new(cpus: usize, capacity: usize) -> Self {
        Self { of_cpus: (0..cpus).map(|_| Stack::new(capacity)).collect() }
    }

    /// Returns the number of CPUs that have a stack. These are the CPUs whose number is below the result.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.of_cpus.len()
    }

    /// Returns the number of pointers on the stack of a CPU. The number is approximate, because sequences may run
    /// meanwhile. It is 0 for a CPU without a stack.
    #[must_use]
    pub fn len(&self, cpu: usize) -> usize {
        self.of_cpus.get(cpu).map_or(0, Stack::len)
    }

    /// Returns the maximum number of pointers on each stack.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.of_cpus.first().map_or(0, |stack| stack.capacity)
    }

    /// Prevents sequences from using the stack of a CPU, and waits until a running sequence has ended. The caller has
    /// exclusive access to the stack until it drops the returned value. Returns `None` if another caller has stopped
    /// the stack already.
    ///
    /// # Errors
    /// Fails like [`fence`](super::fence()); sequences then continue. [`InvalidInput`](io::ErrorKind::InvalidInput)
    /// for a CPU that has no stack.
    pub fn stop(&self, cpu: usize) -> io::Result<Option<StoppedStack<'_>>> {
        self.stop_by(cpu, fence)
    }

    pub(super) fn stop_by(
        &self,
        cpu: usize,
        fence: impl FnOnce(Option<usize>) -> io::Result<()>,
    ) -> io::Result<Option<StoppedStack<'_>>> {
        let Some(stack) = self.of_cpus.get(cpu) else {
            let message = format!("CPU {cpu} has no stack: there are stacks for {} CPUs", self.of_cpus.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        // Acquire makes the actions of the last user visible. An exchange on x86 is a full barrier, so Acquire only
        // restricts the compiler.
        if stack.is_stopped.swap(true, Acquire) {
            return Ok(None);
        }
        stack.admit(false);
        let stopped = StoppedStack(stack);
        fence(Some(cpu)).map(|()| Some(stopped))
    }

    /// Removes all pointers from all stacks.
    pub fn drain(&mut self) -> impl Iterator<Item = NonNull<()>> {
        // `&mut self` ensures exclusive access to the stacks.
        self.of_cpus.iter().flat_map(|stack| std::iter::from_fn(|| stack.pop()))
    }
}

/// A stack that no sequence can access while this exists: see [`Stacks::stop`].
#[derive(Debug)]
pub struct StoppedStack<'a>(&'a Stack);

impl StoppedStack<'_> {
    /// Returns the number of pointers on the stack.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the stack is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pushes as [`Area::push`](super::Area::push) does. Returns `false` if the stack is full.
    #[must_use]
    pub fn push(&mut self, item: NonNull<()>) -> bool {
        self.0.push(item)
    }

    /// Pops as [`Area::pop`](super::Area::pop) does. Returns `None` if the stack is empty.
    #[must_use]
    pub fn pop(&mut self) -> Option<NonNull<()>> {
        self.0.pop()
    }
}

impl Drop for StoppedStack<'_> {
    fn drop(&mut self) {
        self.0.admit(true);
        self.0.is_stopped.store(false, Release);
    }
}

/// The stack of one CPU.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Stack {
    /// The first slot that is not in use.
    pub(super) top: AtomicPtr<Slot>,
    /// The limit of pushes: a push is refused unless `top` is below `ceiling`, which is the end of the slots. While the
    /// stack is stopped, `ceiling` and `floor` are swapped, so every push and pop is refused. In this way one
    /// comparison checks both the limit and whether the stack is stopped.
    pub(super) ceiling: AtomicPtr<Slot>,
    /// The limit of pops: a pop is refused unless `top` is above `floor`, which is the beginning of the slots.
    pub(super) floor: AtomicPtr<Slot>,
    is_stopped: AtomicBool,
    first: NonNull<Slot>,
    capacity: usize,
}

const _: () = assert!(size_of::<Stack>() == 1 << STRIDE_SHIFT);

/// A place for one pointer on a stack.
pub(super) type Slot = AtomicPtr<()>;

// SAFETY: the slots belong to the stack alone, and are atomic.
unsafe impl Send for Stack {}
// SAFETY: the slots belong to the stack alone, and are atomic.
unsafe impl Sync for Stack {}

/// A group of slots that fills two cache lines, which no other CPU uses.
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
        // SAFETY: a box is not at address null. The pointer stands for the whole box, which `Drop` recreates.
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

    /// Sets whether restartable sequences may push and pop, or are refused because the stack is stopped.
    pub(super) fn admit(&self, is_admitted: bool) {
        let (first, end) = (self.slot(0), self.slot(self.capacity));
        let (floor, ceiling) = if is_admitted { (first, end) } else { (end, first) };
        // A sequence that sees these stores also sees what the caller who stopped the stack did before. x86 keeps
        // stores in order, so Release only restricts the compiler.
        self.floor.store(floor.as_ptr(), Release);
        self.ceiling.store(ceiling.as_ptr(), Release);
    }

    pub(super) fn len(&self) -> usize {
        (self.top.load(Relaxed).addr() - self.first.addr().get()) / size_of::<Slot>()
    }

    /// Returns the address of the slot with this index, or of the end of the slots if the index is the capacity.
    fn slot(&self, index: usize) -> NonNull<Slot> {
        assert!(index <= self.capacity, "a stack ends at its capacity");
        // SAFETY: there are `capacity` slots.
        unsafe { self.first.add(index) }
    }

    /// Pushes as a restartable sequence does, for a caller with exclusive access. Returns `false` if the stack is full.
    /// Two concurrent callers lose items, but stay within the slots.
    pub(super) fn push(&self, item: NonNull<()>) -> bool {
        let len = self.len();
        if len >= self.capacity {
            return false;
        }
        // SAFETY: the slot is not the end, and it lives as long as the stack.
        unsafe { self.slot(len).as_ref() }.store(item.as_ptr(), Relaxed);
        self.top.store(self.slot(len + 1).as_ptr(), Relaxed);
        true
    }

    /// Pops as a restartable sequence does, for a caller with exclusive access. Returns `None` if the stack is empty.
    pub(super) fn pop(&self) -> Option<NonNull<()>> {
        let slot = self.slot(self.len().checked_sub(1)?);
        // SAFETY: the slot is below the top, and it lives as long as the stack.
        let item = unsafe { slot.as_ref() }.load(Relaxed);
        self.top.store(slot.as_ptr(), Relaxed);
        NonNull::new(item)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let lines = ptr::slice_from_raw_parts_mut(self.first.as_ptr().cast::<Line>(), self.capacity / PER_LINE);
        // SAFETY: this is the box of that many lines that `new` created.
        drop(unsafe { Box::from_raw(lines) });
    }
}
