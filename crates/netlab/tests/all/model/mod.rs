//! Tests of the link model: comparisons with a simple reference implementation, and properties that hold for every
//! link.

mod reference;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ascertain_netlab::Error;
use ascertain_netlab::model::{Conditions, Counts, Fate, Favoured, Flow, Line, Tally, Throttle, TokenBucket, Why};
use proptest::prelude::*;

fn address(host: u8, port: u16) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, host), port).into()
}

fn to(host: u8, port: u16) -> Flow {
    Flow { source: address(1, 50_000), destination: address(host, port) }
}

fn line(conditions: &Conditions) -> Line {
    Line::new(conditions).unwrap()
}

fn fates(conditions: &Conditions, segments: &[(u64, usize, Flow)]) -> Vec<Fate> {
    let mut line = line(conditions);
    segments.iter().map(|(now_ns, bytes, flow)| line.offer(*now_ns, *bytes, *flow)).collect()
}

/// Generates segments of up to 30 bytes to two destinations. Half of the segments follow the previous one immediately,
/// and the others within 400 ns.
fn few_segments() -> impl Strategy<Value = Vec<(u64, usize, Flow)>> {
    let gap_ns = prop_oneof![3 => Just(0), 2 => 1_u64..40, 1 => 40_u64..400];
    let segment = (gap_ns, 1_usize..30, 2_u8..4);
    prop::collection::vec(segment, 1..60).prop_map(|segments| {
        let mut now_ns = 0;
        let mut at = |gap_ns| {
            now_ns += gap_ns;
            now_ns
        };
        segments.into_iter().map(|(gap_ns, bytes, host)| (at(gap_ns), bytes, to(host, 80))).collect()
    })
}

/// Generates rates from 1 to 160 Gbit/s, at which a byte takes from 8 ns down to 0.05 ns.
fn rate_bits_per_s() -> impl Strategy<Value = u64> {
    1_000_000_000_u64..160_000_000_000
}

fn bucket() -> impl Strategy<Value = TokenBucket> {
    (0_u64..100, rate_bits_per_s()).prop_map(|(burst_bytes, rate)| TokenBucket { burst_bytes, rate_bits_per_s: rate })
}

fn throttle() -> impl Strategy<Value = Throttle> {
    let lifted = prop::option::of((0_u64..100).prop_map(Duration::from_nanos));
    let favoured = vec![Favoured { address: Some(address(3, 0).ip()), port: None }];
    (bucket(), lifted).prop_map(move |(bucket, lifted_for_all)| Throttle {
        bucket,
        favoured: favoured.clone(),
        lifted_for_all,
    })
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let of_the_line = (prop::option::of(rate_bits_per_s()), 0_usize..150, 0_u64..1_000);
    let lost = prop::collection::vec(0_u64..60, 0..4);
    (of_the_line, prop::option::of(bucket()), prop::option::of(throttle()), lost).prop_map(
        |((rate_bits_per_s, queue_bytes, delay_ns), bucket, throttle, lost)| Conditions {
            delay: Duration::from_nanos(delay_ns),
            rate_bits_per_s,
            queue_bytes,
            lost,
            bucket,
            throttle,
            ..Conditions::default()
        },
    )
}

/// Generates positive numbers of any bit length, with all lengths equally likely.
fn of_any_size() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..64).prop_map(|(number, shift)| (number >> shift).max(1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_model_is_the_reference(conditions in conditions(), segments in few_segments()) {
        prop_assert_eq!(fates(&conditions, &segments), reference::fates(&conditions, &segments));
    }

    #[test]
    fn anything_goes(
        segments in prop::collection::vec((of_any_size(), of_any_size()), 1..50),
        (rate, refill, delay_ns) in (of_any_size(), of_any_size(), of_any_size()),
        (queue_bytes, burst_bytes) in (of_any_size(), of_any_size()),
        (loss, seed) in (0.0..=1.0, any::<u64>()),
    ) {
        let bucket = TokenBucket { burst_bytes, rate_bits_per_s: refill };
        let throttle = Throttle { bucket, favoured: vec![], lifted_for_all: Some(Duration::MAX) };
        let conditions = Conditions {
            delay: Duration::from_nanos(delay_ns),
            rate_bits_per_s: Some(rate),
            queue_bytes: queue_bytes as usize,
            loss,
            lost: vec![],
            bucket: Some(bucket),
            throttle: (seed % 2 == 0).then_some(throttle),
            seed,
        };
        let mut line = line(&conditions);
        let mut latest_ns = 0;
        for (now_ns, bytes) in segments {
            if let Fate::Due(due_ns) = line.offer(now_ns, bytes as usize, to(2, 80)) {
                prop_assert!(due_ns >= latest_ns && due_ns >= now_ns.saturating_add(delay_ns));
                latest_ns = due_ns;
            }
            let Counts { offered, due, throttled, queue_full, lost } = line.counts();
            let parts = [due, throttled, queue_full, lost];
            prop_assert_eq!(offered.segments, parts.iter().map(|part| part.segments).sum::<u64>());
            let bytes = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.bytes));
            prop_assert_eq!(offered.bytes, bytes);
            prop_assert!(line.waiting_bytes(now_ns) <= queue_bytes);
        }
    }

    #[test]
    fn the_rate_is_never_exceeded_over_any_time(
        segments in prop::collection::vec((0_u64..2_000_000, 1_usize..65_536), 1..40),
        rate in 1_000_u64..100_000_000_000,
    ) {
        let mut line = line(&Conditions { rate_bits_per_s: Some(rate), queue_bytes: usize::MAX, ..Default::default() });
        let mut now_ns = 0;
        let mut arrived = Vec::new();
        for (gap_ns, bytes) in segments {
            now_ns += gap_ns;
            let Fate::Due(due_ns) = line.offer(now_ns, bytes, to(2, 80)) else { panic!("nothing is dropped here") };
            arrived.push((due_ns, bytes as u128));
        }
        for (first, (from_ns, _)) in arrived.iter().enumerate() {
            let mut bits = 0;
            for (until_ns, bytes) in &arrived[first + 1..] {
                bits += bytes * 8;
                // Times are rounded up to a nanosecond.
                let capacity = u128::from(until_ns - from_ns + 1) * u128::from(rate);
                prop_assert!(bits * 1_000_000_000 <= capacity, "{} bits in {} ns", bits, until_ns - from_ns);
            }
        }
    }
}

#[test]
fn a_saturated_line_is_exact_after_any_number_of_segments() {
    // A segment takes 12,000 / 7 ns: 1714.28….
    let conditions =
        Conditions { rate_bits_per_s: Some(7_000_000_000), queue_bytes: usize::MAX, ..Conditions::default() };
    let mut line = line(&conditions);
    for sent in 1..=100_000_u64 {
        assert_eq!(line.offer(0, 1_500, to(2, 80)), Fate::Due((sent * 12_000).div_ceil(7)));
    }
}

#[test]
fn a_bucket_has_its_burst_its_rate_and_its_moment() {
    let bucket = TokenBucket { burst_bytes: 1_000_000, rate_bits_per_s: 100_000_000 };
    let conditions = Conditions {
        rate_bits_per_s: Some(1_000_000_000),
        queue_bytes: usize::MAX,
        bucket: Some(bucket),
        ..Conditions::default()
    };
    let mut line = line(&conditions);
    let due = |line: &mut Line, now_ns| match line.offer(now_ns, 1_000, to(2, 80)) {
        Fate::Due(due_ns) => due_ns,
        Fate::Dropped(why) => panic!("{why:?}"),
    };
    // Sending a segment takes 8 µs, and refilling its tokens takes 80 µs. By 8n µs there have been tokens for 1,000 +
    // 0.1n segments. That suffices for the segment with the index n if n ≤ 1,110.
    let arrived: Vec<u64> = (0..3_000).map(|_| due(&mut line, 0)).collect();
    let gaps: Vec<u64> = arrived.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[..1_110].iter().all(|gap_ns| *gap_ns == 8_000));
    assert!(gaps[1_110..].iter().all(|gap_ns| *gap_ns == 80_000));
    // In 40 ms, tokens for 500 segments accumulate. While n segments are sent, tokens for 0.1n more arrive. So n
    // segments are sent without a pause if n ≤ 500 + 0.1n, which is true for 555 segments with 554 gaps between them.
    let rested_ns = arrived[2_999] - 8_000 + 40_000_000;
    let again: Vec<u64> = (0..1_000).map(|_| due(&mut line, rested_ns)).collect();
    let fast = again.windows(2).take_while(|pair| pair[1] - pair[0] == 8_000).count();
    assert_eq!(fast, 554);
}

#[test]
fn a_queue_drops_what_does_not_fit_and_nothing_else() {
    // At this rate a byte takes a microsecond.
    let conditions = Conditions { rate_bits_per_s: Some(8_000_000), queue_bytes: 250, ..Conditions::default() };
    let mut line = line(&conditions);
    let mut offer = |now_us: u64, bytes| match line.offer(now_us * 1_000, bytes, to(2, 80)) {
        Fate::Due(due_ns) => Ok(due_ns / 1_000),
        Fate::Dropped(why) => Err(why),
    };
    // The first segment is sent immediately, whatever its size.
    assert_eq!(offer(0, 1_000), Ok(1_000));
    assert_eq!(offer(0, 200), Ok(1_200));
    assert_eq!(offer(0, 51), Err(Why::QueueFull));
    assert_eq!(offer(0, 50), Ok(1_250));
    assert_eq!(offer(999, 1), Err(Why::QueueFull));
    // By now the first segment has been sent, and the queue has room.
    assert_eq!(offer(1_000, 200), Ok(1_450));
    assert_eq!(offer(1_000, 1), Err(Why::QueueFull));
    let counts = line.counts();
    assert_eq!(counts.queue_full, Tally { segments: 3, bytes: 53 });
    assert_eq!(counts.due, Tally { segments: 4, bytes: 1_450 });
    assert_eq!(line.waiting_bytes(1_000_000), 250);
    assert_eq!(line.waiting_bytes(1_449_000), 0);
}

#[test]
fn a_throttle_favours_flows_or_everybody_while_there_is_one() {
    let bucket = TokenBucket { burst_bytes: 1_000, rate_bits_per_s: 8_000_000 };
    let favoured = vec![Favoured { address: None, port: Some(5201) }];
    let throttle = |lifted_for_all| Conditions {
        throttle: Some(Throttle { bucket, favoured: favoured.clone(), lifted_for_all }),
        ..Conditions::default()
    };
    let answer = Flow { source: address(2, 5201), destination: address(1, 50_000) };
    let (plain, dropped) = (to(2, 80), Fate::Dropped(Why::Throttled));
    let mut alone = line(&throttle(None));
    assert_eq!(alone.offer(0, 1_000, plain), Fate::Due(0));
    assert_eq!(alone.offer(0, 1, plain), dropped);
    assert_eq!(alone.offer(0, 1_000_000, answer), Fate::Due(0));
    assert_eq!(alone.offer(0, 1, plain), dropped);
    assert_eq!(alone.offer(999_999, 1_000, plain), dropped);
    assert_eq!(alone.offer(1_000_000, 1_000, plain), Fate::Due(1_000_000));

    let mut lifted = line(&throttle(Some(Duration::from_micros(10))));
    assert_eq!(lifted.offer(0, 1_000, plain), Fate::Due(0));
    assert_eq!(lifted.offer(0, 1, plain), dropped);
    assert_eq!(lifted.offer(100, 60, to(2, 5201)), Fate::Due(100));
    assert_eq!(lifted.offer(10_100, 1_000_000, plain), Fate::Due(10_100));
    assert_eq!(lifted.offer(10_101, 1_000_000, plain), dropped);
}

#[test]
fn the_seed_decides_what_is_lost() {
    let lost_of = |loss, seed, rate_bits_per_s| {
        let conditions = Conditions { loss, seed, rate_bits_per_s, queue_bytes: usize::MAX, ..Conditions::default() };
        let fates = fates(&conditions, &vec![(0, 1_500, to(2, 80)); 100_000]);
        let lost = fates.iter().enumerate().filter(|(_, fate)| **fate == Fate::Dropped(Why::Lost));
        lost.map(|(number, _)| number).collect::<Vec<_>>()
    };
    let lost = lost_of(0.01, 7, None);
    // The seeds are fixed, so the number of losses is fixed, too. Six standard deviations are 190.
    assert!(lost.len().abs_diff(1_000) < 190, "{}", lost.len());
    assert_eq!(lost, lost_of(0.01, 7, None));
    assert_eq!(lost, lost_of(0.01, 7, Some(1_000_000)), "the rate must not change which segments are lost");
    assert_ne!(lost, lost_of(0.01, 8, None));
    assert_eq!(lost_of(0.0, 7, None), [0_usize; 0]);
    assert_eq!(lost_of(1.0, 7, None).len(), 100_000);
}

#[test]
fn what_is_listed_is_lost_and_took_its_time() {
    let conditions = Conditions { lost: vec![2, 0], rate_bits_per_s: Some(8_000_000_000), ..Conditions::default() };
    let segments = [(0, 100, to(2, 80)); 4];
    let lost = Fate::Dropped(Why::Lost);
    assert_eq!(fates(&conditions, &segments), [lost, Fate::Due(200), lost, Fate::Due(400)]);
}

#[test]
fn conditions_that_mean_nothing_are_refused() {
    let error = |conditions: Conditions| Line::new(&conditions).err().map(|error| error.to_string());
    let none = || TokenBucket { burst_bytes: 1, rate_bits_per_s: 0 };
    let throttle = Throttle { bucket: none(), favoured: vec![], lifted_for_all: None };
    let rates = [
        (Conditions { rate_bits_per_s: Some(0), ..Default::default() }, "the link's rate is 0 bits per second"),
        (Conditions { bucket: Some(none()), ..Default::default() }, "the rate at which the bucket is filled is 0"),
        (Conditions { throttle: Some(throttle), ..Default::default() }, "the throttle's rate is 0"),
    ];
    for (conditions, says) in rates {
        assert!(error(conditions).unwrap().starts_with(says), "{says}");
    }
    for loss in [-0.001, 1.001, f64::NAN] {
        assert!(
            matches!(Line::new(&Conditions { loss, ..Default::default() }), Err(Error::Invalid(why)) if why.contains("out of range"))
        );
    }
}
