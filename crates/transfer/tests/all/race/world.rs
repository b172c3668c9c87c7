//! Tasks on a virtual clock. A task is polled only after it was woken, so a missing wake-up makes the test fail.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ascertain_transfer::race::Clock;

#[derive(Default)]
struct State {
    now: Duration,
    /// The pending sleeps, sorted by their ends, then by their creation.
    sleeps: BTreeMap<(Duration, u64), Option<Waker>>,
    made: u64,
    /// Number of times that any sleep was polled.
    polls: u64,
}

/// A virtual clock. Clones share the same time.
#[derive(Clone, Default)]
pub struct World(Rc<RefCell<State>>);

impl World {
    /// Returns the number of pending sleeps.
    pub fn sleeping(&self) -> usize {
        self.0.borrow().sleeps.len()
    }

    pub fn polls(&self) -> u64 {
        self.0.borrow().polls
    }

    /// Returns `says` after `time` has passed.
    pub async fn answer<T>(&self, time: Duration, says: T) -> T {
        self.sleep(time).await;
        says
    }

    /// Advances the clock to the end of the next sleep, and wakes the tasks that wait for it.
    fn go_on(&self) {
        let mut state = self.0.borrow_mut();
        let ends = state.sleeps.range((state.now, u64::MAX)..).next().map(|((end, _), _)| *end);
        let end = ends.expect("a task waits, and nothing will wake it");
        state.now = end;
        let woken = state.sleeps.range_mut(..=(end, u64::MAX)).filter_map(|(_, waker)| waker.take());
        woken.collect::<Vec<_>>().into_iter().for_each(Waker::wake);
    }
}

impl Clock for World {
    fn now(&self) -> Duration {
        self.0.borrow().now
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> {
        Sleep { world: self.clone(), time, key: None }
    }
}

struct Sleep {
    world: World,
    time: Duration,
    key: Option<(Duration, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let world = self.world.clone();
        let mut state = world.0.borrow_mut();
        state.polls += 1;
        let time = self.time;
        let key = *self.key.get_or_insert_with(|| {
            state.made += 1;
            (state.now + time, state.made)
        });
        if state.now >= key.0 {
            return Poll::Ready(());
        }
        state.sleeps.insert(key, Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.world.0.borrow_mut().sleeps.remove(&key);
        }
    }
}

/// A waker that counts how often it wakes its task.
#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task that is polled only after it was woken.
pub struct Task<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    woken: Arc<Woken>,
    seen: u64,
    pub polls: u64,
}

impl<'a, T> Task<'a, T> {
    pub fn new(future: impl Future<Output = T> + 'a) -> Self {
        // The counter starts at 1, because the first poll needs no wake-up.
        Self { future: Box::pin(future), woken: Arc::new(Woken(1.into())), seen: 0, polls: 0 }
    }

    /// Returns how often the task was woken.
    pub fn wakes(&self) -> u64 {
        self.woken.0.load(Ordering::Relaxed) - 1
    }

    /// Polls the task if it was woken since its last poll. Returns `None` if it was not.
    fn poll(&mut self) -> Option<Poll<T>> {
        let woken = self.woken.0.load(Ordering::Relaxed);
        if woken == self.seen {
            return None;
        }
        self.seen = woken;
        self.polls += 1;
        let waker = Waker::from(self.woken.clone());
        Some(self.future.as_mut().poll(&mut Context::from_waker(&waker)))
    }

    /// Runs the task until it completes, or until it was polled `most_polls` times. Returns `None` in the second case.
    pub fn run(&mut self, world: &World, most_polls: u64) -> Option<T> {
        while self.polls < most_polls {
            match self.poll() {
                Some(Poll::Ready(done)) => return Some(done),
                Some(Poll::Pending) => {}
                None => world.go_on(),
            }
        }
        None
    }
}

/// Runs all tasks until they complete. Calls `polled` after each attempt to poll a task.
pub fn run_all<'a, T>(world: &World, futures: Vec<Pin<Box<dyn Future<Output = T> + 'a>>>, mut polled: impl FnMut()) {
    let mut tasks: Vec<_> = futures.into_iter().map(Task::new).collect();
    while !tasks.is_empty() {
        let mut has_polled = false;
        tasks.retain_mut(|task| {
            let poll = task.poll();
            has_polled |= poll.is_some();
            polled();
            !matches!(poll, Some(Poll::Ready(_)))
        });
        if !has_polled {
            world.go_on();
        }
    }
}
