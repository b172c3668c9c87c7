//! Tests of throughput measurements: over the loopback interface, over links, and with peers that behave badly.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ascertain_netlab::Error;
use ascertain_netlab::throughput::{
    Direction, Listener, ListenerLimits, Measurement, Message, Refusal, Token, TrafficSpec, Transport, measure,
};
use ascertain_sys::testing::wait_until;

const PATIENCE: Duration = Duration::from_secs(60);
const UDP: Transport = Transport::Udp { rate_bits_per_s: 2_000_000, datagram_bytes: 1_000 };
const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn token() -> Token {
    "a-token-for-tests".parse().unwrap()
}

fn listener_at(address: IpAddr, limits: ListenerLimits) -> Listener {
    Listener::bind((address, 0).into(), token(), limits).unwrap()
}

fn listener() -> Listener {
    listener_at(LOCALHOST, ListenerLimits::default())
}

fn measured(listener: &Listener, spec: &TrafficSpec) -> Result<Measurement, Error> {
    measure(&listener.address(), &token(), spec, &|| false)
}

/// Measures as soon as the listener is free. The listener may not have noticed yet that the previous client has gone.
fn measured_when_free(listener: &Listener, spec: &TrafficSpec) -> Result<Measurement, Error> {
    let mut result = None;
    wait_until("the listener is free", || {
        result = Some(measured(listener, spec));
        !matches!(result, Some(Err(Error::Refused(Refusal::Busy))))
    });
    result.unwrap()
}

fn received_bytes(measured: &Measurement) -> impl Iterator<Item = u64> {
    measured.flows.iter().map(|flow| flow.receiver.bytes.iter().sum())
}

/// Repeats the measurement until each flow has received bytes. A busy machine may send nothing in so short a time.
fn measured_in_the_end(listener: &Listener, spec: &TrafficSpec) -> Measurement {
    let mut result = None;
    wait_until("each flow has received bytes", || {
        let measured = result.insert(measured_when_free(listener, spec).unwrap());
        received_bytes(measured).all(|bytes| bytes > 0)
    });
    result.unwrap()
}

fn spec(transport: Transport, direction: Direction) -> TrafficSpec {
    let ms = Duration::from_millis;
    TrafficSpec { transport, direction, streams: 2, interval: ms(40), left_out: 1, intervals: 5 }
}

/// A client that has its result does not block its own next measurement.
#[test]
fn one_measurement_follows_the_other() {
    let listener = listener();
    let short = TrafficSpec { interval: Duration::from_millis(1), left_out: 0, intervals: 1, ..TrafficSpec::default() };
    for _ in 0..30 {
        measured_when_free(&listener, &short).unwrap();
    }
    // On a busy machine a measurement may begin too late, and is then repeated.
    assert!(listener.stats().measurements >= 30);
}

/// Measures in one and in both directions, with one flow and with several. Checks the counts of client and listener.
#[test]
fn whatever_is_sent_arrives() {
    for address in [LOCALHOST, IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        if let Err(error) = TcpListener::bind((address, 0)) {
            ascertain_sys::testing::left_out(format!("IPv6: {error}"));
            continue;
        }
        let listener = listener_at(address, ListenerLimits::default());
        for transport in [Transport::Tcp, UDP] {
            for direction in [Direction::Up, Direction::Down, Direction::Both] {
                let spec = spec(transport, direction);
                let measured = measured_in_the_end(&listener, &spec);
                let ups: Vec<bool> = measured.flows.iter().map(|flow| flow.is_up).collect();
                assert_eq!(ups, spec.flows());
                for flow in &measured.flows {
                    let (sender, receiver) = (&flow.sender, &flow.receiver);
                    assert_eq!((sender.bytes.len(), receiver.bytes.len()), (6, 6));
                    assert_eq!(sender.tcp.is_some(), transport == Transport::Tcp && cfg!(target_os = "linux"));
                    if transport == UDP {
                        assert!(sender.datagrams > 0 && receiver.datagrams <= sender.datagrams, "{flow:?}");
                        assert_eq!((receiver.reordered, receiver.duplicates), (0, 0));
                        assert!(sender.datagrams <= 2_000_000 / 8_000, "faster than the rate: {flow:?}");
                    }
                }
                assert_eq!(measured.lost().is_some(), transport == UDP);
                let [near_ns, far_ns] = measured.cpu_ns();
                assert!(near_ns > 0 && far_ns > 0);
                // Client and listener have the same clock here.
                assert!(measured.clock.offset_ns.unsigned_abs() <= u128::from(measured.clock.bound_ns) + 1);
            }
        }
        let served = listener.stats();
        assert!(served.measurements >= 6 && served.bytes > 0 && served.refused == 0, "{served:?}");
    }
}

/// Returns the first line of a connection, written without this crate's code.
fn hello(version: u64, token: &str, session: u64, flow: u64) -> Vec<u8> {
    format!("{{\"version\":{version},\"token\":\"{token}\",\"session\":{session},\"flow\":{flow}}}\n").into()
}

fn all_that_comes(mut stream: &TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => bytes,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => bytes,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn who_does_not_have_the_token_learns_nothing() {
    let listener = listener();
    let other: Token = "another-token".parse().unwrap();
    let error = measure(&listener.address(), &other, &TrafficSpec::default(), &|| false).unwrap_err();
    assert!(matches!(error, Error::NoListener), "{error}");
    // None of these first lines gets an answer.
    let mine = token();
    let whole = hello(1, mine.as_str(), 0, 0);
    for (said, is_whole) in [
        (hello(1, "", 0, 0), true),
        (hello(2, "another-token", 0, 0), true),
        (hello(1, "a-token-for-test", 0, 0), true),
        (hello(1, "a-token-for-tests-too", 0, 0), true),
        (b"GET / HTTP/1.1\r\n".to_vec(), true),
        (vec![b'['; 5_000], true),
        (whole[..whole.len() - 1].to_vec(), false),
    ] {
        let mut stream = TcpStream::connect(listener.address()).unwrap();
        stream.write_all(&said).unwrap();
        if !is_whole {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
        assert_eq!(all_that_comes(&stream), b"", "{said:?}");
    }
    assert_eq!(listener.stats().refused, 8);
    measured_in_the_end(&listener, &TrafficSpec::default());
}

fn message_of(bytes: &[u8]) -> Message {
    Message::parse(bytes).unwrap().unwrap().0
}

#[test]
fn another_version_is_told_which_one_it_is() {
    let listener = listener();
    let mut stream = TcpStream::connect(listener.address()).unwrap();
    stream.write_all(&hello(2, token().as_str(), 0, 0)).unwrap();
    let said = message_of(&all_that_comes(&stream));
    assert_eq!(said, Message::Refused(Refusal::Version { speaks: 1 }));
}

/// Idle connections are closed when a client with the token connects.
#[test]
fn idle_strangers_keep_nobody_out() {
    let listener = listener();
    let idle: Vec<TcpStream> = (0..320).map(|_| TcpStream::connect(listener.address()).unwrap()).collect();
    let measured = measured_in_the_end(&listener, &spec(Transport::Tcp, Direction::Both));
    assert!(received_bytes(&measured).all(|bytes| bytes > 0));
    drop(idle);
}

#[test]
fn what_is_no_listener_is_said_to_be_none() {
    let is_garbage = |garbage: &'static [u8]| {
        let listener = TcpListener::bind((LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(garbage).unwrap();
            let _ = stream.read(&mut [0; 1]);
        });
        let error = measure(&address, &token(), &TrafficSpec::default(), &|| false).unwrap_err();
        assert!(matches!(error, Error::NoListener), "{garbage:?}: {error}");
        served.join().unwrap();
    };
    is_garbage(b"");
    is_garbage(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    // A welcome without a session, a wrong message, and a message that does not end.
    is_garbage(b"{\"welcome\":{\"session\":0}}\n");
    is_garbage(b"\"ready\"\n");
    is_garbage(&[b'['; 3_000_000]);
    // No program listens at this address.
    let nobody = TcpListener::bind((LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let error = measure(&nobody, &token(), &TrafficSpec::default(), &|| false).unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}

/// A measurement ends when it is stopped, even while the listener sends nothing.
#[test]
fn it_ends_when_it_is_told_to() {
    let silent = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let asked = AtomicBool::new(false);
    let is_stopped = || asked.swap(true, Ordering::Relaxed);
    let stopped = measure(&silent.local_addr().unwrap(), &token(), &TrafficSpec::default(), &is_stopped);
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");

    let listener = listener();
    for transport in [Transport::Tcp, UDP] {
        let before = listener.stats().bytes;
        let is_stopped = || listener.stats().bytes > before;
        let long = TrafficSpec { interval: PATIENCE, ..spec(transport, Direction::Both) };
        let mut stopped = None;
        wait_until("the listener is free", || {
            stopped = Some(measure(&listener.address(), &token(), &long, &is_stopped));
            !matches!(stopped, Some(Err(Error::Refused(Refusal::Busy))))
        });
        assert!(matches!(stopped, Some(Err(Error::Stopped))), "{stopped:?}");
    }
    // The listener still works.
    measured_when_free(&listener, &TrafficSpec::default()).unwrap();
}

#[test]
fn a_listener_that_ends_is_noticed() {
    for direction in [Direction::Up, Direction::Down] {
        let listener = listener();
        let (address, long) =
            (listener.address(), TrafficSpec { interval: PATIENCE, ..spec(Transport::Tcp, direction) });
        let client = thread::spawn(move || measure(&address, &token(), &long, &|| false));
        wait_until("the client has begun", || listener.stats().bytes > 0);
        drop(listener);
        let error = client.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Broken { .. } | Error::Refused(Refusal::Broken)), "{error}");
    }
}

/// The control connection of a client whose messages this test writes itself, and the session number.
struct Client(TcpStream, u64);

impl Client {
    fn new(listener: &Listener, spec: &TrafficSpec) -> Self {
        let mut stream = TcpStream::connect(listener.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&hello(1, token().as_str(), 0, 0)).unwrap();
        let Message::Welcome { session } = next(&mut stream) else { panic!("no welcome") };
        stream.write_all(&Message::Measure(spec.clone()).to_line()).unwrap();
        Self(stream, session)
    }

    fn knock(&self, flow: u32) -> Vec<u8> {
        [&self.1.to_le_bytes()[..], &flow.to_le_bytes(), &u64::MAX.to_le_bytes(), &[0; 8]].concat()
    }
}

fn next(stream: &mut TcpStream) -> Message {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        line.extend(byte);
    }
    message_of(&line)
}

#[test]
fn one_client_is_measured_at_a_time() {
    let listener = listener();
    let mut first = Client::new(&listener, &spec(Transport::Tcp, Direction::Up));
    let busy = measured(&listener, &TrafficSpec::default());
    assert!(matches!(busy, Err(Error::Refused(Refusal::Busy))), "{busy:?}");
    // After a connection for a flow of the session come three that must not count. They are for another session, for a
    // flow that does not exist, and for a flow that is connected already.
    for (session, flow) in [(first.1, 0), (first.1.wrapping_add(1).max(1), 1), (first.1, 2), (first.1, 0)] {
        let mut flow_of = TcpStream::connect(listener.address()).unwrap();
        flow_of.write_all(&hello(1, token().as_str(), session, flow)).unwrap();
        first.0.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(first.0.read(&mut [0; 1]).is_err(), "the listener was ready without all flows");
    }
    // After a wrong message the connection is closed, and the next client is served.
    first.0.write_all(&Message::Ready.to_line()).unwrap();
    assert_eq!(all_that_comes(&first.0), b"");
    measured_in_the_end(&listener, &TrafficSpec::default());
}

#[test]
fn datagrams_go_only_where_the_client_is() {
    let listener = listener();
    let spec = TrafficSpec { streams: 1, interval: PATIENCE, ..spec(UDP, Direction::Down) };
    let mut client = Client::new(&listener, &spec);
    let elsewhere = UdpSocket::bind("127.0.0.2:0").unwrap();
    let here = UdpSocket::bind((LOCALHOST, 0)).unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    // The listener must ignore a datagram from another address, without the session's number, for a flow that does not
    // exist, or without content.
    for (socket, said) in [
        (&elsewhere, client.knock(0)),
        (&here, [&[0; 8], &client.knock(0)[8..]].concat()),
        (&here, client.knock(1)),
        (&here, Vec::new()),
    ] {
        socket.send_to(&said, listener.address()).unwrap();
    }
    client.0.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(client.0.read(&mut [0; 1]).is_err(), "the listener was ready for another client");
    here.send_to(&client.knock(0), listener.address()).unwrap();
    client.0.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(next(&mut client.0), Message::Ready);
    client.0.write_all(&Message::Ping { sent_ns: 7 }.to_line()).unwrap();
    let Message::Pong { sent_ns: 7, at_ns } = next(&mut client.0) else { panic!("no answer") };
    client.0.write_all(&Message::Begin { at_ns, bound_ns: 0 }.to_line()).unwrap();
    here.set_read_timeout(Some(PATIENCE)).unwrap();
    let (bytes, from) = here.recv_from(&mut [0; 2_000]).unwrap();
    assert_eq!((bytes, from), (1_000, listener.address()));
    assert_eq!(elsewhere.recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// The listener sends nothing before the start, because earlier bytes would be counted in the first interval.
#[test]
fn nothing_is_sent_before_it_begins() {
    let listener = listener();
    let mut ahead_ns = 100_000_000;
    wait_until("the start message has arrived in time", || {
        let mut client = Client::new(&listener, &TrafficSpec::default());
        let mut flow = TcpStream::connect(listener.address()).unwrap();
        flow.write_all(&hello(1, token().as_str(), client.1, 0)).unwrap();
        assert_eq!(next(&mut client.0), Message::Ready);
        let at_ns = ascertain_netlab::now_ns() + ahead_ns;
        client.0.write_all(&Message::Begin { at_ns, bound_ns: 0 }.to_line()).unwrap();
        flow.set_read_timeout(Some(PATIENCE)).unwrap();
        // A busy machine may be too late; the next attempt allows more time.
        ahead_ns *= 2;
        let has_begun = flow.read_exact(&mut [0]).is_ok();
        assert!(!has_begun || ascertain_netlab::now_ns() >= at_ns);
        if !has_begun {
            assert_eq!(next(&mut client.0), Message::Refused(Refusal::Late));
            assert_eq!(all_that_comes(&client.0), b"");
        }
        has_begun
    });
}

#[test]
fn who_says_too_late_when_it_begins_is_told() {
    let listener = listener();
    let spec = TrafficSpec { streams: 1, ..spec(UDP, Direction::Up) };
    let mut client = Client::new(&listener, &spec);
    let here = UdpSocket::bind((LOCALHOST, 0)).unwrap();
    here.send_to(&client.knock(0), listener.address()).unwrap();
    assert_eq!(next(&mut client.0), Message::Ready);
    client.0.write_all(&Message::Begin { at_ns: 0, bound_ns: u64::MAX }.to_line()).unwrap();
    assert_eq!(next(&mut client.0), Message::Refused(Refusal::Late));
}

#[test]
fn a_listener_has_its_limits() {
    let limits = ListenerLimits { bytes: 1_000_000, time: Duration::from_secs(3_600) };
    let listener = listener_at(LOCALHOST, limits);
    let too_long = TrafficSpec { interval: Duration::from_secs(60), intervals: 61, ..TrafficSpec::default() };
    let error = measured_when_free(&listener, &too_long).unwrap_err();
    assert!(matches!(error, Error::Refused(Refusal::TooLong { most_s: 3_600 })), "{error}");
    for strange in [
        TrafficSpec { streams: 0, ..TrafficSpec::default() },
        TrafficSpec { intervals: 0, ..TrafficSpec::default() },
        TrafficSpec { transport: Transport::Udp { rate_bits_per_s: 1, datagram_bytes: 1 }, ..TrafficSpec::default() },
    ] {
        assert!(matches!(measured_when_free(&listener, &strange), Err(Error::Refused(Refusal::Spec))));
        // Our client would not send this request.
        let mut client = Client::new(&listener, &strange);
        assert_eq!(next(&mut client.0), Message::Refused(Refusal::Spec));
    }
    // The measurement ends after a megabyte, however long that takes.
    let spec = TrafficSpec { interval: Duration::from_secs(30), intervals: 100, ..TrafficSpec::default() };
    for _ in 0..2 {
        let error = measured_when_free(&listener, &spec).unwrap_err();
        assert!(matches!(error, Error::Refused(Refusal::UsedUp)), "{error}");
        assert_eq!(listener.stats().bytes, limits.bytes);
    }
    // The listener refuses before the flows are connected, and not only after bytes have been sent.
    let mut client = Client::new(&listener, &TrafficSpec::default());
    assert_eq!(next(&mut client.0), Message::Refused(Refusal::UsedUp));
}

#[test]
fn a_port_that_somebody_has_is_said_to_be_his() {
    // No other test uses ports of this address.
    let listener = listener_at(Ipv4Addr::new(127, 0, 0, 3).into(), ListenerLimits::default());
    let second = Listener::bind(listener.address(), token(), ListenerLimits::default()).unwrap_err();
    assert!(second.to_string().contains("in use"), "{second}");
    let address = listener.address();
    drop(listener);
    // The TCP port is free, but the UDP port is not.
    let _datagrams = UdpSocket::bind(address).unwrap();
    let second = Listener::bind(address, token(), ListenerLimits::default()).unwrap_err();
    assert!(second.to_string().contains("in use"), "{second}");
}

#[test]
fn tokens_are_long_and_plain() {
    let new = Token::new().unwrap();
    assert_eq!(new, new.as_str().parse().unwrap());
    assert_ne!(new, Token::new().unwrap());
    assert!(!format!("{new:?}").contains(new.as_str()));
    for wrong in ["", "short", "with spaces in it", "täglich-neu", &"x".repeat(65)] {
        assert!(wrong.parse::<Token>().is_err(), "{wrong}");
    }
}

#[cfg(target_os = "linux")]
mod linked {
    use super::*;
    use ascertain_netlab::throughput::FlowReport;
    use ascertain_netlab::{Link, RunningLink, Side};
    use ascertain_sys::testing::or_left_out;

    const PORT: u16 = 5201;

    fn measured_through(link: &RunningLink, to: IpAddr, spec: &TrafficSpec) -> Measurement {
        let address = SocketAddr::from((to, PORT));
        let (tcp, udp) = (link.far().listen(address).unwrap(), link.far().udp(address).unwrap());
        let listener = Listener::start(tcp, udp, token(), ListenerLimits::default()).unwrap();
        let near: (&Side, SocketAddr) = (link.near(), listener.address());
        measure(&near, &token(), spec, &|| false).unwrap()
    }

    /// Repeats the measurement until each flow has received bytes.
    fn measured_in_the_end(link: &RunningLink, to: IpAddr, spec: &TrafficSpec) -> Measurement {
        let mut result = None;
        wait_until("each flow has received bytes", || {
            let measured = result.insert(measured_through(link, to, spec));
            received_bytes(measured).all(|bytes| bytes > 0)
        });
        result.unwrap()
    }

    #[test]
    fn a_link_lets_through_what_it_should() {
        let link = Link { rtt: Duration::from_millis(10), rate_bits_per_s: Some(20_000_000), ..Link::default() };
        let Some(link) = or_left_out(link.start()) else { return };
        let (v4, v6) = (link.far().address().into(), link.far().ipv6_address().map(IpAddr::from));
        for to in [Some(v4), v6].into_iter().flatten() {
            for direction in [Direction::Up, Direction::Down] {
                let before = link.report().unwrap();
                let spec = TrafficSpec { streams: 1, ..spec(Transport::Tcp, direction) };
                let measured = measured_in_the_end(&link, to, &spec);
                let passed = link.report().unwrap().since(&before);
                let passed = if direction == Direction::Up { passed.to_far } else { passed.to_near };
                let received: u64 = received_bytes(&measured).sum();
                assert!(received < passed.due.bytes, "{received} of {passed:?}");
                let tcp = measured.flows[0].sender.tcp.as_ref().unwrap();
                assert!(tcp.rtt_us >= 10_000 && tcp.path_mtu_bytes == 1_500, "{tcp:?}");
                assert!(measured.clock.bound_ns >= 5_000_000, "{:?}", measured.clock);
                assert!(measured.clock.offset_ns.unsigned_abs() <= u128::from(measured.clock.bound_ns) + 1);
            }
        }
    }

    #[test]
    fn what_a_link_loses_is_counted() {
        let Some(link) = or_left_out(Link { loss: 0.05, ..Link::default() }.start()) else { return };
        let transport = Transport::Udp { rate_bits_per_s: 10_000_000, datagram_bytes: 500 };
        let spec = spec(transport, Direction::Both);
        // The datagrams that each flow sent and received. A busy machine may send few in one measurement.
        let mut counted = vec![[0; 2]; spec.flows().len()];
        wait_until("each flow has sent 400 datagrams", || {
            let measured = measured_through(&link, link.far().address().into(), &spec);
            for (counted, FlowReport { sender, receiver, .. }) in counted.iter_mut().zip(&measured.flows) {
                assert!(receiver.datagrams <= sender.datagrams, "{sender:?} {receiver:?}");
                *counted = [counted[0] + sender.datagrams, counted[1] + receiver.datagrams];
            }
            let sum = |count: fn(&FlowReport) -> u64| measured.flows.iter().map(count).sum::<u64>();
            let (sent, came) = (sum(|flow| flow.sender.datagrams), sum(|flow| flow.receiver.datagrams));
            let share = (sent > 0).then(|| (sent - came) as f64 / sent as f64);
            assert_eq!(measured.lost(), share);
            counted.iter().all(|[sent, _]| *sent >= 400)
        });
        // The chance that none of 400 datagrams is lost is one in 800 million.
        assert!(counted.iter().all(|[sent, came]| came < sent), "{counted:?}");
    }
}
