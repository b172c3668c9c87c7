//! Whether a heavy side is a barrier, tried on this machine.

use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::thread;

/// In how many of the rounds both sides missed the other's write, which a barrier rules out (Dekker's protocol).
///
/// Another thread takes the fast side as often as it can: it writes, has a compiler fence, and reads. In each round
/// the caller writes, calls `heavy`, and reads. None in so many rounds proves nothing; one proves that `heavy` is no
/// barrier. Without any barrier store buffers make it some rounds of ten thousand, where both threads run at once.
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
    #[repr(align(128))]
    struct Line(AtomicU64);
    let [fast, slow] = [const { Line(AtomicU64::new(0)) }; 2];
    let end = rounds as u64 + 1;
    thread::scope(|scope| {
        let fast_side = scope.spawn(|| {
            // The last turn that read each round's number.
            let mut latest = vec![0; rounds + 1];
            for turn in 1.. {
                fast.0.store(turn, Ordering::Relaxed);
                compiler_fence(Ordering::SeqCst);
                match slow.0.load(Ordering::Relaxed) {
                    round if round == end => break,
                    round => latest[round as usize] = turn,
                }
            }
            latest
        });
        let read: Vec<u64> = (1..end)
            .map(|round| {
                slow.0.store(round, Ordering::Relaxed);
                heavy();
                fast.0.load(Ordering::Relaxed)
            })
            .collect();
        slow.0.store(end, Ordering::Relaxed);
        let latest = fast_side.join().unwrap_or_default();
        // The slow side of this round read less than what a turn wrote that had missed this round's number.
        latest.iter().zip(&read).filter(|(turn, read)| turn > read).count()
    })
}
