//! Threads that keep every CPU busy, and count what they get done.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ascertain_sys::{affinity, privileges};

/// As in the source: two on each CPU, at low priority.
const THREADS_EACH: usize = 2;
/// The longest wait until the threads run, or sleep, all of them; and from one look at that to the next.
const SETTLING: Duration = Duration::from_millis(5);
const LOOK: Duration = Duration::from_micros(100);
/// Between two looks at whether to go on: some microseconds.
const ROUND: u32 = 4_096;

/// The threads, which sleep until they are wanted.
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    wanted: Mutex<Wanted>,
    changed: Condvar,
    is_on: AtomicBool,
    /// The threads that run.
    running: AtomicUsize,
    counters: Vec<Counter>,
}

#[derive(Default)]
struct Wanted {
    is_on: bool,
    is_over: bool,
}

/// A line of the cache of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Load {
    /// Off at first.
    pub fn new() -> Result<Self, String> {
        let cpus: Vec<usize> = affinity::allowed().repeat(THREADS_EACH);
        let counters = cpus.iter().map(|_| Counter::default()).collect();
        let shared = Arc::new(Shared { counters, ..Shared::default() });
        let mut load = Self { shared, threads: Vec::new() };
        for (index, cpu) in cpus.into_iter().enumerate() {
            let shared = Arc::clone(&load.shared);
            let thread = thread::Builder::new().name("busy".into()).spawn(move || shared.run(index, cpu));
            load.threads.push(thread.map_err(|error| format!("no thread could be made: {error}"))?);
        }
        Ok(load)
    }

    /// Switches it on or off, and waits until it is.
    pub fn set(&mut self, is_on: bool) {
        if self.shared.is_on.load(Ordering::Relaxed) != is_on {
            self.shared.want(Wanted { is_on, is_over: false });
            let (start, settled) = (Instant::now(), if is_on { self.threads.len() } else { 0 });
            while self.shared.running.load(Ordering::Relaxed) != settled && start.elapsed() < SETTLING {
                thread::sleep(LOOK);
            }
        }
    }

    /// Rounds of all threads so far.
    pub fn rounds(&self) -> u64 {
        self.shared.counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.want(Wanted { is_on: false, is_over: true });
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Shared {
    fn want(&self, wanted: Wanted) {
        self.is_on.store(wanted.is_on, Ordering::Relaxed);
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
        self.changed.notify_all();
    }

    fn run(&self, index: usize, cpu: usize) {
        // Where it may not be tied to its CPU it still keeps one busy.
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
