//! Functions that create a daemon for tests.

use std::time::Duration;

use ascertain_sync::barrierd::{Daemon, Error};

use ascertain_sys::testing::left_out;

/// Minimum time between two heartbeats.
pub const PERIOD: Duration = Duration::from_micros(250);

/// Returns a daemon; `None`, with a message, if none can be created.
pub fn daemon() -> Option<Daemon> {
    daemon_or_error().map(Result::unwrap)
}

/// Returns a daemon, or the error of creating it. Returns `None`, with a message, if this machine does not support the
/// daemon or this user may not start it.
pub fn daemon_or_error() -> Option<Result<Daemon, Error>> {
    match Daemon::new(PERIOD) {
        Err(error) if error.is_unavailable() => {
            left_out(error);
            None
        }
        daemon => Some(daemon),
    }
}
