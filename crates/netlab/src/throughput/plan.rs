//! What is asked for, and why that may be refused.

use std::time::Duration;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How it goes.
    pub transport: Transport,
    /// Where it goes.
    pub direction: Direction,
    /// How many flows go each way.
    pub streams: u32,
    /// What bytes are counted in.
    pub interval: Duration,
    /// How many of them are left out at the beginning: until connections have found their rate.
    pub left_out: u32,
    /// How many follow.
    pub intervals: u32,
}

/// How it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// As much as TCP can.
    Tcp,
    /// Datagrams, evenly spaced.
    Udp {
        /// Of each stream, headers aside.
        rate_bits_per_s: u64,
        /// The size of one, headers aside.
        datagram_bytes: u32,
    },
}

/// Where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the listener.
    Up,
    /// From it.
    Down,
    /// Both at once, each with as many flows.
    Both,
}

impl Default for Plan {
    /// A tenth of a second of one connection from the listener.
    fn default() -> Self {
        let interval = Duration::from_millis(10);
        let (transport, direction) = (Transport::Tcp, Direction::Down);
        Self { transport, direction, streams: 1, interval, left_out: 0, intervals: 10 }
    }
}

pub(super) const MOST_STREAMS: u32 = 128;
pub(super) const MOST_INTERVALS: u32 = 100_000;
/// What a datagram begins with.
pub(super) const HEADER_BYTES: usize = 28;
/// What UDP can carry over IPv4.
const MOST_DATAGRAM_BYTES: u32 = 65_507;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

impl Plan {
    /// How long it takes, with what is left out.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.interval.saturating_mul(self.left_out.saturating_add(self.intervals))
    }

    /// Whether each flow goes to the listener, in the order of their numbers.
    #[must_use]
    pub fn flows(&self) -> Vec<bool> {
        let ways: &[bool] = match self.direction {
            Direction::Up => &[true],
            Direction::Down => &[false],
            Direction::Both => &[true, false],
        };
        ways.iter().flat_map(|is_up| vec![*is_up; self.streams as usize]).collect()
    }

    /// Whether it means something, and takes no longer than that.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, most: Duration) -> Result<(), Refusal> {
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
            return Err(Refusal::Plan);
        }
        if self.time() > most {
            return Err(Refusal::TooLong { most_s: most.as_secs() });
        }
        Ok(())
    }
}

/// Why there is no measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another version of this protocol.
    #[error("the listener speaks version {speaks} of the protocol: use the same version of the program at both ends")]
    Version {
        /// The listener's.
        speaks: u64,
    },
    /// Somebody else is being measured.
    #[error("the listener measures somebody else now: try again later")]
    Busy,
    /// A plan that nobody carries out.
    #[error(
        "from 1 to {MOST_STREAMS} streams can be measured, in from 1 to {MOST_INTERVALS} intervals of 1 ms or more, \
         and datagrams have from {HEADER_BYTES} to {MOST_DATAGRAM_BYTES} bytes and a rate"
    )]
    Plan,
    /// More time than the listener gives anybody.
    #[error("it would take longer than {most_s} s, the most that the listener gives a measurement")]
    TooLong {
        /// How much that is.
        most_s: u64,
    },
    /// The listener has sent and received what it may.
    #[error("the listener has sent and received as much as it was allowed to: start it again")]
    UsedUp,
    /// Not every flow reached the listener.
    #[error("not every flow reached the listener: does something on the way let only some through, as of UDP?")]
    NotReached,
    /// It learnt of the beginning when that was over.
    #[error("the listener learns too late that it is to begin, again and again: is the way to it as bad as that?")]
    Late,
    /// A flow ended in the middle.
    #[error("a flow ended in the middle")]
    Broken,
}
