use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Ends moves from outside: what was begun stays as it is, to be gone on with. Copies are one token.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(AtomicBool, Notify)>);

impl Stop {
    /// Asks all moves with this token to end.
    pub fn ask(&self) {
        self.0.0.store(true, Ordering::Relaxed);
        self.0.1.notify_waiters();
    }

    /// Whether it was asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Waits until it is.
    pub(crate) async fn asked(&self) {
        let notified = self.0.1.notified();
        if !self.is_asked() {
            notified.await;
        }
    }
}
