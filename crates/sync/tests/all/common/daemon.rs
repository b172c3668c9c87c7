//! A daemon of the test's own.

use std::time::Duration;

use ascertain_sync::barrierd::{Daemon, Error};

use ascertain_sys::testing::left_out;

/// Between two heartbeats, at least.
pub const PERIOD: Duration = Duration::from_micros(250);

/// None where it can't be had, which is said.
pub fn daemon() -> Option<Daemon> {
    daemon_or_error().map(Result::unwrap)
}

/// As [`daemon`], and what else is wrong.
pub fn daemon_or_error() -> Option<Result<Daemon, Error>> {
    match Daemon::new(PERIOD) {
        Err(error) if error.is_unavailable() => {
            left_out(error);
            None
        }
        daemon => Some(daemon),
    }
}
