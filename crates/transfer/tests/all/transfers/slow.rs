//! Tests of slow links, of parts that are much slower than the others, and of objects that the store can't read. The
//! clock is simulated.

use std::fs;
use std::io;
use std::time::Duration;

use ascertain_transfer::{Error, Selection, Settings, TransferResult, TransferStatus};
use tokio::time::Instant;

use super::memory::{ANY, Call, Fault, Memory, Path};
use super::whole::S3;
use super::{file, manager, noise, settings, simulate};

/// A link of 80 kbit/s. Each request takes several times as long as any limit on the time without progress.
const SLOW: Path = Path { bytes_per_s: 10_000.0, round_trip: Duration::from_millis(50) };

#[test]
fn a_file_is_uploaded_over_a_slow_link() {
    let (_folder, path, content) = file(16_000_000);
    let (store, manager) = (Memory { path: Some(SLOW), ..Memory::new(S3) }, manager(settings()));
    simulate(manager.put_file(&path, &store.place("a"))).unwrap();
    assert!(store.bytes("a").unwrap() == content);
    assert_eq!((manager.retries(), store.lock().sent_bytes), (0, 16_000_000), "bytes were sent twice");
}

#[test]
fn a_folder_goes_there_and_back_over_a_slow_link() {
    let (folder, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    (0..6).for_each(|index| fs::write(folder.path().join(index.to_string()), noise(4_000_000)).unwrap());
    let (store, manager) = (Memory { path: Some(SLOW), ..Memory::new(S3) }, manager(settings()));
    let (source, prefix, all) = ([folder.path().to_path_buf()], store.place("p/"), Selection::default());
    let put = simulate(manager.put_many(&source, &prefix, &all)).unwrap();
    let got = simulate(manager.get_many(&prefix, target.path(), &all)).unwrap();
    let results: Vec<_> = put.iter().chain(&got).collect();
    assert!(results.len() == 12 && results.iter().all(|result| result.is_transferred()), "{results:?}");
    assert!((0..6).all(|index| fs::read(target.path().join(index.to_string())).unwrap() == noise(4_000_000)));
    assert_eq!((manager.retries(), store.lock().sent_bytes), (0, 6 * 4_000_000), "bytes were sent twice");
}

/// The answer to an upload is lost after an hour in which bytes moved. The request is repeated.
#[test]
fn an_upload_whose_answer_is_lost_after_an_hour_is_repeated() {
    let (_folder, path, content) = file(400_000);
    let store = Memory::new(S3);
    store.script(|call, times| match (call, times) {
        (Call::Put, 0..3) => Some(Fault::Vanishes(Duration::from_secs(3600))),
        _ => None,
    });
    simulate(manager(settings()).put_file(&path, &store.place("a"))).unwrap();
    assert!(store.bytes("a").unwrap() == content);
    assert_eq!(store.count(|call| *call == Call::Put), 4);
}

/// More objects than connections can't be read. All others are downloaded, and the requests are limited.
#[test]
fn objects_that_the_store_can_not_read_do_not_block_the_others() {
    let target = tempfile::tempdir().unwrap();
    let names: Vec<_> = (0..60).map(|index| format!("p/{index:02}")).collect();
    // Returns the results, and the number of requests.
    let get = |unreadable: &[String]| {
        let store = Memory { unreadable: unreadable.iter().cloned().collect(), ..Memory::new(ANY) };
        names.iter().for_each(|name| store.insert(name, &noise(1000)));
        let manager = manager(Settings { max_concurrency: 4, ..settings() });
        let (prefix, all) = (store.place("p/"), Selection::default());
        (simulate(manager.get_many(&prefix, target.path(), &all)).unwrap(), store.count(|_| true))
    };
    let (got, requests) = get(&names[3..9]);
    for (result, name) in got.iter().zip(&names) {
        assert_eq!(result.is_transferred(), !names[3..9].contains(name), "{result:?}");
    }
    assert!(got.len() == 60 && requests <= 55 + 6 * 40, "{requests} requests");
    // If no object can be read, the command does not wait for each.
    let (got, requests) = get(&names);
    let is_halted = |result: &&TransferResult| matches!(result.status, TransferStatus::Failed(Error::Halted));
    let halted = got.iter().filter(is_halted).count();
    assert!(halted >= 60 - 3 * 4 && requests <= 1 + 3 * 4 * 40, "{halted} files, {requests} requests");
}

/// A link of 80 Mbit/s, over which parts of 250 kB take about 0.2 s.
const FAST: Path = Path { bytes_per_s: 10e6, round_trip: Duration::from_millis(20) };
const PART_BYTES: u64 = 250_000;
/// The time by which the slow part takes longer: a hundred times as long as the others.
const SLOW_PART: Duration = Duration::from_secs(20);

/// Transfers 15 MB in 60 parts. The part with the index `slow` is slow. Returns the simulated duration and the number of
/// requests for parts.
fn transfer(is_put: bool, slow: Option<u64>) -> (Duration, usize) {
    let (folder, path, content) = file(15_000_000);
    let store = Memory { path: Some(FAST), ..Memory::new(ANY) };
    store.insert("b", &content);
    let is_slow = move |call| match call {
        Call::Part(index) => Some(index as u64) == slow,
        Call::Get(at) => slow.is_some_and(|slow| at == slow * PART_BYTES),
        _ => false,
    };
    store.script(move |call, times| (times == 0 && is_slow(call)).then_some(Fault::Delays(SLOW_PART)));
    let manager = manager(Settings { max_concurrency: 8, part_bytes: Some(PART_BYTES), ..settings() });
    let took = simulate(async {
        let began = Instant::now();
        match is_put {
            true => manager.put_file(&path, &store.place("a")).await.unwrap(),
            false => manager.get_file(&store.place("b"), &folder.path().join("target")).await.unwrap(),
        };
        began.elapsed()
    });
    (took, store.count(|call| matches!(call, Call::Part(_) | Call::Get(_))))
}

/// A part that takes 100 times as long as the others delays the simulated transfer by at most its usual duration. The
/// additional requests carry at most 5 % of its bytes.
#[test]
fn a_part_that_is_100_times_slower_is_hedged() {
    for is_put in [true, false] {
        let (usual, requests) = transfer(is_put, None);
        assert_eq!(requests, 60);
        for slow in [4, 30, 55, 59] {
            let (took, with_slow) = transfer(is_put, Some(slow));
            assert!(took <= 2 * usual, "{is_put} {slow}: {took:?} instead of {usual:?}");
            assert!((61..=63).contains(&with_slow), "{with_slow} requests");
        }
    }
}

/// The memory is full of later parts, so nothing else can be requested before the slow part has arrived.
#[test]
fn a_slow_part_does_not_stall_a_stream() {
    let store = Memory { path: Some(FAST), ..Memory::new(ANY) };
    store.insert("a", &noise(15_000_000));
    let stream = |is_slow: bool| {
        store.forget();
        store.script(move |call, times| {
            let is_meant = is_slow && matches!(call, Call::Get(2_500_000)) && times == 0;
            is_meant.then_some(Fault::Delays(SLOW_PART))
        });
        let memory = Settings { memory_bytes: 2_500_000, part_bytes: Some(PART_BYTES), ..settings() };
        let manager = manager(Settings { max_concurrency: 8, ..memory });
        simulate(async {
            let (began, mut out) = (Instant::now(), io::sink());
            let result = manager.get_stream(&store.place("a"), &mut out).await.unwrap();
            (began.elapsed(), result.requests.hedged)
        })
    };
    let ((usual, _), (took, hedged)) = (stream(false), stream(true));
    assert!(store.count(|call| *call == Call::Get(2_500_000)) >= 2, "no part starts at this byte");
    assert!(took <= 2 * usual && hedged >= 1, "{took:?} instead of {usual:?}, {hedged} second requests");
}
