//! Tests of transfers of many files with one command.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ascertain_transfer::{
    Filter, Observer, Progress, Selection, Settings, Stop, TransferManager, TransferResult, TransferStatus,
};

use super::memory::{ANY, Call, Fault, Memory};
use super::{manager, noise, run, settings, simulate};

/// Creates a folder of files with unusual names. Returns the contents by name.
fn folder() -> (tempfile::TempDir, BTreeMap<String, Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [("a b.txt", 10), ("ü/ø λ.txt", 1000), ("empty", 0), ("deep/er/x.log", 700_000), ("large", 9_000_000)];
    let mut files = BTreeMap::new();
    for (name, bytes) in sizes {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, noise(bytes)).unwrap();
        files.insert(name.to_string(), noise(bytes));
    }
    (folder, files)
}

fn failed(results: &[TransferResult]) -> Vec<String> {
    let failed = results.iter().filter_map(|result| match &result.status {
        TransferStatus::Failed(error) => Some(format!("{}: {error}", result.address)),
        _ => None,
    });
    failed.collect()
}

#[test]
fn folders_go_there_and_back() {
    let (folder, files) = folder();
    let store = Memory::new(ANY);
    let manager = Arc::new(manager(settings()));
    let from = [folder.path().to_path_buf()];
    let put = run(manager.put_many(&from, &store.place("to/"), &Selection::default())).unwrap();
    assert_eq!(failed(&put), [""; 0]);
    for (name, content) in &files {
        assert_eq!(store.bytes(&format!("to/{name}")).unwrap(), *content, "{name}");
    }
    let back = tempfile::tempdir().unwrap();
    store.insert("to/marker/", b"");
    let got = run(manager.get_many(&store.place("to/"), back.path(), &Selection::default())).unwrap();
    assert_eq!((got.len(), failed(&got)), (files.len(), vec![]));
    for (name, content) in &files {
        assert_eq!(fs::read(back.path().join(name)).unwrap(), *content, "{name}");
    }
    // The second transfer must not send anything.
    let sent = store.lock().sent_bytes;
    let unchanged = Arc::new(super::manager(Settings { skip_unchanged: true, ..settings() }));
    run(unchanged.put_many(&from, &store.place("to/"), &Selection::default())).unwrap();
    assert_eq!(store.lock().sent_bytes, sent);
}

type Report = (u64, Option<u64>, Option<[u64; 2]>);

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Report>>>);

impl Observer for Recorder {
    fn progress(&self, progress: &Progress<'_>) {
        self.0.lock().unwrap().push((progress.done_bytes, progress.bytes, progress.files));
    }
}

/// The size of a pipe is known only at its end, and must then be added to the total.
#[test]
fn the_bytes_of_a_pipe_are_added_to_the_total() {
    let (folder, store, hears) = (tempfile::tempdir().unwrap(), Memory::new(ANY), Recorder::default());
    let (pipe, other, content) = (folder.path().join("pipe"), folder.path().join("other"), noise(3_000_000));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::write(&other, "x").unwrap();
    let manager = Arc::new(TransferManager::new(settings(), Stop::default(), Box::new(hears.clone())));
    let outcomes = std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, &content).unwrap());
        run(manager.put_many(&[other, pipe.clone()], &store.place("to/"), &Selection::default())).unwrap()
    });
    assert_eq!(outcomes.iter().map(|outcome| outcome.bytes).collect::<Vec<_>>(), [1, 3_000_000]);
    assert_eq!(hears.0.lock().unwrap().last(), Some(&(3_000_001, Some(3_000_001), Some([2, 2]))));
}

/// Progress is reported for all files together. At the end, the total equals the number of transferred bytes.
#[test]
fn many_files_are_reported_as_one_transfer() {
    let (folder, files) = folder();
    let total: u64 = files.values().map(|content| content.len() as u64).sum();
    let (store, hears) = (Memory::new(ANY), Recorder::default());
    // One object exists already, so its file must be skipped.
    let (there, content) = files.iter().find(|(_, content)| !content.is_empty()).unwrap();
    store.insert(&format!("to/{there}"), content);
    let rest = total - content.len() as u64;
    let settings = Settings { no_clobber: true, ..settings() };
    let manager = Arc::new(TransferManager::new(settings, Stop::default(), Box::new(hears.clone())));
    run(manager.put_many(&[folder.path().to_path_buf()], &store.place("to/"), &Selection::default())).unwrap();
    let told = hears.0.lock().unwrap().clone();
    let count = files.len() as u64;
    assert!(told.len() >= files.len());
    assert_eq!(told.last(), Some(&(rest, Some(rest), Some([count, count]))));
    assert!(told.iter().all(|(done, of, files)| Some(*done) <= *of && files.unwrap()[1] == count), "{told:?}");
    assert!(told.is_sorted_by_key(|(done, _, files)| (*files, *done)), "{told:?}");
}

#[test]
fn a_dry_run_finds_the_files_to_skip_and_transfers_nothing() {
    let (folder, files) = folder();
    let store = Memory::new(ANY);
    let (there, content) = files.iter().next().unwrap();
    store.insert(&format!("to/{there}"), content);
    let sent_bytes = store.lock().sent_bytes;
    for settings in [Settings { no_clobber: true, ..settings() }, Settings { skip_unchanged: true, ..settings() }] {
        let manager = super::manager(Settings { dry_run: true, ..settings });
        let from = [folder.path().to_path_buf()];
        let put = run(manager.put_many(&from, &store.place("to/"), &Selection::default())).unwrap();
        let is_skipped = |status: &_| matches!(status, TransferStatus::Exists | TransferStatus::Unchanged);
        let skipped = put.iter().filter(|result| is_skipped(&result.status));
        let skipped: Vec<_> = skipped.map(|result| result.address.clone()).collect();
        assert_eq!(skipped, [format!("memory://to/{there}")]);
        let planned = put.iter().filter(|result| matches!(result.status, TransferStatus::Planned));
        assert_eq!(planned.count(), files.len() - 1);
    }
    assert_eq!(store.lock().sent_bytes, sent_bytes);
}

#[test]
fn only_selected_files_are_transferred() {
    let (folder, _) = folder();
    let store = Memory::new(ANY);
    let dry = manager(Settings { dry_run: true, ..settings() });
    let patterns = |patterns: &[&str]| patterns.iter().map(|pattern| pattern.parse().unwrap()).collect();
    let (include, exclude) = (patterns(&["*.txt", "*.log"]), patterns(&["deep/**"]));
    let filter = Filter { include, exclude, ..Filter::default() };
    let selection = Selection { filter, ..Selection::default() };
    // The shell replaces `*` by the names of files and folders. The patterns apply to these files too.
    fs::write(folder.path().with_extension("log"), "x").unwrap();
    let named = folder.path().with_extension("log");
    let from = [folder.path().to_path_buf(), folder.path().join("empty"), named.clone()];
    let planned = run(dry.put_many(&from, &store.place(""), &selection)).unwrap();
    let named = named.file_name().unwrap().to_str().unwrap();
    let addresses: Vec<&str> = planned.iter().map(|result| &*result.address).collect();
    assert_eq!(addresses, [&*format!("memory://{named}"), "memory://a b.txt", "memory://ü/ø λ.txt"]);
    assert!(planned.iter().all(|result| matches!(result.status, TransferStatus::Planned)));
    assert!(store.lock().calls.is_empty(), "a request was sent");
    run(manager(settings()).put_many(&from, &store.place(""), &selection)).unwrap();
    assert_eq!(store.lock().objects.keys().collect::<Vec<_>>(), [named, "a b.txt", "ü/ø λ.txt"]);
    // A single file is not filtered here, because a command with a single file refuses patterns.
    let one = run(dry.put_many(&from[1..2], &store.place(""), &selection)).unwrap();
    assert_eq!(one.len(), 1);
    fs::remove_file(&from[2]).unwrap();
}

#[test]
fn a_failed_file_does_not_affect_the_others() {
    let (folder, files) = folder();
    let store = Memory::new(ANY);
    store.script(|call, n| (call == Call::Put && n < 2).then_some(Fault::Fails(ascertain_transfer::Kind::Denied)));
    let manager = Arc::new(manager(settings()));
    let outcomes = run(manager.put_many(&[folder.path().into()], &store.place(""), &Selection::default())).unwrap();
    assert_eq!((outcomes.len(), failed(&outcomes).len()), (files.len(), 2));
    assert_eq!(store.lock().objects.len(), files.len() - 2);
    let twice = [folder.path().join("empty"), folder.path().join("deep/../empty")];
    let error = run(manager.put_many(&twice, &store.place("x/"), &Selection::default())).unwrap_err();
    assert!(error.to_string().contains("both become memory://x/empty"), "{error}");
    let missing = [folder.path().join("missing"), folder.path().join("empty")];
    let outcomes = run(manager.put_many(&missing, &store.place("x/"), &Selection::default())).unwrap();
    assert!(
        failed(&outcomes).len() == 1 && failed(&outcomes)[0].starts_with("memory://x/missing: can't read"),
        "{outcomes:?}"
    );
    assert!(store.bytes("x/empty").is_some(), "the other file is uploaded");
}

#[test]
fn names_from_a_store_do_not_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    for evil in ["../evil", "a/../../evil", "//../evil", "a/./b", "x//y"] {
        let store = Memory::new(ANY);
        store.insert(&format!("p/{evil}"), b"evil");
        store.insert("p/good", b"good");
        store.insert("p/folder/", b"with contents");
        let got =
            run(Arc::new(manager(settings())).get_many(&store.place("p/"), &target, &Selection::default())).unwrap();
        assert_eq!((got.len(), failed(&got).len()), (3, 2), "{evil}: {got:?}");
        assert_eq!(super::names(&target), ["good"], "{evil}");
        assert!(!folder.path().join("evil").exists());
        fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn ten_thousand_files() {
    let folder = tempfile::tempdir().unwrap();
    for index in 0..10_000 {
        fs::write(folder.path().join(format!("file {index}")), index.to_string()).unwrap();
    }
    let store = Memory::new(ANY);
    let manager = Arc::new(manager(settings()));
    let put = run(manager.put_many(&[folder.path().into()], &store.place("n/"), &Selection::default())).unwrap();
    assert_eq!((put.len(), failed(&put)), (10_000, vec![]));
    assert!((0..10_000).all(|index| store.bytes(&format!("n/file {index}")).unwrap() == index.to_string()));
}

#[test]
fn two_objects_do_not_become_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = Memory::new(ANY);
    store.insert("dir/x", b"one");
    store.insert("dir//x", b"other");
    let got =
        run(Arc::new(manager(settings())).get_many(&store.place("dir"), folder.path(), &Selection::default())).unwrap();
    assert!(
        failed(&got).len() == 1 && failed(&got)[0].contains("another object would be downloaded to the same file"),
        "{got:?}"
    );
    assert_eq!(super::names(folder.path()), ["x"]);
}

/// A listing consists of many requests. Only the time without progress is limited, not the time of the whole listing.
#[test]
fn a_listing_may_take_longer_than_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let store = Memory::new(ANY);
    store.script(|call, _| (call == Call::List).then_some(Fault::Hangs));
    let manager = Arc::new(super::manager(Settings { timeout: Duration::from_millis(1), ..settings() }));
    let (place, many) = (store.place("p/"), Selection::default());
    let listed =
        async { tokio::time::timeout(Duration::from_secs(1), manager.get_many(&place, folder.path(), &many)).await };
    assert!(simulate(listed).is_err() && store.count(|call| *call == Call::List) == 1);
}

/// Every third request for a page fails. The pages before it are not requested again.
#[test]
fn a_long_list_survives_failures() {
    let (folder, store) = (tempfile::tempdir().unwrap(), Memory { page_objects: 5, ..Memory::new(ANY) });
    (0..200).for_each(|index| store.insert(&format!("p/{index:03}"), b"x"));
    let failure = Fault::Fails(ascertain_transfer::Kind::Transient(None));
    store.script(move |call, times| (call == Call::List && times % 3 == 2).then_some(failure));
    let (manager, place, many) = (manager(settings()), store.place("p/"), Selection::default());
    let listed = manager.get_many(&place, folder.path(), &many);
    let got = simulate(async { tokio::time::timeout(Duration::from_secs(60), listed).await }).unwrap().unwrap();
    assert_eq!((got.len(), failed(&got)), (200, vec![]));
    assert_eq!(store.count(|call| *call == Call::List), 40 + 19);
}

/// The rate limit delays each file until its turn. A stop must not wait for that.
#[test]
fn a_stop_does_not_wait_for_the_rate_limit() {
    for is_put in [true, false] {
        let (folder, store, stop) = (tempfile::tempdir().unwrap(), Memory::new(ANY), Stop::new().unwrap());
        for index in 0..4 {
            fs::write(folder.path().join(index.to_string()), [7; 10_000]).unwrap();
            store.insert(&format!("p/{index}"), &[7; 10_000]);
        }
        let limited = Settings { limit_bytes_per_s: Some(100), ..settings() };
        let manager = TransferManager::new(limited, stop.clone(), Box::new(()));
        let (place, many, target) = (store.place("p/"), Selection::default(), folder.path().join("target"));
        simulate(async {
            let stopped = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                stop.request();
            };
            let from = [folder.path().to_path_buf()];
            let transferred = async {
                match is_put {
                    true => manager.put_many(&from, &place, &many).await,
                    false => manager.get_many(&place, &target, &many).await,
                }
            };
            let both = async { tokio::join!(transferred, stopped) };
            let (results, ()) = tokio::time::timeout(Duration::from_secs(30), both).await.unwrap();
            assert!(failed(&results.unwrap()).len() >= 2);
        });
    }
}

/// A panic must not remove a file from the results, because the command would then succeed without it.
#[test]
fn a_transfer_that_panics_has_failed() {
    let (folder, store) = (tempfile::tempdir().unwrap(), Memory::new(ANY));
    (0..3).for_each(|index| fs::write(folder.path().join(index.to_string()), "x").unwrap());
    store.script(|call, times| {
        assert!(!(call == super::memory::Call::Put && times == 0), "this panic is part of the test");
        None
    });
    let manager = manager(settings());
    let from = [folder.path().to_path_buf()];
    let put = run(manager.put_many(&from, &store.place("p/"), &Selection::default())).unwrap();
    assert!(put.len() == 3 && failed(&put).iter().any(|message| message.contains("panicked")), "{put:?}");
}

/// A whole object would arrive in one burst, which fills the queue of the network path.
#[test]
fn a_gentle_folder_is_fetched_in_small_parts() {
    let (folder, store) = (tempfile::tempdir().unwrap(), Memory::new(ANY));
    (0..3).for_each(|index| store.insert(&format!("p/{index}"), &noise(500_000)));
    let gentle = Settings { gentle: Some(Duration::from_millis(20)), ..settings() };
    let (manager, place) = (manager(gentle), store.place("p/"));
    let got = simulate(manager.get_many(&place, folder.path(), &Selection::default())).unwrap();
    assert_eq!((got.len(), failed(&got)), (3, vec![]));
    let parts = store.count(|call| matches!(call, super::memory::Call::Get(_)));
    assert!(parts >= 3 * 500_000 / (64 << 10), "{parts} requests");
}
