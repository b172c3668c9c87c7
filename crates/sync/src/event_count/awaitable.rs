//! An event count on which both threads and asynchronous tasks can wait. A publication wakes a task by the waker of its
//! future.

use std::collections::BTreeMap;
use std::mem;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::MultiProducer;
use super::contract::{EventCount, Version, sealed};
use super::sleep::Sleepers;
use crate::drop_all::drop_all;
use crate::primitives::{Instant, Mutex};

/// An event count like [`MultiProducer`] on which asynchronous tasks can wait as well as threads.
/// [`changed`](Awaitable::changed) returns a [`Future`], which works with any runtime.
///
/// A publication wakes all waiting tasks and threads before it returns: wakers run on the publisher's thread. Wakers
/// may publish and wait. If a waker panics, the other tasks and threads are woken before the panic continues.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::sync::Arc;
/// use std::task::{Context, Poll, Wake, Waker};
/// use std::thread::{self, Thread};
///
/// use ascertain_sync::event_count::{Awaitable, EventCount};
///
/// async fn until_42(data: &AtomicU32, changes: &Awaitable) {
///     let mut seen = changes.snapshot();
///     while data.load(Ordering::Relaxed) != 42 {
///         seen = changes.changed(seen).await;
///     }
/// }
///
/// // As small as a runtime can be.
/// struct Unpark(Thread);
///
/// impl Wake for Unpark {
///     fn wake(self: Arc<Self>) {
///         self.0.unpark();
///     }
/// }
///
/// let (data, changes) = (AtomicU32::new(0), Awaitable::default());
/// thread::scope(|scope| {
///     scope.spawn(|| {
///         data.store(42, Ordering::Relaxed);
///         changes.publish();
///     });
///     let waker = Waker::from(Arc::new(Unpark(thread::current())));
///     let mut task = std::pin::pin!(until_42(&data, &changes));
///     while task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
///         thread::park();
///     }
/// });
/// ```
#[derive(Debug, Default)]
pub struct Awaitable {
    count: MultiProducer,
    waiting: Mutex<Waiters>,
}

/// The waiting tasks and threads. A waiter adds its waker before it sets the sleepers' flag of the event count. A
/// publisher clears the flag before it reads the list. So the publisher finds all waiters that rely on this flag.
#[derive(Debug, Default)]
struct Waiters {
    /// The wakers of the waiting tasks by ticket. Tickets are numbered in the order in which the wakers were added.
    wakers: BTreeMap<u64, Waker>,
    last_ticket: u64,
    /// The number of threads that sleep or are about to sleep. Only threads need a system call to be woken.
    threads: usize,
}

impl Awaitable {
    /// Waits for a version other than `seen`, as [`wait`](EventCount::wait) does without a deadline.
    ///
    /// Drop the future to stop waiting: this removes its waker, and no other waiter loses a wake-up.
    pub fn changed(&self, seen: Version) -> VersionChange<'_> {
        VersionChange { count: self, seen, ticket: None }
    }

    /// Accesses the waiters under the lock. `look` must not call, clone or drop wakers: they run unknown code, which
    /// may access the waiters too.
    fn waiting<R>(&self, look: impl FnOnce(&mut Waiters) -> R) -> R {
        look(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        self.count.clear_flag();
        let (wakers, threads) = self.waiting(|waiting| (mem::take(&mut waiting.wakers), waiting.threads));
        if threads > 0 {
            self.count.wake_threads();
        }
        // If a waker panics, `drop_all` still wakes the others, and then resumes the panic.
        drop_all(wakers.into_values().map(Waker::wake));
    }
}

impl sealed::Sealed for Awaitable {}

impl EventCount for Awaitable {
    fn starting_at(version: Version) -> Self {
        Self { count: MultiProducer::starting_at(version), waiting: Mutex::default() }
    }

    #[inline]
    fn snapshot(&self) -> Version {
        self.count.snapshot()
    }

    #[inline]
    fn publish_many(&self, count: u32) {
        if self.count.add(count) {
            self.wake();
        }
    }

    fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version> {
        self.try_wait(seen).or_else(|| {
            self.waiting(|waiting| waiting.threads += 1);
            let version = self.count.wait(seen, deadline);
            self.waiting(|waiting| waiting.threads -= 1);
            version
        })
    }
}

/// The [`Future`] that [`Awaitable::changed`] returns. Its output is the next version.
#[derive(Debug)]
#[must_use = "the wait begins only when this future is polled or awaited"]
pub struct VersionChange<'a> {
    count: &'a Awaitable,
    seen: Version,
    /// The ticket by which this future's waker is found among the waiters; `None` if no waker was added.
    ticket: Option<u64>,
}

impl VersionChange<'_> {
    /// Adds the waker to the waiters. The next publication that finds the sleepers' flag set then wakes the task.
    fn enter(&mut self, waker: &Waker) {
        let waker = waker.clone();
        let (ticket, replaced) = self.count.waiting(|waiting| {
            let ticket = self.ticket.unwrap_or_else(|| {
                waiting.last_ticket += 1;
                waiting.last_ticket
            });
            (ticket, waiting.wakers.insert(ticket, waker))
        });
        self.ticket = Some(ticket);
        drop(replaced);
    }

    /// A faulty variant of `poll`, which a test must detect: it adds the waker after the last check of the version.
    #[cfg(any(model = "loom", model = "tso"))]
    pub fn poll_hastily(&mut self, context: &mut Context<'_>) -> Poll<Version> {
        let announcement = self.count.count.announce(self.seen);
        self.enter(context.waker());
        if announcement.is_some() { Poll::Pending } else { Poll::Ready(self.count.snapshot()) }
    }
}

impl Future for VersionChange<'_> {
    type Output = Version;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Version> {
        let Awaitable { count, .. } = self.count;
        loop {
            if let Some(version) = count.try_wait(self.seen) {
                return Poll::Ready(version);
            }
            self.enter(context.waker());
            // This checks the version for the last time, in the atomic step that sets the flag.
            if count.announce(self.seen).is_some() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for VersionChange<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let waker = self.count.waiting(|waiting| waiting.wakers.remove(&ticket));
            drop(waker);
        }
    }
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use super::*;

    /// A thread that has finished waiting must not be counted any more. Otherwise each publication that wakes a task
    /// would also make an unnecessary system call.
    #[test]
    fn threads_that_have_waited_are_not_counted() {
        let count = Awaitable::default();
        for _ in 0..3 {
            assert_eq!(count.wait(Version::new(0), Some(Instant::now())), None);
        }
        assert_eq!(count.waiting(|waiting| waiting.threads), 0);
    }
}
