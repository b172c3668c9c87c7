//! The forecast of the duration of a transfer, from the parts that were transferred last.

use serde::Serialize;

use super::Observation;

/// A forecast of the duration of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Expected duration of the whole transfer in seconds, from the first request to the last answer.
    pub expected_s: f64,
    /// Lower bound of an 80 % interval for the duration, in seconds.
    pub low_s: f64,
    /// Upper bound of the interval whose lower bound is `low_s`, in seconds.
    pub high_s: f64,
    /// Number of earlier commands on which the forecast is based; 0 if it is based on this transfer.
    #[serde(skip)]
    pub earlier: usize,
}

/// The time of parts, estimated from those that were transferred last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Two guesses for the time of a part: the time of a request, and the time of a byte.
    pub guesses: [(f64, f64); 3],
    /// Average time of a part.
    pub part_s: f64,
    pub tail_s: f64,
    /// Standard deviation
    spread: f64,
}

impl Pace {
    pub fn of(seen: &[Observation], concurrency: usize, latency_s: Option<f64>, usual_bytes: u64) -> Option<Self> {
        let most = (2 * concurrency).clamp(32, 128);
        let warm: Vec<Observation> = seen.iter().filter(|one| !one.is_fresh).copied().collect();
        let is_warm = 2 * warm.len() >= most.min(seen.len());
        let seen = if is_warm { &warm[..] } else { seen };
        let latest = &seen[seen.len().saturating_sub(most)..];
        let count = latest.len() as f64;
        let mean = |of: &dyn Fn(&Observation) -> f64| latest.iter().map(of).sum::<f64>() / count;
        let (bytes, seconds) = (mean(&|one| one.bytes as f64), mean(&|one| one.seconds));
        let in_flight = mean(&|one| one.in_flight);
        let least_s = latest.iter().map(|one| one.seconds).min_by(f64::total_cmp)?;
        let latency_s = latency_s.unwrap_or(0.0).min(0.9 * least_s);
        let covariance = mean(&|one| (one.bytes as f64 - bytes) * (one.seconds - seconds));
        let variance = mean(&|one| (one.bytes as f64 - bytes).powi(2));
        let flat = (0.0, seconds / bytes.max(1.0));
        let fitted = if variance > (0.3 * bytes).powi(2) {
            let slope = (covariance / variance).clamp(0.0, seconds / bytes);
            (seconds - slope * bytes, slope.max(1e-15))
        } else {
            (latency_s, (seconds - latency_s) / bytes.max(1.0))
        };
        let is_unknown = variance <= (0.3 * bytes).powi(2) && (usual_bytes as f64) < 0.5 * bytes;
        let third = if is_unknown { (seconds, 1e-15) } else { fitted };
        let crowd = (concurrency as f64 / in_flight.max(1.0)).max(1.0);
        let crowded = |(request_s, byte_s)| (request_s * crowd, byte_s * crowd);
        let ratio = |one: &Observation| one.seconds / (fitted.0 + one.bytes as f64 * fitted.1);
        let size = (latest.len() / 8).max(2);
        let groups: Vec<f64> =
            latest.chunks(size).map(|group| (group.iter().map(ratio).sum::<f64>() / group.len() as f64).ln()).collect();
        let middle = groups.iter().sum::<f64>() / groups.len() as f64;
        let spread = (groups.iter().map(|group| (group - middle).powi(2)).sum::<f64>() / groups.len() as f64).sqrt();
        let middle = mean(&ratio);
        let apart = mean(&|one| (ratio(one) - middle).powi(2)).sqrt().min(1.0);
        let rounds = count / concurrency as f64;
        let fresh = if is_warm { 0.0 } else { 0.15 };
        let spread = (spread.powi(2) + (apart / (1.0 + rounds)).powi(2) + 0.05_f64.powi(2) + fresh * fresh).sqrt();
        let tail_s = apart * (2.0 * (concurrency as f64).ln()).sqrt() * 0.5;
        Some(Self { guesses: [flat, crowded(fitted), crowded(third)], part_s: seconds, tail_s, spread })
    }

    pub fn forecast(&self, now_s: f64, fast_s: f64, slow_s: f64) -> Forecast {
        let expected_s = (fast_s * slow_s).sqrt();
        let wider = (1.28 * self.spread).exp();
        Forecast {
            expected_s: now_s + expected_s,
            low_s: now_s + fast_s / wider,
            high_s: now_s + slow_s * wider,
            earlier: 0,
        }
    }
}
