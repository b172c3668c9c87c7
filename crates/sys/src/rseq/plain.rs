//! The data of one CPU, and what the sequences do with it in plain Rust.
//!
//! The plain functions are for callers who have the data to themselves. Two at once lose updates, and so do sequences
//! on two CPUs that are given slices which begin elsewhere; but never memory's safety: all is atomic, relaxed, and
//! nothing is an address. What holds addresses is [`Stacks`](super::Stacks).

use std::mem::size_of;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The words that a CPU has beside their owner's: as many as two cache lines hold.
pub const WORDS: usize = 15;

/// A CPU's data begins so many bytes after another's: two cache lines, which some processors fetch together.
pub(super) const STRIDE_SHIFT: u32 = 7;

/// A number of one CPU's. It wraps around.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Count(AtomicU64);

impl Count {
    /// A number to begin with.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    /// What it is now.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// What [`Area::add`](super::Area::add) does.
    pub fn add(&self, delta: u64) {
        self.0.store(self.get().wrapping_add(delta), Relaxed);
    }

    /// Adds atomically, for those who have no CPU's number to themselves.
    pub fn add_shared(&self, delta: u64) {
        self.0.fetch_add(delta, Relaxed);
    }
}

/// A CPU's words, which its latest acquirer owns. An owner is a generation: one more with each acquirer.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Owned {
    pub(super) generation: AtomicU64,
    /// The words.
    pub words: [AtomicU64; WORDS],
}

impl Owned {
    /// What [`Area::acquire`](super::Area::acquire) does: the new owner.
    pub fn acquire(&self) -> u64 {
        let generation = self.generation.load(Relaxed) + 1;
        self.generation.store(generation, Relaxed);
        generation
    }

    /// What [`Area::store`](super::Area::store) does on the CPU that it was acquired on; false where somebody else owns
    /// the words now.
    #[must_use]
    pub fn store(&self, owner: u64, word: usize, value: u64) -> bool {
        let is_owner = self.is_owned_by(owner);
        if is_owner {
            self.words[word].store(value, Relaxed);
        }
        is_owner
    }

    /// Whether nobody else has acquired the words since.
    #[must_use]
    pub fn is_owned_by(&self, owner: u64) -> bool {
        self.generation.load(Relaxed) == owner
    }

    /// Takes the words from whoever owns them, from any CPU. A store of the old owner's may still be under way until a
    /// [`fence`](super::fence()).
    ///
    /// An acquirer in the middle of its sequence may write over the new generation with the same or an older one: never
    /// one that was owned, since generations that come of this function are nobody's.
    pub fn disown(&self) {
        self.generation.fetch_add(1, Relaxed);
    }
}

const _: () = assert!(size_of::<Count>() == 1 << STRIDE_SHIFT);
const _: () = assert!(size_of::<Owned>() == 1 << STRIDE_SHIFT);
