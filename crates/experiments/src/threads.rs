//! Threads that begin together.

use std::sync::Barrier;
use std::thread;

use ascertain_sys::clock;

/// What threads did at once.
pub struct AtOnce {
    /// From when the first began until the last had ended.
    pub wall_ns: u64,
    /// Of all together.
    pub cpu_ns: u64,
    /// By all together.
    pub counted: u64,
}

/// Has so many threads get ready, each by its number, and then work at once. Each says what it counted.
///
/// # Errors
/// Where one could not get ready.
pub fn at_once<R>(
    threads: usize,
    get_ready: impl Fn(usize) -> Result<R, String> + Sync,
    work: impl Fn(R) -> u64 + Sync,
) -> Result<AtOnce, String> {
    let together = Barrier::new(threads);
    let one = |number: usize| {
        // Whatever can fail does so before the barrier and is told behind it, or the others would wait for ever.
        let ready = get_ready(number);
        together.wait();
        let ready = ready?;
        let (start_ns, start_cpu_ns) = (clock::now_ns(), clock::thread_cpu_ns());
        let counted = work(ready);
        let (cpu_ns, end_ns) = (clock::thread_cpu_ns() - start_cpu_ns, clock::now_ns());
        Ok((start_ns, end_ns, cpu_ns, counted))
    };
    let one = &one;
    let done: Result<Vec<_>, String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || one(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into()))).collect()
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
