//! Whether a wait ends only when each CPU was interrupted, also in a container, which has files of its own over the
//! kernel's. Needs root, and a kernel that loads programs.
#![cfg(all(feature = "daemon", target_os = "linux"))]
#![allow(missing_docs, clippy::print_stderr)]

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sync::barrierd::{Client, Daemon, Error};

const WAITS: u32 = 500;
const PERIOD: Duration = Duration::from_micros(250);

/// Runs `work` on a thread that finds `text` in the file, where it may have mounts of its own.
fn with_file<T: Send>(file: &str, text: &str, work: impl FnOnce() -> T + Send) -> Option<T> {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("file");
    std::fs::write(&other, text).unwrap();
    let [root, from, to] =
        [Path::new("/"), &other, Path::new(file)].map(|path| CString::new(path.as_os_str().as_bytes()).unwrap());
    let is_mounted = || {
        // SAFETY: the texts end and live; no data. Of this thread only: it shares its mounts with nobody afterwards.
        unsafe {
            libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(ptr::null(), root.as_ptr(), ptr::null(), libc::MS_REC | libc::MS_PRIVATE, ptr::null())
                    == 0
                && libc::mount(from.as_ptr(), to.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null()) == 0
        }
    };
    thread::scope(|scope| scope.spawn(|| is_mounted().then(work)).join().unwrap())
}

fn left_out(why: &dyn std::fmt::Display) {
    eprintln!("left out: {why}");
}

/// A daemon, unless the machine has none.
fn daemon() -> Option<Result<Daemon, Error>> {
    match Daemon::new(PERIOD) {
        Err(error) if error.is_unavailable() => {
            left_out(&error);
            None
        }
        daemon => Some(daemon),
    }
}

fn allowed() -> Vec<usize> {
    // SAFETY: plain bits; the kernel writes as many bytes as it is told there are, and the numbers are below the size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), 0);
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

fn pin(cpu: usize) -> bool {
    // SAFETY: as above; the kernel only reads.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0
    }
}

/// In how many of the waits the last CPU, which runs a program all the time, had no interrupt.
fn passed_without_an_interrupt(mut daemon: Daemon, [here, there]: [usize; 2], wait: fn(&Client)) -> usize {
    let client = daemon.connect().unwrap();
    let (stopped, stop) = io::pipe().unwrap();
    let is_over = AtomicBool::new(false);
    let is_busy = AtomicBool::new(false);
    let interrupts = |client: &Client| client.status().cpus[there].interrupts;
    thread::scope(|scope| {
        scope.spawn(move || {
            pin(here);
            daemon.serve(stopped.as_fd()).unwrap();
        });
        scope.spawn(|| {
            assert!(pin(there));
            while !is_over.load(Ordering::Relaxed) {
                is_busy.store(true, Ordering::Relaxed);
            }
        });
        let waiter = scope.spawn(|| {
            assert!(pin(here));
            while !is_busy.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            let is_early = |_: &u32| {
                let before = interrupts(&client);
                wait(&client);
                // A CPU that is taken from its program by another one may be idle in between.
                interrupts(&client) == before && !client.status().cpus[there].is_idle
            };
            (0..WAITS).filter(is_early).count()
        });
        let early = waiter.join();
        is_over.store(true, Ordering::Relaxed);
        drop(stop);
        early.unwrap()
    })
}

fn wait(client: &Client) {
    client.wait(client.ticket(), None, Instant::now() + Duration::from_secs(60)).unwrap();
}

#[test]
fn no_wait_ends_before_a_busy_cpu_was_interrupted() {
    let allowed = allowed();
    let &[here, .., there] = &allowed[..] else { return left_out(&"needs two CPUs") };
    let early = |wait| Some(passed_without_an_interrupt(daemon()?.unwrap(), [here, there], wait));
    assert_eq!(early(wait).unwrap_or(0), 0);
    // The control.
    assert_ne!(early(|_| ()), Some(0));
}

/// As lxcfs does it: fewer CPUs than the container's threads run on.
#[test]
fn a_cpu_that_a_file_calls_offline_is_waited_for() {
    let allowed = allowed();
    let &[here, .., there] = &allowed[..] else { return left_out(&"needs two CPUs") };
    let early = with_file("/sys/devices/system/cpu/online", &format!("{here}\n"), || {
        Some(passed_without_an_interrupt(daemon()?.unwrap(), [here, there], wait))
    });
    match early {
        None => left_out(&"this user may not mount"),
        Some(early) => assert_eq!(early.unwrap_or(0), 0, "of {WAITS} waits"),
    }
}

/// Of a CPU that is not in it there would be no note.
#[test]
fn a_list_that_leaves_out_a_cpu_is_an_error() {
    if allowed().last() == Some(&0) {
        return left_out(&"needs two CPUs");
    }
    for list in ["0\n", "0-"] {
        let refused = with_file("/sys/devices/system/cpu/possible", list, || daemon().map(|daemon| daemon.err()));
        match refused {
            None => left_out(&"this user may not mount"),
            Some(None) => {}
            Some(Some(error)) => assert!(matches!(error, Some(Error::File { .. })), "{list:?}: {error:?}"),
        }
    }
}
