//! From blocks that were seen to the link they went over: what took longer among many than among few met a ceiling.

use super::{Link, is_near};

/// One block, seen from the moment it was asked for until its answer was complete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Its size.
    pub bytes: u64,
    /// How long it took, with everything but the making of its connection.
    pub seconds: f64,
    /// When its answer was complete.
    pub ended_s: f64,
    /// How many blocks like it were under way meanwhile, itself among them, on average.
    pub in_flight: f64,
    /// Whether it was the first of its connection.
    pub is_fresh: bool,
}

/// A block that takes this much longer among many than among few met a ceiling.
pub(super) const CROWDED: f64 = 1.25;
/// What has that many times as many beside it as there were at the least is among many.
const FEW: f64 = 1.5;
/// The latest blocks say what the link is now, …
const LATEST: usize = 64;
/// … and so many whether they are crowded.
const CROWD: usize = 96;
/// Less than this share of the rate in the middle is a pause.
const BUSY: f64 = 0.75;
/// A block counts as at most this many times as long as is usual, for losses make some long, …
const LONGEST: f64 = 8.0;
/// … and as this many near by, where nothing is lost and one that is long was held up by something else.
const LONGEST_NEAR: f64 = 2.0;

/// What blocks say of the link that they went over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fitted {
    pub link: Link,
    /// The rate of all together, of the very latest blocks, …
    pub now_bytes_per_s: f64,
    /// … and the highest that was seen of late: no ceiling is below it.
    pub seen_bytes_per_s: f64,
    /// How many blocks the rate of a connection, or of all, was told by.
    pub rests_on: usize,
}

/// The link that these blocks went over, in the order in which they were done; none if there are too few to tell.
///
/// `latency_s` is what a request without a block takes, for blocks that are all of one size can't tell latency from
/// rate; `fixed_s` is what begin and commit take.
#[must_use]
pub fn fit(seen: &[Observation], latency_s: Option<f64>, fixed_s: f64) -> Option<Link> {
    fit_all(seen, latency_s, fixed_s, true).map(|fitted| fitted.link)
}

/// The same, with what else there is to know. While it `is_moving` as planned, blocks are large, and like each other.
pub(super) fn fit_all(seen: &[Observation], asked_s: Option<f64>, fixed_s: f64, is_moving: bool) -> Option<Fitted> {
    let is_near = is_near(asked_s);
    // Near by no window has to open.
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
    // Far away connections are slow at first: of the large ones, the later half.
    let large = if is_near { &large[..] } else { &large[large.len() / 2..] };
    if is_near && let Some(costs_s) = request_s(&small, large) {
        latency_s = costs_s.clamp(latency_s, 0.9 * least_s);
    }
    // So few that one which was late would tell.
    let (longest_alone, longest) = if is_near { (1.0, LONGEST_NEAR) } else { (LONGEST, LONGEST) };
    let (mut pace_s, mut rests_on) = (pace(large, latency_s, longest_alone), large.len());
    let pace = |seen: &[Observation]| pace(seen, latency_s, longest);

    let mut latest = last(&warm, LATEST).to_vec();
    if let Some(one) = latest.last().copied().filter(|_| is_moving) {
        latest.retain(|other| other.bytes > one.bytes / 2);
    }
    // As if those that were under way beside these were alike.
    let rate = |latest: &[Observation]| {
        let alike = mean_in_flight(latest) / pace(latest);
        if is_moving { Some(alike) } else { Some(flow_rate(seen, latest, latency_s)?.min(alike)) }
    };
    let now_bytes_per_s = rate(if is_moving { &latest } else { last(&latest, LATEST / 2) })?;
    let seen_bytes_per_s = rate(&latest)?.max(now_bytes_per_s);
    let is_crowd = median(latest.iter().map(|one| one.in_flight).collect())? > few;
    let crowd = if is_moving { &latest } else { last(&warm, CROWD) };
    let is_crowded = is_crowd && longer(crowd, &alone, |bytes| latency_s + bytes as f64 * pace_s)? > CROWDED;
    if is_crowded {
        rests_on = latest.len();
    } else if median(latest.iter().map(|one| one.bytes as f64).collect())? > large_bytes as f64 / 4.0 {
        (pace_s, rests_on) = (pace(&latest), latest.len());
    }
    let more = |one: &Observation| one.seconds - latency_s - one.bytes as f64 * pace_s;
    let fresh: Vec<f64> = seen.iter().filter(|one| is_warm && one.is_fresh).map(more).collect();
    let fresh_s = median(fresh).unwrap_or(0.0).max(0.0);
    let ceiling_bytes_per_s = is_crowded.then_some(now_bytes_per_s);
    let link = Link { fixed_s, fresh_s, latency_s, bytes_per_s: 1.0 / pace_s, ceiling_bytes_per_s };
    Some(Fitted { link, now_bytes_per_s, seen_bytes_per_s, rests_on })
}

fn last(seen: &[Observation], most: usize) -> &[Observation] {
    &seen[seen.len().saturating_sub(most)..]
}

/// How many times as long the blocks of a crowd take as those alone: as those of the same size, which went over
/// connections as new, and where there are none, as is expected of them.
fn longer(crowd: &[Observation], alone: &[Observation], expected_s: impl Fn(u64) -> f64) -> Option<f64> {
    let alone_s = |bytes: u64| {
        let alike = alone.iter().filter(|other| bytes.abs_diff(other.bytes) <= bytes / 10);
        median(alike.map(|other| other.seconds).collect()).unwrap_or_else(|| expected_s(bytes))
    };
    // Most are of the same size as the one before.
    let (mut bytes, mut usual_s) = (0, 1.0);
    let times = crowd.iter().map(|one| {
        if one.bytes != bytes {
            (bytes, usual_s) = (one.bytes, alone_s(one.bytes));
        }
        one.seconds / usual_s
    });
    median(times.collect())
}

/// What a request costs whatever its size, as blocks of two sizes say.
fn request_s(small: &[Observation], large: &[Observation]) -> Option<f64> {
    let middle = |seen: &[Observation]| {
        let bytes = median(seen.iter().map(|one| one.bytes as f64).collect())?;
        Some((bytes, median(seen.iter().map(|one| one.seconds).collect())?))
    };
    let ((small_bytes, small_s), (large_bytes, large_s)) = (middle(small)?, middle(large)?);
    Some(small_s - small_bytes * (large_s - small_s).max(0.0) / (large_bytes - small_bytes))
}

/// Seconds a byte, of all of these together. None counts as more than `longest` times what is usual.
fn pace(seen: &[Observation], latency_s: f64, longest: f64) -> f64 {
    let of = |one: &Observation| (one.seconds - latency_s).max(1e-9) / one.bytes.max(1) as f64;
    let usual = median(seen.iter().map(of).collect()).unwrap_or(f64::INFINITY);
    let bytes: u64 = seen.iter().map(|one| one.bytes.max(1)).sum();
    seen.iter().map(|one| of(one).min(longest * usual) * one.bytes.max(1) as f64).sum::<f64>() / bytes.max(1) as f64
}

fn mean_in_flight(seen: &[Observation]) -> f64 {
    seen.iter().map(|one| one.in_flight).sum::<f64>() / seen.len().max(1) as f64
}

/// The rate of all together while most of the latest ones came through, if each had one rate after its latency: blocks
/// of different sizes, or that begin together and are over together.
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

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
