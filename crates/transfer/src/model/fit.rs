//! Estimates the properties of a link from parts that were transferred. If the common rate of all connections is
//! limited, the link has a *ceiling*. A ceiling makes parts take longer when many parts are in flight than when few
//! parts are in flight.

use super::{Link, is_near};

/// The measurement of one part, from its request to the end of its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Observation {
    /// Size of the part in bytes.
    pub bytes: u64,
    /// Duration of the request in seconds, without the time to open the connection.
    pub seconds: f64,
    /// End of the answer, in seconds since the start of the transfer.
    pub ended_s: f64,
    /// Average number of parts in flight while this part was transferred, including this one. The probe (the first
    /// parts, which measure the link) has small and large parts. For its large parts, this is only the number of
    /// connections that carry large parts.
    pub in_flight: f64,
    /// `true` if the part was the first part of its connection, and therefore slow.
    pub is_fresh: bool,
}

/// Smallest slowdown that shows a ceiling, a limit on the common rate of all connections. The slowdown is the duration
/// of a part when many parts are in flight, divided by its duration when few parts are in flight.
pub(super) const CROWDED: f64 = 1.25;
/// The number of parts in flight counts as few if it is at most this multiple of the third-smallest number in the
/// measurements.
const FEW: f64 = 1.5;
/// Number of the latest parts from which the present rate of the link is estimated.
const LATEST: usize = 64;
/// Number of the latest parts that are searched for a ceiling, a limit on the common rate of all connections.
const CROWD: usize = 96;
/// The starts and ends of the latest parts divide the transfer into intervals. An interval counts as a pause if its
/// rate is below this share of the median rate.
const BUSY: f64 = 0.75;
/// A part's time per byte counts as at most this multiple of the median. Otherwise, the few parts that are slow because
/// of packet losses would determine the average.
const LONGEST: f64 = 8.0;
/// The value of [`LONGEST`] for a low-latency store. The path to such a store loses no packets, so the link is not the
/// cause of a slow part. The value is lower, so that slow parts affect the average less.
const LONGEST_NEAR: f64 = 2.0;

/// A link whose properties were estimated from measured parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    pub link: Link,
    /// Common rate of all connections, in bytes per second, while the latest parts were transferred.
    pub now_bytes_per_s: f64,
    /// Highest common rate of all connections in the recent past, in bytes per second. If the link has a ceiling, the
    /// ceiling is at least as high as this rate.
    pub seen_bytes_per_s: f64,
}

/// Estimates a link from `seen`, the measured parts in the order in which they ended. Returns `None` if there are too
/// few parts.
///
/// `asked_s` is the duration of a request that transfers no part. Without it, latency and rate can't be separated if
/// all parts have the same size. `fixed_s` is the time to start and commit the upload. `is_moving` is `true` after the
/// first plan, when parts are large and similar.
pub(super) fn fit(seen: &[Observation], asked_s: Option<f64>, fixed_s: f64, is_moving: bool) -> Option<Fit> {
    let is_near = is_near(asked_s);
    // At a low latency, the first part of a connection is as fast as later ones, because the congestion window opens at
    // once.
    let mut warm: Vec<Observation> = seen.iter().filter(|one| is_near || !one.is_fresh).copied().collect();
    let is_warm = warm.len() >= 3;
    if !is_warm {
        warm = seen.to_vec();
    }
    let least_s = warm.iter().map(|one| one.seconds).min_by(f64::total_cmp)?;
    let mut latency_s = asked_s.unwrap_or(least_s).min(0.9 * least_s);
    let mut crowds: Vec<f64> = warm.iter().map(|one| one.in_flight).collect();
    crowds.sort_by(f64::total_cmp);
    let few = FEW * *crowds.get(2).or(crowds.last())?;
    let mut alone: Vec<Observation> = warm.iter().filter(|one| one.in_flight <= few).copied().collect();
    if alone.len() < 3 {
        alone.clone_from(&warm);
    }
    let large_bytes = alone.iter().map(|one| one.bytes).max()?;
    let (large, small): (Vec<Observation>, Vec<_>) = alone.iter().partition(|one| one.bytes > large_bytes / 2);
    // At a high latency, new connections are slow, so only the later half of the large parts counts.
    let large = if is_near { &large[..] } else { &large[large.len() / 2..] };
    if is_near && let Some(costs_s) = request_s(&small, large) {
        latency_s = costs_s.clamp(latency_s, 0.9 * least_s);
    }
    // At a low latency, there are few large parts. Each counts as at most the median, so that a late one has no effect.
    let (longest_alone, longest) = if is_near { (1.0, LONGEST_NEAR) } else { (LONGEST, LONGEST) };
    let mut pace_s = pace(large, latency_s, longest_alone);
    let pace = |seen: &[Observation]| pace(seen, latency_s, longest);

    let mut latest = last(&warm, LATEST).to_vec();
    if let Some(one) = latest.last().copied().filter(|_| is_moving) {
        latest.retain(|other| other.bytes > one.bytes / 2);
    }
    // If all parts that were in flight at the same time are similar, `alike` is their common rate.
    let rate = |latest: &[Observation]| {
        let alike = mean_in_flight(latest) / pace(latest);
        if is_moving { Some(alike) } else { Some(flow_rate(seen, latest, latency_s)?.min(alike)) }
    };
    let now_bytes_per_s = rate(if is_moving { &latest } else { last(&latest, LATEST / 2) })?;
    let seen_bytes_per_s = rate(&latest)?.max(now_bytes_per_s);
    let is_crowd = median(latest.iter().map(|one| one.in_flight).collect())? > few;
    let crowd = if is_moving { &latest } else { last(&warm, CROWD) };
    let is_crowded = is_crowd && longer(crowd, &alone, |bytes| latency_s + bytes as f64 * pace_s)? > CROWDED;
    if !is_crowded && median(latest.iter().map(|one| one.bytes as f64).collect())? > large_bytes as f64 / 4.0 {
        pace_s = pace(&latest);
    }
    let more = |one: &Observation| one.seconds - latency_s - one.bytes as f64 * pace_s;
    let fresh: Vec<f64> = seen.iter().filter(|one| is_warm && one.is_fresh).map(more).collect();
    let fresh_s = median(fresh).unwrap_or(0.0).max(0.0);
    let ceiling_bytes_per_s = is_crowded.then_some(now_bytes_per_s);
    let link = Link { fixed_s, fresh_s, latency_s, bytes_per_s: 1.0 / pace_s, ceiling_bytes_per_s };
    Some(Fit { link, now_bytes_per_s, seen_bytes_per_s })
}

fn last(seen: &[Observation], most: usize) -> &[Observation] {
    &seen[seen.len().saturating_sub(most)..]
}

/// Returns the median factor by which the parts in `crowd` took longer than usual; `None` if there are none. The usual
/// duration is the median of the parts in `alone` with a similar size. If there are no such parts, it is the result of
/// `expected_s` for the size.
fn longer(crowd: &[Observation], alone: &[Observation], expected_s: impl Fn(u64) -> f64) -> Option<f64> {
    let alone_s = |bytes: u64| {
        let alike = alone.iter().filter(|other| bytes.abs_diff(other.bytes) <= bytes / 10);
        median(alike.map(|other| other.seconds).collect()).unwrap_or_else(|| expected_s(bytes))
    };
    // The usual duration is kept for the next part, because most parts have the same size as the previous one.
    let (mut bytes, mut usual_s) = (0, 1.0);
    let times = crowd.iter().map(|one| {
        if one.bytes != bytes {
            (bytes, usual_s) = (one.bytes, alone_s(one.bytes));
        }
        one.seconds / usual_s
    });
    median(times.collect())
}

/// Estimates how long a request takes regardless of its size, in seconds. Compares small parts with large parts;
/// returns `None` if one of the two groups is empty.
fn request_s(small: &[Observation], large: &[Observation]) -> Option<f64> {
    let middle = |seen: &[Observation]| {
        let bytes = median(seen.iter().map(|one| one.bytes as f64).collect())?;
        Some((bytes, median(seen.iter().map(|one| one.seconds).collect())?))
    };
    let ((small_bytes, small_s), (large_bytes, large_s)) = (middle(small)?, middle(large)?);
    Some(small_s - small_bytes * (large_s - small_s).max(0.0) / (large_bytes - small_bytes))
}

/// Returns the average time per byte of these parts in seconds, without their latency `latency_s`. A part's time per
/// byte counts as at most `longest` times the median.
fn pace(seen: &[Observation], latency_s: f64, longest: f64) -> f64 {
    let of = |one: &Observation| (one.seconds - latency_s).max(1e-9) / one.bytes.max(1) as f64;
    let usual = median(seen.iter().map(of).collect()).unwrap_or(f64::INFINITY);
    let bytes: u64 = seen.iter().map(|one| one.bytes.max(1)).sum();
    seen.iter().map(|one| of(one).min(longest * usual) * one.bytes.max(1) as f64).sum::<f64>() / bytes.max(1) as f64
}

fn mean_in_flight(seen: &[Observation]) -> f64 {
    seen.iter().map(|one| one.in_flight).sum::<f64>() / seen.len().max(1) as f64
}

/// Returns the common rate of all connections during the parts `latest`, without pauses. `seen` also contains earlier
/// parts, which may overlap with these. Assumes that each part had a constant rate after `latency_s`. Also works if
/// parts have different sizes, or begin and end at the same time.
fn flow_rate(seen: &[Observation], latest: &[Observation], latency_s: f64) -> Option<f64> {
    let flows_s = |one: &Observation| (one.seconds - latency_s).max(one.seconds / 10.0);
    let since_s = median(latest.iter().map(|one| one.ended_s - flows_s(one)).collect())?;
    let mut changes: Vec<(f64, f64)> = Vec::with_capacity(2 * seen.len());
    for one in seen.iter().filter(|one| one.ended_s > since_s) {
        let bytes_per_s = one.bytes as f64 / flows_s(one);
        changes.extend([((one.ended_s - flows_s(one)).max(since_s), bytes_per_s), (one.ended_s, -bytes_per_s)]);
    }
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut rate = 0.0;
    let steps = changes.windows(2).map(|two| {
        rate += two[0].1;
        (rate, two[1].0 - two[0].0)
    });
    let steps: Vec<(f64, f64)> = steps.collect();
    let middle = weighed_median(steps.iter().map(|(rate, seconds)| (*rate, rate * seconds)).collect())?;
    let busy = steps.iter().filter(|(rate, _)| *rate > BUSY * middle);
    let (bytes, seconds) = busy.fold((0.0, 0.0), |sum, (rate, seconds)| (sum.0 + rate * seconds, sum.1 + seconds));
    Some(if seconds > 0.0 { bytes / seconds } else { middle })
}

/// Returns the weighted median of pairs of a value and its weight. Half of the total weight belongs to values below it.
fn weighed_median(mut values: Vec<(f64, f64)>) -> Option<f64> {
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut left = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let (value, _) = values.into_iter().find(|(_, weight)| {
        left -= weight;
        left <= 0.0
    })?;
    Some(value)
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
