//! Statistics of claims: how many have each answer, and how far the measured values are from the claimed ones.

use ascertain_engine::claim::{Bound, Effect, Judging, Test};
use ascertain_engine::outcome::{ClaimResult, Verdict};

use crate::figure::Estimate;
use crate::grid;

/// The number of claims with one answer.
pub(crate) struct Count {
    /// The CSS class of this answer, from `grid::class`.
    #[cfg_attr(not(feature = "html"), allow(dead_code))]
    pub class: &'static str,
    pub answer: &'static str,
    pub count: usize,
}

impl Count {
    /// Returns the number and the answer: "12 hold".
    pub fn words(&self) -> String {
        format!("{} {}", self.count, of_so_many(self.count, self.answer))
    }
}

/// Counts the claims by verdict; comparisons are counted by their answer, such as "faster".
pub(crate) fn tally<'a>(claims: impl Iterator<Item = &'a ClaimResult> + Clone) -> Vec<Count> {
    let mut counts: Vec<Count> = Vec::new();
    for verdict in Verdict::ALL {
        for claim in claims.clone().filter(|claim| claim.verdict == verdict) {
            let answer = grid::answer(claim);
            match counts.iter_mut().find(|count| count.answer == answer) {
                Some(count) => count.count += 1,
                None => counts.push(Count { class: grid::class(claim), answer, count: 1 }),
            }
        }
    }
    counts
}

/// Returns the answer as a verb that follows the number `count`: "holds" after 1, "hold" after 12.
pub(crate) fn of_so_many(count: usize, answer: &str) -> &str {
    match answer {
        "holds" if count != 1 => "hold",
        "holds, but changed" if count != 1 => "hold, but changed",
        answer => answer,
    }
}

/// Returns the measured value divided by the claimed one, so that a number above 1 is better than claimed. The values
/// are ratios for a claim about a ratio, otherwise odds of success. `None` if the claim has neither a ratio nor a rate.
pub(crate) fn standing(claim: &ClaimResult) -> Option<Estimate> {
    match claim.asked.tests.as_slice() {
        [Test::Versus { scale: Effect::Ratio, bound, .. }] => Some(by_bound(ratio(claim)?, *bound)),
        _ if claim.asked.judging == Judging::Exact => None,
        _ => {
            let odds = |rate: f64| rate.max(1e-9) / (1.0 - rate).max(1e-9);
            Some(rate(claim)?.map(|rate| odds(rate) / odds(claim.rate_claimed)))
        }
    }
}

/// Returns how far the measured value is from the claimed one: the logarithm of the claimed value divided by the
/// measured one. It is positive if the measured value is worse. 0 if there is no measured value.
pub(crate) fn distance(claim: &ClaimResult) -> f64 {
    standing(claim).map_or(0.0, |standing| -standing.value.ln())
}

/// Returns the indices of the claims in display order: refuted, undecided, then the others. Within each group, the
/// claim that misses its claimed value by most is first.
#[cfg(feature = "html")]
pub(crate) fn furthest_first(claims: &[ClaimResult]) -> Vec<usize> {
    let rank = |claim: &ClaimResult| match claim.verdict {
        Verdict::Refuted => 0,
        Verdict::Undecided => 1,
        Verdict::Holds => 2,
        Verdict::Unavailable | Verdict::Failed | Verdict::Deferred => 3,
    };
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by(|&one, &other| {
        let [one, other] = [&claims[one], &claims[other]];
        rank(one).cmp(&rank(other)).then(distance(other).total_cmp(&distance(one)))
    });
    order
}

/// If the claim is that a ratio is within a range, returns the position of the middle of the range; otherwise `None`.
/// On the scale of [`standing`], both ends of the range are at 1, and ratios inside the range are higher.
#[cfg(feature = "html")]
pub(crate) fn range_claimed(claim: &ClaimResult) -> Option<f64> {
    match claim.asked.tests.as_slice() {
        [Test::Versus { scale: Effect::Ratio, bound: Bound::Within(least, most), .. }] => Some((most / least).sqrt()),
        _ => None,
    }
}

fn ratio(claim: &ClaimResult) -> Option<Estimate> {
    let value = claim.ratio?;
    Some(match claim.asked.judging {
        // An exact value is its own interval. If the trials changed during the run, there is no valid interval, so only
        // the value is shown.
        Judging::Exact => Estimate { value, low: value, high: value },
        _ if claim.has_lost_interval(false) => Estimate { value, low: value, high: value },
        _ => {
            let (low, high) = (claim.ratio_low.unwrap_or(f64::NEG_INFINITY), claim.ratio_high.unwrap_or(f64::INFINITY));
            Estimate { value, low, high }
        }
    })
}

/// Returns the success rate of a claim with its interval. If the rate changed during the run, no interval is valid, so
/// both of its ends are the rate itself. `None` if there is no rate.
pub(crate) fn rate(claim: &ClaimResult) -> Option<Estimate> {
    let value = claim.rate?;
    Some(match claim.has_lost_interval(true) {
        true => Estimate { value, low: value, high: value },
        false => Estimate { value, low: claim.rate_low.unwrap_or(0.0), high: claim.rate_high.unwrap_or(1.0) },
    })
}

fn by_bound(ratio: Estimate, bound: Bound) -> Estimate {
    let Estimate { value, low, high } = ratio;
    match bound {
        Bound::AtLeast(least) => ratio.map(|ratio| ratio / least),
        // If the interval has no lower end, its inverse has no upper end.
        Bound::AtMost(most) => Estimate {
            value: most / value,
            low: if high.is_finite() { most / high } else { f64::NEG_INFINITY },
            high: if low > 0.0 { most / low } else { f64::INFINITY },
        },
        Bound::Within(least, most) => {
            let kept = |ratio: f64| (ratio / least).min(most / ratio);
            let middle = (least * most).sqrt();
            let best = if (low..=high).contains(&middle) { kept(middle) } else { kept(low).max(kept(high)) };
            let is_bounded = low > 0.0 && high.is_finite();
            let worst = if is_bounded { kept(low).min(kept(high)) } else { f64::NEG_INFINITY };
            Estimate { value: kept(value), low: worst, high: best }
        }
    }
}
