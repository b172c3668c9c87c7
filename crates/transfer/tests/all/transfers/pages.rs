//! Tests of downloads that begin while the store is still being listed.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ascertain_transfer::{
    Error, Kind, Observer, Progress, Selection, Settings, Stop, TransferManager, TransferResult, TransferStatus,
};

use super::memory::{ANY, Call, Fault, Memory};
use super::{names, noise, settings, simulate};

/// Time until the later pages of a list arrive, in simulated time. All objects on the first pages are fetched before.
const LATE: Duration = Duration::from_secs(60);
const CONNECTIONS: usize = 4;

/// Returns a store whose lists have `page_objects` objects on each page.
fn paged(page_objects: usize) -> Memory {
    Memory { page_objects, ..Memory::new(ANY) }
}

/// Returns a store with the objects `p/000`, `p/001` and so on.
fn numbered(page_objects: usize, objects: usize) -> Memory {
    let store = paged(page_objects);
    (0..objects).for_each(|index| store.insert(&format!("p/{index:03}"), &noise(100 + index)));
    store
}

/// Causes `fault` for each request for a page after the first `pages` pages. Returns the number of GET requests that
/// came before the request for each page.
fn fault_later_pages(store: &Memory, pages: usize, fault: Fault) -> Arc<Mutex<Vec<usize>>> {
    let (seen, gets) = (store.clone(), Arc::new(Mutex::new(Vec::new())));
    let counts = Arc::clone(&gets);
    store.script(move |call, times| {
        if call != Call::List {
            return None;
        }
        counts.lock().unwrap().push(count_gets(&seen));
        (times >= pages).then_some(fault)
    });
    gets
}

fn count_gets(store: &Memory) -> usize {
    store.count(|call| matches!(call, Call::Get(_)))
}

fn connections() -> Settings {
    Settings { max_concurrency: CONNECTIONS, ..settings() }
}

fn get(settings: Settings, store: &Memory, target: &std::path::Path) -> Result<Vec<TransferResult>, Error> {
    get_with(&TransferManager::new(settings, Stop::default(), Box::new(())), store, target)
}

fn get_with(manager: &TransferManager, store: &Memory, target: &std::path::Path) -> Result<Vec<TransferResult>, Error> {
    simulate(async {
        let (from, all) = (store.place("p/"), Selection::default());
        tokio::time::timeout(Duration::from_secs(3600), manager.get_many(&from, target, &all)).await.unwrap()
    })
}

/// Returns the error of each file that failed, by address.
fn failed(results: &[TransferResult]) -> BTreeMap<&str, &Error> {
    let failed = results.iter().filter_map(|result| match &result.status {
        TransferStatus::Failed(error) => Some((&*result.address, error)),
        _ => None,
    });
    failed.collect()
}

/// Every page after the first arrives only when all objects of the earlier pages have been requested.
#[test]
fn objects_are_requested_before_the_next_page_arrives() {
    let (target, store) = (tempfile::tempdir().unwrap(), numbered(10, 35));
    let gets = fault_later_pages(&store, 1, Fault::Delays(LATE));
    let results = get(connections(), &store, target.path()).unwrap();
    assert!(results.len() == 35 && failed(&results).is_empty(), "{results:?}");
    let gets = gets.lock().unwrap().clone();
    // The second page is requested at once, and each further page when the one before it has arrived.
    assert!(gets.len() == 4 && gets[0] == 0 && gets[1] < 10 && gets[2..] == [10, 20], "{gets:?}");
    assert_eq!(count_gets(&store), 35, "each object is requested once");
    assert!((0..35).all(|index| fs::read(target.path().join(format!("{index:03}"))).unwrap() == noise(100 + index)));
}

/// If there are fewer objects than connections, large objects are split. So the list must first show enough objects.
#[test]
fn fewer_objects_than_connections_wait_for_the_next_page() {
    let (target, store) = (tempfile::tempdir().unwrap(), numbered(3, 12));
    let gets = fault_later_pages(&store, 1, Fault::Delays(LATE));
    assert!(failed(&get(connections(), &store, target.path()).unwrap()).is_empty());
    assert_eq!(*gets.lock().unwrap(), [0, 0, 0, 6]);
}

/// The last objects of a page are not split, because further objects may follow.
#[test]
fn objects_are_not_split_while_the_store_is_listed() {
    const BYTES: usize = 9_000_000;
    let (target, store) = (tempfile::tempdir().unwrap(), paged(5));
    (0..6).for_each(|index| store.insert(&format!("p/{index}"), &noise(if index < 5 { BYTES } else { 10 })));
    let gets = fault_later_pages(&store, 1, Fault::Delays(LATE));
    let ample = Settings { memory_bytes: 1 << 30, ..connections() };
    assert!(failed(&get(ample, &store, target.path()).unwrap()).is_empty());
    assert_eq!(gets.lock().unwrap().len(), 2);
    assert_eq!(count_gets(&store), 2 * 5 + 1, "each large object has one part of 8 MiB, and the rest");
}

#[test]
fn a_dry_run_and_a_list_of_one_page_read_the_list_first() {
    let (target, store) = (tempfile::tempdir().unwrap(), numbered(10, 30));
    let dry = Settings { dry_run: true, ..connections() };
    let results = get(dry, &store, &target.path().join("new")).unwrap();
    assert!(results.len() == 30 && results.iter().all(|result| matches!(result.status, TransferStatus::Planned)));
    assert_eq!((count_gets(&store), names(target.path()).len()), (0, 0));
}

/// Two objects that would become the same file, or a file and a folder of the same name, are on different pages.
#[test]
fn names_collide_across_pages() {
    let (target, store) = (tempfile::tempdir().unwrap(), numbered(10, 25));
    for name in ["p//007x", "p/007x", "p/000y", "p/000y/below"] {
        store.insert(name, b"content");
    }
    store.insert("p/024z", b"a file");
    store.insert("p/024z/below", b"below it");
    fault_later_pages(&store, 1, Fault::Delays(LATE));
    // The objects `p/024z` and `p/024z/below` are on the last page, so the order of their transfers is not known.
    let results = get(connections(), &store, target.path()).unwrap();
    let failed = failed(&results);
    let message = |address: &str| failed.get(address).map(|error| error.to_string()).unwrap_or_default();
    assert!(message("memory://p/007x").contains("another object would be downloaded to the same file"), "{failed:?}");
    let folder_and_file = |name: &str| {
        let [file, below] = ["", "/below"].map(|end| message(&format!("memory://p/{name}{end}")));
        assert!(file.is_empty() != below.is_empty(), "{name}: {failed:?}");
    };
    folder_and_file("000y");
    folder_and_file("024z");
    assert_eq!((failed.len(), results.len()), (3, 31));
    assert_eq!(fs::read(target.path().join("007x")).unwrap(), b"content");
}

/// The objects on the pages before are fetched. The same command then fetches only the rest.
#[test]
fn a_later_page_that_fails_keeps_the_files_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let (target, store) = (folder.path().join("target"), numbered(10, 35));
    let journaled = || Settings { journals: Some(folder.path().join("journals")), ..connections() };
    let gets = fault_later_pages(&store, 2, Fault::Fails(Kind::Denied));
    let results = get(journaled(), &store, &target).unwrap();
    assert_eq!(gets.lock().unwrap().len(), 3, "a refusal is not repeated");
    let failed = failed(&results);
    let [(address, error)] = *failed.iter().collect::<Vec<_>>() else { panic!("{failed:?}") };
    let Error::IncompleteList { files: 20, source } = error else { panic!("{error:?}") };
    assert!(matches!(&**source, Error::Store(failure) if failure.kind == Kind::Denied), "{source:?}");
    assert_eq!((*address, results.len(), names(&target).len()), ("memory://p/", 21, 20));
    let place = results.iter().find(|result| result.address == *address).unwrap();
    assert_eq!(place.path, target);
    assert!(error.to_string().starts_with("only the first 20 objects were listed: "), "{error}");
    store.script(|_, _| None);
    store.forget();
    let results = get(journaled(), &store, &target).unwrap();
    assert_eq!(results.iter().filter(|result| result.is_transferred()).count(), 35);
    assert_eq!(count_gets(&store), 15, "the first 20 objects are not fetched again");
    assert_eq!(fs::read_dir(folder.path().join("journals")).unwrap().count(), 0, "the journal is removed");
}

/// If the list fails before there are enough objects, nothing is written.
#[test]
fn an_early_page_that_fails_leaves_nothing() {
    let (folder, store) = (tempfile::tempdir().unwrap(), numbered(3, 9));
    fault_later_pages(&store, 1, Fault::Fails(Kind::Denied));
    let error = get(connections(), &store, &folder.path().join("target")).unwrap_err();
    assert!(matches!(&error, Error::Store(failure) if failure.kind == Kind::Denied), "{error:?}");
    assert_eq!((count_gets(&store), names(folder.path()).len()), (0, 0));
}

/// All listed files are complete when the stop is requested, but the list is not.
#[test]
fn a_stop_while_the_store_is_listed_is_reported() {
    let (target, store, stop) = (tempfile::tempdir().unwrap(), numbered(10, 20), Stop::new().unwrap());
    fault_later_pages(&store, 1, Fault::Hangs);
    let manager = TransferManager::new(connections(), stop.clone(), Box::new(()));
    let results = simulate(async {
        let (from, all) = (store.place("p/"), Selection::default());
        let stopped = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            stop.request();
        };
        tokio::join!(manager.get_many(&from, target.path(), &all), stopped).0.unwrap()
    });
    let failed = failed(&results);
    assert!(matches!(failed.get("memory://p/"), Some(Error::Stopped)) && failed.len() == 1, "{failed:?}");
    assert_eq!((results.len(), names(target.path()).len()), (11, 10));
}

/// When no object can be read, the command does not wait for the rest of the list.
#[test]
fn an_error_that_concerns_all_files_ends_the_list() {
    let target = tempfile::tempdir().unwrap();
    let store = Memory { unreadable: (0..10).map(|index| format!("p/{index:03}")).collect(), ..numbered(10, 20) };
    fault_later_pages(&store, 1, Fault::Hangs);
    let results = get(connections(), &store, target.path()).unwrap();
    assert_eq!((results.len(), failed(&results).len()), (10, 10), "{results:?}");
    assert!(results.iter().any(|result| matches!(result.status, TransferStatus::Failed(Error::Halted))));
}

/// An observer that keeps the numbers of files and bytes, and whether there was a forecast.
#[derive(Clone, Default)]
struct Totals(Arc<Mutex<Vec<(u64, u64, bool)>>>);

impl Observer for Totals {
    fn progress(&self, progress: &Progress<'_>) {
        let files = progress.files.unwrap()[1];
        self.0.lock().unwrap().push((files, progress.bytes.unwrap(), progress.forecast.is_some()));
    }
}

#[test]
fn totals_grow_with_the_list_and_the_forecast_covers_all_files() {
    const FILES: usize = 200;
    let (target, totals) = (tempfile::tempdir().unwrap(), Totals::default());
    let path = super::memory::Path { bytes_per_s: 1e6, round_trip: Duration::from_millis(20) };
    let store = Memory { path: Some(path), ..numbered(FILES / 2, FILES) };
    fault_later_pages(&store, 1, Fault::Delays(Duration::from_secs(1)));
    let manager = TransferManager::new(connections(), Stop::default(), Box::new(totals.clone()));
    assert!(failed(&get_with(&manager, &store, target.path()).unwrap()).is_empty());
    let bytes = |files: usize| (0..files).map(|index| 100 + index as u64).sum::<u64>();
    let seen = totals.0.lock().unwrap().clone();
    let (early, late): (Vec<_>, Vec<_>) = seen.into_iter().partition(|(files, ..)| *files == FILES as u64 / 2);
    assert!(!early.is_empty() && early.iter().all(|one| *one == (FILES as u64 / 2, bytes(FILES / 2), false)));
    assert!(late.iter().all(|(files, all, _)| (*files, *all) == (FILES as u64, bytes(FILES))), "{late:?}");
    assert!(late.iter().any(|(.., has_forecast)| *has_forecast), "there is a forecast after the list is complete");
}
