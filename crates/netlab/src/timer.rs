//! A timer for tasks that is more precise than the timers of tokio, which count milliseconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use crate::threads::{JoinedThread, lock};

/// A thread that wakes tasks at precise times.
#[derive(Debug)]
pub struct Timer {
    shared: Arc<(Mutex<Waiting>, Condvar)>,
    // Dropped after `Drop` has requested the end of the thread.
    _thread: JoinedThread,
}

#[derive(Debug, Default)]
struct Waiting {
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    wakers: HashMap<u64, oneshot::Sender<()>>,
    next: u64,
    is_over: bool,
}

impl Timer {
    /// Starts the thread.
    ///
    /// # Errors
    /// Returns the system's error if the thread cannot be started.
    pub fn new() -> io::Result<Self> {
        let shared = Arc::new((Mutex::new(Waiting::default()), Condvar::new()));
        let of_thread = shared.clone();
        let thread = JoinedThread::spawn("precise-timer", move || wake_all(&of_thread))?;
        Ok(Self { shared, _thread: thread })
    }

    /// Waits until `due`. Returns at once if `due` is in the past.
    pub async fn wait_until(self: Arc<Self>, due: Instant) {
        if due <= Instant::now() {
            return;
        }
        let (waker, woken) = oneshot::channel();
        {
            let mut waiting = lock(&self.shared.0);
            let number = waiting.next;
            waiting.next += 1;
            waiting.due.push(Reverse((due, number)));
            waiting.wakers.insert(number, waker);
        }
        self.shared.1.notify_one();
        let _ = woken.await;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        lock(&self.shared.0).is_over = true;
        self.shared.1.notify_one();
    }
}

fn wake_all((waiting, changed): &(Mutex<Waiting>, Condvar)) {
    // By default, the kernel may end each sleep 50 µs late.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut waiting = lock(waiting);
    while !waiting.is_over {
        let Some(Reverse((due, number))) = waiting.due.peek().copied() else {
            waiting = changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            waiting.due.pop();
            // The task may have been cancelled, so an error is ignored.
            waiting.wakers.remove(&number).map(|waker| waker.send(()));
        } else {
            waiting = changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
