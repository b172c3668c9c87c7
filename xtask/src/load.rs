//! Keeping both cores busy by something else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Spinning threads, one a core, until dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts them: each works for some milliseconds and rests for some, at random, as other people's
    /// programs do, and is at work nine tenths of the time.
    pub fn start() -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let spin = |index: usize, stop: Arc<AtomicBool>| {
            let mut state = index as u64 + 1;
            while !stop.load(Ordering::Relaxed) {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let work_us = 1000 + (state >> 33) % 20_000;
                let begun = std::time::Instant::now();
                while begun.elapsed().as_micros() < u128::from(work_us) {
                    std::hint::black_box(state);
                }
                std::thread::sleep(std::time::Duration::from_micros(work_us / 9));
            }
        };
        let threads = (0..cores).map(|index| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || spin(index, stop))
        });
        Load { threads: threads.collect(), stop: Arc::clone(&stop) }
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
