//! Monotonic time, CPU times, and the smallest step of the clock.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Minimum number of clock readings from which the step of the clock is computed.
const READINGS: usize = 20_000;
/// Maximum number of clock readings from which the step is computed. It is reached only if the clock rarely changes.
const READINGS_MAX: usize = 10_000_000;
/// Minimum number of times that a distance between two readings must occur. Distances that occur less often are
/// ignored, because they come from interruptions of the thread.
const SEEN_MIN: usize = 3;

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds. All processes of a machine share its arbitrary zero.
///
/// ```
/// let start_ns = ascertain_sys::clock::now_ns();
/// assert!(ascertain_sys::clock::now_ns() >= start_ns);
/// ```
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Returns the nanoseconds since 1970, UTC. This clock may jump; never subtract two readings to measure a duration.
#[must_use]
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the CPU time of the calling thread in nanoseconds: the time that the thread has spent on a CPU.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time that a process has used, in nanoseconds. The sum covers all threads of the process, also those
/// that have ended, but not its child processes. After the process has ended, the sum can be read until the process has
/// been waited for.
///
/// # Errors
/// The kernel's error: `ESRCH` if there is no such process.
#[cfg(target_os = "linux")]
pub fn process_cpu_ns(pid: u32) -> std::io::Result<u64> {
    // Zero would mean this process, and the ID of a clock has no room for larger process IDs.
    if !(1..=1 << 22).contains(&pid) {
        return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
    }
    let mut clock = 0;
    // SAFETY: the pointer is to a local.
    match unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &raw mut clock) } {
        0 => checked_ns(clock),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

/// Returns the CPU time that a thread of this process has used, in nanoseconds.
///
/// # Errors
/// The kernel's error, which may occur once the thread has ended.
#[cfg(target_os = "linux")]
pub fn cpu_ns_of<T>(thread: &std::thread::JoinHandle<T>) -> std::io::Result<u64> {
    use std::os::unix::thread::JoinHandleExt;
    let mut clock = 0;
    // SAFETY: the pointer is to a local variable. A thread that can still be joined has a valid handle, which the
    // standard library stores as a number on every libc.
    match unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t() as libc::pthread_t, &raw mut clock) } {
        0 => checked_ns(clock),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

/// Reads a clock. Fails if the clock's process or thread no longer exists.
#[cfg(target_os = "linux")]
fn checked_ns(clock: libc::clockid_t) -> std::io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to.
    crate::syscall::check(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Reads one of the two clocks that exist on every Unix for which this crate compiles.
///
/// Uses the C library's function, which may be called at any time: in a signal handler, and in a forked copy of a
/// process with threads. The function of rustix is as fast, but looks up the kernel's function at its first call, and
/// may allocate memory for that.
#[inline]
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to. The call cannot fail for a clock that exists.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the smallest step that [`now_ns`] makes, in nanoseconds. Measures it once, then keeps the result.
///
/// Many clocks move in steps longer than the unit of their readings: some time-stamp counters by 10 ns, Apple's timer
/// by 42 ns. So a time is accurate only to about one step.
#[must_use]
pub fn step_ns() -> f64 {
    static STEP_NS: OnceLock<f64> = OnceLock::new();
    *STEP_NS.get_or_init(|| step_of(&mut distances()))
}

/// Reads the clock repeatedly, with varying amounts of work in between. Returns the differences between consecutive
/// readings, in nanoseconds. They are multiples of the clock's step, if the clock has one.
fn distances() -> Vec<u64> {
    let mut distances = Vec::with_capacity(READINGS);
    let mut moved = 0;
    let mut last_ns = now_ns();
    for reading in 0..READINGS_MAX {
        if reading >= READINGS && moved >= 8 * SEEN_MIN {
            break;
        }
        for spin in 0..reading % 61 {
            std::hint::black_box(spin);
        }
        let ns = now_ns();
        if ns != last_ns {
            moved += 1;
        }
        if distances.len() < READINGS || ns != last_ns {
            distances.push(ns - last_ns);
        }
        last_ns = ns;
    }
    distances
}

/// Returns the step of the clock, in nanoseconds. `distances` are the differences between consecutive readings. The
/// step is the smallest difference between two of the distances. Distances that occur fewer than [`SEEN_MIN`] times do
/// not count.
///
/// Rounding to nanoseconds turns one distance into two adjacent values, which count as one distance. Three or more
/// adjacent values mean that the clock moves by less than can be resolved; the result is then 1 ns.
fn step_of(distances: &mut [u64]) -> f64 {
    distances.sort_unstable();
    let often = distances.chunk_by(|a, b| a == b).filter(|same| same.len() >= SEEN_MIN);
    let mut least_gap = u64::MAX;
    let mut row: Option<(u64, u64)> = None; // the first and the last of several adjacent values
    for distance in often.map(|same| same[0]) {
        match row {
            Some((first, last)) if distance == last + 1 => {
                if distance - first > 1 {
                    return 1.0;
                }
                row = Some((first, distance));
            }
            Some((first, _)) => {
                least_gap = least_gap.min(distance - first);
                row = Some((distance, distance));
            }
            None => row = Some((distance, distance)),
        }
    }
    if least_gap == u64::MAX { 1.0 } else { least_gap as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn often(distances: &[u64]) -> Vec<u64> {
        distances.iter().flat_map(|&d| [d; SEEN_MIN]).collect()
    }

    #[test]
    fn steps_of_ten_with_rounding() {
        let mut distances = often(&[20, 21, 30, 31, 40, 80, 81]);
        distances.extend([1161, 1163, 5000]); // interruptions, each seen only once
        assert_eq!(step_of(&mut distances), 10.0);
    }

    #[test]
    fn a_coarse_clock_mostly_stands_still() {
        assert_eq!(step_of(&mut often(&[0, 41, 42, 83])), 41.0);
        assert_eq!(step_of(&mut often(&[0, 4_000_000])), 4_000_000.0);
    }

    #[test]
    fn a_fine_clock_has_no_step_that_can_be_seen() {
        assert_eq!(step_of(&mut often(&(18..60).chain([95]).collect::<Vec<_>>())), 1.0);
        assert_eq!(step_of(&mut often(&[20, 21])), 1.0);
        assert_eq!(step_of(&mut []), 1.0);
    }

    #[test]
    fn the_clock_of_this_machine() {
        assert!(step_ns() >= 1.0 && step_ns().is_finite());
        let (a, b) = (now_ns(), now_ns());
        assert!(a <= b);
        assert!(unix_ns() > 1_700_000_000_000_000_000);
    }

    #[cfg(target_os = "linux")]
    fn busy() -> u64 {
        let start_ns = thread_cpu_ns();
        while thread_cpu_ns() < start_ns + 5_000_000 {}
        thread_cpu_ns()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_time_of_a_thread_is_read_from_another() {
        let (done, is_done) = std::sync::mpsc::channel();
        let (end, may_end) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            done.send(busy()).unwrap();
            let _ = may_end.recv();
            thread_cpu_ns()
        });
        let earlier_ns = is_done.recv().unwrap();
        let seen_ns = cpu_ns_of(&thread).unwrap();
        assert!(process_cpu_ns(std::process::id()).unwrap() >= seen_ns);
        drop(end);
        let later_ns = thread.join().unwrap();
        assert!((earlier_ns..=later_ns).contains(&seen_ns), "{seen_ns} is not from {earlier_ns} to {later_ns}");
    }

    #[cfg(all(target_os = "linux", feature = "commands"))]
    #[test]
    fn the_time_of_a_process_is_there_until_it_is_waited_for() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done"])
            .spawn()
            .unwrap();
        let pid = child.id();
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&child)), options)
            .unwrap();
        let seen_ns = process_cpu_ns(pid).unwrap();
        assert!(seen_ns > 100_000, "{seen_ns}");
        assert_eq!(process_cpu_ns(pid).unwrap(), seen_ns);
        child.wait().unwrap();
        assert!([0, i32::MAX as u32, u32::MAX].iter().all(|pid| process_cpu_ns(*pid).is_err()));
    }
}
