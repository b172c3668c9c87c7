//! Barriers: that they are some, that tickets pass, and what is said of those that are missing.
#![cfg(not(any(model = "loom", model = "tso")))]
#![allow(missing_docs)]

mod reclaimed;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
#[cfg(all(feature = "daemon", target_os = "linux"))]
use std::time::Duration;

use ascertain_sync::barrier::{
    BEST_FIRST, Barrier, Expedited, Fences, Global, Interrupts, Method, Reason, Visitor, choose,
};
#[cfg(all(feature = "daemon", target_os = "linux"))]
use ascertain_sync::barrierd::Daemon;
use ascertain_sync::barrierd::missed_rounds;

use reclaimed::in_child;

/// Fewer where a heavy side takes milliseconds.
fn is_a_barrier(rounds: usize, barrier: &impl Barrier) {
    assert_eq!(missed_rounds(rounds, || barrier.heavy()), 0);
    assert_eq!(missed_rounds(rounds, || barrier.ticket().wait()), 0);
    let poll = || {
        let ticket = barrier.ticket();
        while !ticket.is_passed() {
            thread::yield_now();
        }
    };
    assert_eq!(missed_rounds(rounds, poll), 0);
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn expedited_membarrier_is_a_barrier() {
    if let Ok(barrier) = Expedited::new() {
        is_a_barrier(3_000, &barrier);
    }
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn plain_membarrier_is_a_barrier() {
    if let Ok(barrier) = Global::new() {
        is_a_barrier(20, &barrier);
    }
}

/// With a daemon of the test's own, where this machine and user can have one.
#[test]
#[cfg(all(feature = "daemon", target_os = "linux"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn interrupts_are_a_barrier_and_fall_back_when_the_daemon_dies() {
    use std::os::fd::AsFd;
    let Ok(mut daemon) = Daemon::new(Duration::from_micros(250)) else { return };
    let barrier = Interrupts::over(daemon.connect().unwrap());
    let (stopped, stop) = std::io::pipe().unwrap();
    let serving = thread::spawn(move || daemon.serve(stopped.as_fd()).unwrap());
    assert_eq!(barrier.method(), Method::Interrupts);
    is_a_barrier(30, &barrier);
    let ticket = barrier.ticket();
    in_child(|| {
        ticket.wait();
        barrier.heavy();
        ticket.is_passed()
    });
    let ticket = barrier.ticket();
    drop(stop);
    serving.join().unwrap();
    // One that was taken before, and those that are taken from now on.
    ticket.wait();
    is_a_barrier(30, &barrier);
    let first = [Method::Expedited, Method::Global].into_iter().find(|method| method.is_available().is_ok());
    assert_eq!(barrier.method(), first.unwrap_or(Method::Interrupts));
}

/// The light side is a fence here, so that the litmus above, whose light side is none, does not apply.
#[test]
fn fences_are_a_barrier() {
    const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let [one, other] = [const { AtomicU64::new(0) }; 2];
    // Each writes its round, has a barrier, and reads the other's: they never both read less than their own.
    let side = |mine: &AtomicU64, others: &AtomicU64| -> Vec<u64> {
        let round = |round| {
            mine.store(round, Ordering::Relaxed);
            Fences.light();
            Fences.heavy();
            others.load(Ordering::Relaxed)
        };
        (1..=ROUNDS).map(round).collect()
    };
    let (ours, theirs) = thread::scope(|scope| {
        let theirs = scope.spawn(|| side(&other, &one));
        (side(&one, &other), theirs.join().unwrap())
    });
    // If I missed their round `seen + 1`, they saw mine in it.
    for (round, &seen) in (1..).zip(&ours) {
        assert!(theirs.get(seen as usize).is_none_or(|&theirs| theirs >= round), "round {round} saw {seen}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn tickets_that_are_taken_together_pass_together() {
    let Ok(barrier) = Global::new() else { return };
    let tickets: Vec<_> = (0..100).map(|_| barrier.ticket()).collect();
    let last = barrier.ticket();
    last.wait();
    // Calls come one after the other: whoever came before the last has passed too.
    assert!(last.is_passed() && tickets.iter().all(|ticket| ticket.is_passed()));
    // One that nobody looks at is nothing to worry about.
    drop(barrier.ticket());
    barrier.heavy();
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn a_child_process_goes_on_with_its_barriers_and_tickets() {
    if let Ok(barrier) = Expedited::new() {
        in_child(|| {
            barrier.heavy();
            barrier.ticket().is_passed()
        });
    }
    if let Ok(barrier) = Global::new() {
        // The call that the ticket waits for is on a thread that the child does not have.
        let ticket = barrier.ticket();
        in_child(|| {
            ticket.wait();
            let another = barrier.ticket();
            another.wait();
            barrier.heavy();
            ticket.is_passed() && another.is_passed()
        });
        ticket.wait();
    }
}

struct Name;

impl Visitor for Name {
    type Output = String;

    fn visit<B: Barrier>(self, barrier: B) -> String {
        barrier.light();
        barrier.heavy();
        std::any::type_name::<B>().rsplit("::").next().unwrap_or_default().to_owned()
    }
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn the_first_that_there_is_gets_chosen() {
    assert_eq!(choose(&[], Name), "Fences");
    assert_eq!(choose(&[Method::Fences, Method::Expedited], Name), "Fences");
    let first = BEST_FIRST.iter().find(|method| method.is_available().is_ok()).unwrap();
    assert_eq!(choose(&BEST_FIRST, Name), format!("{first:?}"));
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn no_daemon_is_said() {
    let error = Interrupts::connect("/nowhere/barrierd").unwrap_err();
    assert_eq!(error.method, Method::Interrupts);
    let said = error.to_string();
    assert!(said.starts_with("interrupt generations can't be had: ") && said.contains("/nowhere/barrierd"), "{said}");
}

/// In a child, since a filter of system calls is for ever.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn a_filter_of_system_calls_is_said() {
    in_child(|| {
        forbid_membarrier();
        let reasons = [Expedited::new().map(drop), Global::new().map(drop)].map(|tried| tried.unwrap_err().reason);
        reasons == [Reason::Forbidden, Reason::Forbidden]
            && choose(&[Method::Expedited, Method::Global], Name) == "Fences"
    });
    let Ok(barrier) = Expedited::new() else { return };
    in_child(|| {
        forbid_membarrier();
        // What was offered before is refused now: going on would free what is read.
        std::panic::catch_unwind(|| barrier.heavy()).is_err()
    });
}

/// Has membarrier(2) answer EPERM in this process, as a container's filter does.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn forbid_membarrier() {
    let statement = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let mut program = [
        // The number of the call.
        statement((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0),
        libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: libc::SYS_membarrier as u32,
        },
        statement((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: plain numbers; the filter is read during the call, and has as many statements as it says.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    assert!(installed, "{}", std::io::Error::last_os_error());
}
