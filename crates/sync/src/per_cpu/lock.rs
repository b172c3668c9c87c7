//! A lock that a thread holds until another thread on its CPU acquires it.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::Relaxed;

use ascertain_sys::rseq::{self, Area, Outcome, OwnedWords, Unavailable, WORDS};

use super::method::{Method, Shard, of_cpus, of_threads, own};

/// A revocable lock, which protects an array of 64-bit words. Each CPU has its own lock and its own [`WORDS`] words,
/// which are zero at first.
///
/// A thread never waits for the lock and never releases it. A thread that acquires the lock takes it from its last
/// holder on this CPU. The last holder is not running, because the acquiring thread runs on the CPU. When the last
/// holder continues, its next store is refused. A store is committed only while the thread still holds the lock and is
/// still on its CPU.
///
/// The work under the lock is a series of stores, and any of them may be the last one. Let one store publish what the
/// stores before it prepared. If a store is refused, start again from the current values of the words.
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
    of_cpus: Box<[OwnedWords]>,
    shards: Box<[OwnedShard]>,
}

/// The lock on one CPU's words. It is held until another thread takes it.
#[derive(Debug)]
pub struct Held<'a> {
    place: HeldWords<'a>,
    owner: u64,
    /// Prevents sending the lock to another thread: only the thread that acquired the lock may use it.
    not_send: PhantomData<*const ()>,
}

#[derive(Clone, Copy, Debug)]
enum HeldWords<'a> {
    Cpu(Area, usize, &'a OwnedWords),
    Shard(&'a OwnedShard),
}

/// The words of a shard, which some of the threads share. A thread must hold the shard's lock to change the words, so
/// that no update is lost. Reading the words does not need the lock.
#[derive(Debug, Default)]
struct OwnedShard {
    lock: Shard<()>,
    owned: OwnedWords,
}

/// The generation of words that nobody owns. A thread that acquires words gets a new generation, but never this one.
const NOBODY: u64 = u64::MAX;

/// The error of a store that had no effect, because another thread took the lock or the holder left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked;

impl Lock {
    /// Creates a lock, which uses the best [`Method`] that is available on this machine. All words are zero.
    #[must_use]
    pub fn new() -> Self {
        Method::first(Self::with_method)
    }

    /// Creates a lock, which uses the given `method` to keep the words of the CPUs apart. All words are zero. With
    /// [`Method::Sharded`], a thread always uses the words of the same shard. It holds the lock until another thread of
    /// the shard acquires it.
    ///
    /// # Errors
    /// Returns the reason why the method is not available.
    pub fn with_method(method: Method) -> Result<Self, Unavailable> {
        let area = method.area()?;
        Ok(Self { area, of_cpus: of_cpus(area, OwnedWords::default), shards: of_threads(area, OwnedShard::default) })
    }

    /// Takes the lock of the CPU on which this thread runs, without waiting.
    #[inline]
    #[must_use]
    pub fn acquire(&self) -> Held<'_> {
        let (place, owner) = self.acquire_of_cpu().unwrap_or_else(|| {
            // There are no sequences, or this thread cannot use them.
            let shard = own(&self.shards);
            let _lock = shard.lock.lock();
            (HeldWords::Shard(shard), shard.owned.acquire())
        });
        Held { place, owner, not_send: PhantomData }
    }

    #[inline]
    fn acquire_of_cpu(&self) -> Option<(HeldWords<'_>, u64)> {
        let area = self.area?;
        loop {
            match area.acquire(&self.of_cpus) {
                Outcome::Done((cpu, owner)) => return Some((HeldWords::Cpu(area, cpu, &self.of_cpus[cpu]), owner)),
                Outcome::Refused => return None,
                Outcome::Aborted => (),
            }
        }
    }

    /// Takes the lock from its holder on every CPU. When this returns, each store of a holder either has been committed
    /// and is visible to the caller, or will be refused. This interrupts each CPU.
    ///
    /// # Errors
    /// If the kernel cannot stop sequences on other CPUs (before Linux 5.10, or because of a filter of system calls).
    /// The lock is taken from its holders in that case too, but a store may still be in progress.
    pub fn revoke(&self) -> io::Result<()> {
        self.revoke_by(rseq::fence)
    }

    fn revoke_by(&self, fence: impl FnOnce(Option<usize>) -> io::Result<()>) -> io::Result<()> {
        // All words lose their owner before the fence. So a store that begins after the fence, or is restarted by it,
        // finds that its words belong to nobody, and is refused.
        self.of_cpus.iter().for_each(OwnedWords::disown);
        for shard in &self.shards {
            let _lock = shard.lock.lock();
            shard.owned.disown();
        }
        if self.of_cpus.is_empty() { Ok(()) } else { fence(None) }
    }

    /// Returns the current words of each CPU. They are read one by one, so they may be from different moments.
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
    /// Loads the word with this index. If the lock has been lost, its new holder may have changed the word, and a later
    /// store is refused.
    ///
    /// # Panics
    /// If `word` is not below [`WORDS`].
    #[inline]
    #[must_use]
    pub fn load(&self, word: usize) -> u64 {
        self.owned().words[word].load(Relaxed)
    }

    /// Stores `value` in the word with this index, if this thread still holds the lock.
    ///
    /// # Errors
    /// [`Revoked`] if the lock is not held: nothing was stored. Later stores fail too, even if the thread comes back to
    /// its CPU.
    ///
    /// # Panics
    /// If `word` is not below [`WORDS`].
    #[inline]
    pub fn store(&mut self, word: usize, value: u64) -> Result<(), Revoked> {
        let is_stored = match self.place {
            HeldWords::Cpu(area, cpu, owned) => loop {
                match area.store(cpu, owned, self.owner, word, value) {
                    Outcome::Done(()) => break true,
                    Outcome::Refused => break false,
                    Outcome::Aborted => (),
                }
            },
            HeldWords::Shard(shard) => {
                let _lock = shard.lock.lock();
                shard.owned.store(self.owner, word, value)
            }
        };
        if !is_stored {
            self.owner = NOBODY;
        }
        is_stored.then_some(()).ok_or(Revoked)
    }

    fn owned(&self) -> &OwnedWords {
        match self.place {
            HeldWords::Cpu(_, _, owned) => owned,
            HeldWords::Shard(shard) => &shard.owned,
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
        let of_cpus: Box<[OwnedWords]> = [(); 2].map(|()| OwnedWords::default()).into();
        let lock = Lock { area: None, of_cpus, shards: Box::default() };
        let owners: Vec<u64> = lock.of_cpus.iter().map(OwnedWords::acquire).collect();
        let is_owned = || lock.of_cpus.iter().zip(&owners).any(|(owned, &owner)| owned.is_owned_by(owner));
        let mut is_fenced = false;
        let revoked = lock.revoke_by(|cpu| {
            is_fenced = cpu.is_none() && !is_owned();
            Ok(())
        });
        assert!(revoked.is_ok() && is_fenced);
    }
}
