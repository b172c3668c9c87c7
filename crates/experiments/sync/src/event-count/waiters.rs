//! Who waits until something is published: a thread that sleeps, and tasks on one thread, with as little of a runtime
//! as there can be.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use ascertain_engine::black_box;
use ascertain_sync::event_count::{Awaitable, EventCount};
use ascertain_sys::clock;
use event_listener::{Event, listener};

use super::contestants::Signal;

/// From when a waiter is about to wait until it surely sleeps: some 60 times as long as any of them spins.
pub const FALLING_ASLEEP: Duration = Duration::from_micros(600);

/// What one wake-up took.
pub struct Woken {
    /// From when the sleeper began to wait until the publication.
    pub waited_ns: u64,
    /// The publisher's call.
    pub publish_ns: u64,
    /// From before that until the sleeper ran.
    pub wake_ns: u64,
}

/// Sleeps whenever it is asked to.
pub struct Sleeper {
    signal: Arc<dyn Signal>,
    /// None when it is to end.
    asked: Option<SyncSender<()>>,
    /// When it begins to wait.
    begun_ns: Receiver<u64>,
    awoke_ns: Receiver<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Sleeper {
    pub fn new(signal: Arc<dyn Signal>) -> Self {
        let (asked, orders) = sync_channel(1);
        let (begins, begun_ns) = sync_channel(1);
        let (awoke, awoke_ns) = sync_channel(1);
        let waited = signal.clone();
        let thread = std::thread::spawn(move || {
            for () in orders {
                waited.wait(&mut || {
                    let _ = begins.send(clock::now_ns());
                });
                let _ = awoke.send(clock::now_ns());
            }
        });
        Self { signal, asked: Some(asked), begun_ns, awoke_ns, thread: Some(thread) }
    }

    /// Lets it wait for so long, and wakes it. None if its thread has ended.
    pub fn wake(&mut self, after: Duration) -> Option<Woken> {
        self.asked.as_ref()?.send(()).ok()?;
        let begun_ns = self.begun_ns.recv().ok()?;
        std::thread::sleep(after);
        let start_ns = clock::now_ns();
        self.signal.publish(1);
        let publish_ns = clock::now_ns() - start_ns;
        let awoke_ns = self.awoke_ns.recv().ok()?;
        let waited_ns = start_ns.saturating_sub(begun_ns).max(1);
        Some(Woken { waited_ns, publish_ns, wake_ns: awoke_ns.saturating_sub(start_ns) })
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.asked = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

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
struct Alarm(AtomicBool);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

fn alarm() -> (Waker, Arc<Alarm>) {
    let woken = Arc::new(Alarm::default());
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
