//! Links that exist only in a test: connections with slow start and losses that share a ceiling, on a virtual clock.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use ascertain_transfer::model::{Shape, Ticket};

const SEGMENT_BYTES: f64 = 1460.0;
const FIRST_WINDOW_BYTES: f64 = 10.0 * SEGMENT_BYTES;

/// What a link is like.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub name: &'static str,
    /// There and back.
    pub round_trip_s: f64,
    /// How long the store thinks about a block, give or take a tenth.
    pub thinks_s: f64,
    /// Of one connection.
    pub bytes_per_s: f64,
    /// Of all of them.
    pub sum_bytes_per_s: f64,
    /// The share of segments that are lost.
    pub loss: f64,
    /// What gets through before the sum is held back to `sum_bytes_per_s`, which until then is a hundred times that.
    pub burst_bytes: f64,
    /// What the store does for a request before its bytes flow, one after the other.
    pub serves_s: f64,
    /// The standard deviation of the rates of connections, as a share of `bytes_per_s`.
    pub apart: f64,
    /// Which block is held up by something else, and for how long.
    pub held_up: Option<(usize, f64)>,
}

#[derive(Debug, Default)]
struct Connection {
    window_bytes: f64,
    bytes_per_s: f64,
    has_lost: bool,
    is_new: bool,
    /// What is under way: nothing while it is idle.
    block: Option<Under>,
}

#[derive(Debug)]
struct Under {
    ticket: Option<Ticket>,
    left_bytes: f64,
    /// Its bytes flow from then on.
    flows_s: f64,
    /// The window grows then.
    tick_s: f64,
    answer_s: f64,
    connecting_s: Option<f64>,
}

/// Moves what a pilot hands out; returns when all is through.
pub struct World {
    link: Link,
    connections: Vec<Connection>,
    now_s: f64,
    /// What the sum may still have before it is held back.
    burst_bytes: f64,
    /// From then on the store serves another request.
    free_s: f64,
    begun: usize,
    random: Xoshiro256PlusPlus,
}

impl World {
    pub fn new(link: Link, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { link, connections: Vec::new(), now_s: 0.0, burst_bytes: link.burst_bytes, free_s: 0.0, begun: 0, random }
    }

    /// Begin or commit.
    fn request(&mut self) -> f64 {
        let seconds = self.link.round_trip_s + self.link.thinks_s;
        self.now_s += seconds;
        seconds
    }

    pub fn moves(&mut self, source: &mut dyn Source) -> f64 {
        let begin_s = self.link.round_trip_s + self.request();
        source.fixed(2.0 * (begin_s - self.link.round_trip_s));
        loop {
            while let Some((bytes, ticket)) = source.take(self.now_s) {
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
                // Twelve even ones have a deviation of 1 together.
                let deviation = (0..12).map(|_| self.random.random_range(-0.5..0.5)).sum::<f64>();
                bytes_per_s *= 1.0 + self.link.apart * deviation;
            }
            self.connections.push(Connection { window_bytes, bytes_per_s, is_new: true, ..Connection::default() });
            self.connections.len() - 1
        });
        let Link { round_trip_s, thinks_s, serves_s, held_up, .. } = self.link;
        let connection = &mut self.connections[index];
        let connecting_s = std::mem::take(&mut connection.is_new).then_some(round_trip_s);
        // Half of the round trip and the thinking come after the bytes.
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
        connection.block = Some(Under { ticket, left_bytes, flows_s, tick_s, answer_s, connecting_s });
    }

    /// The rate of each connection now: its window's, its own, and its even share of what the others leave.
    fn rates(&self, sum_bytes_per_s: f64) -> Vec<f64> {
        let mut wanted: Vec<(usize, f64)> = Vec::new();
        for (index, connection) in self.connections.iter().enumerate() {
            if connection.block.as_ref().is_some_and(|under| under.flows_s <= self.now_s && under.left_bytes > 0.0) {
                let window = connection.window_bytes / self.link.round_trip_s;
                wanted.push((index, window.min(connection.bytes_per_s)));
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

    /// Goes on to the next moment at which anything changes.
    fn step(&mut self, source: &mut dyn Source) {
        let has_burst = self.burst_bytes > 1.0;
        let sum = self.link.sum_bytes_per_s * if has_burst { 100.0 } else { 1.0 };
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
        let flowing: f64 = rates.iter().sum();
        if has_burst && flowing > self.link.sum_bytes_per_s {
            next_s = next_s.min(self.now_s + self.burst_bytes / (flowing - self.link.sum_bytes_per_s));
        }
        let (passed_s, now_s) = (next_s - self.now_s, next_s);
        self.now_s = now_s;
        self.burst_bytes += (self.link.sum_bytes_per_s - flowing) * passed_s;
        self.burst_bytes = self.burst_bytes.min(self.link.burst_bytes);
        for (index, rate) in rates.into_iter().enumerate() {
            self.advance(index, rate, passed_s);
            let connection = &mut self.connections[index];
            let has_answer = |under: &mut Under| under.left_bytes <= 0.0 && under.answer_s <= now_s;
            if let Some(under) = connection.block.take_if(has_answer) {
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
        // A window is of use only as far as the link is.
        connection.window_bytes = connection.window_bytes.min(2.0 * link.bytes_per_s * link.round_trip_s);
    }
}

/// Who says what is moved next.
pub trait Source {
    fn take(&mut self, now_s: f64) -> Option<(u64, Option<Ticket>)>;
    fn done(&mut self, ticket: Option<Ticket>, now_s: f64, connecting_s: Option<f64>);
    fn fixed(&mut self, _seconds: f64) {}
}

/// All of one shape.
pub struct Fixed {
    pub shape: Shape,
    pub left: u64,
    pub under_way: usize,
}

impl Source for Fixed {
    fn take(&mut self, _now_s: f64) -> Option<(u64, Option<Ticket>)> {
        let bytes = self.shape.block_bytes.min(self.left);
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
