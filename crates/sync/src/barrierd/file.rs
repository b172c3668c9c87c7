//! The layout and the meaning of the memory that the daemon and its clients share.
//!
//! There are two pieces of memory. The *map* is written only by the programs in the kernel, not even by the daemon. The
//! *page* is written only by the daemon. Numbers have the byte order of the machine. A change of either layout needs a
//! new [`VERSION`].
//!
//! | map | bytes | |
//! |---|---|---|
//! | 0 | 8 | virtual time: the number of interrupts on all CPUs |
//! | 64 × (1 + cpu) | 8 | the virtual time at the CPU's last interrupt |
//! | + 8 | 8 | `CLOCK_MONOTONIC` at that interrupt, in nanoseconds |
//! | + 16 | 8 | generation: the number of interrupts of the CPU |
//! | + 24 | 8 | 1 while the CPU is idle |
//!
//! | page | bytes | |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 4 | [`VERSION`] |
//! | 12 | 4 | number of CPUs |
//! | 16 | 8 | minimum time between two heartbeats, in nanoseconds |
//! | 64 | 4 | number of heartbeats, modulo 2³²; waiters sleep on this word |
//! | 128 | 8 | `CLOCK_MONOTONIC` at the last heartbeat, in nanoseconds |
//! | 136 | 8 | CPU time that the daemon has used, in nanoseconds |
//! | 192 + 8 × cpu | 8 | a virtual time shortly before the CPU was last seen offline, or [`ABSENT`] |

/// The first eight bytes of the page, which identify its format.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"barrierd");
/// The version of the layout that this module describes.
pub const VERSION: u32 = 1;
/// The value of the word at [`page::offline`] for a CPU that was offline when the daemon started. Such a CPU counts as
/// offline until it has had an interrupt.
pub const ABSENT: u64 = u64::MAX;
/// Maximum number of CPUs: the limit of Linux.
pub const CPUS_MAX: u32 = 8_192;

/// The offsets, in bytes, of the numbers in the map: the memory to which the programs in the kernel write.
pub mod map {
    /// Size of a cache line in bytes. The virtual time has one line, and so does each CPU.
    pub const LINE_BYTES: usize = 64;
    /// Offset of the virtual time in the map.
    pub const VIRTUAL_TIME: usize = 0;
    /// Offset of the virtual time that a CPU's last interrupt recorded. It counts from the start of the CPU's line.
    pub const SEEN: usize = 0;
    /// Offset of the time of a CPU's last interrupt (`CLOCK_MONOTONIC`, in nanoseconds). It counts from the start of
    /// the CPU's line.
    pub const CLOCK_NS: usize = 8;
    /// Offset of the number of a CPU's interrupts. It counts from the start of the CPU's line.
    pub const GENERATION: usize = 16;
    /// Offset of the word that is 1 while a CPU is idle. It counts from the start of the CPU's line.
    pub const IS_IDLE: usize = 24;

    /// Returns the offset, in the map, of the cache line with the numbers of this CPU.
    #[must_use]
    pub const fn line(cpu: u32) -> usize {
        LINE_BYTES * (1 + cpu as usize)
    }

    /// Returns the size of the map in bytes.
    #[must_use]
    pub const fn bytes(cpus: u32) -> usize {
        line(cpus)
    }
}

/// The offsets, in bytes, of the numbers in the page: the memory to which the daemon writes.
pub mod page {
    /// Offset of the magic number, [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// Offset of the version.
    pub const VERSION: usize = 8;
    /// Offset of the number of CPUs.
    pub const CPUS: usize = 12;
    /// Offset of the minimum time between two heartbeats, in nanoseconds.
    pub const PERIOD_NS: usize = 16;
    /// Offset of the number of heartbeats, modulo 2³².
    pub const BEATS: usize = 64;
    /// Offset of `CLOCK_MONOTONIC` at the last heartbeat, in nanoseconds.
    pub const BEAT_NS: usize = 128;
    /// Offset of the CPU time that the daemon has used, in nanoseconds.
    pub const CPU_TIME_NS: usize = 136;
    const OFFLINE: usize = 192;

    /// Returns the offset of this CPU's word in the page. The word is a virtual time shortly before the daemon last saw
    /// the CPU offline.
    #[must_use]
    pub const fn offline(cpu: u32) -> usize {
        OFFLINE + 8 * cpu as usize
    }

    /// Returns the size of the page in bytes.
    #[must_use]
    pub const fn bytes(cpus: u32) -> usize {
        offline(cpus)
    }
}

/// Read access to the numbers in the map and in the page. The kernel's programs write the map, and the daemon writes
/// the page.
pub trait Words {
    /// Returns the eight bytes at this offset of the map.
    fn map(&self, offset: usize) -> u64;
    /// Returns the eight bytes at this offset of the page.
    fn page(&self, offset: usize) -> u64;
}

/// Returns whether at some moment after the virtual time `since` the CPU ran no program of a user.
///
/// A CPU that is idle now counts: it enters and leaves the idle state through the scheduler, which is a barrier. A CPU
/// that was offline when the daemon started counts too, until it has recorded an event. When such a CPU comes online,
/// it records an event before it runs a program.
#[must_use]
pub fn has_passed(words: &impl Words, cpu: u32, since: u64) -> bool {
    let offline = words.page(page::offline(cpu));
    words.map(map::line(cpu) + map::SEEN) > since
        || is_idle(words, cpu)
        || is_absent(words, cpu)
        || (offline != ABSENT && offline > since)
}

/// Returns whether the CPU was offline when the daemon started and has not come online since.
#[must_use]
pub fn is_absent(words: &impl Words, cpu: u32) -> bool {
    words.page(page::offline(cpu)) == ABSENT && words.map(map::line(cpu) + map::SEEN) == 0
}

/// Returns whether the CPU is idle now.
#[must_use]
pub fn is_idle(words: &impl Words, cpu: u32) -> bool {
    words.map(map::line(cpu) + map::IS_IDLE) == 1
}

/// The state of the daemon and its programs, which [`Client::status`](super::Client::status) returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The daemon's process ID; 0 if this process cannot see it.
    pub pid: u32,
    /// The virtual time: the number of interrupts on all CPUs until now.
    pub virtual_time: u64,
    /// The number of heartbeats that the daemon has caused, modulo 2³².
    pub beats: u32,
    /// The minimum time between two heartbeats, in nanoseconds.
    pub period_ns: u64,
    /// The CPU time that the daemon has used up to the last heartbeat, in nanoseconds.
    pub cpu_time_ns: u64,
    /// The state of each CPU.
    pub cpus: Vec<CpuStatus>,
}

/// The state of one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuStatus {
    /// The index of the CPU, from 0.
    pub cpu: u32,
    /// `true` if the CPU is idle.
    pub is_idle: bool,
    /// The number of interrupts of the CPU that were recorded.
    pub interrupts: u64,
    /// The time since the last interrupt in nanoseconds; `None` if there was none.
    pub age_ns: Option<u64>,
}
