//! The limits that control groups put on this process, versions 1 and 2.
//!
//! The lowest limit on the path from the group of the process up to the root applies. In a container, the path in
//! `/proc/self/cgroup` may not exist below the mount point; then only the folders that exist are read.

use std::fs;
use std::path::{Path, PathBuf};

/// The limits that control groups put on this process. A limit that no group sets is `None`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Limits {
    /// The CPU quota, as a number of CPUs: 1.5 is the time of one and a half CPUs.
    pub cpus: Option<f64>,
    /// The limit on the memory of the group, in bytes.
    pub memory_bytes: Option<u64>,
}

/// Returns the limits of the groups in `membership` (`/proc/self/cgroup`), whose folders are below `mount`
/// (`/sys/fs/cgroup`).
pub(super) fn limits(mount: &Path, membership: &str) -> Limits {
    let mut limits = Limits::default();
    for (controllers, path) in membership.lines().filter_map(group) {
        for root in roots(mount, controllers) {
            for folder in way_up(&root, path) {
                limits.tighten(&folder);
            }
        }
    }
    limits
}

/// Parses a line of `/proc/self/cgroup`, such as `4:memory:/a/b`, into the controllers (empty in version 2) and the
/// path of the group.
fn group(line: &str) -> Option<(&str, &str)> {
    let mut fields = line.splitn(3, ':').skip(1);
    Some((fields.next()?, fields.next()?.trim_start_matches('/')))
}

/// Returns the folders that may be the root of the groups with these controllers. Returns no folder if none of the
/// controllers sets a limit.
fn roots(mount: &Path, controllers: &str) -> Vec<PathBuf> {
    if controllers.is_empty() {
        return vec![mount.to_owned(), mount.join("unified")];
    }
    let limiting: Vec<&str> = controllers.split(',').filter(|name| matches!(*name, "cpu" | "memory")).collect();
    match limiting.as_slice() {
        [] => Vec::new(),
        names => names.iter().chain([&controllers]).map(|name| mount.join(name)).collect(),
    }
}

/// Returns the folder `path` below `root`, followed by its parent folders, up to and including `root`.
fn way_up<'a>(root: &'a Path, path: &'a str) -> impl Iterator<Item = PathBuf> + use<'a> {
    Path::new(path).ancestors().map(move |part| root.join(part))
}

impl Limits {
    fn tighten(&mut self, folder: &Path) {
        let read = |name| fs::read_to_string(folder.join(name)).ok();
        let cpus = read("cpu.max")
            .as_deref()
            .and_then(cpu_max)
            .or_else(|| cpu_quota(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?));
        let memory_bytes =
            ["memory.max", "memory.limit_in_bytes"].into_iter().find_map(|name| read(name)?.trim().parse::<u64>().ok());
        self.cpus = [self.cpus, cpus].into_iter().flatten().reduce(f64::min);
        self.memory_bytes = [self.memory_bytes, memory_bytes].into_iter().flatten().min();
    }
}

/// Parses the limit of version 2: `150000 100000` is one and a half CPUs, and `max 100000` is no limit.
fn cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    cpu_quota(quota, period)
}

/// Returns the quota divided by the period; `None` for -1 and `max`, which mean that there is no limit.
fn cpu_quota(quota: &str, period: &str) -> Option<f64> {
    let (quota, period) = (quota.trim().parse::<f64>().ok()?, period.trim().parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn cpu_quotas() {
        assert_eq!(cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(cpu_max("max 100000\n"), None);
        assert_eq!(cpu_max(""), None);
        assert_eq!(cpu_quota("-1\n", "100000\n"), None);
        assert_eq!(cpu_quota("50000\n", "100000\n"), Some(0.5));
    }

    #[test]
    fn version_2_takes_the_tightest_on_the_way_up() {
        let mount = tempfile::tempdir().unwrap();
        write(mount.path(), "a/cpu.max", "100000 100000\n");
        write(mount.path(), "a/memory.max", "1000000\n");
        write(mount.path(), "a/b/cpu.max", "400000 100000\n");
        write(mount.path(), "a/b/memory.max", "max\n");
        let expected = Limits { cpus: Some(1.0), memory_bytes: Some(1_000_000) };
        assert_eq!(limits(mount.path(), "0::/a/b\n"), expected);
        assert_eq!(limits(mount.path(), "0::/a/b/gone\n"), expected);
        assert_eq!(limits(mount.path(), "0::/\n"), Limits::default());
    }

    #[test]
    fn version_2_in_a_container_has_its_limits_at_the_root() {
        let mount = tempfile::tempdir().unwrap();
        write(mount.path(), "cpu.max", "50000 100000\n");
        let expected = Limits { cpus: Some(0.5), memory_bytes: None };
        assert_eq!(limits(mount.path(), "0::/\n"), expected);
    }

    #[test]
    fn version_1_has_a_hierarchy_a_controller() {
        let mount = tempfile::tempdir().unwrap();
        write(mount.path(), "cpu,cpuacct/docker/x/cpu.cfs_quota_us", "250000\n");
        write(mount.path(), "cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
        write(mount.path(), "cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n");
        write(mount.path(), "cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
        write(mount.path(), "memory/docker/x/memory.limit_in_bytes", "536870912\n");
        write(mount.path(), "memory/memory.limit_in_bytes", "9223372036854771712\n");
        let membership = "9:name=systemd:/\n4:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n0::/\n";
        let expected = Limits { cpus: Some(2.5), memory_bytes: Some(512 << 20) };
        assert_eq!(limits(mount.path(), membership), expected);
    }

    #[test]
    fn nonsense_limits_nothing() {
        let mount = tempfile::tempdir().unwrap();
        write(mount.path(), "cpu.max", "many few\n");
        write(mount.path(), "memory.max", "-\n");
        assert_eq!(limits(mount.path(), "0::/\nx\n1:cpu\n"), Limits::default());
        assert_eq!(limits(mount.path(), ""), Limits::default());
    }
}
