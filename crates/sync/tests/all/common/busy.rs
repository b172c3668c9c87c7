//! Whether a CPU that runs a program all the time is interrupted before a heavy side ends, as the kernel counts it.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use super::cpus::{NOT_PINNED, cpus, pin};
use ascertain_sys::testing::left_out;

/// In place of a question: there will be none. In place of an answer, as well.
const OVER: u64 = u64::MAX;

/// All interrupts that the CPU has had; none where the kernel does not say.
fn interrupts(cpu: usize) -> Option<u64> {
    let text = fs::read_to_string("/proc/interrupts").ok()?;
    let (head, rows) = text.split_once('\n')?;
    let column = head.split_whitespace().position(|name| name == format!("CPU{cpu}"))?;
    // A row begins with its name.
    Some(rows.lines().filter_map(|row| row.split_whitespace().nth(1 + column)?.parse::<u64>().ok()).sum())
}

/// In how many of the rounds `heavy` was over although another CPU, which ran a program of its own all the time, was
/// not interrupted, so that it was no heavy side of the kernel's or of barrierd's. None where this machine can't tell,
/// which is said.
///
/// The other CPU's thread answers before `heavy` and after it, and makes no system call. So where no interrupt was
/// counted, from before the first answer until after the second, nothing but that thread ran there. Interrupts for
/// other reasons make `heavy` look right in their round only: let there be a good many.
pub fn rounds_without_an_interrupt(rounds: usize, mut heavy: impl FnMut() + Send) -> Option<usize> {
    let &[here, .., there] = cpus() else {
        left_out("there is but one CPU");
        return None;
    };
    if interrupts(there).is_none() {
        left_out("/proc/interrupts does not say which interrupts the other CPU has had");
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
            // For more rounds to show something; nothing is wrong where this thread gets on the other CPU.
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
