//! Threads that keep CPUs busy.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use ascertain_sys::affinity;

/// Runs until it is dropped.
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
                while !is_over.load(Relaxed) {
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
        self.is_over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // It can't have panicked.
            _ = thread.join();
        }
    }
}
