//! Which of several functions that calculate the same is the fastest here.

#[cfg(not(feature = "std"))]
pub(super) use first::fastest_on;
#[cfg(feature = "std")]
pub(super) use timed::fastest_on;

#[cfg(not(feature = "std"))]
mod first {
    use crate::sum::element::Element;

    /// The first of the candidates, which is the widest: there is no clock to time them by.
    pub(crate) fn fastest_on<C: Copy, T: Element, R>(candidates: &[C], _: impl Fn(C, &[T]) -> R) -> C {
        candidates[0]
    }
}

#[cfg(feature = "std")]
mod timed {
    use core::hint::black_box;
    use std::time::Instant;

    use crate::sum::element::Element;

    /// Bytes that candidates are timed with: half of the smallest L1 that a CPU with vectors has.
    const TIMED_BYTES: usize = 16 << 10;
    /// How often they are gone through between two looks at the clock, which may tick every 10 ns or more.
    const TIMED_CALLS: u32 = 4;

    /// The candidate that calculates `work` in the shortest time.
    pub(crate) fn fastest_on<C: Copy, T: Element, R>(candidates: &[C], work: impl Fn(C, &[T]) -> R) -> C {
        if let [only] = candidates {
            return *only;
        }
        let count = TIMED_BYTES / size_of::<T>();
        let numbers = vec![T::ONE; count + 32];
        // A quarter of a cache line off, as memory allocators place large arrays.
        let first = numbers.as_ptr().align_offset(64) % 16 + 16 / size_of::<T>();
        let numbers = &numbers[first..][..count];
        fastest(candidates, |candidate| {
            let start = Instant::now();
            for _ in 0..TIMED_CALLS {
                black_box(work(candidate, black_box(numbers)));
            }
            start.elapsed().as_nanos() as u64
        })
    }

    /// Times are taken until they come to this.
    const ENOUGH_NS: u64 = 24_000;
    /// Rounds in which each candidate is timed once.
    const ROUNDS: core::ops::RangeInclusive<u32> = 5..=40;

    /// The candidate with the shortest of its times, which are taken by turns, so that what slows the machine slows
    /// all. Those that come first are taken unless another is faster by more than clocks err.
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

        /// Machines of other speeds, by the times that they would take.
        #[test]
        fn the_fastest_is_chosen_and_of_equals_the_first() {
            let chosen = |times: &[u64]| {
                let candidates: Vec<usize> = (0..times.len()).collect();
                fastest(&candidates, |candidate| times[candidate])
            };
            assert_eq!(chosen(&[700]), 0);
            assert_eq!(chosen(&[600, 700, 800]), 0);
            // AVX-512 that is there and slow, and a little faster by chance.
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
            // A clock that does not tick ends it all the same.
            let mut calls = 0;
            fastest(&[0, 1], |_| {
                calls += 1;
                0
            });
            assert_eq!(calls, 2 * *ROUNDS.end());
        }
    }
}
