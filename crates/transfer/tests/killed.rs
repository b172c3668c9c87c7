//! Killed at any moment and gone on with: right in the end, and nothing under its name before it is whole.
#![allow(missing_docs)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ascertain_transfer::{Local, Mover, Place, Stop, Terms};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const CHILD: &str = "TRANSFER_KILLED";
const BYTES: usize = 3_000_000;
/// Slow enough to be killed in the middle.
const LIMIT_BYTES_PER_S: u64 = 100_000_000;
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
    let store = Arc::new(Local::new(folder.join("store")));
    let place = Place { store, name: "a/b".into(), shown: "file:///a/b".into() };
    let terms = Terms {
        journals: Some(places.journals),
        limit_bytes_per_s: Some(LIMIT_BYTES_PER_S),
        max_concurrency: 3,
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

/// Starts the child; kills it after that long, if it has not ended.
fn run(way: &str, folder: &Path, after: Option<Duration>) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child"]).env(CHILD, format!("{way} {}", folder.display()));
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
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
