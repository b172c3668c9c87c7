//! Tests of downloads over emulated links and from users' addresses.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ascertain_engine::experiment::{Experiment, Level};
use ascertain_netlab::http::Misbehaviour;
use ascertain_sys::testing::{or_left_out, wait_until};

use super::super::{ALONE, FAIR, Favouritism};
use super::*;
use crate::links::{OURS, retry_until_measured};

/// Measured time in milliseconds, shorter than the default. If nothing arrives in this time because the machine is
/// busy, the measurement is repeated.
const MEASURED_MS: u64 = 100;

fn arm(variant: &str, levels: &[(&str, Level)]) -> Arm {
    let point = Favouritism.spec().default_point().with("measured_ms", MEASURED_MS);
    let point = levels.iter().fold(point, |point, (factor, level)| point.with(factor, level.clone()));
    Arm { variant: variant.into(), point }
}

fn measured(arms: &[Arm], of: ArmId) -> Result<Samples, TargetError> {
    let mut out = Samples::default();
    Flows::open(arms, &Setup::default())?.measure(of, &Trial { number: 0, seed: 7 }, &mut out)?;
    Ok(out)
}

#[test]
fn a_cheating_link_throttles_what_is_alone() {
    for link in [FAIR, CHEATING] {
        let arms = [ALONE, BESIDE_TEST].map(|variant| arm(variant, &[("link", link.into())]));
        if or_left_out(is_available(&arms[0])).is_none() {
            return;
        }
        let flows = Flows::open(&arms, &Setup::default()).unwrap();
        assert!(Rc::ptr_eq(&flows.arms[0].sources, &flows.arms[1].sources), "the arms must share their sources");
        let arm = &flows.arms[0];
        let throttled = || arm.sources.link.as_ref().unwrap().report().unwrap().to_near.throttled.segments;
        let measure = || {
            let throughput = retry_until_measured(|| arm.throughputs(&Stop::default())).unwrap();
            assert!(throughput[0] > 0.0 && throughput[1] == 0.0, "{throughput:?}");
        };
        measure();
        match link {
            // The link throttles once the burst is used up.
            CHEATING => wait_until("the link throttles", || {
                measure();
                throttled() > 0
            }),
            _ => assert_eq!(throttled(), 0),
        }
    }
}

/// The link of a cheating provider must not throttle traffic while the port of the speed test is in use.
#[test]
fn a_disguised_download_is_not_throttled() {
    let arm = arm(DISGUISED, &[("link", CHEATING.into())]);
    if or_left_out(is_available(&arm)).is_none() {
        return;
    }
    let flows = Flows::open(&[arm], &Setup::default()).unwrap();
    let arm = &flows.arms[0];
    let throughput = retry_until_measured(|| arm.throughputs(&Stop::default())).unwrap();
    assert!(throughput[0] > 0.0);
    assert_eq!(arm.sources.link.as_ref().unwrap().report().unwrap().to_near.throttled.segments, 0);
}

/// Each variant must have values of its metrics, and of no others.
#[test]
fn both_variants_have_their_metrics() {
    let arms = [ALONE, BESIDE_TEST].map(|variant| arm(variant, &[]));
    if or_left_out(is_available(&arms[0])).is_none() {
        return;
    }
    for (of, metrics) in
        [vec![THROUGHPUT, LATE, LATE + 1], vec![THROUGHPUT, TEST_THROUGHPUT, LATE, LATE + 1]].into_iter().enumerate()
    {
        wait_until("bytes arrive in each download", || {
            let out = retry_until_measured(|| measured(&arms, of)).unwrap();
            assert_eq!(out.iter().map(|sample| sample.metric).collect::<Vec<_>>(), metrics);
            out.iter().take(metrics.len() - 2).all(|sample| sample.value > 0.0)
        });
    }
}

/// Tests downloads from users' addresses, with and without errors. These need no emulated link.
#[test]
fn somebodys_files_are_downloaded_or_said_not_to_be() {
    let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(listener(), None).unwrap();
    let own = format!("http://{}/bytes/1000000000000", server.address());
    let at = |url: &str, test: &str| [("url", Level::from(url)), ("speedtest", Level::from(test))];
    let asked = |variant, url: &str, test: &str| measured(&[arm(variant, &at(url, test))], 0);
    let seen = retry_until_measured(|| asked(BESIDE_TEST, &own, &own)).unwrap();
    assert_eq!(seen.iter().map(|sample| sample.metric).collect::<Vec<_>>(), [THROUGHPUT, TEST_THROUGHPUT]);
    // A small file is downloaded repeatedly.
    assert!(retry_until_measured(|| asked(ALONE, &own.replace("1000000000000", "1000"), &own)).is_ok());

    let wrong = own.replace("bytes", "none");
    let gone = format!("http://{}/", listener().local_addr().unwrap());
    let bad = |how| Server::misbehaving(listener(), how).unwrap();
    let [mute, short] = [Misbehaviour::Silent, Misbehaviour::SendsLess].map(bad);
    let [mute, short] = [mute, short].map(|server| (format!("http://{}/", server.address()), server));
    for (variant, url, test, says) in [
        (ALONE, &*wrong, &*own, "status 404"),
        (BESIDE_TEST, &own, &wrong, "status 404"),
        (ALONE, &gone, &own, "refused"),
        (BESIDE_TEST, &own, &gone, "refused"),
        (ALONE, &mute.0, &own, "nothing arrived"),
        (ALONE, &short.0, &own, "in the middle of the answer"),
    ] {
        let error = asked(variant, url, test).unwrap_err().to_string();
        let named = if url == own { test } else { url };
        assert!(error.contains(says) && error.contains(named), "{url} {test}: {error}");
    }
    for (url, test, says) in [
        (&*own, OURS, "must be given together"),
        (OURS, &own, "must be given together"),
        ("example.com", &own, "must begin with http://"),
    ] {
        let why = is_available(&arm(ALONE, &at(url, test))).unwrap_err().to_string();
        assert!(why.contains(says), "{url} {test}: {why}");
    }
}

/// Some servers close a connection after each answer, others after a thousand.
#[test]
fn a_download_goes_on_over_another_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let accepted = Arc::new(AtomicUsize::new(0));
    let counted = accepted.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || {
                let mut request = [0; 1 << 12];
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n";
                // The client may have closed the connection.
                let _ = stream.read(&mut request);
                let _ = stream.write_all(&[head.as_bytes(), &[7; 1_000]].concat());
            });
        }
    });
    let arm = arm(BESIDE_TEST, &[("url", (&*url).into()), ("speedtest", (&*url).into())]);
    wait_until("there were more connections than flows", || {
        let seen = retry_until_measured(|| measured(std::slice::from_ref(&arm), 0)).unwrap();
        assert!(seen.iter().all(|sample| sample.value > 0.0));
        accepted.load(Ordering::Relaxed) > 20
    });
}

/// If the user gives addresses, arms must have no levels of the emulated link, and there must be a claim about the
/// user's provider.
#[test]
fn somebodys_provider_is_one_arm_each_and_has_a_claim() {
    let urls = [("url", Level::from("http://a.example/")), ("speedtest", Level::from("http://b.example/"))];
    let arms = Favouritism.table_arms().into_iter().map(|arm| {
        let point = urls.iter().fold(arm.point, |point, (factor, level)| point.with(factor, level.clone()));
        Favouritism.trimmed(&Arm { point, ..arm })
    });
    let mut arms: Vec<Arm> = arms.collect();
    arms.dedup();
    arms.sort();
    arms.dedup();
    assert_eq!(arms.iter().map(|arm| &*arm.variant).collect::<Vec<_>>(), [ALONE, BESIDE_TEST, DISGUISED]);
    assert!(arms.iter().all(|arm| arm.point.get("rtt_ms").is_none() && arm.point.get("link").is_none()));
    let claims = Favouritism.claims_about(&arms);
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].arms(), arms[..2].iter().collect::<Vec<_>>());
    assert!(
        Favouritism.claims_about(&Favouritism.table_arms()).is_empty(),
        "an emulated link has no claim about a user's provider"
    );
}

#[test]
fn it_ends_when_it_is_told_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(listener, None).unwrap();
    let own = Level::from(&*format!("http://{}/bytes/1000000000000", server.address()));
    let setup = Setup { stop: Stop::new().unwrap(), ..Setup::default() };
    let arm = arm(BESIDE_TEST, &[("url", own.clone()), ("speedtest", own), ("measured_ms", 60_000.into())]);
    let mut flows = Flows::open(&[arm], &setup).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            // The server has connections of the measured download and of the four streams.
            wait_until("all downloads have a connection", || server.stats().connections >= 5);
            setup.stop.request();
        });
        assert_eq!(flows.verify(0), Err(TargetError::Interrupted));
    });
}
