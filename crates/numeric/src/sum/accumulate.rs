//! The loop that all methods share: several independent accumulators, one after the other.

use super::element::Element;
use super::vector::Vector;
use crate::simd::MAX_LANES;

/// The running state of one method in one register width.
///
/// # Safety
/// Every function may be called only on a CPU that has the instructions of `V`.
pub trait Accumulator<V: Vector>: Copy {
    /// The sum of nothing, −0.0 in every lane.
    unsafe fn new() -> Self;

    /// Adds one number to each lane.
    unsafe fn push(&mut self, terms: V);

    /// As [`Accumulator::push`], to the `turn`-th of several accumulators, which may divide the CPU's units among them.
    #[inline(always)]
    unsafe fn push_in_turn(&mut self, _turn: usize, terms: V) {
        // SAFETY: the same contract.
        unsafe { self.push(terms) }
    }

    /// The sum of both, lane by lane.
    unsafe fn merge(self, other: Self) -> Self;

    /// Adds whole rounds of `N` registers, of which each accumulator takes one.
    #[inline(always)]
    unsafe fn push_rounds<T: Element, const N: usize>(accumulators: &mut [Self; N], rounds: &[T]) {
        for round in rounds.chunks_exact(N * V::LANES) {
            for (i, accumulator) in accumulators.iter_mut().enumerate() {
                // SAFETY: the same contract; a round has N × LANES numbers.
                unsafe { accumulator.push_in_turn(i, T::load(round.as_ptr().add(i * V::LANES))) }
            }
        }
    }
}

/// Adds up all numbers, lane by lane, with `N` accumulators that take turns, so that an addition
/// need not wait for the one before it.
///
/// Registers are loaded from where they cross no cache line; the numbers before that go to the last lanes of the last
/// accumulator. Wherever a slice begins, the same numbers meet in one lane in the same order, only in another lane; and
/// as lanes and accumulators are merged by halves, the same lanes meet: the result has the same bits. (But for Kahan's,
/// where the −0.0 of a partial register may move a carry from one part of a sum to the other.)
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn accumulate<A, V, T, const N: usize>(xs: &[T]) -> A
where
    A: Accumulator<V>,
    V: Vector,
    T: Element,
{
    // SAFETY: the same contract.
    unsafe {
        if xs.len() <= V::LANES {
            return accumulate_few(xs);
        }
        let mut accumulators = [A::new(); N];
        let (head, body) = xs.split_at(unaligned::<V, T>(xs, ALIGNED_BLOCKS * N * V::LANES));
        if !head.is_empty() {
            accumulators[N - 1].push(last_lanes(head));
        }
        merged(accumulators, body)
    }
}

/// As [`accumulate`], of no more numbers than a register has: what they don't go to would add nothing, and merging it
/// would be most of the work.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn accumulate_few<A, V, T>(xs: &[T]) -> A
where
    A: Accumulator<V>,
    V: Vector,
    T: Element,
{
    // SAFETY: the caller vouches for the instructions; only the numbers that are there are loaded.
    unsafe {
        let mut only = A::new();
        if !xs.is_empty() {
            only.push(T::load_partial(xs.as_ptr(), xs.len()));
        }
        only
    }
}

/// As [`accumulate`], but loads from the beginning: for a part of a slice, whose lanes must be those of the other parts
/// wherever the whole lies.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn accumulate_part<A, V, T, const N: usize>(xs: &[T]) -> A
where
    A: Accumulator<V>,
    V: Vector,
    T: Element,
{
    // SAFETY: the same contract.
    unsafe { merged([A::new(); N], xs) }
}

/// The accumulators take turns, and are merged.
#[inline(always)]
unsafe fn merged<A, V, T, const N: usize>(mut accumulators: [A; N], xs: &[T]) -> A
where
    A: Accumulator<V>,
    V: Vector,
    T: Element,
{
    // SAFETY: the caller vouches for the instructions; of the rest only the `count` numbers that
    // are there are loaded.
    unsafe {
        let (rounds, rest) = xs.split_at(xs.len() / (N * V::LANES) * (N * V::LANES));
        A::push_rounds(&mut accumulators, rounds);
        for (i, accumulator) in accumulators.iter_mut().enumerate() {
            let start = i * V::LANES;
            if start < rest.len() {
                let count = (rest.len() - start).min(V::LANES);
                accumulator.push(T::load_partial(rest.as_ptr().add(start), count));
            }
        }
        // By halves, as the lanes are later, so that 8 × 1, 2 × 4 and 1 × 8 give the same bits.
        let mut width = N;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                accumulators[i] = accumulators[i].merge(accumulators[i + width]);
            }
        }
        accumulators[0]
    }
}

/// A slice of fewer blocks than that is not worth the trouble of aligning it.
const ALIGNED_BLOCKS: usize = 4;

/// How many numbers come before the first register that lies within a cache line; none of fewer numbers than `least`.
#[inline(always)]
fn unaligned<V: Vector, T: Element>(xs: &[T], least: usize) -> usize {
    if xs.len() < least { 0 } else { xs.as_ptr().align_offset(V::LANES * size_of::<T>()) % V::LANES }
}

/// Fewer numbers than a register has in its last lanes, after −0.0, which adds nothing.
#[inline(always)]
unsafe fn last_lanes<V: Vector, T: Element>(numbers: &[T]) -> V {
    let mut lanes = [-0.0; MAX_LANES];
    for (lane, &x) in lanes[V::LANES - numbers.len()..].iter_mut().zip(numbers) {
        *lane = x.into();
    }
    // SAFETY: the same contract; the lanes are as many as any register has.
    unsafe { V::load_f64(lanes.as_ptr()) }
}
