//! Links of each kind, end to end: what is true of them on any machine, however busy.

use ascertain_engine::experiment::Experiment;
use ascertain_sys::testing::or_left_out;

use super::super::{DATAGRAMS, LinkTruth, VETH};
use super::*;

fn measured(variant: &str, sends: &str, levels: &[(&str, u64)]) -> Option<Samples> {
    let point = LinkTruth.spec().default_point().with("sends", sends);
    let point = levels.iter().fold(point, |point, (factor, level)| point.with(factor, *level));
    let arm = Arm { variant: variant.into(), point };
    or_left_out(is_available(&arm))?;
    let mut session = open(&[arm], &Setup::default()).unwrap();
    let mut out = Samples::default();
    session.verify(0).unwrap();
    session.measure(0, &Trial { number: 0, seed: 7 }, &mut out).unwrap();
    Some(out)
}

fn value(samples: &Samples, metric: usize) -> Option<f64> {
    samples.iter().find(|sample| sample.metric == metric).map(|sample| sample.value)
}

#[test]
fn nothing_is_early_or_out_of_order() {
    for variant in [TUN_OFFLOADS, TUN, VETH] {
        let Some(seen) = measured(variant, DATAGRAMS, &[]) else { continue };
        assert_eq!((value(&seen, EARLY), value(&seen, REORDERED)), (Some(0.0), Some(0.0)), "{variant}");
        assert!(value(&seen, EXCESS) >= Some(0.0) && value(&seen, EXCESS_P99) >= value(&seen, EXCESS), "{seen:?}");
        let metrics: Vec<usize> = seen.iter().map(|sample| sample.metric).collect();
        assert_eq!(metrics, [EXCESS, EXCESS_P99, EARLY, REORDERED, LOST, LATE, LATE + 1]);
    }
}

#[test]
fn a_queue_holds_no_more_than_it_should() {
    // Each takes 12 ms: one is sent and two wait, and while the others are sent little more finds room.
    let levels = [("rate_mbit_s", 1), ("queue_bytes", 3_000), ("datagrams", 60), ("bytes", 1_500), ("gap_us", 0)];
    for variant in [TUN_OFFLOADS, TUN, VETH] {
        let Some(seen) = measured(variant, DATAGRAMS, &levels) else { continue };
        let lost = value(&seen, LOST).unwrap();
        assert!(lost > 0.0 && lost <= 57.0 / 60.0 && value(&seen, RATE_SHARE).is_some(), "{seen:?}");
    }
}

#[test]
fn what_chance_takes_is_seen() {
    let levels = [("loss_percent", 20), ("datagrams", 500), ("gap_us", 100), ("rtt_ms", 0)];
    for variant in [TUN_OFFLOADS, TUN, VETH] {
        let Some(seen) = measured(variant, DATAGRAMS, &levels) else { continue };
        // Where whoever receives them has no CPU, more may be lost.
        assert!(value(&seen, LOST) > Some(0.1), "{seen:?}");
    }
}

#[test]
fn streams_have_a_throughput() {
    for variant in [TUN_OFFLOADS, TUN, VETH] {
        let Some(seen) = measured(variant, STREAM, &[("rtt_ms", 0)]) else { continue };
        assert!(value(&seen, THROUGHPUT) > Some(0.0) && value(&seen, SEGMENTS) > Some(0.0), "{seen:?}");
        assert_eq!(value(&seen, EXCESS), None);
    }
}

#[test]
fn it_ends_when_it_is_told_to() {
    let point = LinkTruth.spec().default_point().with("rtt_ms", 10_000);
    let arm = Arm { variant: TUN_OFFLOADS.into(), point };
    if or_left_out(is_available(&arm)).is_none() {
        return;
    }
    let setup = Setup { stop: Stop::new().unwrap(), ..Setup::default() };
    let mut session = open(&[arm], &setup).unwrap();
    setup.stop.ask();
    assert_eq!(session.verify(0), Err(TargetError::Interrupted));
}
