//! Tests of the daemon itself, if this machine supports it and this user may start it. A child made by fork(2) keeps
//! copies of all sockets and locks of its parent. Each test is therefore alone in its process, so that the child of one
//! test does not hold the daemon of another test. Only one test runs at a time, because some keep all CPUs busy.

use std::io::PipeWriter;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use std::{fs, io};

use ascertain_sync::barrierd::{Client, Daemon, Error, missed_rounds};
use ascertain_sys::socket;
use ascertain_sys::testing::deadline;

use crate::common::daemon::{PERIOD, daemon};
use crate::common::machine::alone_on_the_machine;
use crate::common::over::Over;

/// Runs the daemon on a new thread until the returned pipe is dropped.
fn serve(mut daemon: Daemon) -> (PipeWriter, JoinHandle<Daemon>) {
    let (stopped, stop) = io::pipe().unwrap();
    let thread = thread::spawn(move || {
        daemon.serve(stopped.as_fd()).unwrap();
        daemon
    });
    (stop, thread)
}

/// Opens a client of a daemon that may respond late.
fn open(path: &Path) -> Client {
    let until = deadline();
    loop {
        match Client::open(path) {
            Err(Error::NotADaemon { .. }) if Instant::now() < until => {}
            client => return client.unwrap(),
        }
    }
}

#[test]
fn every_wait_ends_while_all_cpus_are_busy() {
    alone_on_the_machine(|| {
        let Some(mut daemon) = daemon() else { return };
        let client = daemon.connect().unwrap();
        let (stop, serving) = serve(daemon);
        thread::sleep(40 * PERIOD);
        assert_eq!(client.status().beats, 0, "nobody waits");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _over = Over(&is_over);
            for _ in 0..client.cpus().min(16) {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop()
                    }
                });
            }
            for _ in 0..50 {
                client.wait(client.timestamp(), None, deadline()).unwrap();
            }
            // Timer interrupts may have ended these waits before any heartbeat. So this waits for a CPU that does not
            // exist, which no timer interrupts.
            while client.status().beats == 0 {
                let soon = Instant::now() + 40 * PERIOD;
                assert!(matches!(client.wait(client.timestamp(), Some(&[u32::MAX]), soon), Err(Error::Late { .. })));
            }
        });
        let status = client.status();
        assert!(status.cpu_time_ns > 0 && status.virtual_time >= status.beats.into());
        assert!(status.cpus.iter().any(|cpu| cpu.interrupts > 0 && cpu.age_ns.is_some()), "{status:?}");
        drop(stop);
        serving.join().unwrap();
    });
}

/// The litmus test detects only waits that end at once. Any longer wait passes the test, even if it ends before the
/// interrupts, because a store buffer is empty after a microsecond.
#[test]
fn no_wait_ends_at_once() {
    alone_on_the_machine(|| {
        let Some(mut daemon) = daemon() else { return };
        let client = daemon.connect().unwrap();
        let (stop, serving) = serve(daemon);
        assert_eq!(missed_rounds(300, || client.wait(client.timestamp(), None, deadline()).unwrap()), 0);
        drop(stop);
        serving.join().unwrap();
    });
}

#[test]
fn a_forked_child_goes_on() {
    alone_on_the_machine(|| {
        let Some(mut daemon) = daemon() else { return };
        let client = daemon.connect().unwrap();
        let (stop, serving) = serve(daemon);
        // SAFETY: the child makes system calls and reads memory, allocates only if it fails, and ends by `_exit`.
        let child = unsafe {
            match libc::fork() {
                0 => libc::_exit(client.wait(client.timestamp(), None, deadline()).is_err().into()),
                child => child,
            }
        };
        let mut status = -1;
        // SAFETY: `status` may be written to.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        client.wait(client.timestamp(), None, deadline()).unwrap();
        drop(stop);
        serving.join().unwrap();
    });
}

#[test]
fn one_daemon_at_a_path() {
    alone_on_the_machine(|| {
        let Some(mut daemon) = daemon() else { return };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/barrierd");
        daemon.listen(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.with_added_extension("lock"))), (0o666, 0o600));
        let Some(mut second) = crate::common::daemon::daemon() else { return };
        assert!(matches!(second.listen(&path), Err(Error::IsRunning { .. })));
        let (stop, serving) = serve(daemon);
        let client = open(&path);
        client.wait(client.timestamp(), None, deadline()).unwrap();
        drop(stop);
        drop(serving.join().unwrap());
        assert!(!path.exists());
        assert!(matches!(client.wait(client.timestamp(), Some(&[u32::MAX]), deadline()), Err(Error::Gone)));
        // A socket that a killed daemon left is replaced; a file that is not a socket is not.
        fs::write(&path, "mine").unwrap();
        assert!(second.listen(&path).unwrap_err().to_string().contains("not a socket"));
        fs::remove_file(&path).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        second.listen(&path).unwrap();
    });
}

#[test]
fn a_start_that_is_refused_leaves_nothing() {
    alone_on_the_machine(|| {
        let Some(mut daemon) = daemon() else { return };
        let folder = tempfile::tempdir().unwrap();
        let [file, socket] = ["file", "socket"].map(|name| folder.path().join(name));
        fs::write(&file, "mine").unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&file, &socket] {
            assert!(matches!(daemon.listen(path), Err(Error::File { .. })));
        }
        let long = folder.path().join("a").join("b".repeat(104 - folder.path().as_os_str().len() - 3));
        assert!(matches!(daemon.listen(&long), Err(Error::LongPath { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        daemon.listen(&long.with_file_name(&long.file_name().unwrap().to_str().unwrap()[1..])).unwrap();
    });
}

#[test]
fn hostile_clients_hold_nobody_up() {
    alone_on_the_machine(|| {
        let Some(mut daemon) = daemon() else { return };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("barrierd");
        daemon.listen(&path).unwrap();
        let (stop, serving) = serve(daemon);
        let client = open(&path);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _over = Over(&is_over);
            scope.spawn(|| {
                let flood = UnixStream::connect(&path).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let _ = socket::send(&flood, 7, &[]);
                }
            });
            scope.spawn(|| {
                // This client never reads its answer, and hangs up at once.
                while !is_over.load(Ordering::Relaxed) {
                    let _ = UnixStream::connect(&path);
                }
            });
            for _ in 0..20 {
                client.wait(client.timestamp(), None, deadline()).unwrap();
            }
        });
        drop(stop);
        serving.join().unwrap();
    });
}
