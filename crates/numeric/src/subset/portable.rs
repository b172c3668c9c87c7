//! Without special instructions.

use super::sum::{BLOCK, LANES};

/// Adds the selected numbers to the partial sums. One that is not selected becomes 0 by its bits: no branch, and no
/// multiplication that would make NaN of an infinity.
pub fn add(blocks: &[[f64; BLOCK]], mask: &[u64], partial: &mut [f64; LANES]) {
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
