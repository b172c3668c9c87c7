//! Event counts with the version and the sleepers' flag in one word.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::contract::{EventCount, SLEEPERS, Version, sealed};
use super::sleep::{Announcement, Sleepers, wait};
use crate::primitives::{AtomicU32, Futex, Instant, Ordering};

/// An event count for a single producer. The version and the sleepers' flag are in one word, to which the producer adds
/// in one instruction without LOCK.
///
/// The addition may overwrite a flag that a sleeper sets at the same time. So the sleeper first sleeps only for short
/// times, and checks its flag after each of them. Within a second, the producer's CPU is interrupted, which completes
/// every addition that began before the flag was set. If the flag is still set then, no such addition can overwrite it,
/// so the sleeper relies on the flag. On a CPU that may have no interrupts for a second (isolated, tickless), use
/// [`MultiProducer`].
///
/// On architectures other than x86-64 the addition is atomic.
pub type OneWord = Flagged<UnlockedAddition>;

/// An event count for any number of producers. The version and the sleepers' flag are in one word, which is only
/// changed atomically.
pub type MultiProducer = Flagged<LockedAddition>;

/// The version and the sleepers' flag in one word: [`OneWord`] or [`MultiProducer`].
pub struct Flagged<A> {
    word: AtomicU32,
    /// The number of wake-ups, modulo 2^32. Sleepers sleep on this word. A sleeper would miss its wake-up only if 2^32
    /// wake-ups happened while it falls asleep. There is no time for that many, because each one is a system call.
    wakes: Futex,
    addition: PhantomData<A>,
}

/// The instruction with which a producer adds to the word that contains the version and the sleepers' flag.
pub(crate) trait Addition: Send + Sync + 'static {
    /// `true` if the addition certainly sees a sleepers' flag that was set before the addition, and does not overwrite
    /// the flag.
    const IS_PROMPT: bool;

    /// Adds `count` to the word. Returns whether the sleepers' flag was set in it before.
    fn add(word: &AtomicU32, count: u32) -> bool;
}

/// An addition in one instruction without LOCK, for a single producer.
#[derive(Debug)]
pub struct UnlockedAddition;

/// An atomic addition, for any number of producers.
#[derive(Debug)]
pub struct LockedAddition;

impl Addition for UnlockedAddition {
    const IS_PROMPT: bool = false;

    #[inline(always)]
    fn add(word: &AtomicU32, count: u32) -> bool {
        match count {
            1 => unlocked::add_one(word),
            _ => unlocked::add(word, count),
        }
    }
}

impl Addition for LockedAddition {
    const IS_PROMPT: bool = true;

    #[inline(always)]
    fn add(word: &AtomicU32, count: u32) -> bool {
        word.fetch_add(count, Ordering::Release) & SLEEPERS != 0
    }
}

impl<A: Addition> Default for Flagged<A> {
    fn default() -> Self {
        Self::starting_at(Version::new(0))
    }
}

impl<A> fmt::Debug for Flagged<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flagged").field("word", &self.word).field("wakes", &self.wakes).finish()
    }
}

impl<A> Flagged<A> {
    /// Clears the flag, then wakes all sleepers.
    ///
    /// In this order, no announcement is lost:
    ///
    /// 1. Sleeper A relies on a flag that is already set.
    /// 2. The producer clears the flag.
    /// 3. Sleeper B may set the flag again. The next publication of the producer can see this flag.
    /// 4. The producer wakes all sleepers before it publishes again. If A still waits for another version, it announces
    ///    itself again. For one more second, A then sleeps only for short times.
    #[cold]
    #[inline(never)]
    fn wake(&self) {
        self.clear_flag();
        self.wake_threads();
    }

    pub(super) fn clear_flag(&self) {
        self.word.fetch_and(!SLEEPERS, Ordering::Relaxed);
    }

    pub(super) fn wake_threads(&self) {
        self.wakes.fetch_add(1, Ordering::Release);
        self.wakes.wake_all();
    }
}

#[allow(private_bounds)] // `Addition` is private, so that only this crate implements it
impl<A: Addition> Flagged<A> {
    /// Publishes `count` times; does nothing if `count` is 0. Returns whether there are sleepers to wake.
    #[inline(always)]
    pub(super) fn add(&self, count: u32) -> bool {
        // Adding 0 could overwrite a sleeper's flag without a new version. A sleeper that has stopped checking its flag
        // would not notice that.
        count > 0 && A::add(&self.word, count)
    }
}

/// Single steps of the event count's operations, for models in which a complete operation would have too many
/// executions.
#[cfg(model = "tso")]
#[allow(private_bounds)] // `Addition` is private, so that only this crate implements it
impl<A: Addition> Flagged<A> {
    /// Creates a count whose producer has stopped in the middle of a publication. The producer has added to the word,
    /// which made `version`, and has seen a sleeper's flag. It has not cleared the flag yet.
    #[must_use]
    pub fn stalled_at(version: Version) -> Self {
        Self { word: AtomicU32::new(version.get() | SLEEPERS), wakes: Futex::new(0), addition: PhantomData }
    }

    /// Executes the next step of the stopped producer.
    pub fn go_on(&self) {
        self.wake();
    }

    /// Announces a sleeper that gives up at once. Returns a function that takes the event count and checks whether the
    /// announcement is still valid.
    pub fn announce_in_passing(&self, seen: Version) -> impl Fn(&Self) -> bool + use<A> {
        let announcement = self.announce(seen);
        move |count| announcement.is_some_and(|announcement| count.is_announced(seen, announcement))
    }
}

impl<A> sealed::Sealed for Flagged<A> {}

impl<A: Addition> EventCount for Flagged<A> {
    fn starting_at(version: Version) -> Self {
        Self { word: AtomicU32::new(version.get()), wakes: Futex::new(0), addition: PhantomData }
    }

    #[inline]
    fn snapshot(&self) -> Version {
        self.version()
    }

    #[inline]
    fn publish_many(&self, count: u32) {
        if self.add(count) {
            self.wake();
        }
    }

    fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version> {
        wait(self, seen, deadline)
    }
}

impl<A: Addition> Sleepers for Flagged<A> {
    const IS_PROMPT: bool = A::IS_PROMPT;

    #[inline]
    fn version(&self) -> Version {
        Version::new(self.word.load(Ordering::Acquire))
    }

    /// Sets the flag. If the flag is set already, the sleeper relies on that flag. Either another sleeper has set it
    /// for this version, or it is from an earlier version, and a producer is about to clear it and wake all sleepers.
    fn announce(&self, seen: Version) -> Option<Announcement> {
        // The number of wake-ups is loaded before the flag is read. The other order would permit this: 1. This sleeper
        // finds the flag set. 2. A producer clears the flag and wakes. 3. This sleeper loads the number of wake-ups,
        // and its second of short sleeps begins. 4. Another sleeper sets the flag. This sleeper would mistake that flag
        // for the first one, and would rely on it too early.
        //
        // Acquire: a thread that sees the wake-up does not see the flag that was cleared before the wake-up. No model
        // checker can show this: in each of them, and on x86, an exchange that fails reads the latest value.
        let announcement = Announcement(self.wakes.load(Ordering::Acquire));
        let announced = seen.get() | SLEEPERS;
        match self.word.compare_exchange(seen.get(), announced, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Some(announcement),
            Err(other) => (other == announced).then_some(announcement),
        }
    }

    fn is_announced(&self, seen: Version, Announcement(wakes): Announcement) -> bool {
        self.word.load(Ordering::Relaxed) == seen.get() | SLEEPERS && self.wakes.load(Ordering::Relaxed) == wakes
    }

    fn sleep(&self, Announcement(wakes): Announcement, timeout: Option<Duration>) {
        self.wakes.wait(wakes, timeout);
    }
}

/// Adds to a word in memory in one instruction without LOCK. Only one thread may add to the word.
///
/// In plain Rust this would be a load (relaxed), an addition and a store (release). But between the load and the store,
/// the thread might be preempted, and its store would later overwrite every announcement made meanwhile. Plain Rust
/// cannot prevent that. With one instruction, an announcement is overlooked only for a limited time.
///
/// Both functions return whether the word had [`SLEEPERS`] before. They may also return `true` when the count itself
/// overflows into that bit.
#[cfg(all(target_arch = "x86_64", not(any(miri, model = "loom", model = "tso", model = "portable"))))]
mod unlocked {
    use std::arch::asm;

    use crate::primitives::AtomicU32;

    #[inline(always)]
    pub(super) fn add_one(word: &AtomicU32) -> bool {
        // If bit 31 was set before, the sum is negative, or zero if the word was 2^32 - 1. One branch (less or equal)
        // detects both. If the word was 2^31 - 1, the signed addition overflows and the branch is not taken. The next
        // addition detects the bit that this one has set.
        //
        // SAFETY: `word` is valid for reads and writes, and aligned, so that both are single-copy atomic. Earlier
        // stores are not moved behind it, because the block may read and write any memory. It changes nothing else
        // except the flags.
        unsafe {
            asm!(
                "inc dword ptr [{word}]",
                "jle {had_sleepers}",
                word = in(reg) word.as_ptr(),
                had_sleepers = label { return true },
                options(nostack),
            );
        }
        false
    }

    #[inline(always)]
    pub(super) fn add(word: &AtomicU32, count: u32) -> bool {
        // If bit 31 was set before, it is still set, or the sum wrapped around and left a carry.
        //
        // SAFETY: `word` is valid for reads and writes, and aligned, so that both are single-copy atomic. Earlier
        // stores are not moved behind the block, because it may read and write any memory. It changes nothing else
        // except the flags.
        unsafe {
            asm!(
                "add dword ptr [{word}], {count:e}",
                "js {had_sleepers}",
                "jc {had_sleepers}",
                word = in(reg) word.as_ptr(),
                count = in(reg) count,
                had_sleepers = label { return true },
                options(nostack),
            );
        }
        false
    }
}

/// The addition for targets without the assembly above. These are other architectures, and Miri, loom and
/// ThreadSanitizer (`--cfg model="portable"`), which cannot see assembly. They use an atomic addition; the model of x86
/// uses its own instruction without LOCK.
#[cfg(not(all(target_arch = "x86_64", not(any(miri, model = "loom", model = "tso", model = "portable")))))]
mod unlocked {
    use super::SLEEPERS;
    use crate::primitives::AtomicU32;

    pub(super) fn add_one(word: &AtomicU32) -> bool {
        add(word, 1)
    }

    #[cfg(model = "tso")]
    pub(super) fn add(word: &AtomicU32, count: u32) -> bool {
        word.add_unlocked(count).wrapping_sub(count) & SLEEPERS != 0
    }

    #[cfg(not(model = "tso"))]
    pub(super) fn add(word: &AtomicU32, count: u32) -> bool {
        word.fetch_add(count, crate::primitives::Ordering::Release) & SLEEPERS != 0
    }
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use super::*;

    const EDGES: [u32; 9] = [0, 1, 41, SLEEPERS - 2, SLEEPERS - 1, SLEEPERS, SLEEPERS + 1, u32::MAX - 1, u32::MAX];

    fn check(before: u32, count: u32, add: impl FnOnce(&AtomicU32) -> bool) {
        let word = AtomicU32::new(before);
        let had_sleepers = add(&word);
        let after = word.load(Ordering::Relaxed);
        assert_eq!(after, before.wrapping_add(count));
        if before & SLEEPERS != 0 {
            assert!(had_sleepers, "{before:#x} + {count:#x}");
        } else {
            assert!(!had_sleepers || after & SLEEPERS != 0, "{before:#x} + {count:#x}");
        }
    }

    #[test]
    fn no_sleeper_is_overlooked_at_any_edge() {
        for before in EDGES {
            check(before, 1, unlocked::add_one);
            for count in EDGES.into_iter().filter(|&count| count < SLEEPERS) {
                check(before, count, |word| unlocked::add(word, count));
            }
        }
    }
}
