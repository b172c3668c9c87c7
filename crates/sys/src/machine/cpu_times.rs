//! The time that the CPUs of the machine were busy, idle or stolen.

use serde::{Deserialize, Serialize};

use super::description::sysconf;

/// The time of all CPUs together, converted from the kernel's ticks to nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Time in which the CPUs were busy: in user mode, in the kernel, and with interrupts.
    pub busy_ns: u64,
    /// Time in which the CPUs had nothing to do, or waited for a disk.
    pub idle_ns: u64,
    /// Time in which this virtual machine was ready to use a CPU that the hypervisor gave to another machine.
    pub steal_ns: u64,
}

/// Returns the CPU times since the machine started. `None` if `/proc/stat` is missing or has an unexpected format.
#[must_use]
pub fn cpu_times() -> Option<CpuTimes> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?, sysconf(libc::_SC_CLK_TCK)?)
}

impl CpuTimes {
    /// Returns the difference between these times and the times of an earlier call.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            idle_ns: self.idle_ns.saturating_sub(earlier.idle_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }

    /// Returns the share of stolen time in the time that the programs of this machine needed: `steal / (busy + steal)`,
    /// from 0 to 1. Returns `None` if both are 0.
    ///
    /// ```
    /// use ascertain_sys::machine::CpuTimes;
    ///
    /// let times = CpuTimes { busy_ns: 75, idle_ns: 900, steal_ns: 25 };
    /// assert_eq!(times.steal_share(), Some(0.25));
    /// ```
    #[must_use]
    pub fn steal_share(&self) -> Option<f64> {
        let wanted_ns = self.busy_ns + self.steal_ns;
        (wanted_ns > 0).then(|| self.steal_ns as f64 / wanted_ns as f64)
    }
}

/// Parses the first line of `/proc/stat`: `cpu user nice system idle iowait irq softirq steal guest …`. `user` already
/// includes the time of guests.
fn parse(stat: &str, ticks_per_s: u64) -> Option<CpuTimes> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = *ticks.as_slice() else {
        return None;
    };
    let ns_per_tick = 1_000_000_000_u64.checked_div(ticks_per_s)?;
    Some(CpuTimes {
        busy_ns: (user + nice + system + irq + softirq) * ns_per_tick,
        idle_ns: (idle + iowait) * ns_per_tick,
        steal_ns: steal * ns_per_tick,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_over_cpus() {
        let stat = "cpu  100 1 50 1000 20 3 4 7 90 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 5\n";
        let ms = 1_000_000;
        let expected = CpuTimes { busy_ns: 1_580 * ms, idle_ns: 10_200 * ms, steal_ns: 70 * ms };
        assert_eq!(parse(stat, 100), Some(expected));
        for wrong in ["", "cpu 1 2 3", "cpu  a b c d e f g h", "cpu0 1 2 3 4 5 6 7 8"] {
            assert_eq!(parse(wrong, 100), None, "{wrong}");
        }
    }

    #[test]
    fn differences_and_shares() {
        let earlier = CpuTimes { busy_ns: 10, idle_ns: 20, steal_ns: 5 };
        let later = CpuTimes { busy_ns: 40, idle_ns: 20, steal_ns: 15 };
        let between = later.since(&earlier);
        assert_eq!(between, CpuTimes { busy_ns: 30, idle_ns: 0, steal_ns: 10 });
        assert_eq!(between.steal_share(), Some(0.25));
        assert_eq!(CpuTimes::default().steal_share(), None);
    }

    /// In a container, `/proc/stat` may be missing or contain zeros.
    #[test]
    fn this_machine_does_not_run_backwards() {
        if let (Some(earlier), Some(later)) = (cpu_times(), cpu_times()) {
            assert!(later.busy_ns >= earlier.busy_ns, "{earlier:?} {later:?}");
            assert!(later.busy_ns > 0 || later.idle_ns + later.steal_ns == 0, "{later:?}");
        }
    }
}
