//! Tests of complete uploads, to our own stores and to other ones.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ascertain_engine::experiment::{Experiment, Level};
use ascertain_experiments_networks::links;
use ascertain_netlab::store::{Fault, Kind, Misdeed, RunningStore, Store as Serving};
use ascertain_sys::testing::or_left_out;

use super::super::stores::{is_available, options_for};
use super::super::{AZURE, GCS, ONE_STREAM, S3, SPEC, Transfer};
use super::*;

fn arm(variant: &str, levels: &[(&str, Level)]) -> Arm {
    let point = levels.iter().fold(SPEC.default_point(), |point, (factor, level)| point.with(factor, level.clone()));
    Transfer.trimmed(&Arm { variant: variant.into(), point })
}

/// Opens a session with one arm that uses the given store.
fn session(arm: &Arm, store: TargetStore, stop: Stop) -> TransferSession {
    // The session is opened without arms, because the test provides the store.
    let mut session = TransferSession::open(&[], &Setup { stop, ..Setup::default() }).unwrap();
    let source = Arc::new(Source::new(scaled(arm, "size").unwrap(), 1).unwrap());
    session.targets.push(ArmTarget {
        store: Rc::new(store),
        source,
        method: method(arm).unwrap(),
        scale: 1.0,
        name: "mine/1".into(),
    });
    session
}

fn measured(session: &mut TransferSession) -> Result<Samples, TargetError> {
    let mut out = Samples::default();
    session.verify(0)?;
    session.measure(0, &Trial { number: 0, seed: 7 }, &mut out)?;
    Ok(out)
}

fn value(out: &Samples, metric: usize) -> f64 {
    out.iter().find(|sample| sample.metric == metric).map(|sample| sample.value).unwrap()
}

fn metrics_of(out: &Samples) -> Vec<usize> {
    out.iter().map(|sample| sample.metric).collect()
}

fn elsewhere(serving: Serving) -> (RunningStore, TargetStore) {
    let scheme = match serving.dialect {
        ascertain_netlab::store::Dialect::Azure => "az",
        ascertain_netlab::store::Dialect::S3 => "s3",
        ascertain_netlab::store::Dialect::Gcs => "gs",
    };
    let running = serving.start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    let place = TargetStore::elsewhere(format!("{scheme}://bucket/mine/"), options_for(&running, None));
    (running, place)
}

/// Each variant reports exactly its own metrics, with an emulated link and also without one.
#[test]
fn ways_have_their_metrics() {
    let levels = [("size", Level::from(40_000_000)), ("rtt_ms", 20.into()), ("rate_kb_s", 20_000.into())];
    let plain = vec![TIME, BYTES, RATE, REQUESTS];
    let planned = vec![TIME, BYTES, RATE, REQUESTS, BLOCK, CONNECTIONS, EXPECTED, OFF, PROBED];
    for has_link in [true, false] {
        if has_link && or_left_out(links::is_available(&Default::default())).is_none() {
            continue;
        }
        for (variant, requests, metrics) in
            [(ONE_STREAM, Some(1.0), &plain), (BLOCKS, Some(40.0), &plain), (MODEL, None, &planned)]
        {
            let mut arm = arm(variant, &levels);
            if variant == MODEL {
                // The file has so many blocks that some are complete before the last ones are sent.
                arm.point = arm.point.with("size", 240_000_000);
            }
            let mut session = session(&arm, TargetStore::ours(&arm, has_link).unwrap(), Stop::default());
            let out = measured(&mut session).unwrap();
            assert_eq!(session.targets[0].store.object(&session.targets[0].name), None, "the object is removed");
            let all = metrics.iter().copied().chain([LATE, LATE + 1].into_iter().filter(|_| has_link));
            assert_eq!(metrics_of(&out), all.collect::<Vec<_>>(), "{arm}");
            assert_eq!(value(&out, BYTES), session.targets[0].source.bytes as f64);
            assert_eq!(value(&out, REQUESTS), requests.unwrap_or(value(&out, REQUESTS)));
            if variant == MODEL {
                assert!(value(&out, PROBED) > 0.0 && value(&out, PROBED) < 1.0, "{out:?}");
            }
            // A single stream needs at least the time for 2 MB at 20 MB/s, plus the time to connect and to send the
            // request.
            let least_ns = if variant == ONE_STREAM { 100e6 + 2.0 * 1e6 } else { 3.0 * 1e6 };
            assert!(value(&out, TIME) >= least_ns, "{arm} {has_link}: {out:?}");
            let carrier = session.facts(0).unwrap().get("carrier").unwrap().to_string();
            assert_eq!(carrier.starts_with("none"), !has_link, "{carrier}");
        }
    }
}

/// Before each transfer, the session waits until the token bucket is full. During a transfer, only the bytes that fit
/// into the bucket are sent faster than the rate.
#[test]
fn a_bucket_is_full_when_a_transfer_begins() {
    let levels = [("size", Level::from(40_000_000)), ("sum_mbit_s", 40.into()), ("burst", 20_000_000.into())];
    let none = [("burst", Level::from(1))];
    assert!(is_available(&arm(BLOCKS, &none)).is_err_and(|why| why.to_string().contains("sum_mbit_s")));
    if or_left_out(links::is_available(&Default::default())).is_none() {
        return;
    }
    // The file has 2 MB, and 1 MB fits into the bucket. After the transfer, the bucket is full again within a fifth of
    // a second.
    let arm = arm(BLOCKS, &levels);
    let mut session = session(&arm, TargetStore::ours(&arm, true).unwrap(), Stop::default());
    assert_eq!(session.targets[0].store.refill, Duration::from_millis(200));
    session.verify(0).unwrap();
    for _ in 0..2 {
        let (began, mut out) = (Instant::now(), Samples::default());
        session.measure(0, &Trial { number: 0, seed: 7 }, &mut out).unwrap();
        let time_ns = value(&out, TIME);
        assert!(time_ns >= 0.18e9, "{time_ns}");
        assert!(began.elapsed().as_nanos() as f64 >= 0.2e9 + time_ns, "it was not waited for");
    }
}

#[test]
fn arms_share_places_and_files() {
    let arms: Vec<Arm> = Transfer.table_arms().iter().map(|arm| Transfer.trimmed(arm)).collect();
    let session = TransferSession::open(&arms, &Setup::default()).unwrap();
    let targets = &session.targets;
    assert!(targets.iter().all(|target| Rc::ptr_eq(&target.store, &targets[0].store)));
    let alike = targets.iter().filter(|target| Arc::ptr_eq(&target.source, &targets[0].source)).count();
    assert_eq!((alike, targets.len()), (5, 14));
    // The source file has no name, so the kernel removes it at the end of the session.
    assert!(std::fs::read_link(targets[0].source.path()).unwrap().to_string_lossy().ends_with(" (deleted)"));
}

/// In a store that is not our own, nothing may remain after a measurement, whatever its outcome.
#[test]
fn of_somebodys_store_nothing_is_left() {
    for serving in [Serving::s3(), Serving::azure(), Serving::gcs()] {
        let dialect = serving.dialect;
        for variant in [ONE_STREAM, BLOCKS, MODEL] {
            let arm = arm(variant, &[("size", 12_000_000.into()), ("block", 6_000_000.into()), ("scale", 1.into())]);
            let (running, place) = elsewhere(serving.clone());
            measured(&mut session(&arm, place, Stop::default())).unwrap();
            let seen = running.seen();
            let is_left = || {
                let names: std::collections::BTreeSet<String> =
                    running.seen().into_iter().map(|seen| seen.key).collect();
                names.iter().any(|name| running.object("bucket", name).is_some()) || running.uploads("bucket") > 0
            };
            assert!(seen.iter().any(|seen| seen.kind == Kind::GetObject), "{dialect:?}: what was put is read back");
            assert!(seen.iter().any(|seen| seen.kind == Kind::DeleteObject) && !is_left(), "{dialect:?} {variant}");
        }
    }
}

#[test]
fn nor_where_somebody_asks_for_the_end() {
    for serving in [Serving::s3(), Serving::azure()] {
        for variant in [ONE_STREAM, BLOCKS, MODEL] {
            let arm = arm(variant, &[("size", 24_000_000.into()), ("block", 6_000_000.into()), ("scale", 1.into())]);
            // The transfer would take minutes, but a stop is requested after it has started.
            let (running, place) = elsewhere(Serving { bytes_per_s: Some(100_000), ..serving.clone() });
            let stop = Stop::new().unwrap();
            let mut session = session(&arm, place, stop.clone());
            let is_over = AtomicBool::new(false);
            let verified = thread::scope(|scope| {
                scope.spawn(|| {
                    let is_under_way = || running.seen().iter().any(|seen| seen.body_bytes > 0);
                    while !is_under_way() && !is_over.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(1));
                    }
                    stop.request();
                });
                let verified = session.verify(0);
                is_over.store(true, Ordering::Relaxed);
                verified
            });
            assert_eq!(verified, Err(TargetError::Interrupted));
            let name = &running.seen()[0].key;
            assert!(running.object("bucket", name).is_none() && running.uploads("bucket") == 0, "{variant}");
        }
    }
}

#[test]
fn what_is_not_what_was_sent_is_a_wrong_answer() {
    let (running, place) = elsewhere(Serving::azure());
    let arm = arm(ONE_STREAM, &[("size", 100_000.into()), ("scale", 1.into())]);
    let what = Misdeed::FlippedInStore { byte: 7 };
    running.add_fault(Fault { on: Some(Kind::PutObject), after: 0, times: 1, what: what.clone() });
    let error = measured(&mut session(&arm, place, Stop::default())).unwrap_err();
    assert_eq!(
        error,
        TargetError::WrongAnswer(
            "the store does not have the file that was sent: the bytes that were read back differ".into()
        )
    );

    let place = TargetStore::ours(&arm, false).unwrap();
    place.serving.as_ref().unwrap().add_fault(Fault { on: Some(Kind::PutObject), after: 0, times: 1, what });
    let error = measured(&mut session(&arm, place, Stop::default())).unwrap_err();
    assert_eq!(
        error,
        TargetError::WrongAnswer("the store does not have the file that was sent: the stored bytes differ".into())
    );
}

#[test]
fn what_a_store_does_not_take_is_unavailable() {
    let blocks = |levels: &[(&str, Level)]| is_available(&arm(BLOCKS, levels)).err().map(|why| why.to_string());
    for levels in [("speaks", S3), ("speaks", GCS), ("url", "s3://bucket/x"), ("url", "gs://bucket")] {
        let levels = [(levels.0, levels.1.into()), ("size", Level::from(200_000_000))];
        assert!(blocks(&levels).is_some_and(|why| why.contains("use Azure for smaller blocks")), "{levels:?}");
        assert!(is_available(&arm(ONE_STREAM, &levels)).is_ok());
        let [whole, large] = [20_000_000, 105_000_000].map(|bytes| {
            let block = [("size", Level::from(20_000_000)), ("block", bytes.into())];
            blocks(&[levels[0].clone()].into_iter().chain(block).collect::<Vec<_>>())
        });
        assert_eq!((whole, large), (None, None), "a single block may have any size");
    }
    assert_eq!(blocks(&[("speaks", AZURE.into())]), None);
    let url = SPEC.factors.iter().find(|factor| factor.name == "url").unwrap();
    for (level, is_one) in [
        ("none", true),
        ("s3://bucket/a", true),
        ("az://box", true),
        ("az://box/a?sig=secret", false),
        ("s3://key:secret@bucket/a", false),
        ("https://account.blob.core.windows.net/box", false),
    ] {
        assert_eq!(url.accepts.admits(&level.into()), is_one, "{level}");
    }
}
