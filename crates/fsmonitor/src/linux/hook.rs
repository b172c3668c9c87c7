//! The program that git calls. It must be quick, and it must never fail: it answers `/` instead.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::time::{Duration, Instant};
use std::{env, thread};

use super::client::{self, Client};
use super::daemon;
use super::place::{self, Worktree};
use super::protocol::Request;
use crate::FOREGROUND;

/// First argument of the process that starts a daemon, and of the daemon.
pub const DAEMON: &str = "daemon";
/// First argument of the process that lists tracked files.
pub const SCAN: &str = "scan";

/// Longest time for which git waits for this program.
const DEADLINE: Duration = Duration::from_millis(250);
/// Time after a failure before another daemon is started.
const RETRY: Duration = Duration::from_secs(60);

/// Runs the hook or the daemon: the `main` of `ascertain-fsmonitor-hook`. Does not return.
///
/// Git calls the hook with `2` and a token. The exit code is 1 for another version of the protocol; git then looks at
/// all files. It is 2 if the hook was called by hand.
pub fn hook_main() -> ! {
    let start = Instant::now();
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let words: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    let is = |word: &str| words.first().is_some_and(|first| *first == word);
    match *words {
        [_, _, _] if is(DAEMON) => exit(daemon::detach(&arguments[1..]).is_err().into()),
        [_, root, git_dir] if is(FOREGROUND) => exit(daemon::run(Path::new(root), Path::new(git_dir)).is_err().into()),
        [_, root, git_dir, limit] if is(SCAN) => {
            let limit = limit.to_str().and_then(|limit| limit.parse().ok()).unwrap_or(0);
            exit(daemon::scan(Path::new(root), Path::new(git_dir), limit).is_err().into())
        }
        [_, ..] if is("2") => {
            // Even a defect must not make git store an empty token.
            std::panic::set_hook(Box::new(|_| print(&client::everything())));
            let token = words.get(1).map_or(&b""[..], |token| token.as_bytes());
            print(&answer(token, start).unwrap_or_else(|_| client::everything()))
        }
        [] => fail(2, "git calls this program (core.fsmonitor); `ascertain fsmonitor enable` sets it up"),
        _ => fail(1, "only version 2 of the hook protocol is supported: set core.fsmonitorHookVersion to 2"),
    }
}

fn print(answer: &[u8]) -> ! {
    let mut out = io::stdout();
    let written = out.write_all(answer).and_then(|()| out.flush());
    exit(written.is_err().into())
}

fn fail(code: i32, text: &str) -> ! {
    let _ = writeln!(io::stderr(), "ascertain-fsmonitor-hook: {text}");
    exit(code)
}

/// Asks the daemon; starts one if none runs.
fn answer(token: &[u8], start: Instant) -> io::Result<Vec<u8>> {
    let deadline = start + DEADLINE;
    let named = env::var_os("GIT_DIR").map(PathBuf::from);
    let git_dir = place::confirmed_git_dir(Path::new("."), named.as_deref()).ok_or(ErrorKind::NotFound)?;
    let asker = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().cast_unsigned());
    let query = client::query(Path::new("."), token, asker)?;
    let mut is_started = false;
    let request = Request::Query(query);
    loop {
        match Client::connect(&git_dir).and_then(|mut client| client.request(&request, deadline)) {
            Err(error) if client::is_without_daemon(&error) && Instant::now() < deadline => {}
            answer => return answer,
        }
        let worktree = Worktree { root: env::current_dir()?, git_dir: std::path::absolute(&git_dir)? };
        if daemon::failure(&worktree).is_some_and(|(_, age)| age < RETRY) {
            return Err(ErrorKind::NotConnected.into());
        }
        if !is_started {
            daemon::start(Path::new("/proc/self/exe"), &worktree)?;
            is_started = true;
        }
        thread::sleep(Duration::from_millis(1));
    }
}
