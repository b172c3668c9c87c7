//! SSE2: two numbers at a time, on every x86-64 CPU.

use core::arch::x86_64::*;

use super::register::{MAX_LANES, Register, with_instructions};
use crate::standard;

/// 2^995, the largest factor that [`Register::product_error`] can split without an overflow.
const LARGEST_FACTOR: f64 = f64::from_bits((1023 + 995) << 52);
/// 2^1021. If a product is not larger, no product of the factors' halves overflows.
const LARGEST_PRODUCT: f64 = f64::from_bits((1023 + 1021) << 52);
/// 2^−968. If a product is not smaller, no product of the factors' halves underflows.
const SMALLEST_PRODUCT: f64 = f64::from_bits((1023 - 968) << 52);

impl Register for __m128d {
    const LANES: usize = 2;

    with_instructions! { "sse2"
        unsafe fn splat(value: f64) -> Self { _mm_set1_pd(value) }
        unsafe fn counting() -> Self { _mm_setr_pd(0.0, 1.0) }

        unsafe fn load_f64(from: *const f64) -> Self {
            // SAFETY: the caller promises two readable numbers.
            unsafe { _mm_loadu_pd(from) }
        }

        unsafe fn load_f32(from: *const f32) -> Self {
            // SAFETY: the caller promises two readable numbers, which have eight bytes. They need no alignment.
            _mm_cvtps_pd(_mm_castsi128_ps(unsafe { _mm_loadu_si64(from.cast()) }))
        }

        unsafe fn load_partial_f64(from: *const f64, count: usize) -> Self {
            // SAFETY: the caller promises the first number, and both if there are two.
            unsafe { if count < 2 { _mm_setr_pd(*from, -0.0) } else { _mm_loadu_pd(from) } }
        }

        unsafe fn load_partial_f32(from: *const f32, count: usize) -> Self {
            // SAFETY: as above.
            unsafe { if count < 2 { _mm_setr_pd(f64::from(*from), -0.0) } else { Self::load_f32(from) } }
        }

        unsafe fn store(self, to: *mut f64) {
            // SAFETY: the caller promises two writable numbers.
            unsafe { _mm_storeu_pd(to, self) }
        }

        unsafe fn store_partial(self, to: *mut f64, count: usize) {
            // SAFETY: the caller promises room for the first number, and for both if there are two.
            unsafe { if count < 2 { _mm_storel_pd(to, self) } else { _mm_storeu_pd(to, self) } }
        }

        unsafe fn add(self, other: Self) -> Self { _mm_add_pd(self, other) }
        unsafe fn sub(self, other: Self) -> Self { _mm_sub_pd(self, other) }
        unsafe fn mul(self, other: Self) -> Self { _mm_mul_pd(self, other) }
        unsafe fn mul_add(self, factor: Self, other: Self) -> Self { _mm_add_pd(_mm_mul_pd(self, factor), other) }

        unsafe fn mul_sub(self, factor: Self, other: Self) -> Self {
            // SAFETY: SSE2 is part of x86-64.
            let [a, b, c] = unsafe { [self.to_lanes(), factor.to_lanes(), other.to_lanes()] };
            let lane = |i: usize| standard::mul_add(a[i], b[i], -c[i]);
            _mm_setr_pd(lane(0), lane(1))
        }

        unsafe fn product_error(self, factor: Self, product: Self) -> Self {
            let magnitude = |x| _mm_andnot_pd(_mm_set1_pd(-0.0), x);
            let (left, right, size) = (magnitude(self), magnitude(factor), magnitude(product));
            let is_large = _mm_cmpge_pd(size, _mm_set1_pd(SMALLEST_PRODUCT));
            let is_exact = _mm_or_pd(is_large, _mm_cmpeq_pd(_mm_min_pd(left, right), _mm_setzero_pd()));
            let fits = _mm_cmple_pd(_mm_max_pd(left, right), _mm_set1_pd(LARGEST_FACTOR));
            let is_small = _mm_cmple_pd(size, _mm_set1_pd(LARGEST_PRODUCT));
            if _mm_movemask_pd(_mm_and_pd(is_exact, _mm_and_pd(fits, is_small))) != 0b11 {
                // SAFETY: SSE2 is part of x86-64.
                return unsafe { self.mul_sub(factor, product) };
            }
            // Veltkamp's split of a number into two halves of at most 26 bits, and Dekker's product of the halves. The
            // first sum is never −0.0, so an error of zero is +0.0, as from a fused multiply-add.
            let halves = |x| {
                let scaled = _mm_mul_pd(x, _mm_set1_pd(134_217_729.0));
                let upper = _mm_sub_pd(scaled, _mm_sub_pd(scaled, x));
                (upper, _mm_sub_pd(x, upper))
            };
            let ((a, b), (c, d)) = (halves(self), halves(factor));
            let error = _mm_sub_pd(_mm_mul_pd(a, c), product);
            let error = _mm_add_pd(_mm_add_pd(error, _mm_mul_pd(b, c)), _mm_mul_pd(a, d));
            _mm_add_pd(error, _mm_mul_pd(b, d))
        }

        unsafe fn by_magnitude(self, other: Self) -> (Self, Self) {
            let sign = _mm_set1_pd(-0.0);
            let other_larger = _mm_cmplt_pd(_mm_andnot_pd(sign, self), _mm_andnot_pd(sign, other));
            let swapped = _mm_and_pd(_mm_xor_pd(self, other), other_larger);
            (_mm_xor_pd(self, swapped), _mm_xor_pd(other, swapped))
        }

        unsafe fn to_lanes(self) -> [f64; MAX_LANES] {
            let mut lanes = [0.0; MAX_LANES];
            // SAFETY: the array has room for two numbers.
            unsafe { _mm_storeu_pd(lanes.as_mut_ptr(), self) };
            lanes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error must have the bits of a fused multiply-add also if the halves of the factors would overflow or
    /// underflow.
    #[test]
    fn the_error_of_a_product_is_exact() {
        let powers = [-1074, -1022, -1000, -540, -490, -484, -1, 0, 1, 27, 510, 511, 995, 996, 1022, 1023];
        let scales = powers.map(|power: i32| 2_f64.powi(power / 2) * 2_f64.powi(power - power / 2));
        let significands = [1.0, 1.1, 1.5 + f64::EPSILON, 2.0 - f64::EPSILON, 1.0 + 2_f64.powi(-26), -1.3];
        let mut numbers: Vec<f64> = scales.iter().flat_map(|scale| significands.map(|x| x * scale)).collect();
        numbers.extend([0.0, -0.0, f64::MAX, f64::INFINITY, f64::NAN]);
        for &a in &numbers {
            for &b in &numbers {
                let product = a * b;
                // SAFETY: SSE2 is part of x86-64.
                let lanes = unsafe {
                    let [left, right] = [_mm_setr_pd(a, 1.1), _mm_setr_pd(b, 1.3)];
                    left.product_error(right, _mm_mul_pd(left, right)).to_lanes()
                };
                let expected = [(a, b, product), (1.1, 1.3, 1.1 * 1.3)].map(|(a, b, p)| standard::mul_add(a, b, -p));
                for (seen, expected) in lanes.into_iter().zip(expected) {
                    let is_same = seen.to_bits() == expected.to_bits() || seen.is_nan() && expected.is_nan();
                    assert!(is_same, "{a:e} × {b:e}: {seen:e} instead of {expected:e}");
                }
            }
        }
    }
}
