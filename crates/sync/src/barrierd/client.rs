//! For programs that want to know when each CPU has been interrupted. No privilege is needed.

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

/// How long a daemon may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// Who waits looks again and again for so long before it sleeps: a heartbeat takes some 50 µs, and to get back on a CPU
/// takes longer than that where all are busy.
const SPIN_NS: u64 = 100_000;
/// A sleeper looks again that often, should it have been forgotten.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// A connection to the daemon.
///
/// It can be shared by all threads. A child made by fork(2) may go on using it. The programs in the kernel that note
/// interrupts and idleness run for as long as any client lives, so that what is read here stays true when the daemon
/// dies; only, nobody is left to make interrupts then.
#[derive(Debug)]
pub struct Client {
    shared: SharedWords,
    /// Which daemon's: no other page has this number while a client maps it.
    page: u64,
    cpus: u32,
    socket: UnixStream,
    /// While somebody has them, the programs run that note which CPUs are idle, and which come online.
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

/// A moment in one daemon's virtual time: see [`Client::timestamp`]. To other daemons it means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    virtual_time: u64,
    page: u64,
    /// The CPU that the taker was on, so that it need not be waited for.
    cpu: Option<u32>,
}

impl Client {
    /// Connects to the daemon at `path`: [`DEFAULT_PATH`](super::DEFAULT_PATH) unless it was told otherwise.
    ///
    /// # Errors
    /// [`Error::NotRunning`], [`Error::Denied`], [`Error::LongPath`], and if what is found there is not to be trusted
    /// or understood: [`Error::Stranger`], [`Error::NotADaemon`], [`Error::OtherVersion`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Error::unless_short(path)?;
        let socket = UnixStream::connect(path).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::Denied { path: path.into(), source },
            _ => Error::NotRunning { path: path.into(), source },
        })?;
        Self::over(socket, path)
    }

    /// Over a connection that exists, to `path`.
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
            Ok(None) => return Err(not_a_daemon(&"it hung up; too many of your programs may be connected")),
            Err(error) => return Err(not_a_daemon(&error)),
        };
        let [map, page, idleness, coming] = <[OwnedFd; 4]>::try_from(descriptors)
            .map_err(|descriptors| not_a_daemon(&format!("it sent {} descriptors, not 4", descriptors.len())))?;
        let head = Mapping::of(page.as_fd(), page::bytes(0)).map_err(|error| not_a_daemon(&error))?;
        if head.load(page::MAGIC) != MAGIC {
            return Err(not_a_daemon(&"its page begins otherwise"));
        }
        let (version, cpus) = (head.load_u32(page::VERSION), head.load_u32(page::CPUS));
        if version != VERSION {
            return Err(Error::OtherVersion { path: path.into(), version });
        }
        if cpus == 0 || cpus > CPUS_MAX {
            return Err(not_a_daemon(&format!("it speaks of {cpus} CPUs")));
        }
        if cpus::possible().is_ok_and(|possible| possible > cpus) {
            return Err(not_a_daemon(&format!("it knows {cpus} CPUs, and this machine may have more")));
        }
        let mapped = |fd: &OwnedFd, bytes| Mapping::of(fd.as_fd(), bytes).map_err(|error| not_a_daemon(&error));
        let shared = SharedWords { map: mapped(&map, map::bytes(cpus))?, page: mapped(&page, page::bytes(cpus))? };
        let page = File::from(page).metadata().map_err(|error| not_a_daemon(&error))?.ino();
        Ok(Self { shared, page, cpus, socket, _events: [idleness, coming] })
    }

    /// The present moment, after everything that the caller wrote before.
    #[inline]
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        fence(Ordering::SeqCst);
        let virtual_time = self.shared.map.load(map::VIRTUAL_TIME);
        Timestamp { virtual_time, page: self.page, cpu: cpus::current() }
    }

    /// Whether each of the CPUs (all, if none are named) has been interrupted, idle or offline since the timestamp was
    /// taken, so that what any thread on them did before is seen by the caller from now on, and what any thread on
    /// them does from now on sees what the taker wrote before. Does not block, and asks for nothing: a CPU that runs a
    /// program is interrupted by its timer some hundred times a second. [`ask`](Self::ask) for sooner, and after some
    /// ten milliseconds in vain: a CPU may have been taken offline, or may have no timer.
    ///
    /// True once is enough. For the same timestamp it may be false later, when a CPU that was idle runs a program
    /// again: leaving idleness makes no time pass, for a shared word that each CPU increments whenever it wakes would
    /// cost all of them. A CPU that this machine does not have never passes, nor does a timestamp of another daemon's
    /// client.
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

    /// Whether each CPU is idle or absent, or was interrupted after `clock_ns`, which
    /// [`clock::now_ns`](ascertain_sys::clock::now_ns) gave.
    ///
    /// To measure by, not to free memory by: while the rate of the kernel's clock is being corrected, its programs
    /// may see it about a microsecond ahead. Virtual time has no such weakness.
    #[must_use]
    pub fn has_passed_by_clock(&self, clock_ns: u64) -> bool {
        let has_passed = |cpu| {
            let noted_ns = self.shared.map(map::line(cpu) + map::CLOCK_NS);
            noted_ns > clock_ns || is_idle(&self.shared, cpu) || is_absent(&self.shared, cpu)
        };
        (0..self.cpus).all(has_passed)
    }

    /// Asks for a heartbeat: an interrupt for each CPU that is not idle, soon. Does not block.
    ///
    /// # Errors
    /// [`Error::Gone`] if the daemon has ended.
    pub fn ask(&self) -> Result<(), Error> {
        match socket::send(&self.socket, 0, &[]) {
            // So much is asked already.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(Error::Gone),
            _ => Ok(()),
        }
    }

    /// Blocks until the timestamp [has passed](Self::has_passed), asking for heartbeats.
    ///
    /// # Errors
    /// [`Error::Late`] after the deadline, [`Error::Gone`] as soon as the daemon has ended: use another barrier then.
    /// The timestamp may still pass. [`Error::OtherDaemon`] if the timestamp is of another daemon's client, or of the
    /// same path's before the daemon there was started anew.
    pub fn wait(&self, timestamp: Timestamp, cpus: Option<&[u32]>, deadline: Instant) -> Result<(), Error> {
        if timestamp.page != self.page {
            return Err(Error::OtherDaemon);
        }
        loop {
            // Read before the look at the CPUs: a heartbeat in between changes it, and the sleep ends at once.
            let beats = self.shared.page.load_u32(page::BEATS);
            fence(Ordering::SeqCst);
            let Some(cpu) = self.missing(timestamp, cpus) else { return Ok(()) };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let last_ns = if cpu < self.cpus { self.shared.map(map::line(cpu) + map::CLOCK_NS) } else { 0 };
                return Err(Error::Late { cpu, cpus: self.cpus, age_ns: clock::now_ns().saturating_sub(last_ns) });
            }
            self.ask()?;
            if !self.spin(beats, timestamp, cpus) {
                self.shared.page.wait(page::BEATS, beats, left.min(SLEEP_MAX));
            }
        }
    }

    /// Looks for a while; false if it was in vain.
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

    /// Whether the daemon has not ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !socket::is_hung_up(&self.socket)
    }

    /// How many CPUs this machine may have, offline ones counted.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// What the daemon says now.
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
