//! Simulated links on a virtual clock. Their connections share a ceiling, and have slow start and losses.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use ascertain_transfer::model::{Shape, Ticket};

/// Returns a random value with a mean of 0 and a standard deviation of 1: the sum of twelve uniformly distributed
/// values.
pub fn normal(random: &mut impl Rng) -> f64 {
    (0..12).map(|_| random.random_range(-0.5..0.5)).sum()
}

const SEGMENT_BYTES: f64 = 1460.0;
const FIRST_WINDOW_BYTES: f64 = 10.0 * SEGMENT_BYTES;

/// The properties of a simulated link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub name: &'static str,
    /// Round trip time in seconds.
    pub round_trip_s: f64,
    /// Average time in seconds that the store needs for a part; varies by a tenth.
    pub thinks_s: f64,
    /// Rate of each connection in bytes per second.
    pub bytes_per_s: f64,
    /// Limit on the common rate of all connections, in bytes per second.
    pub sum_bytes_per_s: f64,
    /// Share of the segments that are lost, from 0 to 1.
    pub loss: f64,
    /// Number of bytes that pass before `sum_bytes_per_s` applies. Until then, the limit is a hundred times as high.
    pub burst_bytes: f64,
    /// Time in seconds that the store needs before it accepts the bytes of a request. During this time, it serves no
    /// other request.
    pub serves_s: f64,
    /// Standard deviation of the connections' rates, as a share of `bytes_per_s`.
    pub apart: f64,
    /// If set, all rates change at random: the time in seconds between two changes, and the standard deviation of the
    /// logarithm of the factor.
    pub varies: Option<(f64, f64)>,
    /// Index of a part that is delayed by something outside of the link, and its delay in seconds.
    pub held_up: Option<(usize, f64)>,
}

#[derive(Debug, Default)]
struct Connection {
    window_bytes: f64,
    bytes_per_s: f64,
    has_lost: bool,
    is_new: bool,
    /// The part in flight; `None` while the connection is idle.
    block: Option<BlockUnderWay>,
}

#[derive(Debug)]
struct BlockUnderWay {
    ticket: Option<Ticket>,
    left_bytes: f64,
    /// The time when the bytes of the part begin to flow.
    flows_s: f64,
    /// The time when the congestion window grows next.
    tick_s: f64,
    answer_s: f64,
    connecting_s: Option<f64>,
}

/// A simulated link that transfers the parts of a [`Source`].
pub struct World {
    link: Link,
    connections: Vec<Connection>,
    now_s: f64,
    /// Number of bytes that may still pass before the limit applies.
    burst_bytes: f64,
    /// The time when the store can serve the next request.
    free_s: f64,
    begun: usize,
    completed: usize,
    /// The factor that currently applies to all rates, and the time of its next change.
    factor: f64,
    changes_s: f64,
    random: Xoshiro256PlusPlus,
}

/// Longest time in seconds between two calls that ask the planner for another part, while fewer than [`PLANNER_CHECKS`]
/// parts are complete.
const PLANNER_CHECK_S: f64 = 0.05;
const PLANNER_CHECKS: usize = 1;

impl World {
    pub fn new(link: Link, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self {
            link,
            connections: Vec::new(),
            now_s: 0.0,
            burst_bytes: link.burst_bytes,
            free_s: 0.0,
            begun: 0,
            completed: 0,
            factor: 1.0,
            changes_s: 0.0,
            random,
        }
    }

    /// Simulates a request that starts or commits an upload. Returns its duration in seconds.
    fn request(&mut self) -> f64 {
        let seconds = self.link.round_trip_s + self.link.thinks_s;
        self.now_s += seconds;
        seconds
    }

    pub fn transfer(&mut self, source: &mut dyn Source) -> f64 {
        let begin_s = self.link.round_trip_s + self.request();
        source.fixed(2.0 * (begin_s - self.link.round_trip_s));
        loop {
            while let Some((bytes, ticket)) = source.next_part(self.now_s) {
                self.begin(bytes, ticket);
            }
            if self.connections.iter().all(|connection| connection.block.is_none()) {
                self.request();
                return self.now_s;
            }
            self.step(source);
        }
    }

    fn begin(&mut self, bytes: u64, ticket: Option<Ticket>) {
        let idle = self.connections.iter().position(|connection| connection.block.is_none());
        let index = idle.unwrap_or_else(|| {
            let window_bytes = FIRST_WINDOW_BYTES;
            let mut bytes_per_s = self.link.bytes_per_s;
            if self.link.apart > 0.0 {
                bytes_per_s *= 1.0 + self.link.apart * normal(&mut self.random);
            }
            self.connections.push(Connection { window_bytes, bytes_per_s, is_new: true, ..Connection::default() });
            self.connections.len() - 1
        });
        let Link { round_trip_s, thinks_s, serves_s, held_up, .. } = self.link;
        let connection = &mut self.connections[index];
        let connecting_s = std::mem::take(&mut connection.is_new).then_some(round_trip_s);
        // After the last byte, the answer takes half a round trip and the time that the store needs.
        let comes_s = self.now_s + connecting_s.unwrap_or(0.0) + round_trip_s / 2.0;
        let mut flows_s =
            comes_s + held_up.filter(|(which, _)| *which == self.begun).map_or(0.0, |(_, longer_s)| longer_s);
        if serves_s > 0.0 {
            self.free_s = self.free_s.max(comes_s) + serves_s;
            flows_s = flows_s.max(self.free_s);
        }
        self.begun += 1;
        let answer_s = round_trip_s / 2.0 + thinks_s * self.random.random_range(0.9..1.1);
        let left_bytes = bytes as f64;
        let tick_s = flows_s + round_trip_s;
        connection.block = Some(BlockUnderWay { ticket, left_bytes, flows_s, tick_s, answer_s, connecting_s });
    }

    /// Returns the current rate of each connection. A connection is limited by its congestion window, its own rate, and
    /// an equal share of the common limit. If it uses less than this share, the other connections share the rest.
    fn rates(&self, sum_bytes_per_s: f64) -> Vec<f64> {
        let mut wanted: Vec<(usize, f64)> = Vec::new();
        for (index, connection) in self.connections.iter().enumerate() {
            if connection.block.as_ref().is_some_and(|under| under.flows_s <= self.now_s && under.left_bytes > 0.0) {
                let window = connection.window_bytes / self.link.round_trip_s;
                wanted.push((index, window.min(connection.bytes_per_s * self.factor)));
            }
        }
        wanted.sort_by(|one, other| one.1.total_cmp(&other.1));
        let mut rates = vec![0.0; self.connections.len()];
        let (mut left, count) = (sum_bytes_per_s, wanted.len());
        for (rank, (index, rate)) in wanted.into_iter().enumerate() {
            rates[index] = rate.min(left / (count - rank) as f64);
            left -= rates[index];
        }
        rates
    }

    /// Advances the clock to the next event.
    fn step(&mut self, source: &mut dyn Source) {
        if let Some((seconds, deviation)) = self.link.varies.filter(|_| self.now_s >= self.changes_s) {
            self.factor = (deviation * normal(&mut self.random)).exp();
            self.changes_s = self.now_s + seconds;
        }
        let has_burst = self.burst_bytes > 1.0;
        let sum = self.link.sum_bytes_per_s * self.factor * if has_burst { 100.0 } else { 1.0 };
        let rates = self.rates(sum);
        let mut next_s = f64::INFINITY;
        for (connection, rate) in self.connections.iter().zip(&rates) {
            let Some(under) = &connection.block else { continue };
            next_s = next_s.min(if under.left_bytes <= 0.0 {
                under.answer_s
            } else if under.flows_s > self.now_s {
                under.flows_s
            } else {
                let ticks_s = if self.is_steady(connection) { f64::INFINITY } else { under.tick_s };
                ticks_s.min(self.now_s + under.left_bytes / rate)
            });
        }
        if self.link.varies.is_some() {
            next_s = next_s.min(self.changes_s);
        }
        let flowing: f64 = rates.iter().sum();
        if has_burst && flowing > self.link.sum_bytes_per_s {
            next_s = next_s.min(self.now_s + self.burst_bytes / (flowing - self.link.sum_bytes_per_s));
        }
        // At the start, a planner may hand out a part only because time has passed.
        let now_s = if self.completed < PLANNER_CHECKS { next_s.min(self.now_s + PLANNER_CHECK_S) } else { next_s };
        let passed_s = now_s - self.now_s;
        self.now_s = now_s;
        self.burst_bytes += (self.link.sum_bytes_per_s - flowing) * passed_s;
        self.burst_bytes = self.burst_bytes.min(self.link.burst_bytes);
        for (index, rate) in rates.into_iter().enumerate() {
            self.advance(index, rate, passed_s);
            let connection = &mut self.connections[index];
            let has_answer = |under: &mut BlockUnderWay| under.left_bytes <= 0.0 && under.answer_s <= now_s;
            if let Some(under) = connection.block.take_if(has_answer) {
                self.completed += 1;
                source.done(under.ticket, now_s, under.connecting_s);
            }
        }
    }

    fn is_steady(&self, connection: &Connection) -> bool {
        self.link.loss == 0.0 && connection.window_bytes >= connection.bytes_per_s * self.link.round_trip_s
    }

    fn advance(&mut self, index: usize, rate: f64, passed_s: f64) {
        let (link, now_s) = (self.link, self.now_s);
        let is_steady = self.is_steady(&self.connections[index]);
        let connection = &mut self.connections[index];
        let Some(under) = &mut connection.block else { return };
        if rate > 0.0 {
            under.left_bytes -= rate * passed_s;
            if under.left_bytes <= 1e-3 {
                (under.left_bytes, under.answer_s) = (0.0, now_s + under.answer_s);
            }
        }
        if is_steady || now_s < under.tick_s || under.left_bytes <= 0.0 {
            return;
        }
        under.tick_s += link.round_trip_s;
        let segments = rate * link.round_trip_s / SEGMENT_BYTES;
        if link.loss > 0.0 && self.random.random_bool(1.0 - (1.0 - link.loss).powf(segments)) {
            (connection.window_bytes, connection.has_lost) = (connection.window_bytes / 2.0, true);
            connection.window_bytes = connection.window_bytes.max(2.0 * SEGMENT_BYTES);
        } else if connection.has_lost {
            connection.window_bytes += SEGMENT_BYTES;
        } else {
            connection.window_bytes *= 2.0;
        }
        // The window is limited, because a larger one than the capacity of the link has no effect.
        connection.window_bytes = connection.window_bytes.min(2.0 * link.bytes_per_s * link.round_trip_s);
    }
}

/// Hands out the parts of a file, one after the other.
pub trait Source {
    fn next_part(&mut self, now_s: f64) -> Option<(u64, Option<Ticket>)>;
    fn done(&mut self, ticket: Option<Ticket>, now_s: f64, connecting_s: Option<f64>);
    fn fixed(&mut self, _seconds: f64) {}
}

/// A source of parts with a fixed size and a fixed number in flight.
pub struct Fixed {
    pub shape: Shape,
    pub left: u64,
    pub under_way: usize,
}

impl Source for Fixed {
    fn next_part(&mut self, _now_s: f64) -> Option<(u64, Option<Ticket>)> {
        let bytes = self.shape.part_bytes.min(self.left);
        if bytes == 0 || self.under_way == self.shape.concurrency {
            return None;
        }
        (self.left, self.under_way) = (self.left - bytes, self.under_way + 1);
        Some((bytes, None))
    }

    fn done(&mut self, _ticket: Option<Ticket>, _now_s: f64, _connecting_s: Option<f64>) {
        self.under_way -= 1;
    }
}
