//! What ends of a measurement of throughput say to each other, whatever it is.

mod targets;

use std::time::Duration;

use ascertain_netlab::throughput::{Direction, End, Message, Plan, Refusal, Strange, Tcp, Transport};
use proptest::prelude::*;

#[test]
fn corpus_of_messages() {
    let folder = format!("{}/tests/messages/corpus", env!("CARGO_MANIFEST_DIR"));
    ascertain_sys::testing::replay(&folder, targets::messages);
}

/// One of each kind.
fn messages() -> Vec<Message> {
    let transport = Transport::Udp { rate_bits_per_s: 1_000_000, datagram_bytes: 1_200 };
    let tcp = Tcp {
        retransmitted_segments: 3,
        rtt_us: 20_000,
        rtt_min_us: 19_000,
        mss_bytes: 1_448,
        path_mtu_bytes: 1_500,
        congestion_control: "cubic".into(),
    };
    let end = End { bytes: vec![1, 2, 3], tcp: Some(tcp), cpu_ns: 7, ..End::default() };
    let datagrams = End { datagrams: 4, reordered: 3, duplicates: 2, jitter_ns: 1, ..End::default() };
    let refusals = [
        Refusal::Version { speaks: 2 },
        Refusal::Busy,
        Refusal::Plan,
        Refusal::TooLong { most_s: 60 },
        Refusal::UsedUp,
        Refusal::NotReached,
        Refusal::Broken,
        Refusal::Late,
    ];
    let mut messages = vec![
        Message::Welcome { session: 1 },
        Message::Ping { sent_ns: u64::MAX },
        Message::Pong { sent_ns: 0, at_ns: 1 },
        Message::Ask(Plan::default()),
        Message::Ask(Plan { transport, direction: Direction::Both, ..Plan::default() }),
        Message::Ready,
        Message::Begin { at_ns: 5, bound_ns: 6 },
        Message::End { flow: 1, end },
        Message::End { flow: 2, end: datagrams },
    ];
    messages.extend(refusals.map(Message::Refused));
    messages
}

#[test]
fn a_message_is_what_it_was() {
    for message in messages() {
        let bytes = message.bytes();
        assert_eq!(Message::parse(&bytes), Ok(Some((message.clone(), bytes.len()))));
        // What follows is the next one's; what has not arrived is waited for.
        assert_eq!(Message::parse(&[&bytes[..], b"more"].concat()), Ok(Some((message, bytes.len()))));
        for length in 0..bytes.len() {
            assert_eq!(Message::parse(&bytes[..length]), Ok(None));
        }
        // A word more or less is another message, or none: ends have as many intervals as there are.
        targets::messages(&[&[bytes[0], 0, 0, 0, bytes[4] + 1, 0, 0, 0], &bytes[8..], &[0; 8]].concat());
    }
}

/// Each is refused before what it promises has come.
#[test]
fn what_promises_too_much_is_no_message() {
    for head in [
        [8, 0, 0, 0, 255, 255, 255, 255],
        [8, 0, 0, 0, 0, 0, 2, 0],
        [0; 8],
        [9, 0, 0, 0, 0, 0, 0, 0],
        *b"HTTP/1.1",
        [3, 1, 0, 0, 1, 0, 0, 0],
    ] {
        assert_eq!(Message::parse(&head), Err(Strange), "{head:?}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_is_understood_or_refused(
        kind in 0_u8..10,
        count in 0_u8..20,
        words in proptest::collection::vec(prop_oneof![0_u64..5, any::<u64>()], 20),
        random in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> = [kind, 0, 0, 0, count, 0, 0, 0].into_iter().chain(words).collect();
        targets::messages(&bytes);
        targets::messages(&random);
    }

    #[test]
    fn a_plan_that_is_checked_takes_no_longer_than_it_may(
        streams in 0_u32..200, left_out: u32, interval_ns: u64, intervals: u32, rate_bits_per_s: u64,
        datagram_bytes in 0_u32..70_000, most_s in 0_u64..10_000,
    ) {
        let interval = Duration::from_nanos(interval_ns);
        let transport = Transport::Udp { rate_bits_per_s, datagram_bytes };
        let plan = Plan { transport, streams, left_out, interval, intervals, ..Plan::default() };
        let most = Duration::from_secs(most_s);
        if plan.check(most).is_ok() {
            prop_assert!(plan.time() <= most);
            prop_assert!(!plan.flows().is_empty() && rate_bits_per_s > 0 && datagram_bytes <= 65_507);
        }
    }
}
