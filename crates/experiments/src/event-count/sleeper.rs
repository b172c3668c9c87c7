//! A thread that sleeps until something is published.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use ascertain_sys::clock;

use super::contestants::Signal;

/// From when a waiter is about to wait until it surely sleeps: some 60 times as long as any of them spins.
const FALLING_ASLEEP: Duration = Duration::from_micros(600);

/// What one wake-up took.
pub struct Woken {
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
    is_ready: Receiver<()>,
    awoke_ns: Receiver<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Sleeper {
    pub fn new(signal: Arc<dyn Signal>) -> Self {
        let (asked, orders) = sync_channel(1);
        let (ready, is_ready) = sync_channel(1);
        let (awoke, awoke_ns) = sync_channel(1);
        let waited = signal.clone();
        let thread = std::thread::spawn(move || {
            for () in orders {
                waited.wait(&mut || {
                    let _ = ready.send(());
                });
                let _ = awoke.send(clock::now_ns());
            }
        });
        Self { signal, asked: Some(asked), is_ready, awoke_ns, thread: Some(thread) }
    }

    /// Lets it fall asleep, and wakes it. None if its thread has ended.
    pub fn wake(&mut self) -> Option<Woken> {
        self.asked.as_ref()?.send(()).ok()?;
        self.is_ready.recv().ok()?;
        std::thread::sleep(FALLING_ASLEEP);
        let start_ns = clock::now_ns();
        self.signal.publish(1);
        let publish_ns = clock::now_ns() - start_ns;
        let awoke_ns = self.awoke_ns.recv().ok()?;
        Some(Woken { publish_ns, wake_ns: awoke_ns.saturating_sub(start_ns) })
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
