//! Kernels with AVX-512 for eight numbers at a time.

use core::arch::asm;
use core::arch::x86_64::*;

use super::arch::{distances_entry, entries, exact_entry};
use crate::sum::exact::{Exponents, UnitSum};
use crate::sum::method::OnMultipliers;
use crate::sum::vector::{Fma, Vector, Widen, Words};

entries!(__m512d, target_feature(enable = "avx512f,avx512dq"));
exact_entry!(__m512d, target_feature(enable = "avx512f,avx512dq"));
distances_entry!(__m512d, target_feature(enable = "avx512f,avx512dq"));

impl Vector for __m512d {
    type Part = Self;
    type Subtraction = OnMultipliers<__m512d>;

    #[inline(always)]
    fn parts(&mut self) -> &mut [Self] {
        core::slice::from_mut(self)
    }

    /// Converts the numbers to 64-bit integers, eight per cycle, and sums the integers, because integer additions are
    /// exact. With doubles, an exact addition would need three more operations.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn sum_units_f32(xs: &[f32], unit: i32) -> Option<UnitSum> {
        let mut sums = UnitSums {
            scale: _mm512_set1_ps(power_of_two(-unit)),
            sums: [[_mm512_setzero_si512(); 2]; 2],
            about: [_mm512_setzero_ps(); 2],
            greatest: _mm512_set1_epi32(-1),
            least: _mm512_set1_epi32(-1),
        };
        let (rounds, rest) = xs.as_chunks::<32>();
        for round in rounds {
            for i in 0..2 {
                // SAFETY: the round has 32 numbers.
                push(&mut sums, i, unsafe { _mm512_loadu_ps(round.as_ptr().add(16 * i)) });
            }
        }
        for piece in rest.chunks(16) {
            let mask = ((1_u32 << piece.len()) - 1) as __mmask16;
            // SAFETY: only the numbers of the piece are read.
            push(&mut sums, 0, unsafe { _mm512_maskz_loadu_ps(mask, piece.as_ptr()) });
        }
        let [[a, b], [c, d]] = sums.sums;
        let low = _mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d));
        Some(UnitSum {
            low: _mm512_reduce_add_epi64(low),
            about: f64::from(_mm512_reduce_add_ps(_mm512_add_ps(sums.about[0], sums.about[1]))),
            exponents: Exponents::from_f32(_mm512_reduce_max_epi32(sums.greatest), _mm512_reduce_min_epu32(sums.least)),
        })
    }
}

/// The running state of [`Vector::sum_units_f32`]. The fields `sums` and `about` have two entries each, to which
/// registers are added alternately. Fewer additions then wait for each other.
struct UnitSums {
    scale: __m512,
    /// Two pairs of sums, used in turn. The first sum of a pair is of the lower halves of registers, the second of the
    /// upper halves. Each lane counts multiples of the unit.
    sums: [[__m512i; 2]; 2],
    about: [__m512; 2],
    /// The greatest magnitude so far in each lane: its bits as an integer, minus one. A zero becomes −1, which is below
    /// all others in this signed comparison.
    greatest: __m512i,
    /// The least magnitude so far in each lane: its bits as an integer, minus one. A zero becomes the greatest integer
    /// in this unsigned comparison, so zeros do not count.
    least: __m512i,
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn push(to: &mut UnitSums, i: usize, numbers: __m512) {
    let magnitudes = _mm512_castps_si512(_mm512_abs_ps(numbers));
    let less_one = _mm512_sub_epi32(magnitudes, _mm512_set1_epi32(1));
    to.greatest = _mm512_max_epi32(to.greatest, less_one);
    to.least = _mm512_min_epu32(to.least, less_one);
    let units = _mm512_mul_ps(numbers, to.scale);
    to.about[i] = _mm512_add_ps(to.about[i], units);
    let [low, high] = &mut to.sums[i];
    *low = _mm512_add_epi64(*low, _mm512_cvtps_epi64(_mm512_castps512_ps256(units)));
    *high = _mm512_add_epi64(*high, _mm512_cvtps_epi64(_mm512_extractf32x8_ps::<1>(units)));
}

/// Returns 2^exponent, for exponents from −126 to 127.
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

impl Fma for __m512d {}

impl Words for __m512d {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn load_bytes(from: *const u8) -> Self {
        // SAFETY: the caller promises 64 readable bytes.
        unsafe { _mm512_loadu_pd(from.cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn xor(self, other: Self) -> Self {
        _mm512_xor_pd(self, other)
    }
}

impl Widen for __m512d {
    type Poison = [__m512; 2];

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn no_poison() -> [__m512; 2] {
        [_mm512_setzero_ps(); 2]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn all_finite(poison: [__m512; 2]) -> bool {
        _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(poison[0], poison[1]) == 0
    }

    /// Uses two kinds of execution units in parallel. Half of the numbers are converted, eight per cycle. The other
    /// half are widened by the integer units, which would otherwise be idle.
    ///
    /// Shifting the exponent and the mantissa of an `f32` up by 29 bits gives those of an `f64` that is 2^896 times
    /// smaller. This holds for subnormals too. The sign bit becomes the top bit of the `f64`. Shifted infinities and
    /// NaN look like finite numbers. To detect them, the original numbers are multiplied by 0 and added to `poison`,
    /// which then becomes NaN.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn sum_block_f32(from: *const f32, poison: &mut [__m512; 2]) -> Self {
        const SCALE: f64 = f64::from_bits((896 + 1023) << 52);
        let sign_and_number = _mm512_set1_epi64((0x8fff_ffff_e000_0000_u64).cast_signed());
        let mut up = _mm512_set1_epi64(1 << 29);
        // SAFETY: the assembly has no instruction. It hides the value from the compiler, which would turn the
        // multiplication into two shifts.
        unsafe {
            asm!("/* {0} */", inlateout(zmm_reg) up, options(pure, nomem, nostack, preserves_flags));
        }
        let mut shifted = [_mm512_setzero_pd(); 16];
        let mut converted = [_mm512_setzero_pd(); 16];
        for i in 0..8 {
            // SAFETY: the caller promises 256 readable numbers; these are the first 128.
            let singles = unsafe { _mm512_loadu_ps(from.add(16 * i)) };
            poison[i % 2] = _mm512_fmadd_ps(singles, _mm512_setzero_ps(), poison[i % 2]);
            let pairs = _mm512_castps_si512(singles);
            let odd = _mm512_srai_epi64::<3>(pairs);
            let even = _mm512_mul_epi32(pairs, up);
            shifted[2 * i] = _mm512_castsi512_pd(_mm512_and_si512(odd, sign_and_number));
            shifted[2 * i + 1] = _mm512_castsi512_pd(_mm512_and_si512(even, sign_and_number));
        }
        for (i, eight) in converted.iter_mut().enumerate() {
            // SAFETY: as above; these are the last 128.
            *eight = _mm512_cvtps_pd(unsafe { _mm256_loadu_ps(from.add(128 + 8 * i)) });
        }
        for width in [8, 4, 2] {
            for i in 0..width {
                let first = 2 * i - i % 2;
                shifted[i] = _mm512_add_pd(shifted[first], shifted[first + 2]);
                converted[i] = _mm512_add_pd(converted[first], converted[first + 2]);
            }
        }
        // Puts sixteen numbers, those at even and those at odd indices, into the order of the slice.
        let [odd, even] = [shifted[0], shifted[1]];
        let first = _mm512_permutex2var_pd(even, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), odd);
        let last = _mm512_permutex2var_pd(even, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), odd);
        let scale = _mm512_set1_pd(SCALE);
        _mm512_add_pd(_mm512_fmadd_pd(first, scale, converted[0]), _mm512_fmadd_pd(last, scale, converted[1]))
    }
}
