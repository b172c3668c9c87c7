//! Tests that a timestamp comes after the writes of the thread that takes it, despite this machine's store buffers.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, compiler_fence};
use std::thread;

use ascertain_sync::barrierd::file::map;

use crate::common::fake_daemon::{Fake, possible};
use crate::common::machine::whole_machine;
use crate::common::store_buffers::must_show;

#[repr(align(128))]
struct Line(AtomicU64);

/// Number of other stores that a thread makes before it stores the number of its turn. The other stores delay that
/// store. `missed_rounds` needs fewer stores, because a load takes less time than a timestamp.
const QUEUED: usize = 40;
const ROUNDS: usize = 10_000;
/// Maximum number of times that this thread yields its CPU to let the other thread run. If other programs keep the CPUs
/// busy, each yield takes milliseconds. After this many yields, the test ends, even with fewer rounds.
const YIELDS: usize = 100;
/// Number of times this thread checks for the other thread's next turn before it yields its CPU.
const LOOKS: usize = 10_000;

/// Returns the number of rounds in which `has_passed` returns `true` too early for a timestamp.
///
/// A thread repeatedly stores the number of its turn and takes a timestamp. In each round the caller records an
/// interrupt, as the kernel's program does, and then reads the number of the turn. If `has_passed` is `true` for a
/// timestamp after this interrupt, the caller must have read the turn of this timestamp or a later turn. If the caller
/// has read an earlier turn, `has_passed` was `true` too early. As in `missed_rounds`, other stores wait for their
/// cache lines and delay the store of the turn.
fn rounds_with_an_early_timestamp<T: Copy + PartialEq + Send>(
    fake: &Fake,
    cpu: u32,
    take: impl Fn() -> T + Sync,
    has_passed: impl Fn(T) -> bool,
) -> usize {
    let turn = Line(AtomicU64::new(0));
    let queued = [const { Line(AtomicU64::new(0)) }; QUEUED];
    let is_over = AtomicBool::new(false);
    let (taken, seen) = thread::scope(|scope| {
        let taker = scope.spawn(|| {
            // For each timestamp, the last turn in which the thread took it.
            let mut taken: Vec<(T, u64)> = Vec::new();
            for now in 1.. {
                queued.iter().for_each(|line| line.0.store(now, Relaxed));
                turn.0.store(now, Relaxed);
                compiler_fence(SeqCst);
                let timestamp = take();
                match taken.last_mut().filter(|(last, _)| *last == timestamp) {
                    Some((_, turn)) => *turn = now,
                    None => taken.push((timestamp, now)),
                }
                if is_over.load(Relaxed) {
                    break;
                }
            }
            taken
        });
        let (mut seen, mut yields) = (Vec::new(), 0);
        while seen.len() < ROUNDS && yields < YIELDS {
            let before = turn.0.load(Relaxed);
            let is_next = || turn.0.load(Relaxed) != before;
            while !(0..LOOKS).any(|_| is_next()) {
                thread::yield_now();
                yields += 1;
            }
            for line in &queued {
                line.0.fetch_add(1, Relaxed);
            }
            fake.interrupt(cpu);
            seen.push(turn.0.load(Relaxed));
        }
        is_over.store(true, Relaxed);
        (taker.join().unwrap(), seen)
    });
    let is_early = |(round, seen): &(u64, u64)| {
        fake.map.word(map::line(cpu) + map::SEEN).store(*round, SeqCst);
        // The timestamps are in the order in which they were taken: the first ones are from before the interrupt.
        let before = taken.partition_point(|(timestamp, _)| has_passed(*timestamp));
        taken[..before].last().is_some_and(|(_, turn)| turn > seen)
    };
    (1..).zip(seen).filter(is_early).count()
}

/// Returns a daemon with one CPU more than this machine has. No thread takes a timestamp on that CPU.
fn fake() -> Fake {
    Fake::with_cpus(possible() + 1)
}

#[test]
fn no_timestamp_is_taken_before_what_was_written_is_seen() {
    let _machine = whole_machine();
    for _ in 0..10 {
        let fake = fake();
        let cpu = fake.cpus - 1;
        let (client, _socket) = fake.client();
        let has_passed = |timestamp| client.has_passed(timestamp, Some(&[cpu]));
        assert_eq!(rounds_with_an_early_timestamp(&fake, cpu, || client.timestamp(), has_passed), 0);
    }
}

/// The control: a timestamp without its fence. The number of failing rounds, from a few to thousands, depends on the
/// CPUs and the cache lines that the threads use. If other programs keep both CPUs busy, often no round fails. The test
/// therefore tries up to 100 times.
#[test]
fn without_a_fence_a_timestamp_is_taken_too_early() {
    let _machine = whole_machine();
    must_show(100, || {
        let fake = fake();
        let cpu = fake.cpus - 1;
        let take = || fake.map.word(map::VIRTUAL_TIME).load(Relaxed);
        let has_passed = |taken| fake.map.word(map::line(cpu) + map::SEEN).load(SeqCst) > taken;
        rounds_with_an_early_timestamp(&fake, cpu, take, has_passed) > 0
    });
}
