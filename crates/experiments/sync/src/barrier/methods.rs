//! The ways to wait for every CPU.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ascertain_sys::mapping::Shootdown;
use ascertain_sys::{clock, membarrier, privileges};

use super::daemon::{Connection, Counted};

/// Barriers take milliseconds; who waits that long has met something else.
pub const WAIT_MAX: Duration = Duration::from_secs(10);
/// The first pause between two looks, which grow by a tenth of the time that has gone: as much is added at most.
const PAUSE_MIN_NS: u64 = 20_000;
/// When the source's daemon looked at /proc/stat: a CPU without ticks, or one that was taken offline.
const PATIENCE_NS: u64 = 10_000_000;

/// One way, made ready.
pub enum Method {
    Heartbeat(Rc<Connection>),
    Interrupts(Rc<Connection>),
    InterruptsByClock(Rc<Connection>),
    Plain,
    Expedited,
    Asked(Asked),
    Mprotect(Shootdown),
    None,
}

/// Whether this machine has it; if not, why.
pub fn is_available(variant: &str) -> Result<(), String> {
    let supported = |is_supported: io::Result<bool>| match is_supported {
        Ok(true) => Ok(()),
        Ok(false) => Err("the kernel does not have it, or not with nohz_full".to_owned()),
        Err(error) => Err(format!("membarrier(2): {error}")),
    };
    match variant {
        "plain" => supported(membarrier::is_global_supported()),
        "expedited" => supported(membarrier::is_expedited_supported()),
        "heartbeat" | "interrupts" | "interrupts-clock" => tried().map(drop),
        _ => Ok(()),
    }
}

/// Whether the kernel counts what the daemon's program takes; if not, why.
pub fn program_is_counted() -> Result<(), String> {
    tried().and_then(|is_counted| is_counted)
}

/// Whether there is a daemon; if so, whether its program's time can be counted. Tried once.
fn tried() -> Result<Result<(), String>, String> {
    static TRIED: LazyLock<Result<Result<(), String>, String>> = LazyLock::new(|| {
        let daemon = Connection::new().map_err(|error| error.to_string())?;
        Ok(count(&daemon).map(drop))
    });
    TRIED.clone()
}

fn count(daemon: &Connection) -> Result<Counted, String> {
    let program = daemon.program.as_ref();
    let program =
        program.ok_or("the kernel tells of programs to those who made them: a daemon of our own needs root")?;
    program.count().map_err(|error| error.to_string())
}

impl Method {
    /// `daemon` gives the one connection of the session.
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
            "asked" => Self::Asked(Asked::new().map_err(|error| error.to_string())?),
            "mprotect" => Self::Mprotect(Shootdown::new().map_err(|error| error.to_string())?),
            "none" => Self::None,
            _ => return Err(format!("no way to a barrier is called {variant}")),
        })
    }

    /// Returns when every CPU has passed.
    pub fn wait(&mut self) -> Result<(), String> {
        let said = |error: io::Error| error.to_string();
        match self {
            Self::Heartbeat(daemon) => {
                let client = &daemon.client;
                let timestamp = client.timestamp();
                client.wait(timestamp, None, Instant::now() + WAIT_MAX).map_err(|error| error.to_string())
            }
            Self::Interrupts(daemon) => {
                let timestamp = daemon.client.timestamp();
                look_again(|| daemon.client.has_passed(timestamp, None), || daemon.client.ask().is_ok())
            }
            Self::InterruptsByClock(daemon) => {
                let start_ns = clock::now_ns();
                look_again(|| daemon.client.has_passed_by_clock(start_ns), || false)
            }
            Self::Plain => membarrier::global().map_err(said),
            Self::Expedited => membarrier::private_expedited().map_err(said),
            Self::Asked(another) => another.wait(),
            Self::Mprotect(page) => page.shoot().map_err(said),
            Self::None => Ok(()),
        }
    }

    /// Rounds of store buffering: thousands, where it is so quick that they can show that it is no barrier. A few where
    /// it takes longer than any store stays in a buffer, to see that it returns. 0 where it claims to be none.
    pub fn litmus_rounds(&self) -> usize {
        match self {
            Self::Expedited => 3_000,
            Self::Heartbeat(_) | Self::Interrupts(_) | Self::Plain => 3,
            Self::InterruptsByClock(_) | Self::Mprotect(_) | Self::Asked(_) | Self::None => 0,
        }
    }

    /// The daemon's CPU time so far, if it is the daemon that does the work.
    pub fn daemon_ns(&self) -> Option<u64> {
        match self {
            Self::Heartbeat(daemon) => Some(daemon.client.status().cpu_time_ns),
            _ => None,
        }
    }

    /// Has the kernel count from here on what the daemon's program takes, where it does; and on how many CPUs it runs.
    pub fn count(&self) -> Result<Option<(Counted, usize)>, String> {
        let Self::Heartbeat(daemon) = self else { return Ok(None) };
        if program_is_counted().is_err() {
            return Ok(None);
        }
        let cpus = daemon.client.status().cpus.iter().filter(|cpu| cpu.interrupts > 0).count();
        Ok(Some((count(daemon)?, cpus.max(1))))
    }
}

/// Looks, and sleeps a little, longer and longer, until it is so. Asks once after [`PATIENCE_NS`].
fn look_again(has_passed: impl Fn() -> bool, ask: impl Fn() -> bool) -> Result<(), String> {
    let start_ns = clock::now_ns();
    let mut has_asked = false;
    while !has_passed() {
        let gone_ns = clock::now_ns() - start_ns;
        has_asked = has_asked || (gone_ns > PATIENCE_NS && ask());
        if gone_ns > WAIT_MAX.as_nanos() as u64 {
            return Err(format!("a CPU was not interrupted for {WAIT_MAX:?}: offline, or without the kernel's timer"));
        }
        thread::sleep(Duration::from_nanos(PAUSE_MIN_NS.max(gone_ns / 10)));
    }
    Ok(())
}

/// What a daemon can't do without: somebody else is asked, and tells. A thread that answers whenever it is asked over a
/// socket, as the daemon is, and comes before others as the daemon does. It tells by a word that the asker looks at
/// without a pause.
pub struct Asked {
    socket: UnixStream,
    asked: u64,
    answered: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Asked {
    pub fn new() -> io::Result<Self> {
        let (socket, mut theirs) = UnixStream::pair()?;
        let answered = Arc::new(AtomicU64::new(0));
        let answers = Arc::clone(&answered);
        let serve = move || {
            // It works without, only later. Whoever sees no answer says so.
            let _ = privileges::run_in_real_time();
            while theirs.read_exact(&mut [0]).is_ok() {
                answers.fetch_add(1, Ordering::Release);
            }
        };
        let thread = thread::Builder::new().name("asked".into()).spawn(serve)?;
        Ok(Self { socket, asked: 0, answered, thread: Some(thread) })
    }

    /// Returns when the other thread has told.
    pub fn wait(&mut self) -> Result<(), String> {
        self.socket.write_all(&[0]).map_err(|error| error.to_string())?;
        self.asked += 1;
        let start_ns = clock::now_ns();
        while self.answered.load(Ordering::Acquire) != self.asked {
            std::hint::spin_loop();
            if clock::now_ns() - start_ns > WAIT_MAX.as_nanos() as u64 {
                return Err(format!("the thread that was asked did not answer for {WAIT_MAX:?}"));
            }
        }
        Ok(())
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // The thread's reading ends then.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
