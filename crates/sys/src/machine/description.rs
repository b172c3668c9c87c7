//! The description as plain data.

use std::ffi::CStr;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Cache, cgroup, cpu};
use crate::{affinity, clock};

const SYS_CPU: &str = "/sys/devices/system/cpu";

/// What this machine is. What it does not tell is none, empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// As the processor or the kernel calls it.
    pub cpu_model: String,
    /// Of this program: `x86_64`, `aarch64`.
    pub architecture: String,
    /// CPUs (hardware threads) that are on.
    pub cpus_online: usize,
    /// CPUs that this thread may use.
    pub cpus_allowed: usize,
    /// How many CPUs' time a control group grants at most.
    pub cpu_quota: Option<f64>,
    /// Main memory.
    pub memory_bytes: u64,
    /// How much of it a control group grants, if that is less.
    pub memory_limit_bytes: Option<u64>,
    /// The caches that the first CPU uses.
    pub caches: Vec<Cache>,
    /// The policy for the CPU's frequency, such as `performance`.
    pub governor: Option<String>,
    /// Whether the CPU may go beyond its nominal frequency for a while.
    pub boost: Option<bool>,
    /// The kernel's name and release.
    pub kernel: String,
    /// The distribution's name and version.
    pub os: String,
    /// The hypervisor, if there is one: `kvm`, `vmware`, `hyperv`, …
    pub virtualisation: Option<String>,
    /// The container manager, if there is one: `docker`, `podman`, …
    pub container: Option<String>,
    /// What the kernel reads the time from, such as `tsc`.
    pub clock_source: Option<String>,
    /// See [`clock::step_ns`].
    pub clock_step_ns: f64,
    /// The instruction sets that matter here and that can be used.
    pub features: Vec<String>,
    /// Processes that ran or wanted to, averaged over the last minute.
    pub load_1m: f64,
}

/// Describes this machine. It takes some milliseconds, the first time more.
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
        features: cpu::features(),
        load_1m: load_1m(),
    }
}

/// A file's text; empty if there is no such file.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A file's only line, if there is such a file and something in it.
fn line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn boost() -> Option<bool> {
    let is_on = |text: String| text == "1";
    line(&format!("{SYS_CPU}/cpufreq/boost"))
        .map(is_on)
        .or_else(|| line(&format!("{SYS_CPU}/intel_pstate/no_turbo")).map(|off| !is_on(off)))
}

fn memory_bytes() -> u64 {
    sysconf(libc::_SC_PHYS_PAGES).unwrap_or(0) * sysconf(libc::_SC_PAGESIZE).unwrap_or(0)
}

/// A number of the system's; none where it has no such number.
pub(super) fn sysconf(name: libc::c_int) -> Option<u64> {
    // SAFETY: the call takes a number only.
    u64::try_from(unsafe { libc::sysconf(name) }).ok()
}

fn load_1m() -> f64 {
    let mut loads = [0.0; 3];
    // SAFETY: three numbers are written at most.
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
    // systemd's convention, which podman, LXC and systemd-nspawn follow.
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
        assert!(machine.cpu_quota.is_none_or(|cpus| cpus > 0.0));
        assert!(!machine.kernel.trim().is_empty() && !machine.os.is_empty());
        assert!(machine.clock_step_ns >= 1.0 && machine.load_1m >= 0.0);
        assert_eq!(machine.architecture, std::env::consts::ARCH);
    }
}
