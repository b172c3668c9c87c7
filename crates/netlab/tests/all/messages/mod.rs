//! Tests of the messages between client and listener of a throughput measurement, valid and invalid.

mod targets;

use std::time::Duration;

use ascertain_netlab::throughput::{Direction, FlowEnd, Malformed, Message, Refusal, TcpStats, TrafficSpec, Transport};
use proptest::prelude::*;

#[test]
fn corpus_of_messages() {
    let folder = format!("{}/tests/messages/corpus", env!("CARGO_MANIFEST_DIR"));
    ascertain_sys::testing::replay(&folder, targets::messages);
}

/// Returns a message of each kind.
fn messages() -> Vec<Message> {
    let transport = Transport::Udp { rate_bits_per_s: 1_000_000, datagram_bytes: 1_200 };
    let tcp = TcpStats {
        retransmitted_segments: 3,
        rtt_us: 20_000,
        rtt_min_us: 19_000,
        mss_bytes: 1_448,
        path_mtu_bytes: 1_500,
        congestion_control: "cubic".into(),
    };
    let end = FlowEnd { bytes: vec![1, 2, 3], tcp: Some(tcp), cpu_ns: 7, ..FlowEnd::default() };
    let datagrams = FlowEnd { datagrams: 4, reordered: 3, duplicates: 2, jitter_ns: 1, ..FlowEnd::default() };
    let refusals = [
        Refusal::Version { speaks: 2 },
        Refusal::Busy,
        Refusal::Spec,
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
        Message::Measure(TrafficSpec::default()),
        Message::Measure(TrafficSpec { transport, direction: Direction::Both, ..TrafficSpec::default() }),
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
        let line = message.to_line();
        assert_eq!(Message::parse(&line), Ok(Some((message.clone(), line.len()))));
        // Bytes after the line belong to the next message, and an incomplete line is waited for.
        assert_eq!(Message::parse(&[&line[..], b"more"].concat()), Ok(Some((message, line.len()))));
        for length in 0..line.len() {
            assert_eq!(Message::parse(&line[..length]), Ok(None));
        }
    }
}

/// A message [`Message::End`] with the largest number of intervals and the largest counts fits into a line.
#[test]
fn the_longest_message_has_room() {
    let end = FlowEnd { bytes: vec![u64::MAX; 100_000], ..FlowEnd::default() };
    let line = Message::End { flow: u32::MAX, end }.to_line();
    assert_eq!(Message::parse(&line).unwrap().unwrap().1, line.len());
}

#[test]
fn what_is_no_message_is_refused() {
    // A line that is too long is refused before its end arrives.
    assert_eq!(Message::parse(&vec![b' '; 3_000_000]), Err(Malformed));
    let tcp = |name: &str| {
        format!(
            "{{\"end\":{{\"flow\":0,\"end\":{{\"bytes\":[],\"cpu_ns\":0,\"tcp\":{{\"retransmitted_segments\":0,\"rtt_us\":0,\
             \"rtt_min_us\":0,\"mss_bytes\":0,\"path_mtu_bytes\":0,\"congestion_control\":{name}}},\"datagrams\":0,\
             \"reordered\":0,\"duplicates\":0,\"jitter_ns\":0}}}}}}\n"
        )
    };
    assert!(Message::parse(tcp("\"sixteen-letters-\"").as_bytes()).is_ok());
    for line in [
        "\n".to_string(),
        "HTTP/1.1 400 Bad Request\r\n".into(),
        "{}\n".into(),
        "\"nothing\"\n".into(),
        "{\"ping\":{\"sent_ns\":-1}}\n".into(),
        "{\"ping\":{\"sent_ns\":1}} more\n".into(),
        "[".repeat(100_000) + "\n",
        // The names are printed, so they must have no control characters, which could manipulate a terminal.
        tcp("\"a\\u001b[m\""),
        tcp("\"seventeen-letters\""),
    ] {
        assert_eq!(Message::parse(line.as_bytes()), Err(Malformed), "{line}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_is_understood_or_refused(
        which in 0..17_usize,
        at in any::<prop::sample::Index>(),
        cut in 0..10_usize,
        instead in proptest::collection::vec(prop_oneof![Just(b'9'), Just(b'"'), Just(b'}'), any::<u8>()], 0..10),
        random in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        // Replaces a part of a message.
        let mut line = messages()[which].to_line();
        let at = at.index(line.len());
        line.splice(at..line.len().min(at + cut), instead);
        targets::messages(&line);
        targets::messages(&random);
    }

    #[test]
    fn a_spec_that_is_checked_takes_no_longer_than_it_may(
        streams in 0_u32..200, left_out: u32, interval_ns: u64, intervals: u32, rate_bits_per_s: u64,
        datagram_bytes in 0_u32..70_000, most_s in 0_u64..10_000,
    ) {
        let interval = Duration::from_nanos(interval_ns);
        let transport = Transport::Udp { rate_bits_per_s, datagram_bytes };
        let spec = TrafficSpec { transport, streams, left_out, interval, intervals, ..TrafficSpec::default() };
        let most = Duration::from_secs(most_s);
        if spec.check(most).is_ok() {
            prop_assert!(spec.time() <= most);
            prop_assert!(!spec.flows().is_empty() && rate_bits_per_s > 0 && datagram_bytes <= 65_507);
        }
    }
}
