//! Tasks that wait, on one thread, with as little of a runtime as there can be.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use ascertain_engine::black_box;
use ascertain_sync::event_count::{Awaitable, EventCount};
use ascertain_sys::clock;
use event_listener::{Event, listener};

/// Tasks that wait at once, each for something else.
const WAITING: u64 = 64;

/// What a task can wait for.
pub trait Awaited: Default {
    fn publish(&self);

    /// Calls `ready`, and waits for a publication that comes later.
    fn wait(&self, ready: impl FnOnce()) -> impl Future<Output = ()>;
}

impl Awaited for Awaitable {
    fn publish(&self) {
        EventCount::publish(self);
    }

    async fn wait(&self, ready: impl FnOnce()) {
        let seen = self.snapshot();
        ready();
        self.changed(seen).await;
    }
}

impl Awaited for Event {
    fn publish(&self) {
        self.notify(usize::MAX);
    }

    async fn wait(&self, ready: impl FnOnce()) {
        // In the future itself: without memory of its own.
        listener!(self => listener);
        ready();
        listener.await;
    }
}

/// Tasks, and what they wait for.
pub trait Tasks {
    /// Publishes so many times to a task that waits each time: how long that took. None if one was not woken.
    fn publish_ns(&self, times: u64) -> Option<u64>;

    /// Two tasks that wake each other by turns, so many times. False if one was not woken.
    fn hop(&self, times: u64) -> bool;
}

/// Tasks that wait for this.
pub fn tasks<A: Awaited + 'static>() -> Box<dyn Tasks> {
    Box::new((0..WAITING).map(|_| A::default()).collect::<Vec<_>>())
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

fn alarm() -> (Waker, Arc<Woken>) {
    let woken = Arc::new(Woken::default());
    (Waker::from(woken.clone()), woken)
}

impl<A: Awaited> Tasks for Vec<A> {
    fn publish_ns(&self, times: u64) -> Option<u64> {
        let alarms: Vec<_> = self.iter().map(|_| alarm()).collect();
        let mut elapsed_ns = 0;
        for _ in 0..times / WAITING {
            let mut tasks: Vec<_> = self.iter().map(|awaited| Box::pin(awaited.wait(|| ()))).collect();
            for (task, (waker, woken)) in tasks.iter_mut().zip(&alarms) {
                woken.0.store(false, Relaxed);
                if task.as_mut().poll(&mut Context::from_waker(waker)).is_ready() {
                    return None;
                }
            }
            let start_ns = clock::now_ns();
            self.iter().for_each(|awaited| black_box(awaited).publish());
            elapsed_ns += clock::now_ns() - start_ns;
            if !alarms.iter().all(|(_, woken)| woken.0.load(Relaxed)) {
                return None;
            }
        }
        Some(elapsed_ns)
    }

    fn hop(&self, times: u64) -> bool {
        let rounds = times / 2;
        let [mine, other, ..] = &self[..] else { return false };
        let answers = async {
            mine.wait(|| ()).await;
            for _ in 1..rounds {
                mine.wait(|| other.publish()).await;
            }
            other.publish();
        };
        let questions = async {
            for _ in 0..rounds {
                other.wait(|| mine.publish()).await;
            }
        };
        run([pin!(answers), pin!(questions)])
    }
}

/// Runs both to their ends, in turns. False if neither is woken.
fn run(tasks: [Pin<&mut dyn Future<Output = ()>>; 2]) -> bool {
    let mut tasks = tasks.map(|task| {
        let (waker, woken) = alarm();
        woken.0.store(true, Relaxed);
        (Some(task), waker, woken)
    });
    while tasks.iter().any(|(task, ..)| task.is_some()) {
        let mut goes_on = false;
        for (slot, waker, woken) in &mut tasks {
            // Loaded first: an exchange is an instruction with LOCK, and no part of what is measured.
            if let Some(task) = slot
                && woken.0.load(Relaxed)
            {
                woken.0.store(false, Relaxed);
                goes_on = true;
                if task.as_mut().poll(&mut Context::from_waker(waker)) == Poll::Ready(()) {
                    *slot = None;
                }
            }
        }
        if !goes_on {
            return false;
        }
    }
    true
}
