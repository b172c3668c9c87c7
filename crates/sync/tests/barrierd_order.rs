//! That a ticket comes after what its taker wrote, tried on this machine's store buffers.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

mod fake_daemon;

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, compiler_fence};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sync::barrierd::file::map;
use ascertain_sync::barrierd::{Client, Ticket};

use fake_daemon::{Fake, possible};

#[repr(align(128))]
struct Line(AtomicU64);

/// Stores that the turn's waits behind: more than in `missed_rounds`, for a ticket takes longer than a load.
const QUEUED: usize = 40;
const ROUNDS: usize = 10_000;
/// Where others keep the CPUs busy each round takes milliseconds: then fewer will do.
const LIMIT: Duration = Duration::from_millis(500);

/// A thread writes its turn and takes a ticket, again and again. In each round the caller has an interrupt, as the kernel's
/// program notes it, and reads which turn it is. A ticket from before that interrupt, with a turn that is not seen after
/// it, would pass too early. How many rounds had one. As in `missed_rounds`, stores that wait for their lines delay
/// the turn's.
fn rounds_with_an_early_ticket(fake: &Fake, client: &Client, cpu: u32) -> usize {
    let turn = Line(AtomicU64::new(0));
    let queued = [const { Line(AtomicU64::new(0)) }; QUEUED];
    let is_over = AtomicBool::new(false);
    let (taken, seen) = thread::scope(|scope| {
        let taker = scope.spawn(|| {
            // The last turn with each ticket.
            let mut taken: Vec<(Ticket, u64)> = Vec::new();
            for now in 1.. {
                queued.iter().for_each(|line| line.0.store(now, Relaxed));
                turn.0.store(now, Relaxed);
                compiler_fence(SeqCst);
                let ticket = client.ticket();
                match taken.last_mut().filter(|(last, _)| *last == ticket) {
                    Some((_, turn)) => *turn = now,
                    None => taken.push((ticket, now)),
                }
                if is_over.load(Relaxed) {
                    break;
                }
            }
            taken
        });
        let start = Instant::now();
        let mut seen = Vec::new();
        while seen.len() < ROUNDS && start.elapsed() < LIMIT {
            let before = turn.0.load(Relaxed);
            while turn.0.load(Relaxed) == before {
                thread::yield_now();
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
        // In the order in which they were taken: the first ones are from before the interrupt.
        let before = taken.partition_point(|(ticket, _)| client.has_passed(*ticket, Some(&[cpu])));
        taken[..before].last().is_some_and(|(_, turn)| turn > seen)
    };
    (1..).zip(seen).filter(is_early).count()
}

#[test]
fn no_ticket_is_taken_before_what_was_written_is_seen() {
    // Without the fence it is a few rounds or thousands, as the threads and their lines happen to lie; seldom none.
    for _ in 0..10 {
        // On the last CPU, which does not exist, nobody takes a ticket.
        let fake = Fake::with_cpus(possible() + 1);
        let (client, _socket) = fake.client();
        assert_eq!(rounds_with_an_early_ticket(&fake, &client, fake.cpus - 1), 0);
    }
}
