//! Measures how often the kernel aborts restartable sequences because it interrupts their thread. Also measures how
//! many thread switches and interrupts a thread can detect by the register GS. A switch or an interrupt can change this
//! register if its selector is null.

use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use ascertain_engine::experiment::{TargetError, Unavailable};
use ascertain_sys::rseq::null_gs::{Switches, interrupts_seen, switches_seen};
use ascertain_sys::rseq::{Area, Count, Outcome, possible_cpus};
use ascertain_sys::{affinity, clock};

const RESTARTS_NS: u64 = 10_000_000;
const SLEEPS: u32 = 30;
/// CPU time of the thread that counts interrupts. It spans several ticks of the kernel's timer, which has 100 to 1,000
/// ticks per second.
const INTERRUPTS_CPU_NS: u64 = 20_000_000;
/// Maximum duration of counting interrupts, as wall time.
const INTERRUPTS_NS: u64 = 500_000_000;
/// Length of one turn of counting interrupts. The thread takes turns until it has used [`INTERRUPTS_CPU_NS`] of CPU
/// time, or until [`INTERRUPTS_NS`] have passed.
const TURN: Duration = Duration::from_millis(2);

pub fn restarts_are_available() -> Result<(), Unavailable> {
    Area::find().map(drop).map_err(Unavailable::other)
}

/// Returns how many restartable sequences are aborted per time slice, for threads that run nothing else. The kernel
/// aborts a sequence if it interrupts the thread in the middle of the sequence.
pub fn restarts(threads: usize) -> Result<f64, TargetError> {
    let failed = |reason: &dyn ToString| TargetError::Failed(reason.to_string());
    let area = Area::find().map_err(|reason| failed(&reason))?;
    let counts: Vec<Count> = (0..possible_cpus()).map(|_| Count::default()).collect();
    let one = || -> io::Result<(u64, u64)> {
        let (mut aborted, before) = (0, time_slices()?);
        let end_ns = clock::now_ns() + RESTARTS_NS;
        while clock::now_ns() < end_ns {
            aborted += (0..1_000).filter(|_| area.add(&counts, 1) == Outcome::Aborted).count() as u64;
        }
        Ok((aborted, time_slices()? - before + 1))
    };
    let done: io::Result<Vec<(u64, u64)>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let done = done.map_err(|error| failed(&error))?;
    let aborted: u64 = done.iter().map(|(aborted, _)| aborted).sum();
    let slices: u64 = done.iter().map(|(_, slices)| slices).sum();
    Ok(aborted as f64 / slices as f64)
}

/// Returns how often the kernel has switched from the calling thread to another one.
fn time_slices() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let switches = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
    Ok(switches.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum())
}

/// Checks whether the variant `null-gs` can run on this machine.
pub fn null_gs_is_available() -> Result<(), Unavailable> {
    on_a_thread(|| switches_seen(1).map(drop)).map_err(|error| {
        let why = if error.get_ref().is_some() { error.to_string() } else { "needs Linux on x86-64".into() };
        Unavailable::other(why)
    })
}

/// Checks whether the kernel reports how many timer ticks a CPU has had.
pub fn ticks_are_told() -> Result<(), Unavailable> {
    let cpu = affinity::allowed()[0];
    let told = ticks(cpu).map(drop);
    told.ok_or_else(|| Unavailable::other(format!("/proc/interrupts does not have the ticks (LOC) of CPU {cpu}")))
}

/// The shares of thread switches and interrupts that were detected by a change of the register GS.
pub struct ShownShares {
    pub switches: f64,
    /// The number of interrupts that changed the selector, per timer tick; `None` if the kernel does not report the
    /// ticks.
    pub interrupts: Option<f64>,
}

/// Measures on a new thread how many thread switches and interrupts are detected. No other code uses the GS of this
/// thread.
pub fn seen_by_null_gs() -> Result<ShownShares, TargetError> {
    let seen = on_a_thread(|| {
        let Switches { seen, counted } = switches_seen(SLEEPS)?;
        let cpu = affinity::allowed()[0];
        affinity::pin_current_thread(cpu).map_err(io::Error::other)?;
        Ok(ShownShares { switches: seen as f64 / counted.max(1) as f64, interrupts: share_of_interrupts(cpu)? })
    });
    seen.map_err(|error: io::Error| TargetError::Failed(error.to_string()))
}

/// Returns the number of interrupts that changed GS, divided by the number of timer ticks that hit the calling thread.
/// The kernel counts ticks per CPU, not per thread. The thread's share of its CPU's ticks is therefore assumed to equal
/// its share of the CPU time. Interrupts that wake a thread or change memory mappings are not counted as ticks.
fn share_of_interrupts(cpu: usize) -> io::Result<Option<f64>> {
    let Some(before) = ticks(cpu) else { return Ok(None) };
    let (start_ns, start_cpu_ns) = (clock::now_ns(), clock::thread_cpu_ns());
    let mut shown = 0;
    while clock::thread_cpu_ns() - start_cpu_ns < INTERRUPTS_CPU_NS && clock::now_ns() - start_ns < INTERRUPTS_NS {
        shown += interrupts_seen(TURN)?;
    }
    let on_cpu = (clock::thread_cpu_ns() - start_cpu_ns) as f64 / (clock::now_ns() - start_ns) as f64;
    match ticks(cpu) {
        Some(after) if after > before => Ok(Some(shown as f64 / ((after - before) as f64 * on_cpu))),
        _ => Err(io::Error::other(format!("the kernel counted no tick of the timer of CPU {cpu}"))),
    }
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns how many timer ticks a CPU has had so far.
fn ticks(cpu: usize) -> Option<u64> {
    cell(&fs::read_to_string("/proc/interrupts").ok()?, "LOC:", &format!("CPU{cpu}"))
}

/// Returns a number from a table. The first line of the table has the names of the columns. Each other line begins with
/// the name of the row.
fn cell(table: &str, row: &str, column: &str) -> Option<u64> {
    let mut lines = table.lines();
    let column = lines.next()?.split_whitespace().position(|name| name == column)?;
    let mut rows = lines.map(str::split_whitespace);
    rows.find_map(|mut words| (words.next() == Some(row)).then_some(words))?.nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_proc_interrupts() {
        let table =
            "           CPU0       CPU2\n  0:  10  3  IO-APIC  2-edge  timer\nLOC:  5  4  Local timer\nERR:  7\n";
        assert_eq!(
            [("LOC:", "CPU0"), ("LOC:", "CPU2"), ("0:", "CPU2")].map(|(row, cpu)| cell(table, row, cpu)),
            [Some(5), Some(4), Some(3)]
        );
        for (row, cpu) in [("LOC:", "CPU1"), ("NMI:", "CPU0"), ("ERR:", "CPU2")] {
            assert_eq!(cell(table, row, cpu), None, "{row} {cpu}");
        }
        assert_eq!(cell("", "LOC:", "CPU0"), None);
    }
}
