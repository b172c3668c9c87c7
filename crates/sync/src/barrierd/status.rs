//! What is known of a daemon and of the CPUs.

/// What the daemon and its programs say.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The daemon's process; 0 where that can't be seen from here.
    pub pid: u32,
    /// The virtual time: how many interrupts there have been.
    pub virtual_time: u64,
    /// Heartbeats, modulo 2³².
    pub beats: u32,
    /// The shortest time between two.
    pub period_ns: u64,
    /// CPU time that the daemon has used up to the last heartbeat.
    pub cpu_time_ns: u64,
    /// Each CPU.
    pub cpus: Vec<CpuStatus>,
}

/// What is known of a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuStatus {
    /// Its number.
    pub cpu: u32,
    /// Whether it is idle.
    pub is_idle: bool,
    /// Interrupts that were noted.
    pub interrupts: u64,
    /// How long ago the last one was; none where there was none.
    pub age_ns: Option<u64>,
}
