//! From blocks that were seen to the link they went over, by medians: one bad block changes nothing.

use super::Link;

/// One block, seen from the moment it was asked for until its answer was complete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Its size.
    pub bytes: u64,
    /// How long it took, with everything but the making of its connection.
    pub seconds: f64,
    /// How many blocks were under way meanwhile, itself among them, on average.
    pub in_flight: f64,
    /// Whether it was the first of its connection.
    pub is_fresh: bool,
}

/// A block that takes this much longer among many than among few met a ceiling.
const CROWDED: f64 = 1.25;
/// The latest blocks say what the link is now.
const LATEST: usize = 96;
/// A block counts as at most this many times as long as was expected of it.
const LONGEST: f64 = 8.0;

/// The link that these blocks went over; none if there are too few of them to tell.
///
/// `latency_s` is what a request without a block takes, for blocks that are all of one size can't tell latency from
/// rate; `fixed_s` is what begin and commit take.
#[must_use]
pub fn fit(seen: &[Observation], latency_s: Option<f64>, fixed_s: f64) -> Option<Link> {
    let mut warm: Vec<Observation> = seen.iter().filter(|one| !one.is_fresh).copied().collect();
    let is_warm = warm.len() >= 3;
    if !is_warm {
        warm = seen.to_vec();
    }
    let mut crowds: Vec<f64> = warm.iter().map(|one| one.in_flight).collect();
    crowds.sort_by(f64::total_cmp);
    let (few, many) = (*crowds.get(crowds.len() / 10)?, *crowds.last()?);
    let mut alone: Vec<Observation> = warm.iter().filter(|one| one.in_flight <= 2.0 * few).copied().collect();
    if alone.len() < 3 {
        alone.clone_from(&warm);
    }
    let (mut latency_s, mut pace) = line(&mut alone, latency_s)?;
    let taken = |one: &Observation, latency_s: f64, pace: f64| one.seconds / (latency_s + one.bytes as f64 * pace);
    let crowded: Vec<&Observation> = warm.iter().rev().filter(|one| one.in_flight >= many / 1.5).take(LATEST).collect();
    // Where most bytes went counts most.
    let weighed = |of: &dyn Fn(&Observation) -> f64| {
        weighed_median(crowded.iter().map(|one| (of(one), one.bytes as f64)).collect())
    };
    let longer = weighed(&|one| taken(one, latency_s, pace))?;
    // What is under way, divided by how long it takes, is what comes through (Little's law).
    let ceiling_bytes_per_s = (many > 2.0 * few && longer > CROWDED)
        .then(|| weighed(&|one| one.in_flight * one.bytes as f64 / one.seconds))
        .flatten();
    if ceiling_bytes_per_s.is_none() {
        // The sum of many blocks goes by their mean: losses make some of them long.
        let expected = |one: &&Observation| latency_s + one.bytes as f64 * pace;
        let all_s: f64 = crowded.iter().map(|one| one.seconds.min(LONGEST * expected(one))).sum();
        let mean = all_s / crowded.iter().map(expected).sum::<f64>();
        (latency_s, pace) = (latency_s * mean, pace * mean);
    }
    let more = |one: &Observation| one.seconds - latency_s - one.bytes as f64 * pace;
    let fresh: Vec<f64> = seen.iter().filter(|one| is_warm && one.is_fresh).map(more).collect();
    let fresh_s = median(fresh).unwrap_or(0.0).max(0.0);
    Some(Link { fixed_s, fresh_s, latency_s, bytes_per_s: 1.0 / pace, ceiling_bytes_per_s })
}

/// Latency, and seconds a byte, by the medians of the smaller blocks and of the larger ones.
fn line(seen: &mut [Observation], latency_s: Option<f64>) -> Option<(f64, f64)> {
    seen.sort_by_key(|one| one.bytes);
    let (least, most) = (seen.first()?.bytes, seen.last()?.bytes);
    let of = |some: &[Observation]| {
        let bytes = median(some.iter().map(|one| one.bytes as f64).collect())?;
        Some((bytes, median(some.iter().map(|one| one.seconds).collect())?))
    };
    let small = &seen[..seen.partition_point(|one| one.bytes <= least.saturating_mul(2))];
    let large = &seen[seen.partition_point(|one| one.bytes < most / 2)..];
    let ((small_bytes, small_s), (large_bytes, large_s)) = (of(small)?, of(large)?);
    // Below that the clock, and chance, are all that is seen.
    let least_pace = large_s.max(1e-9) / large_bytes.max(1.0) / 50.0;
    if large_bytes >= 3.0 * small_bytes && small.len() >= 2 {
        let pace = ((large_s - small_s) / (large_bytes - small_bytes)).max(least_pace);
        return Some(((small_s - small_bytes * pace).max(small_s / 100.0), pace));
    }
    let latency_s = latency_s.unwrap_or(0.0).min(0.9 * large_s);
    Some((latency_s, ((large_s - latency_s) / large_bytes.max(1.0)).max(least_pace)))
}

/// The value below which half of the weight is.
fn weighed_median(mut values: Vec<(f64, f64)>) -> Option<f64> {
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut left = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let (value, _) = values.into_iter().find(|(_, weight)| {
        left -= weight;
        left <= 0.0
    })?;
    Some(value)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
