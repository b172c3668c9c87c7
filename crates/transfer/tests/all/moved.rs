//! Files to and from S3, Azure and GCS, which verify signatures and sums, over real connections that break.

use std::fs;
use std::time::Duration;

use crate::common::{address, bytes, one_of_each, options_for, run, start};
use ascertain_netlab::store::{Fault, Kind as Asked, Misdeed, Store as Served};
use ascertain_transfer::{Moved, Mover, Place, Stop, Terms, crc64, open};

fn terms() -> Terms {
    Terms { back_off: Duration::from_millis(1), memory_bytes: 64 << 20, verify: true, ..Terms::default() }
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
        fault(Asked::PutBlock, Misdeed::CutUpload { after_bytes: 100_000 }),
        fault(Asked::PutBlock, Misdeed::Refused { status: 503, retry_after_s: Some(0) }),
        fault(Asked::PutBlock, Misdeed::FlippedUpload { byte: 1000 }),
        fault(Asked::PutBlock, Misdeed::AnswerLost),
        fault(Asked::GetObject, Misdeed::CutDownload { after_bytes: 1000 }),
        vec![Fault { on: Some(Asked::Commit), after: 0, times: 1, what: Misdeed::AnswerLost }],
    ];
    for served in one_of_each() {
        for faults in faults.clone() {
            let running = start(Served { faults: faults.clone(), ..served.clone() });
            let place: Place = open(&address(&running, "a b/ü"), &options_for(&running)).unwrap().into();
            let mover = Mover::new(terms(), Stop::default(), Box::new(()));
            let what = format!("{:?} {faults:?}", running.store().dialect);
            let put = run(mover.put_file(&source, &place)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!((put.crc64, put.verified), (Some(crc64(&content)), true), "{what}");
            assert!(put.blocks > 1 && running.object("bucket", "a b/ü").unwrap() == content, "{what}");
            assert_eq!(running.uploads("bucket"), 0, "{what}");
            let got = run(mover.get_file(&place, &target)).unwrap_or_else(|error| panic!("{what}: {error}"));
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
            on: Some(Asked::PutBlock),
            after: 1,
            times: 1000,
            what: Misdeed::Refused { status: 403, retry_after_s: None },
        };
        for faults in [vec![], vec![full]] {
            let is_right = faults.is_empty();
            let running = start(Served { faults, ..served.clone() });
            let place: Place = open(&address(&running, "stream"), &options_for(&running)).unwrap().into();
            let mover = Mover::new(terms(), Stop::default(), Box::new(()));
            let moved = run(mover.put_stream(&mut &content[..], &place));
            assert_eq!(moved.is_ok(), is_right, "{moved:?}");
            assert_eq!(running.object("bucket", "stream"), is_right.then(|| content.clone()));
        }
    }
}

/// What became of a file, or a stream, of so many bytes that is put under these terms.
fn put(served: Served, bytes_count: usize, terms: Terms, is_stream: bool) -> Moved {
    let content = bytes(bytes_count);
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::write(&source, &content).unwrap();
    let running = start(served);
    let place: Place = open(&address(&running, "a"), &options_for(&running)).unwrap().into();
    let mover = Mover::new(terms, Stop::default(), Box::new(()));
    let moved = run(async {
        match is_stream {
            true => mover.put_stream(&mut &content[..], &place).await,
            false => mover.put_file(&source, &place).await,
        }
    });
    assert!(running.object("bucket", "a").unwrap() == content);
    moved.unwrap()
}

/// Over real connections: in blocks that are small enough, by one request, and in blocks that must be larger. A machine
/// that is busy is slower.
#[test]
fn a_limit_on_bandwidth_is_kept() {
    for (served, limit, length, at_once_s) in [
        (Served::azure(), 4_000_000, 2_000_000, 0.25),
        (Served::s3(), 20_000_000, 5_000_000, 0.04),
        (Served::s3(), 20_000_000, 6_000_000, 0.04),
    ] {
        let dialect = served.dialect;
        let moved = put(served, length, Terms { limit_bytes_per_s: Some(limit), ..terms() }, false);
        // What goes at once is not paid for when the last of it has gone.
        let least_s = length as f64 / limit as f64 - at_once_s;
        assert!(moved.elapsed_s >= least_s, "{dialect:?}, {length} bytes: {moved:?}");
    }
}

/// It begins at 250 kB/s and becomes 25 % faster at most each 50 ms: with that, five megabytes take a second at least.
/// The first request has a block that is larger than what may go at once, and so have streams.
#[test]
fn a_gentle_transfer_begins_slowly() {
    for (served, is_stream) in [(Served::s3(), false), (Served::azure(), true)] {
        let dialect = served.dialect;
        let gentle = Some(Duration::from_millis(60));
        let moved = put(served, 5_000_000, Terms { gentle, verify: false, ..terms() }, is_stream);
        assert!(moved.elapsed_s >= 0.9, "{dialect:?}: {moved:?}");
    }
}
