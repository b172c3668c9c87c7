//! Judging which of two is faster, from how much each pair of times differs.

use crate::eprocess::{Direction, Mixture, log_threshold};
use crate::error::check_error;
use crate::magnitude::MagnitudeBet;
use crate::{Error, Tally, Verdict};

/// The share of the wealth that is bet on signs alone. If sizes tell nothing, the judge needs at most `ln(1 / SIGN_SHARE)`
/// more evidence than signs alone: 7 % of the 7.6 that the default error asks for.
const SIGN_SHARE: f64 = 0.6;

/// More than the logarithm of the mixture of two can be wrong by where it is small.
const PADDING: f64 = 1e-14;

/// Of log-ratios that are all alike these convince soonest, the one or the other by how many it takes: somewhat beyond
/// the narrowest noise that is thought of.
const SOONEST: [f64; 2] = [2.42e-4, 3.75e-4];

/// A running test of which of two is faster, to be looked at as often as one likes.
///
/// It takes in, pair by pair, `ln(reference's time / candidate's time)`: [`Verdict::Holds`] says that the candidate is
/// faster, [`Verdict::Refuted`] that it is slower. A [`Judge`](crate::Judge) of "at least half" could do that by
/// counting who won; this one looks at how far apart the two were as well, and mostly needs fewer pairs (the crate's
/// README.md has a table). In each direction
///
/// ```text
/// e = 0.4 · (wealth from betting on each sign, given the size and the past) + 0.6 · (e-value of the signs alone)
/// ```
///
/// where the latter is that of [`log_e_holds`](crate::log_e_holds) at a rate of ½. The bet on magnitudes learns from
/// the pairs so far how wide the noise is, how heavy its tails are, and how far it is shifted. A verdict falls at the
/// first pair at which e is at least 1/error of its direction and most of the pairs so far agree with it; it latches.
///
/// # Guarantee
///
/// Where the two do not differ and a coin decides for each pair which is measured first, a log-ratio is as likely as
/// its opposite, given its size and all that went before. Then the chance that the verdict is ever *faster* is at most
/// `error_faster`, and ever *slower*, `error_slower`, whatever the noise, its drift and its dependence: nothing is
/// assumed of how log-ratios are distributed. For, given the size, each sign is a fair coin, and how much of the wealth
/// is put on either side was settled before it fell. So the wealth is a non-negative martingale that starts at 1, and
/// ever reaches 1/ε with a chance of at most ε (Ville's inequality); a mixture of two such is one too. The source of
/// the bet, `magnitude.rs`, has the proof in full and where it comes from.
///
/// What is rejected is that a log-ratio is as likely as its opposite. That the winner "wins more often" is as certain
/// only where [`OrderJudge::sign_alone`] is true; otherwise most of the pairs seen agree with the verdict, and no more
/// is said.
///
/// # Ties, time-outs and unknown pairs
///
/// A tie (0) changes neither e-value. Infinite log-ratios are allowed; sizes beyond 5.3, a factor of 200, count as
/// that. Where one of the two timed out, its limit may stand for its time: the sign is right, and the size still is one
/// that stays the same when the two change places. Where not even the sign is known, as the pair was cut off, it counts
/// against both directions (NaN, or [`OrderJudge::observe_unknown`]): as lost for the signs, and for the magnitudes by
/// 1/805, which is less than any log-ratio's factor.
///
/// # Cost
///
/// Some 4 µs a pair, and 37 kB.
///
/// ```
/// use ascertain_stats::{OrderJudge, Tally, Verdict};
/// let mut judge = OrderJudge::new(0.0005, 0.0005)?;
/// // The candidate is 5 % faster, give or take 5 %, but that every tenth pair was disturbed.
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
    /// A judge that says *faster* wrongly with probability at most `error_faster`, *slower* with `error_slower`.
    ///
    /// # Errors
    /// [`Error::ErrorProbability`], where one is not strictly between 0 and 1.
    pub fn new(error_faster: f64, error_slower: f64) -> Result<OrderJudge, Error> {
        Ok(OrderJudge {
            threshold_faster: log_threshold(check_error(error_faster)?),
            threshold_slower: log_threshold(check_error(error_slower)?),
            signs: Mixture::new(0.5, Direction::Above),
            magnitudes: MagnitudeBet::new(),
            tally: Tally::default(),
            ties: 0,
            unknown: 0,
            decision: None,
        })
    }

    /// Takes in `ln(reference's time / candidate's time)` of a pair: 0 is a tie, NaN an unknown pair. The verdict so
    /// far.
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

    /// Counts a pair of which not even the sign is known, against both directions. The verdict so far, which this can't
    /// change.
    pub fn observe_unknown(&mut self) -> Option<Verdict> {
        self.unknown += 1;
        self.magnitudes.observe_unknown();
        self.verdict()
    }

    /// The verdict of the direction that the majority of the pairs agrees with, if its threshold is reached.
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

    /// The pairs for and against a verdict, without ties.
    fn counts(&self, verdict: Verdict) -> (u64, u64) {
        let (favourable, against) = verdict.direction().counts(self.tally);
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
        // The signs take a microsecond, and a mean is not above the greater of the two.
        let is_possible = self.log_magnitude(verdict) >= threshold
            || greatest_log_sign(favourable as f64, against as f64) >= threshold;
        is_possible && self.log_e(verdict) >= threshold
    }

    fn log_e(&self, verdict: Verdict) -> f64 {
        let sum = mixture(self.log_magnitude(verdict), self.log_sign(verdict));
        sum - PADDING - 4.0 * f64::EPSILON * sum.abs()
    }

    /// `ln e` of the bet on magnitudes alone.
    fn log_magnitude(&self, verdict: Verdict) -> f64 {
        match verdict {
            Verdict::Holds => self.magnitudes.log_wealth_positive(),
            Verdict::Refuted => self.magnitudes.log_wealth_negative(),
        }
    }

    /// `ln e` of the signs alone.
    fn log_sign(&self, verdict: Verdict) -> f64 {
        let (favourable, against) = self.counts(verdict);
        self.signs.log_e(favourable as f64, against as f64)
    }

    /// The verdict, once there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        self.decision.map(|decision| decision.verdict)
    }

    /// The pairs at which the verdict fell, without ties and unknown ones; successes are those the candidate won.
    pub fn decided_at(&self) -> Option<Tally> {
        self.decision.map(|decision| decision.tally)
    }

    /// The ties before the verdict fell.
    pub fn ties_at_decision(&self) -> Option<u64> {
        self.decision.map(|decision| decision.ties)
    }

    /// All pairs so far, without ties and unknown ones; successes are those the candidate won.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The ties so far.
    pub fn ties(&self) -> u64 {
        self.ties
    }

    /// The pairs so far of which not even the sign is known.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Whether there is a verdict that later pairs contradict: the other direction has reached its threshold since,
    /// which stays so, or of all pairs so far most disagree. The pairs are not alike, and the verdict is none to be
    /// told.
    pub fn contradicted(&self) -> bool {
        self.decision.is_some_and(|decision| {
            let (favourable, against) = decision.verdict.direction().counts(self.tally);
            decision.is_contradicted || favourable < against
        })
    }

    /// Whether the signs of the pairs that gave the verdict suffice for it.
    pub fn sign_alone(&self) -> bool {
        self.decision.is_some_and(|decision| decision.by_signs)
    }

    /// `ln e` for *faster*, never above the exact value.
    pub fn log_e_holds(&self) -> f64 {
        self.log_e(Verdict::Holds)
    }

    /// `ln e` for *slower*, never above the exact value.
    pub fn log_e_refuted(&self) -> f64 {
        self.log_e(Verdict::Refuted)
    }
}

/// The fewest pairs after which an [`OrderJudge`] gives a verdict, ties left out: one wins all of them, each by as
/// much, whichever difference is the soonest.
///
/// Found by having a judge look at such runs. Other differences take up to four more. `u64::MAX` where an argument is
/// not strictly between 0 and 1.
///
/// ```
/// use ascertain_stats::{OrderJudge, soonest_order_verdict, soonest_verdict};
/// assert_eq!(soonest_order_verdict(0.0005, 0.0005), 14);
/// let mut judge = OrderJudge::new(0.0005, 0.0005)?;
/// assert_eq!((1..).find(|_| judge.observe(0.05).is_some()), Some(14));
/// // By counting who won it is later.
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

/// `ln e` from the logarithms of what magnitudes and what signs have made.
fn mixture(log_magnitudes: f64, log_signs: f64) -> f64 {
    let magnitudes = libm::log(1.0 - SIGN_SHARE) + log_magnitudes;
    let signs = libm::log(SIGN_SHARE) + log_signs;
    let greater = magnitudes.max(signs);
    greater + libm::log1p(libm::exp(magnitudes.min(signs) - greater))
}

/// What `ln e` of the signs can't exceed: the greatest likelihood ratio.
fn greatest_log_sign(favourable: f64, against: f64) -> f64 {
    let trials = favourable + against;
    let term = |count: f64| if count > 0.0 { count * libm::log(2.0 * count / trials) } else { 0.0 };
    if favourable > against { term(favourable) + term(against) } else { 0.0 }
}
