//! A simple reference implementation of races, which computes their outcomes without futures.

use std::time::Duration;

use ascertain_transfer::race::{Policy, Side};

/// The behaviour of the cache or the origin: it answers or fails after `time`.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    pub time: Duration,
    pub is_fine: bool,
}

/// The outcome of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub time: Duration,
    /// The side that answered; `None` if both failed.
    pub side: Option<Side>,
    pub has_raced: bool,
    /// `true` for each side whose error the result contains: the cache, then the origin.
    pub errors: [bool; 2],
}

/// Computes the outcome of a request. `delay` is the time after which the request races; `None` if it may not race.
pub fn race(cache: Behaviour, origin: Behaviour, delay: Option<Duration>) -> Outcome {
    let outcome = |time, side, has_raced, errors| Outcome { time, side, has_raced, errors };
    // If the cache answers exactly when the delay ends, no request is sent to the origin.
    let Some(delay) = delay.filter(|delay| *delay < cache.time) else {
        if cache.is_fine {
            return outcome(cache.time, Some(Side::Cache), false, [false, false]);
        }
        let side = origin.is_fine.then_some(Side::Origin);
        return outcome(cache.time + origin.time, side, false, [true, !origin.is_fine]);
    };
    let origin_time = delay + origin.time;
    match (cache.is_fine, origin.is_fine) {
        (true, true) if cache.time <= origin_time => outcome(cache.time, Some(Side::Cache), true, [false; 2]),
        (true, true) => outcome(origin_time, Some(Side::Origin), true, [false; 2]),
        (true, false) => outcome(cache.time, Some(Side::Cache), true, [false, origin_time < cache.time]),
        (false, true) => outcome(origin_time, Some(Side::Origin), true, [cache.time <= origin_time, false]),
        (false, false) => outcome(cache.time.max(origin_time), None, true, [true, true]),
    }
}

/// Returns the factor by which the `number`th request changes the delay. `late` is the target share of late requests.
fn factor(number: usize, is_late: bool, late: f64) -> f64 {
    let step = (2.0 / (number as f64 * late)).max(0.02);
    (step * if is_late { 1.0 - late } else { -late }).exp()
}

/// Replays requests one after the other. Returns for each its duration, and whether it raced.
pub fn replay(policy: Policy, requests: &[(Duration, Duration)]) -> Vec<(Duration, bool)> {
    let (mut delay_s, mut told) = (1e-6_f64, None);
    let mut extra = 0_u64;
    let one = |(index, &(cache, origin)): (usize, &(Duration, Duration))| {
        let fine = |time| Behaviour { time, is_fine: true };
        let mut delay = match policy {
            Policy::Never | Policy::Throttled { .. } => None,
            Policy::Always => Some(Duration::ZERO),
            Policy::After(delay) => Some(delay),
            Policy::Percentile { .. } => told,
        };
        if let Policy::Percentile { budget, .. } = policy {
            // There are fewer than 2000 requests, so the budget can't reach its limit of 100 saved requests.
            let earned = (index as u64 + 1) * (budget * 1e6) as u64;
            delay = delay.filter(|_| (extra + 1) * 1_000_000 <= earned);
        }
        let outcome = race(fine(cache), fine(origin), delay);
        extra += u64::from(outcome.has_raced);
        if let Policy::Percentile { quantile, .. } = policy {
            let (number, late) = (index + 1, 1.0 - quantile);
            delay_s = match told {
                None => delay_s.max(cache.as_secs_f64()),
                Some(delay) => {
                    let furthest_s = delay_s.max(3.0 * outcome.time.as_secs_f64());
                    (delay_s * factor(number, cache > delay, late)).min(furthest_s).max(1e-6)
                }
            };
            told = (number as f64 * late >= 1.0 - 1e-9).then(|| Duration::from_secs_f64(delay_s));
        }
        (outcome.time, outcome.has_raced)
    };
    requests.iter().enumerate().map(one).collect()
}
