//! The methods of waiting until every CPU has passed a barrier.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sys::mapping::Shootdown;
use ascertain_sys::threads::JoinOnDrop;
use ascertain_sys::{clock, membarrier, privileges};

use super::daemon::{Connection, RunTimeCounter};

/// Longest wait for a barrier to pass. Barriers take milliseconds, so a longer wait means that the method does not
/// work.
pub const WAIT_MAX: Duration = Duration::from_secs(10);
/// The first pause between two checks whether the barrier has passed. Later pauses are a tenth of the time since the
/// start, so the measured time is at most a tenth too long.
const PAUSE_MIN_NS: u64 = 20_000;
/// Duration after which a method that waits for timer interrupts requests a heartbeat. A CPU that has had no interrupt
/// for that long has no timer interrupts, or is offline. The daemon in the publication that the README cites reads
/// /proc/stat after the same duration.
const PATIENCE_NS: u64 = 10_000_000;

/// A method of waiting until every CPU has passed a barrier, ready for use.
pub enum Method {
    Heartbeat(Rc<Connection>),
    Interrupts(Rc<Connection>),
    InterruptsByClock(Rc<Connection>),
    Plain,
    Expedited,
    RemoteThread(RemoteThread),
    Mprotect(Shootdown),
    None,
}

/// Checks whether this machine supports the method, and returns the reason if not.
pub fn is_available(variant: &str) -> Result<(), String> {
    let supported = |is_supported: io::Result<bool>| match is_supported {
        Ok(true) => Ok(()),
        Ok(false) => Err("the kernel does not support this membarrier command, or has nohz_full enabled".to_owned()),
        Err(error) => Err(format!("membarrier(2): {error}")),
    };
    match variant {
        "plain" => supported(membarrier::is_global_supported()),
        "expedited" | "asked-interrupts" => supported(membarrier::is_expedited_supported()),
        "heartbeat" | "interrupts" | "interrupts-clock" => tried().map(drop),
        _ => Ok(()),
    }
}

/// Checks whether the kernel counts the run time of the daemon's BPF program, and returns the reason if not.
pub fn program_is_counted() -> Result<(), String> {
    tried().and_then(|is_counted| is_counted)
}

/// Tries to connect to a daemon, once per process. The outer error is the reason why there is no daemon. The inner
/// error is the reason why the run time of the daemon's BPF program cannot be counted.
fn tried() -> Result<Result<(), String>, String> {
    static TRIED: LazyLock<Result<Result<(), String>, String>> = LazyLock::new(|| {
        let daemon = Connection::new().map_err(|error| error.to_string())?;
        Ok(count(&daemon).map(drop))
    });
    TRIED.clone()
}

fn count(daemon: &Connection) -> Result<RunTimeCounter, String> {
    let program = daemon.program.as_ref();
    let program = program
        .ok_or("only the process of the daemon can read the run time of its BPF program; run this as root to start a daemon in this process")?;
    program.count().map_err(|error| error.to_string())
}

impl Method {
    /// Creates the method of a variant. `daemon` returns the connection to the daemon, which all methods of a session
    /// share.
    pub fn new(variant: &str, daemon: impl FnOnce() -> Result<Rc<Connection>, String>) -> Result<Self, String> {
        Ok(match variant {
            "heartbeat" => Self::Heartbeat(daemon()?),
            "interrupts" => Self::Interrupts(daemon()?),
            "interrupts-clock" => Self::InterruptsByClock(daemon()?),
            "plain" => Self::Plain,
            "expedited" => {
                membarrier::register_private_expedited().map_err(|error| error.to_string())?;
                Self::Expedited
            }
            "asked" => Self::RemoteThread(RemoteThread::new(|| Ok(())).map_err(|error| error.to_string())?),
            "asked-interrupts" => {
                membarrier::register_private_expedited().map_err(|error| error.to_string())?;
                let thread = RemoteThread::new(membarrier::private_expedited);
                Self::RemoteThread(thread.map_err(|error| error.to_string())?)
            }
            "mprotect" => Self::Mprotect(Shootdown::new().map_err(|error| error.to_string())?),
            "none" => Self::None,
            _ => return Err(format!("unknown method {variant}")),
        })
    }

    /// Waits until every CPU has passed the barrier. The method `None` returns at once.
    pub fn wait(&mut self) -> Result<(), String> {
        let message = |error: io::Error| error.to_string();
        match self {
            Self::Heartbeat(daemon) => {
                let client = &daemon.client;
                let timestamp = client.timestamp();
                client.wait(timestamp, None, Instant::now() + WAIT_MAX).map_err(|error| error.to_string())
            }
            Self::Interrupts(daemon) => {
                let timestamp = daemon.client.timestamp();
                look_again(|| daemon.client.has_passed(timestamp, None), || daemon.client.request_heartbeat().is_ok())
            }
            Self::InterruptsByClock(daemon) => {
                let start_ns = clock::now_ns();
                look_again(|| daemon.client.has_passed_by_clock(start_ns), || false)
            }
            Self::Plain => membarrier::global().map_err(message),
            Self::Expedited => membarrier::private_expedited().map_err(message),
            Self::RemoteThread(another) => another.wait(),
            Self::Mprotect(page) => page.shoot().map_err(message),
            Self::None => Ok(()),
        }
    }

    /// Returns the number of rounds of the store-buffering test. A quick method gets thousands of rounds, so that the
    /// test detects a faulty barrier. The test cannot detect a fault in a slower method, because every store leaves its
    /// CPU's store buffer before such a method returns. Some slower methods therefore get only a few rounds, to check
    /// that they return. Other methods get no rounds.
    pub fn litmus_rounds(&self) -> usize {
        match self {
            Self::Expedited => 3_000,
            Self::Heartbeat(_) | Self::Interrupts(_) | Self::Plain => 3,
            Self::InterruptsByClock(_) | Self::Mprotect(_) | Self::RemoteThread(_) | Self::None => 0,
        }
    }

    /// Returns the daemon's CPU time so far in nanoseconds, or `None` if the method does not use the daemon's
    /// heartbeats.
    pub fn daemon_ns(&self) -> Option<u64> {
        match self {
            Self::Heartbeat(daemon) => Some(daemon.client.status().cpu_time_ns),
            _ => None,
        }
    }

    /// Makes the kernel count the run time of the daemon's BPF program from now on. Returns the counter, and the number
    /// of CPUs that run the program. Returns `None` if the method has no such program, or if its run time cannot be
    /// counted.
    pub fn count(&self) -> Result<Option<(RunTimeCounter, usize)>, String> {
        let Self::Heartbeat(daemon) = self else { return Ok(None) };
        if program_is_counted().is_err() {
            return Ok(None);
        }
        let cpus = daemon.client.status().cpus.iter().filter(|cpu| cpu.interrupts > 0).count();
        Ok(Some((count(daemon)?, cpus.max(1))))
    }
}

/// Checks `has_passed` repeatedly, with longer and longer pauses, until it returns `true`. If this takes longer than
/// [`PATIENCE_NS`], also calls `ask`, which requests a heartbeat, until a request has succeeded.
fn look_again(has_passed: impl Fn() -> bool, ask: impl Fn() -> bool) -> Result<(), String> {
    let start_ns = clock::now_ns();
    let mut has_asked = false;
    while !has_passed() {
        let gone_ns = clock::now_ns() - start_ns;
        has_asked = has_asked || (gone_ns > PATIENCE_NS && ask());
        if gone_ns > WAIT_MAX.as_nanos() as u64 {
            return Err(format!(
                "a CPU was not interrupted for {WAIT_MAX:?}: it is offline, or the kernel's timer does not interrupt it"
            ));
        }
        thread::sleep(Duration::from_nanos(PAUSE_MIN_NS.max(gone_ns / 10)));
    }
    Ok(())
}

/// A thread that does only the minimum work of a daemon: it receives a request and answers. Like the daemon, it has
/// real-time priority and receives requests over a socket. To answer, it increments a counter in memory, which the
/// requesting thread polls without pauses.
pub struct RemoteThread {
    /// The requesting thread's end of the socket pair. Closing it makes the other thread end.
    socket: UnixStream,
    requests: u64,
    answered: Arc<AtomicU64>,
    _thread: JoinOnDrop,
}

impl RemoteThread {
    /// Starts the thread. It calls `work` before each answer, and ends if `work` fails.
    pub fn new(work: impl Fn() -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let (socket, mut theirs) = UnixStream::pair()?;
        let answered = Arc::new(AtomicU64::new(0));
        let answers = Arc::clone(&answered);
        let serve = move || {
            // Without real-time priority the thread still works, but answers later. The requesting side reports a
            // missing answer.
            let _ = privileges::run_in_real_time();
            while theirs.read_exact(&mut [0]).is_ok() && work().is_ok() {
                answers.fetch_add(1, Ordering::Release);
            }
        };
        let thread = thread::Builder::new().name("asked".into()).spawn(serve)?;
        Ok(Self { socket, requests: 0, answered, _thread: thread.into() })
    }

    /// Sends a request and waits for the answer of the other thread.
    pub fn wait(&mut self) -> Result<(), String> {
        self.socket.write_all(&[0]).map_err(|error| error.to_string())?;
        self.requests += 1;
        let start_ns = clock::now_ns();
        while self.answered.load(Ordering::Acquire) != self.requests {
            std::hint::spin_loop();
            if clock::now_ns() - start_ns > WAIT_MAX.as_nanos() as u64 {
                return Err(format!("the other thread did not answer for {WAIT_MAX:?}"));
            }
        }
        Ok(())
    }
}
