//! Loader's deviance form of the binomial probability, in which no terms cancel, however many trials there are.
//!
//! With `δ` the remainder of Stirling's formula, `D` the deviance and `f = n − s`,
//!
//! ```text
//! ln C(n,s) p^s (1−p)^f  =  δ(n) − δ(s) − δ(f) − D + ½ ln(n / (2π s f))
//! D = bd0(s, np) + bd0(f, n(1−p)),   bd0(x, m) = x ln(x/m) + m − x
//! ```
//!
//! The textbook sum of log-factorials and `s ln p + f ln(1−p)` subtracts numbers near `n ln n`. At 2^48 trials a double
//! is then wrong by tenths. Here the only subtraction of large numbers is `s − np`, which [`excess`] computes almost
//! exactly.
//!
//! With `A = a+s`, `B = b+f`, `N = r+n`, `a = rp` and `b = r(1−p)` the same parts give the beta-binomial likelihood
//! ratio, because `A − Np = s − np` for every `r`:
//!
//! ```text
//! ln [ B(A,B) / B(a,b) / p^s (1−p)^f ]
//!     = D(A, B, p, s − np) + δ(A) + δ(B) − δ(N) − δ(a) − δ(b) + δ(r) + ½ ln(N a b / (A B r))
//! ```
//!
//! Catherine Loader, *Fast and Accurate Computation of Binomial Probabilities*, 2000.

use std::f64::consts::TAU;

/// The smallest argument for which the asymptotic series of [`ASYMPTOTIC`] has an error of at most 2e-18.
const ASYMPTOTIC_FROM: f64 = 12.0;

/// The coefficients of `n^(1−2k)` in `δ(n)` for k = 7, …, 1: `B(2k) / (2k (2k−1))` with the Bernoulli numbers B.
const ASYMPTOTIC: [f64; 7] =
    [1.0 / 156.0, -691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0];

/// Returns the remainder of Stirling's formula, `δ(n) = ln Γ(n+1) − [½ ln(2πn) + n ln n − n]`, for real `n > 0`. It is
/// NaN below 0.
///
/// The error is at most `1e-15 · max(1, δ(n))`, and at most 1e-16 from `n = 1` on. The remainder falls from infinity at
/// 0 through `δ(1) = 0.081` to about `1/(12n)`. Arguments that are not whole come from Beta distributions.
///
/// From 12 on the function uses the asymptotic series; below 12 it uses steps of `δ(n) − δ(n+1) = (n+½) ln(1+1/n) − 1`.
///
/// ```
/// let ln_factorial_of_5 = 0.5 * (std::f64::consts::TAU * 5.0).ln() + 5.0 * 5f64.ln() - 5.0
///     + ascertain_stats::stirling_remainder(5.0);
/// assert!((ln_factorial_of_5 - 120f64.ln()).abs() < 1e-14);
/// ```
pub fn stirling_remainder(n: f64) -> f64 {
    if n < 0.0 {
        return f64::NAN;
    }
    let mut shifted = n;
    let mut steps = 0.0;
    while shifted < ASYMPTOTIC_FROM {
        steps += remainder_step(shifted);
        shifted += 1.0;
    }
    let inverse_square = 1.0 / (shifted * shifted);
    let series = ASYMPTOTIC.iter().fold(0.0, |sum, c| sum * inverse_square + c);
    series / shifted + steps
}

/// Returns `δ(n) − δ(n+1)`. With `y = 1/(2n+1)` it is `artanh(y)/y − 1`, all of whose terms are positive.
fn remainder_step(n: f64) -> f64 {
    if n < 0.5 {
        return (n + 0.5) * (libm::log1p(n) - libm::log(n)) - 1.0;
    }
    let y = 1.0 / (2.0 * n + 1.0);
    artanh_tail(y * y)
}

/// Returns `artanh(y)/y − 1 = y²/3 + y⁴/5 + …` from `y²` of at most 0.26, with a relative error of about 1e-16.
fn artanh_tail(y_squared: f64) -> f64 {
    // The omitted terms are less than 2^-60 of the first one.
    let terms = match y_squared {
        ..0.002 => 6,
        ..0.02 => 10,
        ..0.12 => 19,
        _ => 30,
    };
    let series = (0..terms).rev().fold(0.0, |sum, k| sum * y_squared + 1.0 / f64::from(2 * k + 3));
    series * y_squared
}

/// Returns `bd0(x, m) = x ln(x/m) + m − x` for `x ≥ 0` and `m > 0`: half of the Poisson deviance, never negative.
///
/// The relative error is at most 2e-15 for the doubles given. If `m` itself is a rounded `n p` and `x` is close to it,
/// that rounding is the larger error; use [`binomial_deviance`] to avoid it.
///
/// ```
/// assert_eq!(ascertain_stats::bd0(7.0, 7.0), 0.0);
/// assert_eq!(ascertain_stats::bd0(0.0, 7.0), 7.0);
/// ```
pub fn bd0(x: f64, m: f64) -> f64 {
    half_deviance(x, m, x - m)
}

/// Returns `bd0(x, m)`. The caller passes the difference `d = x − m`, which it knows more precisely than a subtraction
/// of the rounded numbers would give.
fn half_deviance(x: f64, m: f64, d: f64) -> f64 {
    let u = d / m;
    if (-0.5..=1.0).contains(&u) {
        let v = u / (2.0 + u);
        return d * v + 2.0 * x * v * artanh_tail(v * v);
    }
    if x == 0.0 {
        return m;
    }
    // If `u = x/m − 1` is near -1, the logarithm of the quotient x/m is more precise. If the quotient overflows,
    // subtracting the two logarithms is precise.
    let log_ratio = match u {
        ..0.0 => libm::log(x / m),
        f64::INFINITY => libm::log(x) - libm::log(m),
        _ => libm::log1p(u),
    };
    x * log_ratio - d
}

/// Returns `successes − trials · rate`, with a relative error of at most 2^-52, although a double cannot hold the
/// product exactly.
///
/// `trials` and `successes` are whole numbers up to 2^53.
///
/// ```
/// assert_eq!(10.0 * 0.1, 1.0); // rounded, because the double 0.1 is a little more than a tenth
/// assert_eq!(ascertain_stats::excess(10.0, 1.0, 0.1), -(2f64.powi(-54)));
/// ```
pub fn excess(trials: f64, successes: f64, rate: f64) -> f64 {
    let product = trials * rate;
    let rounded_off = trials.mul_add(rate, -product);
    // The first difference is exact if both numbers are close, and nothing cancels if they are not.
    (successes - product) - rounded_off
}

/// Returns the binomial deviance `bd0(x, np) + bd0(y, n(1−p))`, which is `n · KL(x/n ‖ p)`, where `n = x + y`.
///
/// `x` successes and `y` failures need not be whole; `0 < p < 1`; `excess` is `x − np` ([`excess`]). The relative error
/// is at most 3e-15, provided that the relative errors of `x`, `y` and the excess are at most 2^-52.
///
/// ```
/// # use ascertain_stats::{binomial_deviance, excess};
/// // Five heads in five throws of a coin: 5 ln 2.
/// let deviance = binomial_deviance(5.0, 0.0, 0.5, excess(5.0, 5.0, 0.5));
/// assert!((deviance - 5.0 * 2f64.ln()).abs() < 1e-14);
/// ```
pub fn binomial_deviance(x: f64, y: f64, p: f64, excess: f64) -> f64 {
    let n = x + y;
    half_deviance(x, n * p, excess) + half_deviance(y, n * (1.0 - p), -excess)
}

/// Returns `ln C(n,s) p^s (1−p)^(n−s)`, the log-probability of `successes` in `trials` at a `rate` within (0, 1).
///
/// It is valid for whole numbers up to 2^53. The error is at most `4e-15 · (1 + |result|)`, in either direction.
///
/// ```
/// let log_probability = ascertain_stats::log_binomial(5.0, 2.0, 0.5);
/// assert!((log_probability - (10.0 / 32f64).ln()).abs() < 1e-14);
/// ```
pub fn log_binomial(trials: f64, successes: f64, rate: f64) -> f64 {
    let failures = trials - successes;
    if successes == 0.0 {
        return trials * libm::log1p(-rate);
    }
    if failures == 0.0 {
        return trials * libm::log(rate);
    }
    let deviance = binomial_deviance(successes, failures, rate, excess(trials, successes, rate));
    let remainders = stirling_remainder(trials) - stirling_remainder(successes) - stirling_remainder(failures);
    remainders - deviance - 0.5 * libm::log(TAU * failures * (successes / trials))
}
