//! A bet on the sign of each log-ratio, given its size.
//!
//! # The bet
//!
//! Let D be the logarithm of the ratio of the reference's time to the candidate's time, in one pair of times. The bet
//! may depend only on the size of D. A pair that differs by about as much as the expected effect carries more
//! information than a pair whose two times differ because of a burst of other work. The bet therefore uses a predictive
//! density m of D, given the pairs so far. The density is a mixture of components that give more probability to D > 0
//! than to D < 0. A share `m(D) / (m(D) + m(−D))` of the wealth is put on the sign that D turns out to have, the rest
//! on the other sign. Bets are settled at even odds, so the wealth is multiplied by
//!
//! ```text
//! F = 2 m(D) / (m(D) + m(−D)).
//! ```
//!
//! The bet on D < 0 does exactly the same with −D.
//!
//! # Guarantee
//!
//! If the reference and the candidate do not differ, and a coin decides the order within each pair, D and −D are
//! equally likely given |D| and the past. The past determines m, so the mean of F is
//!
//! ```text
//! ½ · 2 m(D) / (m(D) + m(−D)) + ½ · 2 m(−D) / (m(−D) + m(D)) = 1,
//! ```
//!
//! This holds for every |D|, however it came about: by bursts, by drift, or by an adversary who knows the bet. The
//! wealth is a non-negative martingale that starts at 1, and the chance that it *ever* reaches 1/ε is at most ε (Ville
//! 1939). The components need not describe the noise; they only decide how soon a true difference is found.
//!
//! |D| itself may be replaced by any function of the two times that stays the same when the times change places. One
//! example is a size with a maximum; here, sizes above 5.3 count as 5.3. Another is a size in which the time limit
//! takes the place of the time of a command that was stopped.
//!
//! Under symmetry, signs are fair coins given the sizes. Sources:
//!
//! - Efron, *Student's t-test under symmetry conditions*, 1969, starts from this premise.
//! - De la Peña, *A general class of exponential inequalities for martingales and ratios*, 1999, extends it to
//!   stochastic processes.
//! - Ramdas, Ruf, Larsson and Koolen, *Admissible anytime-valid sequential inference must rely on nonnegative
//!   martingales*, 2020, treat symmetry as a case of their theorem.
//! - Vovk and Wang, *Nonparametric e-tests of symmetry*, 2022, compare some such tests.
//! - Robbins, *Statistical methods related to the law of the iterated logarithm*, 1970, uses a mixture over the unknown
//!   parameter.
//!
//! # The components
//!
//! Each component combines a shape of noise with a leaning, which makes one sign more likely than the other. The noise
//! is Student's t with 5 degrees of freedom and one of the [`SCALES`] as its width. Times have outliers, so a share of
//! the noise is Cauchy's distribution, several times as wide ([`TAILS`]).
//!
//! A component leans in one of two ways: by a shift, measured in scales ([`SHIFTS`]), or by signs that are positive at
//! one of the [`RATES`] for all sizes. In the second case the sizes are distributed in one of two ways. They may be the
//! sizes of noise around 0. Or they are the sizes of noise of which half is around the greatest shift, and half around
//! minus the greatest shift. The second way describes two situations: one command is always slower by about the same
//! amount, or the clock is coarse.
//!
//! After each pair the weights are updated by Bayes' rule. The noise may change later, and a component that was useless
//! may become useful. So that such a component can recover, a small share of the weights returns to the prior (the
//! *fixed share* of Herbster and Warmuth, *Tracking the best expert*, 1998).
//!
//! # Rounding
//!
//! Weights with rounding errors are still a valid way to bet, so the rounding of weights does no harm. But a factor
//! must not exceed its exact value for the stored weights and the stored D. The logarithm of each factor is therefore
//! reduced by a bound of the sums' error.

/// Widths of the noise in the components. The components are the distributions of log-ratios that the bet mixes. There
/// are 16 widths from 10⁻⁴ to 1.5, each 1.9 times the previous.
const SCALES: [f64; 16] = {
    let mut scales = [1e-4; 16];
    let mut i = 1;
    while i < scales.len() {
        scales[i] = 1.9 * scales[i - 1];
        i += 1;
    }
    scales
};

/// The tails of the noise in the components. A part of the noise follows Cauchy's distribution. Each entry has the
/// share of this part, and its width as a multiple of the width of the rest.
const TAILS: [(f64, f64); 4] = [(0.05, 5.0), (0.3, 10.0), (0.6, 15.0), (0.8, 50.0)];

/// Shifts of the components, as multiples of the noise's width. A component with a shift leans towards one sign.
const SHIFTS: [f64; 8] = [0.07, 0.122, 0.214, 0.374, 0.655, 1.145, 2.0, 3.5];

/// Rates of positive signs, for components without a shift. Such a component leans towards positive signs, because its
/// rate is above one half.
const RATES: [f64; 5] = [0.55, 0.65, 0.75, 0.85, 0.95];

/// Prior weight of a component whose signs have one of the [`RATES`]. A component that is shifted has the weight 1.
const PRIOR_OF_RATE: f64 = 0.4;

/// Number of ways in which a component can lean towards one sign. They are shifts, rates for sizes around 0, and rates
/// for sizes around the greatest shift.
const LEANINGS: usize = SHIFTS.len() + 2 * RATES.len();

const COMPONENTS: usize = SCALES.len() * TAILS.len() * LEANINGS;

/// Share of the weights that is moved back to the prior weights after each pair. It keeps every component's weight
/// above zero, so that a component can become useful again if the noise changes.
const RETURNING: f64 = 0.003;

/// The prior weights multiplied by [`RETURNING`]. After each pair, this product is added to each weight.
const RETURNED: [f64; COMPONENTS] = {
    let all = (SCALES.len() * TAILS.len()) as f64 * (SHIFTS.len() as f64 + PRIOR_OF_RATE * 2.0 * RATES.len() as f64);
    let mut returned = [RETURNING / all; COMPONENTS];
    let mut i = 0;
    while i < COMPONENTS {
        if i % LEANINGS >= SHIFTS.len() {
            returned[i] *= PRIOR_OF_RATE;
        }
        i += 1;
    }
    returned
};

/// Greatest size of a log-ratio that the components distinguish; greater sizes are treated as this one. It corresponds
/// to two times that differ by a factor of 200.
const GREATEST_SIZE: f64 = SHIFTS[SHIFTS.len() - 1] * SCALES[SCALES.len() - 1];

/// The greatest ratio of a component's density at D to its density at −D, and the other way around.
///
/// For Student's t with ν degrees of freedom, shifted by δ scales, the ratio at `z` scales is
/// `((ν + (z+δ)²) / (ν + (z−δ)²))^((ν+1)/2)`. It is greatest at `z² = ν + δ²`, where it is `((z+δ)²/ν)^((ν+1)/2)`. Here
/// that is 1607.5, with δ = 3.5 and ν = 5. For Cauchy's part the ratio is smaller: ν is 1, and δ is smaller because the
/// part is wide. For a component that leans by a rate of 0.95 it is 19. The ratio of two sums is between the smallest
/// and the greatest ratio of their terms (the mediant inequality). 1607.5 is therefore a bound for each component and
/// for m.
const GREATEST_ODDS: f64 = 1608.0;

/// Error bound for the computed logarithm of the factor by which a bet multiplies the wealth. The factor is computed
/// from two sums of about 150 additions in a row, whose terms are right to about ten units in the last place.
const PADDING: f64 = 1e-13;

/// The wealth of two gamblers: one bets that log-ratios are positive, the other that they are negative.
#[derive(Clone, Debug)]
pub(crate) struct MagnitudeBet {
    positive: Gambler,
    negative: Gambler,
    /// The density of each component at the size of the last log-ratio, with the sign to which the component leans.
    towards: Vec<f64>,
    /// The density of each component at the size of the last log-ratio, with the sign opposite to the component's
    /// leaning.
    away: Vec<f64>,
}

impl MagnitudeBet {
    pub fn new() -> MagnitudeBet {
        MagnitudeBet {
            positive: Gambler::new(),
            negative: Gambler::new(),
            towards: vec![0.0; COMPONENTS],
            away: vec![0.0; COMPONENTS],
        }
    }

    /// Returns `ln` of the wealth from betting on positive signs, never above the exact value.
    pub fn log_wealth_positive(&self) -> f64 {
        self.positive.log_wealth
    }

    /// Returns `ln` of the wealth from betting on negative signs, never above the exact value.
    pub fn log_wealth_negative(&self) -> f64 {
        self.negative.log_wealth
    }

    /// Settles both bets after a log-ratio, which must be a number other than zero.
    pub fn observe(&mut self, log_ratio: f64) {
        densities(log_ratio.abs().min(GREATEST_SIZE), &mut self.towards, &mut self.away);
        let (right, wrong) = match log_ratio > 0.0 {
            true => (&mut self.positive, &mut self.negative),
            false => (&mut self.negative, &mut self.positive),
        };
        right.pay_out(&self.towards, &self.away);
        wrong.pay_out(&self.away, &self.towards);
    }

    /// Multiplies both wealths by the smallest factor that a log-ratio can have, because the size and sign of this one
    /// are unknown. The weights stay as they are.
    ///
    /// The smallest factor is `2/(1 + odds)`, with [`GREATEST_ODDS`]. To see that this is valid, imagine a gambler who
    /// receives the true factor instead and then bets in the same way. Such a gambler would have at least as much
    /// wealth. The imagined bets depend only on the past. The argument therefore holds for any choice of the unknown
    /// log-ratios, even for a choice by an adversary.
    pub fn observe_unknown(&mut self) {
        let log_least = -libm::log((1.0 + GREATEST_ODDS) / 2.0);
        self.positive.multiply(log_least);
        self.negative.multiply(log_least);
    }
}

/// A gambler who bets on one sign.
#[derive(Clone, Debug)]
struct Gambler {
    weights: Vec<f64>,
    log_wealth: f64,
}

impl Gambler {
    fn new() -> Gambler {
        Gambler { weights: RETURNED.iter().map(|weight| weight / RETURNING).collect(), log_wealth: 0.0 }
    }

    /// Multiplies the wealth by the factor of a bet. `actual` has each component's density at the actual log-ratio.
    /// `opposite` has each component's density at the log-ratio with the opposite sign and the same size.
    fn pay_out(&mut self, actual: &[f64], opposite: &[f64]) {
        // These sums are independent, so none waits for another.
        const LANES: usize = 8;
        const { assert!(COMPONENTS.is_multiple_of(LANES)) };
        let (mut actual_sums, mut opposite_sums) = ([0.0; LANES], [0.0; LANES]);
        let (weights, _) = self.weights.as_chunks_mut::<LANES>();
        for ((weights, actual), opposite) in
            weights.iter_mut().zip(actual.as_chunks::<LANES>().0).zip(opposite.as_chunks::<LANES>().0)
        {
            for lane in 0..LANES {
                opposite_sums[lane] += weights[lane] * opposite[lane];
                weights[lane] *= actual[lane];
                actual_sums[lane] += weights[lane];
            }
        }
        let (actual, opposite) = (actual_sums.iter().sum::<f64>(), opposite_sums.iter().sum::<f64>());
        self.multiply(libm::log(2.0 * actual / (actual + opposite)));
        let kept = (1.0 - RETURNING) / actual;
        for (weight, returned) in self.weights.iter_mut().zip(&RETURNED) {
            *weight = kept * *weight + returned;
        }
    }

    fn multiply(&mut self, log_factor: f64) {
        let log_wealth = self.log_wealth + log_factor;
        self.log_wealth = log_wealth - PADDING - f64::EPSILON * log_wealth.abs();
    }
}

/// Computes the density of each component at log-ratios of this size: with the sign to which the component leans, and
/// with the other sign.
fn densities(size: f64, towards: &mut [f64], away: &mut [f64]) {
    let mut places = towards.as_chunks_mut::<LEANINGS>().0.iter_mut().zip(away.as_chunks_mut::<LEANINGS>().0);
    for scale in SCALES {
        let z = size / scale;
        for ((share, width), (towards, away)) in TAILS.into_iter().zip(&mut places) {
            let noise = Noise {
                narrow: (1.0 - share) * T5 / scale,
                wide: share * std::f64::consts::FRAC_1_PI / (width * scale),
                inverse_width_squared: 1.0 / (width * width),
            };
            for (i, shift) in SHIFTS.into_iter().enumerate() {
                towards[i] = noise.density(z - shift);
                away[i] = noise.density(z + shift);
            }
            let around = [2.0 * noise.density(z), towards[SHIFTS.len() - 1] + away[SHIFTS.len() - 1]];
            for (i, rate) in RATES.into_iter().enumerate() {
                for (j, both_signs) in around.into_iter().enumerate() {
                    towards[SHIFTS.len() + 2 * i + j] = rate * both_signs;
                    away[SHIFTS.len() + 2 * i + j] = (1.0 - rate) * both_signs;
                }
            }
        }
    }
}

/// The density at 0 of Student's t with 5 degrees of freedom.
const T5: f64 = 0.379_606_689_822_494_4;

/// A shape of noise: the sum of a narrow and a wide part. `narrow` and `wide` are the densities of the two parts at 0.
/// `inverse_width_squared` determines how fast the wide part falls with the distance.
struct Noise {
    narrow: f64,
    wide: f64,
    inverse_width_squared: f64,
}

impl Noise {
    /// Returns the density of the noise at a distance from its centre. `z` is this distance as a multiple of the
    /// noise's width.
    #[inline]
    fn density(&self, z: f64) -> f64 {
        let t5 = 1.0 + z * z * 0.2;
        let t5 = t5 * t5 * t5;
        let cauchy = 1.0 + z * z * self.inverse_width_squared;
        // One division serves both fractions, because divisions take most of the time.
        (self.narrow * cauchy + self.wide * t5) / (t5 * cauchy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns bettors in various states, after different numbers of log-ratios of various sizes.
    fn states() -> impl Iterator<Item = MagnitudeBet> {
        (0..60_u32).map(|i| {
            let mut bet = MagnitudeBet::new();
            for pair in 0..i {
                let size = 1e-5 * 1.25_f64.powi((i + pair * pair % 7) as i32);
                bet.observe(if pair % (2 + i % 5) == 0 { -size } else { size });
            }
            bet
        })
    }

    fn sizes() -> impl Iterator<Item = f64> {
        (-40..80).map(|power| 1e-3 * 1.2_f64.powi(power)).chain([5e-324, 1e-300, 1e300, f64::INFINITY])
    }

    fn factors(bet: &MagnitudeBet, log_ratio: f64) -> [f64; 2] {
        let mut next = bet.clone();
        next.observe(log_ratio);
        let now = [next.positive.log_wealth, next.negative.log_wealth];
        [libm::exp(now[0] - bet.positive.log_wealth), libm::exp(now[1] - bet.negative.log_wealth)]
    }

    #[test]
    fn the_mean_of_a_factor_is_1_whatever_the_size() {
        for bet in states() {
            for size in sizes() {
                let (one, other) = (factors(&bet, size), factors(&bet, -size));
                for gambler in 0..2 {
                    let sum = one[gambler] + other[gambler];
                    assert!(sum <= 2.0 && sum > 2.0 - 1e-11, "{sum} at {size}");
                }
            }
        }
    }

    #[test]
    fn no_pair_costs_more_than_an_unknown_one() {
        for bet in states() {
            let mut unknown = bet.clone();
            unknown.observe_unknown();
            let factor = libm::exp(unknown.positive.log_wealth - bet.positive.log_wealth);
            for size in sizes() {
                let [positive, negative] = factors(&bet, -size);
                assert!(factor < positive && factor < negative, "{positive} and {negative} at {size}");
            }
        }
    }

    #[test]
    fn no_component_has_greater_odds_than_said() {
        let (mut towards, mut away) = (vec![0.0; COMPONENTS], vec![0.0; COMPONENTS]);
        let mut greatest: f64 = 0.0;
        for step in 0..4000 {
            densities(1e-6 * 1.004_f64.powi(step), &mut towards, &mut away);
            let odds = towards.iter().zip(&away).map(|(towards, away)| towards / away);
            greatest = odds.fold(greatest, f64::max);
        }
        assert!(greatest < GREATEST_ODDS, "{greatest}");
        let (shift, nu) = (SHIFTS[SHIFTS.len() - 1], 5.0);
        let at_most = ((libm::sqrt(nu + shift * shift) + shift).powi(2) / nu).powi(3);
        assert!(at_most < GREATEST_ODDS && at_most > 0.999 * GREATEST_ODDS, "{at_most}");
    }

    #[test]
    fn noise_is_a_density() {
        for (share, width) in TAILS {
            let noise = Noise {
                narrow: (1.0 - share) * T5,
                wide: share * std::f64::consts::FRAC_1_PI / width,
                inverse_width_squared: 1.0 / (width * width),
            };
            // Integrates after substituting the tangent.
            let steps = 20_000;
            let at = |i: i32| (f64::from(i) + 0.5) / f64::from(steps) * std::f64::consts::FRAC_PI_2;
            let term = |angle: f64| noise.density(angle.tan()) / angle.cos().powi(2);
            let half: f64 =
                (0..steps).map(|i| term(at(i))).sum::<f64>() / f64::from(steps) * std::f64::consts::FRAC_PI_2;
            assert!((2.0 * half - 1.0).abs() < 1e-6, "{half}");
        }
    }
}
