//! Barriers: that they are some, that tickets pass, and what is said of those that are missing.
#![cfg(not(any(model = "loom", model = "tso")))]
#![allow(missing_docs)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod filter;
mod reclaimed;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use ascertain_sync::barrier::Reason;
use ascertain_sync::barrier::{BEST_FIRST, Barrier, Expedited, Fences, Global, Interrupts, Method, Visitor, choose};
#[cfg(all(feature = "daemon", target_os = "linux"))]
use ascertain_sync::barrierd::Daemon;
use ascertain_sync::barrierd::missed_rounds;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use ascertain_sync::epoch::{Collector, Published};

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use filter::forbid_membarrier;
use reclaimed::in_child;

/// Rounds of a heavy side of microseconds: tens to thousands are missed of one that only has fences.
const MANY: usize = 3_000;
/// Of one of milliseconds: it has no power there, whatever the rounds, and shows that the calls return. That such a heavy
/// side waits for what it should is in `what_a_filter_forbids_is_missed` and, of interrupts, in `barrierd_client`.
const FEW: usize = 5;

/// Where others keep the CPUs busy each round takes milliseconds: then fewer will do.
const LIMIT: Duration = Duration::from_secs(2);

/// One at a time: each keeps two CPUs busy.
static ONE: Mutex<()> = Mutex::new(());

fn is_a_barrier(rounds: usize, barrier: &impl Barrier) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let poll = || {
        let ticket = barrier.ticket();
        while !ticket.is_passed() {
            thread::yield_now();
        }
    };
    let ways: [&dyn Fn(); 3] = [&|| barrier.heavy(), &|| barrier.ticket().wait(), &poll];
    for heavy in ways {
        let (start, mut done) = (Instant::now(), 0);
        while done < rounds && start.elapsed() < LIMIT {
            let some = (rounds - done).min(50);
            assert_eq!(missed_rounds(some, heavy), 0);
            done += some;
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn expedited_membarrier_is_a_barrier() {
    if let Ok(barrier) = Expedited::new() {
        is_a_barrier(MANY, &barrier);
    }
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn plain_membarrier_is_a_barrier() {
    if let Ok(barrier) = Global::new() {
        is_a_barrier(FEW, &barrier);
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
    is_a_barrier(FEW, &barrier);
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
    is_a_barrier(if Expedited::new().is_ok() { MANY } else { FEW }, &barrier);
    let first = [Method::Expedited, Method::Global].into_iter().find(|method| method.is_available().is_ok());
    assert_eq!(barrier.method(), first.unwrap_or(Method::Interrupts));
}

/// Two sides that each write their round, do `between`, and read the other's: the first round that both missed.
fn first_missed(between: impl Fn() + Sync) -> Option<u64> {
    const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let [one, other] = [const { AtomicU64::new(0) }; 2];
    let side = |mine: &AtomicU64, others: &AtomicU64| -> Vec<u64> {
        let round = |round| {
            mine.store(round, Ordering::Relaxed);
            between();
            others.load(Ordering::Relaxed)
        };
        (1..=ROUNDS).map(round).collect()
    };
    let (ours, theirs) = thread::scope(|scope| {
        let theirs = scope.spawn(|| side(&other, &one));
        (side(&one, &other), theirs.join().unwrap())
    });
    // If I missed their round `seen + 1`, they saw mine in it.
    let is_missed = |&(round, seen): &(u64, u64)| theirs.get(seen as usize).is_some_and(|&theirs| theirs < round);
    (1..).zip(ours).find(is_missed).map(|(round, _)| round)
}

/// The light side is a fence here, so that the litmus above, whose light side is none, does not apply.
#[test]
fn fences_are_a_barrier() {
    let between = || {
        Fences.light();
        Fences.heavy();
    };
    assert_eq!(first_missed(between), None);
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

/// The litmus can fail, where it is to show something.
#[test]
#[cfg_attr(miri, ignore = "no store buffers")]
fn a_fence_on_one_side_is_no_barrier() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if missed_rounds(MANY, || std::sync::atomic::fence(Ordering::SeqCst)) > 0 {
            return;
        }
    }
    // Two CPUs of a virtual machine may be one, on which nothing runs at the same time: then two sides without any fence
    // miss nothing either.
    let missed = (0..1_000).find_map(|_| first_missed(|| compiler_fence(Ordering::SeqCst)));
    assert_eq!(missed, None, "this machine has store buffers, and the litmus does not see them");
}

/// In a child, since a filter of system calls is for ever.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn a_filter_of_system_calls_is_said() {
    in_child(|| {
        if !forbid_membarrier() {
            return true;
        }
        let reasons = [Expedited::new().map(drop), Global::new().map(drop)].map(|tried| tried.unwrap_err().reason);
        reasons == [Reason::Forbidden, Reason::Forbidden]
            && choose(&[Method::Expedited, Method::Global], Name) == "Fences"
    });
}

/// What was offered before is refused now: going on would free what is read. So each way to a heavy side makes the call,
/// which no litmus could show of one that takes milliseconds.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn what_a_filter_forbids_is_missed() {
    fn ends_in_panics(barrier: &impl Barrier) {
        let is_refused = |heavy: &dyn Fn()| catch_unwind(AssertUnwindSafe(heavy)).is_err();
        let poll = || {
            let ticket = barrier.ticket();
            while !ticket.is_passed() {
                thread::yield_now();
            }
        };
        in_child(|| {
            if !forbid_membarrier() {
                return true;
            }
            is_refused(&|| barrier.heavy()) && is_refused(&|| barrier.ticket().wait()) && is_refused(&poll)
        });
    }
    if let Ok(barrier) = Expedited::new() {
        ends_in_panics(&barrier);
    }
    if let Ok(barrier) = Global::new() {
        ends_in_panics(&barrier);
    }
}

/// And whoever relies on it is told each time, not once: nothing is freed from then on.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn what_a_filter_forbids_is_missed_by_each_who_reclaims() {
    fn is_missed_each_time<B: Barrier>(barrier: B) {
        let collector = Collector::new(barrier);
        let (published, handle) = (Published::new(0, &collector), collector.register());
        in_child(|| {
            if !forbid_membarrier() {
                return true;
            }
            let is_refused = |call: &dyn Fn()| catch_unwind(AssertUnwindSafe(call)).is_err();
            let is_flush_refused = is_refused(&|| handle.flush());
            // Each 64 objects look how far the heavy side is.
            let refusals = (0..64 * 4).filter(|&value| is_refused(&|| published.replace(value, &handle))).count();
            is_flush_refused && refusals == 4 && is_refused(&|| handle.flush())
        });
    }
    if let Ok(barrier) = Expedited::new() {
        is_missed_each_time(barrier);
    }
    if let Ok(barrier) = Global::new() {
        is_missed_each_time(barrier);
    }
}
