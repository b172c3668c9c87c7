//! The data of one CPU, and functions in plain Rust that do the same as the sequences.
//!
//! The plain functions are for callers with exclusive access to the data. Without exclusive access, updates are lost. A
//! sequence uses the element with the index of its CPU. If two callers pass subslices that begin at different elements,
//! sequences on two CPUs can use the same element and lose updates. Memory stays safe in any case: all data is atomic
//! and relaxed, and none of the data is an address. [`Stacks`](super::Stacks) holds addresses.

use std::mem::size_of;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Number of words that [`OwnedWords`] has for each CPU. Together with the generation they fill two cache lines.
pub const WORDS: usize = 15;

/// Binary logarithm of the distance in bytes between the data of two consecutive CPUs: two cache lines, because some
/// processors fetch two together.
pub(super) const STRIDE_SHIFT: u32 = 7;

/// A counter of one CPU. It wraps around.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Count(AtomicU64);

impl Count {
    /// Creates a counter with this value.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    /// Returns the current value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Adds `delta` as [`Area::add`](super::Area::add) does.
    pub fn add(&self, delta: u64) {
        self.0.store(self.get().wrapping_add(delta), Relaxed);
    }

    /// Adds `delta` atomically, for threads that share this counter.
    pub fn add_shared(&self, delta: u64) {
        self.0.fetch_add(delta, Relaxed);
    }
}

/// The words of a CPU. They belong to the thread that acquired them last. A number, the generation, identifies this
/// owner: each acquisition increases it by one.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct OwnedWords {
    pub(super) generation: AtomicU64,
    /// The words that belong to the current owner.
    pub words: [AtomicU64; WORDS],
}

impl OwnedWords {
    /// Makes the caller the owner of these words, as [`Area::acquire`](super::Area::acquire) does. Returns the
    /// generation that identifies the new owner.
    pub fn acquire(&self) -> u64 {
        let generation = self.generation.load(Relaxed) + 1;
        self.generation.store(generation, Relaxed);
        generation
    }

    /// Stores `value` in the word with the index `word`, if the words still belong to `owner`. Otherwise returns
    /// `false`. [`Area::store`](super::Area::store) does the same for a thread that is on the CPU of the words.
    #[must_use]
    pub fn store(&self, owner: u64, word: usize, value: u64) -> bool {
        let is_owner = self.is_owned_by(owner);
        if is_owner {
            self.words[word].store(value, Relaxed);
        }
        is_owner
    }

    /// Returns whether the words still belong to `owner`. They do if, since `owner` acquired the words, no other thread
    /// has acquired them and no caller has [disowned](Self::disown) them.
    #[must_use]
    pub fn is_owned_by(&self, owner: u64) -> bool {
        self.generation.load(Relaxed) == owner
    }

    /// Takes the words from their owner. May be called on any CPU. A store of the old owner may still be in progress
    /// until a [`fence`](super::fence()).
    ///
    /// The new generation belongs to no owner. If another thread is acquiring the words at this moment, it may
    /// overwrite the new generation with its own. That generation may be smaller than the new one or equal to it. But
    /// it is greater than the generation of the last owner, and has not been used before.
    pub fn disown(&self) {
        self.generation.fetch_add(1, Relaxed);
    }
}

const _: () = assert!(size_of::<Count>() == 1 << STRIDE_SHIFT);
const _: () = assert!(size_of::<OwnedWords>() == 1 << STRIDE_SHIFT);
