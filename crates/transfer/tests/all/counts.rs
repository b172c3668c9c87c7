//! Tests of the numbers of connections and requests of a command.

use std::fs;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::common::counted::Counted;
use crate::common::web::{Web, answer};
use crate::common::{address, one_of_each, options_for, start};
use ascertain_netlab::store::{Dialect, Kind, RunningStore, Store as Served};
use ascertain_transfer::{Direction, Environment, Options, Settings, Stop, TransferRequest, TransferResult, run};

const CONNECTIONS: usize = 4;

/// Creates a folder with files of these sizes in bytes.
fn folder(sizes: &[usize]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (index, bytes) in sizes.iter().enumerate() {
        fs::write(folder.path().join(index.to_string()), vec![index as u8; *bytes]).unwrap();
    }
    folder
}

/// Transfers a folder with a command that has at most [`CONNECTIONS`] connections.
fn transfer(direction: Direction, from: &str, to: &str, store: Options, settings: Settings) -> Vec<TransferResult> {
    let settings = Settings { max_concurrency: CONNECTIONS, ..settings };
    let (sources, destination) = (vec![from.into()], to.into());
    let request = TransferRequest { direction, sources, destination, settings, store, ..TransferRequest::default() };
    let results = run(&request, Box::new(()), Stop::default()).unwrap();
    assert!(results.iter().all(TransferResult::is_transferred), "{results:?}");
    results
}

/// Puts a folder with files of these sizes into a store, and gets it again. Returns the number of downloads that were
/// requested a second time because the first request was late.
fn there_and_back(store: &RunningStore, options: &Options, sizes: &[usize]) -> usize {
    let (folder, back, prefix) = (folder(sizes), tempfile::tempdir().unwrap(), address(store, "p/"));
    let (from, to) = (folder.path().to_str().unwrap(), back.path().to_str().unwrap());
    transfer(Direction::Put, from, &prefix, options.clone(), Settings::default());
    let got = transfer(Direction::Get, &prefix, to, options.clone(), Settings::default());
    for index in 0..sizes.len() {
        let read = |folder: &str| fs::read(format!("{folder}/{index}")).unwrap();
        assert!(read(from) == read(to), "file {index}");
    }
    got.iter().map(|result| result.requests.hedged as usize).sum()
}

/// The latency is so high that connections are opened in advance, for several files at the same time.
#[test]
fn connections_never_exceed_their_limit() {
    const MIB: usize = 1 << 20;
    let small = [MIB / 64; 40];
    let large = [9 * MIB, 10 * MIB, 21 * MIB];
    let mixed = [&small[..20], &large[..2], &[MIB; 4]].concat();
    for served in one_of_each() {
        for sizes in [&small[..], &large, &mixed] {
            let store = start(Served { latency: Duration::from_millis(30), ..served.clone() });
            let proxy = Counted::start(store.address(), CONNECTIONS);
            let url = store.url().replace(&store.address().to_string(), &proxy.address.to_string());
            there_and_back(&store, &Options { endpoint_url: Some(url), ..options_for(&store) }, sizes);
            assert!(proxy.most() <= CONNECTIONS, "{:?}: {} connections", served.dialect, proxy.most());
            assert!(proxy.most() > 1, "the proxy was not used");
        }
    }
}

/// An object of at most 8 MiB is not split, and no object is larger. Azure sends checksums only for ranges of up to 4 MiB,
/// so a larger object needs a second request.
#[test]
fn an_object_of_a_folder_needs_one_request() {
    let sizes: Vec<usize> = (0..60).map(|index| index * index * 2400).chain([8 << 20; 2]).collect();
    for served in one_of_each() {
        let store = start(served);
        let hedged = there_and_back(&store, &options_for(&store), &sizes);
        let seen = store.seen();
        let count = |kinds: &[Kind]| seen.iter().filter(|seen| kinds.contains(&seen.kind)).count();
        let gets = count(&[Kind::GetObject]);
        let is_azure = store.store().dialect == Dialect::Azure;
        let second = sizes.iter().filter(|bytes| is_azure && **bytes > 4 << 20).count();
        // An empty object is not requested at all.
        let (least, most) = (sizes.len() - 1 + second, sizes.len() + second + 2 * hedged);
        assert!((least..most).contains(&gets), "{gets} requests, {hedged} late ones");
        assert_eq!(count(&[Kind::ListObjects]), 1);
        let puts = seen.len() - gets - 1;
        assert!(puts as f64 <= 1.05 * sizes.len() as f64, "{:?}: {puts} requests", store.store().dialect);
    }
}

/// The server answers the request for the second page of the list only when all objects on the first page have been
/// requested. These requests and the list share the permitted connections.
#[test]
fn objects_are_requested_before_the_second_page_is_answered() {
    const PAGE: usize = 12;
    let requested = Arc::new((Mutex::new(0), Condvar::new()));
    let at_second_page = Arc::new(Mutex::new(None));
    let (count, counted) = (Arc::clone(&requested), Arc::clone(&at_second_page));
    let web = Web::start(move |head, _| {
        let line = head.lines().next().unwrap_or_default();
        let mut objects = count.0.lock().unwrap();
        if !line.contains("list-type=2") {
            *objects += 1;
            count.1.notify_all();
            return answer("200 OK", "ETag: \"1\"\r\n", b"content");
        }
        let is_second = line.contains("continuation-token=");
        if is_second {
            // If the objects are not requested, the test fails below instead of waiting forever.
            objects = count.1.wait_timeout_while(objects, Duration::from_secs(60), |count| *count < PAGE).unwrap().0;
            *counted.lock().unwrap() = Some(*objects);
        }
        let numbers = if is_second { PAGE..PAGE + 3 } else { 0..PAGE };
        let entry = |index| format!("<Contents><Key>p/{index:02}</Key><ETag>\"1\"</ETag><Size>7</Size></Contents>");
        let entries: String = numbers.map(entry).collect();
        let next = if is_second { "" } else { "<NextContinuationToken>2</NextContinuationToken>" };
        let list =
            format!("<ListBucketResult><IsTruncated>{}</IsTruncated>{next}{entries}</ListBucketResult>", !is_second);
        answer("200 OK", "", list.as_bytes())
    });
    let proxy = Counted::start(web.address, CONNECTIONS);
    let keys = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let environment: Environment = keys.into_iter().collect();
    let store = Options { environment, endpoint_url: Some(format!("http://{}", proxy.address)), ..Options::default() };
    let target = tempfile::tempdir().unwrap();
    let to = target.path().to_str().unwrap();
    let results = transfer(Direction::Get, "s3://bucket/p/", to, store, Settings::default());
    assert_eq!((results.len(), *at_second_page.lock().unwrap()), (PAGE + 3, Some(PAGE)));
    assert_eq!(*requested.0.lock().unwrap(), PAGE + 3, "each object is requested once");
    assert!(proxy.most() <= CONNECTIONS, "{} connections", proxy.most());
}
