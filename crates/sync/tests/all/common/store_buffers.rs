//! Controls for tests of barriers: without a barrier, errors must occur when two threads run at the same time.

use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::thread;

use ascertain_sys::testing::left_out;

/// Calls `is_shown` up to `tries` times, and fails if no call shows the error. Reports the test as left out if this
/// machine cannot show the error. This is the case with a single CPU, and in a virtual machine whose two CPUs share one
/// real CPU. On such machines, even two threads without any fence never miss each other's write.
pub fn must_show(tries: usize, mut is_shown: impl FnMut() -> bool) {
    if thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        left_out("there is only one CPU");
    } else if !(0..tries).any(|_| is_shown()) {
        let missed = (0..1_000).find_map(|_| first_missed(|| compiler_fence(Ordering::SeqCst)));
        assert_eq!(missed, None, "this machine has store buffers, but {tries} tries did not show them");
        left_out("no two threads run at the same time here");
    }
}

/// Runs two threads. In each round, a thread writes the number of the round, calls `between`, and reads the number that
/// the other thread wrote. Returns the first round in which each thread missed the other's write.
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
    // This side did not see the other side's write of round `seen + 1`. If the other side has not seen this side's
    // write of `round` in that round, both missed a write.
    let is_missed = |&(round, seen): &(u64, u64)| theirs.get(seen as usize).is_some_and(|&theirs| theirs < round);
    (1..).zip(ours).find(is_missed).map(|(round, _)| round)
}
