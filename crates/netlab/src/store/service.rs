//! Delays answers so that a store is as slow as a real one: by a time to the first byte, and by a rate for the bytes.
//!
//! The delays are more precise than the timers of tokio, which count milliseconds. So a delay can also be a fraction of
//! the real time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::threads::{JoinedThread, lock};

/// The times that a store needs for reading or writing an object. Both are quantile tables: pairs of a probability and
/// a value, in ascending order of probabilities. Each answer draws both values. Between two entries, the logarithm of
/// the value is interpolated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceTimes {
    /// Time from the head of the request to the first byte of the answer, in nanoseconds. For a write, the time that
    /// is added to the time for the bytes.
    pub first_byte_ns: Vec<(f64, f64)>,
    /// Rate of the object's bytes, per second.
    pub bytes_per_s: Vec<(f64, f64)>,
}

// The tables contain no NaN.
impl Eq for ServiceTimes {}

/// Draws the random times of answers, and lets tasks wait for precise times.
pub(super) struct Service {
    times: ServiceTimes,
    drawn: AtomicU64,
    pub timer: Arc<Timer>,
}

/// The times of one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerTimes {
    pub first_byte: Duration,
    pub bytes_per_s: f64,
}

impl Service {
    /// Stores with different seeds draw unrelated times.
    pub fn new(times: ServiceTimes, seed: u64) -> io::Result<Self> {
        // The draws of two stores overlap only if their hashed seeds are closer than the number of draws.
        let start = mixed(seed);
        Ok(Self { times, drawn: AtomicU64::new(start), timer: Arc::new(Timer::new()?) })
    }

    /// Draws the times of the next answer. The values depend only on the seed and the number of earlier answers.
    pub fn draw(&self) -> AnswerTimes {
        let number = self.drawn.fetch_add(2, Ordering::Relaxed);
        let first_byte_ns = at(&self.times.first_byte_ns, uniform(number)).unwrap_or(0.0);
        let bytes_per_s = at(&self.times.bytes_per_s, uniform(number.wrapping_add(1))).unwrap_or(f64::INFINITY);
        AnswerTimes { first_byte: Duration::from_nanos(first_byte_ns as u64), bytes_per_s }
    }
}

impl AnswerTimes {
    /// Returns the time that this many bytes take at the rate.
    pub fn of_bytes(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.bytes_per_s)
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

/// A thread that wakes tasks at precise times.
#[derive(Debug)]
pub(crate) struct Timer {
    shared: Arc<(Mutex<Waiting>, Condvar)>,
    // Dropped after `Drop` has requested the end of the thread.
    _thread: JoinedThread,
}

#[derive(Debug, Default)]
struct Waiting {
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    wakers: std::collections::HashMap<u64, oneshot::Sender<()>>,
    next: u64,
    is_over: bool,
}

impl Timer {
    fn new() -> io::Result<Self> {
        let shared = Arc::new((Mutex::new(Waiting::default()), Condvar::new()));
        let of_thread = shared.clone();
        let thread = JoinedThread::spawn("store-timer", move || wake_all(&of_thread))?;
        Ok(Self { shared, _thread: thread })
    }

    /// Waits until `due`. Returns at once if `due` is in the past.
    pub async fn wait_until(self: Arc<Self>, due: Instant) {
        if due <= Instant::now() {
            return;
        }
        let (waker, woken) = oneshot::channel();
        {
            let mut waiting = lock(&self.shared.0);
            let number = waiting.next;
            waiting.next += 1;
            waiting.due.push(Reverse((due, number)));
            waiting.wakers.insert(number, waker);
        }
        self.shared.1.notify_one();
        let _ = woken.await;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        lock(&self.shared.0).is_over = true;
        self.shared.1.notify_one();
    }
}

fn wake_all((waiting, changed): &(Mutex<Waiting>, Condvar)) {
    // By default, the kernel may end each sleep 50 µs late.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut waiting = lock(waiting);
    while !waiting.is_over {
        let Some(Reverse((due, number))) = waiting.due.peek().copied() else {
            waiting = changed.wait(waiting).unwrap_or_else(std::sync::PoisonError::into_inner);
            continue;
        };
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            waiting.due.pop();
            // The task may have been cancelled, so an error is ignored.
            waiting.wakers.remove(&number).map(|waker| waker.send(()));
        } else {
            waiting = changed.wait_timeout(waiting, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }
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
        let service = Service::new(ServiceTimes { first_byte_ns, bytes_per_s: vec![(0.5, 1e6)] }, 0).unwrap();
        let mut drawn: Vec<_> = (0..10_000).map(|_| service.draw().first_byte.as_nanos()).collect();
        drawn.sort_unstable();
        let share = |below: u128| drawn.partition_point(|ns| *ns < below) as f64 / 1e4;
        assert!((share(10_000_000) - 0.5).abs() < 0.02 && (share(20_000_000) - 0.9).abs() < 0.02);
        assert_eq!(service.draw().of_bytes(500_000), Duration::from_millis(500));
    }

    /// The draws of two stores are unrelated: each is the quicker one in about half of the pairs.
    #[test]
    fn stores_with_different_seeds_draw_unrelated_times() {
        let times = ServiceTimes { first_byte_ns: vec![(0.0, 1e6), (1.0, 2e6)], bytes_per_s: Vec::new() };
        let [first, second, again] = [1, 2, 1].map(|seed| {
            let service = Service::new(times.clone(), seed).unwrap();
            (0..1_000).map(|_| service.draw().first_byte).collect::<Vec<_>>()
        });
        assert_eq!(first, again);
        let wins = first.iter().zip(&second).filter(|(first, second)| first < second).count();
        assert!((400..600).contains(&wins), "{wins}");
    }
}
