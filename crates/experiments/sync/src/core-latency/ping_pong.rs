//! Sends a message back and forth between two threads, each pinned to its CPU. Other threads can keep CPUs busy
//! meanwhile.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ascertain_sys::threads::JoinOnDrop;
use ascertain_sys::{affinity, clock};

/// The methods of passing a message through a word in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Passes the message by compare-and-swap. The waiting thread also polls by compare-and-swap, which moves the cache
    /// line to its CPU.
    CompareAndSwap,
    /// Passes the message by a store. The waiting thread polls by loads.
    LoadStore,
}

/// Number of round trips in a window. A window is timed as a whole. A window lasts only a few microseconds, so that
/// interruptions affect few windows.
const ROUND_TRIPS: u64 = 50;
/// Number of windows that are timed for each pair of CPUs. Interruptions do not affect the median if they hit fewer
/// than half of the windows.
const WINDOWS: usize = 201;
/// Time limit of a measurement. If there are fewer than [`LEAST_WINDOWS`] windows by then, the measurement continues
/// until it has that many. This happens only if the CPUs are so busy that the two threads rarely run at the same time.
const LIMIT: Duration = Duration::from_secs(1);
/// Minimum number of windows that are timed for each pair of CPUs.
const LEAST_WINDOWS: usize = 11;
/// Number of checks after which a waiting thread assumes that the other one is not running, and lets other threads run.
const PATIENCE: u32 = 10_000;

/// The value that tells the other side that there are no more messages.
const OVER: u64 = u64::MAX;

/// A word on its own pair of cache lines. Some processors fetch two lines together, so one line would not be enough.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// The result of measuring a pair of CPUs.
pub struct RoundTrips {
    /// One-way latency in nanoseconds, from the median window.
    pub latency_ns: f64,
    /// One-way latency in nanoseconds, from the shortest window.
    pub shortest_ns: f64,
    /// The number of round trips that the sending thread counted, and the number that the answering thread counted.
    pub round_trips: [u64; 2],
}

/// Sends a message back and forth between two CPUs. With `lines` 1, one cache line is used for both directions; with 2,
/// each direction has its own.
///
/// # Errors
/// Fails if a thread cannot be pinned to its CPU.
pub fn between(cpus: [usize; 2], means: Means, lines: usize) -> Result<RoundTrips, String> {
    let words = [Line::default(), Line::default()];
    let path = &MessagePath { means, there: &words[0].0, back: &words[lines - 1].0 };
    thread::scope(|scope| {
        // If a thread cannot be pinned, it still sends or answers messages. The other thread would otherwise wait for
        // ever.
        let ping = scope.spawn(move || (affinity::pin_current_thread(cpus[0]), path.ping()));
        let pong = scope.spawn(move || (affinity::pin_current_thread(cpus[1]), path.pong()));
        let panicked = |_| "a thread panicked".to_string();
        let (ping_pinned, ([shortest_ns, latency_ns], asked)) = ping.join().map_err(panicked)?;
        let (pong_pinned, answered) = pong.join().map_err(panicked)?;
        ping_pinned.and(pong_pinned).map_err(|error| error.to_string())?;
        Ok(RoundTrips { latency_ns, shortest_ns, round_trips: [asked, answered] })
    })
}

/// The words through which messages are passed, one for each direction or one for both. Each word has the sequence
/// number of the last message in its direction. The sequence number grows by one with each message, including answers.
struct MessagePath<'a> {
    means: Means,
    there: &'a AtomicU64,
    back: &'a AtomicU64,
}

impl MessagePath<'_> {
    /// Sends the messages and measures their time. Returns two one-way latencies in nanoseconds, from the shortest
    /// window and from the median window. Also returns the number of round trips.
    fn ping(&self) -> ([f64; 2], u64) {
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

    /// Answers messages until there are no more, and returns the number of messages.
    fn pong(&self) -> u64 {
        let mut last = 0;
        while self.hand_over(self.there, last + 1, self.back, last + 2) {
            last += 2;
        }
        last / 2
    }

    /// Waits until `from` has the sequence number `awaited`, then writes `number` to `to`. Returns `false` if there are
    /// no more messages.
    fn hand_over(&self, from: &AtomicU64, awaited: u64, to: &AtomicU64, number: u64) -> bool {
        let is_one_word = std::ptr::eq(from, to);
        let exchange = |new| from.compare_exchange(awaited, new, Ordering::AcqRel, Ordering::Acquire);
        match self.means {
            // If `from` and `to` are the same word, waiting and handing over are a single step.
            Means::CompareAndSwap if is_one_word => wait(|| exchange(number)),
            // The word `to` still contains the number of this side's last message. It is `awaited - 1`, or zero before
            // the first message.
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

/// Calls `look` repeatedly until it succeeds, and returns `true`. Returns `false` if there are no more messages.
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

/// Threads that keep CPUs busy until this object is dropped.
pub struct Load {
    is_over: Arc<AtomicBool>,
    _threads: Vec<JoinOnDrop>,
}

impl Load {
    /// Starts `per_cpu` threads on each of the CPUs.
    pub fn start(per_cpu: usize, cpus: &[usize]) -> Load {
        let is_over = Arc::new(AtomicBool::new(false));
        let one = |cpu: usize| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                // A thread that cannot be pinned still keeps a CPU busy.
                _ = affinity::pin_current_thread(cpu);
                while !is_over.load(Ordering::Relaxed) {
                    spin_loop();
                }
            })
            .into()
        };
        let threads = cpus.iter().flat_map(|&cpu| (0..per_cpu).map(move |_| cpu)).map(one).collect();
        Load { is_over, _threads: threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
