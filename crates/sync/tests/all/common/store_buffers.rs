//! Controls: what goes wrong without a barrier, where two threads run at the same time.

use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::thread;

use ascertain_sys::testing::left_out;

/// Tries so often, and fails if nothing is shown; unless nothing can be, which is said: on one CPU, or on two of a
/// virtual machine that are one, where two sides without any fence miss nothing either.
pub fn must_show(tries: usize, mut is_shown: impl FnMut() -> bool) {
    if thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        left_out("there is but one CPU");
    } else if !(0..tries).any(|_| is_shown()) {
        let missed = (0..1_000).find_map(|_| first_missed(|| compiler_fence(Ordering::SeqCst)));
        assert_eq!(missed, None, "this machine has store buffers, and they are not seen in {tries} tries");
        left_out("no two threads run at the same time here");
    }
}

/// Two sides that each write their round, do `between`, and read the other's: the first round that both missed.
pub fn first_missed(between: impl Fn() + Sync) -> Option<u64> {
    const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let [one, other] = [const { AtomicU64::new(0) }; 2];
    let side = |mine: &AtomicU64, others: &AtomicU64| -> Vec<u64> {
        let round = |round| {
            mine.store(round, Ordering::Relaxed);
            between();
            others.load(Ordering::Relaxed)
        };
        (1..=ROUNDS).map(round).collect()
    };
    let (ours, theirs) = thread::scope(|scope| {
        let theirs = scope.spawn(|| side(&other, &one));
        (side(&one, &other), theirs.join().unwrap())
    });
    // If I missed their round `seen + 1`, they saw mine in it.
    let is_missed = |&(round, seen): &(u64, u64)| theirs.get(seen as usize).is_some_and(|&theirs| theirs < round);
    (1..).zip(ours).find(is_missed).map(|(round, _)| round)
}
