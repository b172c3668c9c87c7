//! Exact cube roots with AVX-512, eight at a time.

use core::arch::x86_64::*;

use super::exact::cbrt_u64;

/// Writes the cube root of each number, rounded down. Stops at the end of the shorter slice.
///
/// The root is estimated in doubles, in three steps:
///
/// 1. A parabola on each eighth of the interval 1 to 2 gives m^(−1/3) of the mantissa m, off by less than 2^−16.
/// 2. The square of this value, multiplied by m, approximates m^(1/3). One Newton step reduces the error to less than
///    2^−30.
/// 3. The product of m^(1/3) and the root of the power of two is the estimate.
///
/// `NUDGE` raises the estimate, so that it is never below the root and at most one above it. One comparison of the
/// estimate's cube with the number then corrects it.
#[target_feature(enable = "avx512f,avx512dq")]
pub fn each(numbers: &[u64], roots: &mut [u32]) {
    let count = numbers.len().min(roots.len());
    let (numbers, roots) = (&numbers[..count], &mut roots[..count]);
    let (mut from, mut to) = (numbers.chunks_exact(8), roots.chunks_exact_mut(8));
    for (eight, out) in (&mut from).zip(&mut to) {
        // SAFETY: eight numbers are readable at `eight`, and eight roots writable at `out`.
        unsafe {
            let root = eight_roots(_mm512_loadu_epi64(eight.as_ptr().cast()));
            _mm256_storeu_si256(out.as_mut_ptr().cast(), root);
        }
    }
    for (number, root) in from.remainder().iter().zip(to.into_remainder()) {
        *root = cbrt_u64(*number);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn eight_roots(x: __m512i) -> __m256i {
    let number = _mm512_cvtepu64_pd(x);
    // number = mantissa · 2^exponent. The exponent of zero is −∞, and the result is then zero.
    let exponent = _mm512_getexp_pd(number);
    let mantissa = _mm512_getmant_pd::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_SRC>(number);
    let eighth = _mm512_srli_epi64::<49>(_mm512_castpd_si512(mantissa));
    let [a, b, c] = INVERSE_ROOTS.map(|column| {
        let column =
            _mm512_setr_pd(column[0], column[1], column[2], column[3], column[4], column[5], column[6], column[7]);
        _mm512_permutexvar_pd(eighth, column)
    });
    let inverse = _mm512_fmadd_pd(_mm512_fmadd_pd(c, mantissa, b), mantissa, a);
    let root = _mm512_mul_pd(_mm512_mul_pd(mantissa, inverse), inverse);
    // If `inverse` were exact, `near_one` = inverse³ · mantissa would be 1. The corrected root is root · (1 −
    // ⅔·(near_one − 1)).
    let near_one = _mm512_mul_pd(root, inverse);
    let correction = _mm512_fnmadd_pd(_mm512_set1_pd(2.0 / 3.0), near_one, _mm512_set1_pd(5.0 / 3.0 + NUDGE));
    let third = _mm512_mul_pd(exponent, _mm512_set1_pd(1.0 / 3.0 + 1e-9));
    let third = _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(third);
    let rest = _mm512_fnmadd_pd(third, _mm512_set1_pd(3.0), exponent);
    // The exponent modulo 3, which is 0, 1 or 2. Adding 2^52 moves it to the last bits of the double.
    let rest = _mm512_castpd_si512(_mm512_add_pd(rest, _mm512_set1_pd(4_503_599_627_370_496.0)));
    let [one, two, four] = [1.0, 1.259_921_049_894_873_2, 1.587_401_051_968_199_5];
    let power = _mm512_permutexvar_pd(rest, _mm512_setr_pd(one, two, four, one, one, one, one, one));
    let root = _mm512_scalef_pd(_mm512_mul_pd(_mm512_mul_pd(root, correction), power), third);
    let root = _mm512_cvttpd_epu64(root);
    let cube = _mm512_mullo_epi64(_mm512_mullo_epi64(root, root), root);
    // As in `cbrt_u64`, the difference is right even if the cube wraps around.
    let is_over = _mm512_cmpgt_epi64_mask(_mm512_sub_epi64(cube, x), _mm512_setzero_si512());
    _mm512_cvtepi64_epi32(_mm512_mask_sub_epi64(root, is_over, root, _mm512_set1_epi64(1)))
}

/// Relative amount by which each estimate of a root is raised. It exceeds the estimate's error, so no raised estimate
/// is below the root. Even at the largest root, 2^21.4, a raised estimate is at most one too high.
const NUDGE: f64 = 1e-8;

/// Constant, linear and quadratic coefficients of the parabolas for x^(−1/3) on each eighth of the interval 1 to 2.
/// Each parabola passes through the function at the Chebyshev points.
const INVERSE_ROOTS: [[f64; 8]; 3] = [
    [
        1.5252435018071293,
        1.4695747981646294,
        1.4212474817048801,
        1.378716953027033,
        1.3408651202088986,
        1.3068588254944886,
        1.276062054580065,
        1.2479792574532091,
    ],
    [
        -0.7184870736628568,
        -0.6192688393626911,
        -0.5417860362119679,
        -0.47981833447517375,
        -0.4292772072830815,
        -0.3873724403433041,
        -0.35213926156600234,
        -0.3221569514308107,
    ],
    [
        0.19323449048044986,
        0.1490142244846507,
        0.11795096765005562,
        0.09537513484925365,
        0.07850163903843115,
        0.06559061831336531,
        0.05551238838021778,
        0.04750907626566923,
    ],
];
