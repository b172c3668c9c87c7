//! `cargo xtask test --stress`: runs the test programs on a machine that is overloaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::load::Load;
use crate::tools;

/// Runs every test program once, with its tests in random order, while two busy threads per CPU compete with them. If a
/// cgroup can be created, limits the programs to 30 % of the CPU time.
pub fn run(seed: Option<u64>) -> anyhow::Result<()> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seed = seed.unwrap_or(since_1970.as_secs());
    println!("seed {seed}: `cargo xtask test --stress {seed}` runs the tests in the same order");
    tools::build_workspace_tests()?;
    let quota = Quota::new();
    match &quota {
        Ok(quota) => println!("CPU quota: {} % of {} CPUs", QUOTA_PERCENT, quota.cpus),
        Err(reason) => println!("no CPU quota: {reason}"),
    }
    // Only the test harness may see RUSTC_BOOTSTRAP, which it needs for `-Zunstable-options`. If cargo saw the
    // variable, cargo would build everything again.
    let enter = match &quota {
        Ok(quota) => format!("echo $$ >{}\n", quota.folder.join("cgroup.procs").display()),
        Err(_) => String::new(),
    };
    let runner = tools::runner(&format!("{enter}export RUSTC_BOOTSTRAP=1\n"))?;
    let _load = Load::constant();
    tools::cargo_test(&[&runner], tools::WORKSPACE_TESTS, &["-Zunstable-options", &format!("--shuffle-seed={seed}")])
}

const QUOTA_PERCENT: u64 = 30;
const PERIOD_US: u64 = 100_000;

/// A cgroup with a limit on the CPU time of its processes. Dropping it removes the cgroup.
struct Quota {
    folder: PathBuf,
    cpus: u64,
}

impl Quota {
    /// Creates a cgroup of version 1 or 2. Returns the reason if the cgroup cannot be created.
    fn new() -> Result<Quota, String> {
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
        let quota_us = PERIOD_US * cpus * QUOTA_PERCENT / 100;
        let name = format!("ascertain-stress-{}", process::id());
        let is_newer = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
        let (parent, file, limit) = match is_newer {
            true => ("/sys/fs/cgroup", "cpu.max", format!("{quota_us} {PERIOD_US}")),
            false => ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", quota_us.to_string()),
        };
        let quota = Quota { folder: Path::new(parent).join(name), cpus };
        fs::create_dir(&quota.folder)
            .map_err(|error| format!("could not create {}: {error}", quota.folder.display()))?;
        fs::write(quota.folder.join(file), limit).map_err(|error| format!("could not write {file}: {error}"))?;
        Ok(quota)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // This fails if a process that a test left behind still runs in the cgroup.
        let _ = fs::remove_dir(&self.folder);
    }
}
