//! After how long a cache is late, where what becomes of the late ones is mostly not known.

use std::time::Duration;

/// For more than this there is nothing to go by for too long: a thousand requests until there is a delay.
pub(super) const MOST_QUANTILE: f64 = 0.999;
/// How far a late request moves the delay in the end, as a power of e. The delay of a steady cache varies by some 6 %
/// then, and a late request of a hundred is made good by the next two thousand.
const STEP: f64 = 0.02;
/// So many times the steps that are the best ones where the delay is as wrong as it may be.
const AT_FIRST: f64 = 2.0;
/// A late request moves the delay to so many times its own time at most: those under way at once are late together by
/// one stall, and each of them counts. Much less, and too few of them would count where all take nearly the same time.
const FURTHEST: f64 = 3.0;
const LEAST_S: f64 = 1e-6;
/// Shares that are not exact are wrong by less.
const ROUNDING: f64 = 1e-9;

/// The delay that all but a share of the requests are answered within.
///
/// A loser is dropped, and what it would have taken is not known. Left out, or counted as if it had ended there, the
/// slow ones would look fast, the delay would shrink, and ever more requests would race. That it was late is known, and
/// nothing else is asked for by Robbins and Monro (*A Stochastic Approximation Method*, 1951): each that is late makes
/// the delay longer, each that is not makes it shorter by as much less as there are to be more of them. It rests where
/// they balance, and over time the share of the late ones is that share, whatever the cache does meanwhile.
#[derive(Debug)]
pub(super) struct Delay {
    /// The share of the requests that are to be late.
    late: f64,
    /// Before there is a delay, the longest time.
    delay_s: f64,
    seen: u64,
}

impl Delay {
    pub fn new(quantile: f64) -> Self {
        Self { late: 1.0 - quantile, delay_s: 0.0, seen: 0 }
    }

    /// None before so many requests were seen that one of them should have been late.
    pub fn told(&self) -> Option<Duration> {
        let is_known = self.seen as f64 * self.late >= 1.0 - ROUNDING;
        is_known.then(|| Duration::try_from_secs_f64(self.delay_s).unwrap_or(Duration::MAX))
    }

    /// A request that was to race after `own`, if there was a delay when it began, and whose answer from the cache took
    /// that long, or longer if it is cut.
    pub fn push(&mut self, time: Duration, is_cut: bool, own: Option<Duration>) {
        let Some(delay) = own.or_else(|| self.told()) else {
            self.seen += 1;
            self.delay_s = self.delay_s.max(time.as_secs_f64()).max(LEAST_S);
            return;
        };
        let is_late = time > delay || is_cut && time == delay;
        if is_cut && !is_late {
            return;
        }
        self.seen += 1;
        let step = (AT_FIRST / (self.seen as f64 * self.late)).max(STEP);
        let by = if is_late { 1.0 - self.late } else { -self.late };
        let furthest_s = self.delay_s.max(FURTHEST * time.as_secs_f64()).clamp(LEAST_S, Duration::MAX.as_secs_f64());
        self.delay_s = (self.delay_s * (step * by).exp()).clamp(LEAST_S, furthest_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// From 1 to 10,000 ms, as many in each decade.
    fn times(count: u32) -> impl Iterator<Item = (f64, Duration)> {
        let mut state = 1_u32;
        (0..count).map(move |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let rank = f64::from(state >> 8) / f64::from(1 << 24);
            (rank, Duration::from_secs_f64(0.001 * 10_f64.powf(4.0 * rank)))
        })
    }

    /// Whether the late ones are seen to their ends, or cut off at once.
    #[test]
    fn it_rests_where_the_share_is_late() {
        for quantile in [0.3, 0.5, 0.9, 0.95, 0.99] {
            for is_lost in [false, true] {
                let (mut delay, mut late, count) = (Delay::new(quantile), 0, 40_000);
                for (_, time) in times(count) {
                    let own = delay.told();
                    let is_late = own.is_some_and(|own| time > own);
                    late += u32::from(is_late);
                    let seen = own.filter(|_| is_late && is_lost).unwrap_or(time);
                    delay.push(seen, is_late && is_lost, own);
                }
                let share = f64::from(late) / f64::from(count);
                assert!((share / (1.0 - quantile) - 1.0).abs() < 0.1, "{quantile}, {is_lost}: {share} are late");
                // Of the times themselves: its rank is the quantile.
                let rank = (1_000.0 * delay.told().unwrap().as_secs_f64()).log10() / 4.0;
                assert!((rank - quantile).abs() < 0.05, "{quantile}, {is_lost}: {rank}");
            }
        }
    }

    #[test]
    fn at_first_it_is_the_longest_of_as_few_as_can_tell() {
        for (quantile, few) in [(0.95, 20), (0.9, 10), (0.5, 2), (0.999, 1_000)] {
            let mut delay = Delay::new(quantile);
            for ms in (1..=few).rev() {
                assert_eq!(delay.told(), None, "{quantile} of {}", few - ms);
                delay.push(ms * MS, false, None);
            }
            assert_eq!(delay.told(), Some(few * MS), "{quantile}");
        }
    }

    /// What is dropped before it is late tells nothing, and after it all that there is to tell.
    #[test]
    fn what_is_dropped_counts_once_it_is_late() {
        let mut delay = Delay::new(0.5);
        [2, 4].iter().for_each(|ms| delay.push(*ms * MS, false, None));
        let told = delay.told();
        delay.push(3 * MS, true, told);
        assert_eq!(delay.told(), told);
        delay.push(4 * MS, true, told);
        assert!(delay.told() > told);
        // It was to race later than one does now.
        let told = delay.told();
        delay.push(90 * MS, true, Some(100 * MS));
        assert_eq!(delay.told(), told);
    }

    /// One stall of a second, whether it is seen to its end or cut off sooner.
    #[test]
    fn requests_that_are_late_together_move_it_not_much_further_than_they_took() {
        for (time, is_cut) in [(1_000 * MS, false), (1_000 * MS, true), (2 * MS, true)] {
            let mut delay = Delay::new(0.95);
            (0..20).for_each(|_| delay.push(MS, false, None));
            let own = delay.told();
            assert_eq!(own, Some(MS));
            (0..16).for_each(|_| delay.push(time, is_cut, own));
            let told = delay.told().unwrap();
            assert!(told > time && told <= 3 * time, "{time:?}, {is_cut}: {told:?}");
        }
    }

    /// A cache that always takes the same is the one whose delay is nearest to what it takes.
    #[test]
    fn the_share_is_late_of_requests_under_way_at_once() {
        for at_once in [1, 16] {
            let (mut delay, mut late, rounds) = (Delay::new(0.95), 0, 32_000 / at_once);
            for round in 0..rounds {
                let own = delay.told();
                let is_late = own.is_some_and(|own| 10 * MS > own);
                late += u32::from(is_late && round >= rounds / 2) * at_once;
                (0..at_once).for_each(|_| delay.push(10 * MS, is_late, own));
            }
            let share = f64::from(late) / 16_000.0;
            assert!((share - 0.05).abs() < 0.01, "{at_once} at once: {share} are late");
        }
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let mut delay = Delay::new(0.9);
        let mut after = |count: u32, time: Duration| {
            (0..count).for_each(|_| delay.push(time, false, delay.told()));
            delay.told().unwrap()
        };
        assert!(after(2_000, 100 * MS) > 50 * MS);
        assert!(after(4_000, MS) < 2 * MS);
        assert!(after(400, 100 * MS) > 50 * MS);
    }

    /// Times of nothing and for ever do not hold it where it is.
    #[test]
    fn it_comes_back_from_either_end() {
        let mut delay = Delay::new(0.5);
        let mut after = |time: Duration| {
            (0..20_000).for_each(|_| delay.push(time, false, delay.told()));
            delay.told().unwrap()
        };
        for _ in 0..2 {
            assert!(after(Duration::ZERO) <= Duration::from_micros(1));
            assert!(after(Duration::MAX) > Duration::from_secs(1 << 40));
        }
    }
}
