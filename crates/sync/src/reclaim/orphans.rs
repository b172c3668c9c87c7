//! What threads leave behind that end before it could be freed.

use std::ptr;

use crate::primitives::{AtomicPtr, Ordering};

/// A stack to which each thread may add and from which one takes everything: without locks, which a child process
/// might find closed for ever.
#[derive(Debug)]
pub(crate) struct Orphans<T> {
    head: AtomicPtr<Node<T>>,
}

#[derive(Debug)]
struct Node<T> {
    items: Vec<T>,
    next: *mut Node<T>,
}

// SAFETY: items go from the thread that adds them to the one that takes them, each to one.
unsafe impl<T: Send> Send for Orphans<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Orphans<T> {}

impl<T> Orphans<T> {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    pub(crate) fn add(&self, items: Vec<T>) {
        if items.is_empty() {
            return;
        }
        let mut head = self.head.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { items, next: head }));
        while let Err(newer) = self.head.compare_exchange(head, node, Ordering::Release, Ordering::Relaxed) {
            head = newer;
            // SAFETY: nobody else has the node yet.
            unsafe { (*node).next = head };
        }
    }

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
            items.append(&mut node.items);
            next = node.next;
        }
    }
}

impl<T> Drop for Orphans<T> {
    fn drop(&mut self) {
        let mut items = Vec::new();
        self.take(&mut items);
    }
}
