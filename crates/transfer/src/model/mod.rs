//! How long moving blocks takes, what that says of their best size and number, and who finds it out while moving.
//!
//! N blocks of b bytes over C connections take T = F + W + ⌈N/C⌉·(L + b·max(1/B, C/S)): a fixed cost F (begin and
//! commit), the slow first block W of a connection (handshake, slow start), and for each round a latency L and b bytes
//! at the rate B of one connection, or at its share of the ceiling S of all of them. Nothing here has a clock or does
//! input or output: times are seconds since the move began, passed in.

mod fit;
mod pilot;
mod probe;

pub use fit::{Observation, fit};
pub use pilot::{Pilot, Ticket};

use std::cmp::Reverse;

use serde::Serialize;

use crate::store::Limits;

/// What a link does to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// F: what a file costs whatever its size.
    pub fixed_s: f64,
    /// W: how much longer the first block of a connection takes.
    pub fresh_s: f64,
    /// L: what a block costs whatever its size.
    pub latency_s: f64,
    /// B: the rate of one connection.
    pub bytes_per_s: f64,
    /// S: the rate of all of them, where it was met.
    pub ceiling_bytes_per_s: Option<f64>,
}

/// Of which size blocks are, and how many are under way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Every block but the last has as many bytes.
    pub block_bytes: u64,
    /// So many at once.
    #[serde(rename = "connections")]
    pub concurrency: usize,
}

/// What is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// How the rest is moved.
    #[serde(flatten)]
    pub shape: Shape,
    /// How long all of it takes, from the first request to the last answer.
    pub expected_s: f64,
    /// Nine times in ten not less than this, as far as what was seen goes on (a throttle that begins later is in no
    /// interval), …
    pub low_s: f64,
    /// … and not more than this. It is far off where no ceiling was met: then `expected_s` is the least time.
    pub high_s: f64,
    /// What it rests on.
    #[serde(flatten)]
    pub link: Link,
}

/// What blocks must fit into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// What the store takes.
    pub limits: Limits,
    /// All blocks under way together.
    pub memory_bytes: u64,
    /// How many may be under way.
    pub max_concurrency: usize,
}

/// Numbers of connections, and of rounds, that are tried. The steps are finer than 1.5.
const STEPS: [usize; 17] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384];
/// What is as good as the best: of those, the one that needs the least memory is taken, for it loses the least when a
/// block has to be sent again.
const AS_GOOD: f64 = 1.04;
/// Smaller blocks cost more than they gain, in requests and at this end.
const LEAST_BYTES: u64 = 64 << 10;
/// A request costs both ends more than its latency, which shows where it is next to none: of what is as good, blocks of
/// that size are taken before smaller ones …
const ENOUGH_BYTES: u64 = 1 << 20;
/// … if requests take no longer …
pub(crate) const NEAR_S: f64 = 0.002;
/// The first answer of a store that is near may take so many times as long: it is cold, or a machine busy.
const LATE: f64 = 10.0;
/// … and of that size if besides one connection is that fast: then both ends are the limit, and what they spend on
/// requests and connections is missing.
const ENOUGH_FAST_BYTES: u64 = 8 << 20;
const FAST_BYTES_PER_S: f64 = 100e6;
/// Of what is a little farther away so many blocks are enough, if larger ones are as good.
const ENOUGH_BLOCKS: u64 = 1000;

/// What a request without a block takes, as the first one says. Where it was late, how long its connection took to make,
/// which is the kernels' work alone, may say that the store is near for all that.
pub(crate) fn latency_s(answer_s: f64, connecting_s: Option<f64>) -> f64 {
    match connecting_s {
        Some(connecting_s) if connecting_s <= NEAR_S && answer_s <= LATE * NEAR_S => answer_s.min(NEAR_S),
        _ => answer_s,
    }
}

fn is_near(latency_s: Option<f64>) -> bool {
    latency_s.is_some_and(|latency_s| latency_s <= NEAR_S)
}

impl Link {
    /// How long so many bytes take in such blocks.
    #[must_use]
    pub fn seconds(&self, bytes: u64, shape: Shape) -> f64 {
        self.fixed_s + self.fresh_s + self.streaming_s(bytes, shape)
    }

    /// Whether the link itself costs next to nothing.
    fn is_at_ends(&self) -> bool {
        self.latency_s <= NEAR_S && self.bytes_per_s >= FAST_BYTES_PER_S
    }

    fn streaming_s(&self, bytes: u64, shape: Shape) -> f64 {
        let block_bytes = shape.block_bytes.min(bytes).max(1);
        let blocks = bytes.div_ceil(block_bytes);
        let rounds = blocks.div_ceil(shape.concurrency.max(1) as u64) as f64;
        rounds * self.block_s(block_bytes, shape.concurrency)
    }

    /// How long a block takes among so many.
    fn block_s(&self, bytes: u64, concurrency: usize) -> f64 {
        let share = self.ceiling_bytes_per_s.map_or(f64::INFINITY, |ceiling| ceiling / concurrency.max(1) as f64);
        self.latency_s + bytes as f64 / self.bytes_per_s.min(share)
    }

    /// The shape that takes the shortest time, or nearly so with less memory.
    #[must_use]
    pub fn choose(&self, bytes: u64, room: &Room) -> Shape {
        let timed: Vec<(f64, Shape)> =
            room.shapes(bytes).map(|shape| (self.streaming_s(bytes, shape), shape)).collect();
        let best_s = timed.iter().map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min);
        let good = timed.into_iter().filter(|(seconds, _)| *seconds <= best_s * AS_GOOD).map(|(_, shape)| shape);
        let enough_bytes = match self.latency_s {
            _ if self.is_at_ends() => ENOUGH_FAST_BYTES,
            ..=NEAR_S => ENOUGH_BYTES,
            // It may be near for all that, and requests wait for each other: there are not too many of them.
            latency_s if latency_s <= LATE * NEAR_S => ENOUGH_BYTES.min(bytes / ENOUGH_BLOCKS),
            _ => 0,
        };
        let cost = |shape: &Shape| {
            let memory_bytes = shape.block_bytes * shape.concurrency as u64;
            (Reverse(shape.block_bytes.min(enough_bytes)), memory_bytes, shape.concurrency)
        };
        good.min_by_key(cost).unwrap_or_else(|| room.fitting(bytes, 1))
    }
}

impl Room {
    /// What is worth trying: blocks that share the bytes out evenly, in one round or several.
    fn shapes(&self, bytes: u64) -> impl Iterator<Item = Shape> {
        STEPS.into_iter().take_while(|concurrency| *concurrency <= self.max_concurrency).flat_map(move |concurrency| {
            STEPS.into_iter().map(move |rounds| {
                let block_bytes = bytes.div_ceil((concurrency * rounds) as u64).max(LEAST_BYTES);
                self.fitting(block_bytes, concurrency)
            })
        })
    }

    /// The nearest that the store takes and memory has room for.
    #[must_use]
    pub fn fitting(&self, block_bytes: u64, concurrency: usize) -> Shape {
        let concurrency = concurrency.min(self.max_concurrency).max(1);
        let least = self.limits.min_block_bytes.max(1);
        // One block at least, however little memory there is.
        let memory_bytes = self.memory_bytes.max(LEAST_BYTES);
        let most = self.limits.max_block_bytes.min(memory_bytes / concurrency as u64).max(least);
        let block_bytes = block_bytes.clamp(least, most);
        let concurrency = concurrency.min((memory_bytes / block_bytes).max(1) as usize);
        Shape { block_bytes, concurrency }
    }

    /// The least size of blocks of which so many bytes have no more than the store takes.
    #[must_use]
    pub fn least_block_bytes(&self, bytes: u64, blocks_left: usize) -> u64 {
        self.limits.min_block_bytes.max(bytes.div_ceil(blocks_left.max(1) as u64)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_first_answer_over_a_quick_connection_is_not_distance() {
        assert_eq!([latency_s(0.001, None), latency_s(0.001, Some(0.0001))], [0.001; 2]);
        assert_eq!(latency_s(0.009, Some(0.0001)), NEAR_S, "cold or busy, and near");
        assert_eq!(latency_s(0.009, None), 0.009, "nobody knows");
        assert_eq!(latency_s(0.009, Some(0.004)), 0.009, "a round trip is that long");
        assert_eq!(latency_s(0.05, Some(0.0001)), 0.05, "somebody near asks somebody far");
    }
}
