//! The sum of selected numbers, with the choice of the kernel for this machine.

#[cfg(target_arch = "x86_64")]
use super::x86;
#[cfg(target_arch = "x86_64")]
use crate::features::detected;

/// Number of elements in a block, one for each bit of a mask's word.
pub(super) const BLOCK: usize = 64;
/// Number of independent partial sums: enough to hide the latency of an addition in registers of any width.
pub(super) const LANES: usize = 32;

/// A function that adds the selected numbers of whole blocks to the partial sums, one block after the other. Its
/// arguments are the blocks, one word of the mask for each block, and the partial sums.
type Kernel = fn(&[[f64; BLOCK]], &[u64], &mut [f64; LANES]);

/// Returns the sum of the numbers whose bit is set: bit `i % 64` of word `i / 64` of the mask selects number `i`.
///
/// Bits beyond the numbers are ignored, and words that the mask lacks count as 0. Numbers that are not selected have no
/// influence, not even an infinity or NaN. The sum of no numbers is 0. Each term is rounded at most [`additions`]
/// times. The error is therefore at most that count times 2^-53 times the sum of the magnitudes.
///
/// ```
/// assert_eq!(ascertain_numeric::subset::sum(&[1.5, f64::NAN, 2.0], &[0b101]), 3.5);
/// ```
pub fn sum(numbers: &[f64], mask: &[u64]) -> f64 {
    let (blocks, rest) = numbers.as_chunks::<BLOCK>();
    let whole = blocks.len().min(mask.len());
    let mut partial = [0.0; LANES];
    let kernel = kernel();
    kernel(&blocks[..whole], &mask[..whole], &mut partial);
    if let Some(word) = mask.get(blocks.len()) {
        let mut last = [0.0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        kernel(&[last], &[*word], &mut partial);
    }
    halved(partial)
}

/// Returns the largest number of additions that any term goes through when [`sum()`] adds up this many numbers.
pub fn additions(numbers: usize) -> usize {
    numbers.div_ceil(BLOCK) * (BLOCK / LANES) + LANES.ilog2() as usize
}

/// Returns the kernel for the widest registers of this machine. The detection costs no more than reading a flag.
fn kernel() -> Kernel {
    #[cfg(target_arch = "x86_64")]
    {
        if detected!("avx512f") {
            return x86::avx512;
        }
        if detected!("avx2") {
            return x86::avx2;
        }
    }
    portable
}

fn halved(mut partial: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            partial[lane] += partial[lane + half];
        }
        half /= 2;
    }
    partial[0]
}

/// Adds the selected numbers to the partial sums, with instructions that every CPU has. A number that is not selected
/// becomes 0 by masking its bits, which needs no branch. A multiplication by 0 would turn an infinity into NaN.
fn portable(blocks: &[[f64; BLOCK]], mask: &[u64], partial: &mut [f64; LANES]) {
    for (block, word) in blocks.iter().zip(mask) {
        for (half, numbers) in block.as_chunks::<LANES>().0.iter().enumerate() {
            let bits = word >> (half * LANES);
            for (lane, (sum, number)) in partial.iter_mut().zip(numbers).enumerate() {
                let selected = ((bits >> lane) & 1).wrapping_neg();
                *sum += f64::from_bits(number.to_bits() & selected);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs every kernel that this machine has on numbers of very different sizes and masks of every density. All must
    /// return the same bits.
    #[test]
    fn kernels_agree_to_the_last_bit() {
        let mut kernels: Vec<(&str, Kernel)> = vec![("chosen", kernel())];
        #[cfg(target_arch = "x86_64")]
        {
            if detected!("avx2") {
                kernels.push(("avx2", x86::avx2));
            }
            if detected!("avx512f") {
                kernels.push(("avx512", x86::avx512));
            }
        }
        kernels.push(("portable", portable));
        let mut state = 1_u64;
        let mut random = || {
            // Steele, Lea and Flood's SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        for blocks in [0, 1, 2, 3, 17, 100] {
            let numbers: Vec<[f64; BLOCK]> = (0..blocks)
                .map(|_| core::array::from_fn(|_| (random() as i64 as f64) * 2f64.powi((random() % 200) as i32 - 100)))
                .collect();
            for density in 0..5 {
                let mask: Vec<u64> = (0..blocks)
                    .map(|_| match density {
                        0 => 0,
                        1 => random() & random() & random(),
                        2 => random(),
                        3 => random() | random(),
                        _ => u64::MAX,
                    })
                    .collect();
                let begun: [f64; LANES] = core::array::from_fn(|_| random() as i64 as f64);
                let mut expected = begun;
                portable(&numbers, &mask, &mut expected);
                for (name, kernel) in &kernels {
                    let mut partial = begun;
                    kernel(&numbers, &mask, &mut partial);
                    assert_eq!(partial.map(f64::to_bits), expected.map(f64::to_bits), "{name}, {blocks} blocks");
                }
            }
        }
    }
}
