//! Where everything stands in the memory that the daemon and its clients share, and what it says.
//!
//! There are two pieces of it. The *map* is written by the programs in the kernel only, not even by the daemon. The
//! *page* is written by the daemon only. Numbers are in the machine's own order of bytes. A change of either is a new
//! [`VERSION`].
//!
//! | map | bytes | |
//! |---|---|---|
//! | 0 | 8 | virtual time: how many interrupts there have been on all CPUs |
//! | 64 × (1 + cpu) | 8 | the virtual time at the CPU's last interrupt |
//! | + 8 | 8 | `CLOCK_MONOTONIC` then, in nanoseconds |
//! | + 16 | 8 | generation: how many interrupts the CPU has had |
//! | + 24 | 8 | 1 while it is idle |
//!
//! | page | bytes | |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 4 | [`VERSION`] |
//! | 12 | 4 | how many CPUs |
//! | 16 | 8 | nanoseconds from one heartbeat to the next, at least |
//! | 64 | 4 | heartbeats, modulo 2³²; waiters sleep on it |
//! | 128 | 8 | `CLOCK_MONOTONIC` of the last heartbeat |
//! | 136 | 8 | CPU time that the daemon has used, in nanoseconds |
//! | 192 + 8 × cpu | 8 | the virtual time after which the CPU was last seen offline, or [`ABSENT`] |

/// The page begins with it.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"barrierd");
/// What this page says.
pub const VERSION: u32 = 1;
/// Of a CPU that was offline when the daemon began: it is so until it has had an interrupt.
pub const ABSENT: u64 = u64::MAX;
/// Linux is compiled for 8,192 CPUs at most.
pub const CPUS_MAX: u32 = 8_192;

/// Of the map.
pub mod map {
    /// A line of the cache for the clock, and one for each CPU.
    pub const LINE_BYTES: usize = 64;
    /// The virtual time.
    pub const VIRTUAL_TIME: usize = 0;
    /// Of a CPU's line: the virtual time at its last interrupt.
    pub const SEEN: usize = 0;
    /// Of a CPU's line: the clock then.
    pub const CLOCK_NS: usize = 8;
    /// Of a CPU's line: how many.
    pub const GENERATION: usize = 16;
    /// Of a CPU's line: whether it is idle.
    pub const IS_IDLE: usize = 24;

    /// Where the CPU's line begins.
    #[must_use]
    pub const fn line(cpu: u32) -> usize {
        LINE_BYTES * (1 + cpu as usize)
    }

    /// How long the map is.
    #[must_use]
    pub const fn bytes(cpus: u32) -> usize {
        line(cpus)
    }
}

/// Of the page.
pub mod page {
    /// The magic number.
    pub const MAGIC: usize = 0;
    /// The version.
    pub const VERSION: usize = 8;
    /// How many CPUs.
    pub const CPUS: usize = 12;
    /// The period, in nanoseconds.
    pub const PERIOD_NS: usize = 16;
    /// Heartbeats.
    pub const BEATS: usize = 64;
    /// The clock at the last one.
    pub const BEAT_NS: usize = 128;
    /// What the daemon has used.
    pub const CPU_TIME_NS: usize = 136;
    const OFFLINE: usize = 192;

    /// The virtual time after which the CPU was last seen offline.
    #[must_use]
    pub const fn offline(cpu: u32) -> usize {
        OFFLINE + 8 * cpu as usize
    }

    /// How long the page is.
    #[must_use]
    pub const fn bytes(cpus: u32) -> usize {
        offline(cpus)
    }
}

/// What a reader finds in the map and the page, wherever they are.
pub trait Words {
    /// The eight bytes at that place of the map.
    fn map(&self, offset: usize) -> u64;
    /// The eight bytes at that place of the page.
    fn page(&self, offset: usize) -> u64;
}

/// Whether that CPU ran no program, for a moment at least, after the virtual time was `since`.
///
/// A CPU that is idle now counts: it leaves that state, and enters it, by way of the scheduler, which is a barrier. So
/// does one that was offline at first and has noted nothing yet: that it comes online is an event that it notes.
#[must_use]
pub fn has_passed(words: &impl Words, cpu: u32, since: u64) -> bool {
    let offline = words.page(page::offline(cpu));
    words.map(map::line(cpu) + map::SEEN) > since
        || is_idle(words, cpu)
        || is_absent(words, cpu)
        || (offline != ABSENT && offline > since)
}

/// Whether that CPU was offline when the daemon began, and has not come since.
#[must_use]
pub fn is_absent(words: &impl Words, cpu: u32) -> bool {
    words.page(page::offline(cpu)) == ABSENT && words.map(map::line(cpu) + map::SEEN) == 0
}

/// Whether that CPU is idle now.
#[must_use]
pub fn is_idle(words: &impl Words, cpu: u32) -> bool {
    words.map(map::line(cpu) + map::IS_IDLE) == 1
}

/// What the daemon and its programs say, as [`Client::status`](super::Client::status) reads it.
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
