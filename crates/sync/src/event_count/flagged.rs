//! Version and sleepers' flag in one word.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::contract::{EventCount, SLEEPERS, Version, sealed};
use super::sleep::{Announcement, Sleepers, wait};
use crate::primitives::{AtomicU32, Futex, Instant, Ordering};

/// For a single producer: version and sleepers' flag in one word, to which the producer adds in one instruction
/// without LOCK.
///
/// The addition may overwrite a flag that is set at the same time. A sleeper therefore sleeps only for short times
/// until a second has passed: by then the processor was interrupted, and no store from before the flag is on its way.
/// On a CPU without interrupts for a second (isolated, tickless), use [`MultiProducer`].
///
/// Elsewhere than on x86-64 the addition is atomic.
pub type OneWord = Flagged<Unlocked>;

/// For any number of producers: version and sleepers' flag in one word, which is only changed atomically.
pub type MultiProducer = Flagged<Locked>;

/// Version and sleepers' flag in one word: [`OneWord`] or [`MultiProducer`].
pub struct Flagged<A> {
    word: AtomicU32,
    /// How often sleepers were woken, and what they sleep on. 2^32 times are told from none where one of them falls
    /// asleep meanwhile: all of them are system calls of producers.
    wakes: Futex,
    addition: PhantomData<A>,
}

/// How a producer adds to the word.
pub(crate) trait Addition: Send + Sync + 'static {
    /// Whether it sees every flag that was set before.
    const IS_PROMPT: bool;

    /// Whether the word had the flag before.
    fn add(word: &AtomicU32, count: u32) -> bool;
}

/// In one instruction, by the only one who adds.
#[derive(Debug)]
pub struct Unlocked;

/// Atomically.
#[derive(Debug)]
pub struct Locked;

impl Addition for Unlocked {
    const IS_PROMPT: bool = false;

    #[inline(always)]
    fn add(word: &AtomicU32, count: u32) -> bool {
        match count {
            1 => unlocked::add_one(word),
            _ => unlocked::add(word, count),
        }
    }
}

impl Addition for Locked {
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
    /// Wakes all, after the flag is cleared: who announces itself from now on is seen by the next publication.
    ///
    /// Another may set the flag again between the two steps. Who sleeps because of the flag that was cleared is woken
    /// all the same, before this producer publishes again, and has patience with the new one.
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

#[allow(private_bounds)] // as `EventCount` has it
impl<A: Addition> Flagged<A> {
    /// Publishes. Whether there is somebody to wake.
    #[inline(always)]
    pub(super) fn add(&self, count: u32) -> bool {
        // Adding 0 could overwrite a flag without a new version, and who has waited for that to be over would not know.
        count > 0 && A::add(&self.word, count)
    }
}

/// Parts of what it does, where the whole is too much to explore.
#[cfg(model = "tso")]
#[allow(private_bounds)] // as `EventCount` has it
impl<A: Addition> Flagged<A> {
    /// As if its producer stood still after the addition that made `version`, with a sleeper's flag to clear.
    #[must_use]
    pub fn stalled_at(version: Version) -> Self {
        Self { word: AtomicU32::new(version.get() | SLEEPERS), wakes: Futex::new(0), addition: PhantomData }
    }

    /// What its producer does next.
    pub fn go_on(&self) {
        self.wake();
    }

    /// What a sleeper does that gives up at once; and whether what it announced stands.
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

    /// Sets the flag, unless it is there already: another's, or one that a publication before `seen` has yet to clear.
    fn announce(&self, seen: Version) -> Option<Announcement> {
        // Before the look at the flag: where it is cleared in between, another's that comes later would be taken for
        // it, and patience with that one would begin too early. Acquire: whoever sees that sleepers were woken does not
        // find the flag that was cleared for it. No checker can tell: an exchange that fails finds the last value in
        // each of them, and on x86.
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

/// Addition to a word in memory by its only adder, in one instruction without LOCK.
///
/// In plain Rust: load (relaxed), add, store (release), and no interrupt in between. That last part is what plain Rust
/// cannot say, and what makes it bounded how long an announcement can be overlooked: a thread that is taken off its
/// CPU between load and store would overwrite whatever is announced meanwhile.
///
/// Both functions return whether the word had [`SLEEPERS`] before. When the count itself overflows into that bit they
/// may say so too.
#[cfg(all(target_arch = "x86_64", not(any(miri, model = "loom", model = "tso", model = "portable"))))]
mod unlocked {
    use std::arch::asm;

    use crate::primitives::AtomicU32;

    #[inline(always)]
    pub(super) fn add_one(word: &AtomicU32) -> bool {
        // Bit 31 was set: then the sum is negative, or zero after 2^32 - 1. One branch tells: less or equal. After
        // 2^31 - 1 it is not taken, as the signed addition overflows: the bit that it sets is found next time.
        //
        // SAFETY: `word` is valid for reads and writes, and aligned, so that both are single-copy atomic. Stores
        // before are not moved behind it, since the block may read and write any memory. Nothing else changes but
        // the flags.
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
        // Bit 31 was set: then it still is, or the sum wrapped and left a carry.
        //
        // SAFETY: as above.
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

/// Other machines get an atomic addition, and so do Miri, loom and ThreadSanitizer (`--cfg model="portable"`), which
/// see no assembly; the model of x86 has the instruction.
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
