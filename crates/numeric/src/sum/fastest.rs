//! The choice of the fastest of several functions that return the same result.

#[cfg(not(feature = "std"))]
pub(super) use first::fastest_on;
#[cfg(feature = "std")]
pub(super) use timed::fastest_on;

#[cfg(not(feature = "std"))]
mod first {
    use crate::sum::element::Element;

    /// Returns the first candidate, which has the widest registers. Without the standard library there is no clock to
    /// time the candidates.
    pub(crate) fn fastest_on<C: Copy, T: Element, R>(candidates: &[C], _: usize, _: impl Fn(C, &[T]) -> R) -> C {
        candidates[0]
    }
}

#[cfg(feature = "std")]
mod timed {
    use core::hint::black_box;
    use std::time::Instant;

    use crate::sum::element::Element;

    /// Size in bytes of the data that is used for timing: half of the smallest L1 cache among CPUs with SIMD
    /// instructions.
    const TIMED_BYTES: usize = 16 << 10;
    /// Number of times that the data is read between two readings of the clock, which may have a resolution of 10 ns or
    /// more.
    const TIMED_READS: usize = 4;

    /// Returns the candidate with the shortest time. `work` calls a candidate with the given numbers. Between two readings
    /// of the clock it is called `calls` times, 1 to 4: fewer calls have more numbers each.
    pub(crate) fn fastest_on<C: Copy, T: Element, R>(candidates: &[C], calls: usize, work: impl Fn(C, &[T]) -> R) -> C {
        if let [only] = candidates {
            return *only;
        }
        let count = TIMED_BYTES * TIMED_READS / calls / size_of::<T>();
        let numbers: Vec<T> = (0..count + 32).map(|i| T::VARIED[i % 2]).collect();
        // The timed numbers start a quarter of a cache line after the beginning of a line, because memory allocators
        // place large arrays in this way.
        let first = numbers.as_ptr().align_offset(64) % 16 + 16 / size_of::<T>();
        let numbers = &numbers[first..][..count];
        fastest(candidates, |candidate| {
            let start = Instant::now();
            for _ in 0..calls {
                black_box(work(candidate, black_box(numbers)));
            }
            start.elapsed().as_nanos() as u64
        })
    }

    /// Total duration of all rounds, in nanoseconds, after which the measurement ends. The measurement makes at least
    /// the smallest number of [`ROUNDS`], however long they take.
    const ENOUGH_NS: u64 = 24_000;
    /// The smallest and the largest number of rounds. In a round each candidate is timed once.
    const ROUNDS: core::ops::RangeInclusive<u32> = 5..=40;

    /// Returns the fastest candidate, by the shortest time of each candidate in any round. The candidates are timed in
    /// turn, so that a slow phase of the machine affects all of them. A later candidate is preferred to an earlier one
    /// only if it is faster by more than 2 %, the error of clocks.
    fn fastest<C: Copy>(candidates: &[C], mut time_ns: impl FnMut(C) -> u64) -> C {
        let mut shortest_ns = vec![u64::MAX; candidates.len()];
        let mut all_ns = 0_u64;
        for round in 1..=*ROUNDS.end() {
            for (shortest_ns, &candidate) in shortest_ns.iter_mut().zip(candidates) {
                let ns = time_ns(candidate);
                *shortest_ns = ns.min(*shortest_ns);
                all_ns = all_ns.saturating_add(ns);
            }
            if round >= *ROUNDS.start() && all_ns >= ENOUGH_NS {
                break;
            }
        }
        let is_faster = |a: usize, b: usize| shortest_ns[a] < shortest_ns[b] - shortest_ns[b] / 50;
        candidates[(1..candidates.len()).fold(0, |best, other| if is_faster(other, best) { other } else { best })]
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// The closure simulates machines of different speeds by the times the candidates take.
        #[test]
        fn the_fastest_is_chosen_and_of_equals_the_first() {
            let chosen = |times: &[u64]| {
                let candidates: Vec<usize> = (0..times.len()).collect();
                fastest(&candidates, |candidate| times[candidate])
            };
            assert_eq!(chosen(&[700]), 0);
            assert_eq!(chosen(&[600, 700, 800]), 0);
            // AVX-512 is slow on this machine, and one candidate is slightly faster by chance.
            assert_eq!(chosen(&[900, 800, 850, 700, 720]), 3);
            assert_eq!(chosen(&[700, 695, 690]), 0);
            assert_eq!(chosen(&[0, 0]), 0);
        }

        #[test]
        fn interruptions_change_nothing() {
            let mut calls = 0;
            let chosen = fastest(&[800, 700], |usual: u64| {
                calls += 1;
                if calls % 3 == 0 { usual } else { 100_000 + 10 * calls }
            });
            assert_eq!(chosen, 700);
            assert!(calls >= 2 * u64::from(*ROUNDS.start()) && calls <= 2 * u64::from(*ROUNDS.end()));
            // A clock that does not advance also ends the measurement.
            let mut calls = 0;
            fastest(&[0, 1], |_| {
                calls += 1;
                0
            });
            assert_eq!(calls, 2 * *ROUNDS.end());
        }
    }
}
