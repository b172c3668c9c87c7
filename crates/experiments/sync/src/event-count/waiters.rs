//! The waiters for a publication: a sleeping thread, and async tasks on one thread with a minimal runtime.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ascertain_engine::black_box;
use ascertain_sync::event_count::{Awaitable, EventCount};
use ascertain_sys::clock;
use ascertain_sys::threads::JoinOnDrop;
use event_listener::{Event, listener};

use super::contestants::Signal;

/// Time after which a waiting thread is certain to be asleep. It is about 60 times as long as any waiting thread spins.
pub const FALLING_ASLEEP: Duration = Duration::from_micros(600);

/// The measured times of one wake-up of the sleeping thread.
pub struct WakeUp {
    /// Time for which the sleeper had waited when the publication began.
    pub waited_ns: u64,
    /// Duration of the call that published the signal.
    pub publish_ns: u64,
    /// Time from the start of the publication until the sleeping thread ran.
    pub wake_ns: u64,
}

/// A thread that, on request, waits for the signal.
pub struct Sleeper {
    signal: Arc<dyn Signal>,
    /// Sends the thread requests to wait. Dropping the sender makes the thread end, and dropping the thread waits until
    /// it has ended.
    asked: SyncSender<()>,
    /// Receives the time at which the sleeper begins to wait.
    begun_ns: Receiver<u64>,
    awoke_ns: Receiver<u64>,
    _thread: JoinOnDrop,
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
        Self { signal, asked, begun_ns, awoke_ns, _thread: thread.into() }
    }

    /// Lets the thread wait for `after`, then wakes it by a publication. Returns `None` if the thread has ended.
    pub fn wake(&mut self, after: Duration) -> Option<WakeUp> {
        self.asked.send(()).ok()?;
        let begun_ns = self.begun_ns.recv().ok()?;
        std::thread::sleep(after);
        let start_ns = clock::now_ns();
        self.signal.publish(1);
        let publish_ns = clock::now_ns() - start_ns;
        let awoke_ns = self.awoke_ns.recv().ok()?;
        let waited_ns = start_ns.saturating_sub(begun_ns).max(1);
        Some(WakeUp { waited_ns, publish_ns, wake_ns: awoke_ns.saturating_sub(start_ns) })
    }
}

/// Number of async tasks that wait at the same time, each for its own signal.
const WAITING: u64 = 64;

/// A signal that an async task can wait for.
pub trait AsyncSignal: Default {
    fn publish(&self);

    /// Waits for the signal. Calls `ready` once every publication from then on will be noticed, and completes after
    /// such a publication.
    fn wait(&self, ready: impl FnOnce()) -> impl Future<Output = ()>;
}

impl AsyncSignal for Awaitable {
    fn publish(&self) {
        EventCount::publish(self);
    }

    async fn wait(&self, ready: impl FnOnce()) {
        let seen = self.snapshot();
        ready();
        self.changed(seen).await;
    }
}

impl AsyncSignal for Event {
    fn publish(&self) {
        self.notify(usize::MAX);
    }

    async fn wait(&self, ready: impl FnOnce()) {
        // The listener is inside the future, so it needs no allocation.
        listener!(self => listener);
        ready();
        listener.await;
    }
}

/// The least that can wake a task from any thread: a count, and the waker of a single task under a lock.
#[derive(Default)]
pub struct BareWaker {
    published: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl BareWaker {
    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncSignal for BareWaker {
    fn publish(&self) {
        self.published.fetch_add(1, Release);
        let waker = self.waker().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn wait(&self, ready: impl FnOnce()) {
        let seen = self.published.load(Acquire);
        ready();
        let has_changed = |context: &mut Context<'_>| {
            if self.published.load(Acquire) != seen {
                return Poll::Ready(());
            }
            let waker = context.waker().clone();
            let replaced = self.waker().replace(waker);
            drop(replaced);
            // A publication after this load finds the waker.
            if self.published.load(Acquire) == seen { Poll::Pending } else { Poll::Ready(()) }
        };
        poll_fn(has_changed).await;
    }
}

/// Async tasks, and the signals for which they wait.
pub trait Tasks {
    /// Publishes the given number of times, each time to a waiting task. Returns the duration in nanoseconds, or `None`
    /// if a task was not woken.
    fn publish_ns(&self, times: u64) -> Option<u64>;

    /// Runs two tasks that alternately wake each other, the given number of times. Returns `false` if a task was not
    /// woken.
    fn hop(&self, times: u64) -> bool;
}

/// Returns tasks that wait for signals of type `A`.
pub fn tasks<A: AsyncSignal + 'static>() -> Box<dyn Tasks> {
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

impl<A: AsyncSignal> Tasks for Vec<A> {
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

/// Runs both tasks alternately until they end. Returns `false` if neither task is woken.
fn run(tasks: [Pin<&mut dyn Future<Output = ()>>; 2]) -> bool {
    let mut tasks = tasks.map(|task| {
        let (waker, woken) = alarm();
        woken.0.store(true, Relaxed);
        (Some(task), waker, woken)
    });
    while tasks.iter().any(|(task, ..)| task.is_some()) {
        let mut goes_on = false;
        for (slot, waker, woken) in &mut tasks {
            // The flag is loaded first. An exchange alone would be an instruction with LOCK, which must not be part of
            // the measurement.
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
