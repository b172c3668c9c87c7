//! Delays answers so that a store is as slow as a real one: by a time to the first byte, and by a rate for the bytes.
//!
//! The delays are more precise than the timers of tokio, which count milliseconds. So a delay can also be a fraction of
//! the real time.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::threads::lock;
use crate::timer::Timer;

/// The times that a store needs for reading or writing an object. The first two fields are quantile tables: pairs of a
/// probability and a value, in ascending order of probabilities. Each answer draws one value from each table. Between
/// two entries of a table, the logarithm of the value is interpolated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceTimes {
    /// Time from the head of the request to the first byte of the answer, in nanoseconds. For a write, this time is
    /// added to the time that the bytes take.
    pub first_byte_ns: Vec<(f64, f64)>,
    /// Rate of the object's bytes, per second.
    pub bytes_per_s: Vec<(f64, f64)>,
    /// The throughput of several simultaneous answers, as a share of perfect scaling. Each pair is a number of answers
    /// and a share, in ascending order of numbers. Beyond the last number, the throughput stays the same. Without an
    /// entry, a store scales perfectly.
    pub scaling: Vec<(f64, f64)>,
}

impl ServiceTimes {
    /// Returns the largest rate of `answers` answers together; `None` without a limit.
    fn total_bytes_per_s(&self, answers: usize) -> Option<f64> {
        let median = at(&self.bytes_per_s, 0.5).filter(|_| answers > 1)?;
        let (most, _) = self.scaling.last()?;
        let answers = (answers as f64).min(*most);
        Some(answers * median * at(&self.scaling, answers)?)
    }
}

// The tables contain no NaN.
impl Eq for ServiceTimes {}

/// Draws the random times of answers, and lets tasks wait for precise times.
pub(super) struct Service {
    times: ServiceTimes,
    drawn: AtomicU64,
    timer: Arc<Timer>,
    /// The number of answers in progress.
    active: AtomicUsize,
    /// The time until which the rate of all answers together is used up.
    used_until: Mutex<Instant>,
}

/// Longest time whose unused part of the common rate can still be used later. This makes up for timers that end late.
const MAKE_UP: Duration = Duration::from_millis(1);

/// The times of one answer, which counts as in progress as long as this value exists.
pub(super) struct AnswerTimes {
    service: Arc<Service>,
    pub first_byte: Duration,
    pub bytes_per_s: f64,
}

impl Service {
    /// Stores with different seeds draw unrelated times.
    pub fn new(times: ServiceTimes, seed: u64) -> io::Result<Self> {
        // The draws of two stores overlap only if their hashed seeds are closer than the number of draws.
        let start = mixed(seed);
        let (drawn, active, used_until) = (AtomicU64::new(start), AtomicUsize::new(0), Mutex::new(Instant::now()));
        Ok(Self { times, drawn, timer: Arc::new(Timer::new()?), active, used_until })
    }

    /// Draws the times of the next answer. The values depend only on the seed and the number of earlier answers.
    pub fn draw(self: &Arc<Self>) -> AnswerTimes {
        let number = self.drawn.fetch_add(2, Ordering::Relaxed);
        let first_byte_ns = at(&self.times.first_byte_ns, uniform(number)).unwrap_or(0.0);
        let bytes_per_s = at(&self.times.bytes_per_s, uniform(number.wrapping_add(1))).unwrap_or(f64::INFINITY);
        self.active.fetch_add(1, Ordering::Relaxed);
        AnswerTimes { service: self.clone(), first_byte: Duration::from_nanos(first_byte_ns as u64), bytes_per_s }
    }

    /// Returns the time at which the rate of all answers together permits `bytes` more bytes.
    fn permitted(&self, bytes: u64) -> Option<Instant> {
        let total_bytes_per_s = self.times.total_bytes_per_s(self.active.load(Ordering::Relaxed))?;
        let mut used_until = lock(&self.used_until);
        let start = Instant::now().checked_sub(MAKE_UP).map_or(*used_until, |earliest| earliest.max(*used_until));
        *used_until = start + Duration::from_secs_f64(bytes as f64 / total_bytes_per_s);
        Some(*used_until)
    }
}

impl AnswerTimes {
    /// Returns the time that this many bytes take at the rate.
    pub fn of_bytes(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.bytes_per_s)
    }

    /// Waits until `due`, and until the rate of all answers together permits `bytes` bytes.
    pub fn wait(&self, due: Instant, bytes: u64) -> impl Future<Output = ()> + Send + 'static {
        let due = self.service.permitted(bytes).map_or(due, |permitted| permitted.max(due));
        self.service.timer.clone().wait_until(due)
    }
}

impl Drop for AnswerTimes {
    fn drop(&mut self) {
        self.service.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the value of a quantile table at the probability `p`; `None` if the table is empty.
fn at(table: &[(f64, f64)], p: f64) -> Option<f64> {
    let above = table.iter().position(|(at, _)| *at >= p).unwrap_or(table.len());
    let (low, high) = (table.get(above.saturating_sub(1))?, table.get(above).or(table.last())?);
    if high.0 <= low.0 {
        return Some(high.1);
    }
    let share = ((p - low.0) / (high.0 - low.0)).clamp(0.0, 1.0);
    Some((low.1.ln() * (1.0 - share) + high.1.ln() * share).exp())
}

/// Returns a number from 0 to 1 that looks random: the output of SplitMix64 with this index.
fn uniform(index: u64) -> f64 {
    (mixed(index) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the output of SplitMix64 with this index.
fn mixed(index: u64) -> u64 {
    let mut bits = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_between_entries_of_a_table_are_interpolated() {
        let table = [(0.0, 8.0), (0.5, 10.0), (0.9, 1_000.0)];
        assert_eq!([0.0, 0.5].map(|p| at(&table, p).unwrap().round()), [8.0, 10.0]);
        assert!((at(&table, 0.7).unwrap() - 100.0).abs() < 1e-6);
        assert_eq!(at(&table, 0.99).map(f64::round), Some(1_000.0));
        assert_eq!((at(&[], 0.5), at(&[(0.5, 3.0)], 0.1).map(f64::round)), (None, Some(3.0)));
    }

    #[test]
    fn drawn_times_have_the_quantiles_of_the_table() {
        let first_byte_ns = vec![(0.0, 8e6), (0.5, 1e7), (0.9, 2e7), (1.0, 9e7)];
        let times = ServiceTimes { first_byte_ns, bytes_per_s: vec![(0.5, 1e6)], ..ServiceTimes::default() };
        let service = Arc::new(Service::new(times, 0).unwrap());
        let mut drawn: Vec<_> = (0..10_000).map(|_| service.draw().first_byte.as_nanos()).collect();
        drawn.sort_unstable();
        let share = |below: u128| drawn.partition_point(|ns| *ns < below) as f64 / 1e4;
        assert!((share(10_000_000) - 0.5).abs() < 0.02 && (share(20_000_000) - 0.9).abs() < 0.02);
        assert_eq!(service.draw().of_bytes(500_000), Duration::from_millis(500));
    }

    /// The reads of the source from Google: one stream reaches 113 MB/s, and 20 streams reach 845 MB/s.
    #[test]
    fn answers_share_a_rate() {
        let scaling = vec![(1.0, 1.0), (20.0, 845.0 / (20.0 * 113.0))];
        let times = ServiceTimes { bytes_per_s: vec![(0.5, 113e6)], scaling, ..ServiceTimes::default() };
        let total = |answers| times.total_bytes_per_s(answers).map(|rate| (rate / 1e6).round());
        assert_eq!([0, 1, 20, 40].map(total), [None, None, Some(845.0), Some(845.0)]);
        let service = Arc::new(Service::new(times, 0).unwrap());
        let _answers: Vec<_> = (0..20).map(|_| service.draw()).collect();
        let start = Instant::now();
        let permitted: Vec<Instant> = (0..10).filter_map(|_| service.permitted(8_450_000)).collect();
        let last = *permitted.last().unwrap();
        assert!(last >= start + Duration::from_millis(99), "{:?}", last - start);
        drop(_answers);
        assert_eq!(service.permitted(1), None);
    }

    /// The draws of two stores are unrelated: each is the quicker one in about half of the pairs.
    #[test]
    fn stores_with_different_seeds_draw_unrelated_times() {
        let times = ServiceTimes { first_byte_ns: vec![(0.0, 1e6), (1.0, 2e6)], ..ServiceTimes::default() };
        let [first, second, again] = [1, 2, 1].map(|seed| {
            let service = Arc::new(Service::new(times.clone(), seed).unwrap());
            (0..1_000).map(|_| service.draw().first_byte).collect::<Vec<_>>()
        });
        assert_eq!(first, again);
        let wins = first.iter().zip(&second).filter(|(first, second)| first < second).count();
        assert!((400..600).contains(&wins), "{wins}");
    }
}
