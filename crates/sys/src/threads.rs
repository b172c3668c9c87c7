//! A function that runs work on several threads at the same time.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Barrier;
use std::thread::{self, JoinHandle};

use crate::clock;

/// The times that several threads needed for work that they did at the same time, and the sum of their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelRun {
    /// Time from the start of the first thread's work to the end of the last thread's work. At least 1 ns.
    pub wall_ns: u64,
    /// CPU time of the work, summed over all threads.
    pub cpu_ns: u64,
    /// Sum of the numbers that the threads returned.
    pub sum: u64,
}

/// Runs `work` on `threads` new threads at the same time. Returns the elapsed time, the total CPU time and the sum of
/// the returned numbers.
///
/// Each thread first calls `get_ready` with its index, and later passes the result to `work`. Between the two, a
/// barrier holds all threads back until the last one is ready. So the times do not include getting ready.
///
/// ```
/// let run = ascertain_sys::threads::run_in_parallel(2, Ok::<_, String>, |index| index as u64 + 10)?;
/// assert_eq!(run.sum, 21);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// Returns the error of the thread with the lowest index among those that failed to get ready. The other threads still
/// do their work.
///
/// # Panics
/// Panics if `get_ready` or `work` panics.
pub fn run_in_parallel<R, E: Send>(
    threads: usize,
    get_ready: impl Fn(usize) -> Result<R, E> + Sync,
    work: impl Fn(R) -> u64 + Sync,
) -> Result<ParallelRun, E> {
    let barrier = Barrier::new(threads);
    let run_one = |index: usize| {
        // A thread that fails or panics ends only after the barrier. Otherwise the others would wait forever.
        let ready = panic::catch_unwind(AssertUnwindSafe(|| get_ready(index)));
        barrier.wait();
        let ready = ready.unwrap_or_else(|payload| panic::resume_unwind(payload))?;
        let (start_ns, start_cpu_ns) = (clock::now_ns(), clock::thread_cpu_ns());
        let number = work(ready);
        let (cpu_ns, end_ns) = (clock::thread_cpu_ns() - start_cpu_ns, clock::now_ns());
        Ok((start_ns, end_ns, cpu_ns, number))
    };
    let run_one = &run_one;
    let results: Result<Vec<_>, E> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|index| scope.spawn(move || run_one(index))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload)))
            .collect()
    });
    let results = results?;
    let start_ns = results.iter().map(|(start_ns, ..)| *start_ns).min().unwrap_or(0);
    let end_ns = results.iter().map(|(_, end_ns, ..)| *end_ns).max().unwrap_or(0);
    Ok(ParallelRun {
        wall_ns: (end_ns - start_ns).max(1),
        cpu_ns: results.iter().map(|(_, _, cpu_ns, _)| cpu_ns).sum(),
        sum: results.iter().map(|(.., number)| number).sum(),
    })
}

/// Runs `work` with a stack of at least `stack_bytes`. Call this on the main thread: `work` runs there if the limit
/// `ulimit -s` allows such a large stack, otherwise on another thread.
///
/// # Errors
/// Fails if the thread cannot be started.
///
/// # Panics
/// Panics if `work` panics.
pub fn run_with_stack<T: Send + 'static>(
    stack_bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<T> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local variable.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    if is_known && limit.rlim_cur >= stack_bytes as libc::rlim_t {
        return Ok(work());
    }
    let thread = thread::Builder::new().stack_size(stack_bytes).spawn(work)?;
    Ok(thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
}

/// A thread that is joined when this is dropped. Drop it only after the event that makes the thread end. A panic of the
/// thread is ignored.
#[derive(Debug)]
pub struct JoinOnDrop(Option<JoinHandle<()>>);

impl From<JoinHandle<()>> for JoinOnDrop {
    fn from(thread: JoinHandle<()>) -> Self {
        Self(Some(thread))
    }
}

impl Drop for JoinOnDrop {
    fn drop(&mut self) {
        let _ = self.0.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn counts_and_times_are_summed() {
        let run = run_in_parallel(4, |index| Ok::<_, String>(index as u64), |index| index * 10).unwrap();
        assert_eq!(run.sum, 60);
        assert!(run.wall_ns > 0);
    }

    #[test]
    fn a_thread_that_cannot_get_ready_does_not_stop_the_others() {
        let get_ready = |index| if index == 1 { Err("not ready") } else { Ok(()) };
        let worked = AtomicU64::new(0);
        let work = |()| worked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(run_in_parallel(3, get_ready, work), Err("not ready"));
        assert_eq!(worked.into_inner(), 2);
    }

    #[test]
    fn a_thread_is_waited_for_also_if_it_panics() {
        let (gate, open) = std::sync::mpsc::channel::<()>();
        let has_ended = std::sync::Arc::new(AtomicU64::new(0));
        let ended = has_ended.clone();
        let work = move || {
            let _ = open.recv();
            ended.store(1, Ordering::Relaxed);
            panic!("on purpose");
        };
        let thread = JoinOnDrop::from(thread::spawn(work));
        drop(gate);
        drop(thread);
        assert_eq!(has_ended.load(Ordering::Relaxed), 1);
    }

    #[test]
    #[should_panic(expected = "on purpose")]
    fn a_panic_of_one_thread_does_not_block_the_others() {
        let get_ready = |index| if index == 1 { panic!("on purpose") } else { Ok::<_, String>(()) };
        let _ = run_in_parallel(3, get_ready, |()| 1);
    }
}
