//! Killed at any moment and gone on with: right in the end, and nothing under its name before it is whole.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::common::{address, environment_for, start};
use ascertain_netlab::store::{Dialect, Kind as Asked, RunningStore, Seen, Store as Served};
use ascertain_transfer::{Local, Mover, Options, Place, Stop, Terms, open};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const CHILD: &str = "TRANSFER_KILLED";
/// Where the store is, if it is none of files: its end point, an address in it.
const STORE: &str = "TRANSFER_KILLED_STORE";
const BYTES: usize = 3_000_000;
/// Slow enough to be killed in the middle.
const LIMIT_BYTES_PER_S: u64 = 100_000_000;
/// Between files, both ways together; to stores as many, and from them.
const KILLS: usize = 100;

/// Where everything is, in a folder of the test.
struct Places {
    source: PathBuf,
    target: PathBuf,
    journals: PathBuf,
}

impl Places {
    fn of(folder: &Path, way: &str) -> Self {
        let source = if way == "put" { "source" } else { "store/a/b" };
        let target = if way == "put" { "store/a/b" } else { "target" };
        Self { source: folder.join(source), target: folder.join(target), journals: folder.join("journals") }
    }
}

/// What is started to be killed: does nothing when it runs as a test.
#[test]
fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let (way, folder) = told.split_once(' ').unwrap();
    let folder = Path::new(folder);
    let places = Places::of(folder, way);
    let place = match std::env::var(STORE) {
        Ok(told) => {
            let (endpoint, address) = told.split_once(' ').unwrap();
            let served = match address.split_once(':') {
                Some(("s3", _)) => Served::s3(),
                Some(("gs", _)) => Served::gcs(),
                _ => Served::azure(),
            };
            let environment = environment_for(&served).into_iter().collect();
            let options = Options { environment, endpoint_url: Some(endpoint.into()), ..Options::default() };
            open(address, &options).unwrap().into()
        }
        Err(_) => {
            let store = Arc::new(Local::new(folder.join("store")));
            Place { store, name: "a/b".into(), shown: "file:///a/b".into() }
        }
    };
    let terms = Terms {
        journals: Some(places.journals),
        limit_bytes_per_s: Some(LIMIT_BYTES_PER_S),
        max_concurrency: 3,
        // Else a few requests bring all that there is.
        memory_bytes: if way == "put" { Terms::default().memory_bytes } else { 1 << 20 },
        ..Terms::default()
    };
    let mover = Mover::new(terms, Stop::default(), Box::new(()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let moved = match way {
        "put" => runtime.block_on(mover.put_file(&places.source, &place)),
        _ => runtime.block_on(mover.get_file(&place, &places.target)),
    };
    moved.unwrap();
}

/// Starts the child.
fn started(way: &str, folder: &Path, store: Option<&RunningStore>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::child", "--nocapture"]).env(CHILD, format!("{way} {}", folder.display()));
    command.envs(store.map(|store| (STORE, format!("{} {}", store.url(), address(store, "a/b")))));
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Starts the child; kills it after that long, if it has not ended.
fn run(way: &str, folder: &Path, after: Option<Duration>) -> ExitStatus {
    let mut child = started(way, folder, None);
    if let Some(after) = after {
        thread::sleep(after);
        // It may have ended: then there is nothing to kill, and the id is still ours until it is waited for.
        child.kill().unwrap();
    }
    child.wait().unwrap()
}

#[test]
fn killed_at_a_hundred_moments() {
    for way in ["put", "get"] {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::of(folder.path(), way);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        fs::create_dir_all(places.source.parent().unwrap()).unwrap();
        let (mut kills, mut wholes) = (0, 0);
        let mut content = vec![0; BYTES];
        while kills < KILLS / 2 {
            if !places.target.exists() {
                random.fill_bytes(&mut content);
                fs::write(&places.source, &content).unwrap();
                // What an earlier round left behind is not of this file.
                let _ = fs::remove_dir_all(&places.journals);
            }
            loop {
                let after = Duration::from_micros(random.random_range(0..60_000));
                let status = run(way, folder.path(), Some(after));
                kills += usize::from(status.signal() == Some(9));
                assert!(status.signal() == Some(9) || status.success(), "{way}: {status}");
                if places.target.exists() {
                    assert!(fs::read(&places.target).unwrap() == content, "{way}: it is there before it is whole");
                }
                if status.success() || kills >= KILLS / 2 {
                    break;
                }
            }
            assert!(run(way, folder.path(), None).success(), "{way}: it can't be gone on with");
            assert!(fs::read(&places.target).unwrap() == content, "{way}");
            assert_eq!(fs::read_dir(&places.journals).unwrap().count(), 0, "{way}: nothing is left");
            wholes += 1;
            fs::remove_file(&places.target).unwrap();
        }
        assert!(wholes > 0);
    }
}

/// The journal's whole lines; none where there is no journal.
fn lines(journals: &Path) -> Vec<serde_json::Value> {
    let Some(Ok(there)) = fs::read_dir(journals).ok().and_then(|mut entries| entries.next()) else { return Vec::new() };
    let text = fs::read_to_string(there.path()).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The blocks that the journal says are there; none where nothing was begun.
fn journalled(journals: &Path) -> Option<BTreeSet<usize>> {
    let lines = lines(journals);
    lines.first()?;
    Some(lines.iter().filter_map(|line| line["done"]["index"].as_u64()).map(|index| index as usize).collect())
}

/// The bytes that it says are there.
fn pieces(journals: &Path) -> Vec<Range<u64>> {
    let lines = lines(journals);
    let done: BTreeSet<u64> = lines.iter().filter_map(|line| line["done"]["index"].as_u64()).collect();
    let is_done = |cut: &&serde_json::Value| cut["index"].as_u64().is_some_and(|index| done.contains(&index));
    let cut = lines.iter().map(|line| &line["cut"]).filter(is_done);
    let bytes = |cut: &serde_json::Value, what: &str| cut[what].as_u64().unwrap();
    cut.map(|cut| bytes(cut, "offset")..bytes(cut, "offset") + bytes(cut, "bytes")).collect()
}

/// Which block a request brought.
fn index(dialect: Dialect, seen: &Seen) -> usize {
    let block = seen.block.as_deref().unwrap();
    if dialect != Dialect::Azure {
        return block.parse::<usize>().unwrap() - 1;
    }
    let name = String::from_utf8(BASE64_STANDARD.decode(block).unwrap()).unwrap();
    name.rsplit_once('-').unwrap().1.parse().unwrap()
}

/// Killed once the store has seen so many requests of it, and a moment later.
fn run_to(store: &RunningStore, way: &str, folder: &Path, requests: usize, moment: Duration) -> ExitStatus {
    let before = store.seen().len();
    let mut child = started(way, folder, Some(store));
    while store.seen().len() - before < requests {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        thread::sleep(Duration::from_micros(200));
    }
    thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap()
}

/// What the store has seen says what was sent twice: no block of which the journal said that it was there.
#[test]
fn killed_while_a_store_counts() {
    // S3 and GCS take no smaller files in blocks.
    let large = 17_000_000;
    for (served, bytes, kills) in [(Served::azure(), BYTES, 20), (Served::s3(), large, 15), (Served::gcs(), large, 15)]
    {
        let (dialect, store) = (served.dialect, start(served));
        let folder = tempfile::tempdir().unwrap();
        let Places { source, journals, .. } = Places::of(folder.path(), "put");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let (mut killed, mut resumed, mut dangling) = (0, 0, 0);
        let mut content = vec![0; bytes];
        let mut blocks = 3;
        while killed < kills {
            random.fill_bytes(&mut content);
            fs::write(&source, &content).unwrap();
            let before = store.object("bucket", "a/b");
            for attempt in 0.. {
                let mark = store.seen().len();
                let there = journalled(&journals);
                let moment = Duration::from_micros(random.random_range(0..3000));
                // To the commit, and beyond: in the end also until what was committed is read back.
                let requests = random.random_range(0..blocks + 4 + attempt);
                let status = run_to(&store, "put", folder.path(), requests, moment);
                assert!(status.signal() == Some(9) || status.success(), "{dialect:?}: {status}");
                killed += usize::from(status.signal() == Some(9));
                let seen: Vec<Seen> = store.seen()[mark..].to_vec();
                let sent: Vec<usize> =
                    seen.iter().filter(|seen| seen.kind == Asked::PutBlock).map(|seen| index(dialect, seen)).collect();
                if let Some(done) = &there {
                    assert!(sent.iter().all(|index| !done.contains(index)), "{dialect:?}: {done:?} {sent:?}");
                    resumed += usize::from(!done.is_empty());
                }
                let is_begun = there.is_some() || journalled(&journals).is_some();
                // Between the store's answer and its line in the journal nobody knows of an upload.
                dangling += usize::from(!is_begun && !status.success());
                let now = store.object("bucket", "a/b");
                assert!(now == before || now.as_ref() == Some(&content), "{dialect:?}: it is not whole");
                if status.success() {
                    break;
                }
                blocks = blocks.max(sent.iter().max().map_or(0, |index| index + 1));
            }
            assert!(store.object("bucket", "a/b").as_ref() == Some(&content), "{dialect:?}");
            assert_eq!(fs::read_dir(&journals).unwrap().count(), 0, "{dialect:?}: nothing is left");
        }
        assert!(resumed > 0, "{dialect:?}: none was gone on with");
        let most = if dialect == Dialect::Azure { 0 } else { dangling };
        assert!(store.uploads("bucket") <= most, "{dialect:?}");
    }
}

/// The bytes of an object that a request asks for.
fn asked(seen: &Seen) -> Option<Range<u64>> {
    let (first, last) = seen.range.as_ref()?.strip_prefix("bytes=")?.split_once('-')?;
    Some(first.parse().unwrap()..last.parse::<u64>().unwrap() + 1)
}

/// The same the other way: no range is asked for of which the journal said that it was there.
#[test]
fn killed_while_a_store_is_read() {
    for (served, kills) in [(Served::azure(), 20), (Served::s3(), 15), (Served::gcs(), 15)] {
        let (dialect, store) = (served.dialect, start(served));
        let folder = tempfile::tempdir().unwrap();
        let Places { source, target, journals } = Places::of(folder.path(), "get");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        fs::create_dir_all(source.parent().unwrap()).unwrap();
        let place: Place = open(&address(&store, "a/b"), &crate::common::options_for(&store)).unwrap().into();
        let (mut killed, mut resumed) = (0, 0);
        let mut content = vec![0; BYTES];
        while killed < kills {
            random.fill_bytes(&mut content);
            fs::write(&source, &content).unwrap();
            let mover = Mover::new(Terms::default(), Stop::default(), Box::new(()));
            crate::common::run(mover.put_file(&source, &place)).unwrap();
            loop {
                let (mark, there) = (store.seen().len(), pieces(&journals));
                let moment = Duration::from_micros(random.random_range(0..3000));
                let status = run_to(&store, "get", folder.path(), random.random_range(0..20), moment);
                assert!(status.signal() == Some(9) || status.success(), "{dialect:?}: {status}");
                killed += usize::from(status.signal() == Some(9));
                resumed += usize::from(!there.is_empty());
                for range in store.seen()[mark..].iter().filter_map(asked) {
                    let is_there = |piece: &Range<u64>| piece.start < range.end && range.start < piece.end;
                    assert!(!there.iter().any(is_there), "{dialect:?}: {range:?} of {there:?}");
                }
                if let Ok(there) = fs::read(&target) {
                    assert!(there == content, "{dialect:?}: it is there before it is whole");
                }
                if status.success() {
                    break;
                }
            }
            assert!(fs::read(&target).unwrap() == content, "{dialect:?}");
            assert_eq!(fs::read_dir(&journals).unwrap().count(), 0, "{dialect:?}: nothing is left");
            fs::remove_file(&target).unwrap();
        }
        assert!(resumed > 0, "{dialect:?}: none was gone on with");
    }
}
