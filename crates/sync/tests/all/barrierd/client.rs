//! Tests of the client against daemons that are not correct or do not respond.

use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
#[cfg(target_arch = "x86_64")]
use std::time::Duration;
use std::{fs, thread};

#[cfg(target_arch = "x86_64")]
use ascertain_sync::barrier::Global;
use ascertain_sync::barrier::{Barrier, Interrupts};
use ascertain_sync::barrierd::file::{self, map, page};
use ascertain_sync::barrierd::{Client, Error};
use ascertain_sys::mapping::SharedMemory;
use ascertain_sys::{cpus, socket};
use proptest::prelude::*;

use ascertain_sys::testing::alone;
#[cfg(target_arch = "x86_64")]
use ascertain_sys::testing::{left_out, or_left_out};

use crate::common::fake_daemon::{Fake, at_last, in_time, other_cpus, path, possible, soon};
#[cfg(target_arch = "x86_64")]
use crate::common::filter::{EXPEDITED, forbid_command, forbid_membarrier};

#[test]
fn the_layout_is_as_documented() {
    assert_eq!((map::VIRTUAL_TIME, map::line(0), map::line(7), map::bytes(2)), (0, 64, 512, 192));
    assert_eq!((map::SEEN, map::CLOCK_NS, map::GENERATION, map::IS_IDLE), (0, 8, 16, 24));
    assert_eq!((page::MAGIC, page::VERSION, page::CPUS, page::PERIOD_NS), (0, 8, 12, 16));
    assert_eq!((page::BEATS, page::BEAT_NS, page::CPU_TIME_NS), (64, 128, 136));
    assert_eq!((page::offline(0), page::offline(9), page::bytes(2)), (192, 264, 208));
    assert_eq!((file::MAGIC.to_ne_bytes(), file::VERSION), (*b"barrierd", 1));
}

#[test]
fn a_timestamp_passes_when_each_cpu_has_been_interrupted() {
    let fake = Fake::with_cpus(possible() + 2);
    let (client, _socket) = fake.client();
    let (others, timestamp) = other_cpus(&fake, &client);
    let (last, rest) = others.split_last().unwrap();
    rest.iter().for_each(|&cpu| fake.interrupt(cpu));
    assert!(client.has_passed(timestamp, Some(rest)) && !client.has_passed(timestamp, None));
    assert!(!client.has_passed(timestamp, Some(&[*last])));
    fake.interrupt(*last);
    assert!(client.has_passed(timestamp, None));
    assert!(!client.has_passed(client.timestamp(), None));
}

#[test]
fn idle_and_offline_cpus_pass() {
    let fake = Fake::with_cpus(possible() + 2);
    let (client, _socket) = fake.client();
    let (others, timestamp) = other_cpus(&fake, &client);
    for &cpu in &others {
        fake.map.word(map::line(cpu) + map::IS_IDLE).store(1, SeqCst);
    }
    assert!(client.has_passed(timestamp, None));
    fake.map.word(map::line(others[0]) + map::IS_IDLE).store(0, SeqCst);
    assert!(!client.has_passed(timestamp, None));
    // A CPU that was last seen offline at the virtual time of the timestamp may have come online before the timestamp.
    // A later virtual time lets it pass.
    fake.page.word(page::offline(others[0])).store(fake.map.word(map::VIRTUAL_TIME).load(SeqCst), SeqCst);
    assert!(!client.has_passed(timestamp, None));
    let later = fake.map.word(map::VIRTUAL_TIME).fetch_add(1, SeqCst) + 1;
    fake.page.word(page::offline(others[0])).store(later, SeqCst);
    assert!(client.has_passed(timestamp, None));
    // A CPU that is absent from the start passes until it records something. This is the last CPU, which does not
    // exist, so no thread takes a timestamp on it.
    let absent = fake.cpus - 1;
    fake.page.word(page::offline(absent)).store(file::ABSENT, SeqCst);
    fake.map.word(map::line(absent) + map::IS_IDLE).store(0, SeqCst);
    assert!(client.has_passed(timestamp, None) && client.has_passed(client.timestamp(), Some(&[absent])));
    fake.interrupt(absent);
    assert!(client.has_passed(timestamp, None) && !client.has_passed(client.timestamp(), Some(&[absent])));
}

/// A CPU that does not exist must not block the check by the clock. On many machines, some of the CPUs that the kernel
/// lists as possible never exist.
#[test]
fn by_the_clock_an_absent_cpu_passes() {
    let fake = Fake::new();
    let (client, _socket) = fake.client();
    let absent = fake.cpus - 1;
    (0..absent).for_each(|cpu| fake.map.word(map::line(cpu) + map::CLOCK_NS).store(100, SeqCst));
    assert!(!client.has_passed_by_clock(99));
    fake.page.word(page::offline(absent)).store(file::ABSENT, SeqCst);
    assert!(client.has_passed_by_clock(99) && (absent == 0 || !client.has_passed_by_clock(100)));
    fake.interrupt(absent);
    assert!(!client.has_passed_by_clock(99));
}

#[test]
fn a_cpu_that_is_not_there_never_passes() {
    let fake = Fake::new();
    let (client, _socket) = fake.client();
    let timestamp = client.timestamp();
    fake.beat();
    for cpu in [fake.cpus, u32::MAX] {
        assert!(!client.has_passed(timestamp, Some(&[cpu])));
        let late = client.wait(timestamp, Some(&[cpu]), soon()).unwrap_err();
        assert!(matches!(late, Error::Late { .. }) && late.to_string().contains("does not exist"), "{late}");
    }
    // A wait for CPUs that exist may be late too. On a machine with one CPU, the timestamp was taken on that CPU, which
    // counts as passed.
    let late = client.wait(client.timestamp(), Some(&[fake.cpus - 1, 0]), soon()).err();
    let late = late.map(|error| error.to_string());
    assert!(late.as_ref().map_or(fake.cpus == 1, |said| said.contains("not interrupted in time")), "{late:?}");
    assert!(client.has_passed(timestamp, Some(&[])));
}

#[test]
fn a_timestamp_is_its_own_daemons() {
    let [one, other] = [Fake::new(), Fake::new()];
    let ((first, _first), (again, _again), (second, _second)) = (one.client(), one.client(), other.client());
    let timestamp = first.timestamp();
    one.beat();
    other.beat();
    assert!(first.has_passed(timestamp, None) && again.has_passed(timestamp, None));
    assert!(!second.has_passed(timestamp, None));
    assert!(matches!(second.wait(timestamp, None, at_last()), Err(Error::OtherDaemon)));
}

#[test]
fn a_waiter_asks_and_is_woken() {
    let fake = Fake::with_cpus(possible() + 1);
    let (client, socket) = fake.client();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| client.wait(client.timestamp(), None, at_last()));
        // The waiter requests a heartbeat before it sleeps.
        socket::receive(&socket).unwrap().unwrap();
        fake.beat();
        waiter.join().unwrap().unwrap();
    });
}

/// This test uses a simulated daemon. With a real one, a barrier that returns before the interrupts would still pass a
/// litmus test, because a store buffer is empty long before an interrupt arrives.
#[test]
fn the_barrier_waits_for_the_interrupts() {
    let fake = Fake::with_cpus(possible() + 1);
    let (client, socket) = fake.client();
    let barrier = Interrupts::over(client);
    let ticket = barrier.ticket();
    socket::receive(&socket).unwrap().unwrap();
    assert!(!ticket.is_passed());
    fake.beat();
    assert!(ticket.is_passed());
    ticket.wait();
}

/// A filter of system calls disables membarrier(2), the fallback, so only interrupts can end the wait.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_daemon_that_says_nothing_is_no_barrier() {
    alone(|| {
        let fake = Fake::with_cpus(possible() + 1);
        let (client, socket) = fake.client();
        let barrier = Interrupts::over(client);
        let is_interrupted = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                if !forbid_membarrier() {
                    // Requests a heartbeat as `heavy` would, so that the test does not wait for the request for ever.
                    let _ = barrier.ticket();
                    return left_out("this kernel has no filters of system calls");
                }
                barrier.heavy();
                assert!(is_interrupted.load(SeqCst));
            });
            // The heavy side has begun when it requests a heartbeat. The sleep is longer than the time for which the
            // client waits for the daemon.
            socket::receive(&socket).unwrap().unwrap();
            thread::sleep(Duration::from_millis(300));
            is_interrupted.store(true, SeqCst);
            fake.beat();
        });
    });
}

/// The daemon has died, and a filter of system calls leaves only the slow command of membarrier(2). A ticket must still
/// become complete.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_a_barrier_falls_back_to_is_waited_for() {
    alone(|| {
        let Some(_) = or_left_out(Global::new()) else { return };
        let fake = Fake::with_cpus(possible() + 1);
        let (client, socket) = fake.client();
        let barrier = Interrupts::over(client);
        drop(socket);
        thread::scope(|scope| {
            scope.spawn(|| {
                if !forbid_command(EXPEDITED) {
                    return left_out("this kernel has no filters of system calls");
                }
                let ticket = barrier.ticket();
                ticket.wait();
                assert!(ticket.is_passed());
            });
        });
    });
}

#[test]
fn heartbeats_wrap_around() {
    let fake = Fake::with_cpus(possible() + 1);
    fake.page.half(page::BEATS).store(u32::MAX, SeqCst);
    let (client, socket) = fake.client();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| client.wait(client.timestamp(), None, at_last()));
        socket::receive(&socket).unwrap().unwrap();
        fake.beat();
        waiter.join().unwrap().unwrap();
    });
    assert_eq!(client.status().beats, 0);
}

/// Virtual time and generations count interrupts. The client does not handle their wrap-around, which takes 68 years at
/// 2³³ interrupts per second. Shortly before the wrap-around, no timestamp passes too early.
#[test]
fn virtual_time_near_its_end() {
    let fake = Fake::with_cpus(possible() + 1);
    fake.map.word(map::VIRTUAL_TIME).store(u64::MAX - 1, SeqCst);
    let (client, _socket) = fake.client();
    let (others, timestamp) = other_cpus(&fake, &client);
    assert!(!client.has_passed(timestamp, None));
    for &cpu in &others {
        fake.map.word(map::line(cpu) + map::SEEN).store(u64::MAX, SeqCst);
        fake.map.word(map::line(cpu) + map::GENERATION).store(u64::MAX, SeqCst);
    }
    assert!(client.has_passed(timestamp, None));
    fake.map.word(map::VIRTUAL_TIME).store(u64::MAX, SeqCst);
    let (_, last) = other_cpus(&fake, &client);
    assert!(!client.has_passed(last, None));
    fake.map.word(map::VIRTUAL_TIME).store(0, SeqCst);
    assert!(!client.has_passed(last, None));
    assert_eq!(client.status().cpus[others[0] as usize].interrupts, u64::MAX);
}

#[test]
fn values_that_go_backwards_are_ignored() {
    let fake = Fake::with_cpus(possible() + 1);
    fake.map.word(map::VIRTUAL_TIME).store(1_000, SeqCst);
    let (client, _socket) = fake.client();
    let (others, timestamp) = other_cpus(&fake, &client);
    for seen in [999, 1_000, 0, 5] {
        others.iter().for_each(|&cpu| fake.map.word(map::line(cpu) + map::SEEN).store(seen, SeqCst));
        assert!(!client.has_passed(timestamp, None), "{seen}");
    }
    fake.map.word(map::line(others[0]) + map::CLOCK_NS).store(u64::MAX, SeqCst);
    fake.map.word(map::line(others[0]) + map::GENERATION).store(1, SeqCst);
    assert_eq!(client.status().cpus[others[0] as usize].age_ns, Some(0));
}

#[test]
fn a_daemon_that_dies_ends_the_wait_at_once() {
    let fake = Fake::with_cpus(possible() + 1);
    let (client, socket) = fake.client();
    assert!(client.is_alive());
    let timestamp = client.timestamp();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| client.wait(timestamp, None, at_last()));
        socket::receive(&socket).unwrap().unwrap();
        drop(socket);
        assert!(matches!(waiter.join().unwrap(), Err(Error::Gone)));
    });
    assert!(!client.is_alive() && !client.has_passed(timestamp, None));
    assert!(matches!(client.request_heartbeat(), Err(Error::Gone)));
    // The data that the daemon left is still true.
    fake.beat();
    assert!(client.has_passed(timestamp, None));
}

#[test]
fn a_daemon_that_is_stopped_makes_the_wait_late() {
    let fake = Fake::with_cpus(possible() + 1);
    let (client, _socket) = fake.client();
    let error = client.wait(client.timestamp(), None, soon()).unwrap_err();
    assert!(
        matches!(error, Error::Late { .. }) && error.to_string().contains("check that barrierd is running"),
        "{error}"
    );
    // A request does not block, even if no process reads the requests.
    (0..100_000).for_each(|_| client.request_heartbeat().unwrap());
}

#[test]
fn nobody_there() {
    alone(|| {
        let folder = tempfile::tempdir().unwrap();
        let missing = Client::open(path(&folder)).unwrap_err();
        assert!(matches!(missing, Error::NotRunning { .. }), "{missing}");
        let begin = format!("no barrierd listens at {}: ", path(&folder).display());
        assert!(missing.to_string().starts_with(&begin), "{missing}");
        assert!(missing.to_string().ends_with("; start it as root"), "{missing}");
        // A killed daemon left this socket behind.
        drop(UnixListener::bind(path(&folder)).unwrap());
        let stale = Client::open(path(&folder)).unwrap_err();
        assert!(stale.to_string().ends_with("; start it as root"), "{stale}");
        fs::remove_file(path(&folder)).unwrap();
        fs::write(path(&folder), "barrierd").unwrap();
        assert!(matches!(Client::open(path(&folder)), Err(Error::NotRunning { .. })));
    });
}

#[test]
fn one_who_says_nothing_or_hangs_up() {
    let fake = Fake::new();
    let silent = Client::open(path(&fake.folder)).unwrap_err();
    assert!(matches!(silent, Error::NotADaemon { .. }), "{silent}");
    // The first connection in the queue is that of the client that gave up.
    drop(fake.listener.accept().unwrap());
    let (hung_up, ()) = in_time(|| {
        thread::scope(|scope| {
            let client = scope.spawn(|| Client::open(path(&fake.folder)));
            drop(fake.listener.accept().unwrap());
            (client.join().unwrap(), ())
        })
    });
    let error = hung_up.unwrap_err();
    assert!(error.to_string().contains("closed the connection"), "{error}");
}

#[test]
fn other_versions_and_other_numbers() {
    let fake = Fake::new();
    let any = fake.listener.as_fd();
    let descriptors = [fake.map.as_fd(), fake.page.as_fd(), any, any];
    fake.page.half(page::VERSION).store(2, SeqCst);
    let error = fake.refused(&descriptors);
    assert!(matches!(error, Error::OtherVersion { version: 2, .. }), "{error}");
    fake.page.half(page::VERSION).store(1, SeqCst);
    // The client compares the number with that in a file in /sys. Without this file, only zero is certainly too few.
    let too_few = if cpus::possible().is_ok() { fake.cpus - 1 } else { 0 };
    for cpus in [0, too_few, file::CPUS_MAX, file::CPUS_MAX + 1, u32::MAX] {
        fake.page.half(page::CPUS).store(cpus, SeqCst);
        let error = fake.refused(&descriptors);
        assert!(matches!(error, Error::NotADaemon { .. }), "{cpus}: {error}");
    }
    fake.page.word(page::MAGIC).store(0, SeqCst);
    assert!(fake.refused(&descriptors).to_string().contains("does not begin with the magic number"));
}

#[test]
fn memory_that_could_be_taken_away_is_refused() {
    let fake = Fake::new();
    let plain = tempfile::tempfile().unwrap();
    plain.set_len(1 << 20).unwrap();
    let [short_map, short_page] =
        [map::bytes(fake.cpus), page::bytes(0)].map(|bytes| SharedMemory::new(c"short", bytes - 1).unwrap());
    let (map, page, any) = (fake.map.as_fd(), fake.page.as_fd(), fake.listener.as_fd());
    let wrong: [&[_]; 8] = [
        &[],
        &[map, page, any],
        &[map, page, any, any, any],
        &[plain.as_fd(), page, any, any],
        &[map, plain.as_fd(), any, any],
        &[map, short_page.as_fd(), any, any],
        &[short_map.as_fd(), page, any, any],
        &[any, any, any, any],
    ];
    for descriptors in wrong {
        let error = fake.refused(descriptors);
        assert!(matches!(error, Error::NotADaemon { .. }), "{descriptors:?}: {error}");
    }
}

#[test]
fn errors_name_the_way_out() {
    let path: PathBuf = Path::new("/run/b").into();
    let stranger = |is_anybody| Error::Stranger { path: path.clone(), uid: 7, is_anybody }.to_string();
    assert_eq!(stranger(false), "the process at /run/b belongs to user 7, neither root nor you, and is not trusted");
    assert!(stranger(true).contains("user 7, which stands for all users without an ID"), "{}", stranger(true));
    assert!(Error::OtherVersion { path, version: 9 }.to_string().contains("the same release"));
    assert!(Error::UnprivilegedBpf.to_string().contains("kernel.unprivileged_bpf_disabled"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any content of the page, the client refuses it or continues without a panic. A timestamp counts as passed on
    /// another CPU only if the map records a later interrupt of that CPU, or records that the CPU is idle.
    #[test]
    fn garbage(
        head in prop::collection::vec(any::<u8>(), page::bytes(0)),
        lines in prop::collection::vec(any::<u64>(), map::bytes(4) / 8),
        is_sane: bool,
    ) {
        let fake = Fake::with_cpus(4);
        for (index, word) in head.chunks(8).enumerate() {
            fake.page.word(8 * index).store(u64::from_ne_bytes(word.try_into().unwrap()), SeqCst);
        }
        for (index, &word) in lines.iter().enumerate() {
            fake.map.word(8 * index).store(word, SeqCst);
        }
        if !is_sane {
            let any = fake.listener.as_fd();
            fake.refused(&[fake.map.as_fd(), fake.page.as_fd(), any, any]);
            return Ok(());
        }
        fake.page.word(page::MAGIC).store(file::MAGIC, SeqCst);
        fake.page.half(page::VERSION).store(file::VERSION, SeqCst);
        fake.page.half(page::CPUS).store(4, SeqCst);
        let (client, _socket) = fake.client();
        let (others, timestamp) = other_cpus(&fake, &client);
        for cpu in others {
            let word = |field| lines[(map::line(cpu) + field) / 8];
            let may_pass = word(map::SEEN) > lines[0] || word(map::IS_IDLE) == 1;
            prop_assert_eq!(client.has_passed(timestamp, Some(&[cpu])), may_pass);
        }
        let status = client.status();
        prop_assert_eq!(status.cpus.len(), 4);
    }
}

/// The kernel limits the length of a socket's path in bytes. The client must accept only paths that leave room for the
/// bytes that the daemon adds.
#[test]
fn a_long_path_is_said() {
    let too_long = Client::open("a".repeat(104)).unwrap_err();
    assert!(matches!(too_long, Error::LongPath { .. }), "{too_long}");
    assert!(
        too_long.to_string().ends_with("aaa: the path has 104 bytes, but a socket allows 103; choose a shorter path"),
        "{too_long}"
    );
    assert!(matches!(Client::open("a".repeat(103)), Err(Error::NotRunning { .. })));
}
