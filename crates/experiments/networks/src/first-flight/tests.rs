//! Tests of pages over emulated links and from users' addresses.

use std::net::TcpListener;

use ascertain_engine::experiment::Experiment;
use ascertain_netlab::http::{Misbehaviour, Server, TlsVersion};
use ascertain_sys::testing::{or_left_out, wait_until};

use super::super::servers::is_available;
use super::super::{FirstFlight, NEW, SERVER_VARIANTS};
use super::*;

const RTT_MS: u64 = 20;

fn arm(variant: &str, levels: &[(&str, u64)]) -> Arm {
    let point = FirstFlight.spec().default_point().with("rtt_ms", RTT_MS);
    let point = levels.iter().fold(point, |point, (factor, level)| point.with(factor, *level));
    Arm { variant: variant.into(), point }
}

fn open(arm: &Arm) -> Option<PageArm> {
    or_left_out(is_available(arm))?;
    Pages::open(std::slice::from_ref(arm), &Setup::default()).unwrap().arms.pop()
}

/// An answer may be late but never early, so the search may find too small a page, but never too large a page.
/// Simulations in `cliff.rs`, and claims such as `first-flight.goal-http-cliff-to-the-byte`, test that the size is
/// exact.
#[test]
fn no_cliff_is_larger_than_what_the_window_has_room_for() {
    for (variant, window, apart) in [("http", 10, 0), ("http", 4, 0), ("tls1.2", 10, 0), ("tls1.3", 10, 1)] {
        let Some(mut target) = open(&arm(variant, &[("window", window)])) else { return };
        let page = target.fetch(if window < 10 { 1_000 } else { 10_000 }).unwrap();
        let room = (window - apart) * target.window.segment_bytes;
        let expected = room - page.around_bytes - page.records_bytes;
        match target.cliff(0, &Stop::default()) {
            // If the client is paused between the handshake and the request, the page has the whole window, because the
            // tickets of TLS 1.3 no longer take a part of it.
            Ok(Cliff { body_bytes, .. }) => {
                assert!(apart > 0 || body_bytes <= expected, "{variant}: {body_bytes} of {expected}");
            }
            // The search finds nothing if the machine is very busy.
            Err(error) => assert!(error.to_string().contains("the search did not find the largest page"), "{error}"),
        }
        // A client on a busy machine may read two flights at once, or one flight in two parts.
        if apart == 0 {
            for more in [0, 1] {
                wait_until("the flights of the page are as expected", || {
                    let flights = target.fetch(expected + more).unwrap().flights;
                    (flights.over_bytes(), flights.trim_bytes()) == (more, more)
                });
            }
        }
    }
}

/// The assumed window must not influence the measured flights.
#[test]
fn flights_are_those_of_the_server_whatever_window_was_expected() {
    for (window, bytes) in [(20, 20_000), (4, 7_000)] {
        let Some(mut target) = open(&arm("http", &[("window", window)])) else { return };
        target.window.segments = 10;
        wait_until("the flights of the page are as expected", || {
            let page = target.fetch(bytes).unwrap();
            let Remark::Flights { first_segments, expected_segments, trim_bytes: trim, .. } =
                page.remark(target.window)
            else {
                panic!("another remark")
            };
            assert_eq!(expected_segments, 10);
            let all_bytes = bytes + page.around_bytes;
            let room = window * target.window.segment_bytes;
            let segments = window.min(all_bytes.div_ceil(target.window.segment_bytes));
            (trim, first_segments) == (all_bytes.saturating_sub(room), segments)
        });
    }
}

/// If the level is `resumed`, each connection after the first must resume the TLS session. Otherwise no connection may
/// resume one.
#[test]
fn a_session_is_new_or_resumed_as_it_was_asked_for() {
    for variant in ["tls1.3", "tls1.2", "nginx-tls1.3"] {
        for session in [NEW, RESUMED] {
            let mut arm = arm(variant, &[("rtt_ms", 1)]);
            arm.point = arm.point.with("session", session);
            let Some(target) = open(&arm) else { continue };
            for number in 0..3 {
                let stream = target.connect().unwrap();
                let mut connection = Connection::open(stream, &target.offer, &mut Phases::begin(now_ns())).unwrap();
                let is_resumed = connection.session().unwrap().is_resumed;
                assert_eq!(is_resumed, session == RESUMED && number > 0, "{variant} {session} {number}");
                connection
                    .send(&HttpRequest::get(&target.server.page(1).unwrap()), &mut Phases::begin(now_ns()))
                    .unwrap();
            }
        }
    }
}

/// Bytes that do not arrive in the first flight take at least two round trips. The same holds after a connection has
/// been idle for so long that its window has shrunk to the initial window. The claim
/// `first-flight.goal-window-kept-for-1-ms` is about a connection that was idle for a shorter time.
#[test]
fn what_is_larger_than_the_window_takes_two_round_trips() {
    const BYTES: u64 = 25_000;
    for idle_ms in [0, 1_000] {
        let Some(mut target) = open(&arm("http", &[("idle_ms", idle_ms)])) else { return };
        let time_ns = target.fetch(BYTES).unwrap().time_ns;
        assert!(time_ns >= 2 * RTT_MS * 1_000_000, "{time_ns} ns after {idle_ms} ms");
    }
}

#[test]
fn each_server_is_measured_in_each_way() {
    for variant in SERVER_VARIANTS {
        for bytes in [SEARCH, 1_000] {
            let arm = arm(variant.name, &[("bytes", bytes), ("rtt_ms", 5)]);
            if or_left_out(is_available(&arm)).is_none() {
                break;
            }
            let mut pages = Pages::open(&[arm], &Setup::default()).unwrap();
            let mut out = Samples::default();
            pages.verify(0).unwrap();
            let facts = pages.facts(0).unwrap();
            let levels = ["congestion", "initial_window"].map(|fact| facts.get(fact).cloned());
            assert_eq!(levels, [Some("cubic".into()), Some(10.into())], "{facts}");
            assert_eq!(facts.get("cipher").is_some(), variant.tls.is_some(), "{facts}");
            match pages.measure(0, &Trial { number: 0, seed: 7 }, &mut out) {
                Ok(()) => {}
                // The search finds nothing if the machine is very busy.
                Err(error) => assert!(error.to_string().starts_with("the search did not find"), "{error}"),
            }
            let phases: Vec<_> = out.iter().filter(|sample| sample.metric == REQUEST).collect();
            // A search records no phases. In other arms, each phase begins when the previous one ends.
            let of_tls = usize::from(variant.tls.is_some());
            assert_eq!(phases.len(), if bytes == SEARCH { 0 } else { 4 + of_tls }, "{phases:?}");
            assert!(phases.windows(2).all(|two| two[0].offset_ns as f64 + two[0].value <= two[1].offset_ns as f64));
            let seen = out.iter().find(|sample| sample.metric == if bytes == SEARCH { CLIFF } else { ROUND_TRIPS });
            assert!(seen.is_none_or(|sample| sample.value >= 1.0), "{}: {seen:?}", variant.name);
        }
    }
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_unavailable() {
    let mut arm = arm("http", &[]);
    if or_left_out(is_available(&arm)).is_none() {
        return;
    }
    arm.point = arm.point.with("congestion", "ascertain-none");
    let error = is_available(&arm).unwrap_err().to_string();
    assert!(error.contains("`ascertain-none`"), "{error}");
}

#[test]
fn what_was_not_agreed_upon_is_no_figure() {
    let Some(mut target) = open(&arm("tls1.3", &[])) else { return };
    target.fetch(1).unwrap();
    target.variant.tls = Some(TlsVersion::V1_2);
    assert!(target.fetch(1).is_err_and(|error| error.to_string().contains("but the variant is `tls1.3`")));
    target.variant.tls = Some(TlsVersion::V1_3);
    target.cipher = Some("TLS13_AES_127_GCM_SHA384".into());
    assert!(target.fetch(1).is_err_and(|error| error.to_string().contains("AES_127")));
}

#[test]
fn bad_servers_are_errors_in_time() {
    let Some(mut target) = open(&arm("http", &[])) else { return };
    let slow = Misbehaviour::Slow { each: Duration::from_secs(1) };
    let says = [
        (Misbehaviour::Silent, "timed out after"),
        (slow, "timed out after"),
        (Misbehaviour::Closes, "failed before an answer arrived"),
        (Misbehaviour::NotHttp, "failed before an answer arrived"),
        (Misbehaviour::SendsLess, "failed in the middle of the answer"),
        (Misbehaviour::Resets, "failed"),
        (Misbehaviour::SendsMore, "status 200 and 500 bytes instead of status 200 and 1 bytes"),
    ];
    for (port, (how, says)) in (1..).zip(says) {
        let far = target.link.as_ref().unwrap().far();
        let listener = far.listen((far.address(), port)).unwrap();
        target.server = Rc::new(PageServer::Own(Server::misbehaving(listener, how).unwrap()));
        let is_mute = matches!(how, Misbehaviour::Silent | Misbehaviour::Slow { .. });
        target.offer.limit = if is_mute { Duration::from_secs(1) } else { PATIENCE };
        let error = target.fetch(1).map(|page| page.time_ns).unwrap_err().to_string();
        assert!(error.contains(says), "{how:?}: {error}");
    }
}

/// Errors of requests to a user's server must be reported.
#[test]
fn somebodys_page_is_measured_or_it_is_said_why_not() {
    let asked = |variant: &str, url: &str| {
        let mut arm = arm(variant, &[("bytes", SEARCH)]);
        arm.point = arm.point.with("url", url);
        is_available(&arm).map_err(|error| error.to_string())?;
        let mut pages = Pages::open(&[arm], &Setup::default()).map_err(|error| error.to_string())?;
        let mut out = Samples::default();
        let measured = pages.measure(0, &Trial { number: 0, seed: 7 }, &mut out);
        measured.map(|()| out).map_err(|error| error.to_string())
    };
    let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(listener(), None).unwrap();
    let url = format!("http://{}/bytes/", server.address());
    let seen = asked("http", &format!("{url}20000")).unwrap();
    let value = |metric| seen.iter().find(|sample| sample.metric == metric).map(|sample| sample.value);
    assert_eq!((value(BODY), value(HEAD), value(CLIFF), value(LATE)), (Some(20_000.0), Some(79.0), None, None));
    assert!(value(ROUND_TRIP) > Some(0.0) && value(TIME) > Some(0.0) && value(OVER).is_some() && value(TRIM).is_some());

    let secure = Server::start(listener(), Some(&[TlsVersion::V1_3])).unwrap();
    let gone = listener().local_addr().unwrap();
    for (variant, url, says) in [
        ("http", format!("{url}x"), "status 404"),
        ("tls1.3", url.clone(), "needs the variant `http`"),
        ("nginx-http", url.clone(), "starts its own server"),
        ("http", format!("https://{}/", secure.address()), "needs a variant with TLS"),
        ("http", format!("http://{gone}/"), "refused"),
        ("http", "example.com".into(), "must begin with http:// or https://"),
        ("http", format!("http://{}/", secure.address()), "the connection failed"),
        ("tls1.3", format!("https://{}/", server.address()), "TLS: "),
    ] {
        let error = asked(variant, &url).unwrap_err();
        assert!(error.contains(says), "{variant} {url}: {error}");
    }
    // A machine may have no certificates at all.
    let untrusted = asked("tls1.3", &format!("https://{}/bytes/1", secure.address())).unwrap_err();
    assert!(untrusted.contains("TLS: ") || untrusted.contains("certificates"), "{untrusted}");
}
