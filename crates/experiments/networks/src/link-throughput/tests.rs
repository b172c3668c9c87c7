//! Tests of measurements over emulated links and with a user's listener.

use std::thread;

use ascertain_engine::experiment::{Experiment, Level};
use ascertain_netlab::throughput::ListenerLimits;
use ascertain_sys::testing::{left_out, or_left_out, wait_until};

use super::super::{DOWN, LinkThroughput, OWN};
use super::*;
use crate::links::retry_until_measured;

fn arm(variant: &str, levels: &[(&str, Level)]) -> Arm {
    let point = LinkThroughput.spec().default_point();
    let point = levels.iter().fold(point, |point, (factor, level)| point.with(factor, level.clone()));
    Arm { variant: variant.into(), point }
}

fn short(levels: &[(&'static str, Level)]) -> Vec<(&'static str, Level)> {
    let short = [("left_out_ms", 60), ("interval_ms", 20), ("measured_ms", 200)];
    short.into_iter().map(|(factor, ms)| (factor, Level::from(ms))).chain(levels.iter().cloned()).collect()
}

fn metrics_of(out: &Samples) -> Vec<usize> {
    let mut metrics: Vec<usize> = out.iter().map(|sample| sample.metric).collect();
    metrics.dedup();
    metrics
}

/// Tests that each direction and protocol reports all of its metrics and no others.
#[test]
fn ways_have_their_metrics() {
    let tcp = [THROUGHPUT, RETRANSMITTED, ROUND_TRIP, NEAR_CPU, FAR_CPU, LATE, LATE + 1];
    let udp = [THROUGHPUT, NEAR_CPU, FAR_CPU, LOST, REORDERED, JITTER, LATE, LATE + 1];
    for (levels, metrics) in [
        (short(&[]), &tcp[..]),
        (short(&[("direction", UP.into()), ("streams", 3.into())]), &tcp),
        (short(&[("direction", BOTH.into()), ("ip", 6.into())]), &tcp),
        (short(&[("protocol", UDP.into()), ("udp_kbit_s", 2_000.into())]), &udp),
    ] {
        let arm = arm(OWN, &levels);
        if or_left_out(is_available(&arm)).is_none() {
            return;
        }
        let mut session = Throughputs::open(std::slice::from_ref(&arm), &Setup::default()).unwrap();
        retry_until_measured(|| session.verify(0)).unwrap();
        let out = retry_until_measured(|| {
            let mut out = Samples::default();
            session.measure(0, &Trial { number: 0, seed: 7 }, &mut out).map(|()| out)
        });
        let out = out.unwrap();
        assert_eq!(metrics_of(&out), metrics, "{arm}: {out:?}");
        let rates: Vec<_> = out.iter().filter(|sample| sample.metric == THROUGHPUT).collect();
        assert_eq!(rates.len(), 10);
        assert_eq!((rates[0].offset_ns, rates[9].offset_ns), (60_000_000, 240_000_000));
    }
}

#[test]
fn iperf3_says_as_much() {
    for direction in [DOWN, UP] {
        for protocol in ["tcp", UDP] {
            let levels = [("direction", direction.into()), ("protocol", protocol.into())];
            let levels = [&levels[..], &[("udp_kbit_s", 2_000.into()), ("measured_ms", 400.into())]].concat();
            let arms = [OWN, IPERF3].map(|variant| arm(variant, &levels));
            if let Some(why) = arms.iter().find_map(|arm| is_available(arm).err()) {
                left_out(why);
                return;
            }
            let mut session = Throughputs::open(&arms, &Setup::default()).unwrap();
            assert!(Rc::ptr_eq(&session.arms[0].far_end, &session.arms[1].far_end), "the arms must share the link");
            retry_until_measured(|| session.verify(1)).unwrap();
            let out = retry_until_measured(|| {
                let mut out = Samples::default();
                session.measure(1, &Trial { number: 0, seed: 7 }, &mut out).map(|()| out)
            });
            let out = out.unwrap();
            let has: Vec<usize> = metrics_of(&out).into_iter().filter(|metric| *metric < LATE).collect();
            let tcp = [THROUGHPUT, RETRANSMITTED, ROUND_TRIP, NEAR_CPU, FAR_CPU];
            let udp = [THROUGHPUT, NEAR_CPU, FAR_CPU, LOST, JITTER];
            assert_eq!(has, if protocol == UDP { udp } else { tcp }, "{direction} {protocol}: {out:?}");
        }
    }
}

/// Tests a listener that the user started: successful measurements, a wrong token, invalid addresses, and a listener
/// that has ended.
#[test]
fn somebodys_listener_is_measured_or_said_not_to_be() {
    let token = Token::new().unwrap();
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), token.clone(), ListenerLimits::default()).unwrap();
    let measured = |address: &str, token: &Token| {
        let arm = arm(OWN, &short(&[]));
        let spec = traffic_spec(&arm).unwrap();
        let far_end = FarEnd::elsewhere(address, true, token.clone())?;
        let arm = ThroughputArm { far_end: Rc::new(far_end), spec, is_iperf3: false, pause: Duration::ZERO };
        retry_until_measured(|| arm.measure(&Stop::default()))
    };
    let address = listener.address().to_string();
    assert!(measured(&address, &token).unwrap().received_bytes > 0);
    let by_name = format!("localhost:{}", listener.address().port());
    assert!(measured(&by_name, &token).is_ok());
    let error = measured(&address, &Token::new().unwrap()).unwrap_err().to_string();
    assert!(error.contains("no listener accepted the token") && error.contains(&address), "{error}");
    for (wrong, says) in [("127.0.0.1", "invalid socket address"), ("[::1]:5200", "no address of `ip` 4")] {
        let error = measured(wrong, &token).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains(wrong), "{error}");
    }
    // The client with a wrong token must not have used up the listener's limits.
    assert!(measured(&address, &token).unwrap().received_bytes > 0);
    drop(listener);
    let gone = measured(&address, &token).unwrap_err().to_string();
    assert!(gone.contains("refused"), "{gone}");
}

#[test]
fn what_can_not_be_measured_is_said_to_be_so() {
    let listener = ("listener", Level::from("example.com:5200"));
    for (variant, levels, says) in [
        (IPERF3, vec![listener.clone()], "does not speak iperf3's protocol"),
        (OWN, vec![listener], "ASCERTAIN_LISTEN_TOKEN"),
        (IPERF3, vec![("direction", BOTH.into())], "iperf3"),
        (IPERF3, vec![("interval_ms", 20.into())], "iperf3"),
    ] {
        let why = is_available(&arm(variant, &levels)).unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn it_ends_when_it_is_told_to() {
    for variant in [OWN, IPERF3] {
        let arm = arm(variant, &[("measured_ms", 60_000.into())]);
        if or_left_out(is_available(&arm)).is_none() {
            continue;
        }
        let setup = Setup { stop: Stop::new().unwrap(), ..Setup::default() };
        let mut session = Throughputs::open(&[arm], &setup).unwrap();
        let far_end = session.arms[0].far_end.clone();
        let (link, stop) = (far_end.link.as_ref().unwrap(), &setup.stop);
        thread::scope(|scope| {
            scope.spawn(move || {
                let is_under_way = || link.report().unwrap().to_near.due.bytes > 1_000_000;
                wait_until("the measurement has begun", is_under_way);
                stop.request();
            });
            assert_eq!(session.verify(0), Err(TargetError::Interrupted));
        });
    }
}
