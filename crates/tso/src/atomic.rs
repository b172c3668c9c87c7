//! Atomic types with the interface of the standard library, whose values are in the simulated memory of the model.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::atomic::Ordering;

use crate::explorer::{current, step};
use crate::machine::{Op, State, ThreadId, Word};

/// A type that fits into a word of memory.
pub trait Value: Copy {
    /// Converts the value to the bits in memory.
    fn into_bits(self) -> u64;
    /// Converts bits back to a value: the reverse of [`Value::into_bits`]. Ignores the bits that do not fit into the
    /// type.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! integers {
    ($($integer:ty)*) => { $(
        impl Value for $integer {
            fn into_bits(self) -> u64 {
                self as u64
            }
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    )* };
}

integers!(u32 u64 usize);

impl Value for bool {
    fn into_bits(self) -> u64 {
        u64::from(self)
    }

    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
}

impl<T> Value for *mut T {
    fn into_bits(self) -> u64 {
        self.expose_provenance() as u64
    }

    fn from_bits(bits: u64) -> Self {
        std::ptr::with_exposed_provenance_mut(bits as usize)
    }
}

/// A word of the model's memory. Create, use and drop it in [`explore`](crate::explore).
pub struct Atomic<T> {
    word: Word,
    value: PhantomData<fn(T) -> T>,
}

/// An atomic boolean, as in the standard library.
pub type AtomicBool = Atomic<bool>;
/// An atomic number of 32 bits, as in the standard library.
pub type AtomicU32 = Atomic<u32>;
/// An atomic number of 64 bits, as in the standard library.
pub type AtomicU64 = Atomic<u64>;
/// An atomic number of the size of a pointer, as in the standard library.
pub type AtomicUsize = Atomic<usize>;
/// An atomic pointer, as in the standard library.
pub type AtomicPtr<T> = Atomic<*mut T>;

impl<T: Value> Atomic<T> {
    /// Creates a word. All threads see its value immediately.
    #[track_caller]
    pub fn new(value: T) -> Self {
        let (machine, _) = current().expect("atomics of `ascertain_tso` must be created in `explore`");
        let word = machine.lock().add_cell(value.into_bits(), Location::caller());
        Self { word, value: PhantomData }
    }

    #[track_caller]
    pub(crate) fn step<R>(&self, op: fn(Word) -> Op, effect: impl FnOnce(&mut State, ThreadId, Word) -> R) -> R {
        step(op(self.word), |state, thread| effect(state, thread, self.word))
    }

    /// Loads the value from the thread's own buffer, or else from memory.
    #[track_caller]
    pub fn load(&self, _: Ordering) -> T {
        T::from_bits(self.step(Op::Load, |state, thread, word| state.load(thread, word)))
    }

    /// Stores the value in the thread's buffer; with sequential consistency, in memory.
    #[track_caller]
    pub fn store(&self, value: T, order: Ordering) {
        if order == Ordering::SeqCst {
            self.swap(value, order);
        } else {
            self.step(Op::Store, |state, thread, word| state.store(thread, word, value.into_bits()));
        }
    }

    #[track_caller]
    fn update(&self, change: impl FnOnce(T) -> Option<T>) -> T {
        let change = |old| change(T::from_bits(old)).map(T::into_bits);
        T::from_bits(self.step(Op::Update, |state, thread, word| state.update(thread, word, change)))
    }

    /// Stores a value and returns the previous one.
    #[track_caller]
    pub fn swap(&self, value: T, _: Ordering) -> T {
        self.update(|_| Some(value))
    }

    /// Stores `new` if the value is `current`, and returns `current`. Otherwise stores nothing, and returns the present
    /// value as an error.
    #[track_caller]
    pub fn compare_exchange(&self, current: T, new: T, _: Ordering, _: Ordering) -> Result<T, T> {
        let current = current.into_bits();
        let old = step(Op::Compare(self.word, current), |state, thread| {
            state.update(thread, self.word, |old| (old == current).then_some(new.into_bits()))
        });
        if old == current { Ok(T::from_bits(old)) } else { Err(T::from_bits(old)) }
    }

    /// Adds to the value and returns the previous one.
    #[track_caller]
    pub fn fetch_add(&self, by: T, _: Ordering) -> T {
        self.update(|old| Some(T::from_bits(old.into_bits().wrapping_add(by.into_bits()))))
    }

    /// Subtracts from the value and returns the previous one.
    #[track_caller]
    pub fn fetch_sub(&self, by: T, _: Ordering) -> T {
        self.update(|old| Some(T::from_bits(old.into_bits().wrapping_sub(by.into_bits()))))
    }

    /// Stores the bitwise "and" with `mask` and returns the previous value.
    #[track_caller]
    pub fn fetch_and(&self, mask: T, _: Ordering) -> T {
        self.update(|old| Some(T::from_bits(old.into_bits() & mask.into_bits())))
    }
}

impl AtomicU32 {
    /// Adds in one instruction without LOCK and returns the sum. An interrupt comes before or after the instruction,
    /// never within it. But the instruction consists of a load and a store. If another thread writes between the two,
    /// its write is overwritten.
    #[track_caller]
    pub fn add_unlocked(&self, by: u32) -> u32 {
        self.step(Op::Add, |state, thread, word| {
            let sum = (state.load(thread, word) as u32).wrapping_add(by);
            state.store(thread, word, u64::from(sum));
            sum
        })
    }
}

impl<T> Drop for Atomic<T> {
    #[track_caller]
    fn drop(&mut self) {
        // After the end of the model this has no effect.
        if let Some((machine, thread)) = current() {
            machine.step(thread, Op::Free(self.word), Location::caller(), |state| state.free(thread, self.word));
        }
    }
}

impl<T: Value + Default> Default for Atomic<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "word {}", self.word)
    }
}

/// Executes a fence. A sequentially consistent fence empties the thread's buffer. Weaker fences have no effect, because
/// x86 needs no instruction for them.
#[track_caller]
pub fn fence(order: Ordering) {
    if order == Ordering::SeqCst {
        step(Op::Fence, |state, thread| state.drain(thread));
    }
}

/// Empties the buffers of all threads, as an interrupt on every CPU does: this is the heavy side of an asymmetric
/// barrier.
#[track_caller]
pub fn heavy() {
    step(Op::Heavy, |state, _| state.drain_all());
}

/// Waits until memory has changed since the last spin of the thread.
#[track_caller]
pub fn spin_loop() {
    step(Op::Spin, |state, thread| state.spin(thread));
}
