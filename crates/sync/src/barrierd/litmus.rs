//! A litmus test, which can show on this machine that a function is not the heavy side of a barrier.

use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::thread;

/// Number of other stores that the fast side makes before each of its writes, to delay the write. The caller keeps
/// taking the cache lines of these stores away. So the stores stay in the store buffer, and the write waits behind
/// them.
const QUEUED: usize = 16;

#[repr(align(128))]
struct Line(AtomicU64);

/// A guard that ends the thread of the fast side when the guard is dropped, even if `heavy` panics.
struct EndGuard<'a> {
    slow: &'a AtomicU64,
    end: u64,
}

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.slow.store(self.end, Ordering::Relaxed);
    }
}

/// Tests whether `heavy` is the heavy side of a barrier. Returns the number of rounds in which two threads missed each
/// other's write. A barrier rules that out (Dekker's protocol).
///
/// A second thread, the fast side, repeatedly writes, executes a compiler fence, and reads. In each round the caller
/// writes, calls `heavy`, and reads. A result of zero proves nothing; one missed round proves that `heavy` is not a
/// barrier.
///
/// This detects a `heavy` that is fast and wrong. If `heavy` is only a fence, tens to thousands of 3,000 rounds are
/// missed, provided that both threads run at once. A store buffer is empty after about a microsecond. So a `heavy` that
/// takes longer passes the test in any case, even if it only sleeps.
///
/// ```
/// use std::sync::atomic::{Ordering, fence};
/// use ascertain_sync::barrierd::missed_rounds;
///
/// // A fence on one side alone is not enough, so this may be any number.
/// let missed = missed_rounds(100, || fence(Ordering::SeqCst));
/// assert!(missed <= 100);
/// ```
#[must_use]
pub fn missed_rounds(rounds: usize, mut heavy: impl FnMut()) -> usize {
    let [fast, slow] = [const { Line(AtomicU64::new(0)) }; 2];
    let queued = [const { Line(AtomicU64::new(0)) }; QUEUED];
    let end = rounds as u64 + 1;
    thread::scope(|scope| {
        let fast_side = scope.spawn(|| {
            // For each round: the number of the last turn of the fast side that read this round. A turn is a write and
            // then a read.
            let mut latest = vec![0; rounds + 1];
            for turn in 1.. {
                queued.iter().for_each(|line| line.0.store(turn, Ordering::Relaxed));
                fast.0.store(turn, Ordering::Relaxed);
                compiler_fence(Ordering::SeqCst);
                match slow.0.load(Ordering::Relaxed) {
                    round if round == end => break,
                    round => latest[round as usize] = turn,
                }
            }
            latest
        });
        let over = EndGuard { slow: &slow.0, end };
        let read: Vec<u64> = (1..end)
            .map(|round| {
                // Wait for another turn of the fast side. If its thread does not run, it cannot miss a write.
                let turn = fast.0.load(Ordering::Relaxed);
                while fast.0.load(Ordering::Relaxed) == turn {
                    thread::yield_now();
                }
                for line in &queued {
                    line.0.fetch_add(1, Ordering::Relaxed);
                }
                slow.0.store(round, Ordering::Relaxed);
                heavy();
                fast.0.load(Ordering::Relaxed)
            })
            .collect();
        drop(over);
        let latest = fast_side.join().unwrap_or_default();
        // `turn` is the last turn of the fast side that read the previous round, and `read` is the turn that the caller
        // read in this round. If `turn` is later than `read`, each side missed the write of the other.
        latest.iter().zip(&read).filter(|(turn, read)| turn > read).count()
    })
}
