//! Transfers to and from S3, Azure and GCS, over real connections that break. The stores verify signatures and
//! checksums.

use std::fs;
use std::time::Duration;

use crate::common::{address, bytes, one_of_each, options_for, run, start};
use ascertain_netlab::store::{Fault, Kind as RequestKind, Misdeed, Store as Served};
use ascertain_transfer::{Location, Settings, Stop, TransferManager, TransferResult, crc64, open};

fn settings() -> Settings {
    Settings { back_off: Duration::from_millis(1), memory_bytes: 64 << 20, verify: true, ..Settings::default() }
}

#[test]
fn files_go_there_and_back_whatever_happens_on_the_way() {
    let content = bytes(6_000_000);
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::write(&source, &content).unwrap();
    let fault = |on, what| vec![Fault { on: Some(on), after: 1, times: 2, what }];
    let faults = [
        vec![],
        fault(RequestKind::PutBlock, Misdeed::CutUpload { after_bytes: 100_000 }),
        fault(RequestKind::PutBlock, Misdeed::Refused { status: 503, retry_after_s: Some(0) }),
        fault(RequestKind::PutBlock, Misdeed::FlippedUpload { byte: 1000 }),
        fault(RequestKind::PutBlock, Misdeed::AnswerLost),
        fault(RequestKind::GetObject, Misdeed::CutDownload { after_bytes: 1000 }),
        vec![Fault { on: Some(RequestKind::Commit), after: 0, times: 1, what: Misdeed::AnswerLost }],
    ];
    for served in one_of_each() {
        for faults in faults.clone() {
            let running = start(Served { faults: faults.clone(), ..served.clone() });
            let place: Location = open(&address(&running, "a b/ü"), &options_for(&running)).unwrap();
            let manager = TransferManager::new(settings(), Stop::default(), Box::new(()));
            let what = format!("{:?} {faults:?}", running.store().dialect);
            let put = run(manager.put_file(&source, &place)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!((put.crc64, put.verified), (Some(crc64(&content)), true), "{what}");
            assert!(put.parts > 1 && running.object("bucket", "a b/ü").unwrap() == content, "{what}");
            assert_eq!(running.uploads("bucket"), 0, "{what}");
            let got = run(manager.get_file(&place, &target)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(got.crc64, Some(crc64(&content)), "{what}");
            assert!(fs::read(&target).unwrap() == content, "{what}");
            fs::remove_file(&target).unwrap();
        }
    }
}

#[test]
fn a_stream_goes_there_and_an_upload_that_fails_is_given_up() {
    let content = bytes(6_000_000);
    for served in one_of_each() {
        let full = Fault {
            on: Some(RequestKind::PutBlock),
            after: 1,
            times: 1000,
            what: Misdeed::Refused { status: 403, retry_after_s: None },
        };
        for faults in [vec![], vec![full]] {
            let is_right = faults.is_empty();
            let running = start(Served { faults, ..served.clone() });
            let place: Location = open(&address(&running, "stream"), &options_for(&running)).unwrap();
            let manager = TransferManager::new(settings(), Stop::default(), Box::new(()));
            let result = run(manager.put_stream(&mut &content[..], &place));
            assert_eq!(result.is_ok(), is_right, "{result:?}");
            assert_eq!(running.object("bucket", "stream"), is_right.then(|| content.clone()));
        }
    }
}

/// Uploads a file, or a stream, of `bytes_count` bytes with these settings. Returns the result.
fn put(served: Served, bytes_count: usize, settings: Settings, is_stream: bool) -> TransferResult {
    let content = bytes(bytes_count);
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::write(&source, &content).unwrap();
    let running = start(served);
    let place: Location = open(&address(&running, "a"), &options_for(&running)).unwrap();
    let manager = TransferManager::new(settings, Stop::default(), Box::new(()));
    let result = run(async {
        match is_stream {
            true => manager.put_stream(&mut &content[..], &place).await,
            false => manager.put_file(&source, &place).await,
        }
    });
    assert!(running.object("bucket", "a").unwrap() == content);
    result.unwrap()
}

/// Tests real connections: with small parts, with one request, and with parts that can't be small. Checks only a lower
/// bound of the duration, because a busy machine is slower.
#[test]
fn a_limit_on_bandwidth_is_kept() {
    for (served, limit, length, at_once_s) in [
        (Served::azure(), 4_000_000, 2_000_000, 0.25),
        (Served::s3(), 20_000_000, 5_000_000, 0.04),
        (Served::s3(), 20_000_000, 6_000_000, 0.04),
    ] {
        let dialect = served.dialect;
        let result = put(served, length, Settings { limit_bytes_per_s: Some(limit), ..settings() }, false);
        // The limit delays the start of each part or slice. So it does not delay the last bytes, which are sent at
        // once.
        let least_s = length as f64 / limit as f64 - at_once_s;
        assert!(result.elapsed_s >= least_s, "{dialect:?}, {length} bytes: {result:?}");
    }
}

/// The rate starts at 250 kB/s, and grows by at most 25 % every 50 ms. So five megabytes take at least a second. To
/// keep this rate, the first request of an upload to S3 and the parts of a stream must be sent in slices.
#[test]
fn a_gentle_transfer_begins_slowly() {
    for (served, is_stream) in [(Served::s3(), false), (Served::azure(), true)] {
        let dialect = served.dialect;
        let gentle = Some(Duration::from_millis(60));
        let result = put(served, 5_000_000, Settings { gentle, verify: false, ..settings() }, is_stream);
        assert!(result.elapsed_s >= 0.9, "{dialect:?}: {result:?}");
    }
}
