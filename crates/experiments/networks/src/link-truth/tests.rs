//! Tests properties of links with each carrier. The properties do not depend on how busy the machine is.

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
    // Each datagram takes 12 ms on the link. The link sends one while two wait in the queue. The others arrive at the
    // queue meanwhile, and almost none of them fit.
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
        // More datagrams may be lost if the receiver gets no CPU time.
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
fn bare_links_carry_the_same_traffic_and_refuse_conditions() {
    for variant in [BARE_TUN_OFFLOADS, BARE_TUN, BARE_VETH] {
        let Some(seen) = measured(variant, DATAGRAMS, &[("rtt_ms", 0)]) else { continue };
        assert_eq!((value(&seen, REORDERED), value(&seen, EARLY)), (Some(0.0), Some(0.0)), "{variant}");
        let stream = measured(variant, STREAM, &[("rtt_ms", 0)]).unwrap();
        assert!(value(&stream, THROUGHPUT) > Some(0.0) && value(&stream, SEGMENTS) > Some(0.0), "{stream:?}");
        let arm = Arm { variant: variant.into(), point: LinkTruth.spec().default_point() };
        assert!(is_available(&arm).unwrap_err().to_string().contains("set rtt_ms"));
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
    setup.stop.request();
    assert_eq!(session.verify(0), Err(TargetError::Interrupted));
}

/// A link of 10 ms and 8 Mbit/s, on which a packet of 1,000 bytes takes a millisecond.
const EXPECTED: ExpectedLink = ExpectedLink { delay_ns: 10e6, bits_per_ns: Some(8e-3), packet_bytes: 1_000 };
const MS: u64 = 1_000_000;

#[test]
fn a_true_link_has_no_excess() {
    // A burst, and one datagram after it.
    let sent_ns = [5, 5, 5, 20].map(|at_ms| at_ms * MS);
    let seen = DatagramReport::new(&EXPECTED, &sent_ns, &[(0, 16 * MS), (1, 17 * MS), (2, 18 * MS), (3, 31 * MS)]);
    assert_eq!(seen, DatagramReport { excess_ns: vec![0.0; 4], reordered: 0, lost: 0.0, rate_share: Some(1.0) });
    assert_eq!((seen.early(), seen.excess_ns(0.99)), (0, Some(0.0)));
    let slow = DatagramReport::new(&EXPECTED, &sent_ns[..3], &[(0, 16 * MS), (1, 18 * MS), (2, 20 * MS)]);
    assert_eq!(slow.rate_share, Some(0.5));
}

#[test]
fn what_is_wrong_is_seen() {
    let sent_ns = [0; 4];
    let late = DatagramReport::new(&EXPECTED, &sent_ns, &[(0, 11 * MS), (1, 12 * MS), (2, 15 * MS), (3, 14 * MS)]);
    assert_eq!((late.excess_ns(0.5), late.excess_ns(1.0)), (Some(0.0), Some(2e6)));
    let early = DatagramReport::new(&EXPECTED, &sent_ns, &[(0, 11 * MS), (1, 12 * MS - 1), (2, 13 * MS), (3, 14 * MS)]);
    assert_eq!((early.early(), early.excess_ns(0.0)), (1, Some(-1.0)));
    let swapped = DatagramReport::new(&EXPECTED, &sent_ns, &[(1, 11 * MS), (0, 12 * MS), (2, 13 * MS), (3, 14 * MS)]);
    assert_eq!((swapped.reordered, swapped.lost), (1, 0.0));
    let lost = DatagramReport::new(&EXPECTED, &sent_ns, &[(0, 11 * MS), (3, 12 * MS)]);
    assert_eq!((lost.reordered, lost.lost, lost.excess_ns(1.0)), (0, 0.5, Some(0.0)));
    let fast = DatagramReport::new(&EXPECTED, &sent_ns, &[(0, 11 * MS), (1, 11 * MS + MS / 2), (2, 12 * MS)]);
    assert_eq!(fast.rate_share, Some(2.0));
    let at_once =
        DatagramReport::new(&ExpectedLink { bits_per_ns: None, ..EXPECTED }, &sent_ns, &[(0, 10 * MS), (1, 11 * MS)]);
    assert_eq!((at_once.excess_ns(1.0), at_once.rate_share), (Some(1e6), None));
    let none = DatagramReport::new(&EXPECTED, &sent_ns, &[]);
    assert_eq!((none.excess_ns(0.5), none.lost, none.rate_share), (None, 1.0, None));
}

#[test]
fn a_datagram_is_of_its_trial() {
    let one = datagram(7, 3, 100);
    assert_eq!((one.len(), number(7, &one), number(8, &one)), (72, Some(3), None));
    assert_eq!((datagram(7, 3, 0).len(), number(7, &one[..15]), number(7, &[])), (16, None, None));
}
