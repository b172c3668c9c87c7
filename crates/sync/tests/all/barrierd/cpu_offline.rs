//! Tests that take a real CPU offline and bring it back online. They run on demand, because they disturb the whole
//! machine: `cargo test -p ascertain-sync --features daemon --test all barrierd::cpu_offline -- --ignored`, as root.

use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ascertain_sync::barrierd::{Client, Daemon, missed_rounds};
use ascertain_sync::per_cpu::Counter;
use ascertain_sys::testing::{deadline, wait_until};

use crate::common::machine::alone_on_the_machine;
use crate::common::over::Over;

const PERIOD: Duration = Duration::from_micros(250);

/// A CPU that can be taken offline. It comes back online however the test ends.
struct Switch {
    cpu: u32,
    path: PathBuf,
}

impl Switch {
    fn new() -> Self {
        let path = |cpu| PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        let cpu = (1..1024).rev().find(|&cpu| fs::read_to_string(path(cpu)).is_ok_and(|text| text.trim() == "1"));
        let cpu = cpu.expect("a CPU that can be taken offline");
        Self { cpu, path: path(cpu) }
    }

    fn set(&self, online: bool) {
        fs::write(&self.path, if online { "1" } else { "0" })
            .expect("needs root, and a kernel that can take a CPU offline");
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = fs::write(&self.path, "1");
    }
}

/// Runs `work` with a client of a daemon. The daemon serves on another thread until `work` has ended.
fn with_daemon(work: impl FnOnce(&Client)) {
    let mut daemon = Daemon::new(PERIOD).unwrap();
    let client = daemon.connect().unwrap();
    let (stop, stopped) = std::io::pipe().unwrap();
    thread::scope(|scope| {
        // Dropped when the work ends, however it ends.
        let _stopped = stopped;
        scope.spawn(move || daemon.serve(stop.as_fd()).unwrap());
        work(&client);
    });
}

fn wait(client: &Client) {
    client.wait(client.timestamp(), None, deadline()).unwrap();
}

#[test]
#[ignore = "takes a CPU offline"]
fn nothing_hangs_and_nothing_is_lost_while_a_cpu_goes_and_comes() {
    alone_on_the_machine(|| {
        let switch = Switch::new();
        let (counter, added, is_over) = (Counter::new(), AtomicU64::new(0), AtomicBool::new(false));
        with_daemon(|client| {
            thread::scope(|scope| {
                let over = Over(&is_over);
                for _ in 0..2 * client.cpus() {
                    scope.spawn(|| {
                        while !is_over.load(Ordering::Relaxed) {
                            (0..1_000).for_each(|_| counter.add(1));
                            added.fetch_add(1_000, Ordering::Relaxed);
                        }
                    });
                }
                let waits = scope.spawn(|| {
                    let mut waits = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        wait(client);
                        waits += 1;
                    }
                    waits
                });
                for _ in 0..5 {
                    let before = client.timestamp();
                    switch.set(false);
                    client.wait(before, None, deadline()).unwrap();
                    wait(client);
                    let gone = client.status().cpus[switch.cpu as usize].interrupts;
                    assert_eq!(missed_rounds(50, || wait(client)), 0, "a CPU is offline");
                    assert_eq!(client.status().cpus[switch.cpu as usize].interrupts, gone, "it was not offline");
                    switch.set(true);
                    assert_eq!(missed_rounds(50, || wait(client)), 0, "it is back");
                }
                drop(over);
                assert!(waits.join().unwrap() > 0);
            });
        });
        assert_eq!(counter.sum(), added.into_inner());
    });
}

#[test]
#[ignore = "takes a CPU offline"]
fn a_daemon_may_start_without_a_cpu_that_comes_later() {
    alone_on_the_machine(|| {
        let switch = Switch::new();
        switch.set(false);
        with_daemon(|client| {
            wait(client);
            assert_eq!(client.status().cpus[switch.cpu as usize].interrupts, 0);
            switch.set(true);
            assert_eq!(missed_rounds(300, || wait(client)), 0);
            assert!(client.status().cpus[switch.cpu as usize].interrupts > 0);
        });
    });
}

/// A single heartbeat is enough, even without an interrupt by a timer. The heartbeat first advances the virtual time,
/// and then records the new time for each CPU that is offline. The recorded time is therefore later than the timestamp.
#[test]
#[ignore = "takes a CPU offline"]
fn one_heartbeat_passes_a_cpu_that_is_offline() {
    alone_on_the_machine(|| {
        let switch = Switch::new();
        with_daemon(|client| {
            wait(client);
            switch.set(false);
            for _ in 0..100 {
                // No heartbeat is in progress.
                thread::sleep(10 * PERIOD);
                let (before, timestamp) = (client.status().beats, client.timestamp());
                client.request_heartbeat().unwrap();
                wait_until("the next heartbeat", || client.status().beats != before);
                assert!(client.has_passed(timestamp, Some(&[switch.cpu])));
            }
        });
    });
}
