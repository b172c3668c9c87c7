//! An event count on which both threads and asynchronous tasks can wait. A publication wakes a task by the waker of its
//! future.

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
    /// The wakers of the waiting tasks by ascending ticket. Tickets are numbered in the order in which the wakers were
    /// added. A waker that was removed leaves a gap, `None`.
    wakers: Vec<(u64, Option<Waker>)>,
    last_ticket: u64,
    gaps: u32,
    /// The number of threads that sleep or are about to sleep. Only threads need a system call to be woken.
    threads: u32,
}

/// All wakers of the waiting tasks, in the order of their tickets.
type AllWakers = (Option<Waker>, Vec<(u64, Option<Waker>)>);

impl Waiters {
    /// Adds a waker, or replaces the waker with this ticket. Returns the ticket, and the waker that was replaced.
    fn add(&mut self, ticket: Option<u64>, waker: Waker) -> (u64, Option<Waker>) {
        if let Some((ticket, index)) = ticket.and_then(|ticket| Some((ticket, self.index(ticket)?))) {
            return (ticket, self.wakers[index].1.replace(waker));
        }
        self.last_ticket += 1;
        self.wakers.push((self.last_ticket, Some(waker)));
        (self.last_ticket, None)
    }

    fn index(&self, ticket: u64) -> Option<usize> {
        self.wakers.binary_search_by_key(&ticket, |&(ticket, _)| ticket).ok()
    }

    fn remove(&mut self, ticket: u64) -> Option<Waker> {
        let index = self.index(ticket)?;
        let waker = self.wakers[index].1.take();
        self.gaps += 1;
        // The gaps are closed when they are the majority, so a removal takes constant time on average.
        if self.gaps as usize > self.wakers.len() / 2 {
            self.wakers.retain(|(_, waker)| waker.is_some());
            self.gaps = 0;
        }
        waker
    }

    /// Takes all wakers out. If there is only one, the list keeps its memory, so the next wait need not allocate.
    fn take_all(&mut self) -> AllWakers {
        self.gaps = 0;
        match self.wakers.len() {
            1 => (self.wakers.pop().and_then(|(_, waker)| waker), Vec::new()),
            _ => (None, mem::take(&mut self.wakers)),
        }
    }
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
        let ((first, others), threads) = self.waiting(|waiting| (waiting.take_all(), waiting.threads));
        if threads > 0 {
            self.count.wake_threads();
        }
        match first {
            // If a single waker panics, no other one is left. While another panic unwinds, `drop_all` ends that panic.
            Some(waker) if !std::thread::panicking() => waker.wake(),
            // If a waker panics, `drop_all` still wakes the others, and then resumes the panic.
            _ => {
                let others = others.into_iter().filter_map(|(_, waker)| waker);
                drop_all(first.into_iter().chain(others).map(Waker::wake));
            }
        }
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
        let (ticket, replaced) = self.count.waiting(|waiting| waiting.add(self.ticket, waker));
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
            let waker = self.count.waiting(|waiting| waiting.remove(ticket));
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

    fn waits(count: &Awaitable) -> Pin<Box<VersionChange<'_>>> {
        let mut wait = Box::pin(count.changed(count.snapshot()));
        assert_eq!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
        wait
    }

    /// One task waits for a long time, while others give up. The list must not keep a place for each of them.
    #[test]
    fn tasks_that_gave_up_take_no_memory() {
        let count = Awaitable::default();
        let stays = waits(&count);
        for _ in 0..1_000 {
            drop(waits(&count));
            assert!(count.waiting(|waiting| waiting.wakers.len()) <= 2);
        }
        // In any order, the right waker is removed.
        let mut all: Vec<_> = (0..10).map(|_| Some(waits(&count))).collect();
        for index in [3, 0, 9, 4, 7] {
            all[index] = None;
        }
        let left = || count.waiting(|waiting| waiting.wakers.iter().filter_map(|(_, waker)| waker.as_ref()).count());
        assert_eq!(left(), 6);
        let tickets: Vec<u64> = all.iter().flatten().filter_map(|wait| wait.ticket).collect();
        let kept = count.waiting(|waiting| {
            waiting.wakers.iter().filter(|(_, waker)| waker.is_some()).map(|(ticket, _)| *ticket).collect::<Vec<_>>()
        });
        assert_eq!(kept[1..], tickets);
        count.publish();
        assert_eq!(left(), 0);
        drop((stays, all));
    }

    /// A publication may wake a task only after the task has seen the new version and waits again. The task then gets
    /// another ticket, by which it can still be removed.
    #[test]
    fn a_task_may_be_woken_without_a_new_version() {
        let count = Awaitable::default();
        let mut early = waits(&count);
        let late = waits(&count);
        count.wake();
        assert_eq!(early.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
        assert!(early.ticket > late.ticket);
        drop(late);
        assert_eq!(count.waiting(|waiting| waiting.wakers.len()), 1);
        drop(early);
        assert_eq!(count.waiting(|waiting| waiting.wakers.len()), 0);
    }
}
