//! A list of free boxes, which are reused on the CPU that used them last.

use std::cell::Cell;
use std::mem;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use ascertain_sys::rseq::{Area, Outcome, Stacks, Unavailable, possible_cpus};

use super::method::{Method, Shard, of_threads, own};
use crate::drop_all::drop_all;

/// The capacity of a CPU's stack of free boxes is rounded up to a multiple of this number. The addresses of this many
/// boxes fill one or two cache lines.
const LINE: usize = 16;
/// Maximum number of searches in one [`FreeList::pop`]. A search is repeated if another thread is taking boxes from a
/// stack. Such a thread needs some microseconds.
const LOOKS: usize = 100;

/// A list of free boxes, for any thread that needs one. It has a last-in, first-out stack of limited size for each CPU,
/// and a list that all CPUs share.
///
/// [`push`](Self::push) keeps the box, and [`pop`](Self::pop) returns each box once. If the stack of a CPU and the
/// shared list are empty, the CPU takes half of another CPU's stack. The boxes that are left are dropped with the list.
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
    /// The stacks of the CPUs, whose items are leaked boxes of `T`. A stack returns each pushed item at most once, so
    /// only one thread gets it.
    of_cpus: Stacks,
    shards: Box<[Shard<Vec<Box<T>>>]>,
    /// The maximum number of boxes on a CPU's stack. It is also the maximum in a shard: a list that some of the threads
    /// share if per-CPU stacks are not available.
    capacity: usize,
    /// The list that all CPUs share, in its own allocation. So locking it does not touch the fields that each push and
    /// pop reads, and a compiler can keep those fields in registers.
    shared: Box<Mutex<Vec<Box<T>>>>,
}

impl<T> FreeList<T> {
    /// Creates an empty list, which uses the best [`Method`] that is available on this machine. Each CPU's stack holds
    /// `capacity` boxes, rounded up to a multiple of 16.
    ///
    /// # Panics
    /// If a stack would need more bytes than an allocation may have (`isize::MAX`). A stack needs 8 bytes for each box.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Method::first(|method| Self::with_method(capacity, method))
    }

    /// Creates an empty list, which uses the given `method` to keep the boxes of the CPUs apart.
    ///
    /// # Errors
    /// Returns the reason why the method is not available.
    ///
    /// # Panics
    /// Panics in the same case as [`new`](Self::new).
    pub fn with_method(capacity: usize, method: Method) -> Result<Self, Unavailable> {
        let area = method.area()?;
        let capacity = capacity.div_ceil(LINE).max(1).saturating_mul(LINE);
        let of_cpus = Stacks::new(if area.is_some() { possible_cpus() } else { 0 }, capacity);
        // With restartable sequences, no shards are needed: boxes that the stacks do not take go to the shared list.
        let shards =
            if area.is_some() { Box::default() } else { of_threads(area, || Shard::new(Vec::with_capacity(capacity))) };
        Ok(Self { area, of_cpus, shards, capacity, shared: Box::default() })
    }

    /// Keeps the box for a later [`pop`](Self::pop).
    #[inline]
    pub fn push(&self, item: Box<T>) {
        let left = match self.area {
            Some(area) => self.push_own(area, item),
            None => self.push_shard(item),
        };
        if let Some(item) = left {
            self.push_shared(item);
        }
    }

    /// Returns a free box, most likely the box that was last used on this CPU. Returns `None` if there is no box on
    /// this CPU's stack, in the shared list, or on another CPU's stack.
    ///
    /// A box that another thread is moving at that moment is not found. While one thread takes boxes from another CPU's
    /// stack, no other thread can do so. This function then repeats its search, up to 100 times in all, before it
    /// returns `None`.
    #[inline]
    #[must_use]
    pub fn pop(&self) -> Option<Box<T>> {
        let own = match self.area {
            Some(area) => self.pop_own(area),
            None => self.pop_shard(),
        };
        own.or_else(|| self.pop_elsewhere(thread::yield_now))
    }

    /// Pushes the box on the stack of this thread's CPU. Returns the box if that stack does not take it, for example
    /// because it is full.
    #[inline]
    fn push_own(&self, area: Area, item: Box<T>) -> Option<Box<T>> {
        let item = NonNull::from(Box::leak(item)).cast();
        loop {
            match area.push(&self.of_cpus, item) {
                Outcome::Done(()) => return None,
                Outcome::Refused => return Some(Self::boxed(item)),
                Outcome::Aborted => (),
            }
        }
    }

    #[inline]
    fn pop_own(&self, area: Area) -> Option<Box<T>> {
        loop {
            match area.pop(&self.of_cpus) {
                Outcome::Done(item) => return Some(Self::boxed(item)),
                Outcome::Refused => return None,
                Outcome::Aborted => (),
            }
        }
    }

    /// Pushes the box into the shard of this thread. Returns the box if the shard is full. This function is not
    /// inlined, because it is long, and machines with restartable sequences do not call it.
    #[inline(never)]
    fn push_shard(&self, item: Box<T>) -> Option<Box<T>> {
        let mut shard = own(&self.shards).lock();
        if shard.len() == self.capacity {
            return Some(item);
        }
        shard.push(item);
        None
    }

    #[inline(never)]
    fn pop_shard(&self) -> Option<Box<T>> {
        own(&self.shards).lock().pop()
    }

    #[cold]
    fn push_shared(&self, item: Box<T>) {
        self.shared().push(item);
    }

    /// Searches for a box in the shared list, then on the stacks of all CPUs. Calls `rest` between two searches.
    #[cold]
    fn pop_elsewhere(&self, mut rest: impl FnMut()) -> Option<Box<T>> {
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
            rest();
        }
        None
    }

    /// Takes boxes from the list that all CPUs share. It takes half as many boxes as a CPU's stack can hold, and one
    /// more for the caller of [`pop`](Self::pop). If the list has fewer boxes, it takes all of them.
    fn take_shared(&self) -> Vec<Box<T>> {
        let mut shared = self.shared();
        let kept = shared.len().saturating_sub(1 + self.capacity / 2);
        shared.split_off(kept)
    }

    /// Takes half of the boxes from the first stack or shard that has any. Sets `is_busy` if another thread is taking
    /// boxes from one of the stacks.
    fn steal(&self, is_busy: &Cell<bool>) -> Vec<Box<T>> {
        let with_items = (0..self.of_cpus.cpus()).filter(|&cpu| self.of_cpus.len(cpu) > 0);
        let of_cpus = with_items.map(|cpu| match self.of_cpus.stop(cpu) {
            Ok(Some(mut stack)) => {
                let wanted = stack.len().div_ceil(2);
                (0..wanted).map_while(|_| stack.pop()).map(|item| Self::boxed(item)).collect()
            }
            Ok(None) => {
                is_busy.set(true);
                Vec::new()
            }
            // If the kernel cannot stop a CPU's sequences, other CPUs cannot take boxes from its stack.
            Err(_) => Vec::new(),
        });
        let of_shards = self.shards.iter().map(|shard| {
            let mut shard = shard.lock();
            let kept = shard.len() / 2;
            shard.split_off(kept)
        });
        of_cpus.chain(of_shards).find(|items| !items.is_empty()).unwrap_or_default()
    }

    fn shared(&self) -> MutexGuard<'_, Vec<Box<T>>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Converts a pointer that a stack has returned or refused back to its box.
    fn boxed(item: NonNull<()>) -> Box<T> {
        // SAFETY: each item is a box of this type that `push` leaked, and only one thread has it, because a stack
        // returns each item once.
        unsafe { Box::from_raw(item.cast().as_ptr()) }
    }
}

impl<T> Drop for FreeList<T> {
    fn drop(&mut self) {
        let shared = mem::take(&mut *self.shared());
        let of_shards = self.shards.iter().flat_map(|shard| mem::take(&mut *shard.lock()));
        drop_all(self.of_cpus.drain().map(Self::boxed).chain(of_shards).chain(shared));
    }
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use super::*;
    use ascertain_sys::testing::or_left_out;

    #[test]
    fn what_somebody_else_is_at_is_looked_for_again() {
        let Some(list) = or_left_out(FreeList::<u32>::with_method(1, Method::Restartable)) else { return };
        // Kernels before Linux 5.10 do not support this.
        let Some(stopped) = or_left_out(list.of_cpus.stop(0)) else { return };
        let mut stopped = stopped.expect("no other thread has the stack");
        assert!(stopped.push(NonNull::from(Box::leak(Box::new(7))).cast()));
        let mut rests = 0;
        assert_eq!(list.pop_elsewhere(|| rests += 1), None);
        assert_eq!(rests, LOOKS);
        let mut stopped = Some(stopped);
        assert_eq!(list.pop_elsewhere(|| drop(stopped.take())), Some(Box::new(7)));
        assert_eq!(list.pop_elsewhere(|| panic!("no thread uses a stack")), None);
    }
}
