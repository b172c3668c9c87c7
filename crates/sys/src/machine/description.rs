//! The description of a machine, as plain data.

use std::ffi::CStr;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Cache, cgroup, cpu};
use crate::{affinity, clock, cpu_level};

const SYS_CPU: &str = "/sys/devices/system/cpu";

/// The description of this machine. A property that the machine does not report is `None`, empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The name of the processor, according to the processor or the kernel.
    pub cpu_model: String,
    /// The architecture for which this program was compiled, such as `x86_64` or `aarch64`.
    pub architecture: String,
    /// The number of CPUs (hardware threads) that are online.
    pub cpus_online: usize,
    /// The number of CPUs that this thread may use.
    pub cpus_allowed: usize,
    /// The CPU quota of the control group, as a number of CPUs.
    pub cpu_quota: Option<f64>,
    /// The size of the main memory, in bytes.
    pub memory_bytes: u64,
    /// The control group's memory limit in bytes, if it is below the size of the main memory.
    pub memory_limit_bytes: Option<u64>,
    /// The caches that the first allowed CPU uses.
    pub caches: Vec<Cache>,
    /// The kernel's policy for the frequency of the CPU, such as `performance`.
    pub governor: Option<String>,
    /// `true` if the CPU is allowed to exceed its nominal frequency for a while.
    pub boost: Option<bool>,
    /// The kernel's name and release.
    pub kernel: String,
    /// The distribution's name and version.
    pub os: String,
    /// The hypervisor, if there is one: `kvm`, `vmware`, `hyperv`, …
    pub virtualisation: Option<String>,
    /// The container manager, if there is one: `docker`, `podman`, …
    pub container: Option<String>,
    /// The kernel's clock source, such as `tsc`.
    pub clock_source: Option<String>,
    /// The smallest step of the clock in nanoseconds: see [`clock::step_ns`].
    pub clock_step_ns: f64,
    /// The instruction sets that this program can use here. Only those that affect the speed of its code are listed.
    pub features: Vec<String>,
    /// The level of instruction sets to which `ASCERTAIN_CPU` limited the program, such as `avx2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_level: Option<String>,
    /// The load average of the last minute: the average number of tasks that were running or ready to run. On Linux,
    /// tasks that wait for a disk count too.
    pub load_1m: f64,
}

/// Describes this machine. This takes some milliseconds, and longer at the first call.
///
/// ```
/// let machine = ascertain_sys::machine::describe();
/// assert!(machine.cpus_online >= 1 && machine.memory_bytes > 0);
/// ```
#[must_use]
pub fn describe() -> Machine {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory_bytes = memory_bytes();
    let limits = cgroup::limits(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup"));
    let allowed = affinity::allowed();
    let first = allowed.first().copied().unwrap_or(0);
    let forced = cpu_level::forced().ok().flatten();
    let is_allowed = |feature: &str| forced.is_none_or(|level| level.contains(feature));
    Machine {
        cpu_model: cpu::model(&cpuinfo).unwrap_or_else(|| "unknown".to_owned()),
        architecture: std::env::consts::ARCH.to_owned(),
        cpus_online: sysconf(libc::_SC_NPROCESSORS_ONLN).unwrap_or(0).max(1) as usize,
        cpus_allowed: allowed.len(),
        cpu_quota: limits.cpus,
        memory_bytes,
        memory_limit_bytes: limits.memory_bytes.filter(|&limit_bytes| limit_bytes < memory_bytes),
        caches: cpu::caches(Path::new(&format!("{SYS_CPU}/cpu{first}/cache"))),
        governor: line(&format!("{SYS_CPU}/cpu{first}/cpufreq/scaling_governor")),
        boost: boost(),
        kernel: kernel(),
        os: os(),
        virtualisation: cpu::hypervisor(),
        container: container(),
        clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_step_ns: clock::step_ns(),
        features: cpu::features().into_iter().filter(|feature| is_allowed(feature)).collect(),
        forced_level: cpu_level::in_effect().map(|level| level.name().to_owned()),
        load_1m: load_1m(),
    }
}

/// Returns the text of a file; an empty string if there is no such file.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the single line of a file; `None` if the file does not exist or is empty.
fn line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn boost() -> Option<bool> {
    let is_on = |text: String| text == "1";
    line(&format!("{SYS_CPU}/cpufreq/boost"))
        .map(is_on)
        .or_else(|| line(&format!("{SYS_CPU}/intel_pstate/no_turbo")).map(|off| !is_on(off)))
}

/// Returns the memory that a process may use: the size of the main memory, or the control group's limit if it is lower.
#[must_use]
pub fn usable_memory_bytes() -> u64 {
    let limits = cgroup::limits(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup"));
    limits.memory_bytes.map_or(memory_bytes(), |limit_bytes| limit_bytes.min(memory_bytes()))
}

fn memory_bytes() -> u64 {
    sysconf(libc::_SC_PHYS_PAGES).unwrap_or(0) * sysconf(libc::_SC_PAGESIZE).unwrap_or(0)
}

/// Returns a configuration value of the system; `None` if the system does not have this value.
pub(super) fn sysconf(name: libc::c_int) -> Option<u64> {
    // SAFETY: the call takes a number only.
    u64::try_from(unsafe { libc::sysconf(name) }).ok()
}

fn load_1m() -> f64 {
    let mut loads = [0.0; 3];
    // SAFETY: the call writes at most three numbers.
    match unsafe { libc::getloadavg(loads.as_mut_ptr(), 3) } {
        1.. => loads[0],
        _ => 0.0,
    }
}

fn kernel() -> String {
    let name = rustix::system::uname();
    [name.sysname(), name.release()].map(CStr::to_string_lossy).join(" ")
}

fn os() -> String {
    ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .find_map(|path| pretty_name(&read(path)))
        .unwrap_or_else(|| std::env::consts::OS.to_owned())
}

fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

fn container() -> Option<String> {
    if Path::new("/.dockerenv").exists() {
        return Some("docker".to_owned());
    }
    // The convention of systemd, which podman, LXC and systemd-nspawn follow.
    line("/run/systemd/container")
        .or_else(|| Path::new("/run/.containerenv").exists().then(|| "podman".to_owned()))
        .or_else(|| std::env::var("KUBERNETES_SERVICE_HOST").is_ok().then(|| "kubernetes".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_distributions() {
        let text = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(pretty_name(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(pretty_name("PRETTY_NAME=Alpine\n").as_deref(), Some("Alpine"));
        assert_eq!(pretty_name(""), None);
    }

    #[test]
    fn this_machine_is_described() {
        let machine = describe();
        assert!(machine.cpus_online >= 1 && machine.cpus_allowed >= 1);
        assert!(machine.memory_bytes > 64 << 20);
        assert!(machine.memory_limit_bytes.is_none_or(|limit| limit < machine.memory_bytes));
        assert_eq!(usable_memory_bytes(), machine.memory_limit_bytes.unwrap_or(machine.memory_bytes));
        assert!(machine.cpu_quota.is_none_or(|cpus| cpus > 0.0));
        assert!(!machine.kernel.trim().is_empty() && !machine.os.is_empty());
        assert!(machine.clock_step_ns >= 1.0 && machine.load_1m >= 0.0);
        assert_eq!(machine.architecture, std::env::consts::ARCH);
    }
}
