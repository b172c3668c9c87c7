//! Starts threads that keep the CPUs busy.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::tools;

/// Threads that alternate between work and rest until this value is dropped. They are not bound to CPUs.
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts one thread per CPU, which works for nine tenths of the time. The times of work and of rest are random, up
    /// to some milliseconds, as in ordinary programs.
    pub fn steady() -> Load {
        Load::start(cores(), 1_000..21_000, |work_us| 111..work_us / 9 + 112)
    }

    /// Starts four threads more than there are CPUs. Each alternately works and rests for 20 to 300 ms. Sometimes all
    /// CPUs are free, and sometimes three threads compete for one.
    pub fn bursts() -> Load {
        Load::start(cores() + 4, 20_000..300_000, |_| 20_000..300_000)
    }

    /// Starts two threads per CPU that never rest.
    pub fn constant() -> Load {
        Load::start(2 * cores(), 1_000_000..2_000_000, |_| 0..1)
    }

    /// Starts the threads. Each works for a random time in `work_us`. It then rests for a random time in the range that
    /// `rest_us` returns for this time of work. All times are in µs.
    fn start(threads: usize, work_us: Range<u64>, rest_us: fn(u64) -> Range<u64>) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let hog = |index: usize| {
            let (stop, work_us) = (Arc::clone(&stop), work_us.clone());
            std::thread::spawn(move || {
                let mut dice = Dice(index as u64 + 1);
                while !stop.load(Ordering::Relaxed) {
                    let work_us = dice.within(&work_us);
                    let begun = Instant::now();
                    while begun.elapsed().as_micros() < u128::from(work_us) {
                        std::hint::black_box(work_us);
                    }
                    std::thread::sleep(Duration::from_micros(dice.within(&rest_us(work_us))));
                }
            })
        };
        let threads = (0..threads).map(hog).collect();
        Load { stop, threads }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// A linear congruential generator. Only its upper half is used, which is random enough for a load.
struct Dice(u64);

impl Dice {
    fn within(&mut self, range: &Range<u64>) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        range.start + (self.0 >> 33) % (range.end - range.start)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Returns a command that only uses the CPU: a loop with `iterations` iterations.
pub fn spin(iterations: u64) -> String {
    tools::in_target(&format!("release/examples/spin {iterations}"))
}
