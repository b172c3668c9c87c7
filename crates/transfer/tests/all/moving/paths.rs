//! What depends on time: limits, gentleness and plans, over paths that exist only in a test, by a clock that goes on
//! when all there is to do is done.
// What was measured is printed, for `--nocapture`.
#![allow(clippy::print_stdout)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ascertain_transfer::model::Plan;
use ascertain_transfer::{Moved, Mover, Observer, Progress, Stop, Terms};
use tokio::time::{Instant, sleep};

use super::memory::{ANY, Call, Fault, Memory, Path};
use super::whole::S3;
use super::{file, mover, simulate, terms};

/// The limit is the least that it can take, and not the most.
#[test]
fn a_plan_under_a_limit_leaves_time_for_what_is_not_limited() {
    let (_folder, path, content) = file(8_000_000);
    let limited = Terms { limit_bytes_per_s: Some(20_000_000), ..terms() };
    let least_s = content.len() as f64 / 20e6;
    let round_trip = Duration::from_millis(20);
    let store = Memory { path: Some(Path { bytes_per_s: 1e9, round_trip }), ..Memory::new(ANY) };
    let plan = simulate(mover(limited).put_file(&path, &store.place("a"))).unwrap().plan.unwrap();
    assert!(least_s <= plan.low_s && least_s < plan.expected_s && plan.expected_s < plan.high_s, "{plan:?}");
}

#[test]
fn blocks_under_way_fit_into_memory_and_a_plan_is_made() {
    let (_folder, path, _) = file(40_000_000);
    for memory_bytes in [1 << 20, 4 << 20] {
        let store = Memory::new(ANY);
        let moved = simulate(mover(Terms { memory_bytes, ..terms() }).put_file(&path, &store.place("a"))).unwrap();
        let most = store.lock().under_way.1;
        assert!(most <= memory_bytes, "{most}");
        assert!(moved.blocks > 10 && moved.plan.is_some(), "{moved:?}");
    }
}

/// Whichever way blocks go; and there are several at once, or it would say nothing.
#[test]
fn memory_caps_what_is_under_way_both_ways() {
    let (folder, path, content) = file(30_000_000);
    for memory_bytes in [3 << 20, 8 << 20] {
        let store = Memory::new(ANY);
        let mover = mover(Terms { memory_bytes, ..terms() });
        let most = |moves: &dyn Fn() -> Moved| {
            store.lock().under_way = (0, 0);
            moves();
            let (left, most) = store.lock().under_way;
            assert_eq!(left, 0);
            assert!((memory_bytes / 16..=memory_bytes).contains(&most), "{most} of {memory_bytes}");
        };
        let place = store.place("a");
        most(&|| simulate(mover.put_stream(&mut &content[..], &place)).unwrap());
        most(&|| simulate(mover.put_file(&path, &place)).unwrap());
        most(&|| simulate(mover.get_file(&place, &folder.path().join("target"))).unwrap());
        most(&|| simulate(mover.get_stream(&place, &mut std::io::sink())).unwrap());
    }
}

/// As many as there are going to be blocks at once, but for the one over which it is asked.
#[test]
fn connections_are_made_while_a_store_that_is_far_away_is_asked() {
    for (bytes, limits, memory_bytes, no_clobber, connected) in [
        (2 << 20, ANY, 256 << 20, false, 31),
        (2 << 20, ANY, 256 << 20, true, 0),
        (100_000, ANY, 256 << 20, false, 0),
        (20 << 20, S3, 256 << 20, false, 3),
        (20 << 20, S3, 14 << 20, false, 1),
    ] {
        let (_folder, path, _) = file(bytes);
        let store = Memory::new(limits);
        // No answer at first is what a far store's comes to.
        store.script(|call, times| (call == Call::Head && times == 0).then_some(Fault::Hangs));
        let terms = Terms { no_clobber, memory_bytes, timeout: Duration::from_millis(100), ..terms() };
        simulate(mover(terms).put_file(&path, &store.place("a"))).unwrap();
        assert_eq!(store.lock().connected, connected, "{bytes} {memory_bytes} {no_clobber}");
    }
}

/// A question that is answered late is how far it is.
#[test]
fn what_is_read_back_from_far_away_comes_over_many_connections() {
    let (_folder, path, _) = file(3_000_000);
    let store = Memory::new(ANY);
    store.script(|call, times| (call == Call::Head && times == 1).then_some(Fault::Hangs));
    let terms = Terms { verify: true, timeout: Duration::from_millis(100), ..terms() };
    simulate(mover(terms).put_file(&path, &store.place("a"))).unwrap();
    // Of what is near the first two blocks are of 256 KiB, one after the other.
    assert_eq!(store.count(|call| *call == Call::Get(65_536)), 1, "{:?}", store.lock().calls);
}

#[test]
fn a_limit_on_bandwidth_keeps_blocks_small_and_few() {
    let (folder, path, _) = file(3_000_000);
    let store = Memory::new(ANY);
    // Each clock has a mover of its own.
    let limited = || mover(Terms { limit_bytes_per_s: Some(8_000_000), ..terms() });
    // The store would take it at once.
    let put = simulate(limited().put_file(&path, &store.place("a"))).unwrap();
    assert!(store.count(|call| matches!(call, Call::Block(_))) >= 2);
    assert!(store.lock().under_way.1 <= 4 * 2_000_000);
    let got = simulate(limited().get_file(&store.place("a"), &folder.path().join("target"))).unwrap();
    for moved in [put, got] {
        let plan = moved.plan.unwrap();
        assert!([plan.low_s, plan.expected_s, plan.high_s].iter().all(|s| *s >= 3.0 / 8.0), "{plan:?}");
        // All but the last block have been paid for.
        assert!((1.0 / 8.0..3.1 / 8.0).contains(&moved.elapsed_s), "{moved:?}");
    }
}

/// Both ways; and a limit is kept as well, for a store that sends blocks as fast as it can.
#[test]
fn a_gentle_move_watches_the_path() {
    let (_folder, path, content) = file(1_500_000);
    let store = Memory::new(ANY);
    let (gentle, limit_bytes_per_s) = (Some(Duration::from_millis(5)), Some(3_000_000));
    let terms = Terms { gentle, limit_bytes_per_s, verify: true, ..terms() };
    let moved = simulate(mover(terms).put_file(&path, &store.place("a"))).unwrap();
    assert_eq!(store.bytes("a").unwrap(), content);
    assert!(moved.elapsed_s > 1_400_000.0 / 3e6, "{moved:?}");
    let calls = &store.lock().calls;
    let read_back = calls.iter().position(|call| matches!(call, Call::Get(_))).unwrap();
    let asked = |calls: &[Call]| calls.iter().filter(|call| **call == Call::Head).count();
    assert!(asked(&calls[..read_back]) > 3 && asked(&calls[read_back..]) > 1, "{calls:?}");
}

/// The share of the time in which somebody else's packets wait for longer than they may, and the share of the path that
/// is used.
fn shares(gentle: Option<Duration>, is_put: bool) -> [f64; 2] {
    const BYTES_PER_S: f64 = 2.5e6;
    const MOST: Duration = Duration::from_millis(60);
    let (folder, path, content) = file(10_000_000);
    let slow = Path { bytes_per_s: BYTES_PER_S, round_trip: Duration::from_millis(10) };
    let store = Memory { path: Some(slow), ..Memory::new(ANY) };
    store.insert("b", &content);
    let mover = mover(Terms { gentle, ..terms() });
    simulate(async {
        let (mut late, mut looked) = (0, 0);
        let watched = async {
            loop {
                looked += 1;
                late += u32::from(store.queue() > MOST);
                sleep(Duration::from_millis(20)).await;
            }
        };
        let began = Instant::now();
        let moves = async {
            match is_put {
                true => mover.put_file(&path, &store.place("a")).await,
                false => mover.get_file(&store.place("b"), &folder.path().join("target")).await,
            }
        };
        tokio::select! {
            moved = moves => assert_eq!(moved.unwrap().bytes, 10_000_000),
            () = watched => {}
        }
        let used = content.len() as f64 / began.elapsed().as_secs_f64() / BYTES_PER_S;
        [f64::from(late) / f64::from(looked), used]
    })
}

#[test]
fn gentleness_keeps_the_queue_short_for_others() {
    for is_put in [true, false] {
        let [gentle, used] = shares(Some(Duration::from_millis(60)), is_put);
        let [plain, _] = shares(None, is_put);
        println!("put: {is_put}, late {gentle:.3} of the time, {plain:.3} if not gentle, {used:.2} of the path used");
        assert!(plain > 0.9 && gentle < 0.05 && used > 0.3, "put: {is_put}: {gentle} {plain}, {used} used");
    }
}

/// Takes down the plans: what is expected, of which blocks, and after how many bytes.
#[derive(Clone, Default)]
struct Plans(Arc<Mutex<Vec<(f64, u64, u64)>>>);

impl Observer for Plans {
    fn progress(&self, progress: &Progress<'_>) {
        if let Some(Plan { shape, expected_s, .. }) = progress.plan {
            self.0.lock().unwrap().push((*expected_s, shape.block_bytes, progress.done_bytes));
        }
    }
}

/// Where no block may be smaller than 5 MiB, they are the probe, and the plan that comes of them is corrected.
#[test]
fn what_s3_takes_is_planned_from_its_own_blocks() {
    const LEAST_BYTES: u64 = 5 << 20;
    let (length, max_concurrency) = (80_000_000, 5);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros");
    std::fs::File::create(&path).unwrap().set_len(length).unwrap();
    let fast = Path { bytes_per_s: 1e7, round_trip: Duration::from_millis(10) };
    let store = Memory { path: Some(fast), ..Memory::new(S3) };
    let plans = Plans::default();
    let terms = Terms { max_concurrency, memory_bytes: 256 << 20, ..terms() };
    let mover = Mover::new(terms, Stop::default(), Box::new(plans.clone()));
    let moved = simulate(mover.put_file(&path, &store.place("a"))).unwrap();
    let plans = plans.0.lock().unwrap();
    assert!(plans.iter().all(|(_, block_bytes, _)| *block_bytes >= LEAST_BYTES), "{plans:?}");
    let (first_s, _, first_bytes) = plans[0];
    let (last_s, ..) = *plans.last().unwrap();
    assert!(first_s != last_s, "it was not corrected");
    // Before, there is nothing to tell by.
    assert!(first_bytes <= (max_concurrency as u64 + 1) * LEAST_BYTES, "{plans:?}");
    assert!((0.9..1.1).contains(&(last_s / moved.elapsed_s)), "{last_s} of {}", moved.elapsed_s);
    assert!(moved.blocks <= length.div_ceil(LEAST_BYTES), "{moved:?}");
}
