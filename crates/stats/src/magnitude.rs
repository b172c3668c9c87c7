//! Betting on the sign of each log-ratio, given its size.
//!
//! # The bet
//!
//! Let D be the logarithm of how many times as long the reference took as the candidate, in one pair. The size of D may
//! be looked at before its sign: a pair that differs by about as much as the effect that one has come to expect says
//! more than one that a burst of other work has torn apart. So there is a predictive density m of D given the pairs so
//! far, a mixture of components that lean towards D > 0. A share `m(D) / (m(D) + m(−D))` of the wealth is put on the
//! sign that D turns out to have, the rest on the other. Bets are settled at even odds, so that the wealth is
//! multiplied by
//!
//! ```text
//! F = 2 m(D) / (m(D) + m(−D)).
//! ```
//!
//! Whoever bets on D < 0 does exactly the same with −D.
//!
//! # Guarantee
//!
//! Where the two do not differ and the order within each pair is drawn by a coin, D and −D are equally likely given |D|
//! and all that went before. As m is settled by what went before, the mean of F is then
//!
//! ```text
//! ½ · 2 m(D) / (m(D) + m(−D)) + ½ · 2 m(−D) / (m(−D) + m(D)) = 1,
//! ```
//!
//! whatever |D| is and however it came about: by bursts, by drift, or by an adversary who knows the bet. The wealth is
//! a non-negative martingale that starts at 1, and the chance that it *ever* reaches 1/ε is at most ε (Ville 1939). The
//! components need not describe the noise; they only decide how soon a true difference is found. Nor need |D| be all of
//! the size: any function of the two times that stays the same when they change places will do in its stead, such as a
//! size that is cut off, as it is here at 5.3, or one with a time-out's limit in the place of its time.
//!
//! That signs are fair coins given the sizes, under symmetry, is Efron's premise, *Student's t-test under symmetry
//! conditions*, 1969, and, for processes, de la Peña's, *A general class of exponential inequalities for martingales
//! and ratios*, 1999. Ramdas, Ruf, Larsson and Koolen, *Admissible anytime-valid sequential inference must rely on
//! nonnegative martingales*, 2020, treat symmetry as a case of their theorem; Vovk and Wang, *Nonparametric e-tests of
//! symmetry*, 2022, compare some such tests. A mixture over what is not known is Robbins' method (*Statistical methods
//! related to the law of the iterated logarithm*, 1970).
//!
//! # The components
//!
//! Each is a shape of noise together with a way to lean. Noise is Student's t with 5 degrees of freedom, one of
//! [`SCALES`] wide, and, as times have outliers, a share of Cauchy's distribution several times as wide ([`TAILS`]). A
//! component leans by a shift of so many scales ([`SHIFTS`]), or by signs that are positive at one of [`RATES`]
//! whatever the size. Sizes then are those of noise around 0 or, half each, around plus and minus the greatest shift:
//! as where whoever comes second is slower by much the same each time, or a clock is coarse.
//!
//! After each pair the weights are updated by Bayes' rule, and a little of them returns to the prior: noise changes,
//! and what was of no use may be later (the *fixed share* of Herbster and Warmuth, *Tracking the best expert*, 1998).
//!
//! # Rounding
//!
//! Any weights are a valid way to bet, so that their rounding does no harm. Only a factor must not be above what it is
//! for the weights and the D that are held: its logarithm is padded, by more than the sums can be wrong by.

/// The widths of the noise: from 10⁻⁴, each 1.9 times the one before, to 1.5.
const SCALES: [f64; 16] = {
    let mut scales = [1e-4; 16];
    let mut i = 1;
    while i < scales.len() {
        scales[i] = 1.9 * scales[i - 1];
        i += 1;
    }
    scales
};

/// The share of noise that is Cauchy's, and how many times as wide that is.
const TAILS: [(f64, f64); 4] = [(0.05, 5.0), (0.3, 10.0), (0.6, 15.0), (0.8, 50.0)];

/// By how many scales noise is shifted.
const SHIFTS: [f64; 8] = [0.07, 0.122, 0.214, 0.374, 0.655, 1.145, 2.0, 3.5];

/// The rates of positive signs of components that do not lean by a shift.
const RATES: [f64; 5] = [0.55, 0.65, 0.75, 0.85, 0.95];

/// The prior weight of a rate; that of a shift is 1.
const PRIOR_OF_RATE: f64 = 0.4;

/// The ways to lean: by a shift, by a rate around 0, or by a rate around the greatest shift.
const LEANINGS: usize = SHIFTS.len() + 2 * RATES.len();

const COMPONENTS: usize = SCALES.len() * TAILS.len() * LEANINGS;

/// What of the weights returns to the prior at each pair.
const RETURNING: f64 = 0.003;

/// [`RETURNING`] of the prior.
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

/// Sizes beyond this, a factor of 200 between the times, are taken for it: components see only noise so far out.
const GREATEST_SIZE: f64 = SHIFTS[SHIFTS.len() - 1] * SCALES[SCALES.len() - 1];

/// How many times as dense at D as at −D a component can be, at most, and the other way around.
///
/// For Student's t with ν degrees of freedom, shifted by δ scales, it is `((ν + (z+δ)²) / (ν + (z−δ)²))^((ν+1)/2)` at `z`
/// scales. That is greatest at `z² = ν + δ²`, where it is `((z+δ)²/ν)^((ν+1)/2)`: here 1607.5, with δ = 3.5 and ν = 5.
/// Cauchy's part has ν = 1 and, as it is wide, a smaller δ; a rate of 0.95 makes it 19. The ratio of two sums is never
/// beyond the greatest nor below the least ratio of their terms (the mediant inequality), so this bounds components and
/// m alike.
const GREATEST_ODDS: f64 = 1608.0;

/// More than the logarithm of a factor can be wrong by: two sums of some 150 additions in a row, of terms that are
/// right to some ten units in the last place.
const PADDING: f64 = 1e-13;

/// The wealth of two gamblers, one of whom bets that log-ratios are positive, the other that they are negative.
#[derive(Clone, Debug)]
pub(crate) struct MagnitudeBet {
    positive: Gambler,
    negative: Gambler,
    /// The densities of the components at a size, on the side to which they lean and on the other.
    towards: Vec<f64>,
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

    /// `ln` of the wealth from betting on positive signs, never above the exact value.
    pub fn log_wealth_positive(&self) -> f64 {
        self.positive.log_wealth
    }

    /// `ln` of the wealth from betting on negative signs, never above the exact value.
    pub fn log_wealth_negative(&self) -> f64 {
        self.negative.log_wealth
    }

    /// Settles the bets on a log-ratio that is neither zero nor NaN.
    pub fn observe(&mut self, log_ratio: f64) {
        densities(log_ratio.abs().min(GREATEST_SIZE), &mut self.towards, &mut self.away);
        let (right, wrong) = match log_ratio > 0.0 {
            true => (&mut self.positive, &mut self.negative),
            false => (&mut self.negative, &mut self.positive),
        };
        right.settle(&self.towards, &self.away);
        wrong.settle(&self.away, &self.towards);
    }

    /// Takes from both what a log-ratio that is not known can have cost them at most; they bet on as if it had not
    /// been.
    ///
    /// That is the least factor, `2/(1 + odds)`. A gambler who had taken the true factor and had then bet on like this
    /// would have at least as much, and bets by the past alone, whoever chose which log-ratios are not known and why.
    pub fn observe_unknown(&mut self) {
        let log_least = -libm::log((1.0 + GREATEST_ODDS) / 2.0);
        self.positive.multiply(log_least);
        self.negative.multiply(log_least);
    }
}

/// Who bets on one sign.
#[derive(Clone, Debug)]
struct Gambler {
    weights: Vec<f64>,
    log_wealth: f64,
}

impl Gambler {
    fn new() -> Gambler {
        Gambler { weights: RETURNED.iter().map(|weight| weight / RETURNING).collect(), log_wealth: 0.0 }
    }

    /// Settles a bet, given each component's density at the log-ratio that it was and at the opposite one.
    fn settle(&mut self, actual: &[f64], opposite: &[f64]) {
        // Sums side by side, which need not wait for one another.
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

/// The densities of all components at a size, on the side to which they lean and on the other.
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

/// A shape of noise: the densities of its two parts at 0, and how the wide one falls, in scales.
struct Noise {
    narrow: f64,
    wide: f64,
    inverse_width_squared: f64,
}

impl Noise {
    /// The density so many scales from the centre.
    #[inline]
    fn density(&self, z: f64) -> f64 {
        let t5 = 1.0 + z * z * 0.2;
        let t5 = t5 * t5 * t5;
        let cauchy = 1.0 + z * z * self.inverse_width_squared;
        // Both fractions at once: divisions are what takes the time.
        (self.narrow * cauchy + self.wide * t5) / (t5 * cauchy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bets in many states: after some log-ratios of some size.
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
            // By substituting the tangent.
            let steps = 20_000;
            let at = |i: i32| (f64::from(i) + 0.5) / f64::from(steps) * std::f64::consts::FRAC_PI_2;
            let term = |angle: f64| noise.density(angle.tan()) / angle.cos().powi(2);
            let half: f64 =
                (0..steps).map(|i| term(at(i))).sum::<f64>() / f64::from(steps) * std::f64::consts::FRAC_PI_2;
            assert!((2.0 * half - 1.0).abs() < 1e-6, "{half}");
        }
    }
}
