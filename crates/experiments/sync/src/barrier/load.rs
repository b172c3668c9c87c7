//! Threads that keep every CPU busy and count their work.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sys::threads::JoinOnDrop;
use ascertain_sys::{affinity, privileges};

/// Number of busy threads on each CPU. They have low priority, as in the publication that the README cites.
const THREADS_EACH: usize = 2;
/// Longest wait until all threads are busy, or until all threads sleep.
const SETTLING: Duration = Duration::from_millis(5);
/// Time between two checks whether all threads are busy or all sleep.
const LOOK: Duration = Duration::from_micros(100);
/// Number of steps that a busy thread makes between two checks whether to continue. The steps take some microseconds.
const ROUND: u32 = 4_096;

/// The busy threads, which sleep until the load is switched on.
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinOnDrop>,
}

#[derive(Default)]
struct Shared {
    wanted: Mutex<LoadRequest>,
    changed: Condvar,
    is_on: AtomicBool,
    /// Number of threads that are busy at present; the others sleep.
    running: AtomicUsize,
    counters: Vec<Counter>,
}

#[derive(Default)]
struct LoadRequest {
    is_on: bool,
    is_over: bool,
}

/// A counter on its own cache line.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Load {
    /// Starts the threads, which sleep at first.
    pub fn new() -> Result<Self, String> {
        let cpus: Vec<usize> = affinity::allowed().repeat(THREADS_EACH);
        let counters = cpus.iter().map(|_| Counter::default()).collect();
        let shared = Arc::new(Shared { counters, ..Shared::default() });
        let mut load = Self { shared, threads: Vec::new() };
        for (index, cpu) in cpus.into_iter().enumerate() {
            let shared = Arc::clone(&load.shared);
            let thread = thread::Builder::new().name("busy".into()).spawn(move || shared.run(index, cpu));
            load.threads.push(thread.map_err(|error| format!("could not start a thread: {error}"))?.into());
        }
        Ok(load)
    }

    /// Switches the load on or off. Waits until all threads are busy or all sleep, for at most [`SETTLING`].
    pub fn set(&mut self, is_on: bool) {
        if self.shared.is_on.load(Ordering::Relaxed) != is_on {
            self.shared.want(LoadRequest { is_on, is_over: false });
            let (start, settled) = (Instant::now(), if is_on { self.threads.len() } else { 0 });
            while self.shared.running.load(Ordering::Relaxed) != settled && start.elapsed() < SETTLING {
                thread::sleep(LOOK);
            }
        }
    }

    /// Returns the number of rounds of [`ROUND`] steps that all threads together have made so far.
    pub fn rounds(&self) -> u64 {
        self.shared.counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.want(LoadRequest { is_on: false, is_over: true });
    }
}

impl Shared {
    fn want(&self, wanted: LoadRequest) {
        self.is_on.store(wanted.is_on, Ordering::Relaxed);
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
        self.changed.notify_all();
    }

    fn run(&self, index: usize, cpu: usize) {
        // A thread that cannot be pinned to its CPU still keeps some CPU busy.
        let _ = affinity::pin_current_thread(cpu);
        privileges::run_last();
        loop {
            let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
            let wanted = self.changed.wait_while(wanted, |wanted| !wanted.is_on && !wanted.is_over);
            if wanted.unwrap_or_else(PoisonError::into_inner).is_over {
                return;
            }
            self.running.fetch_add(1, Ordering::Relaxed);
            while self.is_on.load(Ordering::Relaxed) {
                for number in 0..ROUND {
                    std::hint::black_box(number);
                }
                self.counters[index].0.fetch_add(1, Ordering::Relaxed);
            }
            self.running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
