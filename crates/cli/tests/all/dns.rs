//! Tests that wait for DNS records on name servers, as a user does.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ascertain_netlab::Error;
use ascertain_netlab::dns::{
    Change, Name, RData, Recipient, RecordType, Simulation, SimulationSpec, UpdateRequest, ZoneServer, exchange, update,
};
use ascertain_netlab::installed::{Program, bind, knot, nsd, start_anywhere};
use ascertain_sys::testing::{left_out, wait_until};

use crate::common::{Ran, ascertain, ran, write_script};

const NAME: &str = "_acme-challenge.example.";

/// Starts a zone with one server for each delay. The delay is the time in milliseconds until the server publishes a
/// change.
fn served(delays_ms: &[u64]) -> ZoneServer {
    let plan = SimulationSpec::new(delays_ms.iter().map(|ms| vec![Duration::from_millis(*ms)]).collect());
    let sockets = delays_ms.iter().map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    ZoneServer::start(plan, TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), sockets).unwrap()
}

fn request(text: &str) -> UpdateRequest {
    let value = RData::try_from_str(RecordType::TXT, text).unwrap();
    let change = Change::Add { name: Name::from_ascii(NAME).unwrap(), ttl_s: 1, value };
    update(&Name::from_ascii("example.").unwrap(), &change, None, 1, 0).unwrap()
}

/// Adds the record to the zone, which is the first step of an ACME client's hook.
fn add(primary: SocketAddr, text: &str) {
    let mut request = request(text);
    let answer = exchange(&mut TcpStream::connect(primary).unwrap(), &request.bytes).unwrap();
    request.accept(&answer).unwrap();
}

fn waited(state: &Path, servers: &[SocketAddr], more: &[&str]) -> Ran {
    let addresses: Vec<String> = servers.iter().map(ToString::to_string).collect();
    let levels = [format!("record={NAME}"), "expect=token".into(), format!("addresses={}", addresses.join(","))];
    let levels = levels.iter().flat_map(|level| ["--at", level]);
    let arguments = ["run", "dns-propagation", "--max-time", "10min", "--at", "interval_ms=100"];
    ascertain(state, &arguments.into_iter().chain(levels).chain(more.iter().copied()).collect::<Vec<_>>())
}

/// Runs a server that has the record after this number of queries. The simulated clock advances with each query.
fn serve(socket: &UdpSocket, questions: u64, is_over: &AtomicBool) {
    let mut zone = Simulation::new(SimulationSpec::new(vec![vec![Duration::from_millis(questions)]]), 0);
    zone.request(0, Recipient::Primary, socket.local_addr().unwrap(), &request("token").bytes).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (mut count, mut bytes) = (0, [0; 512]);
    while !is_over.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        count += 1;
        let answer = zone.request(count * 1_000_000, Recipient::Server(0), from, &bytes[..length]).unwrap();
        socket.send_to(&answer, from).unwrap();
    }
}

/// Waits for the record on two servers. The slower server has the record only after a thousand queries. The command
/// first spends about a second on checking which servers answer, so it usually begins to wait before the slower server
/// has the record.
fn waited_for_two(state: &Path, format: &str) -> (Ran, [SocketAddr; 2]) {
    let servers = [1, 1_000].map(|questions| (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), questions));
    let addresses = servers.each_ref().map(|(socket, _)| socket.local_addr().unwrap());
    let is_over = AtomicBool::new(false);
    let ran = thread::scope(|scope| {
        for (socket, questions) in &servers {
            scope.spawn(|| serve(socket, *questions, &is_over));
        }
        let ran = waited(state, &addresses, &["--format", format, "--at", "ports=64"]);
        is_over.store(true, Ordering::Relaxed);
        ran
    });
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    (ran, addresses)
}

/// By default, propagation is measured once, and all variants are measured.
#[test]
fn a_record_is_waited_for_once() {
    let state = tempfile::tempdir().unwrap();
    let (ran, addresses) = waited_for_two(state.path(), "json");
    let points = ran.json()["points"].as_array().unwrap().clone();
    let all = points.iter().find(|point| point["metric"] == "all" && point["variant"] == "watch").unwrap();
    assert_eq!(all["n"], 1, "{all}");
    let remarks = ran.json()["remarks"].clone();
    let remark = remarks[0].clone();
    assert!(remark["remark"].as_str().unwrap().starts_with("all 2 servers agree, "), "{remark}");
    assert_eq!((&remark["variant"], &remark["remark_code"]["agree"]), (&"watch".into(), &2.into()));
    // Each server is reported with its own time and with one replica.
    let by_key = ran.json()["by_key"].as_array().unwrap().clone();
    for (metric, medians) in [("server", 0.0..=f64::MAX), ("replicas", 1.0..=1.0)] {
        let of_metric: Vec<_> = by_key.iter().filter(|point| point["metric"] == metric).collect();
        let keys: BTreeSet<_> = of_metric.iter().map(|point| point["key"].as_str().unwrap().to_string()).collect();
        assert_eq!(keys, addresses.iter().map(ToString::to_string).collect(), "{by_key:?}");
        assert!(of_metric.iter().all(|point| medians.contains(&point["median"].as_f64().unwrap())), "{by_key:?}");
    }
    // The report contains the curve.
    let curve = ascertain(state.path(), &["report", "--svg", "dns-propagation-share-curve"]);
    assert_eq!(curve.code, Some(0), "{}", curve.stderr);
    assert!(addresses.iter().all(|server| curve.stdout.contains(&server.to_string())), "{}", curve.stdout);
}

#[test]
fn a_terminal_shows_the_curve_and_a_sentence() {
    let state = tempfile::tempdir().unwrap();
    let (ran, addresses) = waited_for_two(state.path(), "table");
    assert!(ran.stdout.contains("`watch`: all 2 servers agree, "), "{}", ran.stdout);
    // Variants that the user did not request are not mentioned.
    assert!(!ran.stderr.contains("claim") && !ran.stdout.contains("Unavailable"), "{}{}", ran.stderr, ran.stdout);
    let in_one_line = ran.stdout.replace('\n', " ");
    assert!(in_one_line.contains("dns-propagation by key"), "{}", ran.stdout);
    assert!(addresses.iter().all(|server| in_one_line.matches(&server.to_string()).count() >= 2), "{}", ran.stdout);
    let (_, curve) = ran.stdout.split_once("Share over time").unwrap_or_else(|| panic!("{}", ran.stdout));
    assert!(addresses.iter().all(|server| curve.contains(&server.to_string())), "{curve}");
}

/// One server never gets the record, and the other one never answers. The time limit is one second. If the machine
/// stalls for that long, the first server may seem not to answer either.
#[test]
fn a_missing_record_is_reported_after_the_time_limit() {
    let state = tempfile::tempdir().unwrap();
    let zone = served(&[1]);
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let [one, other] = [zone.servers()[0], silent.local_addr().unwrap()];
    let ran = waited(state.path(), &[one, other], &["--at", "limit_s=1"]);
    assert_eq!(ran.code, Some(5), "{}", ran.stdout);
    let says = format!("Failed (after 1s {one}, {other} are still not as expected): `watch`.");
    let stdout = ran.stdout.replace('\n', " ");
    assert!(stdout.contains(&says), "{stdout} {}", ran.stderr);
    let of_one = format!("`watch`: 0 of 2 servers agree; {one} ");
    let says = ["has answered NXDOMAIN for ", "has not answered for "].map(|words| of_one.clone() + words);
    assert!(says.iter().any(|says| stdout.contains(says)), "{stdout}");
    assert!(stdout.contains(&format!("; {other} has not answered for 1")), "{stdout}");
}

/// Wrong usage is reported before anything is queried or recorded.
#[test]
fn invalid_levels_and_keys_are_wrong_usage() {
    let state = tempfile::tempdir().unwrap();
    let key = |run: &mut Command| _ = run.env("TSIG_KEY", "mine:no base64").env("XDG_STATE_HOME", state.path());
    for (arguments, says) in [
        ("dns-propagation --at type=X", "--at type=X: `X` is not a record type"),
        ("dns-propagation --at record=a..b", "--at record=a..b: `a..b` is not a domain name"),
        ("dns-propagation --at addresses=192.0.2.1,:53", "--at addresses=192.0.2.1,:53: `:53` is not a name server"),
        ("dns-propagation --at exec=/nowhere/at/all", "--at exec=/nowhere/at/all: the file does not exist"),
        ("dns-propagation --at project=a?b", "--at project=a?b: `a?b` is not a valid project"),
        ("dns-propagation --at server=192.0.2.1", "$TSIG_KEY: invalid key: its secret is not valid Base64"),
        ("dns-propagation --at record=a.example", "`watch`: needs `expect=…`"),
        ("dns-propagation --variants rfc2136 --at zone=example", "`rfc2136`: needs `server=…`"),
        (
            "dns-propagation --at record=a.example --at expect=x --at addresses=192.0.2.1 --at limit_s=86400 \
             --at interval_ms=1 --at ports=256",
            "256000 queries per second to each server, but at most 1000",
        ),
        ("dns-load --at server=a?b", "--at server=a?b: `a?b` is not a name server"),
        ("dns-load --at queries=/nowhere/at/all", "/nowhere/at/all: No such file"),
    ] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_ascertain"));
        key(run.arg("run").args(arguments.split(' ')));
        let ran = ran(run.output().unwrap());
        assert_eq!(ran.code, Some(2), "{arguments}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(says) && ran.stdout.is_empty(), "{arguments}: {}", ran.stderr);
    }
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
}

/// Runs the hook in the experiment's README, but with replacements: `nsupdate` is a script of this test, and the
/// domain's servers are those of the test.
#[test]
fn the_readmes_hook_waits_for_what_it_adds() {
    let state = tempfile::tempdir().unwrap();
    let zone = served(&[1, 300]);
    let readme = ascertain_experiments::registry().into_iter().find(|one| one.spec().id == "dns-propagation").unwrap();
    let readme = readme.spec().readme.lines().map(str::trim_start);
    let hook = readme.skip_while(|line| *line != "#!/bin/sh").take_while(|line| !line.is_empty());
    let addresses: Vec<String> = zone.servers().iter().map(ToString::to_string).collect();
    let ascertain = format!(
        "#!/bin/sh\nexec {} \"$@\" --at interval_ms=100 --at addresses={}\n",
        env!("CARGO_BIN_EXE_ascertain"),
        addresses.join(",")
    );
    let at = |name: &str| state.path().join(name);
    let nsupdate = format!("#!/bin/sh\ncat > {0}.new\nmv {0}.new {0}\n", at("told").display());
    for (name, text) in
        [("hook.sh", hook.collect::<Vec<_>>().join("\n")), ("ascertain", ascertain), ("nsupdate", nsupdate)]
    {
        write_script(&at(name), &text);
    }
    let path = format!("{}:{}", state.path().display(), std::env::var("PATH").unwrap());
    let mut hook = Command::new(at("hook.sh"));
    hook.env("XDG_STATE_HOME", state.path()).env("PATH", path);
    hook.env("CERTBOT_DOMAIN", "example").env("CERTBOT_VALIDATION", "token");
    let ran = thread::scope(|scope| {
        let hook = scope.spawn(|| ran(hook.output().unwrap()));
        wait_until("the hook has called nsupdate", || {
            assert!(!hook.is_finished() || at("told").exists(), "the hook ended, and did not call nsupdate");
            at("told").exists()
        });
        let told = fs::read_to_string(at("told")).unwrap();
        assert_eq!(told, format!("update add {NAME} 60 TXT \"token\"\nsend\n"));
        add(zone.primary(), "token");
        hook.join().unwrap()
    });
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn installed_servers_are_queried() {
    let state = tempfile::tempdir().unwrap();
    let mut running = Vec::new();
    for program in [knot, bind, nsd] {
        let with_record = |address| {
            let mut program = Program { limit: Duration::from_secs(300), ..program(address) };
            program.files[1].1 += &format!("{NAME} 1 TXT token\n");
            program
        };
        match start_anywhere(with_record) {
            Ok(server) => running.push(server),
            Err(error @ Error::NotInstalled { .. }) => left_out(error),
            Err(error) => panic!("{error}"),
        }
    }
    if running.is_empty() {
        return;
    }
    let addresses: Vec<SocketAddr> = running.iter().map(|server| server.address()).collect();
    let ran = waited(state.path(), &addresses, &["--at", "ports=2"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let says = if running.len() == 1 { "the server agrees" } else { "servers agree, from the beginning" };
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
}
