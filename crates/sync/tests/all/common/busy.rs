//! A check that the heavy side of a barrier does not end before a busy CPU was interrupted. The check uses the kernel's
//! counters of interrupts.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use super::cpus::{NOT_PINNED, cpus, pin};
use ascertain_sys::testing::left_out;

/// The value that ends the exchange of questions and answers between the two threads.
const OVER: u64 = u64::MAX;

/// Returns the number of all interrupts of a CPU; `None` if the kernel does not report the number.
fn interrupts(cpu: usize) -> Option<u64> {
    let text = fs::read_to_string("/proc/interrupts").ok()?;
    let (head, rows) = text.split_once('\n')?;
    let column = head.split_whitespace().position(|name| name == format!("CPU{cpu}"))?;
    // A row begins with its name.
    Some(rows.lines().filter_map(|row| row.split_whitespace().nth(1 + column)?.parse::<u64>().ok()).sum())
}

/// Returns the number of rounds in which `heavy` ended although another, busy CPU was not interrupted. The result must
/// be 0 if `heavy` uses membarrier(2) or barrierd, because both have to interrupt a busy CPU. Returns `None`, and
/// reports the check as left out, if this machine cannot show such an error.
///
/// A thread on the other CPU answers one question before `heavy` and one after it, and makes no system call. If the
/// kernel counted no interrupt between the two answers, `heavy` did not reach that CPU. An interrupt for another reason
/// hides an error in its round, so use many rounds.
pub fn rounds_without_an_interrupt(rounds: usize, mut heavy: impl FnMut() + Send) -> Option<usize> {
    let &[here, .., there] = cpus() else {
        left_out("there is only one CPU");
        return None;
    };
    if interrupts(there).is_none() {
        left_out("/proc/interrupts does not list the interrupts of the other CPU");
        return None;
    }
    let [asked, answered] = [const { AtomicU64::new(0) }; 2];
    thread::scope(|scope| {
        let busy = scope.spawn(|| {
            let is_pinned = pin(there);
            while is_pinned && answered.load(SeqCst) != OVER {
                answered.store(asked.load(SeqCst), SeqCst);
            }
            answered.store(OVER, SeqCst);
            is_pinned
        });
        let rounds = scope.spawn(|| {
            // A pinned thread stays away from the other CPU, so that more rounds can show an error. Without pinning,
            // the test is still correct.
            pin(here);
            let mut question = 0;
            let mut is_there = || {
                question += 1;
                asked.store(question, SeqCst);
                while ![question, OVER].contains(&answered.load(SeqCst)) {
                    thread::yield_now();
                }
            };
            let is_early = |_: &usize| {
                let before = interrupts(there);
                is_there();
                heavy();
                is_there();
                interrupts(there) == before
            };
            (0..rounds).filter(is_early).count()
        });
        let early = rounds.join();
        asked.store(OVER, SeqCst);
        if !busy.join().unwrap() {
            left_out(NOT_PINNED);
            return None;
        }
        Some(early.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
