//! Questions at a rate, against servers that do what they should, and others.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use ascertain_netlab::dns::{Mix, Pace, Plan, Posing, ResponseCode, Served, Way, load};
use ascertain_sys::testing::or_left_out;

const PACE: Pace = Pace { rate_per_s: 1_000, time: Duration::from_millis(100), limit: Duration::from_secs(60) };

fn mix() -> Mix {
    Mix::parse("example. NS\n; not there\nmissing.example A\n").unwrap()
}

fn udp(ip: IpAddr) -> UdpSocket {
    UdpSocket::bind((ip, 0)).unwrap()
}

fn asked(mix: &Mix, pace: Pace, way: Way) -> Posing {
    load(mix, pace, way, 7, || false).unwrap()
}

#[test]
fn what_can_not_be_asked_is_said_with_its_line() {
    for (text, says) in [
        ("", "there is no question"),
        ("; nothing\n\n", "there is no question"),
        ("example. A\nexample.\n", "line 2: `example.` is not a name and a type"),
        ("example. A IN\n", "line 1: `example. A IN` is not"),
        ("# a\nexample. Q\n", "line 2: `Q` is no type"),
        ("a..b A\n", "line 1: `a..b` is no name"),
    ] {
        let error = Mix::parse(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn each_question_is_asked_once_in_time_by_each_way() {
    for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let Some(primary) = or_left_out(TcpListener::bind((ip, 0))) else { continue };
        let served = Served::start(Plan::new(vec![vec![Duration::ZERO]]), primary, vec![udp(ip)]).unwrap();
        let streams = || (0..3).map(|_| TcpStream::connect(served.primary()).unwrap()).collect();
        for way in [Way::Udp(vec![udp(ip), udp(ip)], served.servers()[0]), Way::Tcp(streams())] {
            let Posing { posed, strange, .. } = asked(&mix(), PACE, way);
            assert_eq!((posed.len(), strange), (100, 0));
            for (number, one) in (0..).zip(&posed) {
                assert_eq!(one.due_ns, posed[0].due_ns + number * 1_000_000);
                let answer = one.answer.unwrap();
                let code = [ResponseCode::NoError, ResponseCode::NXDomain][number as usize % 2];
                assert_eq!((answer.code, answer.is_truncated), (code, false));
                assert!(one.sent_ns >= one.due_ns && answer.took_ns >= one.sent_ns - one.due_ns);
            }
        }
    }
}

/// What is due within half a millisecond is due together.
#[test]
fn questions_are_due_at_the_rate() {
    let server = udp(Ipv4Addr::LOCALHOST.into());
    let pace = Pace { rate_per_s: 8_000, time: Duration::from_millis(10), limit: Duration::ZERO };
    let way = Way::Udp(vec![udp(Ipv4Addr::LOCALHOST.into())], server.local_addr().unwrap());
    let posed = asked(&mix(), pace, way).posed;
    let start_ns = posed[0].due_ns;
    let due_ns: Vec<u64> = posed.iter().map(|posed| posed.due_ns - start_ns).collect();
    assert_eq!(due_ns, (0..80).map(|number| number / 4 * 500_000).collect::<Vec<_>>());
    assert!(posed.iter().all(|posed| posed.answer.is_none()), "nobody answers");
}

/// There are 65,536 numbers, of which those that wait for nothing any more are taken anew.
#[test]
fn a_silent_server_does_not_use_up_the_numbers() {
    let server = udp(Ipv4Addr::LOCALHOST.into());
    let way = || Way::Udp(vec![udp(Ipv4Addr::LOCALHOST.into())], server.local_addr().unwrap());
    let pace = Pace { rate_per_s: 1_000_000, time: Duration::from_millis(100), ..PACE };
    let error = load(&mix(), pace, way(), 7, || false).unwrap_err().to_string();
    assert!(error.contains("more `connections`, or a shorter `limit_ms`"), "{error}");
    // By chance nine of ten numbers have had their turn by then.
    let pace = Pace { time: Duration::from_millis(150), limit: Duration::ZERO, ..pace };
    assert_eq!(asked(&mix(), pace, way()).posed.len(), 150_000);
}

/// What is lost is not waited for by who is told to end.
#[test]
fn who_is_told_to_end_does_not_wait() {
    let server = udp(Ipv4Addr::LOCALHOST.into());
    let way = Way::Udp(vec![udp(Ipv4Addr::LOCALHOST.into())], server.local_addr().unwrap());
    let pace = Pace { limit: Duration::from_secs(86_400), ..PACE };
    // When all has come that will be sent.
    server.set_nonblocking(true).unwrap();
    let come = Cell::new(0);
    let is_over = || {
        while server.recv(&mut [0; 512]).is_ok() {
            come.set(come.get() + 1);
        }
        come.get() == 100
    };
    assert_eq!(load(&mix(), pace, way, 7, is_over).unwrap().posed.len(), 100);
}

/// A question as it is asked, and its answer.
fn answer(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer[2] |= 0x80;
    answer
}

/// Nobody waits for a server that answers nothing for a while: it is asked all the same, and what was late counts.
#[test]
fn what_a_server_holds_back_counts_from_when_it_was_due() {
    let ip = Ipv4Addr::LOCALHOST.into();
    let server = udp(ip);
    let way = Way::Udp(vec![udp(ip)], server.local_addr().unwrap());
    let posed = thread::scope(|scope| {
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
        asked(&mix(), PACE, way).posed
    });
    let last_ns = posed[99].due_ns;
    for posed in posed {
        assert!(posed.answer.unwrap().took_ns >= last_ns - posed.due_ns);
    }
}

#[test]
fn forged_answers_are_counted_and_not_believed() {
    let ip = Ipv4Addr::LOCALHOST.into();
    let [server, other] = [udp(ip), udp(ip)];
    let way = Way::Udp(vec![udp(ip)], server.local_addr().unwrap());
    let Posing { posed, strange, .. } = thread::scope(|scope| {
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
                    // Another name, no answer, and less than a head.
                    1 => [&changed(14, 1)[..], &bytes[..length], &honest[..7]].into_iter().for_each(send),
                    // From somewhere else.
                    2 => _ = other.send_to(&honest, from).unwrap(),
                    // Twice.
                    3 => [&honest[..], &honest].into_iter().for_each(send),
                    // In part, and from who failed and leaves the question out.
                    _ if number % 2 == 0 => send(&changed(2, 2)),
                    _ => {
                        let mut failed = changed(3, 2);
                        failed[5] = 0;
                        send(&failed[..12]);
                    }
                }
            }
            // Only now the questions that are still open are answered, so that nobody has to wait for a time limit.
            refusals.iter().for_each(|(refusal, to)| _ = server.send_to(refusal, to).unwrap());
        });
        asked(&mix(), PACE, way)
    });
    assert_eq!(strange, 20 * 3 + 20 + 20);
    for (number, posed) in posed.iter().enumerate() {
        let answer = posed.answer.map(|answer| (answer.code, answer.is_truncated));
        let expected = match (number % 5, number % 2) {
            (3, _) => Some((ResponseCode::NoError, false)),
            (4, 0) => Some((ResponseCode::NoError, true)),
            (4, _) => Some((ResponseCode::ServFail, false)),
            _ => Some((ResponseCode::Refused, false)),
        };
        assert_eq!(answer, expected, "{number}");
    }
}

/// A server that reads all questions of a connection before it answers the last one first; and then ends it.
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
        let posing = asked(&mix(), PACE, Way::Tcp(vec![TcpStream::connect(at).unwrap()]));
        assert!(posing.strange == 0 && posing.posed.iter().all(|posed| posed.answer.is_some()));
        drop(server.join().unwrap());
        scope.spawn(|| drop(serve(50)));
        let error = load(&mix(), PACE, Way::Tcp(vec![TcpStream::connect(at).unwrap()]), 7, || false).unwrap_err();
        let is_end = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(is_end.contains(&error.kind()), "{error}");
    });
}
