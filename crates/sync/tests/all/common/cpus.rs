//! Helpers for the tests of `per_cpu`: CPUs, and the available methods.

use std::sync::OnceLock;

use ascertain_sync::per_cpu::{BEST_FIRST, Method};

use ascertain_sys::testing::{left_out, or_left_out};

/// The reason for leaving out a test whose threads cannot be pinned.
pub const NOT_PINNED: &str = "a filter of system calls prevents pinning threads to a CPU";

/// Returns the methods that this program can use. Leaves out restartable sequences under ThreadSanitizer: it does not
/// see their effects, and would report that boxes move between threads without synchronization.
pub fn available() -> impl Iterator<Item = Method> {
    BEST_FIRST.into_iter().filter(|&method| {
        let can_be_tested = method == Method::Sharded || !imp::is_under_thread_sanitizer();
        if !can_be_tested {
            left_out(format_args!("{method}: ThreadSanitizer does not see its effects"));
        }
        can_be_tested && or_left_out(method.is_available()).is_some()
    })
}

/// Returns the CPUs that the process may use.
pub fn cpus() -> &'static [usize] {
    static CPUS: OnceLock<Vec<usize>> = OnceLock::new();
    CPUS.get_or_init(imp::cpus)
}

/// Pins the calling thread, and threads that it starts, to a CPU. Returns `false` if a filter of system calls forbids
/// it.
pub fn pin(cpu: usize) -> bool {
    imp::allow(0, &[cpu])
}

/// Calls `work`, while all threads that it starts are repeatedly moved from CPU to CPU.
pub fn on_all_cpus<T>(work: impl FnOnce() -> T + Send) -> T
where
    T: Send,
{
    imp::on_all_cpus(work)
}

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use std::mem;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;
    use std::time::Duration;

    /// Reads the CPUs before any thread is pinned.
    pub fn cpus() -> Vec<usize> {
        // SAFETY: the set is plain bits; the kernel writes at most the given number of bytes.
        let set = unsafe {
            let mut set: libc::cpu_set_t = mem::zeroed();
            // These are the CPUs of the first thread, which no test pins.
            assert_eq!(libc::sched_getaffinity(libc::getpid(), size_of_val(&set), &raw mut set), 0);
            set
        };
        // SAFETY: the numbers are below the set's size.
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
    }

    /// Returns whether the program contains the start function of ThreadSanitizer.
    pub fn is_under_thread_sanitizer() -> bool {
        // The name is written backwards; otherwise the search would find the name itself.
        let name: Vec<u8> = b"tini_nast__".iter().rev().copied().collect();
        let program = std::fs::read("/proc/self/exe").unwrap_or_default();
        // SAFETY: both are alive and of these lengths.
        let found = unsafe { libc::memmem(program.as_ptr().cast(), program.len(), name.as_ptr().cast(), name.len()) };
        !found.is_null()
    }

    /// Restricts a thread to these CPUs. Returns `false` on failure; the thread may have ended.
    pub fn allow(tid: libc::pid_t, cpus: &[usize]) -> bool {
        // SAFETY: the set is plain bits; the kernel reads at most the given number of bytes.
        unsafe {
            let mut set: libc::cpu_set_t = mem::zeroed();
            cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu, &mut set));
            libc::sched_setaffinity(tid, size_of_val(&set), &raw const set) == 0
        }
    }

    /// Repeatedly moves the threads that `work` starts. Threads that already exist stay as they are.
    pub fn on_all_cpus<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        let threads = || -> Vec<libc::pid_t> {
            let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
            tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
        };
        let (before, is_over) = (threads(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut turn = 0_usize;
                while !is_over.load(Relaxed) {
                    for tid in threads().into_iter().filter(|tid| !before.contains(tid)) {
                        turn = turn.wrapping_add(1);
                        allow(tid, &[super::cpus()[turn % super::cpus().len()]]);
                    }
                    thread::sleep(Duration::from_micros(300));
                }
            });
            let done = scope.spawn(work).join();
            is_over.store(true, Relaxed);
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod imp {
    pub fn cpus() -> Vec<usize> {
        vec![0]
    }

    pub fn is_under_thread_sanitizer() -> bool {
        false
    }

    pub fn allow(_tid: i32, _cpus: &[usize]) -> bool {
        true
    }

    pub fn on_all_cpus<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        work()
    }
}
