//! Tests that depend on time: limits, gentle transfers and plans. The network paths are simulated. When all tasks wait,
//! the clock jumps to the next event.
// The tests print their measurements, for `--nocapture`.
#![allow(clippy::print_stdout)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ascertain_transfer::model::Forecast;
use ascertain_transfer::{Observer, Progress, Settings, Stop, TransferManager, TransferResult};
use tokio::time::{Instant, sleep};

use super::memory::{ANY, Call, Fault, Memory, Path};
use super::whole::S3;
use super::{file, manager, settings, simulate};

/// The last part starts when the bandwidth limit permits it, so the interval must not begin before this time.
#[test]
fn a_forecast_under_a_limit_is_not_below_the_time_that_the_limit_requires() {
    let (_folder, path, content) = file(8_000_000);
    let limited = Settings { limit_bytes_per_s: Some(20_000_000), ..settings() };
    let round_trip = Duration::from_millis(20);
    let store = Memory { path: Some(Path { bytes_per_s: 1e9, round_trip }), ..Memory::new(ANY) };
    let plan = simulate(manager(limited).put_file(&path, &store.place("a"))).unwrap().plan.unwrap();
    // Under a limit, a part has at most the bytes of a quarter of a second.
    let least_s = content.len() as f64 / 20e6 - 0.25;
    let forecast = plan.forecast.unwrap();
    assert!(least_s <= forecast.low_s && forecast.low_s < forecast.expected_s, "{plan:?}");
    assert!(forecast.expected_s < forecast.high_s, "{plan:?}");
}

#[test]
fn parts_in_flight_fit_into_memory_and_a_plan_is_made() {
    let (_folder, path, _) = file(40_000_000);
    for memory_bytes in [1 << 20, 4 << 20] {
        let store = Memory::new(ANY);
        let result =
            simulate(manager(Settings { memory_bytes, ..settings() }).put_file(&path, &store.place("a"))).unwrap();
        let most = store.lock().under_way.1;
        assert!(most <= memory_bytes, "{most}");
        assert!(result.parts > 10 && result.plan.is_some(), "{result:?}");
    }
}

/// The memory limit applies to uploads and downloads. Several parts must be in flight, or the test would show nothing.
#[test]
fn memory_limits_the_parts_in_flight_in_both_directions() {
    let (folder, path, content) = file(30_000_000);
    for memory_bytes in [3 << 20, 8 << 20] {
        let store = Memory::new(ANY);
        let manager = manager(Settings { memory_bytes, ..settings() });
        let most = |moves: &dyn Fn() -> TransferResult| {
            store.lock().under_way = (0, 0);
            moves();
            let (left, most) = store.lock().under_way;
            assert_eq!(left, 0);
            assert!((memory_bytes / 16..=memory_bytes).contains(&most), "{most} of {memory_bytes}");
        };
        let place = store.place("a");
        most(&|| simulate(manager.put_stream(&mut &content[..], &place)).unwrap());
        most(&|| simulate(manager.put_file(&path, &place)).unwrap());
        most(&|| simulate(manager.get_file(&place, &folder.path().join("target"))).unwrap());
        most(&|| simulate(manager.get_stream(&place, &mut std::io::sink())).unwrap());
    }
}

/// During the first request, a connection is opened for each part that will be in flight, except for the one that this
/// request already has.
#[test]
fn connections_are_opened_during_the_first_request_to_a_distant_store() {
    for (bytes, limits, memory_bytes, no_clobber, connected) in [
        (2 << 20, ANY, 256 << 20, false, 31),
        (2 << 20, ANY, 256 << 20, true, 0),
        (100_000, ANY, 256 << 20, false, 0),
        (20 << 20, S3, 256 << 20, false, 3),
        (20 << 20, S3, 14 << 20, false, 1),
    ] {
        let (_folder, path, _) = file(bytes);
        let store = Memory::new(limits);
        // If the first answer has not arrived yet, the store counts as one with a high latency.
        store.script(|call, times| (call == Call::Head && times == 0).then_some(Fault::Hangs));
        let settings = Settings { no_clobber, memory_bytes, timeout: Duration::from_millis(100), ..settings() };
        simulate(manager(settings).put_file(&path, &store.place("a"))).unwrap();
        assert_eq!(store.lock().connected, connected, "{bytes} {memory_bytes} {no_clobber}");
    }
}

/// After an upload, the object is read back to verify it. The first answer is late, so the store counts as one with a
/// high latency, and the object is read over many connections.
#[test]
fn reading_back_from_a_distant_store_uses_many_connections() {
    let (_folder, path, _) = file(3_000_000);
    let store = Memory::new(ANY);
    store.script(|call, times| (call == Call::Head && times == 1).then_some(Fault::Hangs));
    let settings = Settings { verify: true, timeout: Duration::from_millis(100), ..settings() };
    simulate(manager(settings).put_file(&path, &store.place("a"))).unwrap();
    // Many connections fetch small parts at once. For a low-latency store, the first parts would have 256 KiB each.
    assert_eq!(store.count(|call| *call == Call::Get(65_536)), 1, "{:?}", store.lock().calls);
}

#[test]
fn a_limit_on_bandwidth_keeps_parts_small_and_few() {
    let (folder, path, _) = file(3_000_000);
    let store = Memory::new(ANY);
    // Each simulation has its own clock, so it needs its own manager.
    let limited = || manager(Settings { limit_bytes_per_s: Some(8_000_000), ..settings() });
    // Without the limit, all bytes would be sent at once.
    let put = simulate(limited().put_file(&path, &store.place("a"))).unwrap();
    assert!(store.count(|call| matches!(call, Call::Part(_))) >= 2);
    assert!(store.lock().under_way.1 <= 4 * 2_000_000);
    let got = simulate(limited().get_file(&store.place("a"), &folder.path().join("target"))).unwrap();
    for result in [put, got] {
        let plan = result.plan.unwrap().forecast.unwrap();
        assert!([plan.low_s, plan.expected_s, plan.high_s].iter().all(|s| *s >= 1.0 / 8.0), "{plan:?}");
        // The limit delays each part but the last one.
        assert!((1.0 / 8.0..3.1 / 8.0).contains(&result.elapsed_s), "{result:?}");
    }
}

/// A gentle transfer measures the network path during an upload, and while the stored object is read back. The
/// bandwidth limit applies too.
#[test]
fn a_gentle_transfer_watches_the_path() {
    let (_folder, path, content) = file(1_500_000);
    let store = Memory::new(ANY);
    let (gentle, limit_bytes_per_s) = (Some(Duration::from_millis(5)), Some(3_000_000));
    let settings = Settings { gentle, limit_bytes_per_s, verify: true, ..settings() };
    let result = simulate(manager(settings).put_file(&path, &store.place("a"))).unwrap();
    assert_eq!(store.bytes("a").unwrap(), content);
    assert!(result.elapsed_s > 1_400_000.0 / 3e6, "{result:?}");
    let calls = &store.lock().calls;
    let read_back = calls.iter().position(|call| matches!(call, Call::Get(_))).unwrap();
    let asked = |calls: &[Call]| calls.iter().filter(|call| **call == Call::Head).count();
    assert!(asked(&calls[..read_back]) > 3 && asked(&calls[read_back..]) > 1, "{calls:?}");
}

/// Returns two shares: the share of the time in which packets of other senders wait too long, and the used share of the
/// path's capacity.
fn shares(gentle: Option<Duration>, is_put: bool) -> [f64; 2] {
    const BYTES_PER_S: f64 = 2.5e6;
    const MOST: Duration = Duration::from_millis(60);
    let (folder, path, content) = file(10_000_000);
    let slow = Path { bytes_per_s: BYTES_PER_S, round_trip: Duration::from_millis(10) };
    let store = Memory { path: Some(slow), ..Memory::new(ANY) };
    store.insert("b", &content);
    let manager = manager(Settings { gentle, ..settings() });
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
                true => manager.put_file(&path, &store.place("a")).await,
                false => manager.get_file(&store.place("b"), &folder.path().join("target")).await,
            }
        };
        tokio::select! {
            result = moves => assert_eq!(result.unwrap().bytes, 10_000_000),
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

/// Records each forecast: the expected duration in seconds, the size of the parts, and the number of bytes transferred
/// so far.
#[derive(Clone, Default)]
struct Plans(Arc<Mutex<Vec<(f64, u64, u64)>>>);

impl Observer for Plans {
    fn progress(&self, progress: &Progress<'_>) {
        if let (Some(shape), Some(Forecast { expected_s, .. })) = (progress.shape, progress.forecast) {
            self.0.lock().unwrap().push((expected_s, shape.part_bytes, progress.done_bytes));
        }
    }
}

/// If parts must have at least 5 MiB, there is no probe. The plan is based on the first parts, and later parts correct
/// it.
#[test]
fn an_upload_to_s3_is_planned_from_its_own_parts() {
    const LEAST_BYTES: u64 = 5 << 20;
    let (length, max_concurrency) = (80_000_000, 5);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros");
    std::fs::File::create(&path).unwrap().set_len(length).unwrap();
    let fast = Path { bytes_per_s: 1e7, round_trip: Duration::from_millis(10) };
    let store = Memory { path: Some(fast), ..Memory::new(S3) };
    let plans = Plans::default();
    let settings = Settings { max_concurrency, memory_bytes: 256 << 20, ..settings() };
    let manager = TransferManager::new(settings, Stop::default(), Box::new(plans.clone()));
    let result = simulate(manager.put_file(&path, &store.place("a"))).unwrap();
    let plans = plans.0.lock().unwrap();
    assert!(plans.iter().all(|(_, part_bytes, _)| *part_bytes >= LEAST_BYTES), "{plans:?}");
    let (first_s, _, first_bytes) = plans[0];
    let (last_s, ..) = *plans.last().unwrap();
    assert!(first_s != last_s, "it was not corrected");
    // The first plan must be made, at the latest, soon after one part per connection is complete.
    assert!(first_bytes <= (max_concurrency as u64 + 1) * LEAST_BYTES, "{plans:?}");
    assert!((0.9..1.1).contains(&(last_s / result.elapsed_s)), "{last_s} of {}", result.elapsed_s);
    assert!(result.parts <= length.div_ceil(LEAST_BYTES), "{result:?}");
}
