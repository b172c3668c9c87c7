//! Tests of downloads of which some bytes arrive damaged: only the damaged ranges are replaced.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ascertain_transfer::{
    Error, Failure, Kind, RepairedRange, Selection, Settings, TransferResult, TransferStatus, crc64,
};

use super::memory::{self, ANY, Call, Fault, Memory};
use super::{file, manager, names, noise, run, settings, simulate};

const BYTES: usize = 3_000_000;

/// Returns settings with which the parts are fetched one after the other.
fn one_by_one() -> Settings {
    Settings { max_concurrency: 1, ..settings() }
}

/// Returns a store with an object, and the object's content. The store keeps a checksum for every `summed_bytes` bytes.
fn store(summed_bytes: Option<usize>) -> (Memory, Vec<u8>) {
    let content = noise(BYTES);
    let sums = |bytes| content.chunks(bytes).map(|part| (part.len() as u64, crc64(part))).collect();
    let store = Memory { part_sums: summed_bytes.map(sums).unwrap_or_default(), ..Memory::new(ANY) };
    store.insert("a", &content);
    (store, content)
}

fn get(store: &Memory, folder: &Path, settings: Settings) -> Result<TransferResult, Error> {
    run(manager(settings).get_file(&store.place("a"), &folder.join("target")))
}

/// Returns the offsets of the requests for ranges, in their order.
fn offsets(store: &Memory) -> Vec<u64> {
    let calls = &store.lock().calls;
    calls.iter().filter_map(|call| if let Call::Get(offset) = call { Some(*offset) } else { None }).collect()
}

/// Makes the store damage one answer to a request for a range: the one with the index `damaged`. The returned offset is
/// that of the damaged range; `None` before it was requested.
fn damage(store: &Memory, damaged: usize) -> Arc<Mutex<Option<u64>>> {
    let (mut number, offset) = (0, Arc::new(Mutex::new(None)));
    let found = Arc::clone(&offset);
    store.script(move |call, _| {
        let Call::Get(offset) = call else { return None };
        number += 1;
        (number == damaged + 1).then(|| {
            *found.lock().unwrap() = Some(offset);
            Fault::Changes
        })
    });
    offset
}

#[test]
fn a_damaged_range_is_fetched_again() {
    for at_once in [1, 64] {
        for damaged in 0.. {
            let (folder, (store, content)) = (tempfile::tempdir().unwrap(), store(None));
            let offset = damage(&store, damaged);
            let result = get(&store, folder.path(), Settings { max_concurrency: at_once, ..settings() }).unwrap();
            assert!(fs::read(folder.path().join("target")).unwrap() == content, "{damaged}");
            assert_eq!(names(folder.path()), ["target"]);
            let mut offsets = offsets(&store);
            // Requests that are still in flight when the file is right are cancelled.
            assert!(result.parts <= offsets.len() as u64 && (at_once > 1 || result.parts == offsets.len() as u64));
            let Some(offset) = *offset.lock().unwrap() else {
                assert!(result.repaired.is_empty() && damaged > 2 && offsets.len() <= damaged);
                break;
            };
            let ends = offsets.iter().copied().filter(|start| *start > offset).chain([BYTES as u64]);
            let bytes = ends.min().unwrap() - offset;
            assert_eq!(result.repaired, [RepairedRange { offset, bytes }]);
            let last = offset + bytes - 1;
            let note = format!("bytes {offset}-{last} arrived damaged, and were fetched again");
            assert_eq!(result.repair_note(), Some(note));
            if at_once == 1 {
                let again = offsets.iter().rposition(|offset| *offset == 0).unwrap();
                assert_eq!(offsets.len() - again, damaged + 1, "no range is fetched after the damaged one");
            }
            offsets.sort_unstable();
            assert!(offsets.windows(3).all(|three| three[0] < three[2]), "no range is fetched three times");
        }
    }
}

#[test]
fn checksums_of_ranges_show_which_one_is_damaged() {
    let (folder, (store, content)) = (tempfile::tempdir().unwrap(), store(Some(100_000)));
    let offset = damage(&store, 2);
    let result = get(&store, folder.path(), settings()).unwrap();
    assert!(fs::read(folder.path().join("target")).unwrap() == content);
    let offset = offset.lock().unwrap().unwrap();
    let fetched = offsets(&store);
    assert_eq!(fetched.iter().filter(|other| **other == offset).count(), 2);
    // Other parts are fetched again only if they share the range of a wrong checksum.
    let all: BTreeSet<_> = fetched.iter().collect();
    assert!(fetched.len() <= all.len() + 3 && all.len() > 9 && result.repaired.len() == 1, "{fetched:?}");
    // Checksums of ranges are ignored if they contradict the checksum of the object, or if there is only one.
    for sums in [store.part_sums.iter().map(|(bytes, sum)| (*bytes, sum ^ 1)).collect(), vec![(BYTES as u64, 7)]] {
        let store = Memory { part_sums: sums, ..store.clone() };
        damage(&store, 2);
        assert_eq!(get(&store, folder.path(), settings()).unwrap().repaired.len(), 1);
        assert!(fs::read(folder.path().join("target")).unwrap() == content);
    }
}

#[test]
fn bytes_that_are_damaged_each_time_leave_no_file() {
    for (summed_bytes, words) in [
        (None, "all ranges arrived with the same bytes again, so the stored object itself does not have its checksum"),
        (
            Some(BYTES),
            "all ranges arrived with the same bytes again, so the stored object itself does not have its checksum",
        ),
        (Some(100_000), "; bytes 0-99999 arrived twice with the same bytes, which differ from their own checksum"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = store(summed_bytes);
        store.script(|call, _| matches!(call, Call::Get(0)).then_some(Fault::Changes));
        let error = get(&store, folder.path(), settings()).unwrap_err();
        assert!(matches!(error, Error::Corrupted(..)), "{error}");
        let message = error.to_string();
        assert!(message.starts_with("memory://a: the stored object has the CRC-64 "), "{message}");
        assert!(message.ends_with(words), "{message}");
        assert!(names(folder.path()).is_empty());
    }
    // The first time, all ranges but one are damaged. The second time, only the remaining range is.
    let (folder, (store, _)) = (tempfile::tempdir().unwrap(), store(None));
    store.script(|call, times| {
        let is_damaged = matches!((call, times), (Call::Get(1..), 0) | (Call::Get(0), 1));
        is_damaged.then_some(Fault::Changes)
    });
    let journals = folder.path().join("journals");
    // Over one connection, the first range arrives first.
    let journalled = Settings { journals: Some(journals.clone()), max_concurrency: 1, ..settings() };
    let error = get(&store, folder.path(), journalled).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("arrived with other bytes the second time, but the checksum is still wrong"), "{said}");
    assert!(names(&journals).is_empty() && names(folder.path()) == ["journals"]);
}

/// While the third range is fetched, a byte of the first one is changed on the disk.
#[test]
fn bytes_that_are_damaged_on_the_disk_are_fetched_again_too() {
    let (folder, (store, content)) = (tempfile::tempdir().unwrap(), store(None));
    let (target, mut number) = (folder.path().join("to"), 0);
    fs::create_dir(&target).unwrap();
    let place = target.clone();
    store.script(move |call, times| {
        number += usize::from(matches!((call, times), (Call::Get(_), 0)));
        (number == 3 && times == 0).then(|| {
            let draft = fs::read_dir(&place).unwrap().next().unwrap().unwrap().path();
            let draft = fs::OpenOptions::new().read(true).write(true).open(draft).unwrap();
            let mut byte = [0];
            draft.read_exact_at(&mut byte, 10).unwrap();
            draft.write_all_at(&[byte[0] ^ 1], 10).unwrap();
            Fault::Changes
        })
    });
    let result = get(&store, &target, Settings { journals: Some(folder.path().join("journals")), ..one_by_one() });
    assert!(fs::read(target.join("target")).unwrap() == content);
    let repaired: Vec<_> = result.unwrap().repaired.iter().map(|range| range.offset).collect();
    assert_eq!(repaired, [offsets(&store)[0], offsets(&store)[2]]);
}

#[test]
fn a_repair_that_is_interrupted_is_resumed() {
    let (folder, (store, content)) = (tempfile::tempdir().unwrap(), store(None));
    let settings = Settings { journals: Some(folder.path().join("journals")), ..settings() };
    store.script(|call, times| match (call, times) {
        (Call::Get(0), 0) => Some(Fault::Changes),
        (Call::Get(_), 1) => Some(Fault::Fails(Kind::Denied)),
        _ => None,
    });
    let error = get(&store, folder.path(), settings.clone()).unwrap_err();
    assert!(matches!(&error, Error::Store(Failure { kind: Kind::Denied, .. })), "{error}");
    assert_eq!(names(&folder.path().join("journals")).len(), 1);
    store.script(|_, _| None);
    let result = get(&store, folder.path(), settings).unwrap();
    assert!(fs::read(folder.path().join("target")).unwrap() == content);
    assert_eq!((result.resumed_bytes, result.repaired.len()), (BYTES as u64, 1));
    assert!(names(&folder.path().join("journals")).is_empty());
}

/// The process is killed after the repaired file got its name, but before the journal is removed.
#[test]
fn a_repaired_file_that_has_its_name_is_not_fetched_again() {
    let (folder, (store, content)) = (tempfile::tempdir().unwrap(), store(None));
    let (journals, kept) = (folder.path().join("journals"), folder.path().join("kept"));
    let (place, link) = (journals.clone(), kept.clone());
    store.script(move |call, times| match (call, times) {
        (Call::Get(0), 0) => Some(Fault::Changes),
        (Call::Get(0), 1) => {
            // The link keeps the journal when its name is removed.
            fs::hard_link(place.join(&names(&place)[0]), &link).unwrap();
            fs::write(link.with_extension("name"), &names(&place)[0]).unwrap();
            None
        }
        _ => None,
    });
    let settings = Settings { journals: Some(journals.clone()), ..settings() };
    assert_eq!(get(&store, folder.path(), settings.clone()).unwrap().repaired.len(), 1);
    fs::rename(&kept, journals.join(fs::read_to_string(kept.with_extension("name")).unwrap())).unwrap();
    store.forget();
    let result = get(&store, folder.path(), settings).unwrap();
    assert_eq!((result.resumed_bytes, offsets(&store).len()), (BYTES as u64, 0));
    assert!(fs::read(folder.path().join("target")).unwrap() == content && names(&journals).is_empty());
}

/// If the store has no checksum, a third download decides which of the first two is right.
#[test]
fn a_third_download_shows_which_of_two_is_damaged() {
    for damaged in [0, 1] {
        let (folder, store, content) = (tempfile::tempdir().unwrap(), Memory::new(ANY), noise(BYTES));
        let store = Memory { knows_crc64: false, ..store };
        store.insert("a", &content);
        store.script(move |call, times| (call == Call::Get(0) && times == damaged).then_some(Fault::Changes));
        let result = get(&store, folder.path(), Settings { verify: true, ..settings() }).unwrap();
        assert!(fs::read(folder.path().join("target")).unwrap() == content && result.verified);
        assert_eq!(result.repaired.len(), 1 - damaged);
    }
    // The first and the third download are damaged in the same way, but the third one also elsewhere.
    let (folder, store) = (tempfile::tempdir().unwrap(), Memory { knows_crc64: false, ..store(None).0 });
    store.script(|call, times| {
        let is_damaged = matches!((call, times), (Call::Get(0), 0 | 2) | (Call::Get(1..), 2));
        is_damaged.then_some(Fault::Changes)
    });
    let error = get(&store, folder.path(), Settings { verify: true, ..settings() }).unwrap_err();
    assert!(error.to_string().contains("memory://a: the second download has the CRC-64"), "{error}");
    assert!(names(folder.path()).is_empty());
    // The same applies to an object that is read back after an upload.
    for times_damaged in [1, 2] {
        let (_folder, path, content) = file(BYTES);
        let store = Memory::new(ANY);
        store.script(move |call, times| (call == Call::Get(0) && times < times_damaged).then_some(Fault::Changes));
        let put = run(manager(Settings { verify: true, ..settings() }).put_file(&path, &store.place("a")));
        assert!(store.bytes("a").unwrap() == content);
        assert_eq!(put.is_ok_and(|result| result.verified), times_damaged == 1);
    }
}

/// A small object of a folder is fetched with one request, and a second time if it is damaged. A damaged object does
/// not affect the others.
#[test]
fn a_small_object_is_fetched_twice_at_most() {
    for damaged in [1, usize::MAX] {
        let (folder, store) = (tempfile::tempdir().unwrap(), Memory { knows_crc64: true, ..Memory::new(ANY) });
        for name in ["a", "b", "c", "d"] {
            store.insert(name, &noise(10_000));
        }
        let mut times = 0;
        store.script(move |call, _| {
            // All requests begin at the first byte. The first ones are for different objects.
            let is_damaged = matches!(call, Call::Get(0)) && times < damaged;
            times += usize::from(matches!(call, Call::Get(0)));
            is_damaged.then_some(Fault::Changes)
        });
        let target = folder.path().join("target");
        let results = run(Arc::new(manager(settings())).get_many(&store.place(""), &target, &Selection::default()));
        let results = results.unwrap();
        if damaged == 1 {
            let repaired: Vec<_> = results.iter().filter(|result| !result.repaired.is_empty()).collect();
            assert_eq!(repaired.len(), 1);
            assert_eq!(repaired[0].repaired, [RepairedRange { offset: 0, bytes: 10_000 }]);
            assert_eq!((repaired[0].parts, repaired[0].requests.retries.corrupted), (2, 1));
            assert_eq!((offsets(&store).len(), names(&target).len()), (5, 4));
            assert!(names(&target).iter().all(|name| fs::read(target.join(name)).unwrap() == noise(10_000)));
            continue;
        }
        for result in results {
            let TransferStatus::Failed(error) = result.status else { panic!("{result:?}") };
            assert!(error.to_string().contains("the object arrived twice, with the same bytes"), "{error}");
        }
        assert_eq!((offsets(&store).len(), names(&target).len()), (8, 0));
    }
}

/// The last object of a folder is damaged. Its second request is not late, although twice the usual time has passed
/// since the first one.
#[test]
fn a_second_request_for_a_damaged_object_does_not_count_as_late() {
    const FILES: usize = 40;
    let path = memory::Path { bytes_per_s: 1e9, round_trip: Duration::from_secs(1) };
    let (folder, store) = (tempfile::tempdir().unwrap(), Memory { path: Some(path), ..Memory::new(ANY) });
    for index in 0..FILES {
        store.insert(&index.to_string(), &noise(10_000));
    }
    store.script(|call, times| (call == Call::Get(0) && times == FILES - 1).then_some(Fault::Changes));
    let manager = manager(Settings { max_concurrency: 4, ..settings() });
    let (place, target) = (store.place(""), folder.path().join("target"));
    let results = simulate(async { manager.get_many(&place, &target, &Selection::default()).await.unwrap() });
    assert_eq!(results.iter().filter(|result| result.is_transferred()).count(), FILES);
    assert_eq!(results.iter().map(|result| result.repaired.len()).sum::<usize>(), 1);
    assert_eq!(results.iter().map(|result| result.requests.hedged).sum::<u64>(), 0);
    assert_eq!(offsets(&store).len(), FILES + 1);
}
