//! Threads that work at the same time.

use std::panic;
use std::sync::Barrier;
use std::thread;

use crate::clock;

/// The times and the count of threads that worked at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtOnce {
    /// Time from the start of the first thread's work to the end of the last thread's work. At least 1 ns.
    pub wall_ns: u64,
    /// CPU time of the work, summed over all threads.
    pub cpu_ns: u64,
    /// Sum of the numbers that the threads returned.
    pub counted: u64,
}

/// Runs `work` on `threads` new threads at the same time, and adds up the times and the returned numbers.
///
/// Each thread first calls `get_ready` with its index. A barrier then holds all threads back until the last one is
/// ready, so the times do not include getting ready.
///
/// ```
/// let at_once = ascertain_sys::threads::at_once(2, Ok::<_, String>, |index| index as u64 + 10)?;
/// assert_eq!(at_once.counted, 21);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// Returns the error of the first thread that failed to get ready. The other threads do their work nevertheless.
///
/// # Panics
/// Panics if `work` panics.
pub fn at_once<R, E: Send>(
    threads: usize,
    get_ready: impl Fn(usize) -> Result<R, E> + Sync,
    work: impl Fn(R) -> u64 + Sync,
) -> Result<AtOnce, E> {
    let together = Barrier::new(threads);
    let one = |index: usize| {
        // A thread that fails returns its error only after the barrier. Otherwise the others would wait forever.
        let ready = get_ready(index);
        together.wait();
        let ready = ready?;
        let (start_ns, start_cpu_ns) = (clock::now_ns(), clock::thread_cpu_ns());
        let counted = work(ready);
        let (cpu_ns, end_ns) = (clock::thread_cpu_ns() - start_cpu_ns, clock::now_ns());
        Ok((start_ns, end_ns, cpu_ns, counted))
    };
    let one = &one;
    let done: Result<Vec<_>, E> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|index| scope.spawn(move || one(index))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload)))
            .collect()
    });
    let done = done?;
    let start_ns = done.iter().map(|(start_ns, ..)| *start_ns).min().unwrap_or(0);
    let end_ns = done.iter().map(|(_, end_ns, ..)| *end_ns).max().unwrap_or(0);
    Ok(AtOnce {
        wall_ns: (end_ns - start_ns).max(1),
        cpu_ns: done.iter().map(|(_, _, cpu_ns, _)| cpu_ns).sum(),
        counted: done.iter().map(|(.., counted)| counted).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_are_summed() {
        let done = at_once(4, |index| Ok::<_, String>(index as u64), |index| index * 10).unwrap();
        assert_eq!(done.counted, 60);
        assert!(done.wall_ns > 0);
    }

    #[test]
    fn a_thread_that_cannot_get_ready_does_not_stop_the_others() {
        let get_ready = |index| if index == 1 { Err("not ready") } else { Ok(()) };
        assert_eq!(at_once(3, get_ready, |()| 1), Err("not ready"));
    }
}
