//! Tests in which a session changes a simulated zone, measures the change, and reports its metrics.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ascertain_engine::experiment::{Experiment, Level};
use ascertain_netlab::dns::{
    Change, Name, ProbeAnswer, Recipient, ResponseCode, Simulation, SimulationSpec, ZoneServer, exchange, update,
};
use ascertain_sys::testing::{or_left_out, wait_until};

use super::super::authorities::tests::{of_one_port, resolver};
use super::super::propagation::Replica;
use super::super::providers::clean;
use super::super::rules::is_available;
use super::super::{APART, DnsPropagation, EXEC, RFC2136, TOGETHER, WATCH};
use super::*;

#[path = "tests/places.rs"]
mod places;

/// Time between two checks of a condition.
const LOOK: Duration = Duration::from_millis(20);
/// Time limit for an answer. The limit is long, because the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

fn arm(variant: &str, levels: &[(&str, u64)]) -> Arm {
    let point = DnsPropagation.spec().default_point();
    let point = levels.iter().fold(point, |point, (factor, level)| point.with(factor, Level::Integer(*level)));
    DnsPropagation.trimmed(&Arm { variant: variant.into(), point })
}

/// Levels that cause few queries, for busy machines.
const CALM: [(&str, u64); 3] = [("interval_ms", 100), ("ports", 8), ("slowest_ms", 300)];

/// The bounds of each moment must contain the true moment, however slow the machine is. Late answers only widen the
/// bounds.
#[test]
fn what_is_said_holds_of_the_truth() {
    for variant in [TOGETHER, APART] {
        let arm = arm(variant, &CALM);
        if or_left_out(is_available(&arm)).is_none() {
            return;
        }
        let updates = patient(Updates::open(&[arm], &Setup::default()).unwrap());
        let target = &updates.arms[0];
        let observation = target.observe(7, &Stop::default()).unwrap();
        // The newest version of the zone is the one from which the record was removed again.
        let truth = target.zone.truth();
        let call_ns = observation.call_ns;
        let of_servers = servers(&observation.log.probes, 4, call_ns);
        for (server, truth) in of_servers.iter().zip(&truth) {
            assert!((1..=3).contains(&server.replicas.len()) && server.mixed.is_empty(), "{server:?}");
            for replica in &server.replicas {
                let Moment { low_ns, high_ns: Some(high_ns) } = replica.had else { panic!("{replica:?}") };
                let is_within = |at_ns: &u64| *at_ns > call_ns + low_ns && *at_ns <= call_ns + high_ns;
                assert!(truth.iter().any(is_within), "{variant}: {replica:?} {truth:?} {call_ns}");
            }
        }
        assert_eq!(observation.log.strange, 0);
    }
}

#[test]
fn each_change_has_its_metrics() {
    let arms = [TOGETHER, APART].map(|variant| arm(variant, &CALM));
    if or_left_out(is_available(&arms[0])).is_none() {
        return;
    }
    let mut updates = patient(Updates::open(&arms, &Setup::default()).unwrap());
    for of in 0..2 {
        assert_eq!(updates.facts(of).unwrap().get("initial_window"), Some(&10.into()));
        let mut out = Samples::default();
        updates.measure(of, &Trial { number: 0, seed: 7 }, &mut out).unwrap();
        let of_metric = |metric| out.iter().filter(move |sample| sample.metric == metric);
        for (metric, count) in
            (0..=LATE + 1).map(|metric| (metric, if [SERVER, REPLICAS].contains(&metric) { 4 } else { 1 }))
        {
            let seen = of_metric(metric).count();
            let is_more = [SHARE, REPLICA, REPLICA_SHARE].contains(&metric) && seen >= 4;
            assert!(seen == count || is_more, "{metric}: {seen}");
        }
        // Each replica belongs to a server, has a name, and has a curve.
        let keys = |metric| of_metric(metric).map(|sample| sample.key.to_string()).collect::<BTreeSet<_>>();
        assert_eq!(keys(REPLICA), keys(REPLICA_SHARE));
        let count: f64 = of_metric(REPLICAS).map(|sample| sample.value).sum();
        assert_eq!(keys(REPLICA).len() as f64, count);
        assert!(keys(REPLICA).iter().all(|key| key.starts_with("ns") && key.contains('#')), "{:?}", keys(REPLICA));
        // Eight ports are likely to miss a replica.
        let status = |metric| if metric == UNSURE { Status::Censored } else { Status::Ok };
        assert!(out.iter().all(|sample| sample.status == status(sample.metric) && sample.value.is_finite()));
        let value = |metric| of_metric(metric).next().unwrap().value;
        assert!(value(FIRST) <= value(HALF) && value(HALF) <= value(ALL));
        assert_eq!(value(ALL) - value(DONE), value(DONE_BEFORE));
        assert_eq!(value(INTERVAL), 100e6);
        // The slowest replica gets the change after 300 ms. The estimate is the middle between the bounds, so it is at
        // least 150 ms.
        assert!(value(ALL) >= 150e6, "{}", value(ALL));
    }
}

/// Serves a zone on this machine, and returns its servers' addresses as a level.
pub fn served(delays: &[u64]) -> (ZoneServer, String) {
    let udp = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let plan = SimulationSpec::new(delays.iter().map(|delay_ms| vec![Duration::from_millis(*delay_ms)]).collect());
    let primary = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let served = ZoneServer::start(plan, primary, delays.iter().map(|_| udp()).collect()).unwrap();
    let addresses: Vec<String> = served.servers().iter().map(ToString::to_string).collect();
    (served, addresses.join(","))
}

pub fn arm_with(variant: &str, levels: &[(&str, &str)]) -> Arm {
    let arm = arm(variant, &[("interval_ms", 100), ("ports", 2)]);
    let level = |text: &str| if text.parse::<u64>().is_ok() { Level::parse(text) } else { Level::Text(text.into()) };
    let point = levels.iter().fold(arm.point, |point, (factor, text)| point.with(factor, level(text)));
    Arm { point, ..arm }
}

/// Makes the session wait for each answer for up to [`PATIENCE`], and shortens the phase of queries before the change.
pub fn patient(mut updates: Updates) -> Updates {
    for arm in &mut updates.arms {
        (arm.least_patience, arm.first_look) = (PATIENCE, Duration::ZERO);
    }
    updates
}

fn measured(arm: &Arm) -> Result<Samples, TargetError> {
    measured_within(arm, PATIENCE)
}

/// Measures the arm. `patience` is the time limit for an answer.
fn measured_within(arm: &Arm, patience: Duration) -> Result<Samples, TargetError> {
    is_available(arm).map_err(failed)?;
    let mut out = Samples::default();
    let notes = tempfile::tempdir().unwrap();
    let mut updates = patient(opened(arm, notes.path())?);
    updates.arms[0].least_patience = patience;
    updates.verify(0)?;
    let measured = updates.measure(0, &Trial { number: 0, seed: 7 }, &mut out);
    assert_eq!(fs::read_dir(&notes).unwrap().count(), 0, "no note must be left");
    measured.map(|()| out)
}

/// Opens a session that writes its notes about records to a folder of the test.
fn opened(arm: &Arm, notes: &Path) -> Result<Updates, TargetError> {
    let mut updates = Updates::open(std::slice::from_ref(arm), &Setup::default())?;
    updates.arms[0].zone.notes = notes.into();
    Ok(updates)
}

/// Adds a record as another program would do.
fn add(primary: SocketAddr, name: &str, text: &str) {
    let value = RData::try_from_str(RecordType::TXT, text).unwrap();
    let change = Change::Add { name: Name::from_ascii(name).unwrap(), ttl_s: 1, value };
    let mut request = update(&Name::from_ascii("example.").unwrap(), &change, None, 1, 0).unwrap();
    let mut stream = TcpStream::connect(primary).unwrap();
    let answer = exchange(&mut stream, &request.bytes).unwrap();
    request.accept(&answer).unwrap();
}

#[test]
fn a_record_is_waited_for_until_all_servers_have_it() {
    let (zone, addresses) = served(&[1, 400]);
    let name = "_acme-challenge.example.";
    let levels = [("record", name), ("expect", "token"), ("addresses", &*addresses)];
    let out = thread::scope(|scope| {
        let out = scope.spawn(|| measured(&arm_with(WATCH, &levels)));
        add(zone.primary(), name, "token");
        out.join().unwrap().unwrap()
    });
    assert_eq!(out.iter().filter(|sample| sample.metric == SERVER).count(), 2);
    assert!(out.iter().all(|sample| ![DONE, DONE_BEFORE].contains(&sample.metric)));
    // The run must not wait for a missing record for ever.
    let arm = arm_with(WATCH, &[("record", name), ("expect", "another"), ("addresses", &addresses)]);
    let error = measured(&Arm { point: arm.point.with("limit_s", 1), ..arm }).unwrap_err().to_string();
    assert!(error.contains("after 1s ") && error.contains("are still not as expected"), "{error}");
}

/// The user's time limit includes the queries before the change and the wait for the last answers.
#[test]
fn a_watch_ends_by_its_limit() {
    let (_zone, addresses) = served(&[1]);
    let notes = tempfile::tempdir().unwrap();
    for limit_s in [1, 4, 120] {
        let arm = arm_with(WATCH, &[("record", "a.example."), ("expect", "x"), ("addresses", &addresses)]);
        let arm = Arm { point: arm.point.with("limit_s", limit_s), ..arm };
        let mut updates = opened(&arm, notes.path()).unwrap();
        let (target, limit) = (&mut updates.arms[0], Duration::from_secs(limit_s));
        assert!(
            target.most_beside() + target.patience() <= limit / 2,
            "the queries before the change leave less than half of {limit:?}"
        );
        let patience_ns = target.patience().as_nanos() as u64;
        let limit_ns = limit.as_nanos() as u64;
        // A later trial has its own limit.
        assert_eq!(target.last_question_ns(7) + patience_ns, 7 + limit_ns);
        target.watch_end_ns = Some(limit_ns);
        assert_eq!(target.last_question_ns(limit_ns / 2) + patience_ns, limit_ns);
    }
}

#[test]
fn a_zone_of_ones_own_is_changed_and_left_as_it_was() {
    let (zone, addresses) = served(&[1, 400]);
    let primary = zone.primary().to_string();
    let out =
        measured(&arm_with(RFC2136, &[("zone", "example."), ("server", &primary), ("addresses", &addresses)])).unwrap();
    assert!(out.iter().all(|sample| sample.status == Status::Ok || sample.metric == UNSURE));
    let of = |metric| out.iter().find(|sample| sample.metric == metric).unwrap().value;
    // The last server gets the change after 400 ms. The estimate is the middle between the bounds, so it is at least
    // 200 ms.
    assert!(of(ALL) >= 200e6 && of(DONE) > 0.0);
    assert_eq!(of(ALL) - of(DONE), of(DONE_BEFORE));
    wait_until("added and removed, at both servers", || zone.truth().len() >= 4);
    assert!(zone.truth().iter().all(|had| had.serial <= 3));
}

/// Serves the record, but does not answer the first `silent` queries. Returns the senders of all queries.
fn serve(socket: &UdpSocket, silent: usize, is_over: &AtomicBool) -> Vec<SocketAddr> {
    let mut zone = Simulation::new(SimulationSpec::new(vec![vec![Duration::ZERO]]), 0);
    let value = RData::try_from_str(RecordType::TXT, "token").unwrap();
    let change = Change::Add { name: Name::from_ascii("a.example.").unwrap(), ttl_s: 1, value };
    let request = update(&Name::from_ascii("example.").unwrap(), &change, None, 1, 0).unwrap();
    zone.request(0, Recipient::Primary, socket.local_addr().unwrap(), &request.bytes).unwrap();
    socket.set_read_timeout(Some(LOOK)).unwrap();
    let (mut from_all, mut bytes) = (Vec::new(), [0; 512]);
    while !is_over.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        from_all.push(from);
        if from_all.len() > silent {
            socket.send_to(&zone.request(1, Recipient::Server(0), from, &bytes[..length]).unwrap(), from).unwrap();
        }
    }
    from_all
}

fn served_by(silent: usize, measure: impl FnOnce(&mut Updates)) -> Vec<SocketAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let levels = [("record", "a.example."), ("expect", "token"), ("addresses", &address)];
    let mut updates = Updates::open(&[arm_with(WATCH, &levels)], &Setup::default()).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&socket, silent, &is_over));
        measure(&mut updates);
        is_over.store(true, Ordering::Relaxed);
        serving.join().unwrap()
    })
}

/// Before it waits for the change, the session sends about 20 queries in a second. The server leaves the first 40
/// queries unanswered, so the session must keep waiting for this server.
#[test]
fn a_server_that_does_not_answer_yet_is_waited_for() {
    served_by(40, |updates| {
        updates.verify(0).unwrap();
        let mut out = Samples::default();
        updates.measure(0, &Trial { number: 0, seed: 7 }, &mut out).unwrap();
        assert!(out.iter().any(|sample| sample.metric == ALL && sample.status == Status::Ok));
    });
}

/// The remark must report the query interval that was used for the measured change, not the increased interval for the
/// next change.
#[test]
fn a_limit_is_said_with_the_interval_that_was_kept() {
    let (_zone, addresses) = served(&[1]);
    let levels = [("record", "a.example."), ("expect", "token"), ("addresses", &*addresses)];
    let mut updates = Updates::open(&[arm_with(WATCH, &levels)], &Setup::default()).unwrap();
    let asked = |number: u64| {
        let state = if number.is_multiple_of(2) { AnswerState::New } else { AnswerState::Truncated };
        let answer = Some(ProbeAnswer { received_ns: number + 1, state, serial: None, nsid: None });
        Probe { server: 0, flow: 0, sent_ns: number, is_by_tcp: false, answer }
    };
    let log = ProbeLog { probes: (0..8).map(asked).collect(), ..ProbeLog::default() };
    let observation = Observation { log, call_ns: 0, done_ns: None };
    let mut limited_ms = || {
        let remarks = updates.arms[0].samples(&observation, &mut Samples::default()).unwrap();
        remarks.into_iter().find_map(|remark| match remark {
            Remark::Limited { servers, .. } => Some(servers[0].1 / 1_000_000),
            _ => None,
        })
    };
    assert_eq!([limited_ms(), limited_ms(), limited_ms()], [None, Some(200), Some(400)]);
}

/// Each change must be observed from new ports, because routers may send their queries to replicas that the earlier
/// ports did not reach.
#[test]
fn each_change_is_asked_for_from_new_ports() {
    let from = served_by(0, |updates| {
        for number in 0..3 {
            updates.measure(0, &Trial { number, seed: 7 }, &mut Samples::default()).unwrap();
        }
    });
    assert!(from.into_iter().collect::<BTreeSet<_>>().len() > 2);
}

/// A replica is named by the identity that it reports, as text or as hexadecimal digits. Replicas without an identity
/// are named by their order.
#[test]
fn replicas_are_named_by_what_they_say_they_are() {
    let had = Moment { low_ns: 0, high_ns: Some(1) };
    let replica = |nsid| Replica { had, share: 0.25, nsid };
    let replicas = [Some(0), None, Some(1), Some(0), None].map(replica).into();
    let server = Server { replicas, mixed: Vec::new(), ports: 5, asked: 5, lost: 0, failed: 0 };
    let names = keys("ns1", &server, &[b"fra1".into(), vec![0, 255]]);
    assert_eq!(names, ["ns1#fra1", "ns1#1", "ns1#00ff", "ns1#fra1#2", "ns1#2"]);
}

/// Answers each query with the query itself, and these bits in the header.
fn answer_with(socket: &UdpSocket, bits: [u8; 2], is_over: &AtomicBool) {
    socket.set_read_timeout(Some(LOOK)).unwrap();
    let mut bytes = [0; 512];
    while !is_over.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut bytes) {
            bytes[2..4].copy_from_slice(&bits);
            socket.send_to(&bytes[..length], from).unwrap();
        }
    }
}

/// The zone's answers do not fit into datagrams and are truncated; the primary returns them over TCP.
#[test]
fn what_has_no_room_in_a_datagram_is_asked_for_by_tcp() {
    let (udp, tcp) = of_one_port();
    let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let zone = ZoneServer::start(SimulationSpec::new(vec![vec![Duration::ZERO]]), tcp, vec![other]).unwrap();
    let (name, address) = ("_acme-challenge.example.", zone.primary().to_string());
    let is_over = AtomicBool::new(false);
    add(zone.primary(), name, "token");
    let out = thread::scope(|scope| {
        scope.spawn(|| answer_with(&udp, [0x86, 0], &is_over));
        let arm = arm_with(WATCH, &[("record", name), ("expect", "token"), ("addresses", &address)]);
        let out = scope.spawn(move || measured(&arm));
        let out = out.join().unwrap();
        is_over.store(true, Ordering::Relaxed);
        out.unwrap()
    });
    let of = |metric| out.iter().find(|sample| sample.metric == metric).unwrap();
    assert_eq!((of(ALL).status, of(SERVER).status), (Status::Ok, Status::Ok));
    assert!(of(BY_TCP).value > 0.0 && of(BY_TCP).value <= 0.5, "{:?}", of(BY_TCP));
}

/// Two arms with the same seed may change the same zone in the same trial, so their records must differ.
#[test]
fn no_two_changes_are_of_one_record() {
    let (zone, addresses) = served(&[1]);
    let folder = tempfile::tempdir().unwrap();
    let (program, told_to) = (folder.path().join("program"), folder.path().join("told"));
    fs::write(&program, "#!/bin/sh\necho \"$@\" >> \"${0%/*}/told\"\n[ $1 != add ]\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_string_lossy();
    let arm = arm_with(EXEC, &[("zone", "example."), ("exec", &program), ("addresses", &addresses)]);
    let mut updates = Updates::open(&[arm.clone(), arm], &Setup::default()).unwrap();
    for of in 0..2 {
        updates.arms[of].zone.notes = folder.path().join("notes");
        updates.measure(of, &Trial { number: 0, seed: 7 }, &mut Samples::default()).unwrap_err();
    }
    let lines = fs::read_to_string(&told_to).unwrap();
    let added: Vec<&str> = lines.lines().filter(|line| line.starts_with("add ")).collect();
    assert!(added.len() == 2 && added[0] != added[1], "{lines}");
    drop(zone);
}

/// Simulates a killed process: its note exists, but is not locked.
#[test]
fn what_a_killed_run_has_left_is_taken_away() {
    let (zone, addresses) = served(&[1]);
    let (notes, address) = (tempfile::tempdir().unwrap(), zone.primary().to_string());
    let levels = [("zone", "example."), ("server", &*address), ("addresses", &*addresses)];
    let updates = opened(&arm_with(RFC2136, &levels), notes.path()).unwrap();
    let record = updates.arms[0].wanted(7).unwrap().record.unwrap();
    let ChangedBy::Us(provider) = &updates.arms[0].zone.changed_by else { panic!("another program changes the zone") };
    let note = || Note::new(notes.path(), &provider.address().unwrap(), &record).unwrap();
    let noted = note();
    provider.add(&record, &|| (), &Stop::default()).unwrap();
    let said = || clean(notes.path()).unwrap();
    let [Ok(busy)] = &said()[..] else { panic!("there must be one record to clean, and a run must still use it") };
    assert!(busy.contains("still uses"), "{busy}");
    drop(noted);
    let [Ok(gone)] = &said()[..] else { panic!("one") };
    assert!(gone.contains(&format!("removed {}", record.name)), "{gone}");
    assert!(said().is_empty());
    wait_until("added and removed", || zone.truth().iter().map(|had| had.serial).max() == Some(3));
    // Tests a server that has ended, an incomplete note, and a file that is not a note.
    drop(note());
    drop(zone);
    let [Err(there)] = &said()[..] else { panic!("the state of the record is unknown") };
    assert!(there.contains("could not remove the record"), "{there}");
    for (text, is_gone) in [("rfc2136 192.0", true), ("a b\nexample.\na.example.\nb", false)] {
        // The name of this file sorts after that of the other note.
        fs::write(notes.path().join("z"), text).unwrap();
        assert_eq!(said()[1].is_ok(), is_gone, "{text}");
    }
}

/// Simulates a run of `clean` at a bad moment: `clean` locks an empty note, and removes the note as if its run had
/// ended.
#[test]
fn a_note_that_is_taken_away_too_early_is_made_anew() {
    let notes = tempfile::tempdir().unwrap();
    let name = Name::from_ascii("a.example.").unwrap();
    let record = Record { zone: name.base_name(), name, text: "text".into() };
    let path = notes.path().join(format!("text-{}", std::process::id()));
    let of_clean = fs::File::create(&path).unwrap();
    of_clean.lock().unwrap();
    thread::scope(|scope| {
        let note = scope.spawn(|| Note::new(notes.path(), "exec /bin/false", &record).unwrap());
        // The other thread now probably waits for the lock; the test does not depend on that.
        thread::sleep(5 * LOOK);
        fs::remove_file(&path).unwrap();
        drop(of_clean);
        let note = note.join().unwrap();
        assert!(path.exists());
        note.done().unwrap();
    });
}

/// The program records its arguments. The test reads the arguments, and changes the zone.
#[test]
fn a_program_changes_a_zone() {
    let (zone, addresses) = served(&[1]);
    let folder = tempfile::tempdir().unwrap();
    let (program, told_to) = (folder.path().join("program"), folder.path().join("told"));
    // The first call of the program with `done` fails.
    let script = "#!/bin/sh\ncd \"${0%/*}\"\nif [ $1 = done ] && ! [ -e asked ]; then touch asked; exit 1; fi\n\
                  [ $1 = done ] || echo \"$@\" >> told\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let at = |program: &Path| {
        let program = program.to_string_lossy().to_string();
        arm_with(EXEC, &[("zone", "example."), ("exec", &program), ("addresses", &addresses)])
    };
    let out = thread::scope(|scope| {
        let out = scope.spawn(|| measured(&at(&program)));
        let mut line = String::new();
        wait_until("the program was called", || {
            line = fs::read_to_string(&told_to).unwrap_or_default();
            line.ends_with('\n') || out.is_finished()
        });
        assert!(!out.is_finished(), "{:?}", out.join());
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[0], "add");
        add(zone.primary(), words[1], words[2]);
        out.join().unwrap().unwrap()
    });
    let of = |metric| out.iter().find(|sample| sample.metric == metric).unwrap().value;
    assert!(of(DONE) > 200e6, "the program must be called twice with `done`");
    let lines = fs::read_to_string(&told_to).unwrap();
    let [added, removed] = lines.lines().collect::<Vec<_>>()[..] else { panic!("{lines}") };
    assert_eq!(removed, added.replacen("add", "remove", 1));
    // Tests a program that fails, and a program that does not exist.
    let left = "remove it with `ascertain clean`: /bin/false remove: exit status: 1; before that: /bin/false add: ";
    for (program, says) in [("/bin/false", left), ("/nowhere/at/all", "No such file")] {
        let error = opened(&at(Path::new(program)), folder.path()).unwrap();
        let error = error.arms[0].observe(7, &Stop::default()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// If both the queries and the removal of the record fail, the error must name the remaining record.
#[test]
fn what_is_left_behind_is_always_said() {
    let (_zone, addresses) = served(&[1]);
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    fs::write(&program, "#!/bin/sh\n[ $1 != remove ]\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let levels = [("zone", "example."), ("exec", &program.to_string_lossy()), ("addresses", &addresses)];
    let mut updates = opened(&arm_with(EXEC, &levels), folder.path()).unwrap();
    // The session expects a second server, which does not exist, so the prober panics.
    updates.arms[0].rhythm.servers = 2;
    let error = updates.arms[0].observe(7, &Stop::default()).map(|_| ()).unwrap_err().to_string();
    let ends = "; before that: the prober panicked because of a bug";
    assert!(error.contains("could not remove the record") && error.ends_with(ends), "{error}");
}
