//! Retired objects: no new reader can find them, but some threads may still be reading them. This module also keeps the
//! retired objects of threads that have ended.

use std::fmt;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::thread;

use ascertain_sys::fork::generation;

use crate::drop_all::drop_all;
use crate::primitives::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Either a closure, or an object that was taken out of the shared structure. Dropping this value calls the closure or
/// frees the object.
pub struct Retired {
    /// One of three: the address of an object, the address of a boxed closure, or a closure of at most the size of an
    /// address.
    word: MaybeUninit<*mut ()>,
    end: unsafe fn(MaybeUninit<*mut ()>),
}

// SAFETY: the creator promises that the object may be freed on any thread.
unsafe impl Send for Retired {}

impl Retired {
    /// Creates the owner of an object. When the owner is dropped, it calls `free` with the object.
    ///
    /// # Safety
    /// `free` may be called with `object` on any thread, once, when this is dropped; no other code frees the object.
    pub(crate) unsafe fn new(object: *mut (), free: unsafe fn(*mut ())) -> Self {
        // SAFETY: the function gets its argument as a `MaybeUninit`, and is only called with an initialized one.
        let end = unsafe { mem::transmute::<unsafe fn(*mut ()), unsafe fn(MaybeUninit<*mut ()>)>(free) };
        Self { word: MaybeUninit::new(object), end }
    }

    /// Creates the owner of a boxed object. When the owner is dropped, it frees the object.
    ///
    /// # Safety
    /// The object is from [`Box::into_raw`] and may be freed on any thread; no other code frees it.
    pub(crate) unsafe fn boxed<T>(object: *mut T) -> Self {
        /// # Safety
        /// The object is allocated in a box of this type.
        unsafe fn free<T>(object: *mut ()) {
            // SAFETY: the caller ensures that `object` is allocated in a box of this type.
            drop(unsafe { Box::from_raw(object.cast::<T>()) });
        }
        // SAFETY: the caller ensures the conditions of `new` for an object in a box of type `T`.
        unsafe { Self::new(object.cast(), free::<T>) }
    }

    /// Stores a closure, in a box if it is larger than a word.
    pub(crate) fn closure<F: FnOnce() + Send + 'static>(closure: F) -> Self {
        /// # Safety
        /// The word was made from a closure of this type, and is used once.
        unsafe fn call<F: FnOnce()>(word: MaybeUninit<*mut ()>) {
            let closure = if is_word::<F>() {
                // SAFETY: the caller ensures that the closure is in the word.
                unsafe { word.as_ptr().cast::<F>().read() }
            } else {
                // SAFETY: the caller ensures that the closure is in a box.
                *unsafe { Box::from_raw(word.assume_init().cast::<F>()) }
            };
            closure();
        }
        let mut word = MaybeUninit::<*mut ()>::uninit();
        if is_word::<F>() {
            // SAFETY: the closure is not larger than a pointer and has no stricter alignment.
            unsafe { word.as_mut_ptr().cast::<F>().write(closure) };
        } else {
            word.write(Box::into_raw(Box::new(closure)).cast());
        }
        Self { word, end: call::<F> }
    }

    /// Returns the address of the object.
    ///
    /// # Safety
    /// `self` was not made from a closure.
    pub(crate) unsafe fn object(&self) -> *mut () {
        // SAFETY: the caller ensures that this was made from an address.
        unsafe { self.word.assume_init() }
    }
}

const fn is_word<F>() -> bool {
    size_of::<F>() <= size_of::<*mut ()>() && align_of::<F>() <= align_of::<*mut ()>()
}

impl Leavable for Retired {
    fn objects(&self) -> usize {
        1
    }
}

impl Drop for Retired {
    fn drop(&mut self) {
        // SAFETY: the contract of `new` or the code of `closure` ensures that `word` fits `end`; a value is dropped
        // once.
        unsafe { (self.end)(self.word) };
    }
}

impl fmt::Debug for Retired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retired").finish_non_exhaustive()
    }
}

/// Minimum number of objects in [`Orphans`] at which a thread that adds further objects tries to free some.
const MANY: usize = 1024;

/// A stack of items that threads leave behind. Each thread may add items, and a thread that takes items takes all of
/// them. It is lock-free, because a lock might stay locked for ever in a child process.
#[derive(Debug)]
pub(crate) struct Orphans<T> {
    head: AtomicPtr<Node<T>>,
    /// The number of objects in the stack. The number is too high for a moment while objects are being added.
    objects: AtomicUsize,
    /// The number of objects at which a thread that adds further objects tries to free some. If the last attempt could
    /// not free n objects, this is [`MANY`] + 1.5 · n.
    look_at: AtomicUsize,
    freeing: AtomicU64,
}

/// An item of [`Orphans`], which contains retired objects.
pub(crate) trait Leavable {
    /// Returns the number of objects in the item.
    fn objects(&self) -> usize;
}

#[derive(Debug)]
struct Node<T> {
    items: Vec<T>,
    objects: usize,
    next: *mut Node<T>,
}

// SAFETY: each item goes from the thread that adds it to the thread that takes it, and to no other thread.
unsafe impl<T: Send> Send for Orphans<T> {}
// SAFETY: each item goes from the thread that adds it to the thread that takes it, and to no other thread.
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
        // The count is increased before the objects can be taken, so it never falls below 0.
        self.objects.fetch_add(objects, Ordering::Relaxed);
        let mut head = self.head.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { items, objects, next: head }));
        while let Err(newer) = self.head.compare_exchange(head, node, Ordering::Release, Ordering::Relaxed) {
            head = newer;
            // SAFETY: no other thread has the node yet.
            unsafe { (*node).next = head };
        }
    }

    /// Returns the current number of objects.
    pub(crate) fn objects(&self) -> usize {
        self.objects.load(Ordering::Relaxed)
    }

    /// Calls `free` if there are too many objects by now. `free` takes and frees as many as possible, and returns how
    /// many it could not free. Call this function after adding objects. Only one thread frees at a time. So a
    /// destructor that leaves other objects behind does not start a nested call of `free`.
    pub(crate) fn free_if_many(&self, free: impl FnOnce() -> usize) {
        if self.objects() < self.look_at.load(Ordering::Relaxed) || thread::panicking() {
            return;
        }
        if let Some(_turn) = Turn::acquire(&self.freeing) {
            let left = free();
            // The new limit grows with the number of objects that are left. Otherwise most of the time would be spent
            // on checking the same objects again. The factor is one and a half. It must be below two because of a
            // thread that frees while it is pinned: that thread can free only the objects that were already waiting the
            // last time. With a factor of two, more objects would wait each time.
            self.look_at.store(MANY + left + left / 2, Ordering::Relaxed);
        }
    }
}

impl<T> Orphans<T> {
    /// Returns whether the stack is empty at this moment.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// Moves all items to `items`.
    pub(crate) fn take_all(&self, items: &mut Vec<T>) {
        // The load comes first: if the stack is empty, as is usual, no exchange takes the cache line from other CPUs.
        if self.is_empty() {
            return;
        }
        let mut next = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        while !next.is_null() {
            // SAFETY: each node is allocated in a box, and the thread that swapped the head has exclusive access to all
            // nodes.
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
        self.take_all(&mut items);
        drop_all(items);
    }
}

/// The value of [`Turn::holder`] while no process has the turn.
const NOBODY: u64 = 0;

/// The turn of one thread to do work that only one thread may do at a time. Other threads can acquire the turn after
/// this value is dropped. A panic drops it too, so the next thread repeats the work and panics as well. If the turn
/// stayed taken instead, nothing would be freed any more, and no thread would notice.
pub(crate) struct Turn<'a> {
    holder: &'a AtomicU64,
    /// `true` in a child made by fork(2) if the turn belonged to a thread that exists only in the parent. The work of
    /// that thread is half done.
    pub(crate) is_inherited: bool,
}

impl<'a> Turn<'a> {
    /// Acquires the turn; returns `None` if another thread of this process has it. `holder` is [`NOBODY`], or the
    /// [`generation`] of the holder's process.
    pub(crate) fn acquire(holder: &'a AtomicU64) -> Option<Self> {
        let process = generation();
        let before = holder.load(Ordering::Relaxed);
        let is_free =
            before != process && holder.compare_exchange(before, process, Ordering::Acquire, Ordering::Relaxed).is_ok();
        is_free.then(|| Self { holder, is_inherited: before != NOBODY })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.holder.store(NOBODY, Ordering::Release);
    }
}
