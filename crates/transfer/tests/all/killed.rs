//! Kills transfers at random moments and resumes them. The result must be correct, and an incomplete file must never
//! have its final name.

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
use ascertain_netlab::store::{Dialect, Kind, RequestRecord, RunningStore, Store as Served};
use ascertain_transfer::{Local, Location, Options, Settings, Stop, TransferManager, open};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const CHILD: &str = "TRANSFER_KILLED";
/// The environment variable with the endpoint and the address of the store, for the child process. If it is not set,
/// the store is a folder.
const STORE: &str = "TRANSFER_KILLED_STORE";
const BYTES: usize = 3_000_000;
/// The bandwidth limit. It is so low that transfers are often killed in the middle.
const LIMIT_BYTES_PER_S: u64 = 100_000_000;
/// Number of kills in the test with folders, half of them in each direction.
const KILLS: usize = 100;

/// The paths that a test uses in its folder.
struct Places {
    source: PathBuf,
    target: PathBuf,
    journals: PathBuf,
}

impl Places {
    fn new(folder: &Path, way: &str) -> Self {
        let source = if way == "put" { "source" } else { "store/a/b" };
        let target = if way == "put" { "store/a/b" } else { "target" };
        Self { source: folder.join(source), target: folder.join(target), journals: folder.join("journals") }
    }
}

/// Runs in the child process that is killed. As an ordinary test, it does nothing.
#[test]
fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let (way, folder) = told.split_once(' ').unwrap();
    let folder = Path::new(folder);
    let places = Places::new(folder, way);
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
            open(address, &options).unwrap()
        }
        Err(_) => {
            let store = Arc::new(Local::new(folder.join("store")));
            Location { store, name: "a/b".into(), address: "file:///a/b".into() }
        }
    };
    let settings = Settings {
        journals: Some(places.journals),
        limit_bytes_per_s: Some(LIMIT_BYTES_PER_S),
        max_concurrency: 3,
        // Downloads get little memory, because they would otherwise fetch everything with a few requests.
        memory_bytes: if way == "put" { Settings::default().memory_bytes } else { 1 << 20 },
        ..Settings::default()
    };
    let manager = TransferManager::new(settings, Stop::default(), Box::new(()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let result = match way {
        "put" => runtime.block_on(manager.put_file(&places.source, &place)),
        _ => runtime.block_on(manager.get_file(&place, &places.target)),
    };
    result.unwrap();
}

/// Starts the child process.
fn started(way: &str, folder: &Path, store: Option<&RunningStore>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::child", "--nocapture"]).env(CHILD, format!("{way} {}", folder.display()));
    command.envs(store.map(|store| (STORE, format!("{} {}", store.url(), address(store, "a/b")))));
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Starts the child process, and kills it after this time unless it has already ended.
fn run(way: &str, folder: &Path, after: Option<Duration>) -> ExitStatus {
    let mut child = started(way, folder, None);
    if let Some(after) = after {
        thread::sleep(after);
        // If the child has ended already, the kill is harmless: the kernel keeps the child's id until this process
        // waits for it.
        child.kill().unwrap();
    }
    child.wait().unwrap()
}

#[test]
fn killed_at_a_hundred_moments() {
    for way in ["put", "get"] {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::new(folder.path(), way);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        fs::create_dir_all(places.source.parent().unwrap()).unwrap();
        let (mut kills, mut wholes) = (0, 0);
        let mut content = vec![0; BYTES];
        while kills < KILLS / 2 {
            if !places.target.exists() {
                random.fill_bytes(&mut content);
                fs::write(&places.source, &content).unwrap();
                // The journal of an earlier round must be removed, because the file has changed since.
                let _ = fs::remove_dir_all(&places.journals);
            }
            loop {
                let after = Duration::from_micros(random.random_range(0..60_000));
                let status = run(way, folder.path(), Some(after));
                kills += usize::from(status.signal() == Some(9));
                assert!(status.signal() == Some(9) || status.success(), "{way}: {status}");
                if places.target.exists() {
                    assert!(
                        fs::read(&places.target).unwrap() == content,
                        "{way}: an incomplete file has the final name"
                    );
                }
                if status.success() || kills >= KILLS / 2 {
                    break;
                }
            }
            assert!(run(way, folder.path(), None).success(), "{way}: it can't be resumed");
            assert!(fs::read(&places.target).unwrap() == content, "{way}");
            assert_eq!(fs::read_dir(&places.journals).unwrap().count(), 0, "{way}: a journal remains");
            wholes += 1;
            fs::remove_file(&places.target).unwrap();
        }
        assert!(wholes > 0);
    }
}

/// Returns the complete lines of the journal; none if it does not exist.
fn lines(journals: &Path) -> Vec<serde_json::Value> {
    let Some(Ok(there)) = fs::read_dir(journals).ok().and_then(|mut entries| entries.next()) else { return Vec::new() };
    let text = fs::read_to_string(there.path()).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the indices of the parts that are complete according to the journal. Returns `None` if no transfer was
/// started.
fn journalled(journals: &Path) -> Option<BTreeSet<usize>> {
    let lines = lines(journals);
    lines.first()?;
    Some(lines.iter().filter_map(|line| line["done"]["index"].as_u64()).map(|index| index as usize).collect())
}

/// Returns the ranges of bytes that are complete according to the journal.
fn pieces(journals: &Path) -> Vec<Range<u64>> {
    let lines = lines(journals);
    let done: BTreeSet<u64> = lines.iter().filter_map(|line| line["done"]["index"].as_u64()).collect();
    let is_done = |cut: &&serde_json::Value| cut["index"].as_u64().is_some_and(|index| done.contains(&index));
    let cut = lines.iter().map(|line| &line["cut"]).filter(is_done);
    let bytes = |cut: &serde_json::Value, what: &str| cut[what].as_u64().unwrap();
    cut.map(|cut| bytes(cut, "offset")..bytes(cut, "offset") + bytes(cut, "bytes")).collect()
}

/// Returns the index of the part that a request has sent.
fn index(dialect: Dialect, seen: &RequestRecord) -> usize {
    let block = seen.block.as_deref().unwrap();
    if dialect != Dialect::Azure {
        return block.parse::<usize>().unwrap() - 1;
    }
    let name = String::from_utf8(BASE64_STANDARD.decode(block).unwrap()).unwrap();
    name.rsplit_once('-').unwrap().1.parse().unwrap()
}

/// Starts the child process. Waits until the store has received `requests` of its requests, then for `moment`, and
/// kills it.
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

/// The store logs all requests. No part that the journal records as complete may be sent again.
#[test]
fn killed_while_a_store_counts() {
    // S3 and GCS don't accept small parts, so only a large file is sent in several parts.
    let large = 17_000_000;
    for (served, bytes, kills) in [(Served::azure(), BYTES, 20), (Served::s3(), large, 15), (Served::gcs(), large, 15)]
    {
        let (dialect, store) = (served.dialect, start(served));
        let folder = tempfile::tempdir().unwrap();
        let Places { source, journals, .. } = Places::new(folder.path(), "put");
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
                // The kill comes before or after the commit. Later attempts get further, up to the requests that read
                // the object back.
                let requests = random.random_range(0..blocks + 4 + attempt);
                let status = run_to(&store, "put", folder.path(), requests, moment);
                assert!(status.signal() == Some(9) || status.success(), "{dialect:?}: {status}");
                killed += usize::from(status.signal() == Some(9));
                let seen: Vec<RequestRecord> = store.seen()[mark..].to_vec();
                let sent: Vec<usize> =
                    seen.iter().filter(|seen| seen.kind == Kind::PutBlock).map(|seen| index(dialect, seen)).collect();
                if let Some(done) = &there {
                    assert!(sent.iter().all(|index| !done.contains(index)), "{dialect:?}: {done:?} {sent:?}");
                    resumed += usize::from(!done.is_empty());
                }
                let is_begun = there.is_some() || journalled(&journals).is_some();
                // If the kill comes after the store has started an upload but before the journal records it, the upload
                // is never aborted.
                dangling += usize::from(!is_begun && !status.success());
                let now = store.object("bucket", "a/b");
                assert!(now == before || now.as_ref() == Some(&content), "{dialect:?}: the object is incomplete");
                if status.success() {
                    break;
                }
                blocks = blocks.max(sent.iter().max().map_or(0, |index| index + 1));
            }
            assert!(store.object("bucket", "a/b").as_ref() == Some(&content), "{dialect:?}");
            assert_eq!(fs::read_dir(&journals).unwrap().count(), 0, "{dialect:?}: a journal remains");
        }
        assert!(resumed > 0, "{dialect:?}: no transfer was resumed");
        let most = if dialect == Dialect::Azure { 0 } else { dangling };
        assert!(store.uploads("bucket") <= most, "{dialect:?}");
    }
}

/// Returns the range of bytes that a request has requested.
fn asked(seen: &RequestRecord) -> Option<Range<u64>> {
    let (first, last) = seen.range.as_ref()?.strip_prefix("bytes=")?.split_once('-')?;
    Some(first.parse().unwrap()..last.parse::<u64>().unwrap() + 1)
}

/// Like [`killed_while_a_store_counts`], but for downloads: no range that the journal records as complete may be
/// fetched again.
#[test]
fn killed_while_a_store_is_read() {
    for (served, kills) in [(Served::azure(), 20), (Served::s3(), 15), (Served::gcs(), 15)] {
        let (dialect, store) = (served.dialect, start(served));
        let folder = tempfile::tempdir().unwrap();
        let Places { source, target, journals } = Places::new(folder.path(), "get");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        fs::create_dir_all(source.parent().unwrap()).unwrap();
        let place: Location = open(&address(&store, "a/b"), &crate::common::options_for(&store)).unwrap();
        let (mut killed, mut resumed) = (0, 0);
        let mut content = vec![0; BYTES];
        while killed < kills {
            random.fill_bytes(&mut content);
            fs::write(&source, &content).unwrap();
            let manager = TransferManager::new(Settings::default(), Stop::default(), Box::new(()));
            crate::common::run(manager.put_file(&source, &place)).unwrap();
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
                    assert!(there == content, "{dialect:?}: an incomplete file has the final name");
                }
                if status.success() {
                    break;
                }
            }
            assert!(fs::read(&target).unwrap() == content, "{dialect:?}");
            assert_eq!(fs::read_dir(&journals).unwrap().count(), 0, "{dialect:?}: a journal remains");
            fs::remove_file(&target).unwrap();
        }
        assert!(resumed > 0, "{dialect:?}: no transfer was resumed");
    }
}
