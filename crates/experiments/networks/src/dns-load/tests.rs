//! Tests with servers that answer, servers that do not, and invalid levels.

use std::thread;

use ascertain_engine::experiment::Experiment;
use ascertain_netlab::Error;
use ascertain_netlab::dns::{LoadReply, ResponseCode};
use ascertain_netlab::installed::{Program, bind, knot, nsd};
use ascertain_sys::testing::{left_out, wait_until};

use super::super::{DnsLoad, UDP};
use super::*;

fn arm(variant: &str, levels: &[(&str, &str)]) -> Arm {
    let point = levels
        .iter()
        .fold(DnsLoad.spec().default_point(), |point, (factor, level)| point.with(factor, Level::parse(level)));
    Arm { variant: variant.into(), point }
}

fn measured(arm: Arm) -> Result<Samples, TargetError> {
    let mut asking = Load::open(&[arm], &Setup::default())?;
    let mut out = Samples::default();
    asking.verify(0)?;
    asking.measure(0, &Trial { number: 0, seed: 1 }, &mut out)?;
    Ok(out)
}

fn values(out: &Samples, metric: usize) -> Vec<(String, f64, Status)> {
    let of_metric = out.iter().filter(|sample| sample.metric == metric);
    of_metric.map(|sample| (sample.key.to_string(), sample.value, sample.status)).collect()
}

/// Returns the metrics of a response code: its share, and two quantiles of the time.
fn of_code(out: &Samples, code: &str) -> [Vec<(String, f64, Status)>; 3] {
    let first = DnsLoad.spec().metric(code).unwrap();
    [first, first + 1, first + 2].map(|metric| values(out, metric))
}

fn ok(value: f64) -> Vec<(String, f64, Status)> {
    vec![(String::new(), value, Status::Ok)]
}

/// Queries a name that exists and one that does not, over each transport.
#[test]
fn answers_are_told_apart_by_their_codes() {
    for variant in [UDP, TCP] {
        let out = measured(arm(variant, &[("rate_per_s", "200"), ("limit_ms", "60000")])).unwrap();
        for code in CODES {
            let [share, p50, p99] = of_code(&out, code);
            let is_answer = ["noerror", "nxdomain"].contains(&code);
            assert_eq!(share, ok(if is_answer { 0.5 } else { 0.0 }), "{code}");
            assert_eq!((p50.is_empty(), p99.is_empty()), (!is_answer, !is_answer), "{code}");
        }
        for metric in P99..BY_CODE {
            assert_eq!(values(&out, metric).len(), 1, "{metric}");
        }
        assert_eq!((values(&out, SENT), values(&out, ANSWERED)), (ok(200.0), ok(1.0)));
        let of = |metric| values(&out, metric)[0].1;
        assert!(of(P50) <= of(P90) && of(P90) <= of(P99) && of(P99) <= of(WORST) && of(CPU) > 0.0);
        assert_eq!((of(LOST), of(STRANGE), of(TRUNCATED)), (0.0, 0.0, 0.0));
    }
}

#[test]
fn what_is_known_of_the_questions_of_a_trial_takes_memory() {
    let arms = [("10", "3600"), ("1000000", "3600"), ("1000", "1")]
        .map(|(rate, seconds)| arm(UDP, &[("rate_per_s", rate), ("seconds", seconds)]));
    assert_eq!(DnsLoad.memory_bytes(&arms), 3_600_000_000 * 64);
    let known = size_of::<LoadQuery>() + 2 * size_of::<u64>();
    assert!(known as u64 <= super::super::QUESTION_BYTES, "{known}");
}

/// The default rate is 10,000 queries per second for the server in this process, and 1,000 for other servers.
#[test]
fn the_rate_depends_on_the_server() {
    let rate = |levels: &[_]| LoadArm::new(&arm(UDP, levels)).unwrap().rate.rate_per_s;
    assert_eq!(rate(&[]), 10_000);
    assert_eq!(rate(&[("server", "127.0.0.1:1")]), 1_000);
    assert_eq!(rate(&[("server", "127.0.0.1:1"), ("rate_per_s", "7")]), 7);
}

/// A lost query must count as slower than any answer, and must not be in the quantiles of any response code.
#[test]
fn what_is_lost_is_above_the_limit() {
    let answered = |number: u64, code| {
        let answer = (code != ResponseCode::Refused).then_some(LoadReply {
            took_ns: number + 1,
            code,
            is_truncated: number.is_multiple_of(10),
        });
        LoadQuery { due_ns: 0, sent_ns: number, answer }
    };
    let code = |number| match number {
        0..60 => ResponseCode::NoError,
        60..95 => ResponseCode::ServFail,
        // These queries are lost.
        _ => ResponseCode::Refused,
    };
    let queries = (0..100).map(|number| answered(number, code(number))).collect();
    let result = LoadResult { queries, strange: 3, cpu_ns: 50_000, ..LoadResult::default() };
    let second = Duration::from_secs(1);
    let mut out = Samples::default();
    samples(&result, QueryRate { rate_per_s: 10_000, time: second, limit: second }, &mut out);
    assert_eq!((values(&out, P50), values(&out, P90)), (ok(50.0), ok(90.0)));
    assert_eq!(values(&out, P99), [(String::new(), 1e9, Status::Censored)]);
    assert_eq!((values(&out, LOST), values(&out, STRANGE), values(&out, TRUNCATED)), (ok(0.05), ok(3.0), ok(0.1)));
    assert_eq!(of_code(&out, "noerror"), [0.6, 30.0, 60.0].map(ok));
    assert_eq!(of_code(&out, "servfail"), [0.35, 78.0, 95.0].map(ok));
    assert_eq!((values(&out, SENT), values(&out, ANSWERED)), (ok(100.0), ok(0.95)));
    // The rate is computed over the full second, although the last answer came after 95 ns.
    assert_eq!(values(&out, ANSWERED_PER_S), ok(95.0));
    assert_eq!(values(&out, BEHIND), ok(98.0));
    // All queries were sent within less than one interval.
    assert_eq!(values(&out, CPU), ok(0.5));
}

/// Levels are checked before any query is sent.
#[test]
fn levels_that_can_not_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queries").display().to_string();
    for (text, says) in [
        ("", "there are no queries"),
        ("; nothing\n", "there are no queries"),
        ("example. A\nexample. X?\n", "line 2: `X?` is not a record type"),
        ("a..b A\n", "line 1: `a..b` is not a name"),
    ] {
        fs::write(&path, text).unwrap();
        let said = DnsLoad.settled("queries", Level::Text(path.clone())).unwrap_err();
        assert!(said.starts_with(&format!("{path}: {says}")) && !said.ends_with(':'), "{said}");
    }
    fs::write(&path, "example. A\n").unwrap();
    for (factor, given, is) in [
        ("queries", &*path, Ok(&*path)),
        ("queries", OURS, Ok(OURS)),
        ("server", OURS, Ok(OURS)),
        ("server", "192.0.2.1", Ok("192.0.2.1:53")),
        ("server", "no where", Err("`no where` is not a name server")),
    ] {
        match (DnsLoad.settled(factor, Level::Text(given.into())), is) {
            (Ok(level), Ok(is)) => assert_eq!(level, Level::Text(is.into())),
            (Err(said), Err(says)) => assert!(said.starts_with(says), "{said}"),
            (settled, _) => panic!("{given}: {settled:?}"),
        }
    }
}

/// A client that sends queries at the required rate is not the bottleneck, however slow the answers are.
#[test]
fn who_is_the_limit_is_said() {
    let pace = QueryRate { rate_per_s: 1_000, time: Duration::from_millis(100), limit: Duration::from_secs(1) };
    let said = |stretch: u64, late_ns: u64, refused: u64| {
        let queries = |number: u64| {
            let due_ns = number * 1_000_000;
            let answer = LoadReply { took_ns: 900_000_000, code: ResponseCode::NoError, is_truncated: false };
            LoadQuery { due_ns, sent_ns: due_ns * stretch + late_ns, answer: Some(answer) }
        };
        let result = LoadResult { queries: (0..100).map(queries).collect(), refused, ..LoadResult::default() };
        overload(&result, pace).map(|remark| {
            let Remark::Overload { sent_per_s, late_ns, refused, .. } = remark else { panic!("{remark:?}") };
            (sent_per_s.round(), late_ns, refused)
        })
    };
    assert_eq!(said(1, 500_000, 0), None);
    assert_eq!(said(2, 0, 0), Some((503.0, 98e6, 0)));
    assert_eq!(said(1, 20_000_000, 0), Some((833.0, 20e6, 0)));
    // The kernel refused to send this query, so no server could answer.
    assert_eq!(said(1, 0, 1), Some((990.0, 0.0, 1)));
}

#[test]
fn servers_that_are_installed_are_asked_what_a_file_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queries").display().to_string();
    fs::write(&path, "; of dnsperf\nexample. SOA\nmissing.example. A\nother. A\nexample. NS\n").unwrap();
    for program in [knot, bind, nsd] {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let program = Program { limit: Duration::from_secs(60), ..program(address) };
        let running = match program.start() {
            Ok(running) => running,
            Err(error @ Error::NotInstalled { .. }) => {
                left_out(error);
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        for variant in [UDP, TCP] {
            let server = running.address().to_string();
            let levels = [("server", &*server), ("queries", &path), ("rate_per_s", "100"), ("limit_ms", "60000")];
            let out = measured(arm(variant, &levels)).unwrap();
            for (code, share) in [("noerror", 0.5), ("nxdomain", 0.25), ("refused", 0.25), ("servfail", 0.0)] {
                assert_eq!(of_code(&out, code)[0], ok(share), "{server} {code}");
            }
        }
    }
}

#[test]
fn what_can_not_be_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queries").display().to_string();
    fs::write(&path, "example. A\nexample.\n").unwrap();
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let strange = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = |socket: &UdpSocket| socket.local_addr().unwrap().to_string();
    let (silent_at, strange_at) = (at(&silent), at(&strange));
    // The thread ends with the tests.
    thread::spawn(move || {
        let mut bytes = [0; 512];
        loop {
            let (length, from) = strange.recv_from(&mut bytes).unwrap();
            strange.send_to(&bytes[..length], from).unwrap();
        }
    });
    for (variant, levels, says) in [
        (UDP, vec![("server", "no where")], "`no where` is not a name server; give an address or a host"),
        (UDP, vec![("queries", "/nowhere/at/all")], "/nowhere/at/all: No such file"),
        (UDP, vec![("queries", &*path)], "queries: line 2: expected a name and a record type, found `example.`"),
        (UDP, vec![("server", &silent_at), ("limit_ms", "100")], "the server does not answer"),
        // Sending to a broadcast address needs a socket option that is not set.
        (UDP, vec![("server", "255.255.255.255:53"), ("limit_ms", "100")], "could not send to the server: "),
        (TCP, vec![("server", &silent_at)], "could not connect to the server"),
    ] {
        let error = measured(arm(variant, &levels)).unwrap_err().to_string();
        assert!(error.contains(says), "{levels:?}: {error}");
    }
    // A busy machine may send no query within a short time, so each try lasts longer than the previous try.
    let mut limit_ms = 100;
    wait_until("a message that is not an answer arrives", || {
        limit_ms *= 2;
        let levels = [("server", &*strange_at), ("limit_ms", &limit_ms.to_string())];
        let error = measured(arm(UDP, &levels)).unwrap_err().to_string();
        let is_silent = error.contains("the server does not answer");
        assert!(is_silent || error.contains("none of them answers a query"), "{error}");
        !is_silent
    });
}
