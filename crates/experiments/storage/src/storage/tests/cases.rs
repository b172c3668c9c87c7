//! Tests of the situations in which other benchmarks failed, according to public reports.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ascertain_engine::experiment::Status;
use ascertain_engine::finding::StoreLimit;
use ascertain_sys::testing::wait_until;

use super::super::*;
use super::stub::{Answer, Stub};
use super::*;

const MS: Duration = Duration::from_millis(1);

fn at(stub: &Stub, levels: &[(&str, Level)]) -> Arm {
    let levels: Vec<(&str, Level)> = levels.iter().cloned().chain([("url", (&*stub.url()).into())]).collect();
    arm(URL, &levels)
}

/// The time of an object in parts is from the first request to the answer of the last one, which completes the upload.
#[test]
fn an_object_in_parts_has_the_time_of_all_requests() {
    let stub = Stub::new(|request| match &*request.method {
        "DELETE" | "GET" | "HEAD" => Answer::new(200, ""),
        _ => Answer::new(200, "<R><UploadId>u</UploadId><ETag>\"e\"</ETag></R>").after(10 * MS),
    });
    let levels = [("operation", UPLOAD.into()), ("size", Level::from(64 << 20)), ("part", (8 << 20).into())];
    let out = open(&at(&stub, &levels)).unwrap().measure(1).unwrap();
    let kinds = |method: &str| stub.seen().iter().filter(|request| request.method == method).count();
    // Both the check and the trial start an upload, send eight parts, and complete it.
    assert_eq!((kinds("POST"), kinds("PUT"), kinds("DELETE")), (4, 16, 2));
    assert!(values(&out, TIME)[0] >= 100e6, "{out:?}");
    assert!(phases_of(&out).is_empty(), "the phases of the last request are not those of the object");
}

fn phases_of(out: &Samples) -> Vec<f64> {
    values(out, PHASE)
}

/// Quick refusals do not make a store look fast.
#[test]
fn refusals_are_not_times_of_answers() {
    let reads = AtomicU64::new(0);
    let stub = Stub::store(move |request, answer| {
        if request.method != "GET" || request.path.contains('?') {
            return answer;
        }
        // The first read checks the object. Then seven of ten are refused.
        match reads.fetch_add(1, Ordering::Relaxed) {
            0 => answer,
            number if number % 10 < 7 => Answer::new(429, "<Error><Code>TooManyRequests</Code></Error>"),
            _ => answer.after(50 * MS),
        }
    });
    let mut opened = open(&at(&stub, &[("size", Level::from(1_000))])).unwrap();
    let out = opened.measure(20).unwrap();
    let answered = values(&out, ANSWERED);
    assert!(answered.len() == 6 && answered.iter().all(|ns| *ns >= 50e6), "{answered:?}");
    let censored = out.iter().filter(|sample| sample.metric == TIME && sample.status != Status::Ok).count();
    assert_eq!(censored, 14);
    let first_bytes: Vec<_> = out.iter().filter(|sample| sample.metric == FIRST_BYTE).collect();
    let good: Vec<_> = first_bytes.iter().filter(|sample| sample.status == Status::Ok).collect();
    assert_eq!((first_bytes.len(), good.len()), (20, 6), "the body of a refusal is not the object");
    assert!(good.iter().all(|sample| sample.value >= 50e6));
    assert_eq!(out.iter().filter(|sample| sample.metric == PHASE && &*sample.key == "5 header").count(), 6);
    assert_eq!(values(&out, INCOMPLETE).iter().sum::<f64>(), 14.0);
    let is_incomplete = |remark: &Remark| matches!(remark, Remark::Incomplete { .. });
    let Some(Remark::Incomplete { requests, refused, .. }) = opened.remark(is_incomplete) else { panic!() };
    assert_eq!((requests, refused), (20, vec![(429, 14)]));
    let limits = Remark::Limits { limits: vec![StoreLimit::Refusals { status: 429, code: Some("TooManyRequests".into()), count: 14 }] };
    assert_eq!(opened.remark(|remark| matches!(remark, Remark::Limits { .. })), Some(limits));
    let reads = stub.seen().iter().filter(|request| request.method == "GET" && !request.path.contains('?')).count();
    assert_eq!(reads, 21, "no request is repeated");
}

/// A store that refuses requests is not named faster, however quick its other answers are.
#[test]
fn a_store_that_refuses_is_not_named_faster() {
    let slow = Stub::store(|request, answer| if request.method == "GET" { answer.after(2 * MS) } else { answer });
    let reads = AtomicU64::new(0);
    let refusing = Stub::store(move |request, answer| {
        let is_read = request.method == "GET" && !request.path.contains('?');
        match is_read && reads.fetch_add(1, Ordering::Relaxed) % 5 == 4 {
            true => Answer::new(503, "<Error><Code>SlowDown</Code></Error>"),
            false => answer,
        }
    });
    let pair = format!("{},{}", refusing.url(), slow.url());
    let levels = [("pair", (&*pair).into()), ("smallest", Level::from(1_000)), ("largest", 1_000.into())];
    let mut opened = open(&arm(CROSSOVER, &levels)).unwrap();
    let mut found = (Vec::new(), Vec::new());
    // The number of requests of a trial depends on how busy the machine is.
    wait_until("the store refuses requests", || {
        opened.measure(2).unwrap();
        let Some(Remark::Crossover { ranges, incomplete, .. }) = opened.remark(|_| true) else { panic!() };
        found = (ranges, incomplete);
        !found.1.is_empty()
    });
    let (ranges, incomplete) = found;
    assert!(ranges.iter().all(|range| range.winner.as_deref() != Some(&*refusing.url())), "{ranges:?}");
    assert!(incomplete.iter().all(|(store, ..)| *store == refusing.url()) && !incomplete.is_empty());
}

/// The bytes of an object in compressed form are those on the wire.
#[test]
fn a_compressed_object_counts_its_bytes_on_the_wire() {
    let stub = Stub::new(|_| Answer::new(200, vec![7; 9_750]).header("Content-Encoding", "gzip"));
    let out = open(&at(&stub, &[("key", "k".into())])).unwrap().measure(2).unwrap();
    for (time, throughput) in values(&out, TIME).iter().zip(values(&out, THROUGHPUT)) {
        assert!((throughput * time * 1e-9 - 9_750.0).abs() < 1e-6);
    }
    assert_eq!(values(&out, ENCODED), [1.0; 2]);
    assert!(stub.seen().iter().all(|request| ["GET", "HEAD"].contains(&&*request.method)), "nothing is written");
}

/// An object at a web address is read without a signature, and nothing is written.
#[test]
fn an_object_of_a_web_server_is_only_read() {
    let stub = Stub::new(|_| Answer::new(200, vec![7; 5_000]));
    let url = format!("http://{}/file", stub.address);
    let levels = [("url", (&*url).into()), ("concurrency", Level::from(3)), ("requests", 9.into())];
    let out = open(&arm(URL, &levels)).unwrap().measure(1).unwrap();
    assert_eq!((values(&out, TIME).len(), values(&out, INCOMPLETE)), (9, vec![0.0]));
    assert!(stub.seen().iter().all(|request| request.method == "GET" && request.path == "/file"));
}

/// A short answer and a timeout have censored times, and do not end the measurement.
#[test]
fn short_answers_and_timeouts_are_censored() {
    let reads = AtomicU64::new(0);
    let stub = Stub::store(move |request, mut answer| {
        if request.method == "GET" && !request.path.contains('?') {
            match reads.fetch_add(1, Ordering::Relaxed) {
                1 => answer.cut_after = Some(300),
                2 => answer.delay = Duration::from_secs(600),
                _ => {}
            }
        }
        answer
    });
    // The store delays only the request that is to time out. All others have a limit of a minute.
    let mut opened = open(&at(&stub, &[("size", Level::from(1_000))])).unwrap();
    opened.session.verify(0).unwrap();
    let mut out = Samples::default();
    for (number, limit) in [(0, 60_000 * MS), (1, 3_000 * MS), (2, 60_000 * MS)] {
        opened.session.set_limit(limit);
        opened.session.measure(0, &Trial { number, seed: number }, &mut out).unwrap();
    }
    let statuses: Vec<Status> = out.iter().filter(|sample| sample.metric == TIME).map(|sample| sample.status).collect();
    assert_eq!(statuses, [Status::Censored, Status::Censored, Status::Ok]);
    assert!(values(&out, TIME)[1] >= 1e9);
    let is_incomplete = |remark: &Remark| matches!(remark, Remark::Incomplete { .. });
    let Some(Remark::Incomplete { timed_out, short, .. }) = opened.remark(is_incomplete) else { panic!() };
    assert_eq!((timed_out, short), (1, 1));
}

/// A size whose objects could not be written is prepared again when the arm is measured again.
#[test]
fn a_size_that_could_not_be_prepared_is_measured_later() {
    let is_down = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let of_stub = is_down.clone();
    let stub = Stub::store(move |request, answer| {
        // The probe whether both addresses are one store has an empty body.
        match request.method == "PUT" && !request.body.is_empty() && of_stub.load(Ordering::Relaxed) {
            true => Answer::new(403, "<Error><Code>AccessDenied</Code></Error>"),
            false => answer,
        }
    });
    let pair = format!("{0},{0}/other", stub.url());
    let levels = [("pair", (&*pair).into()), ("smallest", Level::from(100)), ("largest", 100.into())];
    let mut opened = open(&arm(CROSSOVER, &levels)).unwrap();
    assert!(opened.measure(1).is_err());
    is_down.store(false, Ordering::Relaxed);
    assert!(!values(&opened.measure(2).unwrap(), FIRST_TIME).is_empty());
}

/// A store that refuses single requests for now does not end an arm: requests that are not timed are repeated. An arm is
/// prepared once.
#[test]
fn requests_before_the_trials_are_repeated() {
    for (object, operation) in [("warm", DOWNLOAD), ("cold", DOWNLOAD), ("warm", UPLOAD)] {
        let (reads, puts) = (AtomicU64::new(0), AtomicU64::new(0));
        let stub = Stub::store(move |request, answer| {
            let count = match &*request.method {
                "GET" if !request.path.contains('?') => &reads,
                "PUT" => &puts,
                _ => return answer,
            };
            match count.fetch_add(1, Ordering::Relaxed) {
                0 => Answer::new(503, "<Error><Code>SlowDown</Code></Error>"),
                _ => answer,
            }
        });
        let levels = [("size", 1_000.into()), ("object", object.into()), ("operation", operation.into())];
        let mut opened = open(&at(&stub, &levels)).unwrap();
        opened.session.verify(0).unwrap();
        let requests = stub.seen().len();
        opened.session.verify(0).unwrap();
        assert_eq!(stub.seen().len(), requests, "{object} {operation}");
        assert_eq!(values(&opened.measure(1).unwrap(), INCOMPLETE), [0.0], "{object} {operation}");
    }
}
