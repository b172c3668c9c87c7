//! What threads leave behind that end before it could be freed.

use std::ptr;
use std::thread;

use crate::drop_all::drop_all;
use crate::primitives::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::Turn;

/// With as many objects as this, who leaves another frees what can be freed.
const MANY: usize = 1024;

/// A stack to which each thread may add and from which one takes everything: without locks, which a child process
/// might find closed for ever.
#[derive(Debug)]
pub(crate) struct Orphans<T> {
    head: AtomicPtr<Node<T>>,
    /// Objects in it, or more while some are being added.
    objects: AtomicUsize,
    /// As many objects are too many.
    look_at: AtomicUsize,
    freeing: AtomicU64,
}

/// What can be left behind.
pub(crate) trait Leavable {
    /// How many objects there are in it.
    fn objects(&self) -> usize;
}

#[derive(Debug)]
struct Node<T> {
    items: Vec<T>,
    objects: usize,
    next: *mut Node<T>,
}

// SAFETY: items go from the thread that adds them to the one that takes them, each to one.
unsafe impl<T: Send> Send for Orphans<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Orphans<T> {}

impl<T: Leavable> Orphans<T> {
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            objects: AtomicUsize::new(0),
            look_at: AtomicUsize::new(MANY),
            freeing: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(&self, items: Vec<T>) {
        if items.is_empty() {
            return;
        }
        let objects = items.iter().map(T::objects).sum();
        // Before they can be taken: the count never falls below 0.
        self.objects.fetch_add(objects, Ordering::Relaxed);
        let mut head = self.head.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { items, objects, next: head }));
        while let Err(newer) = self.head.compare_exchange(head, node, Ordering::Release, Ordering::Relaxed) {
            head = newer;
            // SAFETY: nobody else has the node yet.
            unsafe { (*node).next = head };
        }
    }

    /// How many objects there are at this moment.
    pub(crate) fn objects(&self) -> usize {
        self.objects.load(Ordering::Relaxed)
    }

    /// For who has just added some: if there are too many by now, calls `free`, which takes and frees what it can and
    /// says how many it could not. One at a time, so that destructors that leave others don't do it within one another.
    pub(crate) fn free_if_many(&self, free: impl FnOnce() -> usize) {
        if self.objects() < self.look_at.load(Ordering::Relaxed) || thread::panicking() {
            return;
        }
        if let Some(_turn) = Turn::take(&self.freeing) {
            let left = free();
            // Half as many again, so that looking at those again and again is not what takes the time. Not twice: who does it
            // while pinned frees what was there the time before, and what waits would grow each time.
            self.look_at.store(MANY + left + left / 2, Ordering::Relaxed);
        }
    }
}

impl<T> Orphans<T> {
    /// Whether there is nothing at this moment.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// Moves everything there is to `items`.
    pub(crate) fn take(&self, items: &mut Vec<T>) {
        // Looking first leaves the cache line where it is when there is nothing, which is nearly always.
        if self.is_empty() {
            return;
        }
        let mut next = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        while !next.is_null() {
            // SAFETY: each node comes from a box, and who swapped the head has all nodes for itself.
            let mut node = *unsafe { Box::from_raw(next) };
            self.objects.fetch_sub(node.objects, Ordering::Relaxed);
            items.append(&mut node.items);
            next = node.next;
        }
    }
}

impl<T> Drop for Orphans<T> {
    fn drop(&mut self) {
        let mut items = Vec::new();
        self.take(&mut items);
        drop_all(items);
    }
}
