//! A thread that sleeps until something is published.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use ascertain_sys::clock;

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
