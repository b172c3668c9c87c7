//! What a daemon can't do without: somebody else is asked, and tells.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use ascertain_sys::{clock, privileges};

use super::methods::WAIT_MAX;

/// A thread that answers whenever it is asked over a socket, as the daemon is, and comes before others as the daemon does.
/// It tells by a word that the asker looks at without a pause.
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
