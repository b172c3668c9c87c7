//! Whether a heavy side is a barrier, tried on this machine.

use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::thread;

/// Stores that the fast side has under way, to lines that the slow side keeps taking, when it takes its turn: each
/// waits in the store buffer for its line, and what is stored after them waits behind them.
const QUEUED: usize = 16;

#[repr(align(128))]
struct Line(AtomicU64);

/// Ends the fast side, also where `heavy` panics.
struct Over<'a> {
    slow: &'a AtomicU64,
    end: u64,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.slow.store(self.end, Ordering::Relaxed);
    }
}

/// In how many of the rounds both sides missed the other's write, which a barrier rules out (Dekker's protocol).
///
/// Another thread takes the fast side as often as it can: it writes, has a compiler fence, and reads. In each round
/// the caller writes, calls `heavy`, and reads. None in so many rounds proves nothing; one proves that `heavy` is no
/// barrier.
///
/// It finds what is fast and wrong: with nothing but a fence on the slow side, tens to thousands of 3,000 rounds are
/// missed where both threads run at once. A store buffer is empty after a microsecond or so: a `heavy` that takes
/// longer passes whatever it does, also if it only sleeps.
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
            // The last turn that read each round's number.
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
        let over = Over { slow: &slow.0, end };
        let read: Vec<u64> = (1..end)
            .map(|round| {
                // The other side runs, or it could miss nothing.
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
        // The slow side of this round read less than what a turn wrote that had missed this round's number.
        latest.iter().zip(&read).filter(|(turn, read)| turn > read).count()
    })
}
