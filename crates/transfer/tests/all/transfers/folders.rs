//! Tests of faults, limits and stops while a folder is transferred.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ascertain_transfer::{
    Error, Failure, Kind, Selection, Settings, Stop, TransferManager, TransferResult, TransferStatus,
};

use super::memory::{ANY, Call, Fault, Memory, Path};
use super::{manager, names, noise, settings, simulate};

/// Creates a folder with files of the given sizes in bytes. Returns the folder, and the source for a command.
fn folder(sizes: &[usize]) -> (tempfile::TempDir, [PathBuf; 1]) {
    let folder = tempfile::tempdir().unwrap();
    for (index, bytes) in sizes.iter().enumerate() {
        fs::write(folder.path().join(format!("{index:03}")), noise(*bytes)).unwrap();
    }
    let source = [folder.path().to_path_buf()];
    (folder, source)
}

/// Returns a store with objects of the given sizes in bytes, under the prefix `p/`.
fn stored(sizes: &[usize]) -> Memory {
    let store = Memory::new(ANY);
    for (index, bytes) in sizes.iter().enumerate() {
        store.insert(&format!("p/{index:03}"), &noise(*bytes));
    }
    store
}

fn put(manager: &TransferManager, source: &[PathBuf], store: &Memory) -> Vec<TransferResult> {
    simulate(async {
        let (to, all) = (store.place("p/"), Selection::default());
        tokio::time::timeout(Duration::from_secs(3600), manager.put_many(source, &to, &all)).await.unwrap().unwrap()
    })
}

fn get(manager: &TransferManager, store: &Memory, target: &std::path::Path) -> Vec<TransferResult> {
    simulate(async {
        let (from, all) = (store.place("p/"), Selection::default());
        tokio::time::timeout(Duration::from_secs(3600), manager.get_many(&from, target, &all)).await.unwrap().unwrap()
    })
}

fn is_complete(results: &[TransferResult]) -> bool {
    results.iter().all(TransferResult::is_transferred)
}

/// The list shows that the object did not exist before. The store keeps no checksum, so the object is read back after
/// the lost answer. The lost request still holds the only permission to send requests, so reading back must not wait
/// for another one.
#[test]
fn a_lost_answer_does_not_block_a_folder_over_one_connection() {
    let sizes = [1000, 2000, 3000, 4000];
    let (_folder, source) = folder(&sizes);
    let store = Memory { knows_crc64: false, ..Memory::new(ANY) };
    store.script(|call, times| (call == Call::Put && times == 0).then_some(Fault::Loses(Kind::Unanswered)));
    let over_one = Settings { max_concurrency: 1, skip_unchanged: true, ..settings() };
    let results = put(&manager(over_one), &source, &store);
    assert!(is_complete(&results), "{results:?}");
    assert_eq!(store.count(|call| *call == Call::Put), sizes.len(), "no file is sent twice");
}

/// A file of up to 8 MiB is usually transferred with one request. Under a limit, such a request would carry its bytes
/// at full speed.
#[test]
fn a_limit_on_bandwidth_keeps_the_requests_of_a_folder_small() {
    const SIZES: [usize; 4] = [6_000_000; 4];
    let limits = [
        Settings { limit_bytes_per_s: Some(8_000_000), ..settings() },
        Settings { gentle: Some(Duration::from_millis(60)), ..settings() },
    ];
    for limited in limits {
        let (folder, source) = folder(&SIZES);
        let store = Memory::new(ANY);
        assert!(is_complete(&put(&manager(limited.clone()), &source, &store)));
        assert_eq!(store.count(|call| *call == Call::Put), 0, "no file is sent with one request");
        let most = std::mem::take(&mut store.lock().under_way).1;
        assert!(most <= 4 * 2_000_000, "{most} bytes in flight");
        let back = folder.path().join("back");
        assert!(is_complete(&get(&manager(limited), &store, &back)));
        let most = store.lock().under_way.1;
        assert!(most <= 4 * 2_000_000, "{most} bytes in flight");
        assert!(fs::read(back.join("003")).unwrap() == noise(SIZES[3]));
    }
}

#[test]
fn the_parts_of_a_folder_fit_into_memory() {
    for memory_bytes in [1 << 20, 4 << 20] {
        let (_folder, source) = folder(&[6_000_000; 6]);
        let store = Memory::new(ANY);
        assert!(is_complete(&put(&manager(Settings { memory_bytes, ..settings() }), &source, &store)));
        let most = store.lock().under_way.1;
        assert!(most <= memory_bytes, "{most} of {memory_bytes}");
    }
}

/// An object may be replaced after it was listed, because its transfer may start much later.
#[test]
fn an_object_that_was_replaced_after_the_listing_is_fetched() {
    let sizes = [1000, 2000, 3000];
    let (target, store) = (tempfile::tempdir().unwrap(), stored(&sizes));
    let replaced = store.clone();
    store.script(move |call, _| {
        if call == Call::List {
            // The list that is returned still describes the earlier object.
            return None;
        }
        if matches!(call, Call::Get(_)) && replaced.bytes("p/001").unwrap().len() == 2000 {
            replaced.insert("p/001", &noise(2500));
        }
        None
    });
    let results = get(&manager(settings()), &store, target.path());
    assert!(is_complete(&results), "{results:?}");
    assert_eq!(results[1].bytes, 2500);
    assert!(fs::read(target.path().join("001")).unwrap() == noise(2500));
    // An object that changes with every request can't be fetched.
    let (changing, mut bytes) = (store.clone(), 2500);
    store.script(move |call, _| {
        if matches!(call, Call::Get(_)) {
            bytes += 1;
            changing.insert("p/001", &noise(bytes));
        }
        None
    });
    let results = get(&manager(settings()), &store, target.path());
    let is_changed = |result: &TransferResult| {
        matches!(&result.status, TransferStatus::Failed(Error::Store(Failure { kind: Kind::Changed, .. })))
    };
    assert!(is_changed(&results[1]) && results[0].is_transferred(), "{results:?}");
}

/// Other files that arrive meanwhile must not make the retries endless.
#[test]
fn bytes_that_arrive_wrong_again_and_again_are_an_error() {
    let (target, store) = (tempfile::tempdir().unwrap(), stored(&[6_000_000]));
    store.script(|call, _| matches!(call, Call::Get(1..)).then_some(Fault::Fails(Kind::Corrupted)));
    let manager = manager(settings());
    let wrong = store.place("p/000");
    let path = target.path().join("a");
    let error = simulate(async {
        tokio::time::timeout(Duration::from_secs(3600), manager.get_file(&wrong, &path)).await.unwrap().unwrap_err()
    });
    let Error::Store(Failure { kind: Kind::Corrupted, message, .. }) = &error else { panic!("{error}") };
    assert!(message.contains("(tried 3 times)"), "{message}");
}

/// After a stop, no further file is started: not even its folder is created.
#[test]
fn a_stop_creates_no_folders() {
    let (target, store, stop) = (tempfile::tempdir().unwrap(), Memory::new(ANY), Stop::new().unwrap());
    (0..10).for_each(|index| store.insert(&format!("p/{index}/file"), b"content"));
    let token = stop.clone();
    store.script(move |call, _| {
        if call == Call::List {
            token.request();
        }
        None
    });
    let results = get(&TransferManager::new(settings(), stop, Box::new(())), &store, target.path());
    assert_eq!(results.len(), 10);
    assert!(
        results.iter().all(|result| matches!(result.status, TransferStatus::Failed(Error::Stopped))),
        "{results:?}"
    );
    assert_eq!(names(target.path()), [""; 0]);
    assert_eq!(store.count(|call| *call == Call::List), store.lock().calls.len(), "no object was requested");
}

/// The latency is measured for the whole command, and not anew for each file.
#[test]
fn a_gentle_folder_of_small_files_sends_few_more_requests() {
    const FILES: usize = 200;
    let (_folder, source) = folder(&[10; FILES]);
    let path = Path { bytes_per_s: 1e6, round_trip: Duration::from_millis(5) };
    let store = Memory { path: Some(path), ..Memory::new(ANY) };
    let gentle = Settings { gentle: Some(Duration::from_millis(60)), max_concurrency: 4, ..settings() };
    assert!(is_complete(&put(&manager(gentle), &source, &store)));
    let heads = store.count(|call| *call == Call::Head);
    assert!((1..FILES / 4).contains(&heads), "{heads} requests measured the latency");
}

/// The list must not contain the objects next to the folder that is sent.
#[test]
fn only_the_common_prefix_of_the_targets_is_listed() {
    let (folder, store) = (tempfile::tempdir().unwrap(), Memory::new(ANY));
    let shared = folder.path().join("shared");
    let sources: Vec<_> = (0..4).map(|index| shared.join(format!("ü{index}"))).collect();
    fs::create_dir(&shared).unwrap();
    sources.iter().for_each(|path| fs::write(path, "content").unwrap());
    store.insert("other", b"content");
    store.insert("ü1", b"content");
    let unchanged = Settings { skip_unchanged: true, ..settings() };
    let to = store.place("");
    let results = simulate(manager(unchanged).put_many(&sources, &to, &Selection::default())).unwrap();
    assert_eq!(store.lock().listed, ["ü"]);
    let skipped: Vec<_> = results.iter().map(|result| !result.is_transferred()).collect();
    assert_eq!(skipped, [false, true, false, false]);
}

/// A list has no checksums, so an object of the same size that is newer than the file counts as a copy. The checksum
/// decides only if the file is newer.
#[test]
fn unchanged_files_need_no_request_of_their_own() {
    const SIZES: [usize; 6] = [1000, 2000, 3000, 0, 6_000_000, 9_000_000];
    let (folder, source) = folder(&SIZES);
    let store = Memory::new(ANY);
    assert!(is_complete(&put(&manager(settings()), &source, &store)));
    let skipped = |changed: Settings| {
        store.forget();
        let results = put(&manager(Settings { skip_unchanged: true, ..changed }), &source, &store);
        let skipped = results.iter().filter(|result| matches!(result.status, TransferStatus::Unchanged)).count();
        (skipped, store.count(|call| *call == Call::Head), store.count(|call| *call == Call::List))
    };
    assert_eq!(skipped(settings()), (6, 0, 1));
    assert_eq!(skipped(Settings { dry_run: true, ..settings() }), (6, 0, 1));
    assert_eq!(skipped(Settings { verify: true, ..settings() }), (6, 6, 1), "each checksum is compared");
    // One file was only touched, and one was changed without a change of its size.
    let newer = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(5_000_000_000);
    fs::write(folder.path().join("001"), noise(2000).into_iter().rev().collect::<Vec<_>>()).unwrap();
    for name in ["000", "001"] {
        fs::File::options().write(true).open(folder.path().join(name)).unwrap().set_modified(newer).unwrap();
    }
    assert_eq!(skipped(Settings { dry_run: true, ..settings() }), (5, 2, 1));
    assert_eq!(skipped(settings()), (5, 2, 1));
    assert!(store.bytes("p/001").unwrap().iter().rev().eq(&noise(2000)));
}

/// The files have no common prefix, so the list would contain the whole bucket.
#[test]
fn a_list_that_is_longer_than_looking_up_each_file_ends() {
    let (_folder, source) = folder(&[1000; 4]);
    let store = Memory { page_objects: 5, ..Memory::new(ANY) };
    (0..1000).for_each(|index| store.insert(&format!("{index:04}"), b"x"));
    store.insert("003", &noise(1000));
    for (settings, heads) in [
        (Settings { skip_unchanged: true, ..settings() }, 4),
        // The condition of the request to store the object replaces the look-up.
        (Settings { no_clobber: true, ..settings() }, 0),
    ] {
        store.forget();
        let results = simulate(manager(settings).put_many(&source, &store.place(""), &Selection::default())).unwrap();
        assert_eq!(store.count(|call| *call == Call::List), 4);
        assert_eq!(store.count(|call| *call == Call::Head), heads);
        assert!(!results[3].is_transferred(), "{results:?}");
    }
}
