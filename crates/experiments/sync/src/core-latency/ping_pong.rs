//! A message to and fro between two threads, each tied to its CPU; and threads that keep CPUs busy meanwhile.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ascertain_sys::{affinity, clock};

/// How a message is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// By compare-and-swap, which takes the cache line to itself also while it waits.
    CompareAndSwap,
    /// By a store; by loads it is waited for.
    LoadStore,
}

/// Round trips in a window, which lasts some microseconds: few are interrupted.
const ROUND_TRIPS: u64 = 50;
/// Windows of a pair: the median is right while fewer than half of them are interrupted.
const WINDOWS: usize = 201;
/// Where the CPUs are so busy that both threads rarely run at once, fewer windows will do, if it takes longer than this
/// …
const LIMIT: Duration = Duration::from_secs(1);
/// … but not fewer than this.
const LEAST_WINDOWS: usize = 11;
/// Looks after which the other thread is taken not to be running: then somebody else may run here.
const PATIENCE: u32 = 10_000;

/// The word that says that no message follows.
const OVER: u64 = u64::MAX;

/// One word on cache lines of its own: two, which some processors fetch together.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// What a pair did.
pub struct Passed {
    /// One way, the median of the windows.
    pub latency_ns: f64,
    /// The same, of the shortest of them.
    pub shortest_ns: f64,
    /// Round trips that this thread counted, and those that the other one did.
    pub round_trips: [u64; 2],
}

/// Sends a message to and fro between two CPUs, over one cache line or over one for each direction.
///
/// # Errors
/// When a thread can't be tied to its CPU.
pub fn between(cpus: [usize; 2], means: Means, lines: usize) -> Result<Passed, String> {
    let words = [Line::default(), Line::default()];
    let way = &Way { means, there: &words[0].0, back: &words[lines - 1].0 };
    thread::scope(|scope| {
        // Who can't be where it should plays its part all the same, or the other one would wait for ever.
        let ping = scope.spawn(move || (affinity::pin_current_thread(cpus[0]), way.ask()));
        let pong = scope.spawn(move || (affinity::pin_current_thread(cpus[1]), way.answer()));
        let panicked = |_| "a thread panicked".to_string();
        let (ping_pinned, ([shortest_ns, latency_ns], asked)) = ping.join().map_err(panicked)?;
        let (pong_pinned, answered) = pong.join().map_err(panicked)?;
        ping_pinned.and(pong_pinned).map_err(|error| error.to_string())?;
        Ok(Passed { latency_ns, shortest_ns, round_trips: [asked, answered] })
    })
}

/// Two words, or twice the same: each has the number of the last message in its direction. Numbers go up by one from
/// message to message, answers too.
struct Way<'a> {
    means: Means,
    there: &'a AtomicU64,
    back: &'a AtomicU64,
}

impl Way<'_> {
    /// Asks and times it: one way in nanoseconds, by the shortest window and by the median one, and the round trips.
    fn ask(&self) -> ([f64; 2], u64) {
        let start_ns = clock::now_ns();
        let mut windows_ns = Vec::with_capacity(WINDOWS);
        let mut last = 0;
        while windows_ns.len() < WINDOWS {
            let window_start_ns = clock::now_ns();
            for _ in 0..ROUND_TRIPS {
                self.hand_over(self.back, last, self.there, last + 1);
                last += 2;
            }
            let now_ns = clock::now_ns();
            windows_ns.push(now_ns - window_start_ns);
            if now_ns - start_ns > LIMIT.as_nanos() as u64 && windows_ns.len() >= LEAST_WINDOWS {
                break;
            }
        }
        self.hand_over(self.back, last, self.there, OVER);
        windows_ns.sort_unstable();
        ([0, windows_ns.len() / 2].map(|nth| windows_ns[nth] as f64 / (2 * ROUND_TRIPS) as f64), last / 2)
    }

    /// Answers until it is over; how many messages there were.
    fn answer(&self) -> u64 {
        let mut last = 0;
        while self.hand_over(self.there, last + 1, self.back, last + 2) {
            last += 2;
        }
        last / 2
    }

    /// Waits for one number in one word, and writes another one in the other; false when it is over.
    fn hand_over(&self, from: &AtomicU64, awaited: u64, to: &AtomicU64, number: u64) -> bool {
        let is_one_word = std::ptr::eq(from, to);
        let exchange = |new| from.compare_exchange(awaited, new, Ordering::AcqRel, Ordering::Acquire);
        match self.means {
            // Where it is one word, to wait and to hand over are one step.
            Means::CompareAndSwap if is_one_word => wait(|| exchange(number)),
            // What is there is this side's last number, one less than the other's, or zero before the first.
            Means::CompareAndSwap => {
                let last = awaited.saturating_sub(1);
                wait(|| exchange(awaited))
                    && to.compare_exchange(last, number, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            }
            Means::LoadStore => {
                let is_there = wait(|| match from.load(Ordering::Acquire) {
                    seen if seen == awaited => Ok(seen),
                    seen => Err(seen),
                });
                if is_there {
                    to.store(number, Ordering::Release);
                }
                is_there
            }
        }
    }
}

/// Looks again and again, until it is there or what is there says that it is over.
fn wait(mut look: impl FnMut() -> Result<u64, u64>) -> bool {
    let mut looks = 0_u32;
    loop {
        match look() {
            Ok(_) => return true,
            Err(OVER) => return false,
            Err(_) => looks += 1,
        }
        if looks.is_multiple_of(PATIENCE) {
            thread::yield_now();
        }
    }
}

/// Threads that do nothing but keep CPUs busy, until it is dropped.
pub struct Load {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// So many threads on each of the CPUs.
    pub fn begin(per_cpu: usize, cpus: &[usize]) -> Load {
        let is_over = Arc::new(AtomicBool::new(false));
        let one = |cpu: usize| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                // Anywhere is a load too.
                _ = affinity::pin_current_thread(cpu);
                while !is_over.load(Ordering::Relaxed) {
                    spin_loop();
                }
            })
        };
        let threads = cpus.iter().flat_map(|&cpu| (0..per_cpu).map(move |_| cpu)).map(one).collect();
        Load { is_over, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It can't have panicked.
            _ = thread.join();
        }
    }
}
