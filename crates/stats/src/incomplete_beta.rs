//! Tails of a Beta distribution on a logarithmic scale, each relative to the density where the tail begins.
//!
//! The scaled upper tail of Beta(a, b) at the rate `p`, with `q = 1−p`, is
//!
//! ```text
//! U(a, b, p) = ∫_p^1 x^(a−1) (1−x)^(b−1) dx / (p^a q^b)
//!            = ∫_0^∞ exp(e·u − (a+b)·k(u)) du,     e = a − (a+b)p,   k(u) = ln(q + p·exp(u)) − p·u
//! ```
//!
//! The substitution `u = logit(x) − logit(p)` turns the first integral into the second. If `e ≤ 0`, the integrand
//! decreases steadily from 1, so `U` is evaluated directly, in one of two ways:
//!
//! * by the even part of Gauss's continued fraction (DLMF 8.17.22), with the modified Lentz algorithm. The form is that
//!   of DiDonato and Morris, *Significant digit computation of the incomplete beta function ratios*, 1992;
//! * if that is slow, by Gauss–Legendre quadrature of the second integral with 32 nodes per panel. The fraction is slow
//!   near the centre of a narrow distribution, and for few successes at a tiny rate.
//!
//! If `e > 0`, the upper tail is the larger one. It is then computed as the whole minus the scaled lower tail `U(b, a,
//! q)`. The whole, `B(a,b) / (p^a q^b)`, is computed in Loader's deviance form ([`crate::stirling_remainder`]).
//!
//! The error of each logarithm is at most `1e-12 + 4e-15·D`, with the deviance `D = (a+b)·KL(a/(a+b) ‖ p)`. This holds
//! for sums `a+b` up to 2^53, and for rates from 1e-15 to 1 − 1e-15. The tests compare the logarithms with references
//! that were computed with 80 digits.

use crate::deviance::stirling_remainder;
use crate::rate::Rate;
use std::f64::consts::TAU;

/// The shape of a Beta distribution, and the rate at which its tail begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BetaTail {
    /// The first shape parameter: the successes, including those of the prior.
    pub a: f64,
    /// The second shape parameter: the failures, including those of the prior.
    pub b: f64,
    /// The rate at which the tail begins.
    pub rate: Rate,
    /// The difference `a − (a+b)·rate`. Callers know it more precisely than a subtraction of the rounded numbers would
    /// give.
    pub excess: f64,
}

impl BetaTail {
    /// Returns the lower tail as the upper tail of the distribution in which successes and failures are exchanged.
    pub fn mirrored(self) -> BetaTail {
        BetaTail { a: self.b, b: self.a, rate: self.rate.mirrored(), excess: -self.excess }
    }

    /// Returns `ln U`, the logarithm of the upper tail relative to the density at `rate`, where the tail begins.
    pub fn log_upper(self) -> f64 {
        if self.excess <= 0.0 {
            return self.log_smaller();
        }
        let log_whole = self.log_whole();
        log_whole + libm::log1p(-libm::exp(self.mirrored().log_smaller() - log_whole))
    }

    /// Returns `ln [B(a,b) / (p^a q^b)]`, the logarithm of the sum of both tails, each relative to the density where it
    /// begins.
    pub fn log_whole(self) -> f64 {
        let BetaTail { a, b, rate, excess } = self;
        let remainders = stirling_remainder(a) + stirling_remainder(b) - stirling_remainder(a + b);
        rate.deviance(a, b, excess) + remainders + 0.5 * libm::log(TAU / a * ((a + b) / b))
    }

    /// Returns `ln U`, the logarithm of the scaled upper tail, for a rate at or above the mean. The upper tail is then
    /// the smaller one.
    fn log_smaller(self) -> f64 {
        let Rate { success: p, failure: q } = self.rate;
        let expected = (self.a + self.b) * p;
        let variance = expected * q;
        let is_narrow_and_central = variance > 1e3 && self.excess * self.excess < 9.0 * variance;
        let is_sparse = p < 0.1 && expected < 5.0;
        let tail = if is_narrow_and_central || is_sparse { self.by_quadrature() } else { self.by_continued_fraction() };
        libm::log(tail)
    }

    /// Returns the scaled upper tail `U` by the continued fraction `α₀/(β₀ + α₁/(β₁ + …))`, whose terms contain the
    /// excess itself. This needs a few hundred terms at most for the tails that the crate computes in this way.
    fn by_continued_fraction(self) -> f64 {
        let BetaTail { a, b, rate: Rate { success: p, failure: q }, excess } = self;
        let beta =
            |n: f64, shrink: f64| n + n * shrink * q + (b + n) / (b + 2.0 * n + 1.0) * (1.0 - excess + n * (1.0 + p));
        let mut fraction = beta(0.0, 0.0);
        let (mut c, mut d) = (fraction, 0.0);
        for n in 1..10_000 {
            let n = f64::from(n);
            let denominator = b + 2.0 * n - 1.0;
            let shrink = (a - n) / denominator;
            let alpha = n * q * q * shrink * (b + n - 1.0) * ((a + b + n - 1.0) / denominator);
            let beta = beta(n, shrink);
            d = 1.0 / (beta + alpha * d);
            c = beta + alpha / c;
            let change = c * d;
            fraction *= change;
            if (change - 1.0).abs() < f64::EPSILON {
                break;
            }
        }
        1.0 / fraction
    }

    /// Returns the scaled upper tail `U` by quadrature of its integral over the log-odds. The integral is cut off where
    /// the integrand is below exp(−40).
    fn by_quadrature(self) -> f64 {
        let width = self.cut_off();
        let panels = (width / PANEL_WIDTH).ceil();
        let half = 0.5 * width / panels;
        let mut sum = 0.0;
        for panel in 0..panels as u32 {
            let centre = half * f64::from(2 * panel + 1);
            for (node, weight) in GAUSS_LEGENDRE {
                sum += weight * libm::exp(self.log_integrand(centre - half * node));
                sum += weight * libm::exp(self.log_integrand(centre + half * node));
            }
        }
        half * sum
    }

    /// Returns the logarithm of the integrand, `e·u − (a+b)·k(u)`, where `e` is the excess. If P is the rate whose
    /// log-odds are `u` above those of p, `k(u) = KL(p ‖ P)`.
    fn log_integrand(self, u: f64) -> f64 {
        let Rate { success: p, failure: q } = self.rate;
        let trials = self.a + self.b;
        let (tilted, difference) = tilt(self.rate, u);
        self.excess * u - tilted.deviance(trials * p, trials * q, -trials * difference)
    }

    /// Returns a rough `u` for the end of the quadrature. There the logarithm of the integrand, which is concave, has
    /// fallen to about −45.
    fn cut_off(self) -> f64 {
        const DEPTH: f64 = 45.0;
        let trials = self.a + self.b;
        let variance = trials * self.rate.success * self.rate.failure;
        // At this `u` the logarithm would have fallen by `DEPTH` if k were quadratic. It is limited to 740, because
        // exp(-740) is close to the smallest number above zero.
        let quadratic = libm::sqrt(self.excess * self.excess + 2.0 * DEPTH * variance) - self.excess;
        let mut u = (2.0 * DEPTH / quadratic).min(740.0);
        for _ in 0..50 {
            let missing = DEPTH + self.log_integrand(u);
            if missing.abs() < 1.0 {
                break;
            }
            let (_, difference) = tilt(self.rate, u);
            u += missing / (trials * difference - self.excess);
        }
        u
    }
}

/// Returns the rate whose log-odds are `u ≥ 0` above those of `rate`, and the difference between the two rates.
fn tilt(rate: Rate, u: f64) -> (Rate, f64) {
    let Rate { success: p, failure: q } = rate;
    let shrunk = q * libm::exp(-u);
    let total = p + shrunk;
    (Rate { success: p / total, failure: shrunk / total }, -p * q * libm::expm1(-u) / total)
}

/// Width of a panel in log-odds. The singularities of the integrand are π away from the real axis, so 32 nodes on this
/// width have an error of less than 1e-13.
const PANEL_WIDTH: f64 = 6.0;

/// The positive nodes of Gauss–Legendre quadrature with 32 nodes, each with its weight.
const GAUSS_LEGENDRE: [(f64, f64); 16] = [
    (0.048_307_665_687_738_32, 0.096_540_088_514_727_8),
    (0.144_471_961_582_796_5, 0.095_638_720_079_274_86),
    (0.239_287_362_252_137_06, 0.093_844_399_080_804_57),
    (0.331_868_602_282_127_67, 0.091_173_878_695_763_89),
    (0.421_351_276_130_635_33, 0.087_652_093_004_403_81),
    (0.506_899_908_932_229_4, 0.083_311_924_226_946_75),
    (0.587_715_757_240_762_3, 0.078_193_895_787_070_31),
    (0.663_044_266_930_215_2, 0.072_345_794_108_848_5),
    (0.732_182_118_740_289_7, 0.065_822_222_776_361_85),
    (0.794_483_795_967_942_4, 0.058_684_093_478_535_544),
    (0.849_367_613_732_57, 0.050_998_059_262_376_175),
    (0.896_321_155_766_052_1, 0.042_835_898_022_226_68),
    (0.934_906_075_937_739_7, 0.034_273_862_913_021_43),
    (0.964_762_255_587_506_4, 0.025_392_065_309_262_06),
    (0.985_611_511_545_268_4, 0.016_274_394_730_905_67),
    (0.997_263_861_849_481_6, 0.007_018_610_009_470_096),
];

#[cfg(test)]
mod tests {
    //! Compares both tails with references of 80 digits, written by `vectors/make.py`.

    use super::*;
    use serde_json::Value;

    #[test]
    fn tails_are_as_good_as_documented() {
        let table: Value = serde_json::from_str(include_str!("../vectors/beta_tails.json")).unwrap();
        let rows = table["rows"].as_array().unwrap();
        assert!(rows.len() > 100);
        for row in rows {
            let number = |column: usize| -> f64 { row[column].as_str().unwrap().parse().unwrap() };
            let tail = BetaTail { a: number(0), b: number(1), rate: Rate::new(number(2)), excess: number(3) };
            let deviance = tail.rate.deviance(tail.a, tail.b, tail.excess);
            for (computed, exact) in [(tail.log_upper(), number(4)), (tail.mirrored().log_upper(), number(5))] {
                let error = computed - exact;
                assert!(error.abs() <= 1e-12 + 4e-15 * deviance, "{tail:?}: off by {error}");
            }
        }
    }
}
