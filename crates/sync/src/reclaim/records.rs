//! What readers write for reclaimers to look at.

use std::ptr::{self, NonNull};

use crate::primitives::{AtomicBool, AtomicPtr, Ordering};

/// What one reader writes. On cache lines of its own (two, which some processors fetch together): readers don't slow
/// one another down.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Record<T> {
    pub(crate) value: T,
    is_taken: AtomicBool,
    next: *mut Record<T>,
}

impl<T> Record<T> {
    /// Gives it back for somebody else to take.
    pub(crate) fn release(&self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

/// A list of records that only grows: a record that was given back is taken again before another one is made.
#[derive(Debug)]
pub(crate) struct Records<T> {
    head: AtomicPtr<Record<T>>,
}

// SAFETY: records are shared by reference only, and freed by whoever drops the list.
unsafe impl<T: Send + Sync> Send for Records<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Records<T> {}

impl<T: Default> Records<T> {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// A record for the caller alone to write, until it releases it. It lives as long as the list.
    pub(crate) fn take(&self) -> NonNull<Record<T>> {
        let is_free = |record: &&Record<T>| {
            let taken = &record.is_taken;
            // Looking first leaves the cache line of a record that is taken where it is. Acquire: what its last owner
            // did comes before what is written in it from now on, and before what a reader of that does.
            !taken.load(Ordering::Relaxed) && !taken.swap(true, Ordering::Acquire)
        };
        self.records().find(is_free).map_or_else(|| self.add(), NonNull::from)
    }

    fn add(&self) -> NonNull<Record<T>> {
        let mut head = self.head.load(Ordering::Relaxed);
        let record = Record { value: T::default(), is_taken: AtomicBool::new(true), next: head };
        let record = Box::into_raw(Box::new(record));
        // Release, which who finds a later record acquires too, since each is put before the last by an exchange.
        while let Err(newer) = self.head.compare_exchange(head, record, Ordering::Release, Ordering::Relaxed) {
            head = newer;
            // SAFETY: nobody else has the record yet.
            unsafe { (*record).next = head };
        }
        // SAFETY: a box is not at null.
        unsafe { NonNull::new_unchecked(record) }
    }

    fn records(&self) -> impl Iterator<Item = &Record<T>> {
        // SAFETY: each record lives until the list is dropped, which the borrow of it rules out, and `next` is not
        // written to after the record is in the list. Acquire: with the pointer comes what it points to.
        let head = unsafe { self.head.load(Ordering::Acquire).as_ref() };
        // SAFETY: as above; what `next` points to was in the list before.
        std::iter::successors(head, |record| unsafe { record.next.as_ref() })
    }

    /// What was written in each record, taken or not.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.records().map(|record| &record.value)
    }
}

impl<T> Drop for Records<T> {
    fn drop(&mut self) {
        let mut next = self.head.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: each record comes from a box, is in the list once, and nobody borrows the list.
            next = unsafe { Box::from_raw(next) }.next;
        }
    }
}
