//! The forecast of the duration of a transfer, from the parts that were transferred last.

use serde::Serialize;

use super::Observation;

/// A forecast of the duration of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Expected duration of the whole command in seconds, from the first request to the last answer. JSON omits the
    /// times if the transfer ended before the first forecast.
    pub expected_s: f64,
    /// Lower bound of an 80 % interval for the duration, in seconds. The interval assumes that the link does not change
    /// much, for example by throttling.
    pub low_s: f64,
    /// Upper bound of the interval whose lower bound is `low_s`, in seconds.
    pub high_s: f64,
    /// Number of earlier commands on which the forecast is based; 0 if it is based on this transfer.
    #[serde(skip)]
    pub earlier: usize,
}

/// Minimum number of the latest parts from which the pace is estimated, if that many parts are complete. The usual
/// number is twice the number of parts in flight.
const LEAST_PARTS: usize = 12;
/// Maximum number of the latest parts from which the pace is estimated.
const MOST_PARTS: usize = 128;
/// Number of groups of the latest parts whose average times are compared.
const GROUPS: usize = 8;
/// Parts count as different in size if the standard deviation of their sizes is at least this share of the average
/// size. Only then can the time of a request be separated from the time of its bytes.
const DIFFERENT: f64 = 0.3;
/// Size in bytes of the first TCP window, which slow start doubles with each round trip.
const FIRST_WINDOW_BYTES: f64 = 14_600.0;
/// Standard deviation of the logarithm of the remaining time, from effects that are not yet visible in the latest
/// parts.
const UNKNOWN: f64 = 0.09;
/// A model fits clearly better than another model if its deviation is less than this share of the other model's
/// deviation.
const CLEARLY: f64 = 0.7;
/// Weight of the parts' deviation before any round is complete. Each complete round reduces the weight. The first parts
/// that are complete are the fastest, so they show too little of the deviation.
const FIRST: f64 = 2.0;
/// Width of an 80 % interval on each side, in standard deviations.
const DEVIATIONS: f64 = 1.28;
/// Maximum ratio of the upper to the lower bound of an interval. A forecast with a wider interval is not useful.
const MOST_WIDE: f64 = 4.0;

/// The durations of the latest parts.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// Guesses for the duration of a part. Each is the time for the request and the time for one byte, in seconds.
    pub guesses: Vec<(f64, f64)>,
    /// Average number of bytes per second that all parts in flight transferred together.
    pub bytes_per_s: f64,
    /// Average duration of the parts divided by their average size, in seconds per byte.
    pub byte_s: f64,
    /// Standard deviation of the parts' durations, as a share of the expected duration.
    pub deviation: f64,
    /// Standard deviation of the logarithm of the remaining time.
    spread: f64,
}

impl Pace {
    /// Estimates the durations of the remaining parts from the measured parts in `seen`. `concurrency` is the number of
    /// parts in flight from now on, and `rest_bytes` is the average size of the remaining parts.
    pub fn new(seen: &[Observation], concurrency: usize, latency_s: Option<f64>, rest_bytes: u64) -> Option<Self> {
        let most = (2 * concurrency).clamp(LEAST_PARTS, MOST_PARTS);
        let warm: Vec<Observation> = seen.iter().filter(|one| !one.is_fresh).copied().collect();
        let is_warm = 2 * warm.len() >= most.min(seen.len());
        let seen = if is_warm { &warm[..] } else { seen };
        let latest = &seen[seen.len().saturating_sub(most)..];
        let mean = |of: &dyn Fn(&Observation) -> f64| latest.iter().map(of).sum::<f64>() / latest.len() as f64;
        let bytes = mean(&|one| one.bytes as f64).max(1.0);
        let (seconds, in_flight) = (mean(&|one| one.seconds).max(1e-9), mean(&|one| one.in_flight));
        let least_s = latest.iter().map(|one| one.seconds).min_by(f64::total_cmp)?;
        let latency_s = latency_s.unwrap_or(0.0).min(0.9 * least_s);
        let variance = mean(&|one| (one.bytes as f64 - bytes).powi(2));
        let is_different = variance > (DIFFERENT * bytes).powi(2);
        let (request_s, byte_s) = if is_different {
            let covariance = mean(&|one| (one.bytes as f64 - bytes) * (one.seconds - seconds));
            let byte_s = (covariance / variance).clamp(0.0, seconds / bytes);
            (seconds - byte_s * bytes, byte_s)
        } else {
            (latency_s, (seconds - latency_s) / bytes)
        };
        // If the total rate is limited, the duration of a part is proportional to the number of parts in flight.
        let shared_s = seconds / mean(&|one| one.bytes as f64 * one.in_flight).max(1.0);
        let alone = |one: &Observation| one.seconds / (request_s + one.bytes as f64 * byte_s).max(1e-9);
        let shared = |one: &Observation| one.seconds / (one.bytes as f64 * one.in_flight * shared_s).max(1e-9);
        let alone_deviation = deviation(latest.iter().map(alone));
        let shared_deviation = deviation(latest.iter().map(shared));
        let is_shared = shared_deviation < CLEARLY * alone_deviation;
        let mut guesses = Vec::new();
        if is_shared {
            guesses.push((0.0, shared_s * concurrency as f64));
        } else {
            guesses.push((request_s, byte_s));
            let crowd = (concurrency as f64 / in_flight.max(1.0)).max(1.0);
            if alone_deviation >= CLEARLY * shared_deviation {
                guesses.push((request_s * crowd, byte_s * crowd));
            }
            if !is_warm {
                // Later parts use open connections, so they need no slow start.
                let slow_start_s = latency_s * (1.0 + bytes / FIRST_WINDOW_BYTES).log2();
                guesses.push((request_s, byte_s - slow_start_s.min(seconds / 2.0) / bytes));
            }
            if !is_different && (rest_bytes as f64) < bytes / 2.0 {
                // Smaller parts may take as long as these.
                guesses.push((seconds * crowd, 0.0));
            }
        }
        let ratio = |one: &Observation| if is_shared { shared(one) } else { alone(one) };
        let size = latest.len().div_ceil(GROUPS).max(2);
        let groups = latest.chunks(size).map(|group| group.iter().map(ratio).sum::<f64>() / group.len() as f64);
        let drift = deviation(groups.map(f64::ln));
        let deviation = deviation(latest.iter().map(ratio)).min(1.0);
        let rounds = latest.len() as f64 / concurrency as f64;
        let spread = (drift.powi(2) + (FIRST * deviation / (1.0 + rounds)).powi(2) + UNKNOWN.powi(2)).sqrt();
        Some(Self { guesses, bytes_per_s: 1.0 / shared_s, byte_s: seconds / bytes, deviation, spread })
    }

    /// Returns the forecast at the time `now_s`. `rests_s` are guesses for the remaining time in seconds.
    pub fn forecast(&self, now_s: f64, rests_s: &[f64]) -> Option<Forecast> {
        let least_s = rests_s.iter().copied().min_by(f64::total_cmp)?.max(1e-9);
        let most_s = rests_s.iter().copied().max_by(f64::total_cmp)?.max(1e-9);
        let wider = (DEVIATIONS * self.spread).exp();
        let forecast = Forecast {
            expected_s: now_s + (least_s * most_s).sqrt(),
            low_s: now_s + least_s / wider,
            high_s: now_s + most_s * wider,
            earlier: 0,
        };
        Some(forecast).filter(|forecast| forecast.high_s <= MOST_WIDE * forecast.low_s)
    }
}

/// Returns the standard deviation of some values.
fn deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    (values.map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}
