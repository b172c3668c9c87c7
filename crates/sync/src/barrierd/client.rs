//! The client, for programs that need to know when each CPU has been interrupted. It needs no privilege.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use ascertain_sys::mapping::Mapping;
use ascertain_sys::{clock, cpus, privileges, socket};

use super::file::{CPUS_MAX, MAGIC, VERSION, Words, has_passed, is_absent, is_idle, map, page};
use super::{CpuStatus, Error, Status};

/// Maximum time that the daemon may take to reply to a new client.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// The time for which a waiting thread spins before it sleeps, in nanoseconds. A heartbeat takes about 50 µs. If all
/// CPUs are busy, a sleeping thread needs longer than a heartbeat to get a CPU again.
const SPIN_NS: u64 = 100_000;
/// Maximum duration of one sleep of a thread that waits for a heartbeat, in case it misses a wake-up.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// A connection to `barrierd`, the daemon that interrupts CPUs on request.
///
/// All threads can share it, and a child made by fork(2) may continue to use it. BPF programs in the kernel record
/// which CPUs are idle and which come online. They run as long as any client exists, so the data that this client reads
/// stays true when the daemon dies. But then no process causes interrupts any more.
#[derive(Debug)]
pub struct Client {
    shared: SharedWords,
    /// The inode number of the daemon's shared memory. It identifies the daemon, because no other memory gets this
    /// number while a client maps this memory.
    page: u64,
    cpus: u32,
    socket: UnixStream,
    /// Descriptors of events. While they are open, the kernel runs the BPF programs that record which CPUs are idle and
    /// which come online.
    _events: [OwnedFd; 2],
}

#[derive(Debug)]
struct SharedWords {
    map: Mapping,
    page: Mapping,
}

impl Words for SharedWords {
    #[inline]
    fn map(&self, offset: usize) -> u64 {
        self.map.load(offset)
    }

    #[inline]
    fn page(&self, offset: usize) -> u64 {
        self.page.load(offset)
    }
}

/// A moment in the virtual time of one daemon, as returned by [`Client::timestamp`]. Virtual time is the number of
/// interrupts on all CPUs so far. A timestamp has no meaning for other daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    virtual_time: u64,
    page: u64,
    /// The CPU that the caller of `timestamp` was on; `None` if the system does not report it. On this CPU the
    /// timestamp counts as passed from the beginning: any other thread that ran there before has gone through the
    /// scheduler.
    cpu: Option<u32>,
}

impl Client {
    /// Connects to the daemon at `path`. The default is [`DEFAULT_PATH`](super::DEFAULT_PATH).
    ///
    /// # Errors
    /// [`Error::NotRunning`], [`Error::Denied`] or [`Error::LongPath`] if no process can be reached at the path.
    /// [`Error::Stranger`] if the process there is not trusted. [`Error::NotADaemon`] or [`Error::OtherVersion`] if it
    /// does not use this version of the protocol.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Error::unless_short(path)?;
        let socket = UnixStream::connect(path).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::Denied { path: path.into(), source },
            _ => Error::NotRunning { path: path.into(), source },
        })?;
        Self::over(socket, path)
    }

    /// Creates a client from an existing connection to the daemon at `path`.
    pub(super) fn over(socket: UnixStream, path: &Path) -> Result<Self, Error> {
        let not_a_daemon = |why: &dyn std::fmt::Display| Error::NotADaemon { path: path.into(), why: why.to_string() };
        let uid = socket::peer(&socket).map_err(|error| not_a_daemon(&error))?.uid;
        let is_anybody = privileges::overflow_user() == Some(uid);
        if uid != 0 && (uid != privileges::effective_user() || is_anybody) {
            return Err(Error::Stranger { path: path.into(), uid, is_anybody });
        }
        let answer = socket.set_read_timeout(Some(ANSWER_MAX)).and_then(|()| socket::receive(&socket));
        let descriptors = match answer {
            Ok(Some((_, descriptors))) => descriptors,
            Ok(None) => {
                return Err(not_a_daemon(&"it closed the connection; perhaps too many of your programs are connected"));
            }
            Err(error) => return Err(not_a_daemon(&error)),
        };
        let [map, page, idleness, coming] = <[OwnedFd; 4]>::try_from(descriptors)
            .map_err(|descriptors| not_a_daemon(&format!("it sent {} descriptors, not 4", descriptors.len())))?;
        let head = Mapping::new(page.as_fd(), page::bytes(0)).map_err(|error| not_a_daemon(&error))?;
        if head.load(page::MAGIC) != MAGIC {
            return Err(not_a_daemon(&"its page does not begin with the magic number"));
        }
        let (version, cpus) = (head.load_u32(page::VERSION), head.load_u32(page::CPUS));
        if version != VERSION {
            return Err(Error::OtherVersion { path: path.into(), version });
        }
        if cpus == 0 || cpus > CPUS_MAX {
            return Err(not_a_daemon(&format!("it reports {cpus} CPUs")));
        }
        if cpus::possible().is_ok_and(|possible| possible > cpus) {
            return Err(not_a_daemon(&format!("it reports {cpus} CPUs, but this machine may have more")));
        }
        let mapped = |fd: &OwnedFd, bytes| Mapping::new(fd.as_fd(), bytes).map_err(|error| not_a_daemon(&error));
        let shared = SharedWords { map: mapped(&map, map::bytes(cpus))?, page: mapped(&page, page::bytes(cpus))? };
        let page = File::from(page).metadata().map_err(|error| not_a_daemon(&error))?.ino();
        Ok(Self { shared, page, cpus, socket, _events: [idleness, coming] })
    }

    /// Returns the current virtual time, for [`has_passed`](Self::has_passed) and [`wait`](Self::wait). Everything that
    /// the caller wrote before is ordered before the timestamp.
    #[inline]
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        fence(Ordering::SeqCst);
        let virtual_time = self.shared.map.load(map::VIRTUAL_TIME);
        Timestamp { virtual_time, page: self.page, cpu: cpus::current() }
    }

    /// Returns whether each of the CPUs (all, if `cpus` is `None`) has been interrupted, idle or offline since the
    /// timestamp was taken. If so, from now on the caller sees everything that any thread on these CPUs did before the
    /// timestamp. Each thread on these CPUs also sees what the caller of `timestamp` wrote before the timestamp.
    ///
    /// This method neither blocks nor requests interrupts. It relies on the timer, which interrupts each busy CPU a few
    /// hundred times a second. Call [`request_heartbeat`](Self::request_heartbeat) to get an interrupt sooner. Also
    /// call it if the timestamp has not passed after about ten milliseconds: a CPU may have been taken offline, or may
    /// have no timer.
    ///
    /// One result of `true` is enough. For the same timestamp the result may be `false` later: a CPU may have passed
    /// only because it was idle, and may now run a program again. The result is always `false` for a CPU that this
    /// machine does not have, and for a timestamp from the client of another daemon.
    #[inline]
    #[must_use]
    pub fn has_passed(&self, timestamp: Timestamp, cpus: Option<&[u32]>) -> bool {
        timestamp.page == self.page && self.missing(timestamp, cpus).is_none()
    }

    fn missing(&self, timestamp: Timestamp, cpus: Option<&[u32]>) -> Option<u32> {
        let is_missing = |&cpu: &u32| {
            cpu >= self.cpus || (timestamp.cpu != Some(cpu) && !has_passed(&self.shared, cpu, timestamp.virtual_time))
        };
        let missing = match cpus {
            None => (0..self.cpus).find(is_missing),
            Some(cpus) => cpus.iter().copied().find(is_missing),
        };
        fence(Ordering::SeqCst);
        missing
    }

    /// Returns whether each CPU is idle or absent, or was interrupted after `clock_ns`, a time from
    /// [`clock::now_ns`](ascertain_sys::clock::now_ns).
    ///
    /// Use this for measurements, not to decide when to free memory. While the rate of the kernel's clock is being
    /// corrected, the programs in the kernel may read a time that is about a microsecond ahead. Virtual time does not
    /// have this weakness.
    #[must_use]
    pub fn has_passed_by_clock(&self, clock_ns: u64) -> bool {
        let has_passed = |cpu| {
            let noted_ns = self.shared.map(map::line(cpu) + map::CLOCK_NS);
            noted_ns > clock_ns || is_idle(&self.shared, cpu) || is_absent(&self.shared, cpu)
        };
        (0..self.cpus).all(has_passed)
    }

    /// Requests a heartbeat: the daemon soon interrupts each CPU that is not idle. Does not block.
    ///
    /// # Errors
    /// [`Error::Gone`] if the daemon has ended.
    pub fn request_heartbeat(&self) -> Result<(), Error> {
        match socket::send(&self.socket, 0, &[]) {
            // The socket's buffer is full, so enough requests are already pending.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(Error::Gone),
            _ => Ok(()),
        }
    }

    /// Requests heartbeats, and blocks until the timestamp [has passed](Self::has_passed) on the CPUs (all, if `cpus`
    /// is `None`).
    ///
    /// # Errors
    /// [`Error::Late`] after the deadline. [`Error::Gone`] as soon as the daemon has ended; use another barrier then,
    /// although the timestamp may still pass. [`Error::OtherDaemon`] if the timestamp is from the client of another
    /// daemon, or is older than the last restart of the daemon at this path.
    pub fn wait(&self, timestamp: Timestamp, cpus: Option<&[u32]>, deadline: Instant) -> Result<(), Error> {
        if timestamp.page != self.page {
            return Err(Error::OtherDaemon);
        }
        loop {
            // The number of heartbeats is read before the CPUs are checked. A heartbeat in between changes the number,
            // so the sleep ends at once.
            let beats = self.shared.page.load_u32(page::BEATS);
            fence(Ordering::SeqCst);
            let Some(cpu) = self.missing(timestamp, cpus) else { return Ok(()) };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let last_ns = if cpu < self.cpus { self.shared.map(map::line(cpu) + map::CLOCK_NS) } else { 0 };
                return Err(Error::Late { cpu, cpus: self.cpus, age_ns: clock::now_ns().saturating_sub(last_ns) });
            }
            self.request_heartbeat()?;
            if !self.spin(beats, timestamp, cpus) {
                self.shared.page.wait(page::BEATS, beats, left.min(SLEEP_MAX));
            }
        }
    }

    /// Checks in a loop whether the timestamp has passed, or the number of heartbeats differs from `beats`. Returns
    /// `true` as soon as one of the two is the case. Returns `false` after [`SPIN_NS`]. Does not sleep.
    fn spin(&self, beats: u32, timestamp: Timestamp, cpus: Option<&[u32]>) -> bool {
        let start_ns = clock::now_ns();
        while clock::now_ns() - start_ns < SPIN_NS {
            if self.shared.page.load_u32(page::BEATS) != beats || self.has_passed(timestamp, cpus) {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Returns whether the daemon is still running.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !socket::is_hung_up(&self.socket)
    }

    /// Returns the number of CPUs that this machine may have, including offline ones.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Returns the current state of the daemon.
    #[must_use]
    pub fn status(&self) -> Status {
        let now_ns = clock::now_ns();
        let cpu = |cpu| {
            let word = |offset| self.shared.map(map::line(cpu) + offset);
            let interrupts = word(map::GENERATION);
            let age_ns = (interrupts > 0).then(|| now_ns.saturating_sub(word(map::CLOCK_NS)));
            CpuStatus { cpu, is_idle: is_idle(&self.shared, cpu), interrupts, age_ns }
        };
        Status {
            pid: socket::peer(&self.socket).map_or(0, |peer| peer.pid),
            virtual_time: self.shared.map(map::VIRTUAL_TIME),
            beats: self.shared.page.load_u32(page::BEATS),
            period_ns: self.shared.page(page::PERIOD_NS),
            cpu_time_ns: self.shared.page(page::CPU_TIME_NS),
            cpus: (0..self.cpus).map(cpu).collect(),
        }
    }
}
