//! What a cache took of late, where some of it was never seen to its end.

use std::collections::VecDeque;
use std::time::Duration;

/// How many requests are remembered: of these, ten are above the 99th percentile.
pub(super) const WINDOW: usize = 1_000;
/// The quantile is told anew after so many: sorting the window then costs each request little.
const EVERY: usize = 32;

/// Ordered by time; of what lasted equally long, what ended is before what was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    time: Duration,
    is_cut: bool,
}

/// A running quantile of times, of which some are only known to be longer than what was seen of them.
///
/// A loser is dropped, and what it would have taken is not known. Left out, or counted as if it had ended there, the
/// slow ones would look fast, the delay would shrink, and ever more requests would race. So the distribution is that of
/// Kaplan and Meier (*Nonparametric Estimation from Incomplete Observations*, 1958): each time that was seen to its end
/// takes its share of what was left, at that time, of those that had lasted so long.
#[derive(Debug)]
pub(super) struct Record {
    quantile: f64,
    window: VecDeque<Seen>,
    /// Since the quantile was told.
    new: usize,
    told: Option<Duration>,
}

impl Record {
    pub fn new(quantile: f64) -> Self {
        Self { quantile, window: VecDeque::new(), new: 0, told: None }
    }

    /// A time that was seen to its end, or cut off there.
    pub fn push(&mut self, time: Duration, is_cut: bool) {
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(Seen { time, is_cut });
        self.new += 1;
        if self.told.is_none() || self.new >= EVERY {
            self.new = 0;
            self.told = self.tell();
        }
    }

    /// The quantile, as it was told last; none before there is a time above it.
    pub fn told(&self) -> Option<Duration> {
        self.told
    }

    fn tell(&self) -> Option<Duration> {
        // One that is beyond the quantile is the least that tells anything of it.
        if (self.window.len() as f64) * (1.0 - self.quantile) < 1.0 - ROUNDING {
            return None;
        }
        let mut window = Vec::from_iter(self.window.iter().copied());
        window.sort_unstable();
        let mut left = 1.0;
        for (index, seen) in window.iter().enumerate().filter(|(_, seen)| !seen.is_cut) {
            left *= 1.0 - 1.0 / (window.len() - index) as f64;
            if left <= 1.0 - self.quantile + ROUNDING {
                return Some(seen.time);
            }
        }
        // It is above all that ended, and how far is not known while all that take as long lose. Were the longest taken
        // for it, the next losers would be cut off there: it could fall by chance, and never rise again.
        window.last().map(|longest| longest.time.saturating_mul(2))
    }
}

/// A thousand factors are wrong by less.
pub(super) const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn told(quantile: f64, times: impl IntoIterator<Item = (u32, bool)>) -> Option<Duration> {
        let mut record = Record::new(quantile);
        times.into_iter().for_each(|(time_ms, is_cut)| record.push(time_ms * MS, is_cut));
        record.tell()
    }

    #[test]
    fn without_losers_it_is_the_nearest_rank() {
        let seen = |n: u32| (1..=n).rev().map(|time_ms| (time_ms, false));
        for (quantile, n, expected) in
            [(0.95, 19, None), (0.95, 20, Some(19)), (0.95, 1_000, Some(950)), (0.5, 2, Some(1)), (0.99, 99, None)]
        {
            assert_eq!(told(quantile, seen(n)), expected.map(|ms| ms * MS), "{quantile} of {n}");
        }
    }

    /// Their example: 0.8, 1.0+, 2.7+, 3.1, 5.4, 7.0+, 9.2, 12.1+ months, of which 0.525 live longer than 5.4, and
    /// 0.2625 longer than 9.2.
    #[test]
    fn losers_count_for_as_long_as_they_were_seen() {
        let times =
            [(8, false), (10, true), (27, true), (31, false), (54, false), (70, true), (92, false), (121, true)];
        for (quantile, expected) in [(0.12, 8), (0.13, 31), (0.29, 31), (0.31, 54), (0.47, 54), (0.48, 92), (0.73, 92)]
        {
            assert_eq!(told(quantile, times), Some(expected * MS), "{quantile}");
        }
        assert_eq!(told(0.75, times), Some(242 * MS), "nobody was seen to live that long");
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let mut record = Record::new(0.5);
        (0..WINDOW).for_each(|_| record.push(100 * MS, false));
        assert_eq!(record.told(), Some(100 * MS));
        (0..WINDOW).for_each(|_| record.push(MS, false));
        assert_eq!((record.told(), record.window.len()), (Some(MS), WINDOW));
    }
}
