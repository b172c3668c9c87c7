//! The traffic of a measurement, and the reasons why a listener refuses to measure it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The traffic of a measurement: its transport protocol, direction, flows and duration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficSpec {
    /// Transport protocol, with the rate and the datagram size if it is UDP.
    pub transport: Transport,
    /// Direction of the flows, seen from the client.
    pub direction: Direction,
    /// Number of flows in each direction, from 1 to 128.
    pub streams: u32,
    /// Length of the intervals in which bytes are counted, at least 1 ms.
    pub interval: Duration,
    /// Number of intervals at the beginning that are not counted. They give the connections time to reach their full
    /// rate.
    pub left_out: u32,
    /// Number of counted intervals. They follow the intervals that are left out.
    pub intervals: u32,
}

/// A transport protocol, with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Each flow is a TCP connection that sends as fast as it can.
    Tcp,
    /// Each flow sends UDP datagrams that are evenly spaced in time.
    Udp {
        /// Rate of each flow, without the headers of UDP and IP.
        rate_bits_per_s: u64,
        /// Size of each datagram, without the headers of UDP and IP.
        datagram_bytes: u32,
    },
}

/// The direction of the flows, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Each flow goes from the client to the listener.
    Up,
    /// Each flow goes from the listener to the client.
    Down,
    /// Both directions are used at once, with [`TrafficSpec::streams`] flows each.
    Both,
}

impl Default for TrafficSpec {
    /// Returns 0.1 s of TCP traffic over one connection, from the listener to the client.
    fn default() -> Self {
        let interval = Duration::from_millis(10);
        let (transport, direction) = (Transport::Tcp, Direction::Down);
        Self { transport, direction, streams: 1, interval, left_out: 0, intervals: 10 }
    }
}

pub(super) const MOST_STREAMS: u32 = 128;
pub(super) const MOST_INTERVALS: u32 = 100_000;
/// Size of the header at the beginning of each datagram's payload, in bytes.
pub(super) const HEADER_BYTES: usize = 28;
/// Size of the largest UDP payload over IPv4.
const MOST_DATAGRAM_BYTES: u32 = 65_507;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum duration of any measurement, even if a caller allows more. It is 30 days.
const MOST_TIME: Duration = Duration::from_secs(30 * 24 * 3600);

impl TrafficSpec {
    /// Returns the duration of the measurement, including the intervals that are left out.
    pub fn time(&self) -> Duration {
        self.interval.saturating_mul(self.left_out.saturating_add(self.intervals))
    }

    /// Returns the direction of each flow, in the order of flow indexes: `true` if the flow goes to the listener,
    /// `false` if it goes to the client.
    pub fn flows(&self) -> Vec<bool> {
        let directions: &[bool] = match self.direction {
            Direction::Up => &[true],
            Direction::Down => &[false],
            Direction::Both => &[true, false],
        };
        directions.iter().flat_map(|is_up| vec![*is_up; self.streams as usize]).collect()
    }

    /// Checks that all values are in their ranges, and that the measurement takes at most `most`.
    ///
    /// # Errors
    /// Returns [`Refusal::Spec`] if a value of the traffic is out of range, and [`Refusal::TooLong`] if the measurement
    /// would take longer than `most`.
    pub fn check(&self, most: Duration) -> Result<(), Refusal> {
        let most = most.min(MOST_TIME);
        let is_sent = match self.transport {
            Transport::Tcp => true,
            Transport::Udp { rate_bits_per_s, datagram_bytes } => {
                rate_bits_per_s > 0 && (HEADER_BYTES as u32..=MOST_DATAGRAM_BYTES).contains(&datagram_bytes)
            }
        };
        let is_counted = self.interval >= SHORTEST_INTERVAL
            && (1..=MOST_INTERVALS).contains(&self.intervals)
            && self.left_out <= MOST_INTERVALS - self.intervals;
        if !(1..=MOST_STREAMS).contains(&self.streams) || !is_sent || !is_counted {
            return Err(Refusal::Spec);
        }
        if self.time() > most {
            return Err(Refusal::TooLong { most_s: most.as_secs() });
        }
        Ok(())
    }
}

/// The reason why a listener refuses a measurement, or stops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The client uses another version of the protocol.
    #[error("the listener speaks version {speaks} of the protocol; use the same version of the program at both ends")]
    Version {
        /// Protocol version of the listener.
        speaks: u64,
    },
    /// The listener is measuring with another client.
    #[error("the listener is busy with the measurement of another client; try again later")]
    Busy,
    /// A value of the [`TrafficSpec`] is out of range.
    #[error(
        "unsupported traffic; use 1 to {MOST_STREAMS} streams, 1 to {MOST_INTERVALS} intervals of at least 1 ms, \
         and for UDP a rate above 0 and datagrams of {HEADER_BYTES} to {MOST_DATAGRAM_BYTES} bytes"
    )]
    Spec,
    /// The measurement would exceed the listener's time limit.
    #[error("the measurement would take longer than {most_s} s, the listener's limit; shorten the measurement")]
    TooLong {
        /// The time limit in seconds.
        most_s: u64,
    },
    /// All bytes that the listener may send and receive are used up
    /// ([`ListenerLimits::bytes`](super::ListenerLimits::bytes)).
    #[error("the listener has transferred as many bytes as its limit allows; restart the listener")]
    UsedUp,
    /// The connection or the datagrams of a flow did not reach the listener in time.
    #[error("not every flow reached the listener; check for a firewall that blocks some of them, for example UDP")]
    NotReached,
    /// The start message arrived after the time at which the measurement should have started.
    #[error("could not synchronise with the listener: start messages kept arriving late; check the network path")]
    Late,
    /// A flow failed before the end of the measurement.
    #[error("the connection of a flow failed during the measurement; try again")]
    Broken,
}
