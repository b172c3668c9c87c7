//! Over an emulated link with a queue: what a limit keeps to, what gentleness does for others, and what is foretold of
//! blocks that S3 takes. A process on the near side moves; the store, and the flow of somebody else, are ours.
#![cfg(target_os = "linux")]
// What was measured is printed, for `--nocapture`, and the other process says what it saw.
#![allow(missing_docs, clippy::print_stdout)]

mod common;

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_netlab::store::{Dialect, Kind, RunningStore, Seen, Store as Served};
use ascertain_netlab::{Link, RunningLink};
use ascertain_sys::testing::{left_out, or_left_out};
use ascertain_transfer::model::Plan;
use ascertain_transfer::{Mover, Observer, Options, Place, Progress, Stop, Terms, open};
use common::{bytes, environment_for, run};

const PART: &str = "TRANSFER_LINK_PART";
const ROUND_TRIP: Duration = Duration::from_millis(10);
/// Between somebody else's datagrams.
const PAUSE: Duration = Duration::from_millis(20);

/// A link of that rate, whose queue holds as much. Reno fills it; what some kernels have by default leaves it short.
fn link(bytes_per_s: u64, queue_bytes: usize) -> Option<RunningLink> {
    let (rtt, rate_bits_per_s) = (ROUND_TRIP, Some(8 * bytes_per_s));
    let congestion_control = Some("reno".into());
    or_left_out(Link { rtt, rate_bits_per_s, queue_bytes, congestion_control, ..Link::default() }.start())
}

/// Says each time what is planned.
struct Told;

impl Observer for Told {
    fn progress(&self, progress: &Progress<'_>) {
        if let Some(Plan { shape, expected_s, .. }) = progress.plan {
            println!("{PART} {expected_s} {} {}", shape.block_bytes, progress.done_bytes);
        }
    }
}

/// A part in the tests below; by itself it does nothing.
#[test]
fn played_on_the_near_side() {
    let Ok(part) = std::env::var(PART) else { return };
    let words: Vec<&str> = part.split(' ').collect();
    let [dialect, url, way, length, bound] = words[..] else { panic!("{part}") };
    let bound: u64 = bound.parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, bytes(length.parse().unwrap())).unwrap();
    let terms = match way {
        way if way.starts_with("gentle") => Terms { gentle: Some(Duration::from_millis(bound)), ..Terms::default() },
        "limited" => Terms { limit_bytes_per_s: Some(bound), ..Terms::default() },
        "few" => Terms { max_concurrency: bound as usize, ..Terms::default() },
        _ => Terms::default(),
    };
    let (served, scheme) = if dialect == "s3" { (Served::s3(), "s3") } else { (Served::azure(), "az") };
    let environment = environment_for(&served).into_iter().collect();
    let options = Options { environment, endpoint_url: Some(url.into()), ..Options::default() };
    let place = Place::from(open(&format!("{scheme}://bucket/file"), &options).unwrap());
    let mover = Mover::new(terms, Stop::default(), Box::new(Told));
    let moved = run(async {
        if way.ends_with("stream") {
            return mover.put_stream(tokio::fs::File::open(&path).await.unwrap(), &place).await;
        }
        if way.ends_with("get") {
            Mover::new(Terms::default(), Stop::default(), Box::new(())).put_file(&path, &place).await.unwrap();
            return mover.get_file(&place, &path).await;
        }
        mover.put_file(&path, &place).await
    });
    let moved = moved.unwrap();
    println!("{PART} {} 0 {}", moved.elapsed_s, moved.bytes);
}

/// What a process on the near side said while it put a file, or got it after that: what it expected, of which blocks,
/// and after how many bytes; the last line is what came of it.
fn put(link: &RunningLink, store: &RunningStore, (way, length, bound): (&str, usize, u64)) -> Vec<[f64; 3]> {
    let dialect = if store.store().dialect == Dialect::S3 { "s3" } else { "azure" };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "played_on_the_near_side", "--nocapture", "--test-threads=1"]);
    command.env(PART, format!("{dialect} {} {way} {length} {bound}", store.url()));
    link.near().enter(&mut command);
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(store.object("bucket", "file").map(|object| object.len()), Some(length));
    let lines = said.lines().filter_map(|line| line.split_once(PART).map(|(_, line)| line));
    let numbers = |line: &str| line.split_whitespace().map(|word| word.parse().unwrap()).collect::<Vec<f64>>();
    lines.map(|line| numbers(line).try_into().unwrap()).collect()
}

fn start(link: &RunningLink, store: Served) -> RunningStore {
    store.start(link.far().listen((link.far().address(), 80)).unwrap(), None).unwrap()
}

/// Round trips of somebody else's datagrams over the link meanwhile, of which those count that end when it says so.
fn round_trips(link: &RunningLink, counts: impl Fn() -> bool + Sync, meanwhile: impl FnOnce()) -> Vec<Duration> {
    let far = link.far().udp((link.far().address(), 7)).unwrap();
    let near = link.near().udp((link.near().address(), 0)).unwrap();
    near.connect(SocketAddr::from((link.far().address(), 7))).unwrap();
    let patience = Some(Duration::from_millis(500));
    far.set_read_timeout(patience).unwrap();
    near.set_read_timeout(patience).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut datagram = [0; 8];
            while !is_over.load(Ordering::Relaxed) {
                if let Ok((bytes, from)) = far.recv_from(&mut datagram) {
                    far.send_to(&datagram[..bytes], from).unwrap();
                }
            }
        });
        let asking = scope.spawn(|| {
            let mut trips = Vec::new();
            for number in 0_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let began = Instant::now();
                near.send(&number.to_be_bytes()).unwrap();
                // What is lost in a full queue counts as what it is: as long as one waits for it.
                let mut answer = [0; 8];
                while near.recv(&mut answer).is_ok() && u64::from_be_bytes(answer) != number {}
                if counts() {
                    trips.push(began.elapsed());
                }
                thread::sleep(PAUSE);
            }
            trips
        });
        let moved = catch_unwind(AssertUnwindSafe(meanwhile));
        is_over.store(true, Ordering::Relaxed);
        moved.unwrap();
        asking.join().unwrap()
    })
}

/// The share of the time in which somebody else waits longer than he may: a busy machine makes some of that too. Where
/// it does so over an idle link, nothing can be said. Who hardly moves anything keeps the queue short as well.
#[test]
fn gentleness_keeps_the_queue_short_for_others() {
    const BOUND: Duration = Duration::from_millis(60);
    // 400 ms.
    let path_bytes_per_s = 2_500_000;
    let Some(link) = link(path_bytes_per_s, 1_000_000) else { return };
    let share_of = |way: &str, trips: Vec<Duration>| {
        let (late, in_time): (Vec<_>, Vec<_>) = trips.into_iter().partition(|trip| *trip > ROUND_TRIP + BOUND);
        println!(
            "{way}: {} round trips took longer than {:?}, {} did not",
            late.len(),
            ROUND_TRIP + BOUND,
            in_time.len()
        );
        let seconds = |trips: &[Duration]| trips.iter().map(|trip| (*trip + PAUSE).as_secs_f64()).sum::<f64>();
        assert!(late.len() + in_time.len() > 0, "{way}: nobody asked meanwhile");
        seconds(&late) / (seconds(&late) + seconds(&in_time))
    };
    let idle = || share_of("idle", round_trips(&link, || true, || thread::sleep(Duration::from_secs(1))));
    let share_above = |way: &str, length: usize, served: Served| {
        let store = start(&link, served);
        let mut used = 0.0;
        let moves = || {
            let [elapsed_s, _, moved_bytes] =
                *put(&link, &store, (way, length, BOUND.as_millis() as u64)).last().unwrap();
            used = moved_bytes / elapsed_s / path_bytes_per_s as f64;
        };
        let is_put = |seen: &Seen| seen.kind == Kind::PutObject && seen.status.is_none();
        let is_under_way = || match way.ends_with("get") {
            true => store.seen().iter().any(|seen| seen.kind == Kind::GetObject),
            false => store.uploads("bucket") > 0 || store.seen().iter().any(is_put),
        };
        let late = share_of(way, round_trips(&link, is_under_way, moves));
        println!("{way}: {used:.2} of what the path takes");
        (late, used)
    };
    for (served, what, length) in [
        (Served::azure(), "", 15_000_000),
        // Blocks are 80 times as large as what may go at once.
        (Served::s3(), "", 15_000_000),
        // One request.
        (Served::s3(), "", 5_000_000),
        (Served::azure(), "-stream", 15_000_000),
        (Served::azure(), "-get", 15_000_000),
    ] {
        let dialect = served.dialect;
        let (before, (gentle, used)) = (idle(), share_above(&format!("gentle{what}"), length, served.clone()));
        let ((plain, _), after) = (share_above(&format!("plain{what}"), length, served), idle());
        println!("{dialect:?}{what}, {length} bytes: {gentle:.3} of the time, {plain:.3} if not gentle");
        if before.max(after) > 0.05 {
            left_out(format!("the machine is busy: of an idle link's time {before} and {after} are late"));
            continue;
        }
        // Without gentleness both are alike; how short the queue is kept is simulated beside the code.
        assert!(plain > 2.0 * gentle, "{dialect:?}{what}, {length} bytes: {plain}, {gentle}");
        assert!(used > 0.2, "{dialect:?}{what}, {length} bytes: {used} of what the path takes");
    }
}

#[test]
fn a_limit_on_bandwidth_is_kept() {
    let Some(link) = link(5_000_000, 1_000_000) else { return };
    for (served, limit, length) in [
        (Served::azure(), 1_000_000, 6_000_000),
        (Served::azure(), 3_000_000, 15_000_000),
        // One request, and blocks that are larger than what may go in a quarter of a second.
        (Served::s3(), 2_000_000, 5_000_000),
        (Served::s3(), 3_000_000, 16_000_000),
    ] {
        let store = start(&link, served);
        let [elapsed_s, _, moved_bytes] = *put(&link, &store, ("limited", length, limit)).last().unwrap();
        let rate = moved_bytes / elapsed_s / limit as f64;
        println!("{rate:.3} of {limit} bytes a second");
        // Slower it is on a machine that is busy too.
        assert!(rate <= 1.05, "{rate} of {limit}");
    }
}

/// Where no block may be smaller than 5 MiB, they are the probe, and the plan that comes of them is corrected.
#[test]
fn what_s3_takes_is_planned_from_its_own_blocks() {
    let Some(link) = link(10_000_000, 1_000_000) else { return };
    let (store, length, concurrency) = (start(&link, Served::s3()), 120_000_000, 5);
    let mut said = put(&link, &store, ("few", length, concurrency));
    let [elapsed_s, _, _] = said.pop().unwrap();
    assert!(said.iter().all(|[_, block_bytes, _]| *block_bytes >= 5.0 * 1024.0 * 1024.0), "{said:?}");
    let [first_s, _, first_bytes] = said[0];
    let [last_s, ..] = *said.last().unwrap();
    let foretold = [first_s, last_s].map(|expected_s| expected_s / elapsed_s);
    println!("{elapsed_s:.1} s, foretold {foretold:.2?} times as long, first after {first_bytes} bytes");
    assert!(first_s != last_s, "it was not corrected");
    // Before, there is nothing to tell by.
    assert!(first_bytes <= (concurrency + 1) as f64 * 5.0 * 1024.0 * 1024.0, "{said:?}");
    let blocks = store.seen().into_iter().filter(|seen| seen.kind == Kind::PutBlock);
    assert!(blocks.filter(|block| block.body_bytes < 5 << 20).count() <= 1);
}
