//! Boxes to be used again, by the CPU that they were last used on.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use ascertain_sys::rseq::{Area, Outcome, Stack, Unavailable, Yielded};

use super::Method;
use super::shard::{Shard, of_cpus, of_threads, own};

/// How often a thread looks for boxes that somebody else is just taking, which takes some microseconds.
const LOOKS: usize = 100;

/// Boxes that were given up, for whoever needs one next: a last-in, first-out stack for each CPU, which holds so many
/// and no more, and behind it a list that all share.
///
/// [`push`](Self::push) keeps what it gets, and [`pop`](Self::pop) gives each back once. A CPU whose stack and the
/// shared list are empty takes half of another CPU's stack. What is left is dropped with the list.
///
/// ```
/// use ascertain_sync::per_cpu::FreeList;
///
/// let buffers: FreeList<Vec<u8>> = FreeList::new(32);
/// let mut buffer = buffers.pop().unwrap_or_default();
/// buffer.extend(b"to be sent");
/// buffer.clear();
/// buffers.push(buffer); // with its memory
/// assert!(buffers.pop().is_some_and(|buffer| buffer.capacity() > 0));
/// ```
#[derive(Debug)]
pub struct FreeList<T> {
    area: Option<Area>,
    of_cpus: Box<[Stack]>,
    shards: Box<[Shard<Stack>]>,
    /// Elsewhere, so that taking the lock does not touch what each push and pop reads, nor keeps a compiler from having
    /// that in registers.
    shared: Box<Mutex<Vec<Box<T>>>>,
}

// SAFETY: the stacks hold boxes of `T`, each of which goes to one thread.
unsafe impl<T: Send> Send for FreeList<T> {}
// SAFETY: as above; nobody gets a reference to a `T` in the list.
unsafe impl<T: Send> Sync for FreeList<T> {}

impl<T> FreeList<T> {
    /// An empty list with the best method here. Each CPU's stack holds `capacity`, rounded up to a multiple of 16.
    ///
    /// # Panics
    /// If a stack, of 8 bytes times `capacity`, would be larger than an allocation may be (`isize::MAX`).
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Method::first(|method| Self::with_method(capacity, method))
    }

    /// An empty list with a method of the caller's choice.
    ///
    /// # Errors
    /// Why the method can't be had.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn with_method(capacity: usize, method: Method) -> Result<Self, Unavailable> {
        let area = method.area()?;
        let of_cpus = of_cpus(area, || Stack::new(capacity));
        // Where there are sequences, what those leave goes to the shared list.
        let shards =
            if area.is_some() { Box::default() } else { of_threads(area, || Shard::new(Stack::new(capacity))) };
        Ok(Self { area, of_cpus, shards, shared: Box::default() })
    }

    /// Keeps the box for somebody's [`pop`](Self::pop).
    #[inline]
    pub fn push(&self, item: Box<T>) {
        let item = NonNull::from(Box::leak(item)).cast();
        if !self.push_own(item) {
            self.push_shared(item);
        }
    }

    /// A box that was given up, most likely the one that was last on this CPU. None where there is none, neither here nor
    /// shared nor on another CPU's stack; one that is on its way from there to another thread is that thread's. While
    /// another thread takes from a stack nobody else can: this looks again some times, and then says none.
    #[inline]
    #[must_use]
    pub fn pop(&self) -> Option<Box<T>> {
        self.pop_own().map_or_else(|| self.pop_elsewhere(), |item| Some(self.boxed(item)))
    }

    #[inline]
    fn push_own(&self, item: NonNull<()>) -> bool {
        let Some(area) = self.area else { return self.push_shard(item) };
        loop {
            match area.push(&self.of_cpus, item) {
                Outcome::Done => return true,
                Outcome::Refused => return false,
                Outcome::Aborted => (),
            }
        }
    }

    #[inline]
    fn pop_own(&self) -> Option<NonNull<()>> {
        let Some(area) = self.area else { return self.pop_shard() };
        loop {
            match area.pop(&self.of_cpus) {
                Yielded::Done(item) => return Some(item),
                Yielded::Refused => return None,
                Yielded::Aborted => (),
            }
        }
    }

    /// Not inlined: it would be most of the code where there are sequences.
    #[inline(never)]
    fn push_shard(&self, item: NonNull<()>) -> bool {
        let shard = own(&self.shards);
        let _lock = shard.lock();
        shard.data.push(item)
    }

    #[inline(never)]
    fn pop_shard(&self) -> Option<NonNull<()>> {
        let shard = own(&self.shards);
        let _lock = shard.lock();
        shard.data.pop()
    }

    #[cold]
    fn push_shared(&self, item: NonNull<()>) {
        let item = self.boxed(item);
        self.shared().push(item);
    }

    #[cold]
    fn pop_elsewhere(&self) -> Option<Box<T>> {
        for _ in 0..LOOKS {
            let is_busy = Cell::new(false);
            let mut items = self.take_shared();
            if items.is_empty() {
                items = self.steal(&is_busy);
            }
            let first = items.pop();
            items.into_iter().for_each(|item| self.push(item));
            if first.is_some() || !is_busy.get() {
                return first;
            }
            thread::yield_now();
        }
        None
    }

    /// From the shared list, one and half a stack more.
    fn take_shared(&self) -> Vec<Box<T>> {
        let stack = self.of_cpus.first().or(self.shards.first().map(|shard| &shard.data));
        let wanted = 1 + stack.map_or(0, |stack| stack.capacity() / 2);
        let mut shared = self.shared();
        let kept = shared.len().saturating_sub(wanted);
        shared.split_off(kept)
    }

    /// Half of the first other stack that has any; and whether somebody else is at one of them.
    fn steal(&self, is_busy: &Cell<bool>) -> Vec<Box<T>> {
        let half = |stack: &Stack| -> Vec<Box<T>> {
            let wanted = stack.len().div_ceil(2);
            (0..wanted).map_while(|_| stack.pop()).map(|item| self.boxed(item)).collect()
        };
        let of_cpus = self.of_cpus.iter().enumerate().filter(|(_, stack)| !stack.is_empty()).map(|(cpu, stack)| {
            match stack.stop(cpu) {
                Ok(Some(_stopped)) => half(stack),
                Ok(None) => {
                    is_busy.set(true);
                    Vec::new()
                }
                // Where the kernel can't stop a CPU's sequences, its stack is its own.
                Err(_) => Vec::new(),
            }
        });
        let of_shards = self.shards.iter().map(|shard| {
            let _lock = shard.lock();
            half(&shard.data)
        });
        of_cpus.chain(of_shards).find(|items| !items.is_empty()).unwrap_or_default()
    }

    fn shared(&self) -> MutexGuard<'_, Vec<Box<T>>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came off a stack, or did not get on one.
    fn boxed(&self, item: NonNull<()>) -> Box<T> {
        // SAFETY: each item is a box's of this type that `push` leaked, and whoever has it has it alone: a stack gives
        // each back once.
        unsafe { Box::from_raw(item.cast().as_ptr()) }
    }
}

impl<T> Drop for FreeList<T> {
    fn drop(&mut self) {
        let stacks = self.of_cpus.iter().chain(self.shards.iter().map(|shard| &shard.data));
        stacks.for_each(|stack| std::iter::from_fn(|| stack.pop()).for_each(|item| drop(self.boxed(item))));
    }
}
