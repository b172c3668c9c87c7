//! Kills transfers of folders at random moments. The same command must resume them: no file that the journal names is
//! transferred a second time.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{address, environment_for, start};
use ascertain_netlab::store::{Kind, RunningStore, Store as Served};
use ascertain_sys::testing::wait_until;
use ascertain_transfer::{Options, Selection, Settings, Stop, TransferManager, open};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The environment variable with the direction, the endpoint and the folder of the test, for the child process.
const CHILD: &str = "TRANSFER_KILLED_FOLDER";
/// Maximum number of requests in flight.
const CONNECTIONS: usize = 8;

/// Runs in the child process that is killed. As an ordinary test, it does nothing.
#[test]
fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let [way, endpoint, folder] = *told.splitn(3, ' ').collect::<Vec<_>>() else { panic!("{told}") };
    let environment = environment_for(&Served::s3()).into_iter().collect();
    let options = Options { environment, endpoint_url: Some(endpoint.into()), ..Options::default() };
    let (place, folder) = (open("s3://bucket/p/", &options).unwrap(), Path::new(folder));
    let settings =
        Settings { journals: Some(folder.join("journals")), max_concurrency: CONNECTIONS, ..Settings::default() };
    let manager = TransferManager::new(settings, Stop::default(), Box::new(()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let results = match way {
        "put" => runtime.block_on(manager.put_many(&[folder.join("source")], &place, &Selection::default())),
        _ => runtime.block_on(manager.get_many(&place, &folder.join("target"), &Selection::default())),
    };
    let results = results.unwrap();
    assert!(results.iter().all(|result| result.is_transferred()), "{results:?}");
}

/// A folder of small files, and the store to or from which they are transferred.
struct World {
    store: RunningStore,
    folder: tempfile::TempDir,
    way: &'static str,
    files: usize,
}

impl World {
    fn new(way: &'static str, files: usize) -> Self {
        let (store, folder) = (start(Served::s3()), tempfile::tempdir().unwrap());
        fs::create_dir(folder.path().join("source")).unwrap();
        for index in 0..files {
            fs::write(folder.path().join(format!("source/{index}")), content(index)).unwrap();
        }
        let world = Self { store, folder, way, files };
        if way == "get" {
            let place = open(&address(&world.store, "p/"), &crate::common::options_for(&world.store)).unwrap();
            let manager = TransferManager::new(Settings::default(), Stop::default(), Box::new(()));
            let source = [world.folder.path().join("source")];
            let put = crate::common::run(manager.put_many(&source, &place, &Selection::default())).unwrap();
            assert!(put.iter().all(|result| result.is_transferred()));
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the objects that were sent or fetched, without those of the first `mark` requests.
    fn transferred(&self, mark: usize) -> Vec<String> {
        let kind = if self.way == "put" { Kind::PutObject } else { Kind::GetObject };
        self.store.seen().into_iter().skip(mark).filter(|seen| seen.kind == kind).map(|seen| seen.key).collect()
    }

    /// Returns the objects that the journal names.
    fn recorded(&self) -> BTreeSet<String> {
        let Some(Ok(journal)) = fs::read_dir(self.path("journals")).ok().and_then(|mut entries| entries.next()) else {
            return BTreeSet::new();
        };
        let text = fs::read_to_string(journal.path()).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.filter_map(|line| line["done"]["object"].as_str().map(String::from)).collect()
    }

    /// Runs the command. `kill_at` is a number of objects and a duration. Kills the command this long after it has
    /// transferred that many different objects. The first `mark` requests do not count.
    fn run(&self, mark: usize, kill_at: Option<(usize, Duration)>) -> ExitStatus {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "killed_folder::child", "--nocapture"]).stdout(Stdio::null());
        command.env(CHILD, format!("{} {} {}", self.way, self.store.url(), self.folder.path().display()));
        let mut child = command.spawn().unwrap();
        if let Some((objects, moment)) = kill_at {
            let transferred = || self.transferred(mark).into_iter().collect::<BTreeSet<_>>().len();
            let mut ended = None;
            wait_until("the command transfers enough files, or ends", || {
                ended = child.try_wait().unwrap();
                ended.is_some() || transferred() >= objects
            });
            if let Some(status) = ended {
                return status;
            }
            thread::sleep(moment);
            child.kill().unwrap();
        }
        child.wait().unwrap()
    }

    fn check_complete_files(&self) -> usize {
        let mut complete = 0;
        for index in 0..self.files {
            let there = match self.way {
                "put" => self.store.object("bucket", &format!("p/{index}")),
                _ => fs::read(self.path("target").join(index.to_string())).ok(),
            };
            complete += usize::from(there.is_some());
            assert!(there.is_none_or(|there| there == content(index)), "{index} is not complete, but has its name");
        }
        complete
    }

    /// Kills the command `kills` times, at moments that are spread over all files. Then lets it finish.
    fn kill(&self, kills: usize, seed: u64) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut moments: Vec<usize> = (0..kills).map(|_| random.random_range(0..self.files)).collect();
        moments.sort_unstable();
        let (first_mark, mut killed) = (self.store.seen().len(), 0);
        for objects in moments {
            let (mark, recorded) = (self.store.seen().len(), self.recorded());
            let status = self.run(first_mark, Some((objects, Duration::from_micros(random.random_range(0..3000)))));
            assert!(status.signal() == Some(9) || status.success(), "{}: {status}", self.way);
            killed += usize::from(status.signal() == Some(9));
            let transferred = self.transferred(mark);
            let again: Vec<_> = transferred.iter().filter(|object| recorded.contains(*object)).collect();
            assert!(again.is_empty(), "{}: the journal names {again:?}, but they were transferred again", self.way);
            self.check_complete_files();
            if status.success() {
                break;
            }
        }
        assert!(self.run(first_mark, None).success(), "{}: it can't be resumed", self.way);
        assert_eq!(self.check_complete_files(), self.files, "{}", self.way);
        assert_eq!(fs::read_dir(self.path("journals")).unwrap().count(), 0, "{}: a journal remains", self.way);
        let requests = self.transferred(first_mark).len();
        // One file for each connection was in flight, and one per thread was complete but not recorded yet. A late
        // request may be sent twice.
        let most = self.files + killed * (CONNECTIONS + 2) + self.files / 20;
        assert!(requests <= most, "{}: {requests} requests for {} files, {killed} kills", self.way, self.files);
        assert!(killed > kills / 2, "{}: only {killed} kills", self.way);
    }
}

/// Returns the content of a file. Some files are empty.
fn content(index: usize) -> Vec<u8> {
    format!("{index} ").into_bytes().into_iter().cycle().take(index * 7 % 4096).collect()
}

#[test]
fn a_folder_is_put_in_spite_of_kills() {
    World::new("put", 1000).kill(10, 7);
}

#[test]
fn a_folder_is_fetched_in_spite_of_kills() {
    World::new("get", 1000).kill(10, 8);
}

#[test]
#[ignore = "takes minutes"]
fn large_folders_are_transferred_in_spite_of_a_hundred_kills() {
    World::new("put", 5000).kill(50, 7);
    World::new("get", 5000).kill(50, 8);
}
