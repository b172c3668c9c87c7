//! Tests of per-CPU data on a machine or a thread without restartable sequences. Controls show that plain code loses
//! updates.

use std::arch::asm;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use ascertain_sync::per_cpu::{Counter, FreeList, Lock, Method, Unavailable};
use ascertain_sys::rseq::{self, Area, Count, Outcome, Stacks, possible_cpus};
use ascertain_sys::testing::{alone, alone_with, left_out, or_left_out, wait_until};

use crate::common::child::in_child;
use crate::common::cpus::{NOT_PINNED, cpus, pin};
use crate::common::filter::{EXPEDITED_RSEQ, forbid_command, forbid_membarrier};
use crate::common::machine::whole_machine;

/// Runs `work` on more threads than there are CPUs, until `is_wrong` finds that an update was lost.
fn until_it_fails(work: impl Fn() + Sync, is_wrong: impl Fn() -> bool) {
    wait_until("something is lost without sequences", || {
        thread::scope(|scope| (0..4 * cpus().len()).for_each(|_| drop(scope.spawn(&work))));
        is_wrong()
    });
}

/// The control for `Counter`: without sequences, the same operations lose additions.
#[test]
fn without_sequences_counts_are_lost() {
    let _machine = whole_machine();
    let Some(area) = or_left_out(Area::find()) else { return };
    let counts: Vec<Count> = (0..possible_cpus()).map(|_| Count::default()).collect();
    let (added, additions) = (Count::default(), 1_000_000);
    let work = || {
        for _ in 0..additions {
            counts[area.cpu().unwrap()].add(1);
        }
        added.add_shared(additions);
    };
    until_it_fails(work, || counts.iter().map(Count::get).sum::<u64>() != added.get());
}

/// If the C library is configured not to register threads, everything works with shards, and the reason is reported.
#[test]
fn without_registration_there_are_shards() {
    alone_with(&[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")], || {
        // A C library that never registers threads reports that reason instead.
        let reason = Method::Restartable.is_available().unwrap_err();
        assert!(matches!(reason, Unavailable::Unregistered | Unavailable::Library), "{reason}");
        assert_eq!(Method::best(), Method::Sharded);
        everything_works();
    });
}

/// A thread whose registration was removed has no CPU number; it uses the shared data.
#[test]
fn a_thread_that_is_not_registered_shares() {
    let Some(_) = or_left_out(Area::find()) else { return };
    let counter = Counter::with_method(Method::Restartable).unwrap();
    counter.add(1);
    let unregistered = thread::scope(|scope| {
        let work = || {
            let is_unregistered = unregister();
            counter.add(2);
            everything_works();
            is_unregistered
        };
        scope.spawn(work).join().unwrap()
    });
    assert_eq!(counter.sum(), 3);
    // If the C library registered the area with another length, the registration was not removed. This test has then
    // shown nothing, and the other tests must be enough.
    assert!(
        unregistered || Area::find().unwrap().feature_bytes() > 20,
        "the C library of Debian 12 registers 32 bytes"
    );
}

/// Returns the address of the calling thread's area, the memory that the kernel uses for restartable sequences. Call
/// this only if `Area::find` has succeeded.
fn own_area() -> usize {
    let (thread_pointer, offset): (usize, isize);
    // SAFETY: on x86-64 the thread pointer points to itself; `__rseq_offset` exists, because there is an area.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) thread_pointer);
        offset = *libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
    }
    thread_pointer.wrapping_add_signed(offset)
}

/// Removes the calling thread's registration, and returns whether that succeeded. It succeeds if the C library
/// registered an area of the usual 32 bytes.
fn unregister() -> bool {
    const UNREGISTER: libc::c_int = 1;
    // SAFETY: the kernel checks that the address is the registered one.
    let result = unsafe { libc::syscall(libc::SYS_rseq, own_area(), 32, UNREGISTER, 0x5305_3053) };
    assert!(result != 0 || Area::find().unwrap().cpu().is_none());
    result == 0
}

/// A sequence must store its address in the field `rseq_cs` of the area, because otherwise the kernel cannot abort it.
/// The kernel clears the field when it stops the thread outside of a sequence.
#[test]
fn each_sequence_is_announced_to_the_kernel() {
    let Some(_) = or_left_out(Area::find()) else { return };
    let (counter, list, lock) = (Counter::new(), FreeList::new(16), Lock::new());
    let sequences: [(&str, &dyn Fn()); 4] = [
        ("add", &|| counter.add(1)),
        ("push", &|| list.push(Box::new(1))),
        ("pop", &|| drop(list.pop())),
        ("acquire", &|| drop(lock.acquire())),
    ];
    // SAFETY: the field is at this place of each area, aligned, and this thread may write to its own area.
    let announced = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(own_area() + 8) };
    let is_announced = |sequence: &dyn Fn()| {
        announced.store(0, Relaxed);
        sequence();
        announced.load(Relaxed) != 0
    };
    for (name, sequence) in sequences {
        // A thread that was stopped right after the sequence does not show the address any more.
        assert!((0..1_000).any(|_| is_announced(sequence)), "{name}");
    }
    let is_stored = |_| {
        let mut held = lock.acquire();
        announced.store(0, Relaxed);
        held.store(0, 1).is_ok() && announced.load(Relaxed) != 0
    };
    assert!((0..1_000).any(is_stored), "store");
}

/// After `Stacks::stop`, restartable sequences cannot push to the stack of that CPU or pop from it, until the returned
/// value is dropped.
#[test]
fn a_stopped_stack_is_refused_to_sequences() {
    let Some(area) = or_left_out(Area::find()) else { return };
    let stacks = Stacks::new(possible_cpus(), 16);
    let cpu = cpus()[0];
    if !pin(cpu) {
        return left_out(NOT_PINNED);
    }
    let push = || loop {
        match area.push(&stacks, NonNull::dangling()) {
            Outcome::Aborted => (),
            outcome => return outcome,
        }
    };
    let pop = || loop {
        match area.pop(&stacks) {
            Outcome::Aborted => (),
            yielded => return matches!(yielded, Outcome::Done(_)),
        }
    };
    assert_eq!(push(), Outcome::Done(()));
    // Kernels before Linux 5.10 do not support this.
    let Some(stopped) = or_left_out(stacks.stop(cpu)) else { return };
    assert!(stacks.stop(cpu).unwrap().is_none());
    assert_eq!((push(), pop(), stacks.len(cpu)), (Outcome::Refused, false, 1));
    drop(stopped.unwrap());
    assert_eq!((push(), pop(), stacks.len(cpu)), (Outcome::Done(()), true, 1));
}

/// If the kernel cannot stop sequences on other CPUs, `revoke` returns an error. This also shows that `revoke` calls
/// the kernel. A test could not observe the effect of that call, because a store is seldom in progress at that moment.
#[test]
fn a_revocation_that_the_kernel_forbids_is_an_error() {
    alone(|| {
        let Some(lock) = or_left_out(Lock::with_method(Method::Restartable)) else { return };
        let held = lock.acquire();
        in_child(|| {
            let mut held = held;
            if !forbid_membarrier() {
                left_out("this kernel has no filters of system calls");
                return true;
            }
            lock.revoke().is_err() && held.store(0, 1).is_err()
        });
        let sharded = Lock::with_method(Method::Sharded).unwrap();
        in_child(|| {
            if !forbid_membarrier() {
                left_out("this kernel has no filters of system calls");
                return true;
            }
            sharded.revoke().is_ok()
        });
    });
}

/// The fence needs two commands of membarrier(2): the first registers the process, and the second ends running
/// sequences. If a filter of system calls permits only the first command, `fence` must return an error.
#[test]
fn a_fence_is_refused_to_who_may_only_register() {
    alone(|| {
        let Some(()) = or_left_out(rseq::fence(None)) else { return };
        in_child(|| {
            if !forbid_command(EXPEDITED_RSEQ) {
                left_out("this kernel has no filters of system calls");
                return true;
            }
            rseq::fence(None).is_err()
        });
    });
}

fn everything_works() {
    let counter = Counter::new();
    counter.add(5);
    assert_eq!(counter.sum(), 5);
    let list = FreeList::new(16);
    (0..40).for_each(|number| list.push(Box::new(number)));
    let mut back: Vec<i32> = std::iter::from_fn(|| list.pop()).map(|number| *number).collect();
    back.sort_unstable();
    assert!(back.into_iter().eq(0..40));
    let lock = Lock::new();
    let stored = (0..1000).any(|_| lock.acquire().store(3, 7).is_ok());
    assert!(stored && lock.words().map(|words| words[3]).sum::<u64>() == 7);
}

/// A child made by fork(2) starts with the counts of its parent. Later additions of the child change only the child's
/// counts.
#[test]
fn a_forked_child_counts_for_itself() {
    alone(|| {
        let counter = Counter::new();
        counter.add(40);
        // SAFETY: the child calls only `add` and `sum`, which neither allocate nor lock, and `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            (0..1000).for_each(|_| counter.add(2));
            // SAFETY: `_exit` ends the child at once.
            unsafe { libc::_exit(i32::from(counter.sum() != 2040)) };
        }
        let mut status = -1;
        // SAFETY: the child is ours, and the status is alive.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((status, counter.sum()), (0, 40));
    });
}

/// The counts and the boxes of a thread are still available after the thread has ended.
#[test]
fn threads_come_and_go() {
    let (counter, list) = (Counter::new(), FreeList::new(16));
    for number in 0..200 {
        thread::scope(|scope| {
            scope.spawn(|| {
                counter.add(1);
                list.push(Box::new(number));
            });
        });
    }
    assert_eq!((counter.sum(), std::iter::from_fn(|| list.pop()).count()), (200, 200));
}
