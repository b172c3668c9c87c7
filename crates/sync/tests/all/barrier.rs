//! Tests that the barriers order memory accesses, that tickets become complete, and that unavailable barriers are
//! reported. A test that counts interrupts is alone in its process, because other threads of the process would cause
//! interrupts too.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{Ordering, fence};
use std::thread;
#[cfg(all(feature = "daemon", target_os = "linux"))]
use std::time::Duration;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use ascertain_sync::barrier::Reason;
use ascertain_sync::barrier::{
    BEST_FIRST, Barrier, Expedited, ExpeditedOrFences, Fences, Global, Interrupts, Method, Visitor, choose,
};
#[cfg(all(feature = "daemon", target_os = "linux"))]
use ascertain_sync::barrierd::Daemon;
use ascertain_sync::barrierd::missed_rounds;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use ascertain_sync::epoch::{self, Collector, Published};
use ascertain_sys::membarrier;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use ascertain_sys::testing::left_out;
use ascertain_sys::testing::{alone, or_left_out};

use crate::common::busy::rounds_without_an_interrupt;
use crate::common::child::in_child;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::common::filter::{EXPEDITED, GLOBAL, forbid_command, forbid_membarrier};
use crate::common::machine::{alone_on_the_machine, whole_machine};
use crate::common::store_buffers::{first_missed, must_show};

/// Calls `assert` with each method of executing the heavy side: `heavy`, waiting for a ticket, and polling a ticket.
fn in_each_way(barrier: &impl Barrier, assert: impl Fn(&(dyn Fn() + Sync))) {
    let poll = || {
        let ticket = barrier.ticket();
        while !ticket.is_passed() {
            thread::yield_now();
        }
    };
    let ways: [&(dyn Fn() + Sync); 3] = [&|| barrier.heavy(), &|| barrier.ticket().wait(), &poll];
    ways.into_iter().for_each(assert);
}

/// Checks that a busy CPU is interrupted during each execution of the heavy side. Unlike a litmus test, this detects
/// errors even if the heavy side is slow.
fn interrupts_who_is_busy(barrier: &impl Barrier) {
    in_each_way(barrier, |heavy| assert_eq!(rounds_without_an_interrupt(20, heavy).unwrap_or(0), 0));
}

/// The control: without a heavy side, some rounds must have no interrupt. The check is repeated, because other
/// interrupts may happen in every round of one check.
#[test]
#[cfg_attr(miri, ignore = "no interrupts")]
fn without_a_heavy_side_nobody_is_interrupted() {
    alone_on_the_machine(|| {
        let is_seen = |_| rounds_without_an_interrupt(10, || ()).is_none_or(|early| early > 0);
        assert!((0..1_000).any(is_seen), "in none of 10,000 rounds: the test would not detect an error");
    });
}

/// A barrier that the kernel supports must be available, because the tests of an unavailable barrier are left out.
#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn what_the_kernel_has_can_be_had() {
    if membarrier::is_expedited_supported().is_ok_and(|is_supported| is_supported) {
        Expedited::new().unwrap();
    }
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn expedited_membarrier_is_a_barrier() {
    alone_on_the_machine(|| {
        let Some(barrier) = or_left_out(Expedited::new()) else { return };
        interrupts_who_is_busy(&barrier);
        // The litmus test can detect an error here: a heavy side takes only some microseconds, and a store buffer may
        // stay full for that long.
        in_each_way(&barrier, |heavy| assert_eq!(missed_rounds(300, heavy), 0));
    });
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn what_every_machine_has_is_the_better_of_two() {
    alone_on_the_machine(|| {
        let barrier = ExpeditedOrFences::for_this_machine();
        assert_eq!(barrier.is_fences(), Expedited::new().is_err());
        if !barrier.is_fences() {
            interrupts_who_is_busy(&barrier);
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn plain_membarrier_is_a_barrier() {
    alone_on_the_machine(|| {
        if let Some(barrier) = or_left_out(Global::new()) {
            interrupts_who_is_busy(&barrier);
        }
    });
}

/// The test starts its own daemon, if this machine supports the daemon and this user may start it.
#[test]
#[cfg(all(feature = "daemon", target_os = "linux"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn interrupts_are_a_barrier_and_fall_back_when_the_daemon_dies() {
    alone_on_the_machine(|| {
        use std::os::fd::AsFd;
        let Some(mut daemon) = or_left_out(Daemon::new(Duration::from_micros(250))) else { return };
        let barrier = Interrupts::over(daemon.connect().unwrap());
        let (stopped, stop) = std::io::pipe().unwrap();
        let serving = thread::spawn(move || daemon.serve(stopped.as_fd()).unwrap());
        assert_eq!(barrier.method(), Method::Interrupts);
        interrupts_who_is_busy(&barrier);
        let ticket = barrier.ticket();
        in_child(|| {
            ticket.wait();
            barrier.heavy();
            ticket.is_passed()
        });
        let ticket = barrier.ticket();
        drop(stop);
        serving.join().unwrap();
        // This checks a ticket from before the daemon ended, and then tickets that are taken now.
        ticket.wait();
        interrupts_who_is_busy(&barrier);
        let first = [Method::Expedited, Method::Global].into_iter().find(|method| method.is_available().is_ok());
        assert_eq!(barrier.method(), first.unwrap_or(Method::Interrupts));
    });
}

/// The litmus test above has no instructions on its light side, so it cannot test barriers that need a fence on both
/// sides. So this test runs one fence in both threads: first the fence of the light side, and then, in another run, the
/// fence of the heavy side.
#[test]
fn fences_are_a_barrier() {
    alone_on_the_machine(|| {
        fn is_one(barrier: impl Barrier) -> bool {
            let is_never_missed = |side: &(dyn Fn() + Sync)| {
                let tries = if cfg!(miri) { 1 } else { 100 };
                (0..tries).all(|_| first_missed(side).is_none())
            };
            is_never_missed(&|| barrier.light()) && is_never_missed(&|| barrier.heavy())
        }
        assert!(is_one(Fences));
        let barrier = ExpeditedOrFences::for_this_machine();
        assert!(!barrier.is_fences() || is_one(barrier));
        // The test uses a child process, because a filter of system calls remains until the process ends.
        #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
        in_child(|| {
            if !forbid_membarrier() {
                left_out("this kernel has no filters of system calls");
                return true;
            }
            let barrier = ExpeditedOrFences::for_this_machine();
            barrier.is_fences() && is_one(barrier)
        });
    });
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn tickets_that_are_taken_together_pass_together() {
    let Some(barrier) = or_left_out(Global::new()) else { return };
    let tickets: Vec<_> = (0..100).map(|_| barrier.ticket()).collect();
    let last = barrier.ticket();
    last.wait();
    // Calls run one after the other, so tickets that were taken before the last one have passed too.
    assert!(last.is_passed() && tickets.iter().all(|ticket| ticket.is_passed()));
    // A ticket that is never checked does no harm.
    drop(barrier.ticket());
    barrier.heavy();
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn a_child_process_goes_on_with_its_barriers_and_tickets() {
    alone(|| {
        if let Some(barrier) = or_left_out(Expedited::new()) {
            in_child(|| {
                barrier.heavy();
                barrier.ticket().is_passed()
            });
        }
        if let Some(barrier) = or_left_out(Global::new()) {
            // The call that the ticket waits for is on a thread that does not exist in the child.
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
    });
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
    let message = error.to_string();
    assert!(
        message.starts_with("cannot use interrupt generations: ") && message.contains("/nowhere/barrierd"),
        "{message}"
    );
}

/// The control: a fence on only one side is not a barrier, and the litmus test must detect that.
#[test]
#[cfg_attr(miri, ignore = "no store buffers")]
fn a_fence_on_one_side_is_no_barrier() {
    let _machine = whole_machine();
    must_show(1_000, || missed_rounds(300, || fence(Ordering::SeqCst)) > 0);
}

/// The test uses a child process, because a filter of system calls remains until the process ends.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn a_filter_of_system_calls_is_said() {
    alone(|| {
        in_child(|| {
            if !forbid_membarrier() {
                left_out("this kernel has no filters of system calls");
                return true;
            }
            let reasons = [Expedited::new().map(drop), Global::new().map(drop)].map(|tried| tried.unwrap_err().reason);
            reasons == [Reason::Forbidden, Reason::Forbidden]
                && choose(&[Method::Expedited, Method::Global], Name) == "Fences"
        });
    });
}

/// If membarrier(2) is not available, the default collector works with fences.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn without_membarrier_pinning_has_fences() {
    alone(|| {
        in_child(|| {
            if !forbid_membarrier() {
                left_out("this kernel has no filters of system calls");
                return true;
            }
            let published: Published<_> = Published::new(1, epoch::default_collector());
            let is_read = published.update(&epoch::pin(), |old| Some(old + 1)) && *published.load(&epoch::pin()) == 2;
            epoch::pin().flush();
            epoch::pin().flush();
            is_read && epoch::pin().waiting() == 0 && epoch::default_collector().barrier().is_fences()
        });
    });
}

/// A filter now refuses a call that was supported before. `heavy` must panic, because continuing would free memory that
/// is still read. The test also shows that `heavy`, waiting for a ticket and polling a ticket all make the call. A
/// litmus test could not show that, because the call may take milliseconds. Within this time all store buffers become
/// empty, even without a barrier.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn what_a_filter_forbids_is_missed() {
    alone(|| {
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
                    left_out("this kernel has no filters of system calls");
                    return true;
                }
                is_refused(&|| barrier.heavy()) && is_refused(&|| barrier.ticket().wait()) && is_refused(&poll)
            });
        }
        if let Some(barrier) = or_left_out(Expedited::new()) {
            ends_in_panics(&barrier);
        }
        if let Some(barrier) = or_left_out(Global::new()) {
            ends_in_panics(&barrier);
        }
    });
}

/// If a filter refuses one of the two kinds of membarrier, a heavy side uses the other kind. If the refused kind is
/// `Expedited`, creating another `Expedited` must fail. The filter still allows the registration for it, but a
/// registration is not a barrier.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn what_a_filter_leaves_is_done_instead() {
    alone(|| {
        let Some(expedited) = or_left_out(Expedited::new()) else { return };
        let Some(global) = or_left_out(Global::new()) else { return };
        let goes_on_without = |command, barrier: &dyn Fn(), again: &dyn Fn() -> bool| {
            in_child(|| {
                if !forbid_command(command) {
                    left_out("this kernel has no filters of system calls");
                    return true;
                }
                barrier();
                again()
            });
        };
        goes_on_without(EXPEDITED, &|| expedited.heavy(), &|| Expedited::new().is_err());
        goes_on_without(GLOBAL, &|| global.heavy(), &|| catch_unwind(|| global.ticket().wait()).is_ok());
    });
}

/// After a filter refuses the barrier, nothing is freed any more. So each caller that relies on the barrier gets an
/// error each time, not only the first time.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[cfg_attr(miri, ignore = "no system calls")]
fn what_a_filter_forbids_is_missed_by_each_who_reclaims() {
    alone(|| {
        fn is_missed_each_time<B: Barrier>(barrier: B) {
            let collector = Collector::new(barrier);
            let (published, handle) = (Published::new(0, &collector), collector.register());
            in_child(|| {
                if !forbid_membarrier() {
                    left_out("this kernel has no filters of system calls");
                    return true;
                }
                let is_refused = |call: &dyn Fn()| catch_unwind(AssertUnwindSafe(call)).is_err();
                let is_flush_refused = is_refused(&|| handle.flush());
                // The progress of the heavy side is checked every 64 objects.
                let refusals = (0..64 * 4).filter(|&value| is_refused(&|| published.replace(value, &handle))).count();
                is_flush_refused && refusals == 4 && is_refused(&|| handle.flush())
            });
        }
        if let Some(barrier) = or_left_out(Expedited::new()) {
            is_missed_each_time(barrier);
        }
        if let Some(barrier) = or_left_out(Global::new()) {
            is_missed_each_time(barrier);
        }
    });
}
