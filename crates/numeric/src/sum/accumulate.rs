//! The loop that all methods of summation share. It uses several independent accumulators in turn.

use super::element::Element;
use super::vector::Vector;
use crate::simd::MAX_LANES;

/// The running state of one summation method with one kind of register.
///
/// # Safety
/// Every function may be called only on a CPU that has the instructions of `V`.
pub trait Accumulator<V: Vector>: Copy {
    /// Returns the sum of no numbers, −0.0 in every lane.
    unsafe fn new() -> Self;

    /// Adds one number to each lane.
    unsafe fn push(&mut self, terms: V);

    /// Adds as [`Accumulator::push`] does. `_turn` is the index of this accumulator among those that are used in turn.
    /// An accumulator may use it to choose execution units of the CPU.
    #[inline(always)]
    unsafe fn push_in_turn(&mut self, _turn: usize, terms: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { self.push(terms) }
    }

    /// Returns the sum of both accumulators, lane by lane.
    unsafe fn merge(self, other: Self) -> Self;

    /// Adds whole rounds of `N` registers. In each round, every one of the `N` accumulators takes one register.
    #[inline(always)]
    unsafe fn push_rounds<T: Element, const N: usize>(accumulators: &mut [Self; N], rounds: &[T]) {
        for round in rounds.chunks_exact(N * V::LANES) {
            for (i, accumulator) in accumulators.iter_mut().enumerate() {
                // SAFETY: the caller guarantees the same conditions; a round has N × LANES numbers.
                unsafe { accumulator.push_in_turn(i, T::load(round.as_ptr().add(i * V::LANES))) }
            }
        }
    }
}

/// Adds up all numbers, lane by lane, with `N` accumulators that take turns, so that an addition need not wait for the
/// previous addition.
///
/// Registers are loaded from an aligned address on, so that no load crosses a cache line. The numbers before that
/// address go to the last lanes of the last accumulator.
///
/// The address of the slice does not change the bits of the result. It only shifts the numbers to other lanes. It
/// changes neither which numbers share a lane nor their order in the lane. The lanes of all accumulators form a circle,
/// in which each lane is merged with the opposite one, until one lane remains. A shift does not change which numbers
/// are merged. Kahan's method is an exception: adding −0.0 in an unused lane may move a part of the lane's compensation
/// to the lane's sum.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
pub unsafe fn accumulate<A, V, T, const N: usize>(xs: &[T]) -> A
where
    A: Accumulator<V>,
    V: Vector,
    T: Element,
{
    // SAFETY: the caller guarantees the same conditions.
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

/// Adds up at most as many numbers as one register has lanes, with a single accumulator. More accumulators would not be
/// faster, and merging them would be most of the work.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
pub unsafe fn accumulate_few<A, V, T>(xs: &[T]) -> A
where
    A: Accumulator<V>,
    V: Vector,
    T: Element,
{
    // SAFETY: the caller guarantees the instructions; only existing numbers are loaded.
    unsafe {
        let mut only = A::new();
        if !xs.is_empty() {
            only.push(T::load_partial(xs.as_ptr(), xs.len()));
        }
        only
    }
}

/// Adds up like [`accumulate`], but loads from the beginning of the slice instead of an aligned address. Use it for a
/// part of a larger slice, so that the address of the larger slice does not decide the lane of each number.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
pub unsafe fn accumulate_part<A, V, T, const N: usize>(xs: &[T]) -> A
where
    A: Accumulator<V>,
    V: Vector,
    T: Element,
{
    // SAFETY: the caller guarantees the same conditions.
    unsafe { merged([A::new(); N], xs) }
}

/// Adds up the numbers with the accumulators in turn, then merges the accumulators.
#[inline(always)]
unsafe fn merged<A, V, T, const N: usize>(mut accumulators: [A; N], xs: &[T]) -> A
where
    A: Accumulator<V>,
    V: Vector,
    T: Element,
{
    // SAFETY: the caller guarantees the instructions; of the remaining numbers only the `count` that exist are loaded.
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
        // Merges by halves, as `sum_lanes` does, so that 8 × 1, 2 × 4 and 1 × 8 lanes give the same bits.
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

/// Smallest number of blocks in a slice whose registers are loaded from aligned addresses. In a shorter slice, finding
/// the first aligned address costs more than it saves.
const ALIGNED_BLOCKS: usize = 4;

/// Returns the number of elements before the first aligned one. From that element on, no load of a register crosses a
/// cache line. Returns 0 for slices of fewer than `least` elements.
#[inline(always)]
fn unaligned<V: Vector, T: Element>(xs: &[T], least: usize) -> usize {
    if xs.len() < least { 0 } else { xs.as_ptr().align_offset(V::LANES * size_of::<T>()) % V::LANES }
}

/// Returns a register with the numbers in its last lanes. The lanes before them get −0.0, which adds nothing.
#[inline(always)]
unsafe fn last_lanes<V: Vector, T: Element>(numbers: &[T]) -> V {
    let mut lanes = [-0.0; MAX_LANES];
    for (lane, &x) in lanes[V::LANES - numbers.len()..].iter_mut().zip(numbers) {
        *lane = x.into();
    }
    // SAFETY: the caller guarantees the same conditions; the array has as many lanes as the largest register.
    unsafe { V::load_f64(lanes.as_ptr()) }
}
