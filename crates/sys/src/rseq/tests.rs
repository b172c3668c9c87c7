//! Tests that compare the sequences with the functions in plain Rust, and that interrupt sequences in the middle.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use super::stacks::Stack;
use super::*;

fn item(number: usize) -> NonNull<()> {
    NonNull::new(ptr::without_provenance_mut(number)).unwrap()
}

#[test]
fn a_plain_stack_gives_back_what_it_was_given_from_the_top() {
    let stack = Stack::new(1);
    let capacity = 16;
    assert!((1..=capacity).all(|number| stack.push(item(number))));
    assert!(!stack.push(item(99)));
    assert!((1..=capacity).rev().all(|number| stack.pop() == Some(item(number))));
    assert_eq!(stack.pop(), None);
    assert_eq!(stack.len(), 0);
}

/// Two threads stop the same stack in turn; no sequences run. Under Miri a relaxed load may return an old value, so
/// this test fails there if one thread does not see the changes of the other.
#[test]
fn who_stops_a_stack_finds_what_the_last_one_left() {
    let mut stacks = Stacks::new(1, 1);
    let push_and_pop = || {
        let mut pushed = 0_isize;
        for round in 0..200 {
            let Some(mut stack) = stacks.stop_by(0, |_| Ok(())).unwrap() else { continue };
            if round % 2 == 0 {
                pushed += isize::from(stack.push(item(1)));
            } else {
                pushed -= isize::from(stack.pop().is_some());
            }
        }
        pushed
    };
    let left = thread::scope(|scope| {
        let other = scope.spawn(push_and_pop);
        push_and_pop() + other.join().unwrap()
    });
    assert_eq!(stacks.drain().count() as isize, left);
}

/// Returns whether sequences are refused.
fn refuses(stack: &Stack) -> bool {
    stack.floor.load(Relaxed) > stack.ceiling.load(Relaxed)
}

#[test]
fn a_stack_refuses_before_sequences_under_way_are_ended() {
    let stacks = Stacks::new(2, 1);
    let stack = &stacks.of_cpus[1];
    let mut fenced = None;
    let stopped = stacks.stop_by(1, |cpu| {
        fenced = cpu.filter(|_| refuses(stack));
        Ok(())
    });
    assert_eq!(fenced, Some(1));
    drop(stopped);
    assert!(!refuses(stack));
    // If the kernel cannot end the sequences, they continue. A second attempt does not find the stack stopped.
    for _ in 0..2 {
        assert!(stacks.stop_by(1, |_| Err(std::io::ErrorKind::Unsupported.into())).is_err());
        assert!(!refuses(stack));
    }
}

/// Two threads stop the same stack in turn; no sequences run. Miri can stop a thread at any point. So this test fails
/// under Miri if one thread admits sequences again although the other thread has stopped them.
#[test]
fn a_stopped_stack_refuses_until_its_stopper_ends() {
    let stacks = Stacks::new(1, 1);
    let stop = || {
        for _ in 0..if cfg!(miri) { 200 } else { 2_000 } {
            let stopped = stacks.stop_by(0, |_| Ok(())).unwrap();
            thread::yield_now();
            assert!(stopped.is_none() || refuses(&stacks.of_cpus[0]), "sequences are not refused");
        }
    };
    thread::scope(|scope| {
        scope.spawn(stop);
        stop();
    });
}

#[test]
fn plain_words_obey_their_last_acquirer() {
    let owned = OwnedWords::default();
    let first = owned.acquire();
    assert!(owned.store(first, 0, 5));
    let second = owned.acquire();
    assert!(!owned.store(first, 0, 6) && owned.store(second, 14, 7));
    owned.disown();
    assert!(!owned.store(second, 0, 8));
    assert_eq!((owned.words[0].load(Relaxed), owned.words[14].load(Relaxed)), (5, 7));
}

/// One thread acquires twice, as two threads of a CPU would one after the other, while another thread disowns the
/// words. This test fails under Miri if disowning gives the words back to the first acquirer.
#[test]
fn who_has_lost_the_words_does_not_own_them_again() {
    const ROUNDS: u32 = 200;
    let owned = OwnedWords::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                owned.disown();
                thread::yield_now();
            }
        });
        for _ in 0..ROUNDS {
            let (lost, _) = (owned.acquire(), owned.acquire());
            thread::yield_now();
            assert!(!owned.is_owned_by(lost), "a thread owns words again that it had lost");
        }
    });
}

// These tests pin threads with `affinity`, which needs the feature `measuring`.
#[cfg(all(feature = "measuring", target_os = "linux", target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
mod sequences {
    use std::io;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;
    use crate::affinity;
    use crate::testing::{deadline, left_out, or_left_out, wait_until};

    /// Calls `f` until it is not aborted and the thread is on the same CPU before and after the call.
    fn on_one_cpu<T>(area: Area, mut f: impl FnMut(usize) -> Option<T>) -> T {
        loop {
            let cpu = area.cpu().unwrap();
            if let Some(done) = f(cpu) {
                return done;
            }
        }
    }

    fn area() -> Option<Area> {
        // The C library may not support sequences; the tests of `sync` cover that case.
        or_left_out(Area::find())
    }

    #[test]
    fn the_area_is_long_enough_and_knows_the_cpu() {
        let Some(area) = area() else { return };
        assert!((20..=4096).contains(&area.feature_bytes()), "{}", area.feature_bytes());
        assert!(area.cpu().unwrap() < possible_cpus());
    }

    #[test]
    fn nothing_happens_on_a_cpu_that_has_no_data() {
        let Some(area) = area() else { return };
        assert_eq!(area.add(&[], 1), Outcome::Refused);
        assert_eq!(area.push(&Stacks::new(0, 1), item(1)), Outcome::Refused);
        assert_eq!(area.pop(&Stacks::new(0, 1)), Outcome::Refused);
        assert_eq!(area.acquire(&[]), Outcome::Refused);
        assert_eq!(area.store(usize::MAX >> 32, &OwnedWords::default(), 0, 0, 1), Outcome::Refused);
    }

    /// Sequences are refused on the first CPU without data: the arrays have an element for each lower CPU, but not for
    /// the thread's own CPU.
    #[test]
    fn nor_on_the_first_cpu_that_has_none() {
        let Some(area) = area() else { return };
        let cpu = *affinity::allowed().last().unwrap();
        let Some(()) = or_left_out(affinity::pin_current_thread(cpu)) else { return };
        let (counts, owned): (Vec<_>, Vec<_>) = (0..=cpu).map(|_| (Count::default(), OwnedWords::default())).unzip();
        let stacks = Stacks::new(cpu, 1);
        // Some sequences may be aborted, which does not change the counts either.
        assert!((0..10).all(|_| area.add(&counts[..cpu], 1) != Outcome::Done(())));
        assert!((0..10).all(|_| area.push(&stacks, item(1)) != Outcome::Done(())));
        assert!((0..10).all(|_| !matches!(area.pop(&stacks), Outcome::Done(_))));
        assert!((0..10).all(|_| !matches!(area.acquire(&owned[..cpu]), Outcome::Done(_))));
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Add(u64),
        Push(usize),
        Pop,
        Acquire,
        Store(usize, u64),
        Disown,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            any::<u64>().prop_map(Step::Add),
            (1..1000_usize).prop_map(Step::Push),
            Just(Step::Pop),
            Just(Step::Acquire),
            (0..WORDS, any::<u64>()).prop_map(|(word, value)| Step::Store(word, value)),
            Just(Step::Disown),
        ]
    }

    /// The data of a test: an element for each CPU, for the sequences, and one more element for the functions in plain
    /// Rust.
    struct Both {
        counts: Vec<Count>,
        stacks: Stacks,
        owned: Vec<OwnedWords>,
        plain: (Count, Stack, OwnedWords),
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Runs the same steps as sequences and in plain Rust. If the thread is moved to another CPU, it uses other
        /// data there, so the test starts again.
        #[test]
        fn sequences_do_what_plain_rust_does(steps in prop::collection::vec(step(), 1..100)) {
            let Some(area) = area() else { return Ok(()) };
            on_one_cpu(area, |cpu| {
                let each = 0..possible_cpus();
                let both = Both {
                    counts: each.clone().map(|_| Count::new(u64::MAX)).collect(),
                    stacks: Stacks::new(possible_cpus(), 3),
                    owned: each.map(|_| OwnedWords::default()).collect(),
                    plain: (Count::new(u64::MAX), Stack::new(3), OwnedWords::default()),
                };
                let mut owner = (0, 0);
                for step in &steps {
                    take(area, cpu, &both, *step, &mut owner)?;
                }
                let words = |owned: &OwnedWords| owned.words.each_ref().map(|word| word.load(Relaxed));
                assert_eq!(both.counts[cpu].get(), both.plain.0.get());
                assert_eq!(both.stacks.len(cpu), both.plain.1.len());
                assert_eq!(words(&both.owned[cpu]), words(&both.plain.2));
                Some(())
            });
        }
    }

    /// Executes one step; `None` if the sequence was aborted too often, or the thread was moved to another CPU.
    fn take(area: Area, cpu: usize, both: &Both, step: Step, owner: &mut (u64, u64)) -> Option<()> {
        let is_here = || area.cpu() == Some(cpu);
        let (count, stack, owned) = &both.plain;
        let repeat = |sequence: &dyn Fn() -> Outcome| loop {
            match sequence() {
                Outcome::Aborted => (),
                outcome => break outcome == Outcome::Done(()),
            }
        };
        match step {
            Step::Add(delta) => {
                repeat(&|| area.add(&both.counts, delta)).then_some(())?;
                count.add(delta);
            }
            Step::Push(number) => {
                let pushed = repeat(&|| area.push(&both.stacks, item(number)));
                is_here().then_some(())?;
                assert_eq!(pushed, stack.push(item(number)));
            }
            Step::Pop => {
                let popped = loop {
                    match area.pop(&both.stacks) {
                        Outcome::Aborted => (),
                        Outcome::Done(item) => break Some(item),
                        Outcome::Refused => break None,
                    }
                };
                is_here().then_some(())?;
                assert_eq!(popped, stack.pop());
            }
            Step::Acquire => {
                let Outcome::Done((on, acquired)) = area.acquire(&both.owned) else { return None };
                (on == cpu).then_some(())?;
                *owner = (acquired, owned.acquire());
            }
            Step::Store(word, value) => {
                let stored = repeat(&|| area.store(cpu, &both.owned[cpu], owner.0, word, value));
                is_here().then_some(())?;
                assert_eq!(stored, owned.store(owner.1, word, value));
            }
            Step::Disown => {
                both.owned[cpu].disown();
                owned.disown();
            }
        }
        is_here().then_some(())
    }

    /// A timer that sends a signal every 50 µs to the thread that created the timer, until it is dropped.
    struct Signals(libc::timer_t);

    impl Signals {
        fn begin() -> Self {
            extern "C" fn nothing(_signal: i32) {}
            // SAFETY: the handler does nothing, and no other code uses this signal here.
            unsafe { libc::signal(libc::SIGUSR2, nothing as *const () as libc::sighandler_t) };
            // SAFETY: the structures are plain data, for which zero is valid.
            let (mut event, mut timer) = unsafe { std::mem::zeroed::<(libc::sigevent, libc::timer_t)>() };
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGUSR2;
            // SAFETY: gettid only returns the number of this thread.
            event.sigev_notify_thread_id = unsafe { libc::gettid() };
            let every = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
            let times = libc::itimerspec { it_interval: every, it_value: every };
            // SAFETY: all three are alive, and the kernel fills in the timer before it is used.
            unsafe {
                assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);
                assert_eq!(libc::timer_settime(timer, 0, &raw const times, ptr::null_mut()), 0);
            }
            Self(timer)
        }
    }

    impl Drop for Signals {
        fn drop(&mut self) {
            // SAFETY: the timer exists, and is not used any more.
            unsafe { libc::timer_delete(self.0) };
        }
    }

    /// Calls the sequence on a thread that gets many signals, until enough of the signals have aborted it.
    fn abort(sequence: impl Fn() -> bool + Sync) {
        const ENOUGH: u32 = 20;
        let run = || {
            let _signals = Signals::begin();
            // `wait_until` does not work here: with so many signals its sleep may never end.
            let (mut aborted, deadline) = (0, deadline());
            while aborted < ENOUGH {
                assert!(Instant::now() < deadline, "only {aborted} sequences were aborted");
                aborted += (0..1000).map(|_| u32::from(sequence())).sum::<u32>();
            }
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap());
    }

    type Stop = for<'a> fn(&'a Stacks, usize) -> io::Result<Option<StoppedStack<'a>>>;

    /// Runs a thread that pushes and pops on one CPU. A thread on another CPU stops the stack in each round and checks
    /// that the stack does not change. Returns the first round in which the stack changed. The second thread only
    /// reads, so that no access is out of bounds if the stack is not stopped.
    fn moved_while_stopped(area: Area, [here, there]: [usize; 2], rounds: u64, stop: Stop) -> Option<u64> {
        let (stacks, is_over) = (Stacks::new(possible_cpus(), 64), AtomicBool::new(false));
        let work = || {
            affinity::pin_current_thread(there).unwrap();
            while !is_over.load(Relaxed) {
                let _ = (area.push(&stacks, item(8)), area.push(&stacks, item(8)), area.pop(&stacks));
                while stacks.len(there) > 32 {
                    let _ = area.pop(&stacks);
                }
            }
        };
        let look = || {
            affinity::pin_current_thread(here).unwrap();
            let moved = (0..rounds).find(|_| {
                let stopped = stop(&stacks, there).unwrap_or_default();
                stopped.is_some_and(|stopped| {
                    let len = stopped.len();
                    (0..30).any(|_| stopped.len() != len)
                })
            });
            is_over.store(true, Relaxed);
            moved
        };
        thread::scope(|scope| {
            scope.spawn(work);
            scope.spawn(look).join().unwrap()
        })
    }

    /// The control does not use the fence that ends running sequences. It shows how many rounds are needed to notice
    /// the missing fence.
    #[test]
    fn no_sequence_commits_on_a_stopped_stack() {
        const SEEN: usize = 4;
        const AT_ONCE: u64 = 100_000;
        // A round with the fence takes much longer than a round of the control.
        const MOST: u64 = 200_000;
        let Some(area) = area() else { return };
        let allowed = affinity::allowed();
        let &[here, .., there] = &allowed[..] else { return left_out("there is only one CPU") };
        // Kernels before Linux 5.10 do not support this, and some filters of system calls forbid it.
        let Some(()) = or_left_out(fence(None)) else { return };
        let pinned = thread::spawn(move || affinity::pin_current_thread(there)).join().unwrap();
        let Some(()) = or_left_out(pinned) else { return };
        let moved = |rounds, stop| moved_while_stopped(area, [here, there], rounds, stop);
        let without = || {
            let mut rounds = 0;
            wait_until("a sequence commits on a stack that is not stopped", || {
                let seen = moved(AT_ONCE, |stacks, cpu| stacks.stop_by(cpu, |_| Ok(())));
                rounds += seen.map_or(AT_ONCE, |round| round + 1);
                seen.is_some()
            });
            rounds
        };
        let rounds = (3 * (0..SEEN).map(|_| without()).sum::<u64>()).min(MOST);
        assert_eq!(moved(rounds, Stacks::stop), None, "a sequence committed on a stack that was stopped");
    }

    /// The control: the same operations in plain Rust, on the stack of the CPU on which the thread ran a moment ago.
    /// Each number is pushed once. So without losses, the sum of the popped and the remaining numbers equals the sum of
    /// the pushed numbers.
    #[test]
    fn without_sequences_items_are_lost() {
        let Some(area) = area() else { return };
        let mut stacks = Stacks::new(possible_cpus(), 64);
        let (pushed, popped) = (Count::default(), Count::default());
        let work = |stacks: &Stacks| {
            for number in 1..300_000 {
                if stacks.of_cpus[area.cpu().unwrap()].push(item(number)) {
                    pushed.add_shared(number as u64);
                }
                if let Some(item) = stacks.of_cpus[area.cpu().unwrap()].pop() {
                    popped.add_shared(item.addr().get() as u64);
                }
            }
        };
        wait_until("items are lost without sequences", || {
            let shared = &stacks;
            thread::scope(|scope| (0..4 * possible_cpus()).for_each(|_| drop(scope.spawn(|| work(shared)))));
            popped.add(stacks.drain().map(|item| item.addr().get() as u64).sum());
            pushed.get() != popped.get()
        });
    }

    #[test]
    fn every_abort_handler_is_run_and_leaves_nothing_behind() {
        let Some(area) = area() else { return };
        let each = 0..possible_cpus();
        let counts: Vec<Count> = each.clone().map(|_| Count::default()).collect();
        let added = Count::default();
        abort(|| {
            let outcome = area.add(&counts, 1);
            added.add(u64::from(outcome == Outcome::Done(())));
            outcome == Outcome::Aborted
        });
        assert_eq!(counts.iter().map(Count::get).sum::<u64>(), added.get());

        let stacks = Stacks::new(possible_cpus(), 16);
        let (pushed, popped) = (Count::default(), Count::default());
        let held = || (0..stacks.cpus()).map(|cpu| stacks.len(cpu) as u64).sum::<u64>();
        let push = || {
            let outcome = area.push(&stacks, item(8));
            pushed.add(u64::from(outcome == Outcome::Done(())));
            outcome
        };
        let pop = || {
            let outcome = area.pop(&stacks);
            popped.add(u64::from(matches!(outcome, Outcome::Done(_))));
            outcome
        };
        abort(|| {
            let outcome = push();
            let _ = pop();
            outcome == Outcome::Aborted
        });
        abort(|| {
            let _ = push();
            pop() == Outcome::Aborted
        });
        assert_eq!(held(), pushed.get() - popped.get());

        let owned: Vec<OwnedWords> = each.map(|_| OwnedWords::default()).collect();
        abort(|| area.acquire(&owned) == Outcome::Aborted);
        abort(|| match area.acquire(&owned) {
            Outcome::Done((cpu, owner)) => area.store(cpu, &owned[cpu], owner, 3, 1) == Outcome::Aborted,
            _ => false,
        });
    }
}
