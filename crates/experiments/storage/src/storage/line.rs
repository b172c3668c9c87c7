//! The rate of the client's line, which a listener of `link-throughput` measures before the first trial.

use std::net::ToSocketAddrs;
use std::time::Duration;

use ascertain_engine::experiment::TargetError;
use ascertain_experiments_networks::links::failed;
use ascertain_netlab::Error;
use ascertain_netlab::throughput::{Direction, Token, TrafficSpec, measure};
use ascertain_sys::interrupt::Stop;

use super::limits::median;

/// The environment variable with the listener's token, as for `link-throughput`.
const TOKEN: &str = "ASCERTAIN_LISTEN_TOKEN";
/// Number of connections. A single one may not fill the line.
const STREAMS: u32 = 4;
/// The connections reach their full rate within this number of intervals, which are not counted.
const LEFT_OUT: u32 = 5;
/// Number and length of the counted intervals.
const INTERVALS: (u32, Duration) = (10, Duration::from_millis(100));

/// Returns the token of the user's listener.
///
/// # Errors
/// Returns the reason, for the user, if the token is missing or invalid.
pub fn token() -> Result<Token, String> {
    let token = std::env::var(TOKEN).map_err(|_| format!("set {TOKEN} to the token that `ascertain listen` prints"))?;
    token.parse().map_err(|why| format!("{TOKEN}: {why}"))
}

/// Measures the rate of the line in bytes per second: to the listener at `HOST:PORT` if `is_upload`, and otherwise from
/// the listener.
pub fn rate_bytes_per_s(listener: &str, token: &Token, is_upload: bool, stop: &Stop) -> Result<f64, TargetError> {
    let address = listener.to_socket_addrs().map_err(|error| failed(format!("{listener}: {error}")))?.next();
    let address = address.ok_or_else(|| failed(format!("{listener} has no address")))?;
    let direction = if is_upload { Direction::Up } else { Direction::Down };
    let (intervals, interval) = INTERVALS;
    let (streams, left_out) = (STREAMS, LEFT_OUT);
    let spec = TrafficSpec { direction, streams, interval, left_out, intervals, ..TrafficSpec::default() };
    let measured = measure(&address, token, &spec, &|| stop.is_requested()).map_err(|error| match error {
        Error::Stopped => TargetError::Interrupted,
        error => failed(format!("{listener}: {error}")),
    })?;
    let rate = median(&measured.curve().rates()).filter(|rate| *rate > 0.0);
    rate.ok_or_else(|| failed(format!("{listener}: nothing arrived, so the rate of the line is not known")))
}

#[cfg(test)]
mod tests {
    use ascertain_netlab::throughput::{Listener, ListenerLimits};

    use super::*;

    #[test]
    fn a_listener_measures_the_line() {
        let token = Token::new().unwrap();
        let listener =
            Listener::bind("127.0.0.1:0".parse().unwrap(), token.clone(), ListenerLimits::default()).unwrap();
        let address = listener.address().to_string();
        for is_upload in [false, true] {
            assert!(rate_bytes_per_s(&address, &token, is_upload, &Stop::default()).unwrap() > 0.0);
        }
        let other = rate_bytes_per_s(&address, &Token::new().unwrap(), false, &Stop::default()).unwrap_err();
        assert!(other.to_string().contains(&address), "{other}");
    }
}
