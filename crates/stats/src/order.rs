//! A test of which of two alternatives is faster, from the difference in each pair of times.

use crate::eprocess::{Mixture, log_threshold};
use crate::error::check_error;
use crate::magnitude::MagnitudeBet;
use crate::{Error, Tally, Verdict};

/// Share of the wealth that is bet on the signs of the log-ratios alone; the rest is bet on their magnitudes too. If
/// magnitudes carry no information, that rest may be lost. The signs alone must then reach an `ln e` that is higher by
/// `ln(1 / SIGN_SHARE)`, which is 0.51. This is 7 % of the `ln e` of 7.6 that a verdict needs at the default error.
const SIGN_SHARE: f64 = 0.6;

/// Absolute part of the error bound for the computed `ln e` of both bets together. The other part of the bound is
/// relative to this `ln e`.
const PADDING: f64 = 1e-14;

/// Two sizes of log-ratios, for [`soonest_order_verdict`]. If all log-ratios have the same size, one of these two sizes
/// leads to the soonest verdict. The number of pairs determines which one. Both sizes are slightly above the narrowest
/// width of noise that the bet on magnitudes considers.
const SOONEST: [f64; 2] = [2.42e-4, 3.75e-4];

/// A running test of which of two alternatives is faster, the reference or the candidate. You may look at it as often
/// as you like.
///
/// The input is `ln(reference's time / candidate's time)`, pair by pair. [`Verdict::Holds`] means that the candidate is
/// faster, [`Verdict::Refuted`] that it is slower. A [`Judge`](crate::Judge) of "at least half" could decide that by
/// counting wins. This judge also uses the size of each difference, and usually needs fewer pairs (the README.md of the
/// crate has a table). In each direction
///
/// ```text
/// e = 0.4 · (wealth from betting on each sign, given the size and the past) + 0.6 · (e-value of the signs alone)
/// ```
///
/// where the e-value of the signs is that of [`log_e_holds`](crate::log_e_holds) at a rate of ½. The bet on magnitudes
/// learns from the pairs so far how wide the noise is, how heavy its tails are, and how far it is shifted. The verdict
/// is the direction whose `e` first reaches 1/error while most pairs so far agree with it. A verdict never changes.
///
/// # Guarantee
///
/// Assume that the reference and the candidate do not differ, and that a coin decides for each pair which is measured
/// first. A log-ratio is then as likely as its opposite, given its size and the past. The chance that the verdict is
/// ever *faster* is then at most `error_faster`, and ever *slower* at most `error_slower`. This holds for every noise,
/// drift and dependence, and for every distribution of log-ratios.
///
/// The reason: given the size, each sign is a fair coin, and the share of the wealth on either side was fixed before
/// the sign was known. The wealth is therefore a non-negative martingale that starts at 1, and ever reaches 1/ε with a
/// chance of at most ε (Ville's inequality). A mixture of two such martingales is one too. The source of the bet,
/// `magnitude.rs`, has the full proof and its sources.
///
/// A verdict rejects the hypothesis that a log-ratio is as likely as its opposite. If [`OrderJudge::sign_alone`] is
/// `true`, it is equally certain that the winner "wins more often". If it is `false`, the verdict only shows that most
/// of the observed pairs agree with it.
///
/// # Ties, timeouts and unknown pairs
///
/// A tie (0) changes neither e-value. Infinite log-ratios are allowed; sizes beyond 5.3, a factor of 200, count as 5.3.
/// If the reference or the candidate timed out, you may pass its time limit as its time. The sign is then right, and
/// the size would be the same if reference and candidate changed places.
///
/// If even the sign is unknown because the pair was cut off, the pair counts against both directions (pass NaN, or call
/// [`OrderJudge::observe_unknown`]). For the signs it counts as lost. For the magnitudes it counts as a factor of
/// 1/805, which is less than that of any log-ratio.
///
/// # Cost
///
/// About 4 µs per pair, and 37 kB of memory.
///
/// ```
/// use ascertain_stats::{OrderJudge, Tally, Verdict};
/// let mut judge = OrderJudge::new(0.0005, 0.0005)?;
/// // The candidate is 5 % faster, give or take 5 %, except that every tenth pair was disturbed.
/// let noise = [0.04, -0.02, 0.0, 0.05, -0.03, 0.01, -0.04, 0.02, 0.03, -0.9];
/// let mut pairs = noise.into_iter().cycle().map(|noise| 1.05_f64.ln() + noise);
/// while judge.observe(pairs.next().unwrap()).is_none() {}
/// assert_eq!(judge.verdict(), Some(Verdict::Holds));
/// assert_eq!(judge.decided_at(), Some(Tally { trials: 19, successes: 18 }));
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OrderJudge {
    threshold_faster: f64,
    threshold_slower: f64,
    signs: Mixture,
    magnitudes: MagnitudeBet,
    tally: Tally,
    ties: u64,
    unknown: u64,
    decision: Option<Decision>,
}

#[derive(Clone, Copy, Debug)]
struct Decision {
    verdict: Verdict,
    tally: Tally,
    ties: u64,
    by_signs: bool,
    is_contradicted: bool,
}

impl OrderJudge {
    /// Creates a judge that wrongly returns *faster* with probability at most `error_faster`, and wrongly returns
    /// *slower* with probability at most `error_slower`.
    ///
    /// # Errors
    /// Returns [`Error::ErrorProbability`] if an error is not strictly between 0 and 1.
    pub fn new(error_faster: f64, error_slower: f64) -> Result<OrderJudge, Error> {
        Ok(OrderJudge {
            threshold_faster: log_threshold(check_error(error_faster)?),
            threshold_slower: log_threshold(check_error(error_slower)?),
            signs: Mixture::new(0.5, Verdict::Holds),
            magnitudes: MagnitudeBet::new(),
            tally: Tally::default(),
            ties: 0,
            unknown: 0,
            decision: None,
        })
    }

    /// Adds `ln(reference's time / candidate's time)` of a pair: 0 is a tie, NaN an unknown pair. Returns the verdict,
    /// or `None` as long as there is none.
    pub fn observe(&mut self, log_ratio: f64) -> Option<Verdict> {
        if log_ratio.is_nan() {
            return self.observe_unknown();
        }
        if log_ratio == 0.0 {
            self.ties += 1;
            return self.verdict();
        }
        self.magnitudes.observe(log_ratio);
        self.tally.add(log_ratio > 0.0);
        match self.decision {
            None => self.decide(),
            Some(Decision { verdict, is_contradicted: false, .. }) => {
                let is_contradicted = self.is_reached(verdict.opposite());
                self.decision.iter_mut().for_each(|decision| decision.is_contradicted = is_contradicted);
            }
            Some(_) => {}
        }
        self.verdict()
    }

    /// Counts a pair with an unknown sign against both verdicts. Returns the verdict, or `None` as long as there is
    /// none. This call never changes the verdict.
    pub fn observe_unknown(&mut self) -> Option<Verdict> {
        self.unknown += 1;
        self.magnitudes.observe_unknown();
        self.verdict()
    }

    /// Decides in favour of the verdict that most pairs support, if the `ln e` of that verdict has reached its
    /// threshold.
    fn decide(&mut self) {
        let agreeing = [Verdict::Holds, Verdict::Refuted].into_iter().find(|&verdict| {
            let (favourable, against) = self.counts(verdict);
            favourable > against
        });
        if let Some(verdict) = agreeing.filter(|&verdict| self.is_reached(verdict)) {
            let by_signs = self.log_sign(verdict) >= self.threshold(verdict);
            let (tally, ties) = (self.tally, self.ties);
            self.decision = Some(Decision { verdict, tally, ties, by_signs, is_contradicted: false });
        }
    }

    /// Returns the number of pairs in favour of a verdict, and the number against it. Ties are not counted.
    fn counts(&self, verdict: Verdict) -> (u64, u64) {
        let (favourable, against) = verdict.counts(self.tally);
        (favourable, against + self.unknown)
    }

    fn threshold(&self, verdict: Verdict) -> f64 {
        match verdict {
            Verdict::Holds => self.threshold_faster,
            Verdict::Refuted => self.threshold_slower,
        }
    }

    fn is_reached(&self, verdict: Verdict) -> bool {
        let threshold = self.threshold(verdict);
        let (favourable, against) = self.counts(verdict);
        // Computing `ln e` of the signs takes a microsecond. The mixture is at most the greater of its two terms, so
        // this check often avoids the computation.
        let is_possible = self.log_magnitude(verdict) >= threshold
            || greatest_log_sign(favourable as f64, against as f64) >= threshold;
        is_possible && self.log_e(verdict) >= threshold
    }

    fn log_e(&self, verdict: Verdict) -> f64 {
        let sum = mixture(self.log_magnitude(verdict), self.log_sign(verdict));
        sum - PADDING - 4.0 * f64::EPSILON * sum.abs()
    }

    /// Returns `ln e` for this verdict from the bet on magnitudes alone, without the bet on signs.
    fn log_magnitude(&self, verdict: Verdict) -> f64 {
        match verdict {
            Verdict::Holds => self.magnitudes.log_wealth_positive(),
            Verdict::Refuted => self.magnitudes.log_wealth_negative(),
        }
    }

    /// Returns `ln e` for this verdict from the signs of the log-ratios alone.
    fn log_sign(&self, verdict: Verdict) -> f64 {
        let (favourable, against) = self.counts(verdict);
        self.signs.log_e(favourable as f64, against as f64)
    }

    /// Returns the verdict, or `None` as long as there is none.
    pub fn verdict(&self) -> Option<Verdict> {
        self.decision.map(|decision| decision.verdict)
    }

    /// Returns the tally of pairs at the verdict, without ties and unknown pairs. Its successes are the pairs that the
    /// candidate won.
    pub fn decided_at(&self) -> Option<Tally> {
        self.decision.map(|decision| decision.tally)
    }

    /// Returns the number of ties before the verdict, or `None` as long as there is no verdict.
    pub fn ties_at_decision(&self) -> Option<u64> {
        self.decision.map(|decision| decision.ties)
    }

    /// Returns the tally of all pairs so far, without ties and unknown pairs. Its successes are the pairs that the
    /// candidate won.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the number of ties so far.
    pub fn ties(&self) -> u64 {
        self.ties
    }

    /// Returns the number of pairs so far whose sign is unknown.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Returns whether later pairs contradict the verdict. They do if the opposite verdict has since reached its
    /// threshold, even if its e-value has fallen below the threshold again. They also do if the alternative that the
    /// verdict calls slower has won more pairs than the other one. In both cases, no single answer fits all pairs, and
    /// the verdict must not be reported.
    pub fn contradicted(&self) -> bool {
        self.decision.is_some_and(|decision| {
            let (favourable, against) = decision.verdict.counts(self.tally);
            decision.is_contradicted || favourable < against
        })
    }

    /// Returns whether there is a verdict, and the signs alone would have reached it too, after the same pairs.
    pub fn sign_alone(&self) -> bool {
        self.decision.is_some_and(|decision| decision.by_signs)
    }

    /// Returns the natural logarithm of the e-value for *faster*, rounded so that it never exceeds the exact value.
    pub fn log_e_holds(&self) -> f64 {
        self.log_e(Verdict::Holds)
    }

    /// Returns the natural logarithm of the e-value for *slower*, rounded so that it never exceeds the exact value.
    pub fn log_e_refuted(&self) -> f64 {
        self.log_e(Verdict::Refuted)
    }
}

/// Returns the smallest number of pairs, without ties, after which an [`OrderJudge`] can reach a verdict. This number
/// is enough only if one alternative wins all pairs, always by the difference that leads to the soonest verdict.
///
/// The function finds the number by running judges on pairs with this difference. Other constant differences need up to
/// four more pairs. Returns `u64::MAX` if an argument is not strictly between 0 and 1.
///
/// ```
/// use ascertain_stats::{OrderJudge, soonest_order_verdict, soonest_verdict};
/// assert_eq!(soonest_order_verdict(0.0005, 0.0005), 14);
/// let mut judge = OrderJudge::new(0.0005, 0.0005)?;
/// assert_eq!((1..).find(|_| judge.observe(0.05).is_some()), Some(14));
/// // Counting wins alone takes one pair more.
/// assert_eq!(soonest_verdict(0.5, 0.0005, 0.0005), 15);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn soonest_order_verdict(error_faster: f64, error_slower: f64) -> u64 {
    if check_error(error_faster).and(check_error(error_slower)).is_err() {
        return u64::MAX;
    }
    let error = error_faster.max(error_slower);
    let Ok(judge) = OrderJudge::new(error, error) else { return u64::MAX };
    let mut judges = SOONEST.map(|difference| (difference, judge.clone()));
    let decides = |(difference, judge): &mut (f64, OrderJudge)| judge.observe(*difference).is_some();
    (1..).find(|_| judges.iter_mut().any(decides)).unwrap_or(u64::MAX)
}

/// Returns `ln e` of both bets together: the logarithm of their wealths' weighted sum. The arguments are the logarithms
/// of the wealths of the bet on magnitudes and of the bet on signs.
fn mixture(log_magnitudes: f64, log_signs: f64) -> f64 {
    let magnitudes = libm::log(1.0 - SIGN_SHARE) + log_magnitudes;
    let signs = libm::log(SIGN_SHARE) + log_signs;
    let greater = magnitudes.max(signs);
    greater + libm::log1p(libm::exp(magnitudes.min(signs) - greater))
}

/// Returns an upper bound of `ln e` of the signs, after `favourable` pairs for a verdict and `against` pairs against
/// it. The bound is the logarithm of the greatest likelihood ratio.
fn greatest_log_sign(favourable: f64, against: f64) -> f64 {
    let trials = favourable + against;
    let term = |count: f64| if count > 0.0 { count * libm::log(2.0 * count / trials) } else { 0.0 };
    if favourable > against { term(favourable) + term(against) } else { 0.0 }
}
