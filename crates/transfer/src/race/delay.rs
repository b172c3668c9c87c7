//! Estimates the delay after which a request to the cache counts as late, and may also be sent to the origin. Most late
//! requests are dropped, so their full durations are unknown.

use std::time::Duration;

/// Largest accepted quantile, the share of requests that are not late. For this value, the delay is known only after
/// 1000 requests; in general, after `1 / (1 - quantile)` requests.
pub(super) const MOST_QUANTILE: f64 = 0.999;
/// Size of a step of the delay after many requests. A late request multiplies the delay by about e to this power. A
/// request that is not late shortens it by a smaller step: at a quantile of 0.99, 99 of them undo one late request.
/// With a stable cache, the delay then varies by about 6 %.
const STEP: f64 = 0.02;
/// Numerator of the step for the first requests. The denominator is the number of late requests expected so far. The
/// step is at least [`STEP`], and larger at first, so that the delay is soon about right. This value works best in the
/// worst case, in which the first delay is as wrong as possible.
const AT_FIRST: f64 = 2.0;
/// Limit on the delay after a late request, as a multiple of the duration of that request. In a stall, all requests in
/// flight are late together, and would otherwise lengthen the delay too much. If all durations are nearly equal, the
/// delay is already close to each of them. A much lower limit would then keep late requests from lengthening the delay
/// enough.
const FURTHEST: f64 = 3.0;
const LEAST_S: f64 = 1e-6;
/// Tolerance for rounding errors in comparisons of shares.
const ROUNDING: f64 = 1e-9;

/// The delay after which a given share of the requests to the cache has not been answered.
///
/// The losing request of a race is dropped, so its full duration is unknown. If such requests were ignored, or counted
/// as complete when they were dropped, slow requests would look fast. The delay would shrink, and ever more requests
/// would race. But a dropped request is known to have been late. The method of Robbins and Monro (*A Stochastic
/// Approximation Method*, 1951) needs no other information. Each late request makes the delay longer. Each other
/// request makes the delay shorter by a smaller step, because most requests should not be late. The delay converges to
/// the value that balances both effects. In the long run, the share of late requests is the given share, even if the
/// cache changes.
#[derive(Debug)]
pub(super) struct Delay {
    /// The share of requests that should be late, from 0 to 1.
    late: f64,
    /// The delay in seconds. Until there were enough requests to estimate it, this is the longest duration so far.
    delay_s: f64,
    seen: u64,
}

impl Delay {
    pub fn new(quantile: f64) -> Self {
        Self { late: 1.0 - quantile, delay_s: 0.0, seen: 0 }
    }

    /// Returns the delay; `None` until there were so many requests that one of them is expected to be late.
    pub fn current(&self) -> Option<Duration> {
        let is_known = self.seen as f64 * self.late >= 1.0 - ROUNDING;
        is_known.then(|| Duration::try_from_secs_f64(self.delay_s).unwrap_or(Duration::MAX))
    }

    /// Records a request to the cache that took `time`. If `is_cut`, it was dropped after that time, without an answer.
    /// `own` is the delay that applied when the request started, if any.
    pub fn push(&mut self, time: Duration, is_cut: bool, own: Option<Duration>) {
        let Some(delay) = own.or_else(|| self.current()) else {
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

    /// Returns pseudorandom durations from 1 to 10,000 ms on a logarithmic scale, each with its rank from 0 to 1.
    fn times(count: u32) -> impl Iterator<Item = (f64, Duration)> {
        let mut state = 1_u32;
        (0..count).map(move |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let rank = f64::from(state >> 8) / f64::from(1 << 24);
            (rank, Duration::from_secs_f64(0.001 * 10_f64.powf(4.0 * rank)))
        })
    }

    /// The share of late requests is correct, whether or not each one is dropped as soon as it is late.
    #[test]
    fn the_delay_settles_where_the_given_share_is_late() {
        for quantile in [0.3, 0.5, 0.9, 0.95, 0.99] {
            for is_lost in [false, true] {
                let (mut delay, mut late, count) = (Delay::new(quantile), 0, 40_000);
                for (_, time) in times(count) {
                    let own = delay.current();
                    let is_late = own.is_some_and(|own| time > own);
                    late += u32::from(is_late);
                    let seen = own.filter(|_| is_late && is_lost).unwrap_or(time);
                    delay.push(seen, is_late && is_lost, own);
                }
                let share = f64::from(late) / f64::from(count);
                assert!((share / (1.0 - quantile) - 1.0).abs() < 0.1, "{quantile}, {is_lost}: {share} are late");
                // The rank of each duration is its quantile, so the rank of the delay must be the quantile too.
                let rank = (1_000.0 * delay.current().unwrap().as_secs_f64()).log10() / 4.0;
                assert!((rank - quantile).abs() < 0.05, "{quantile}, {is_lost}: {rank}");
            }
        }
    }

    #[test]
    fn the_first_delay_is_the_longest_of_the_fewest_sufficient_requests() {
        for (quantile, few) in [(0.95, 20), (0.9, 10), (0.5, 2), (0.999, 1_000)] {
            let mut delay = Delay::new(quantile);
            for ms in (1..=few).rev() {
                assert_eq!(delay.current(), None, "{quantile} of {}", few - ms);
                delay.push(ms * MS, false, None);
            }
            assert_eq!(delay.current(), Some(few * MS), "{quantile}");
        }
    }

    /// A request that is dropped before the delay has no effect. A request that is dropped after the delay counts as
    /// late.
    #[test]
    fn a_dropped_request_counts_only_if_it_was_late() {
        let mut delay = Delay::new(0.5);
        [2, 4].iter().for_each(|ms| delay.push(*ms * MS, false, None));
        let told = delay.current();
        delay.push(3 * MS, true, told);
        assert_eq!(delay.current(), told);
        delay.push(4 * MS, true, told);
        assert!(delay.current() > told);
        // The request is not late: it ended before the longer delay that was known at its start. The delay that is
        // known at its end does not matter.
        let told = delay.current();
        delay.push(90 * MS, true, Some(100 * MS));
        assert_eq!(delay.current(), told);
    }

    /// Simulates a stall of one second. In the stall, 16 requests in flight are late together, or are dropped.
    #[test]
    fn a_stall_lengthens_the_delay_to_at_most_three_times_its_duration() {
        for (time, is_cut) in [(1_000 * MS, false), (1_000 * MS, true), (2 * MS, true)] {
            let mut delay = Delay::new(0.95);
            (0..20).for_each(|_| delay.push(MS, false, None));
            let own = delay.current();
            assert_eq!(own, Some(MS));
            (0..16).for_each(|_| delay.push(time, is_cut, own));
            let told = delay.current().unwrap();
            assert!(told > time && told <= 3 * time, "{time:?}, {is_cut}: {told:?}");
        }
    }

    /// A constant duration is the most difficult case. The delay is always close to this duration, so a small change of
    /// the delay makes all requests late, or none of them.
    #[test]
    fn the_given_share_of_simultaneous_requests_is_late() {
        for at_once in [1, 16] {
            let (mut delay, mut late, rounds) = (Delay::new(0.95), 0, 32_000 / at_once);
            for round in 0..rounds {
                let own = delay.current();
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
            (0..count).for_each(|_| delay.push(time, false, delay.current()));
            delay.current().unwrap()
        };
        assert!(after(2_000, 100 * MS) > 50 * MS);
        assert!(after(4_000, MS) < 2 * MS);
        assert!(after(400, 100 * MS) > 50 * MS);
    }

    /// After durations of zero or of the maximum, the delay can still change in either direction.
    #[test]
    fn the_delay_recovers_from_either_extreme() {
        let mut delay = Delay::new(0.5);
        let mut after = |time: Duration| {
            (0..20_000).for_each(|_| delay.push(time, false, delay.current()));
            delay.current().unwrap()
        };
        for _ in 0..2 {
            assert!(after(Duration::ZERO) <= Duration::from_micros(1));
            assert!(after(Duration::MAX) > Duration::from_secs(1 << 40));
        }
    }
}
