//! The same races, worked out without a future in them.

use std::time::Duration;

use ascertain_transfer::race::{Policy, Side};

/// What one side would do: answer or fail, after that time.
#[derive(Clone, Copy, Debug)]
pub struct Acts {
    pub time: Duration,
    pub is_fine: bool,
}

/// What comes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub time: Duration,
    /// None where both fail.
    pub side: Option<Side>,
    pub has_raced: bool,
    /// Whether each side's error is told, of the cache and of the origin.
    pub errors: [bool; 2],
}

/// A request that is to race after that delay, if there is one.
pub fn race(cache: Acts, origin: Acts, delay: Option<Duration>) -> Outcome {
    let outcome = |time, side, has_raced, errors| Outcome { time, side, has_raced, errors };
    // Nothing is asked of the origin when the cache has answered in that very moment.
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

/// Kaplan and Meier's quantile by its definition, at each time that was seen to its end, as slowly as can be.
pub fn quantile(seen: &[(Duration, bool)], q: f64) -> Option<Duration> {
    if (seen.len() as f64) * (1.0 - q) < 1.0 - 1e-9 {
        return None;
    }
    let left_at = |time: Duration| {
        let mut ends: Vec<_> =
            seen.iter().filter(|(end, is_cut)| !is_cut && *end <= time).map(|(end, _)| end).collect();
        ends.sort_unstable();
        ends.dedup();
        let share = |end: &&Duration| {
            let lasted = seen.iter().filter(|(time, _)| time >= *end).count();
            1.0 - seen.iter().filter(|(time, is_cut)| time == *end && !is_cut).count() as f64 / lasted as f64
        };
        ends.iter().map(share).product::<f64>()
    };
    let ends = seen.iter().filter(|(_, is_cut)| !is_cut).map(|(end, _)| *end);
    let reached = ends.filter(|end| left_at(*end) <= 1.0 - q + 1e-9).min();
    reached.or_else(|| seen.iter().map(|(time, _)| 2 * *time).max())
}

/// Requests one after the other: how long each takes, and whether it races.
pub fn replay(policy: Policy, requests: &[(Duration, Duration)]) -> Vec<(Duration, bool)> {
    let (mut seen, mut told, mut new) = (Vec::new(), None, 0);
    let mut extra = 0_u64;
    let one = |(index, &(cache, origin)): (usize, &(Duration, Duration))| {
        let fine = |time| Acts { time, is_fine: true };
        let mut delay = match policy {
            Policy::Never | Policy::Throttled { .. } => None,
            Policy::Always => Some(Duration::ZERO),
            Policy::After(delay) => Some(delay),
            Policy::Percentile { .. } => told,
        };
        if let Policy::Percentile { budget, .. } = policy {
            // Fewer than 2,000 requests, so that nothing is saved in vain.
            let earned = (index as u64 + 1) * (budget * 1e6) as u64;
            delay = delay.filter(|_| (extra + 1) * 1_000_000 <= earned);
        }
        let outcome = race(fine(cache), fine(origin), delay);
        extra += u64::from(outcome.has_raced);
        if let Policy::Percentile { quantile: q, .. } = policy {
            seen.push((outcome.time, outcome.side == Some(Side::Origin)));
            new += 1;
            if told.is_none() || new >= 32 {
                (told, new) = (quantile(&seen[seen.len().saturating_sub(1_000)..], q), 0);
            }
        }
        (outcome.time, outcome.has_raced)
    };
    requests.iter().enumerate().map(one).collect()
}
