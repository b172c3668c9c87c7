//! Tests of DNS loads, with servers that answer correctly and servers that do not.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use ascertain_netlab::dns::{
    LoadResult, LoadTransport, QueryMix, QueryRate, ResponseCode, SimulationSpec, ZoneServer, load,
};
use ascertain_sys::testing::or_left_out;

const PACE: QueryRate =
    QueryRate { rate_per_s: 1_000, time: Duration::from_millis(100), limit: Duration::from_secs(60) };

fn mix() -> QueryMix {
    QueryMix::parse("example. NS\n; not there\nmissing.example A\n").unwrap()
}

fn udp(ip: IpAddr) -> UdpSocket {
    UdpSocket::bind((ip, 0)).unwrap()
}

fn asked(mix: &QueryMix, pace: QueryRate, way: LoadTransport) -> LoadResult {
    load(mix, pace, way, 7, || false).unwrap()
}

#[test]
fn what_can_not_be_asked_is_said_with_its_line() {
    for (text, says) in [
        ("", "there are no queries"),
        ("; nothing\n\n", "there are no queries"),
        ("example. A\nexample.\n", "line 2: expected a name and a record type, found `example.`"),
        ("example. A IN\n", "line 1: expected a name and a record type, found `example. A IN`"),
        ("# a\nexample. Q\n", "line 2: `Q` is not a record type"),
        ("a..b A\n", "line 1: `a..b` is not a name"),
    ] {
        let error = QueryMix::parse(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn each_question_is_asked_once_in_time_by_each_way() {
    for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let Some(primary) = or_left_out(TcpListener::bind((ip, 0))) else { continue };
        let served =
            ZoneServer::start(SimulationSpec::new(vec![vec![Duration::ZERO]]), primary, vec![udp(ip)]).unwrap();
        let streams = || (0..3).map(|_| TcpStream::connect(served.primary()).unwrap()).collect();
        for way in [LoadTransport::Udp(vec![udp(ip), udp(ip)], served.servers()[0]), LoadTransport::Tcp(streams())] {
            let LoadResult { queries, strange, .. } = asked(&mix(), PACE, way);
            assert_eq!((queries.len(), strange), (100, 0));
            for (number, one) in (0..).zip(&queries) {
                assert_eq!(one.due_ns, queries[0].due_ns + number * 1_000_000);
                let answer = one.answer.unwrap();
                let code = [ResponseCode::NoError, ResponseCode::NXDomain][number as usize % 2];
                assert_eq!((answer.code, answer.is_truncated), (code, false));
                assert!(one.sent_ns >= one.due_ns && answer.took_ns >= one.sent_ns - one.due_ns);
            }
        }
    }
}

/// Queries that are due within the same half millisecond are sent together, so they have the same due time.
#[test]
fn questions_are_due_at_the_rate() {
    let server = udp(Ipv4Addr::LOCALHOST.into());
    let pace = QueryRate { rate_per_s: 8_000, time: Duration::from_millis(10), limit: Duration::ZERO };
    let way = LoadTransport::Udp(vec![udp(Ipv4Addr::LOCALHOST.into())], server.local_addr().unwrap());
    let queries = asked(&mix(), pace, way).queries;
    let start_ns = queries[0].due_ns;
    let due_ns: Vec<u64> = queries.iter().map(|query| query.due_ns - start_ns).collect();
    assert_eq!(due_ns, (0..80).map(|number| number / 4 * 500_000).collect::<Vec<_>>());
    assert!(queries.iter().all(|query| query.answer.is_none()), "nobody answers");
}

/// DNS has only 65,536 query ids. The load must reuse the ids of queries whose time limit has passed.
#[test]
fn a_silent_server_does_not_use_up_the_numbers() {
    let server = udp(Ipv4Addr::LOCALHOST.into());
    let way = || LoadTransport::Udp(vec![udp(Ipv4Addr::LOCALHOST.into())], server.local_addr().unwrap());
    let pace = QueryRate { rate_per_s: 1_000_000, time: Duration::from_millis(100), ..PACE };
    let error = load(&mix(), pace, way(), 7, || false).unwrap_err().to_string();
    assert!(error.contains("use more connections or a shorter time limit"), "{error}");
    // The 150,000 queries have random ids and use about nine tenths of all ids, many of them several times.
    let pace = QueryRate { time: Duration::from_millis(150), limit: Duration::ZERO, ..pace };
    assert_eq!(asked(&mix(), pace, way()).queries.len(), 150_000);
}

/// A cancelled load returns without waiting for lost answers.
#[test]
fn who_is_told_to_end_does_not_wait() {
    let server = udp(Ipv4Addr::LOCALHOST.into());
    let way = LoadTransport::Udp(vec![udp(Ipv4Addr::LOCALHOST.into())], server.local_addr().unwrap());
    let pace = QueryRate { limit: Duration::from_secs(86_400), ..PACE };
    // The load is cancelled once all of its 100 queries have arrived.
    server.set_nonblocking(true).unwrap();
    let come = Cell::new(0);
    let is_over = || {
        while server.recv(&mut [0; 512]).is_ok() {
            come.set(come.get() + 1);
        }
        come.get() == 100
    };
    assert_eq!(load(&mix(), pace, way, 7, is_over).unwrap().queries.len(), 100);
}

/// Returns a minimal answer to a query.
fn answer(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer[2] |= 0x80;
    answer
}

/// The load sends queries even while the server does not answer. The time of an answer counts from the time at which
/// its query was due.
#[test]
fn what_a_server_holds_back_counts_from_when_it_was_due() {
    let ip = Ipv4Addr::LOCALHOST.into();
    let server = udp(ip);
    let way = LoadTransport::Udp(vec![udp(ip)], server.local_addr().unwrap());
    let queries = thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 512];
            let held: Vec<_> = (0..100)
                .map(|_| {
                    let (length, from) = server.recv_from(&mut bytes).unwrap();
                    (answer(&bytes[..length]), from)
                })
                .collect();
            held.iter().for_each(|(answer, from)| _ = server.send_to(answer, from).unwrap());
        });
        asked(&mix(), PACE, way).queries
    });
    let last_ns = queries[99].due_ns;
    for query in queries {
        assert!(query.answer.unwrap().took_ns >= last_ns - query.due_ns);
    }
}

#[test]
fn forged_answers_are_counted_and_not_believed() {
    let ip = Ipv4Addr::LOCALHOST.into();
    let [server, other] = [udp(ip), udp(ip)];
    let way = LoadTransport::Udp(vec![udp(ip)], server.local_addr().unwrap());
    let LoadResult { queries, strange, .. } = thread::scope(|scope| {
        scope.spawn(|| {
            let (mut bytes, mut refusals) = ([0; 512], Vec::new());
            for number in 0..100 {
                let (length, from) = server.recv_from(&mut bytes).unwrap();
                let honest = answer(&bytes[..length]);
                let changed = |at: usize, bit: u8| {
                    let mut changed = honest.clone();
                    changed[at] ^= bit;
                    changed
                };
                let send = |bytes: &[u8]| _ = server.send_to(bytes, from).unwrap();
                if number % 5 < 3 {
                    refusals.push((changed(3, 5), from));
                }
                match number % 5 {
                    0 => {}
                    // An answer with another name, a query, and a message shorter than a header.
                    1 => [&changed(14, 1)[..], &bytes[..length], &honest[..7]].into_iter().for_each(send),
                    // An answer from another address.
                    2 => _ = other.send_to(&honest, from).unwrap(),
                    // An answer that is sent twice.
                    3 => [&honest[..], &honest].into_iter().for_each(send),
                    // A truncated answer, and the answer of a server that failed and leaves the query out.
                    _ if number % 2 == 0 => send(&changed(2, 2)),
                    _ => {
                        let mut failed = changed(3, 2);
                        failed[5] = 0;
                        send(&failed[..12]);
                    }
                }
            }
            // The open queries are answered only now, so that the test does not have to wait for a time limit.
            refusals.iter().for_each(|(refusal, to)| _ = server.send_to(refusal, to).unwrap());
        });
        asked(&mix(), PACE, way)
    });
    assert_eq!(strange, 20 * 3 + 20 + 20);
    for (number, query) in queries.iter().enumerate() {
        let answer = query.answer.map(|answer| (answer.code, answer.is_truncated));
        let expected = match (number % 5, number % 2) {
            (3, _) => Some((ResponseCode::NoError, false)),
            (4, 0) => Some((ResponseCode::NoError, true)),
            (4, _) => Some((ResponseCode::ServFail, false)),
            _ => Some((ResponseCode::Refused, false)),
        };
        assert_eq!(answer, expected, "{number}");
    }
}

/// The load must send all queries of a connection without waiting for answers, and accept answers in any order. The
/// server reads all queries, then answers them in reverse order, then closes the connection.
#[test]
fn questions_of_a_connection_do_not_wait_for_each_other() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at: SocketAddr = listener.local_addr().unwrap();
    let serve = |count: usize| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut messages: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let mut length = [0; 2];
                stream.read_exact(&mut length).unwrap();
                let mut message = vec![0; u16::from_be_bytes(length).into()];
                stream.read_exact(&mut message).unwrap();
                [&length[..], &answer(&message)].concat()
            })
            .collect();
        messages.reverse();
        stream.write_all(&messages.concat()).unwrap();
        stream
    };
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(100));
        let result = asked(&mix(), PACE, LoadTransport::Tcp(vec![TcpStream::connect(at).unwrap()]));
        assert!(result.strange == 0 && result.queries.iter().all(|query| query.answer.is_some()));
        drop(server.join().unwrap());
        scope.spawn(|| drop(serve(50)));
        let error =
            load(&mix(), PACE, LoadTransport::Tcp(vec![TcpStream::connect(at).unwrap()]), 7, || false).unwrap_err();
        let is_end = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(is_end.contains(&error.kind()), "{error}");
    });
}
