//! The atomics of the standard library, on the model's memory.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::atomic::Ordering;

use crate::explorer::{current, step};
use crate::machine::{Op, State, ThreadId, Word};

/// What fits into a word of memory.
pub trait Value: Copy {
    /// As memory holds it.
    fn into_bits(self) -> u64;
    /// The reverse of [`Value::into_bits`].
    fn from_bits(bits: u64) -> Self;
}

/// What can be counted with.
pub trait Integer: Value {
    /// The sum, modulo its size.
    fn plus(self, other: Self) -> Self;
    /// The difference, modulo its size.
    fn minus(self, other: Self) -> Self;
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
        impl Integer for $integer {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
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

/// A word of the model's memory. Made, used and dropped in [`explore`](crate::explore).
pub struct Atomic<T> {
    word: Word,
    value: PhantomData<fn(T) -> T>,
}

/// As in the standard library.
pub type AtomicBool = Atomic<bool>;
/// As in the standard library.
pub type AtomicU32 = Atomic<u32>;
/// As in the standard library.
pub type AtomicU64 = Atomic<u64>;
/// As in the standard library.
pub type AtomicUsize = Atomic<usize>;
/// As in the standard library.
pub type AtomicPtr<T> = Atomic<*mut T>;

impl<T: Value> Atomic<T> {
    /// A new word, which all threads see at once.
    #[track_caller]
    pub fn new(value: T) -> Self {
        let (machine, _) = current().expect("made outside of `ascertain_tso::explore`");
        let word = machine.lock().add_cell(value.into_bits(), Location::caller());
        Self { word, value: PhantomData }
    }

    #[track_caller]
    pub(crate) fn step<R>(&self, op: fn(Word) -> Op, effect: impl FnOnce(&mut State, ThreadId, Word) -> R) -> R {
        step(op(self.word), |state, thread| effect(state, thread, self.word))
    }

    /// From the thread's own buffer, or else from memory.
    #[track_caller]
    pub fn load(&self, _: Ordering) -> T {
        T::from_bits(self.step(Op::Load, |state, thread, word| state.load(thread, word)))
    }

    /// To the thread's buffer; sequentially consistent, to memory.
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

    /// The value before.
    #[track_caller]
    pub fn swap(&self, value: T, _: Ordering) -> T {
        self.update(|_| Some(value))
    }

    /// The value before; an error if it is not `current`, and stays.
    #[track_caller]
    pub fn compare_exchange(&self, current: T, new: T, _: Ordering, _: Ordering) -> Result<T, T> {
        let current = current.into_bits();
        let old = step(Op::Compare(self.word, current), |state, thread| {
            state.update(thread, self.word, |old| (old == current).then_some(new.into_bits()))
        });
        if old == current { Ok(T::from_bits(old)) } else { Err(T::from_bits(old)) }
    }
}

impl<T: Integer> Atomic<T> {
    /// The value before.
    #[track_caller]
    pub fn fetch_add(&self, by: T, _: Ordering) -> T {
        self.update(|old| Some(old.plus(by)))
    }

    /// The value before.
    #[track_caller]
    pub fn fetch_sub(&self, by: T, _: Ordering) -> T {
        self.update(|old| Some(old.minus(by)))
    }

    /// The value before.
    #[track_caller]
    pub fn fetch_and(&self, mask: T, _: Ordering) -> T {
        self.update(|old| Some(T::from_bits(old.into_bits() & mask.into_bits())))
    }
}

impl AtomicU32 {
    /// Adds in one instruction without LOCK; the sum. An interrupt comes before or after it, but another thread's
    /// write may come between its load and its store, and is then overwritten.
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
        // After the model's end nobody cares.
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

/// Sequentially consistent, it empties the thread's buffer; else the processor does nothing.
#[track_caller]
pub fn fence(order: Ordering) {
    if order == Ordering::SeqCst {
        step(Op::Fence, |state, thread| state.drain(thread));
    }
}

/// Empties the buffers of all threads, as an interrupt on every CPU does: the heavy side of an asymmetric barrier.
#[track_caller]
pub fn heavy() {
    step(Op::Heavy, |state, _| state.drain_all());
}

/// Returns when memory has changed since the thread last spun.
#[track_caller]
pub fn spin_loop() {
    step(Op::Spin, |state, thread| state.spin(thread));
}
