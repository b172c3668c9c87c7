//! Boxes to be used again, by the CPU that they were last used on.

use std::cell::Cell;
use std::mem;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use ascertain_sys::rseq::{Area, Outcome, Stacks, Unavailable, Yielded, possible_cpus};

use super::method::{Method, Shard, of_threads, own};
use crate::drop_all::drop_all;

/// A CPU's stack holds a multiple of so many: a cache line or two of them.
const LINE: usize = 16;
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
    /// Of boxes of `T`, each of which goes to one thread.
    of_cpus: Stacks,
    shards: Box<[Shard<Vec<Box<T>>>]>,
    /// Of a CPU's stack, and of a shard.
    capacity: usize,
    /// Elsewhere, so that taking the lock does not touch what each push and pop reads, nor keeps a compiler from having
    /// that in registers.
    shared: Box<Mutex<Vec<Box<T>>>>,
}

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
        let capacity = capacity.div_ceil(LINE).max(1).saturating_mul(LINE);
        let of_cpus = Stacks::new(if area.is_some() { possible_cpus() } else { 0 }, capacity);
        // Where there are sequences, what those leave goes to the shared list.
        let shards =
            if area.is_some() { Box::default() } else { of_threads(area, || Shard::new(Vec::with_capacity(capacity))) };
        Ok(Self { area, of_cpus, shards, capacity, shared: Box::default() })
    }

    /// Keeps the box for somebody's [`pop`](Self::pop).
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

    /// A box that was given up, most likely the one that was last on this CPU. None where there is none, neither here
    /// nor shared nor on another CPU's stack; one that is on its way from there to another thread is that thread's.
    /// While another thread takes from a stack nobody else can: this looks again some times, and then says none.
    #[inline]
    #[must_use]
    pub fn pop(&self) -> Option<Box<T>> {
        let own = match self.area {
            Some(area) => self.pop_own(area),
            None => self.pop_shard(),
        };
        own.or_else(|| self.pop_elsewhere(thread::yield_now))
    }

    /// The box again where the CPU's stack does not take it.
    #[inline]
    fn push_own(&self, area: Area, item: Box<T>) -> Option<Box<T>> {
        let item = NonNull::from(Box::leak(item)).cast();
        loop {
            match area.push(&self.of_cpus, item) {
                Outcome::Done => return None,
                Outcome::Refused => return Some(Self::boxed(item)),
                Outcome::Aborted => (),
            }
        }
    }

    #[inline]
    fn pop_own(&self, area: Area) -> Option<Box<T>> {
        loop {
            match area.pop(&self.of_cpus) {
                Yielded::Done(item) => return Some(Self::boxed(item)),
                Yielded::Refused => return None,
                Yielded::Aborted => (),
            }
        }
    }

    /// Not inlined: it would be most of the code where there are sequences.
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

    /// `rest` comes before each look but the first.
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

    /// From the shared list, one and half a stack more.
    fn take_shared(&self) -> Vec<Box<T>> {
        let mut shared = self.shared();
        let kept = shared.len().saturating_sub(1 + self.capacity / 2);
        shared.split_off(kept)
    }

    /// Half of the first other stack that has any; and whether somebody else is at one of them.
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
            // Where the kernel can't stop a CPU's sequences, its stack is its own.
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

    /// What came off a stack, or did not get on one.
    fn boxed(item: NonNull<()>) -> Box<T> {
        // SAFETY: each item is a box's of this type that `push` leaked, and whoever has it has it alone: a stack gives
        // each back once.
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
        // Kernels before Linux 5.10 can't.
        let Some(stopped) = or_left_out(list.of_cpus.stop(0)) else { return };
        let mut stopped = stopped.expect("nobody else has the stack");
        assert!(stopped.push(NonNull::from(Box::leak(Box::new(7))).cast()));
        let mut rests = 0;
        assert_eq!(list.pop_elsewhere(|| rests += 1), None);
        assert_eq!(rests, LOOKS);
        let mut stopped = Some(stopped);
        assert_eq!(list.pop_elsewhere(|| drop(stopped.take())), Some(Box::new(7)));
        assert_eq!(list.pop_elsewhere(|| panic!("nobody is at it")), None);
    }
}
