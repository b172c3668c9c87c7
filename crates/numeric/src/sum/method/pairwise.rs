//! Pairwise (cascade) summation.

use super::Method;
use super::naive::Plain;
use crate::sum::accumulate::accumulate_part;
use crate::sum::element::Element;
use crate::sum::vector::Vector;

/// How many registers are added plainly before their sum goes into the tree.
const BLOCK: usize = 128;

/// Levels of the tree: more than any slice can fill.
const LEVELS: usize = usize::BITS as usize - BLOCK.ilog2() as usize;

/// Sums blocks plainly, and the blocks' sums in a balanced tree. The error is at most
/// (128 + log₂(n))·u·Σ|x|, and near √log(n)·u·Σ|x| as a rule. Higham 1993, "The accuracy of
/// floating point summation".
pub struct Pairwise;

impl<V: Vector> Method<V> for Pairwise {
    /// The recursion, unrolled: the slice is read once from its start, and `pending[level]` waits
    /// for a sum of equally many (2^level) blocks, as the digits of a binary counter do.
    #[inline(always)]
    unsafe fn sum<T: Element, const N: usize>(xs: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe {
            let mut pending = [V::splat(-0.0); LEVELS];
            let mut blocks = 0_usize;
            for block in xs.chunks(BLOCK * V::LANES) {
                let mut sum = accumulate_part::<Plain<V>, V, T, N>(block).0;
                let carries = blocks.trailing_ones() as usize;
                for earlier in &pending[..carries] {
                    sum = earlier.add(sum);
                }
                pending[carries] = sum;
                blocks += 1;
            }
            // What waits at the end, the small sums (which are also the last) first.
            let mut sum = V::splat(-0.0);
            for (level, earlier) in pending.iter().enumerate() {
                if blocks >> level & 1 == 1 {
                    sum = earlier.add(sum);
                }
            }
            Plain(sum).total()
        }
    }
}
