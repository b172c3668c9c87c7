//! Tails of a Beta distribution on a logarithmic scale, each relative to the density where the tail begins.
//!
//! The scaled upper tail of Beta(a, b) at the rate `p`, with `q = 1−p`, is
//!
//! ```text
//! U(a, b, p) = ∫_p^1 x^(a−1) (1−x)^(b−1) dx / (p^a q^b)
//!            = ∫_0^∞ exp(e·u − (a+b)·k(u)) du,     e = a − (a+b)p,   k(u) = ln(q + p·exp(u)) − p·u
//! ```
//!
//! (the second form by the log-odds, `u = logit(x) − logit(p)`). Nothing in it is huge or tiny where `e ≤ 0`, so it is
//! evaluated directly, in one of two ways:
//!
//! * the even part of Gauss's continued fraction (DLMF 8.17.22) in the form of DiDonato and Morris, *Significant digit
//!   computation of the incomplete beta function ratios*, 1992, by the modified Lentz algorithm;
//! * where that is slow, near the centre of a narrow distribution and for few successes at a tiny rate, the second form
//!   by Gauss–Legendre quadrature with 32 nodes a panel.
//!
//! Where `e > 0` the upper tail is the larger one, and it is the whole less the scaled lower tail `U(b, a, q)`. The whole,
//! `B(a,b) / (p^a q^b)`, is computed in Loader's deviance form ([`crate::stirling_remainder`]).
//!
//! The error of each logarithm is at most `1e-12 + 4e-15·D`, with `D` the deviance `(a+b)·KL(a/(a+b) ‖ p)`, for sums
//! `a+b` up to 2^53 and rates down to 1e-15 on either side; the tests compare it with 50 digits.

use crate::deviance::stirling_remainder;
use crate::rate::Rate;
use std::f64::consts::TAU;

/// The shape of a Beta distribution and the rate at which its tail begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BetaTail {
    /// The first shape: successes, with those of the prior.
    pub a: f64,
    /// The second shape: failures, with those of the prior.
    pub b: f64,
    /// Where the tail begins.
    pub rate: Rate,
    /// `a − (a+b)·rate`, which callers know better than as a difference of rounded numbers.
    pub excess: f64,
}

impl BetaTail {
    /// The tail below the rate, as an upper one.
    pub fn mirrored(self) -> BetaTail {
        BetaTail { a: self.b, b: self.a, rate: self.rate.mirrored(), excess: -self.excess }
    }

    /// `ln U`, the logarithm of the scaled upper tail.
    pub fn log_upper(self) -> f64 {
        if self.excess <= 0.0 {
            return self.log_smaller();
        }
        let log_whole = self.log_whole();
        log_whole + libm::log1p(-libm::exp(self.mirrored().log_smaller() - log_whole))
    }

    /// `ln [B(a,b) / (p^a q^b)]`, both scaled tails together.
    pub fn log_whole(self) -> f64 {
        let BetaTail { a, b, rate, excess } = self;
        let remainders = stirling_remainder(a) + stirling_remainder(b) - stirling_remainder(a + b);
        rate.deviance(a, b, excess) + remainders + 0.5 * libm::log(TAU / a * ((a + b) / b))
    }

    /// `ln U` where the rate is at or above the mean.
    fn log_smaller(self) -> f64 {
        let Rate { success: p, failure: q } = self.rate;
        let expected = (self.a + self.b) * p;
        let variance = expected * q;
        let is_narrow_and_central = variance > 1e3 && self.excess * self.excess < 9.0 * variance;
        let is_sparse = p < 0.1 && expected < 5.0;
        let tail = if is_narrow_and_central || is_sparse { self.by_quadrature() } else { self.by_continued_fraction() };
        libm::log(tail)
    }

    /// `U = α₀/(β₀ + α₁/(β₁ + …))`, whose terms hold the excess itself; a few hundred at most where it is used.
    fn by_continued_fraction(self) -> f64 {
        let BetaTail { a, b, rate: Rate { success: p, failure: q }, excess } = self;
        let beta = |n: f64, shrink: f64| {
            n + n * shrink * q + (b + n) / (b + 2.0 * n + 1.0) * (1.0 - excess + n * (1.0 + p))
        };
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

    /// `U` as the integral over the log-odds, cut off where the integrand is below exp(−40).
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

    /// `e·u − (a+b)·k(u)`. With P the rate whose log-odds are `u` above p's, `k(u) = KL(p ‖ P)`.
    fn log_integrand(self, u: f64) -> f64 {
        let Rate { success: p, failure: q } = self.rate;
        let trials = self.a + self.b;
        let (tilted, difference) = tilt(self.rate, u);
        self.excess * u - tilted.deviance(trials * p, trials * q, -trials * difference)
    }

    /// About where the logarithm of the integrand, which is concave, reaches −45.
    fn cut_off(self) -> f64 {
        const DEPTH: f64 = 45.0;
        let trials = self.a + self.b;
        let variance = trials * self.rate.success * self.rate.failure;
        // The root if k were quadratic; exp(-740) is about the least number above zero.
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

/// The rate whose log-odds are `u ≥ 0` above those of `rate`, and the difference of the two rates.
fn tilt(rate: Rate, u: f64) -> (Rate, f64) {
    let Rate { success: p, failure: q } = rate;
    let shrunk = q * libm::exp(-u);
    let total = p + shrunk;
    (Rate { success: p / total, failure: shrunk / total }, -p * q * libm::expm1(-u) / total)
}

/// The singularities of the integrand are π away from the real axis: 32 nodes on this width leave out less than 1e-13.
const PANEL_WIDTH: f64 = 6.0;

/// The positive nodes of Gauss–Legendre quadrature with 32 nodes, and their weights.
const GAUSS_LEGENDRE: [(f64, f64); 16] = [
    (0.048307665687738316235, 0.096540088514727800567),
    (0.14447196158279649349, 0.095638720079274859419),
    (0.23928736225213707454, 0.093844399080804565639),
    (0.33186860228212764978, 0.091173878695763884713),
    (0.42135127613063534536, 0.087652093004403811143),
    (0.50689990893222939002, 0.083311924226946755222),
    (0.58771575724076232904, 0.078193895787070306472),
    (0.66304426693021520098, 0.072345794108848506225),
    (0.73218211874028968039, 0.065822222776361846838),
    (0.79448379596794240696, 0.058684093478535547145),
    (0.84936761373256997013, 0.050998059262376176196),
    (0.89632115576605212397, 0.042835898022226680657),
    (0.93490607593773968917, 0.034273862913021433103),
    (0.96476225558750643077, 0.025392065309262059456),
    (0.9856115115452683354, 0.016274394730905670605),
    (0.99726386184948156354, 0.0070186100094700966004),
];

#[cfg(test)]
mod tests;
