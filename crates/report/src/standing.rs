//! How claims stand: how many came to which answer, and how far they are from what was said, on one scale for all.

use ascertain_engine::claim::{Bound, Effect, Judging};
use ascertain_engine::outcome::{ClaimResult, TestSpec, Verdict};

use crate::grid;

/// How many claims came to an answer.
pub(crate) struct Count {
    /// The [class](grid::class) of its claims.
    #[cfg_attr(not(feature = "html"), allow(dead_code))]
    pub class: &'static str,
    pub answer: &'static str,
    pub count: usize,
}

impl Count {
    /// "12 hold".
    pub fn words(&self) -> String {
        format!("{} {}", self.count, of_so_many(self.count, self.answer))
    }
}

/// How many claims came to which verdict, or which answer where they are `compare`'s.
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

/// The word for an answer on so many claims: "1 holds", "2 hold".
pub(crate) fn of_so_many(count: usize, answer: &str) -> &str {
    match answer {
        "holds" if count != 1 => "hold",
        "holds, but changed" if count != 1 => "hold, but changed",
        answer => answer,
    }
}

/// What was measured by what was claimed: 1 just as claimed, above 1 the claim is kept with something to spare. Of a
/// claim on a ratio these are ratios, of any other the odds of success. Ends are infinite where nothing bounds them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Standing {
    /// `None` where there is no such figure.
    pub fn of(claim: &ClaimResult) -> Option<Standing> {
        match claim.asked.tests.as_slice() {
            [TestSpec::Versus { scale: Effect::Ratio, bound, .. }] => Some(of_ratio(claim, claim.ratio?, *bound)),
            _ if claim.asked.judging == Judging::Exact => None,
            _ => Some(of_rate(claim, claim.rate?)),
        }
    }
}

/// How far a claim is from what was said, as the logarithm of a factor. What has no such figure is nearest.
pub(crate) fn distance(claim: &ClaimResult) -> f64 {
    Standing::of(claim).map_or(0.0, |standing| -standing.value.ln())
}

/// The claims in the order of who is furthest from what was said: those that are refuted, then those of which it is not
/// decided, the others last; each by its distance.
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

/// Where a claim that asks for a range ends on that scale: as far inside as its middle is.
#[cfg(feature = "html")]
pub(crate) fn range_claimed(claim: &ClaimResult) -> Option<f64> {
    match claim.asked.tests.as_slice() {
        [TestSpec::Versus { scale: Effect::Ratio, bound: Bound::Within(least, most), .. }] => {
            Some((most / least).sqrt())
        }
        _ => None,
    }
}

fn of_ratio(claim: &ClaimResult, ratio: f64, bound: Bound) -> Standing {
    let (low, high) = match claim.asked.judging {
        // There is no chance in it, or the trials are not alike and have no one ratio: the estimate is all there is.
        Judging::Exact => (ratio, ratio),
        _ if claim.has_lost_interval(false) => (ratio, ratio),
        _ => (claim.ratio_low.unwrap_or(f64::NEG_INFINITY), claim.ratio_high.unwrap_or(f64::INFINITY)),
    };
    match bound {
        Bound::AtLeast(least) => Standing { value: ratio / least, low: low / least, high: high / least },
        // One over what has no least is not bounded above.
        Bound::AtMost(most) => Standing {
            value: most / ratio,
            low: if high.is_finite() { most / high } else { f64::NEG_INFINITY },
            high: if low > 0.0 { most / low } else { f64::INFINITY },
        },
        Bound::Within(least, most) => {
            let kept = |ratio: f64| (ratio / least).min(most / ratio);
            let middle = (least * most).sqrt();
            let best = if (low..=high).contains(&middle) { kept(middle) } else { kept(low).max(kept(high)) };
            let is_bounded = low > 0.0 && high.is_finite();
            let worst = if is_bounded { kept(low).min(kept(high)) } else { f64::NEG_INFINITY };
            Standing { value: kept(ratio), low: worst, high: best }
        }
    }
}

fn of_rate(claim: &ClaimResult, rate: f64) -> Standing {
    let odds = |rate: f64| rate.max(1e-9) / (1.0 - rate).max(1e-9);
    let by_claimed = |rate: f64| odds(rate) / odds(claim.rate_claimed);
    let (low, high) = match claim.has_lost_interval(true) {
        true => (rate, rate),
        false => (claim.rate_low.unwrap_or(0.0), claim.rate_high.unwrap_or(1.0)),
    };
    Standing { value: by_claimed(rate), low: by_claimed(low), high: by_claimed(high) }
}
