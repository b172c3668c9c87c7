//! A lock that is held until somebody else needs it.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::Relaxed;

use ascertain_sys::rseq::{self, Area, Outcome, Owned, Unavailable, WORDS, Yielded};

use super::method::{Method, Shard, of_cpus, of_threads, own};

/// A revocable lock on some words, which each CPU has of its own: [`WORDS`] of 64 bits, zero at first.
///
/// Nobody waits for it and nobody gives it back. Who acquires it takes it from the thread that held it on this CPU,
/// which is not running, since the acquirer is. That thread goes on with its work when its turn comes, and finds
/// its next store refused: a store is committed only while the lock is still held, and the thread still on its CPU.
///
/// Work done under it is a series of stores of which any may be the last one. Let one of them publish what the ones
/// before it prepared, and start again from what the words say when one is refused.
///
/// ```
/// use ascertain_sync::per_cpu::{Lock, Revoked};
///
/// /// Counts requests and their bytes: both, or neither.
/// fn count(lock: &Lock, bytes: u64) {
///     let count_once = || -> Result<(), Revoked> {
///         let mut held = lock.acquire();
///         // Word 0 says which pair is valid: 1 and 2, or 3 and 4.
///         let (valid, other) = if held.load(0) == 0 { (1, 3) } else { (3, 1) };
///         held.store(other, held.load(valid) + 1)?;
///         held.store(other + 1, held.load(valid + 1) + bytes)?;
///         held.store(0, 1 - held.load(0))
///     };
///     while count_once().is_err() {}
/// }
///
/// let lock = Lock::new();
/// (0..10).for_each(|_| count(&lock, 100));
/// let pairs = lock.words().map(|words| if words[0] == 0 { [words[1], words[2]] } else { [words[3], words[4]] });
/// assert_eq!(pairs.fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]), [10, 1_000]);
/// ```
#[derive(Debug)]
pub struct Lock {
    area: Option<Area>,
    of_cpus: Box<[Owned]>,
    shards: Box<[OwnedShard]>,
}

/// The lock on one CPU's words, until somebody else takes it.
#[derive(Debug)]
pub struct Held<'a> {
    place: Place<'a>,
    owner: u64,
    /// A thread holds it, and can't hand it over.
    not_send: PhantomData<*const ()>,
}

#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    Cpu(Area, usize, &'a Owned),
    Shard(&'a OwnedShard),
}

/// A shard's words, which are read without its lock: that only keeps updates from being lost.
#[derive(Debug, Default)]
struct OwnedShard {
    lock: Shard<()>,
    owned: Owned,
}

/// No acquirer is ever given this number.
const NOBODY: u64 = u64::MAX;

/// The lock was taken from its holder, or the holder from its CPU: the store had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked;

impl Lock {
    /// Words that are zero, with the best method here.
    #[must_use]
    pub fn new() -> Self {
        Method::first(Self::with_method)
    }

    /// Words that are zero, with a method of the caller's choice. Where that is [`Method::Sharded`], a thread is never
    /// moved from its shard, and holds the lock until another thread of the shard acquires it.
    ///
    /// # Errors
    /// Why the method can't be had.
    pub fn with_method(method: Method) -> Result<Self, Unavailable> {
        let area = method.area()?;
        Ok(Self { area, of_cpus: of_cpus(area, Owned::default), shards: of_threads(area, OwnedShard::default) })
    }

    /// Takes the lock of the CPU that this thread is on, at once.
    #[inline]
    #[must_use]
    pub fn acquire(&self) -> Held<'_> {
        let (place, owner) = self.acquire_of_cpu().unwrap_or_else(|| {
            // No sequences, or none for this thread.
            let shard = own(&self.shards);
            let _lock = shard.lock.lock();
            (Place::Shard(shard), shard.owned.acquire())
        });
        Held { place, owner, not_send: PhantomData }
    }

    #[inline]
    fn acquire_of_cpu(&self) -> Option<(Place<'_>, u64)> {
        let area = self.area?;
        loop {
            match area.acquire(&self.of_cpus) {
                Yielded::Done((cpu, owner)) => return Some((Place::Cpu(area, cpu, &self.of_cpus[cpu]), owner)),
                Yielded::Refused => return None,
                Yielded::Aborted => (),
            }
        }
    }

    /// Takes the lock from whoever held it, on every CPU. When this returns, each of their stores has been committed
    /// and is seen by the caller, or will be refused. By an interrupt to each CPU.
    ///
    /// # Errors
    /// Where the kernel can't stop sequences on other CPUs (before Linux 5.10, or a filter of system calls); the lock
    /// is taken from its holders then too, but a store may still be under way.
    pub fn revoke(&self) -> io::Result<()> {
        self.revoke_by(rseq::fence)
    }

    fn revoke_by(&self, fence: impl FnOnce(Option<usize>) -> io::Result<()>) -> io::Result<()> {
        // Before the fence: a store that begins after it, or anew, finds that the words are nobody's.
        self.of_cpus.iter().for_each(Owned::disown);
        for shard in &self.shards {
            let _lock = shard.lock.lock();
            shard.owned.disown();
        }
        if self.of_cpus.is_empty() { Ok(()) } else { fence(None) }
    }

    /// Each CPU's words as they are now, one by one.
    pub fn words(&self) -> impl Iterator<Item = [u64; WORDS]> {
        let all = self.of_cpus.iter().chain(self.shards.iter().map(|shard| &shard.owned));
        all.map(|owned| owned.words.each_ref().map(|word| word.load(Relaxed)))
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self::new()
    }
}

impl Held<'_> {
    /// A word. Who stores what it learns from it learns whether it was still true.
    ///
    /// # Panics
    /// When there is no such word.
    #[inline]
    #[must_use]
    pub fn load(&self, word: usize) -> u64 {
        self.owned().words[word].load(Relaxed)
    }

    /// Stores a word, if the lock is still held.
    ///
    /// # Errors
    /// [`Revoked`]: it is not, and nothing was stored. Nor will be later, also where the thread comes back to its CPU.
    ///
    /// # Panics
    /// When there is no such word.
    #[inline]
    pub fn store(&mut self, word: usize, value: u64) -> Result<(), Revoked> {
        let is_stored = match self.place {
            Place::Cpu(area, cpu, owned) => loop {
                match area.store(cpu, owned, self.owner, word, value) {
                    Outcome::Done => break true,
                    Outcome::Refused => break false,
                    Outcome::Aborted => (),
                }
            },
            Place::Shard(shard) => {
                let _lock = shard.lock.lock();
                shard.owned.store(self.owner, word, value)
            }
        };
        if !is_stored {
            self.owner = NOBODY;
        }
        is_stored.then_some(()).ok_or(Revoked)
    }

    fn owned(&self) -> &Owned {
        match self.place {
            Place::Cpu(_, _, owned) => owned,
            Place::Shard(shard) => &shard.owned,
        }
    }
}

impl fmt::Display for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lock was taken by another thread, or this thread was moved to another CPU")
    }
}

impl std::error::Error for Revoked {}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use super::*;

    #[test]
    fn words_are_nobodys_by_the_time_of_the_fence() {
        let of_cpus: Box<[Owned]> = [(); 2].map(|()| Owned::default()).into();
        let lock = Lock { area: None, of_cpus, shards: Box::default() };
        let owners: Vec<u64> = lock.of_cpus.iter().map(Owned::acquire).collect();
        let is_owned = || lock.of_cpus.iter().zip(&owners).any(|(owned, &owner)| owned.is_owned_by(owner));
        let mut is_fenced = false;
        let revoked = lock.revoke_by(|cpu| {
            is_fenced = cpu.is_none() && !is_owned();
            Ok(())
        });
        assert!(revoked.is_ok() && is_fenced);
    }
}
