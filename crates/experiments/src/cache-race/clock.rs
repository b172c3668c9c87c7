//! A clock whose sleeps end when they should: tokio's timers are of a millisecond, which is longer than most reads of a
//! disk.

use std::thread;
use std::time::Duration;

use ascertain_netlab::now_ns;
use ascertain_transfer::race::Clock;
use tokio::task::spawn_blocking;

/// By how much tokio is late at the most, and more.
const COARSE: Duration = Duration::from_millis(3);

/// The system's clock; the last of a sleep is a thread's.
pub struct Fine;

impl Clock for Fine {
    fn now(&self) -> Duration {
        Duration::from_nanos(now_ns())
    }

    async fn sleep(&self, time: Duration) {
        let end = self.now().saturating_add(time);
        if let Some(coarse) = time.checked_sub(COARSE) {
            tokio::time::sleep(coarse).await;
        }
        let left = end.saturating_sub(self.now());
        // Only the end of the runtime can be in the way, and nobody waits then.
        let _ = spawn_blocking(move || thread::sleep(left)).await;
    }
}
