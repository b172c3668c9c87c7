//! A daemon that does only what a test makes it do.
#![allow(dead_code)] // each test uses a part

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sync::barrierd::file::{self, map, page};
use ascertain_sync::barrierd::{Client, Error, Timestamp};
use ascertain_sys::mapping::SharedMemory;
use ascertain_sys::{cpus, futex, socket};
use tempfile::TempDir;

/// Maximum time of a wait. A wait that takes longer counts as an error of the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// The memory of a daemon that does nothing, and its socket.
pub struct Fake {
    pub folder: TempDir,
    pub listener: UnixListener,
    pub map: SharedMemory,
    pub page: SharedMemory,
    pub cpus: u32,
}

impl Fake {
    pub fn new() -> Self {
        Self::with_cpus(possible())
    }

    pub fn with_cpus(cpus: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(path(&folder)).unwrap();
        let map = SharedMemory::new(c"map", map::bytes(cpus)).unwrap();
        let page = SharedMemory::new(c"page", page::bytes(cpus)).unwrap();
        page.word(page::MAGIC).store(file::MAGIC, Relaxed);
        page.half(page::VERSION).store(file::VERSION, Relaxed);
        page.half(page::CPUS).store(cpus, Relaxed);
        Self { folder, listener, map, page, cpus }
    }

    /// Returns a client, and the daemon's end of its connection.
    pub fn client(&self) -> (Client, UnixStream) {
        let (client, socket) = self.sent(&self.descriptors(), Client::open);
        (client.unwrap(), socket)
    }

    /// Returns the error of a client that gets these descriptors.
    pub fn refused(&self, descriptors: &[BorrowedFd<'_>]) -> Error {
        self.sent(descriptors, Client::open).0.unwrap_err()
    }

    /// Returns the descriptors that a client should get.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        let any = self.listener.as_fd();
        [self.map.as_fd(), self.page.as_fd(), any, any]
    }

    /// Sends descriptors to a client. Returns the client or its error, and the daemon's end of its connection.
    pub fn sent(
        &self,
        descriptors: &[BorrowedFd<'_>],
        open: impl Fn(PathBuf) -> Result<Client, Error> + Sync,
    ) -> (Result<Client, Error>, UnixStream) {
        in_time(|| {
            thread::scope(|scope| {
                let client = scope.spawn(|| open(path(&self.folder)));
                let (socket, _) = self.listener.accept().unwrap();
                // A client that has given up gets nothing.
                let _ = socket::send(&socket, 0, descriptors);
                // This limits the wait for a client that requests nothing.
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                (client.join().unwrap(), socket)
            })
        })
    }

    /// Records an interrupt, as the program in the kernel does.
    pub fn interrupt(&self, cpu: u32) {
        let seen = self.map.word(map::VIRTUAL_TIME).fetch_add(1, SeqCst) + 1;
        self.map.word(map::line(cpu) + map::SEEN).store(seen, SeqCst);
    }

    pub fn beat(&self) {
        (0..self.cpus).for_each(|cpu| self.interrupt(cpu));
        self.page.half(page::BEATS).fetch_add(1, SeqCst);
        futex::wake_all(self.page.half(page::BEATS), futex::Scope::Machine);
    }
}

/// Returns the number of CPUs that this machine can have. Without /sys, as in some sandboxes, it returns a large
/// number.
pub fn possible() -> u32 {
    cpus::possible().unwrap_or(256)
}

pub fn path(folder: &TempDir) -> PathBuf {
    folder.path().join("barrierd")
}

/// Opens a client by calling `opened`. Tries again if the client gets no answer within its limit of one second, which
/// may be too short on a busy machine.
pub fn in_time<T>(mut opened: impl FnMut() -> (Result<Client, Error>, T)) -> (Result<Client, Error>, T) {
    let too_late = std::io::Error::from_raw_os_error(libc::EAGAIN).to_string();
    let until = at_last();
    loop {
        let (client, rest) = opened();
        match &client {
            Err(Error::NotADaemon { why, .. }) if *why == too_late && Instant::now() < until => {}
            _ => return (client, rest),
        }
    }
}

pub fn soon() -> Instant {
    Instant::now() + Duration::from_millis(20)
}

pub fn at_last() -> Instant {
    Instant::now() + PATIENCE
}

/// Takes a timestamp. Returns all CPUs except the one on which it was taken, and the timestamp. On the CPU on which a
/// timestamp was taken, it counts as passed immediately. So tests use only the other CPUs.
pub fn other_cpus(fake: &Fake, client: &Client) -> (Vec<u32>, Timestamp) {
    loop {
        let (before, timestamp, after) = (cpus::current(), client.timestamp(), cpus::current());
        if before == after {
            return ((0..fake.cpus).filter(|&cpu| Some(cpu) != before).collect(), timestamp);
        }
    }
}
