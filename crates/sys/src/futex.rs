//! Threads that sleep until a word in memory changes.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// The set of threads that can sleep on the same word and wake one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only threads of this process share the word.
    Process,
    /// All processes that map the word share it. On systems other than Linux, only threads of this process share it.
    Machine,
}

/// Sleeps while `word` is `expected`, until a wake-up or for at most `timeout`. Returns `false` if the time ran out.
///
/// The comparison and the start of the sleep are one atomic step with respect to wake-ups. A result of `true` does not
/// imply anything about the word: it may already have had another value at the call, or a signal may have ended the
/// sleep. Read the word again.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::time::Duration;
///
/// use ascertain_sys::futex::{Scope, wait, wake_all};
///
/// let word = AtomicU32::new(0);
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         word.store(1, Ordering::Release);
///         wake_all(&word, Scope::Process);
///     });
///     while word.load(Ordering::Acquire) == 0 {
///         wait(&word, 0, None, Scope::Process);
///     }
/// });
/// assert!(!wait(&word, 1, Some(Duration::from_millis(1)), Scope::Process));
/// ```
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>, scope: Scope) -> bool {
    imp::wait(word, expected, timeout, scope)
}

/// Wakes one thread that sleeps on `word`, if there is one.
pub fn wake_one(word: &AtomicU32, scope: Scope) {
    imp::wake(word, 1, scope);
}

/// Wakes all threads that sleep on `word`.
pub fn wake_all(word: &AtomicU32, scope: Scope) {
    imp::wake(word, i32::MAX as u32, scope);
}

/// Converts a timeout to the format of system calls. `None` if there is no timeout, or if it is longer than that format
/// allows (292 billion years).
#[cfg(any(target_os = "linux", feature = "commands"))]
pub(crate) fn timespec(timeout: Option<Duration>) -> Option<rustix::fs::Timespec> {
    timeout.and_then(|timeout| timeout.try_into().ok())
}

#[cfg(target_os = "linux")]
mod imp {
    use rustix::io::Errno;
    use rustix::thread::futex::{self, Flags};

    use super::{AtomicU32, Duration, Scope};

    fn flags(scope: Scope) -> Flags {
        match scope {
            Scope::Process => Flags::PRIVATE,
            Scope::Machine => Flags::empty(),
        }
    }

    pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>, scope: Scope) -> bool {
        let timeout = super::timespec(timeout);
        futex::wait(word, flags(scope), expected, timeout.as_ref()) != Err(Errno::TIMEDOUT)
    }

    pub fn wake(word: &AtomicU32, threads: u32, scope: Scope) {
        // Waking cannot fail, because the word exists.
        let _ = futex::wake(word, flags(scope), threads);
    }
}

/// A replacement for systems without a futex. Each word shares a queue with the words whose addresses map to the same
/// entry, and a wake-up wakes all threads in that queue.
#[cfg(not(target_os = "linux"))]
mod imp {
    use std::sync::atomic::Ordering;
    use std::sync::{Condvar, Mutex, PoisonError};

    use super::{AtomicU32, Duration, Scope};

    const QUEUES: usize = 64;
    static QUEUE: [(Mutex<()>, Condvar); QUEUES] = [const { (Mutex::new(()), Condvar::new()) }; QUEUES];

    fn queue(word: &AtomicU32) -> &'static (Mutex<()>, Condvar) {
        &QUEUE[(word.as_ptr().addr() >> 6) % QUEUES]
    }

    pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>, _scope: Scope) -> bool {
        let (mutex, woken) = queue(word);
        let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        if word.load(Ordering::SeqCst) != expected {
            return true;
        }
        match timeout {
            None => drop(woken.wait(guard).unwrap_or_else(PoisonError::into_inner)),
            Some(timeout) => {
                let (_guard, result) = woken.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner);
                return !result.timed_out();
            }
        }
        true
    }

    pub fn wake(word: &AtomicU32, _threads: u32, _scope: Scope) {
        let (mutex, woken) = queue(word);
        drop(mutex.lock().unwrap_or_else(PoisonError::into_inner));
        woken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn returns_at_once_when_the_word_is_something_else() {
        assert!(wait(&AtomicU32::new(1), 0, None, Scope::Process));
        assert!(wait(&AtomicU32::new(u32::MAX), 0, Some(Duration::from_secs(3600)), Scope::Machine));
    }

    #[test]
    fn a_time_out_of_any_length() {
        let word = AtomicU32::new(0);
        assert!(!wait(&word, 0, Some(Duration::ZERO), Scope::Process));
        assert!(!wait(&word, 0, Some(Duration::from_nanos(1)), Scope::Machine));
        assert!(wait(&word, 1, Some(Duration::MAX), Scope::Process));
    }

    #[test]
    fn all_that_sleep_are_woken() {
        for scope in [Scope::Process, Scope::Machine] {
            let word = AtomicU32::new(0);
            std::thread::scope(|threads| {
                for _ in 0..3 {
                    threads.spawn(|| {
                        while word.load(Ordering::Acquire) == 0 {
                            wait(&word, 0, None, scope);
                        }
                    });
                }
                word.store(1, Ordering::Release);
                wake_all(&word, scope);
            });
        }
    }

    #[test]
    fn futex_wakes_one_at_a_time() {
        let word = AtomicU32::new(0);
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| while wait(&word, 0, None, Scope::Process) && word.load(Ordering::Acquire) == 0 {});
            }
            word.store(1, Ordering::Release);
            for _ in 0..3 {
                wake_one(&word, Scope::Process);
            }
            // Each thread ends: one of the calls woke it, or it was not asleep yet and saw the new value of the word.
        });
    }
}
