//! Sleeping until a word in memory changes.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Who may share the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Threads of this process.
    Process,
    /// Any process that maps the word. Without Linux, threads of this process only.
    Machine,
}

/// Sleeps while `word` is `expected`, until woken, for `timeout` at most; false when it ran out.
///
/// Comparing and falling asleep are one step to those who wake. True says nothing of the word: it may have been
/// something else from the start, or the sleep may have ended for no reason (a signal). Look again.
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

/// Wakes one thread that sleeps on `word`, if any does.
pub fn wake_one(word: &AtomicU32, scope: Scope) {
    imp::wake(word, 1, scope);
}

/// Wakes all threads that sleep on `word`.
pub fn wake_all(word: &AtomicU32, scope: Scope) {
    imp::wake(word, i32::MAX as u32, scope);
}

/// A time-out as system calls take it; none where it is longer than they can say (292 billion years).
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
        // It can't fail for a word that is there.
        let _ = futex::wake(word, flags(scope), threads);
    }
}

/// Without a futex: every word shares one queue with the words whose addresses fall in the same place, and a wake-up
/// wakes all of it.
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
            // One that had not fallen asleep yet sees the word; the others were woken one by one.
        });
    }
}
