//! The sequences held against what they do in plain Rust, and stopped in their middle.

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

/// Two take turns at a stack, as nobody's sequences go on. Miri, where a relaxed load may find what was there before,
/// finds it where one does not see what the other left.
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

/// Whether sequences are refused.
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
    // Where the kernel can't end them, they go on; and who asks again is not told that somebody else has it.
    for _ in 0..2 {
        assert!(stacks.stop_by(1, |_| Err(std::io::ErrorKind::Unsupported.into())).is_err());
        assert!(!refuses(stack));
    }
}

/// Two take turns again. Miri, which stops a thread in the middle of anything, finds it where one lets sequences go on
/// after the other has stopped them.
#[test]
fn a_stopped_stack_refuses_until_its_stopper_ends() {
    let stacks = Stacks::new(1, 1);
    let stop = || {
        for _ in 0..if cfg!(miri) { 200 } else { 2_000 } {
            let stopped = stacks.stop_by(0, |_| Ok(())).unwrap();
            thread::yield_now();
            assert!(stopped.is_none() || refuses(&stacks.of_cpus[0]), "sequences go on");
        }
    };
    thread::scope(|scope| {
        scope.spawn(stop);
        stop();
    });
}

#[test]
fn plain_words_obey_their_last_acquirer() {
    let owned = Owned::default();
    let first = owned.acquire();
    assert!(owned.store(first, 0, 5));
    let second = owned.acquire();
    assert!(!owned.store(first, 0, 6) && owned.store(second, 14, 7));
    owned.disown();
    assert!(!owned.store(second, 0, 8));
    assert_eq!((owned.words[0].load(Relaxed), owned.words[14].load(Relaxed)), (5, 7));
}

/// One acquires twice, as a CPU's threads do one after the other, while another disowns. Miri finds it where that gives
/// the words back to the first.
#[test]
fn who_has_lost_the_words_does_not_own_them_again() {
    const ROUNDS: u32 = 200;
    let owned = Owned::default();
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
            assert!(!owned.is_owned_by(lost), "two own them");
        }
    });
}

// They pin themselves by `affinity`, of the feature `measuring`.
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

    /// Calls `f` until it was neither aborted nor on another CPU in the end than in the beginning.
    fn on_one_cpu<T>(area: Area, mut f: impl FnMut(usize) -> Option<T>) -> T {
        loop {
            let cpu = area.cpu().unwrap();
            if let Some(done) = f(cpu) {
                return done;
            }
        }
    }

    fn area() -> Option<Area> {
        // A C library without: `sync` tests what is done then.
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
        assert_eq!(area.pop(&Stacks::new(0, 1)), Yielded::Refused);
        assert_eq!(area.acquire(&[]), Yielded::Refused);
        assert_eq!(area.store(usize::MAX >> 32, &Owned::default(), 0, 0, 1), Outcome::Refused);
    }

    /// What is given ends before the CPU that the thread is on.
    #[test]
    fn nor_on_the_first_cpu_that_has_none() {
        let Some(area) = area() else { return };
        let cpu = *affinity::allowed().last().unwrap();
        let Some(()) = or_left_out(affinity::pin_current_thread(cpu)) else { return };
        let (counts, owned): (Vec<_>, Vec<_>) = (0..=cpu).map(|_| (Count::default(), Owned::default())).unzip();
        let stacks = Stacks::new(cpu, 1);
        // Some may be aborted, which is no effect either.
        assert!((0..10).all(|_| area.add(&counts[..cpu], 1) != Outcome::Done));
        assert!((0..10).all(|_| area.push(&stacks, item(1)) != Outcome::Done));
        assert!((0..10).all(|_| !matches!(area.pop(&stacks), Yielded::Done(_))));
        assert!((0..10).all(|_| !matches!(area.acquire(&owned[..cpu]), Yielded::Done(_))));
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

    /// What the sequences work on: for each CPU, and once more in plain Rust.
    struct Both {
        counts: Vec<Count>,
        stacks: Stacks,
        owned: Vec<Owned>,
        plain: (Count, Stack, Owned),
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The same steps by sequences and in plain Rust. A single thread that is moved to another CPU finds other data
        /// there: then all begins anew.
        #[test]
        fn sequences_do_what_plain_rust_does(steps in prop::collection::vec(step(), 1..100)) {
            let Some(area) = area() else { return Ok(()) };
            on_one_cpu(area, |cpu| {
                let each = 0..possible_cpus();
                let both = Both {
                    counts: each.clone().map(|_| Count::new(u64::MAX)).collect(),
                    stacks: Stacks::new(possible_cpus(), 3),
                    owned: each.map(|_| Owned::default()).collect(),
                    plain: (Count::new(u64::MAX), Stack::new(3), Owned::default()),
                };
                let mut owner = (0, 0);
                for step in &steps {
                    take(area, cpu, &both, *step, &mut owner)?;
                }
                let words = |owned: &Owned| owned.words.each_ref().map(|word| word.load(Relaxed));
                assert_eq!(both.counts[cpu].get(), both.plain.0.get());
                assert_eq!(both.stacks.len(cpu), both.plain.1.len());
                assert_eq!(words(&both.owned[cpu]), words(&both.plain.2));
                Some(())
            });
        }
    }

    /// One step; none where the thread was aborted too often or moved.
    fn take(area: Area, cpu: usize, both: &Both, step: Step, owner: &mut (u64, u64)) -> Option<()> {
        let is_here = || area.cpu() == Some(cpu);
        let (count, stack, owned) = &both.plain;
        let repeat = |sequence: &dyn Fn() -> Outcome| loop {
            match sequence() {
                Outcome::Aborted => (),
                outcome => break outcome == Outcome::Done,
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
                        Yielded::Aborted => (),
                        Yielded::Done(item) => break Some(item),
                        Yielded::Refused => break None,
                    }
                };
                is_here().then_some(())?;
                assert_eq!(popped, stack.pop());
            }
            Step::Acquire => {
                let Yielded::Done((on, acquired)) = area.acquire(&both.owned) else { return None };
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

    /// Signals to the thread that made it, every 50 µs until it is dropped.
    struct Signals(libc::timer_t);

    impl Signals {
        fn begin() -> Self {
            extern "C" fn nothing(_signal: i32) {}
            // SAFETY: the handler does nothing, and nobody else uses this signal here.
            unsafe { libc::signal(libc::SIGUSR2, nothing as *const () as libc::sighandler_t) };
            // SAFETY: plain data, for which zero is a value.
            let (mut event, mut timer) = unsafe { std::mem::zeroed::<(libc::sigevent, libc::timer_t)>() };
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGUSR2;
            // SAFETY: gettid only says who we are.
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

    /// Calls the sequence on a thread that gets signal after signal, until some hit it in its middle.
    fn abort(sequence: impl Fn() -> bool + Sync) {
        const ENOUGH: u32 = 20;
        let run = || {
            let _signals = Signals::begin();
            // Not `wait_until`: with so many signals its sleep may never end.
            let (mut aborted, deadline) = (0, deadline());
            while aborted < ENOUGH {
                assert!(Instant::now() < deadline, "only {aborted} sequences were aborted");
                aborted += (0..1000).map(|_| u32::from(sequence())).sum::<u32>();
            }
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap());
    }

    type Stop = for<'a> fn(&'a Stacks, usize) -> io::Result<Option<Stopped<'a>>>;

    /// A thread on one CPU pushes and pops; one on another stops the stack so often, and looks whether it stays as it
    /// is. In which round it did not; nothing worse, so that nothing gets out of bounds where the stack is not stopped.
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

    /// The control, which does not ask the kernel to end the sequences under way, says how long one must look.
    #[test]
    fn no_sequence_commits_on_a_stopped_stack() {
        const SEEN: usize = 4;
        const AT_ONCE: u64 = 100_000;
        // Such a round asks the kernel to end the sequences, which takes much longer than a round of the control.
        const MOST: u64 = 200_000;
        let Some(area) = area() else { return };
        let allowed = affinity::allowed();
        let &[here, .., there] = &allowed[..] else { return left_out("there is but one CPU") };
        // Kernels before Linux 5.10 can't, nor can some filters of system calls.
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

    /// The control: what the sequences do, in plain Rust on the stack of the CPU that the thread was on a moment ago.
    /// Each number is pushed once, so that the sum of those popped and those left must be that of those pushed.
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
            added.add(u64::from(outcome == Outcome::Done));
            outcome == Outcome::Aborted
        });
        assert_eq!(counts.iter().map(Count::get).sum::<u64>(), added.get());

        let stacks = Stacks::new(possible_cpus(), 16);
        let (pushed, popped) = (Count::default(), Count::default());
        let held = || (0..stacks.cpus()).map(|cpu| stacks.len(cpu) as u64).sum::<u64>();
        let push = || {
            let outcome = area.push(&stacks, item(8));
            pushed.add(u64::from(outcome == Outcome::Done));
            outcome
        };
        let pop = || {
            let outcome = area.pop(&stacks);
            popped.add(u64::from(matches!(outcome, Yielded::Done(_))));
            outcome
        };
        abort(|| {
            let outcome = push();
            let _ = pop();
            outcome == Outcome::Aborted
        });
        abort(|| {
            let _ = push();
            pop() == Yielded::Aborted
        });
        assert_eq!(held(), pushed.get() - popped.get());

        let owned: Vec<Owned> = each.map(|_| Owned::default()).collect();
        abort(|| area.acquire(&owned) == Yielded::Aborted);
        abort(|| match area.acquire(&owned) {
            Yielded::Done((cpu, owner)) => area.store(cpu, &owned[cpu], owner, 3, 1) == Outcome::Aborted,
            _ => false,
        });
    }
}
