//! A model of the duration of a transfer in parts. It chooses the size of the parts and the number of connections, and
//! is fitted to the measurements during the transfer.
//!
//! N parts of b bytes over C connections take T = F + W + ⌈N/C⌉·(L + b·max(1/B, C/S)). F is the fixed cost of starting
//! and committing the upload. W is the extra time of the first part of a connection (handshake, slow start). ⌈N/C⌉ is
//! the number of rounds. In each round, every connection carries one part. A part costs a latency L, and the time for
//! its b bytes. Each connection has at most the rate B, and all connections together have at most the rate S, the
//! ceiling.
//!
//! This module has no clock and does no input or output. The caller passes times in seconds since the start of the
//! transfer.

mod fit;
mod forecast;
mod planner;
mod probe;

use fit::Observation;
pub use forecast::Forecast;
pub use planner::{Planner, Ticket};
pub(crate) use planner::{RAMP_S, WHOLE_BYTES};

use std::cmp::Reverse;

use serde::Serialize;

use crate::store::Limits;

/// The properties of a link that determine the duration of parts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// F: the time to start and to commit an upload of any size, in seconds.
    pub fixed_s: f64,
    /// W: the extra time of the first part of a connection (handshake, slow start), in seconds.
    pub fresh_s: f64,
    /// L: the latency of a part of any size, in seconds.
    pub latency_s: f64,
    /// B: the rate of one connection, in bytes per second.
    pub bytes_per_s: f64,
    /// S: the ceiling, which is the highest rate of all connections together, in bytes per second. `None` if the
    /// transfer has not reached it.
    pub ceiling_bytes_per_s: Option<f64>,
}

/// The form of a transfer: the size of its parts, and the number of parts in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Size of each part in bytes; the last part may be smaller.
    #[serde(rename = "block_bytes")]
    pub part_bytes: u64,
    /// Number of parts in flight, each over its own connection.
    #[serde(rename = "connections")]
    pub concurrency: usize,
}

/// The plan of a transfer: the form of the parts that remain, and the forecast.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TransferPlan {
    /// The size of the parts that remain, and the number of parts in flight.
    #[serde(flatten)]
    pub shape: Shape,
    /// The forecast of the duration; `None` before enough is transferred.
    #[serde(flatten)]
    pub forecast: Option<Forecast>,
    /// The estimated properties of the link, on which the plan is based.
    #[serde(flatten)]
    pub link: Link,
}

/// The limits on the size and the number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraints {
    /// The limits of the store.
    pub limits: Limits,
    /// Limit on the total size of the parts in flight, in bytes.
    pub memory_bytes: u64,
    /// Minimum number of parts in flight, as long as there are enough parts and memory.
    pub min_concurrency: usize,
    /// Maximum number of parts in flight.
    pub max_concurrency: usize,
    /// Limit on the bandwidth of all parts together, in bytes per second.
    pub limit_bytes_per_s: Option<u64>,
}

/// The numbers of connections, and of rounds (one part on each connection), that the model compares. Except for 2, each
/// is at most 1.5 times the previous one.
const STEPS: [usize; 17] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384];
/// A shape (part size and number of parts in flight) is good if it takes at most this multiple of the shortest time. Of
/// the good shapes, the shape with the least memory is preferred, because it loses the least if a part must be sent
/// again.
const AS_GOOD: f64 = 1.04;
/// Smallest size of a part in bytes. Smaller parts would need more requests, which would cost more time than the
/// smaller parts save.
const LEAST_BYTES: u64 = 64 << 10;
/// Size in bytes up to which larger parts are preferred, if the latency is at most [`NEAR_S`]. With such a low latency,
/// most of the cost of a request is the time that the machines on both sides need for it.
const ENOUGH_BYTES: u64 = 1 << 20;
/// Largest latency in seconds of a low-latency store.
pub(crate) const NEAR_S: f64 = 0.002;
/// Largest latency of the first answer of a low-latency store, as a multiple of [`NEAR_S`]. This answer may be late
/// because the store is cold or a machine is busy.
const LATE: f64 = 10.0;
/// The value of [`ENOUGH_BYTES`] if the connections together reach [`FAST_BYTES_PER_S`]. The machines on both sides
/// then probably limit the rate, and each request and connection costs them time.
const ENOUGH_FAST_BYTES: u64 = 8 << 20;
const FAST_BYTES_PER_S: f64 = 100e6;
/// Preferred maximum number of parts. If a file would have more parts, its parts are made larger, up to
/// [`ENOUGH_BYTES`]. This limit applies if the latency is above [`NEAR_S`], but at most [`LATE`] times [`NEAR_S`].
const ENOUGH_BLOCKS: u64 = 1000;

/// Returns the latency of a store in seconds. `answer_s` is the duration of the first request, which a slow server
/// lengthens. `connecting_s` is the time to open the connection, in which only the two kernels take part; `None` if it
/// is unknown. If both times are short, the result is at most [`NEAR_S`].
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
    /// Returns whether the machines on both sides limit the rate, and not the link between them.
    fn is_at_ends(&self) -> bool {
        self.latency_s <= NEAR_S && self.bytes_per_s >= FAST_BYTES_PER_S
    }

    fn streaming_s(&self, bytes: u64, files: usize, shape: Shape) -> f64 {
        let part_bytes = shape.part_bytes.min(bytes).max(1);
        let (blocks, part_bytes) = match bytes.div_ceil(part_bytes) {
            blocks if blocks < files as u64 => (files as u64, bytes.div_ceil(files as u64)),
            blocks => (blocks, part_bytes),
        };
        let rounds = blocks.div_ceil(shape.concurrency.max(1) as u64) as f64;
        rounds * self.block_s(part_bytes, shape.concurrency)
    }

    /// Returns the duration in seconds of a part of `bytes` bytes, if `concurrency` parts are in flight.
    fn block_s(&self, bytes: u64, concurrency: usize) -> f64 {
        let share = self.ceiling_bytes_per_s.map_or(f64::INFINITY, |ceiling| ceiling / concurrency.max(1) as f64);
        self.latency_s + bytes as f64 / self.bytes_per_s.min(share)
    }

    /// Returns the shape (part size and number of parts in flight) with the shortest duration for `bytes` bytes. If
    /// another shape is nearly as fast, and needs less memory or fewer requests, returns that shape.
    #[must_use]
    pub fn choose(&self, bytes: u64, constraints: &Constraints) -> Shape {
        self.choose_for(bytes, 1, constraints, self.is_at_ends())
    }

    /// Returns the shape that [`Self::choose`] returns, for `files` files that have `bytes` bytes together. A part
    /// never covers two files. `is_at_ends` is `true` if the machines on both sides seem to limit the rate.
    #[must_use]
    pub(crate) fn choose_for(&self, bytes: u64, files: usize, constraints: &Constraints, is_at_ends: bool) -> Shape {
        let timed: Vec<(f64, Shape)> =
            constraints.shapes(bytes).map(|shape| (self.streaming_s(bytes, files, shape), shape)).collect();
        let best_s = timed.iter().map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min);
        let good = timed.into_iter().filter(|(seconds, _)| *seconds <= best_s * AS_GOOD).map(|(_, shape)| shape);
        let enough_bytes = match self.latency_s {
            _ if is_at_ends => ENOUGH_FAST_BYTES,
            ..=NEAR_S => ENOUGH_BYTES,
            // The latency of the store itself may be low, but it answers requests one after the other. With larger
            // parts, there are fewer requests.
            latency_s if latency_s <= LATE * NEAR_S => ENOUGH_BYTES.min(bytes / ENOUGH_BLOCKS),
            _ => 0,
        };
        let cost = |shape: &Shape| {
            let memory_bytes = shape.part_bytes * shape.concurrency as u64;
            (Reverse(shape.part_bytes.min(enough_bytes)), memory_bytes, shape.concurrency)
        };
        good.min_by_key(cost).unwrap_or_else(|| constraints.fitting(bytes, 1))
    }
}

impl Limits {
    /// Returns the smallest size of a part in bytes with which at most `parts_left` parts are enough for `bytes` bytes.
    #[must_use]
    pub fn least_part_bytes(&self, bytes: u64, parts_left: usize) -> u64 {
        self.min_part_bytes.max(bytes.div_ceil(parts_left.max(1) as u64)).max(1)
    }
}

impl Constraints {
    /// Returns the shapes to compare for a file of `bytes` bytes. Each combination of a number of connections and a
    /// number of rounds gives one shape, with parts of equal size.
    fn shapes(&self, bytes: u64) -> impl Iterator<Item = Shape> {
        STEPS.into_iter().take_while(|concurrency| *concurrency <= self.max_concurrency).flat_map(move |concurrency| {
            STEPS.into_iter().map(move |rounds| {
                let part_bytes = bytes.div_ceil((concurrency * rounds) as u64).max(LEAST_BYTES);
                self.fitting(part_bytes, concurrency)
            })
        })
    }

    /// Returns the shape that is nearest to `part_bytes` and `concurrency`, among those that the store and the memory
    /// limit permit.
    #[must_use]
    pub fn fitting(&self, part_bytes: u64, concurrency: usize) -> Shape {
        let concurrency = concurrency.max(self.min_concurrency).min(self.max_concurrency).max(1);
        let least = self.limits.min_part_bytes.max(1);
        // A single part is always permitted, even if it exceeds the memory limit.
        let memory_bytes = self.memory_bytes.max(LEAST_BYTES);
        let most = self.limits.max_part_bytes.min(memory_bytes / concurrency as u64).max(least);
        let part_bytes = part_bytes.clamp(least, most);
        let concurrency = concurrency.min((memory_bytes / part_bytes).max(1) as usize);
        Shape { part_bytes, concurrency }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_first_answer_over_a_quick_connection_is_not_a_high_latency() {
        assert_eq!([latency_s(0.001, None), latency_s(0.001, Some(0.0001))], [0.001; 2]);
        assert_eq!(latency_s(0.009, Some(0.0001)), NEAR_S, "cold or busy, and near");
        assert_eq!(latency_s(0.009, None), 0.009, "the time to connect is unknown");
        assert_eq!(latency_s(0.009, Some(0.004)), 0.009, "the round trip is long");
        assert_eq!(latency_s(0.05, Some(0.0001)), 0.05, "a near proxy and a distant store");
    }
}
