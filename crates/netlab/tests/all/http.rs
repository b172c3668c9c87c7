//! Tests of the HTTP server and client, with each other and with other programs.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use ascertain_netlab::http::{
    CERTIFICATE_PEM, ClientOptions, Connection, HttpRequest, HttpResponse, Misbehaviour, Protocol, Server, TlsVersion,
    trusting, trusting_ours,
};
use ascertain_netlab::{Error, Phase, Phases, now_ns};
use ascertain_sys::testing::left_out;

use Protocol::{Http1, Http2};
use TlsVersion::{V1_2, V1_3};

/// Time limit that no step of these tests reaches, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A certificate that our servers do not use.
const AUTHORITY_PEM: &str = include_str!("../../src/http/testing/authority.pem");

/// All combinations of HTTP version and TLS version.
const WAYS: [(Protocol, Option<TlsVersion>); 6] =
    [(Http1, None), (Http1, Some(V1_2)), (Http1, Some(V1_3)), (Http2, None), (Http2, Some(V1_2)), (Http2, Some(V1_3))];

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn offer(protocol: Protocol, version: Option<TlsVersion>) -> ClientOptions {
    let tls = version.map(|version| trusting_ours(&[version]).unwrap());
    ClientOptions { protocol, tls, ..ClientOptions::plain("localhost", PATIENCE) }
}

fn open(address: SocketAddr, offer: &ClientOptions) -> (Result<Connection, Error>, Phases) {
    let mut phases = Phases::begin(now_ns());
    let stream = TcpStream::connect(address).unwrap();
    phases.end(Phase::Connect, now_ns());
    (Connection::open(stream, offer, &mut phases), phases)
}

fn refused(address: SocketAddr, offer: &ClientOptions) -> String {
    open(address, offer).0.unwrap_err().to_string()
}

#[test]
fn bytes_come_and_go_in_every_way_with_their_phases() {
    for (protocol, version) in WAYS {
        let server = Server::start(listener(), version.as_ref().map(std::slice::from_ref)).unwrap();
        let (connection, mut phases) = open(server.address(), &offer(protocol, version));
        let mut connection = connection.unwrap();
        let session = connection.session().cloned();
        assert_eq!(session.as_ref().map(|session| session.version), version);
        assert_eq!(phases.took_ns(Phase::Tls).is_some(), version.is_some());
        if let Some(session) = session {
            // Names of cipher suites begin with TLS_ in TLS 1.2, and with TLS13_ in TLS 1.3.
            assert_eq!(session.cipher.starts_with("TLS13_"), version == Some(V1_3), "{}", session.cipher);
        }
        for bytes in [0, 1, 14_238, 100_000, 5_000_000] {
            let answer = connection.send(&HttpRequest::get(&format!("/bytes/{bytes}")), &mut phases).unwrap();
            assert_eq!((answer.status, answer.body_bytes), (200, bytes), "{protocol:?} {version:?}");
            // In addition to the body, the answer has a head and, with HTTP/2, the headers of frames of 16 kB.
            let frames_bytes = if protocol == Http2 { bytes / 100 + 200 } else { 0 };
            let most_bytes = bytes + 200 + frames_bytes;
            assert!((bytes + 1..most_bytes).contains(&answer.received_bytes), "{answer:?}");
            let ends =
                [Phase::Connect, Phase::Sent, Phase::FirstByte, Phase::LastByte].map(|phase| phases.end_ns(phase));
            assert!(ends.is_sorted() && ends[0].is_some(), "{phases:?}");
        }
        for bytes in [0, 1, 3_000_000] {
            let mut phases = Phases::begin(now_ns());
            let answer = connection.send(&HttpRequest::put("/", bytes), &mut phases).unwrap();
            assert_eq!((answer.status, answer.body_bytes), (200, bytes.to_string().len() as u64));
            let ends = [Phase::Sent, Phase::FirstByte, Phase::LastByte].map(|phase| phases.end_ns(phase));
            assert!(ends.is_sorted() && ends[0].is_some_and(|end_ns| end_ns >= phases.start_ns()), "{phases:?}");
        }
        let served = server.stats();
        assert_eq!((served.connections, served.requests, served.uploaded_bytes), (1, 8, 3_000_001));
    }
}

#[test]
fn what_is_not_there_is_said() {
    let server = Server::start(listener(), None).unwrap();
    let (connection, mut phases) = open(server.address(), &offer(Http1, None));
    let mut connection = connection.unwrap();
    for path in ["/", "/bytes/", "/bytes/x", "/bytes/-1", "/bytes/18446744073709551615", "/bytes/1e3"] {
        let HttpResponse { status, body_bytes, .. } = connection.send(&HttpRequest::get(path), &mut phases).unwrap();
        assert_eq!((status, body_bytes > 20), (404, true), "{path}");
    }
    for path in ["bytes/1", "/bytes 1", "http://elsewhere/", ""] {
        let error = connection.send(&HttpRequest::get(path), &mut phases).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)) && error.to_string().contains("cannot request"), "{path}: {error}");
    }
}

#[test]
fn a_server_is_gone_when_dropped_and_so_are_its_connections() {
    let server = Server::start(listener(), None).unwrap();
    let address = server.address();
    let (connection, mut phases) = open(address, &offer(Http1, None));
    let mut connection = connection.unwrap();
    connection.send(&HttpRequest::get("/bytes/1"), &mut phases).unwrap();
    let mut idle = TcpStream::connect(address).unwrap();
    idle.set_read_timeout(Some(PATIENCE)).unwrap();
    idle.write_all(b"GET /byt").unwrap();
    drop(server);
    assert!(matches!(idle.read(&mut [0]), Ok(0) | Err(_)), "the half-sent request kept the connection open");
    let error = connection.send(&HttpRequest::get("/bytes/1"), &mut phases).unwrap_err();
    assert!(error.to_string().starts_with("the connection failed before an answer arrived: "), "{error}");
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn who_does_not_agree_is_told_what_about() {
    let server = Server::start(listener(), Some(&[V1_3])).unwrap();
    let older = refused(server.address(), &offer(Http1, Some(V1_2)));
    assert!(older.starts_with("TLS: ") && older.contains("does not speak the requested version"), "{older}");
    // A certificate that the server does not use.
    let other = trusting(CERTIFICATE_PEM.as_bytes(), &[V1_3]).unwrap();
    let elsewhere = ClientOptions { host: "elsewhere.example:443".into(), tls: Some(other), ..offer(Http1, None) };
    let name = refused(server.address(), &elsewhere);
    assert!(name.starts_with("TLS: ") && name.contains("elsewhere.example"), "{name}");
    let other = ClientOptions { tls: Some(trusting(AUTHORITY_PEM.as_bytes(), &[V1_3]).unwrap()), ..offer(Http1, None) };
    let untrusted = refused(server.address(), &other);
    assert_eq!(untrusted, "TLS: no trusted authority signed the server's certificate");
    for host in ["127.0.0.1", "127.0.0.1:443", "[::1]", "[::1]:443", "::1", "localhost:443"] {
        let offer = ClientOptions { host: host.into(), ..offer(Http1, Some(V1_3)) };
        assert!(open(server.address(), &offer).0.is_ok(), "{host}");
    }
    assert!(trusting_ours(&[]).is_err());
    assert!(Server::start(listener(), Some(&[])).is_err());
    assert!(trusting(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &[V1_3]).is_err());
}

#[test]
fn bad_servers_are_errors_that_say_how_far_it_came() {
    let asking = |how, limit| {
        let server = Server::misbehaving(listener(), how).unwrap();
        let (connection, mut phases) = open(server.address(), &ClientOptions { limit, ..offer(Http1, None) });
        let answer = connection.unwrap().send(&HttpRequest::get("/bytes/10"), &mut phases);
        let reached = [Phase::Sent, Phase::FirstByte, Phase::LastByte].map(|phase| phases.end_ns(phase).is_some());
        (answer.map_err(|error| error.to_string()), reached)
    };
    for how in [Misbehaviour::Closes, Misbehaviour::NotHttp] {
        let (answer, reached) = asking(how, PATIENCE);
        assert!(answer.unwrap_err().starts_with("the connection failed before an answer arrived: "), "{how:?}");
        assert_eq!(reached, [true, false, false], "{how:?}");
    }
    let (answer, reached) = asking(Misbehaviour::SendsLess, PATIENCE);
    let less = answer.unwrap_err();
    assert!(less.starts_with("the connection failed in the middle of the answer: "), "{less}");
    assert_eq!(reached, [true, true, false]);
    // The reset may arrive before the head is read.
    let reset = asking(Misbehaviour::Resets, PATIENCE).0.unwrap_err();
    assert!(reset.starts_with("the connection failed ") && reset.contains("reset"), "{reset}");
    assert_eq!(asking(Misbehaviour::SendsMore, PATIENCE).0.unwrap().body_bytes, 500);

    let brief = Duration::from_millis(50);
    // On a busy machine, the request may not even be sent in that time.
    let (answer, reached) = asking(Misbehaviour::Silent, brief);
    assert_eq!((answer.unwrap_err().as_str(), &reached[1..]), ("timed out after 50ms", &[false; 2][..]));
    let (answer, reached) = asking(Misbehaviour::Slow { each: PATIENCE }, brief);
    assert_eq!((answer.unwrap_err().as_str(), reached[2]), ("timed out after 50ms", false));
    assert_eq!(asking(Misbehaviour::Slow { each: Duration::ZERO }, PATIENCE).0.unwrap().body_bytes, 1_000);

    // The server accepts no connection, but the kernel establishes it.
    let nobody = listener();
    let secure = ClientOptions { limit: brief, ..offer(Http1, Some(V1_3)) };
    assert!(matches!(open(nobody.local_addr().unwrap(), &secure).0, Err(Error::TimedOut { .. })));
    let plain = Server::start(listener(), None).unwrap();
    let in_the_open = refused(plain.address(), &ClientOptions { limit: PATIENCE, ..secure });
    assert!(in_the_open.starts_with("TLS: ") && in_the_open.contains("not TLS"), "{in_the_open}");
}

#[test]
fn curl_agrees() {
    let Ok(version) = Command::new("curl").arg("--version").output() else {
        return left_out("curl is not installed");
    };
    let knows_http2 = String::from_utf8_lossy(&version.stdout).contains("HTTP2");
    let certificate = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(certificate.path(), CERTIFICATE_PEM).unwrap();
    for (protocol, version) in WAYS {
        if protocol == Http2 && !knows_http2 {
            left_out("this curl does not support HTTP/2");
            continue;
        }
        let server = Server::start(listener(), version.as_ref().map(std::slice::from_ref)).unwrap();
        let port = server.address().port();
        let (flag, says) = match (protocol, version) {
            (Http1, _) => ("--http1.1", "1.1"),
            (Http2, None) => ("--http2-prior-knowledge", "2"),
            (Http2, Some(_)) => ("--http2", "2"),
        };
        let scheme = if version.is_some() { "https" } else { "http" };
        let output = Command::new("curl")
            .args([flag, "-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_version} %{size_download}"])
            .arg("--cacert")
            .arg(certificate.path())
            .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
            .arg(format!("{scheme}://localhost:{port}/bytes/123456"))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("{says} 123456"), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn what_encrypts_can_be_chosen_and_each_end_has_its_cpu_time() {
    for name in ["TLS13_AES_128_GCM_SHA256", "TLS13_CHACHA20_POLY1305_SHA256"] {
        let server = Server::start(listener(), Some(&[V1_3])).unwrap();
        let tls = trusting_ours(&[V1_3]).unwrap().with_cipher(name).unwrap();
        let offer = ClientOptions { tls: Some(tls), ..ClientOptions::plain("localhost", PATIENCE) };
        let mut connection = open(server.address(), &offer).0.unwrap();
        assert_eq!(connection.session().unwrap().cipher, name);
        #[cfg(target_os = "linux")]
        {
            let before_ns = server.cpu_ns().unwrap();
            connection.send(&HttpRequest::get("/bytes/1000000"), &mut Phases::begin(0)).unwrap();
            assert!(server.cpu_ns().unwrap() > before_ns);
        }
        connection.send(&HttpRequest::get("/bytes/1"), &mut Phases::begin(0)).unwrap();
    }
    for (versions, name) in [(V1_3, "TLS13_NULL"), (V1_2, "TLS13_AES_128_GCM_SHA256")] {
        let error = trusting_ours(&[versions]).unwrap().with_cipher(name).unwrap_err().to_string();
        assert!(error.starts_with("TLS: "), "{error}");
    }
}
