//! The records that readers write and reclaimers read.

use std::ptr::{self, NonNull};

use crate::primitives::{AtomicBool, AtomicPtr, Ordering};

/// The record that one reader writes. It has its own cache lines (two, which some processors fetch together), so that
/// readers do not slow one another down.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Record<T> {
    pub(crate) value: T,
    is_taken: AtomicBool,
    next: *mut Record<T>,
}

impl<T> Record<T> {
    /// Releases the record, so that another reader can take it.
    pub(crate) fn release(&self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

/// A list of records that only grows: released records are reused before a new one is created.
#[derive(Debug)]
pub(crate) struct Records<T> {
    head: AtomicPtr<Record<T>>,
}

// SAFETY: records are shared only by reference, and the drop of the list frees them.
unsafe impl<T: Send + Sync> Send for Records<T> {}
// SAFETY: records are shared only by reference, and the drop of the list frees them.
unsafe impl<T: Send + Sync> Sync for Records<T> {}

impl<T: Default> Records<T> {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Returns a record that only the caller may write, until it is released. The record lives as long as the list.
    pub(crate) fn claim(&self) -> NonNull<Record<T>> {
        let is_free = |record: &&Record<T>| {
            let taken = &record.is_taken;
            // A load comes first: if the record is taken, there is no exchange, which would take the cache line from
            // the owner. Acquire: the actions of the record's last owner come before everything that its new owner
            // writes to it. So a thread that reads what the new owner wrote also comes after the last owner's actions.
            !taken.load(Ordering::Relaxed) && !taken.swap(true, Ordering::Acquire)
        };
        self.records().find(is_free).map_or_else(|| self.add(), NonNull::from)
    }

    fn add(&self) -> NonNull<Record<T>> {
        let mut head = self.head.load(Ordering::Relaxed);
        let record = Record { value: T::default(), is_taken: AtomicBool::new(true), next: head };
        let record = Box::into_raw(Box::new(record));
        // Release: a thread that finds this record also sees its contents. That holds even if the thread first finds a
        // later record, because each later record was also added by an exchange of `head`.
        while let Err(newer) = self.head.compare_exchange(head, record, Ordering::Release, Ordering::Relaxed) {
            head = newer;
            // SAFETY: no other thread has the record yet.
            unsafe { (*record).next = head };
        }
        // SAFETY: a box is not at address null.
        unsafe { NonNull::new_unchecked(record) }
    }

    fn records(&self) -> impl Iterator<Item = &Record<T>> {
        // SAFETY: the list is borrowed, so it is not dropped, and no record is freed. `next` is not written after the
        // record is in the list. Acquire: a thread that sees the pointer sees the record that it points to.
        let head = unsafe { self.head.load(Ordering::Acquire).as_ref() };
        // SAFETY: as above, no record is freed. `next` is null or points to a record that was added earlier.
        std::iter::successors(head, |record| unsafe { record.next.as_ref() })
    }

    /// Returns the values of all records, whether a reader has taken the record or not.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.records().map(|record| &record.value)
    }
}

impl<T> Drop for Records<T> {
    fn drop(&mut self) {
        let mut next = self.head.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: each record is allocated in a box, is in the list once, and the list is not borrowed.
            next = unsafe { Box::from_raw(next) }.next;
        }
    }
}
