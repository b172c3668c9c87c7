//! Objects that nobody can reach any more, but that some may still read; and those whose thread has ended meanwhile.

use std::fmt;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::thread;

use ascertain_sys::fork::generation;

use crate::drop_all::drop_all;
use crate::primitives::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// An object that was taken out of the shared structure, or a closure. Dropping this frees the object or calls the
/// closure.
pub struct Retired {
    /// An address, or a closure that is no larger than one.
    word: MaybeUninit<*mut ()>,
    end: unsafe fn(MaybeUninit<*mut ()>),
}

// SAFETY: who makes one promises that the object may be freed on any thread.
unsafe impl Send for Retired {}

impl Retired {
    /// # Safety
    /// `free` may be called with the object on any thread, once, when this is dropped; nothing else frees it.
    pub(crate) unsafe fn new(object: *mut (), free: unsafe fn(*mut ())) -> Self {
        // SAFETY: a `MaybeUninit` is passed as what may be in it, and is given one that is.
        let end = unsafe { mem::transmute::<unsafe fn(*mut ()), unsafe fn(MaybeUninit<*mut ()>)>(free) };
        Self { word: MaybeUninit::new(object), end }
    }

    /// # Safety
    /// The object comes from [`Box::into_raw`] and may be freed on any thread; nothing else frees it.
    pub(crate) unsafe fn boxed<T>(object: *mut T) -> Self {
        /// # Safety
        /// The object comes from a box of this type.
        unsafe fn free<T>(object: *mut ()) {
            // SAFETY: by the contract.
            drop(unsafe { Box::from_raw(object.cast::<T>()) });
        }
        // SAFETY: by the contract.
        unsafe { Self::new(object.cast(), free::<T>) }
    }

    /// A closure, in a box if it is larger than a word.
    pub(crate) fn closure<F: FnOnce() + Send + 'static>(closure: F) -> Self {
        /// # Safety
        /// The word was made of a closure of this type, and is used once.
        unsafe fn call<F: FnOnce()>(word: MaybeUninit<*mut ()>) {
            let closure = if is_word::<F>() {
                // SAFETY: by the contract, it is in the word.
                unsafe { word.as_ptr().cast::<F>().read() }
            } else {
                // SAFETY: by the contract, it is in a box.
                *unsafe { Box::from_raw(word.assume_init().cast::<F>()) }
            };
            closure();
        }
        let mut word = MaybeUninit::<*mut ()>::uninit();
        if is_word::<F>() {
            // SAFETY: it is neither larger than a pointer nor aligned to more.
            unsafe { word.as_mut_ptr().cast::<F>().write(closure) };
        } else {
            word.write(Box::into_raw(Box::new(closure)).cast());
        }
        Self { word, end: call::<F> }
    }

    /// # Safety
    /// It is not a closure.
    pub(crate) unsafe fn object(&self) -> *mut () {
        // SAFETY: by the contract, it was made of an address.
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
        // SAFETY: by the contract of `new`, or as of `closure`; a value is dropped once.
        unsafe { (self.end)(self.word) };
    }
}

impl fmt::Debug for Retired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retired").finish_non_exhaustive()
    }
}

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
            // Half as many again, so that looking at those again and again is not what takes the time. Not twice: who
            // does it while pinned frees what was there the time before, and what waits would grow each time.
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

/// Nobody's turn.
const NOBODY: u64 = 0;

/// It is somebody's turn until this is dropped: also when what is done meanwhile panics. Who comes next panics too
/// then, and does not go on in silence with nothing ever freed.
pub(crate) struct Turn<'a> {
    holder: &'a AtomicU64,
    /// A thread had it that this process, a child made by fork(2), does not have. What it was at is half done.
    pub(crate) is_inherited: bool,
}

impl<'a> Turn<'a> {
    /// None if somebody else is at it. The word is 0 at first, and then the number of the holder's process.
    pub(crate) fn take(holder: &'a AtomicU64) -> Option<Self> {
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
