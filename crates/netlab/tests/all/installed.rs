//! Each installed server answers, and no process or file of it is left afterwards. Tests of servers that are not
//! installed are skipped.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ascertain_netlab::http::{
    CERTIFICATE_PEM, ClientOptions, Connection, HttpRequest, KEY_PEM, Protocol, TlsVersion, trusting_ours,
};
use ascertain_netlab::installed::{Program, RunningProgram, bind, caddy, iperf3, knot, nginx, nsd, start_anywhere};
use ascertain_netlab::{Error, Phases};
use ascertain_sys::testing::{left_out, wait_until};

use Protocol::{Http1, Http2};
use TlsVersion::{V1_2, V1_3};

const PATIENCE: Duration = Duration::from_secs(60);

fn started(program: impl Fn(SocketAddr) -> Program) -> Option<RunningProgram> {
    // A busy machine needs more time.
    match start_anywhere(|address| Program { limit: PATIENCE, ..program(address) }) {
        Ok(running) => Some(running),
        Err(error @ Error::NotInstalled { .. }) => {
            left_out(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Ends a server, and checks that no process or folder of it is left.
fn end(running: RunningProgram) {
    let (address, folder, pid) = (running.address(), running.folder().to_owned(), running.pid());
    drop(running);
    assert!(!folder.exists() && !Path::new(&format!("/proc/{pid}")).exists());
    assert!(TcpStream::connect(address).is_err());
    assert_has_ended(pid);
}

/// Returns the states of all processes of a group, as the kernel reports them.
fn of_group(group: u32) -> String {
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let stats = processes.filter_map(|process| std::fs::read_to_string(process.join("stat")).ok());
    // The fields after the name are the state, the parent and the group.
    let is_of_group = |stat: &String| {
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        rest.split(' ').nth(2) == Some(&group.to_string())
    };
    stats.filter(is_of_group).collect()
}

/// Waits until all processes of a group have ended. A killed process remains as a zombie until its parent waits for it.
fn assert_has_ended(group: u32) {
    let is_over = || of_group(group).lines().all(|stat| stat.contains(") Z "));
    wait_until("every process of the group has ended", is_over);
}

fn serves_pages(server: impl Fn(SocketAddr, Option<TlsVersion>) -> Program) {
    for (protocol, version) in
        [(Http1, None), (Http1, Some(V1_2)), (Http1, Some(V1_3)), (Http2, Some(V1_2)), (Http2, Some(V1_3))]
    {
        let Some(running) = started(|address| server(address, version)) else { return };
        std::fs::write(running.folder().join("www/page"), vec![b'x'; 14_238]).unwrap();
        let tls = version.map(|version| trusting_ours(&[version]).unwrap());
        let offer = ClientOptions { protocol, tls, ..ClientOptions::plain("localhost", PATIENCE) };
        let mut phases = Phases::begin(0);
        let stream = TcpStream::connect(running.address()).unwrap();
        let mut connection = Connection::open(stream, &offer, &mut phases).unwrap();
        let answer = connection.send(&HttpRequest::get("/page"), &mut phases).unwrap();
        assert_eq!((answer.status, answer.body_bytes), (200, 14_238), "{}", running.output());
        assert_eq!(connection.session().map(|session| session.version), version);
        // The server refuses the other version of TLS.
        if let Some(version) = version {
            let other = if version == V1_2 { V1_3 } else { V1_2 };
            let offer = ClientOptions { tls: Some(trusting_ours(&[other]).unwrap()), ..offer };
            let stream = TcpStream::connect(running.address()).unwrap();
            let refused = Connection::open(stream, &offer, &mut phases).unwrap_err();
            assert!(matches!(refused, Error::Tls { .. }), "{refused}");
        }
        end(running);
    }
}

#[test]
fn nginx_serves_pages() {
    serves_pages(nginx);
}

#[test]
fn caddy_serves_pages() {
    serves_pages(caddy);
}

#[test]
fn who_does_not_say_what_it_speaks_speaks_http1() {
    let program = |address: SocketAddr| {
        let port = address.port().to_string();
        let arguments = ["s_server", "-accept", &port, "-cert", "certificate", "-key", "key", "-www"];
        let files = [("certificate", CERTIFICATE_PEM), ("key", KEY_PEM)].map(|(path, text)| (path.into(), text.into()));
        let arguments = arguments.map(String::from).into();
        Program {
            name: "openssl",
            install: "apt-get install openssl",
            arguments,
            files: files.into(),
            address,
            ..shell("", PATIENCE)
        }
    };
    let Some(running) = started(program) else { return };
    let tls = Some(trusting_ours(&[V1_3]).unwrap());
    let offer = ClientOptions { tls, ..ClientOptions::plain("localhost", PATIENCE) };
    let open = |offer: &ClientOptions| {
        let stream = TcpStream::connect(running.address()).unwrap();
        Connection::open(stream, offer, &mut Phases::begin(0))
    };
    let answer = open(&offer).unwrap().send(&HttpRequest::get("/"), &mut Phases::begin(0)).unwrap();
    assert_eq!(answer.status, 200);
    let refused = open(&ClientOptions { protocol: Http2, ..offer }).unwrap_err();
    assert!(matches!(refused, Error::OtherProtocol { wanted: Http2 }), "{refused}");
    end(running);
}

#[test]
fn iperf3_measures() {
    let Some(running) = started(iperf3) else { return };
    let port = running.address().port().to_string();
    // The server may still be busy with the connection that checked whether it was ready.
    wait_until("iperf3 has measured", || {
        let client = Command::new("iperf3").args(["-c", "127.0.0.1", "-p", &port, "-n", "100K"]).output().unwrap();
        client.status.success()
    });
    end(running);
}

/// Starts a name server, and queries the address of `www.example.`.
fn resolves(program: fn(SocketAddr) -> Program) {
    let Some(running) = started(program) else { return };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let question = b"\x12\x34\0\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01";
    socket.send_to(question, running.address()).unwrap();
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer).unwrap();
    let answer = &answer[..length];
    // The answer has the id of the query, is authoritative, and reports no error.
    assert_eq!((&answer[..2], answer[2] & 0x84, answer[3] & 0x0f), (&question[..2], 0x84, 0), "{}", running.output());
    assert!(answer.windows(4).any(|bytes| bytes == [192, 0, 2, 2]));
    end(running);
}

#[test]
fn knot_resolves() {
    resolves(knot);
}

#[test]
fn bind_resolves() {
    resolves(bind);
}

#[test]
fn nsd_resolves() {
    resolves(nsd);
}

fn shell(script: &str, limit: Duration) -> Program {
    Program {
        name: "sh",
        install: "apt-get install dash",
        arguments: ["-c", script].map(String::from).into(),
        files: vec![("page".into(), "this is {folder}".into())],
        // No process listens on this port.
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
        is_ready: |_| true,
        limit,
    }
}

#[test]
fn what_does_not_come_up_says_why() {
    let error = shell("for n in $(seq 100); do echo line $n >&2; done; exit 3", PATIENCE).start().unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("`sh` ended at once (exit status: 3); its output:\nline 89\n"), "{error}");
    assert!(error.ends_with("\nline 100"), "{error}");
    let error = shell("echo busy; sleep 1000", Duration::from_millis(50)).start().unwrap_err().to_string();
    assert!(error.starts_with("`sh` was not ready after 50ms"), "{error}");
    let absent = Program { name: "ascertain-no-such-server", ..shell("", PATIENCE) };
    assert!(matches!(absent.start(), Err(Error::NotInstalled { .. })));
    assert!(matches!(absent.is_installed(), Err(Error::NotInstalled { .. })));
    assert!(shell("", PATIENCE).is_installed().is_ok());
}

#[test]
fn a_server_is_told_to_end_before_it_is_killed() {
    let outside = tempfile::tempdir().unwrap();
    let path = |name| outside.path().join(name);
    let script = "trap 'echo told > \"$0\"/told; exit' TERM; echo > \"$0\"/ready; while :; do sleep 0.01; done";
    let mut program = shell(script, PATIENCE);
    program.arguments.push(outside.path().to_string_lossy().into());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let connect = || std::fs::metadata(path("ready")).and_then(|_| TcpStream::connect(listener.local_addr()?));
    drop(program.start_where(|_| (), connect).unwrap());
    assert!(path("told").exists());
}

#[test]
fn whatever_a_server_started_ends_with_it() {
    // A server that ignores SIGTERM and has a child process.
    let stubborn = "trap '' TERM; sleep 1000 & cat page > copy; while :; do sleep 0.01; done";
    let program = shell(stubborn, PATIENCE);
    let mut folder = None;
    let place = |command: &mut Command| folder = command.get_current_dir().map(Path::to_owned);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let connect = || TcpStream::connect(listener.local_addr()?);
    let running = program.start_where(place, connect).unwrap();
    let copy = running.folder().join("copy");
    let is_whole = |copy: String| copy.ends_with(&*running.folder().to_string_lossy());
    wait_until("the copy is complete", || std::fs::read_to_string(&copy).is_ok_and(is_whole));
    let group = running.pid();
    assert!(of_group(group).lines().count() >= 2, "{}", of_group(group));
    drop(running);
    assert!(!folder.unwrap().exists());
    assert_has_ended(group);
}
