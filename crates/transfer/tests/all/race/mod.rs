//! Tests of races on a virtual clock: compared with a reference implementation, dropped in every state, and under load.

mod reference;
mod world;

use std::cell::Cell;
use std::pin::Pin;
use std::time::Duration;

use ascertain_transfer::race::{
    Clock, Counts, Mismatch, Policy, RaceError, Racer, RequestTimes, Side, checked, replay,
};
use proptest::prelude::*;
use reference::{Behaviour, Outcome};
use world::{Task, World, run_all};

const MS: Duration = Duration::from_millis(1);
const P95: Policy = Policy::Percentile { quantile: 0.95, budget: 0.05 };

fn racer(policy: Policy) -> (World, Racer<World>) {
    let world = World::default();
    let racer = Racer::with_clock(policy, world.clone()).unwrap();
    (world, racer)
}

/// Sends one request. Returns its outcome as the reference describes it.
async fn request(world: &World, racer: &Racer<World>, cache: Behaviour, origin: Behaviour) -> Outcome {
    let began = world.now();
    let says = |acts: Behaviour, name| if acts.is_fine { Ok(name) } else { Err(name) };
    let (cache, origin) = (world.answer(cache.time, says(cache, "c")), world.answer(origin.time, says(origin, "o")));
    match racer.race(cache, origin).await {
        Ok(won) => {
            assert_eq!(won.value, if won.side == Side::Cache { "c" } else { "o" });
            let errors = [won.cache_error.is_some(), won.origin_error.is_some()];
            Outcome { time: world.now() - began, side: Some(won.side), has_raced: won.has_raced, errors }
        }
        Err(RaceError { cache, origin }) => {
            assert_eq!((cache, origin), ("c", "o"));
            let has_raced = racer.counts().raced > 0;
            Outcome { time: world.now() - began, side: None, has_raced, errors: [true, true] }
        }
    }
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Never),
        Just(Policy::Always),
        Just(Policy::Throttled { at_once: 1 }),
        (0..40_u32).prop_map(|ms| Policy::After(ms * MS)),
        (0.3..0.99, 0.0..0.5).prop_map(|(quantile, budget)| Policy::Percentile { quantile, budget }),
    ]
}

fn behaviours() -> impl Strategy<Value = Behaviour> {
    (0..40_u32, any::<bool>()).prop_map(|(ms, is_fine)| Behaviour { time: ms * MS, is_fine })
}

proptest! {
    /// Each side may fail, be slow, or both. The answer, its time, the errors, and whether there was a race must equal
    /// those of the reference.
    #[test]
    fn a_request_ends_as_the_reference_says(cache in behaviours(), origin in behaviours(), policy in policies()) {
        let (world, racer) = racer(policy);
        let mut task = Task::new(request(&world, &racer, cache, origin));
        let outcome = task.run(&world, u64::MAX).unwrap();
        prop_assert_eq!(outcome, reference::race(cache, origin, racer.delay()));
        // The task is woken at most once by the delay and once by each side. The task does not wake itself. Each poll
        // of the task polls each side once.
        prop_assert!(task.wakes() <= 3, "{} wake-ups of one request", task.wakes());
        prop_assert!(world.polls() <= 2 * task.polls + 3, "{} polls in {}", world.polls(), task.polls);
        drop(task);
        prop_assert_eq!(world.sleeping(), 0, "no sleep is left over");
    }

    #[test]
    fn replays_are_as_the_reference_says(
        policy in policies(),
        times in prop::collection::vec((0..50_u32, 0..20_u32, 0..40_u32), 1..250),
    ) {
        // One in eight answers of the cache takes ten times as long.
        let cache = |(ms, kind): (u32, u32)| if kind % 8 == 0 { 10 * ms * MS } else { ms * MS };
        let requests: Vec<_> = times.iter().map(|&(ms, kind, origin)| (cache((ms, kind)), origin * MS)).collect();
        let expected = reference::replay(policy, &requests);
        let as_times: Vec<_> = requests.iter().map(|&(cache, origin)| RequestTimes { cache, origin }).collect();
        let replayed = replay(policy, &as_times).unwrap();
        prop_assert_eq!(&replayed.times, &expected.iter().map(|(time, _)| *time).collect::<Vec<_>>());
        prop_assert_eq!(replayed.counts.raced, expected.iter().filter(|(_, has_raced)| *has_raced).count() as u64);
    }

    /// With many requests in flight, some of which are dropped, the budget is never exceeded, and every request is
    /// counted.
    #[test]
    fn budgets_and_counts_hold_at_any_moment(
        budget in 0.0..0.4_f64,
        requests in prop::collection::vec((0..300_u32, behaviours(), behaviours(), 1..120_u32), 1..120),
    ) {
        let (world, racer) = racer(Policy::Percentile { quantile: 0.5, budget });
        let one = |&(at, cache, origin, patience): &(u32, Behaviour, Behaviour, u32)| {
            let (world, racer) = (&world, &racer);
            Box::pin(async move {
                world.sleep(at * MS).await;
                let asks = racer.race(
                    world.answer(cache.time, if cache.is_fine { Ok(()) } else { Err(()) }),
                    world.answer(origin.time, if origin.is_fine { Ok(()) } else { Err(()) }),
                );
                // Each request is dropped after its own timeout, if it is not complete.
                tokio::select! { biased; _ = asks => {}, () = world.sleep(patience * MS) => {} }
            }) as Pin<Box<dyn Future<Output = ()>>>
        };
        let holds = |counts: Counts| counts.extra as f64 <= budget * counts.requests as f64;
        run_all(&world, requests.iter().map(one).collect(), || assert!(holds(racer.counts()), "{:?}", racer.counts()));
        let counts = racer.counts();
        prop_assert_eq!(counts.requests, requests.len() as u64);
        prop_assert!(counts.cache_won + counts.network_won + counts.failed + counts.cancelled <= counts.requests);
        prop_assert!(counts.cache_won + counts.network_won <= counts.raced && counts.extra <= counts.raced);
    }
}

/// Dropping a request in any state leaves no pending sleep. The request is counted as cancelled, and the budget that it
/// used stays used.
#[test]
fn a_request_may_be_dropped_at_every_point() {
    let fine = |ms: u32| Behaviour { time: ms * MS, is_fine: true };
    let fails = |ms: u32| Behaviour { time: ms * MS, is_fine: false };
    let cases =
        [(fine(30), fine(5)), (fails(30), fine(5)), (fine(30), fails(5)), (fails(5), fine(30)), (fails(30), fails(5))];
    let mut points = 0;
    for policy in [Policy::Never, Policy::Always, Policy::After(10 * MS), P95, Policy::Throttled { at_once: 1 }] {
        for (cache, origin) in cases {
            for polls in 0.. {
                let (world, racer) = racer(policy);
                if policy == P95 {
                    learn(&world, &racer, 100);
                }
                let before = racer.counts();
                // If the cache is throttled, the request that is tested must wait until this one has read the cache.
                let mut other = Task::new(request(&world, &racer, fine(1), fine(1)));
                other.run(&world, 1);
                let mut task = Task::new(request(&world, &racer, cache, origin));
                let began = task.run(&world, polls.min(1));
                other.run(&world, u64::MAX).unwrap();
                let done = began.or_else(|| task.run(&world, polls));
                drop((task, other));
                let counts = racer.counts();
                assert_eq!(world.sleeping(), 0, "{policy:?}, {polls} polls: a sleep is left over");
                assert_eq!(counts.cancelled, u64::from(done.is_none() && polls > 0), "{policy:?}, {polls} polls");
                assert!(counts.extra <= counts.raced && counts.raced <= before.raced + 2);
                // Dropping has freed the place of the request, so the next one need not wait.
                let mut next = Task::new(request(&world, &racer, fine(1), fine(1)));
                assert_eq!(next.run(&world, u64::MAX).unwrap().time, MS, "{policy:?}, {polls} polls");
                points += 1;
                if done.is_some() {
                    break;
                }
            }
        }
    }
    assert!(points > 80, "only {points} points were reached");
}

/// Sends `requests` requests that the cache answers within 1 to 10 ms, so that the racer can estimate the delay.
fn learn(world: &World, racer: &Racer<World>, requests: u32) {
    for index in 0..requests {
        let cache = Behaviour { time: (index % 10 + 1) * MS, is_fine: true };
        let mut task = Task::new(request(world, racer, cache, Behaviour { time: 50 * MS, is_fine: true }));
        task.run(world, u64::MAX).unwrap();
    }
}

#[test]
fn without_times_or_a_budget_nobody_races() {
    let slow = Behaviour { time: 1_000 * MS, is_fine: true };
    let fast = Behaviour { time: MS, is_fine: true };
    let (world, fresh) = racer(P95);
    assert_eq!(fresh.delay(), None);
    let outcome = Task::new(request(&world, &fresh, slow, fast)).run(&world, u64::MAX).unwrap();
    assert_eq!((outcome.time, outcome.has_raced), (1_000 * MS, false));

    let (world, poor) = racer(Policy::Percentile { quantile: 0.9, budget: 0.0 });
    learn(&world, &poor, 100);
    let delay = poor.delay().unwrap();
    assert!(9 * MS < delay && delay < 10 * MS, "nine of ten take at most 9 ms, but the delay is {delay:?}");
    let outcome = Task::new(request(&world, &poor, slow, fast)).run(&world, u64::MAX).unwrap();
    assert_eq!((outcome.time, outcome.has_raced), (1_000 * MS, false));
    let counts = poor.counts();
    assert_eq!(
        (counts.raced, counts.extra, counts.withheld),
        (0, 0, 10),
        "one of each ten took 10 ms; there was no delay for the first ten"
    );
}

/// If the cache fails, the race was not unnecessary, so its cost is refunded.
#[test]
fn what_the_origin_was_needed_for_costs_no_budget() {
    let (world, racer) = racer(Policy::Percentile { quantile: 0.9, budget: 0.1 });
    learn(&world, &racer, 100);
    let (before, delay) = (racer.counts(), racer.delay().unwrap());
    let (cache, origin) = (Behaviour { time: 20 * MS, is_fine: false }, Behaviour { time: 30 * MS, is_fine: true });
    for _ in 0..200 {
        let outcome = Task::new(request(&world, &racer, cache, origin)).run(&world, u64::MAX).unwrap();
        assert_eq!((outcome.time, outcome.has_raced), (delay + 30 * MS, true));
    }
    let counts = racer.counts();
    assert_eq!((counts.raced, counts.extra, counts.cache_failed), (before.raced + 200, before.extra, 200));
}

/// Late requests use the saved budget in their order, one unit each. At most 100 units are saved.
#[test]
fn a_crowd_gets_what_was_saved_in_its_order() {
    let (world, racer) = racer(Policy::Percentile { quantile: 0.99, budget: 0.5 });
    learn(&world, &racer, 1_000);
    let (saved, before) = (100, racer.counts().raced);
    let raced = Cell::new(0);
    let one = |index: u32| {
        let (world, racer, raced) = (&world, &racer, &raced);
        Box::pin(async move {
            let slow = Behaviour { time: 1_000 * MS, is_fine: true };
            let outcome = request(world, racer, slow, Behaviour { time: 500 * MS, is_fine: true }).await;
            assert_eq!(outcome.has_raced, index < saved, "{index}");
            raced.set(raced.get() + u32::from(outcome.has_raced));
        }) as Pin<Box<dyn Future<Output = ()>>>
    };
    run_all(&world, (0..400).map(one).collect(), || {});
    assert_eq!((raced.get(), racer.counts().raced - before, racer.counts().withheld), (100, 100, 300));
}

#[test]
fn a_throttled_cache_is_asked_in_turn() {
    let (world, racer) = racer(Policy::Throttled { at_once: 3 });
    let (now, most, order) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let one = |index: u32| {
        let (world, racer, now, most, order) = (&world, &racer, &now, &most, &order);
        Box::pin(async move {
            let cache = async move {
                assert_eq!(order.replace(order.get() + 1), index, "in the order in which they came");
                now.set(now.get() + 1);
                most.set(most.get().max(now.get()));
                world.sleep((index % 4 + 1) * MS).await;
                now.set(now.get() - 1);
                Ok::<_, ()>(())
            };
            let won = racer.race(cache, async { Err::<(), _>(()) }).await.unwrap();
            assert!(!won.has_raced);
        }) as Pin<Box<dyn Future<Output = ()>>>
    };
    run_all(&world, (0..50).map(one).collect(), || {});
    assert_eq!((most.get(), racer.counts().raced), (3, 0));
}

/// While the origin answers a miss, another request may read the cache.
#[test]
fn a_miss_gives_its_turn_back() {
    let (world, racer) = racer(Policy::Throttled { at_once: 1 });
    let one = |cache: Behaviour, ends: Duration| {
        let (world, racer) = (&world, &racer);
        Box::pin(async move {
            let outcome = request(world, racer, cache, Behaviour { time: 1_000 * MS, is_fine: true }).await;
            assert_eq!(outcome.time, ends);
        }) as Pin<Box<dyn Future<Output = ()>>>
    };
    let (miss, hit) = (Behaviour { time: MS, is_fine: false }, Behaviour { time: MS, is_fine: true });
    run_all(&world, vec![one(miss, 1_001 * MS), one(hit, 2 * MS)], || {});
}

/// The share of races must be one in ten, whichever side wins. If the durations of losing requests were ignored or
/// counted as complete when dropped, many more would race.
#[test]
fn losers_do_not_make_the_cache_look_fast() {
    for origin_ms in [1, 5, 20] {
        let mut state = 1_u32;
        let mut chance = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1 << 24)
        };
        // Durations from 1 to 10,000 ms. Most are short, but some are much longer than the origin takes.
        let cache = |chance: f64| Duration::from_secs_f64(0.001 * 10_f64.powf(4.0 * chance));
        let requests: Vec<_> =
            (0..20_000).map(|_| RequestTimes { cache: cache(chance()), origin: origin_ms * MS }).collect();
        let replayed = replay(Policy::Percentile { quantile: 0.9, budget: 1.0 }, &requests).unwrap();
        let share = replayed.counts.raced as f64 / 20_000.0;
        assert!((0.09..0.11).contains(&share), "{share} raced with an origin of {origin_ms} ms");
    }
}

#[test]
fn a_cache_that_lies_has_failed() {
    let (world, racer) = racer(Policy::Never);
    // Any function of the bytes can serve as a checksum here.
    let sum = |bytes: &&[u8]| bytes.iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
    let expected = sum(&&b"right"[..]);
    let side =
        |time_ms: u32, says: &'static [u8]| checked(world.answer(time_ms * MS, Ok::<_, &str>(says)), expected, sum);
    let won = Task::new(racer.race(side(1, b"wrong"), side(2, b"right"))).run(&world, u64::MAX).unwrap().unwrap();
    assert_eq!((won.value, won.side), (&b"right"[..], Side::Origin));
    assert_eq!(won.cache_error, Some(Mismatch::Differs { expected, found: sum(&&b"wrong"[..]) }));
    let fine = Task::new(racer.race(side(1, b"right"), side(2, b"wrong"))).run(&world, u64::MAX).unwrap().unwrap();
    assert_eq!(fine.side, Side::Cache);
    let both = Task::new(racer.race(side(1, b"wrong"), side(2, b"other"))).run(&world, u64::MAX).unwrap();
    let said = both.unwrap_err().to_string();
    assert!(said.contains(&format!("{:016x}", sum(&&b"wrong"[..]))), "{said}");
    assert!(said.contains(&format!("{:016x}", sum(&&b"other"[..]))), "{said}");
    assert_eq!((racer.counts().cache_failed, racer.counts().origin_failed, racer.counts().failed), (2, 1, 1));
    let down = checked(world.answer(MS, Err::<&[u8], _>("down")), expected, sum);
    assert_eq!(Task::new(down).run(&world, u64::MAX), Some(Err(Mismatch::Failed("down"))));
}

#[test]
fn policies_that_are_none_are_refused() {
    let share = |quantile, budget| Policy::Percentile { quantile, budget };
    for policy in [
        share(0.0, 0.1),
        share(1.0, 0.1),
        share(f64::NAN, 0.1),
        share(0.999_1, 1.0),
        share(0.9, -0.1),
        share(0.9, 1.1),
        share(0.9, f64::NAN),
        Policy::Throttled { at_once: 0 },
    ] {
        let error = Racer::new(policy).unwrap_err().to_string();
        assert!(["quantile", "budget", "limit"].iter().any(|word| error.contains(word)), "{error}");
    }
    for policy in [share(1e-9, 0.0), share(0.999, 1.0), Policy::Throttled { at_once: usize::MAX }] {
        assert!(Racer::new(policy).is_ok(), "{policy:?}");
    }
}

/// Several threads use the same racer, with tokio's clock.
#[test]
fn races_go_from_thread_to_thread() {
    let racer = std::sync::Arc::new(Racer::new(Policy::After(MS)).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let one = |index: u32| {
        let racer = racer.clone();
        async move {
            let cache = async {
                if index.is_multiple_of(2) {
                    std::future::pending::<()>().await;
                }
                Ok::<_, ()>(Side::Cache)
            };
            let origin = async {
                tokio::task::yield_now().await;
                Ok::<_, ()>(Side::Origin)
            };
            let won = racer.race(cache, origin).await.unwrap();
            assert_eq!((won.value, won.side == Side::Origin), (won.side, index.is_multiple_of(2)));
        }
    };
    let tasks: Vec<_> = (0..200).map(|index| runtime.spawn(one(index))).collect();
    tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    let counts = racer.counts();
    assert_eq!((counts.requests, counts.raced, counts.network_won, counts.cancelled), (200, 100, 100, 0));
}
