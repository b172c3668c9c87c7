//! Kernels with AVX2 and with AVX-512.

use core::arch::x86_64::*;

use super::sum::{BLOCK, LANES};
use crate::features::detected;

/// Adds the selected numbers to the partial sums, with AVX2. Panics if the machine lacks AVX2.
pub fn avx2(blocks: &[[f64; BLOCK]], mask: &[u64], partial: &mut [f64; LANES]) {
    assert!(detected!("avx2"), "this machine does not have AVX2");
    // SAFETY: the machine has AVX2.
    unsafe { add_avx2(blocks, mask, partial) }
}

/// Adds the selected numbers to the partial sums, with AVX-512. Panics if the machine lacks AVX-512.
pub fn avx512(blocks: &[[f64; BLOCK]], mask: &[u64], partial: &mut [f64; LANES]) {
    assert!(detected!("avx512f"), "this machine does not have AVX-512");
    // SAFETY: the machine has AVX-512F.
    unsafe { add_avx512(blocks, mask, partial) }
}

#[target_feature(enable = "avx2")]
fn add_avx2(blocks: &[[f64; BLOCK]], mask: &[u64], partial: &mut [f64; LANES]) {
    const WIDTH: usize = 4;
    const REGISTERS: usize = LANES / WIDTH;
    let (registers, _) = partial.as_chunks_mut::<WIDTH>();
    // SAFETY: each array has four numbers.
    let mut sums: [_; REGISTERS] =
        core::array::from_fn(|register| unsafe { _mm256_loadu_pd(registers[register].as_ptr()) });
    let bit_of_lane = _mm256_setr_epi64x(1, 2, 4, 8);
    for (block, word) in blocks.iter().zip(mask) {
        for (group, numbers) in block.as_chunks::<WIDTH>().0.iter().enumerate() {
            let bits = _mm256_and_si256(_mm256_set1_epi64x((word >> (group * WIDTH)) as i64), bit_of_lane);
            let selected = _mm256_castsi256_pd(_mm256_cmpeq_epi64(bits, bit_of_lane));
            // SAFETY: the array has four numbers.
            let numbers = unsafe { _mm256_loadu_pd(numbers.as_ptr()) };
            let sum = &mut sums[group % REGISTERS];
            *sum = _mm256_add_pd(*sum, _mm256_and_pd(numbers, selected));
        }
    }
    for (sum, register) in sums.into_iter().zip(registers) {
        // SAFETY: the array has room for four numbers.
        unsafe { _mm256_storeu_pd(register.as_mut_ptr(), sum) };
    }
}

#[target_feature(enable = "avx512f")]
fn add_avx512(blocks: &[[f64; BLOCK]], mask: &[u64], partial: &mut [f64; LANES]) {
    const WIDTH: usize = 8;
    const REGISTERS: usize = LANES / WIDTH;
    let (registers, _) = partial.as_chunks_mut::<WIDTH>();
    // SAFETY: each array has eight numbers.
    let mut sums: [_; REGISTERS] =
        core::array::from_fn(|register| unsafe { _mm512_loadu_pd(registers[register].as_ptr()) });
    for (block, word) in blocks.iter().zip(mask) {
        for (group, numbers) in block.as_chunks::<WIDTH>().0.iter().enumerate() {
            let selected = (word >> (group * WIDTH)) as __mmask8;
            // SAFETY: the array has eight numbers.
            let numbers = unsafe { _mm512_loadu_pd(numbers.as_ptr()) };
            let sum = &mut sums[group % REGISTERS];
            *sum = _mm512_mask_add_pd(*sum, selected, *sum, numbers);
        }
    }
    for (sum, register) in sums.into_iter().zip(registers) {
        // SAFETY: the array has room for eight numbers.
        unsafe { _mm512_storeu_pd(register.as_mut_ptr(), sum) };
    }
}
