//! Tests that a wait ends only when each CPU was interrupted, even in a container that replaces files of the kernel. A
//! thread with its own mounts replaces such files. These tests need root, and a kernel that loads BPF programs.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::thread;

use ascertain_sync::barrierd::{Client, Daemon, Error};

use ascertain_sys::testing::{deadline, left_out};

use crate::common::busy::rounds_without_an_interrupt;
use crate::common::cpus::cpus;
use crate::common::daemon::{daemon, daemon_or_error};
use crate::common::machine::alone_on_the_machine;

const WAITS: usize = 100;

/// Runs `work` on a thread for which `file` contains `text`; `None` if the thread may not have its own mounts.
fn with_file<T: Send>(file: &str, text: &str, work: impl FnOnce() -> T + Send) -> Option<T> {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("file");
    std::fs::write(&other, text).unwrap();
    let [root, from, to] =
        [Path::new("/"), &other, Path::new(file)].map(|path| CString::new(path.as_os_str().as_bytes()).unwrap());
    let is_mounted = || {
        // SAFETY: the texts are terminated and alive; there is no data. This affects only this thread, which shares its
        // mounts with no other thread afterwards.
        unsafe {
            libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(ptr::null(), root.as_ptr(), ptr::null(), libc::MS_REC | libc::MS_PRIVATE, ptr::null())
                    == 0
                && libc::mount(from.as_ptr(), to.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null()) == 0
        }
    };
    thread::scope(|scope| scope.spawn(|| is_mounted().then(work)).join().unwrap())
}

/// Returns the number of waits that ended although a CPU that always runs a program had no interrupt.
fn passed_without_an_interrupt(mut daemon: Daemon) -> Option<usize> {
    let client = daemon.connect().unwrap();
    let (stopped, stop) = io::pipe().unwrap();
    thread::scope(|scope| {
        // Dropped when the waits are over, however they end.
        let _stop = stop;
        scope.spawn(move || daemon.serve(stopped.as_fd()).unwrap());
        rounds_without_an_interrupt(WAITS, || wait(&client))
    })
}

fn wait(client: &Client) {
    client.wait(client.timestamp(), None, deadline()).unwrap();
}

#[test]
fn no_wait_ends_before_a_busy_cpu_was_interrupted() {
    alone_on_the_machine(|| {
        let Some(daemon) = daemon() else { return };
        assert_eq!(passed_without_an_interrupt(daemon).unwrap_or(0), 0);
    });
}

/// In containers with lxcfs, the file of online CPUs omits CPUs on which threads of the container run.
#[test]
fn a_cpu_that_a_file_calls_offline_is_waited_for() {
    alone_on_the_machine(|| {
        let early = with_file("/sys/devices/system/cpu/online", &format!("{}\n", cpus()[0]), || {
            passed_without_an_interrupt(daemon()?)
        });
        match early {
            None => left_out("this user may not mount"),
            Some(early) => assert_eq!(early.unwrap_or(0), 0, "of {WAITS} waits"),
        }
    });
}

/// A CPU that is missing from the list would have no record, so no wait would include it.
#[test]
fn a_list_that_leaves_out_a_cpu_is_an_error() {
    alone_on_the_machine(|| {
        if cpus().last() == Some(&0) {
            return left_out("there is only one CPU");
        }
        for list in ["0\n", "0-"] {
            let refused =
                with_file("/sys/devices/system/cpu/possible", list, || daemon_or_error().map(|daemon| daemon.err()));
            match refused {
                None => left_out("this user may not mount"),
                Some(None) => {}
                Some(Some(error)) => assert!(matches!(error, Some(Error::File { .. })), "{list:?}: {error:?}"),
            }
        }
    });
}
