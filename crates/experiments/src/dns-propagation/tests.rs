//! Changes of simulated zones, end to end.

use ascertain_engine::experiment::{Experiment, Level};
use ascertain_sys::testing::or_left_out;

use super::super::places::is_available;
use super::super::{APART, DnsPropagation, TOGETHER};
use super::*;

fn arm(variant: &str, levels: &[(&str, u64)]) -> Arm {
    let point = DnsPropagation.spec().default_point();
    let point = levels.iter().fold(point, |point, (factor, level)| point.with(factor, Level::Integer(*level)));
    Arm { variant: variant.into(), point }
}

/// Not often, for a busy machine; and waits for as long as that takes.
const CALM: [(&str, u64); 3] = [("interval_ms", 100), ("ports", 8), ("slowest_ms", 300)];

/// What is said of each moment holds, however late everything is: each answer speaks of a time in which it is true.
#[test]
fn what_is_said_holds_of_the_truth() {
    for variant in [TOGETHER, APART] {
        let arm = arm(variant, &CALM);
        if or_left_out(is_available(&arm)).is_none() {
            return;
        }
        let updates = Updates::open(&[arm], &Setup::default()).unwrap();
        let target = &updates.targets[0];
        let seen = target.observe(7, &Stop::default()).unwrap();
        // The newest version is the one without the record.
        let truth = target.place.truth();
        let of_servers = servers(&seen.asked, 4, seen.call_ns);
        for (server, truth) in of_servers.iter().zip(&truth) {
            assert!((1..=3).contains(&server.replicas.len()) && !server.goes_back, "{server:?}");
            for replica in &server.replicas {
                let Moment { low_ns, high_ns: Some(high_ns) } = replica.had else { panic!("{replica:?}") };
                let is_within = |at_ns: &u64| *at_ns > seen.call_ns + low_ns && *at_ns <= seen.call_ns + high_ns;
                assert!(truth.iter().any(is_within), "{variant}: {replica:?} {truth:?} {}", seen.call_ns);
            }
        }
        assert_eq!(seen.strange, 0);
    }
}

#[test]
fn each_change_has_its_metrics() {
    let arms = [TOGETHER, APART].map(|variant| arm(variant, &CALM));
    if or_left_out(is_available(&arms[0])).is_none() {
        return;
    }
    let mut updates = Updates::open(&arms, &Setup::default()).unwrap();
    for of in 0..2 {
        let mut out = Samples::default();
        updates.measure(of, &Trial { number: 0, seed: 7 }, &mut out).unwrap();
        let of_metric = |metric| out.iter().filter(move |sample| sample.metric == metric);
        for (metric, count) in
            (0..=LATE + 1).map(|metric| (metric, if [SERVER, REPLICAS].contains(&metric) { 4 } else { 1 }))
        {
            let seen = of_metric(metric).count();
            assert!(seen == count || metric == SHARE && seen > 8, "{metric}: {seen}");
        }
        assert!(out.iter().all(|sample| sample.status == Status::Ok && sample.value.is_finite()));
        let value = |metric| of_metric(metric).next().unwrap().value;
        assert!(value(FIRST) <= value(HALF) && value(HALF) <= value(ALL));
        assert_eq!(value(ALL) - value(DONE), value(DONE_BEFORE));
        // Half of what it should be at least, on a busy machine.
        assert!(value(ALL) > 150e6, "{}", value(ALL));
    }
}
