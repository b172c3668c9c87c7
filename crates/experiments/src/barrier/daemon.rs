//! A daemon of this process's own, where it may have one; else the one that runs.

use std::io::{self, PipeWriter};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ascertain_sync::barrierd::{Client, DEFAULT_PATH, Daemon, Error};

use super::program::{self, Program};

/// From one heartbeat to the next, at least: the daemon's default.
const PERIOD: Duration = Duration::from_micros(250);

/// A client, and the daemon that it needs.
pub struct Connection {
    pub client: Client,
    /// What the kernel runs at interrupts; none if the daemon is another process, or the kernel tells nothing of it.
    pub program: Option<Program>,
    /// Closing it ends the daemon.
    _running: Option<Running>,
}

struct Running {
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Connection {
    pub fn new() -> Result<Self, Error> {
        let before = program::all();
        let mut daemon = match Daemon::new(PERIOD) {
            Ok(daemon) => daemon,
            Err(error) => {
                // Why there is none of our own says more than that none is running.
                let client = Client::open(DEFAULT_PATH).map_err(|_| error)?;
                return Ok(Self { client, program: None, _running: None });
            }
        };
        let program = program::all().into_iter().find(|program| !before.contains(program));
        let client = daemon.connect()?;
        let failed = |source| Error::File { path: "a pipe".into(), source };
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let thread = thread::Builder::new().name("barrierd".into()).spawn(move || {
            // It works without, only later. An error ends it, and the client says that it is gone.
            let _ = daemon.run_in_real_time();
            let _ = daemon.serve(stopped.as_fd());
        });
        let running = Running { stop: Some(stop), thread: Some(thread.map_err(failed)?) };
        Ok(Self { client, program, _running: Some(running) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
