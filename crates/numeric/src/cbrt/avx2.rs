//! Exact cube roots with AVX2 and FMA, four at a time.

use core::arch::x86_64::*;

use super::exact::cbrt_u64;
use crate::simd::to_doubles;

/// Writes the cube root of each number, rounded down. Stops at the end of the shorter slice.
///
/// The root is estimated in doubles, as with AVX-512:
///
/// 1. The number is divided by a power of eight, so that a number m from 1 to 8 is left. The root of the power of eight
///    is a power of two.
/// 2. A parabola on each half of an octave gives m^(−1/3), off by less than 2^−11.
/// 3. The square of this value, multiplied by m, approximates m^(1/3). One step of third order reduces the error to
///    less than 2^−30.
///
/// `NUDGE` raises the estimate, so that it is never below the root and at most one above it. One comparison of the
/// estimate's cube with the number then corrects it.
///
/// Each step is done for 64 numbers before the next one. In a single loop its instructions would wait for the results
/// of the previous step, and a CPU looks ahead too little to do the next numbers meanwhile.
#[target_feature(enable = "avx2,fma")]
pub fn each(numbers: &[u64], roots: &mut [u32]) {
    let count = numbers.len().min(roots.len());
    let (fours, rest) = numbers[..count].as_chunks::<4>();
    let (to, rest_to) = roots[..count].as_chunks_mut::<4>();
    let mut scaled = [Scaled { mantissa: _mm256_setzero_si256(), scale: _mm256_setzero_si256() }; FOURS];
    for (fours, to) in fours.chunks(FOURS).zip(to.chunks_mut(FOURS)) {
        for (four, scaled) in fours.iter().zip(&mut scaled) {
            // SAFETY: four numbers are readable at `four`.
            *scaled = scale(unsafe { _mm256_loadu_si256(four.as_ptr().cast()) });
        }
        for (scaled, to) in scaled.iter().zip(&mut *to) {
            // SAFETY: four roots are writable at `to`.
            unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), estimate(scaled)) };
        }
        for (four, to) in fours.iter().zip(to) {
            // SAFETY: four numbers are readable at `four`, and four roots readable and writable at `to`.
            unsafe {
                let root = _mm_loadu_si128(to.as_ptr().cast());
                let root = corrected(root, _mm256_loadu_si256(four.as_ptr().cast()));
                _mm_storeu_si128(to.as_mut_ptr().cast(), root);
            }
        }
    }
    for (number, root) in rest.iter().zip(rest_to) {
        *root = cbrt_u64(*number);
    }
}

/// Number of registers of numbers that go through each step together.
const FOURS: usize = 16;

/// Four numbers, each divided by a power of eight.
#[derive(Clone, Copy)]
struct Scaled {
    /// The quotients as doubles from 1 to 8.
    mantissa: __m256i,
    /// The roots of the powers of eight. They are in the place of a double's exponent, without its bias.
    scale: __m256i,
}

/// Divides each number by a power of eight.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn scale(x: __m256i) -> Scaled {
    let number = _mm256_castpd_si256(to_doubles(x));
    // The biased exponent is 1023 = 3·341 more than the exponent, so `third` is 341 more than a third of the exponent.
    // The product's upper 16 bits are exact up to 2^14. For the number zero, `third` is zero; its root is rounded to
    // zero at the end.
    let third = _mm256_mulhi_epu16(_mm256_srli_epi64::<52>(number), _mm256_set1_epi64x(21_846));
    let power = _mm256_slli_epi64::<52>(_mm256_mullo_epi16(third, _mm256_set1_epi64x(3)));
    Scaled {
        mantissa: _mm256_add_epi64(_mm256_sub_epi64(number, power), _mm256_set1_epi64x(1023 << 52)),
        scale: _mm256_slli_epi64::<52>(_mm256_sub_epi64(third, _mm256_set1_epi64x(341))),
    }
}

/// Returns an estimate of each root: the root itself, or one more.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn estimate(scaled: &Scaled) -> __m128i {
    // The index of the half octave is in the last three bits of each lane's upper half. So the permutation writes the
    // upper half of a coefficient there. The lower half may be of another coefficient, which changes the coefficient by
    // less than 2^−20 of itself.
    let half_octave = _mm256_srli_epi32::<19>(scaled.mantissa);
    let m = _mm256_castsi256_pd(scaled.mantissa);
    let [a, b, c] = INVERSE_ROOTS.map(|column| {
        let [c0, c1, c2, c3, c4, c5, c6, c7] = column.map(|coefficient| (coefficient.to_bits() >> 32) as i32);
        let column = _mm256_setr_epi32(c0, c1, c2, c3, c4, c5, c6, c7);
        _mm256_castsi256_pd(_mm256_permutevar8x32_epi32(column, half_octave))
    });
    let inverse = _mm256_fmadd_pd(_mm256_fmadd_pd(c, m, b), m, a);
    let root = _mm256_mul_pd(_mm256_mul_pd(m, inverse), inverse);
    // If `inverse` were exact, `near_one` = inverse³ · m would be 1. The corrected root is root · near_one^(−2/3).
    let near_one = _mm256_mul_pd(root, inverse);
    let correction = _mm256_fmadd_pd(_mm256_set1_pd(5.0 / 9.0), near_one, _mm256_set1_pd(-16.0 / 9.0));
    let correction = _mm256_fmadd_pd(correction, near_one, _mm256_set1_pd(20.0 / 9.0 + NUDGE));
    // Multiplies by the power of two, by adding to the exponent.
    let root = _mm256_castpd_si256(_mm256_mul_pd(root, correction));
    _mm256_cvttpd_epi32(_mm256_castsi256_pd(_mm256_add_epi64(root, scaled.scale)))
}

/// Subtracts one from each estimate whose cube is greater than the number.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn corrected(estimate: __m128i, x: __m256i) -> __m128i {
    let root = _mm256_cvtepu32_epi64(estimate);
    let square = _mm256_mul_epu32(root, root);
    let upper = _mm256_slli_epi64::<32>(_mm256_mul_epu32(_mm256_srli_epi64::<32>(square), root));
    let cube = _mm256_add_epi64(upper, _mm256_mul_epu32(square, root));
    // As in `cbrt_u64`, the difference is right even if the cube wraps around. The comparison yields −1.
    let is_over = _mm256_cmpgt_epi64(_mm256_sub_epi64(cube, x), _mm256_setzero_si256());
    let is_over = _mm256_castsi256_ps(is_over);
    let (first, last) = (_mm256_castps256_ps128(is_over), _mm256_extractf128_ps::<1>(is_over));
    _mm_add_epi32(estimate, _mm_castps_si128(_mm_shuffle_ps::<0b10_00_10_00>(first, last)))
}

/// Relative amount by which each estimate of a root is raised. It exceeds the estimate's error, so no raised estimate
/// is below the root. Even at the largest root, 2^21.4, a raised estimate is at most one too high.
const NUDGE: f64 = 1e-8;

/// Constant, linear and quadratic coefficients of the parabolas for m^(−1/3). Each parabola passes through the function
/// at the Chebyshev points of its interval. The intervals are in the order of the last two bits of the
/// biased exponent and the first bit of the mantissa. They begin at 2, 3, 4 and 6; two do not occur; the last two begin
/// at 1 and 1.5.
const INVERSE_ROOTS: [[f64; 8]; 3] = [
    [
        1.1533076263869846,
        1.0277726731896486,
        0.915380869684823,
        0.8157437113027104,
        0.0,
        0.0,
        1.453076555489253,
        1.2949124254583608,
    ],
    [
        -0.233398099962833,
        -0.1477060942977626,
        -0.09262409735209483,
        -0.058617202367596266,
        0.0,
        0.0,
        -0.5881263582972809,
        -0.37219603480701485,
    ],
    [
        0.02671902771970801,
        0.012067952070275112,
        0.005301726588728973,
        0.002394584976432116,
        0.0,
        0.0,
        0.13465546182713845,
        0.060818667369847645,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine may choose AVX-512 instead, so that the plain call does not show whether this code is right.
    #[test]
    fn every_cube_and_its_neighbours_with_avx2() {
        if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
            return;
        }
        let cubes = (1..=2_642_245_u64).map(|root| root.pow(3));
        let next = cubes.flat_map(|cube| [cube - 1, cube, cube + 1]).chain([u64::MAX - 1, u64::MAX]);
        let numbers: Vec<u64> = next.collect();
        let mut roots = vec![0; numbers.len()];
        // SAFETY: the machine has the instructions.
        unsafe { each(&numbers, &mut roots) };
        for (&number, &root) in numbers.iter().zip(&roots) {
            let [below, above] = [u128::from(root).pow(3), (u128::from(root) + 1).pow(3)];
            assert!(below <= u128::from(number) && u128::from(number) < above, "{number}: {root}");
        }
    }
}
