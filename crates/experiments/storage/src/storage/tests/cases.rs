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

/// The time of an object in parts is from the first request to the answer of the last request, which completes the
/// upload.
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
    let limits = Remark::Limits {
        limits: vec![StoreLimit::Refusals { status: 429, code: Some("TooManyRequests".into()), count: 14 }],
    };
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

/// A store that refuses single requests for now does not end an arm: requests that are not timed are repeated. An arm
/// is prepared once.
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

/// Case 2: the times of one store do not rise with the size. Both crossings are found, each with its own winners.
#[test]
fn a_step_of_small_objects_gives_two_crossovers() {
    let delayed = |delay: fn(usize) -> u32| {
        Stub::store(move |request, answer| {
            let is_read = request.method == "GET" && !request.path.contains('?');
            let delay = if is_read { delay(answer.body.len()) } else { 0 };
            answer.after(delay * MS)
        })
    };
    let stepped = delayed(|bytes| if bytes <= 8_192 { 60 } else { (bytes / 1_000) as u32 });
    let steady = delayed(|_| 30);
    let pair = format!("{},{}", stepped.url(), steady.url());
    let levels = [("pair", (&*pair).into()), ("smallest", Level::from(1_000)), ("largest", 64_000.into())];
    let mut opened = open(&arm(CROSSOVER, &levels)).unwrap();
    let mut winners = Vec::new();
    wait_until("three ranges are decided", || {
        opened.measure(1).unwrap();
        let Some(Remark::Crossover { ranges, .. }) = opened.remark(|_| true) else { panic!() };
        winners = ranges.iter().filter_map(|range| range.winner.clone()).collect();
        winners.dedup();
        winners.len() == 3
    });
    assert_eq!(winners, [steady.url(), stepped.url(), steady.url()]);
}

/// Case 4, a neighbour: the parts of an upload take the time of an emulated store, too.
#[test]
fn parts_take_the_time_of_an_emulated_store() {
    let levels = [("operation", UPLOAD.into()), ("size", Level::from(40_000)), ("part", 10_000.into())];
    let out = open(&arm(S3, &levels)).unwrap().measure(1).unwrap();
    // Four parts, the start and the end: each takes at least the quickest time to the first byte, which is scaled.
    let quickest_ns = 0.8 * 16.2e6 / 10.0;
    assert!(values(&out, TIME)[0] >= 6.0 * quickest_ns, "{out:?}");
}

/// Case 6, two neighbours: the store describes another length than it sends, because it compresses the object on the
/// way, or unpacks it.
#[test]
fn the_length_of_an_object_is_that_of_its_answer() {
    for (described, sent, encoding) in [(2_000_000, 9_750, "gzip"), (9_750, 2_000_000, "identity")] {
        let stub = Stub::new(move |request| match &*request.method {
            "HEAD" => Answer::new(200, vec![7; described]),
            _ => Answer::new(200, vec![7; sent]).header("Content-Encoding", encoding),
        });
        let out = open(&at(&stub, &[("key", "k".into())])).unwrap().measure(2).unwrap();
        assert_eq!(values(&out, INCOMPLETE), [0.0; 2], "{encoding}");
        for (time, throughput) in values(&out, TIME).iter().zip(values(&out, THROUGHPUT)) {
            assert!((throughput * time * 1e-9 - sent as f64).abs() < 1e-3, "{encoding}");
        }
    }
}

/// A server that ignores the range sends the whole object, whose time is not that of the range.
#[test]
fn a_whole_object_is_no_range() {
    let stub = Stub::store(|_, answer| answer);
    let error = refusal(&at(&stub, &[("size", Level::from(1_000)), ("operation", RANGED.into())]));
    assert!(error.contains("the whole object instead of a range"), "{error}");
}

/// A cold object is read before any other request for it. A warm connection needs a request for another key.
#[test]
fn a_cold_object_is_read_first() {
    let stub = Stub::store(|_, answer| answer);
    let levels = [("size", Level::from(1_000)), ("object", "cold".into()), ("concurrency", 2.into())];
    open(&at(&stub, &levels)).unwrap().measure(2).unwrap();
    let mut by_key = std::collections::BTreeMap::<String, Vec<String>>::new();
    for request in stub.seen().into_iter().filter(|request| request.path.contains("/0")) {
        by_key.entry(request.path).or_default().push(request.method);
    }
    assert_eq!(by_key.len(), 6);
    assert!(by_key.values().all(|methods| methods[..] == ["PUT", "GET", "DELETE"]), "{by_key:?}");
    let is_warming = |request: &super::stub::Request| request.method == "HEAD" && request.path.ends_with("/unwritten");
    assert_eq!(stub.seen().into_iter().filter(is_warming).count(), 6);
}

/// The idle time before a request is that of the level, also if it is longer than other programs keep a connection, and
/// for every stream.
#[test]
fn a_kept_connection_is_idle_for_the_gap() {
    let stub = Stub::store(|_, answer| answer);
    let levels = [("size", Level::from(1_000)), ("gap_ms", 4_200.into()), ("concurrency", 3.into())];
    let out = open(&at(&stub, &levels)).unwrap().measure(1).unwrap();
    assert_eq!((values(&out, REOPENED), values(&out, GAP).len()), (vec![0.0], 3));
    assert!(values(&out, GAP).iter().all(|ns| *ns >= 4.2e9), "{:?}", values(&out, GAP));
}

/// In an open loop, a request that waits for the previous request counts from when it was due.
#[test]
fn a_late_request_counts_from_when_it_was_due() {
    let stub = Stub::store(|request, answer| match request.method == "GET" && !request.path.contains('?') {
        true => answer.after(40 * MS),
        false => answer,
    });
    let levels = [("size", Level::from(1_000)), ("rate", 1_000.into()), ("requests", 4.into())];
    let out = open(&at(&stub, &levels)).unwrap().measure(1).unwrap();
    // The requests are due at 0, 1, 2 and 3 ms, and sent at 0, 40, 80 and 120 ms at the earliest.
    let least_ms = [40.0, 79.0, 118.0, 157.0];
    for metric in [TIME, FIRST_BYTE] {
        let times = values(&out, metric);
        assert!(times.iter().zip(least_ms).all(|(ns, ms)| *ns >= ms * 1e6), "{times:?}");
    }
    // The wait for the due time costs no CPU time of the client.
    let limits = |remark: &Remark| matches!(remark, Remark::Limits { limits } if !limits.is_empty());
    let mut waiting = open(&at(&stub, &[("rate", Level::from(20)), ("requests", 4.into())])).unwrap();
    waiting.measure(1).unwrap();
    assert_eq!(waiting.remark(limits), None);
}

/// A damaged answer is noticed although another request of the trial was refused.
#[test]
fn content_is_checked_next_to_a_refusal() {
    let reads = AtomicU64::new(0);
    let stub = Stub::store(move |request, mut answer| {
        if request.method == "GET" && !request.path.contains('?') {
            match reads.fetch_add(1, Ordering::Relaxed) {
                2 => return Answer::new(503, "<Error><Code>SlowDown</Code></Error>"),
                3 => answer.body[17] ^= 1,
                _ => {}
            }
        }
        answer
    });
    let levels = [("size", Level::from(1_000)), ("concurrency", 2.into())];
    let error = open(&at(&stub, &levels)).unwrap().measure(1).unwrap_err();
    assert!(matches!(error, TargetError::WrongAnswer(_)), "{error}");
}
