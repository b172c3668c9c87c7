//! Tests with real servers: one server receives a change, and the others get the change from that server.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use ascertain_netlab::Error;
use ascertain_netlab::dns::Key;
use ascertain_netlab::installed::{Program, RunningProgram, bind, knot, nsd};
use ascertain_sys::testing::{left_out, wait_until};

use super::super::primary::{Primary, unix_s};
use super::super::{RFC2136, WATCH};
use super::tests::{PATIENCE, arm_with, patient};
use super::*;

thread_local! {
    static NOTES: tempfile::TempDir = tempfile::tempdir().unwrap();
}

const SECRET: &str = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";

/// Returns free addresses. Their ports are below the ports that the kernel assigns, and are not used by netlab's tests.
fn free_addresses<const N: usize>() -> [SocketAddr; N] {
    static PORT: AtomicU16 = AtomicU16::new(0);
    std::array::from_fn(|_| {
        loop {
            let number = PORT.fetch_add(1, Ordering::Relaxed);
            let port = 3_000 + (std::process::id() as u16 % 300) * 20 + number % 2_000;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
                return address;
            }
        }
    })
}

/// Returns the program with a changed configuration: the text `by` replaces `part` and everything after it. If
/// `has_zone` is `false`, removes the zone's file, because the server gets the zone from a primary.
fn changed(mut program: Program, part: &str, by: &str, has_zone: bool) -> Program {
    let conf = &mut program.files[0].1;
    let (before, _) = conf.split_once(part).unwrap_or_else(|| panic!("{part} is not in {conf}"));
    *conf = format!("{before}{by}");
    program.files.truncate(if has_zone { 2 } else { 1 });
    program
}

fn knot_primary(at: SocketAddr, others: &[SocketAddr]) -> Program {
    let remotes: String =
        others.iter().map(|at| format!("- id: p{0}\n  address: {1}@{0}\n", at.port(), at.ip())).collect();
    let names: Vec<String> = others.iter().map(|at| format!("p{}", at.port())).collect();
    let text = format!(
        "key:\n- id: mine\n  algorithm: hmac-sha256\n  secret: {SECRET}\nremote:\n{remotes}acl:\n- id: change\n  key: mine\n  \
         action: update\n- id: copy\n  address: 127.0.0.1\n  action: transfer\nzone:\n- domain: example.\n  storage: \
         {{folder}}\n  file: zone\n  notify: [{}]\n  acl: [change, copy]\n",
        names.join(", ")
    );
    changed(knot(at), "zone:\n", &text, true)
}

fn knot_secondary(at: SocketAddr, of: SocketAddr) -> Program {
    let text = format!(
        "remote:\n- id: of\n  address: {}@{}\nacl:\n- id: told\n  address: 127.0.0.1\n  action: notify\nzone:\n- domain: \
         example.\n  storage: {{folder}}\n  file: zone\n  master: of\n  acl: told\n",
        of.ip(),
        of.port()
    );
    changed(knot(at), "zone:\n", &text, false)
}

fn bind_primary(at: SocketAddr, others: &[SocketAddr]) -> Program {
    let told: String = others.iter().map(|at| format!("{} port {}; ", at.ip(), at.port())).collect();
    let text = format!(
        "key \"mine\" {{ algorithm hmac-sha256; secret \"{SECRET}\"; }};\nzone \"example.\" {{ type primary; file \"zone\"; \
         allow-update {{ key \"mine\"; }}; allow-transfer {{ any; }}; notify explicit; also-notify {{ {told}}}; }};\n"
    );
    changed(bind(at), "zone \"", &text, true)
}

fn bind_secondary(at: SocketAddr, of: SocketAddr) -> Program {
    let text = format!(
        "zone \"example.\" {{ type secondary; file \"copy\"; primaries {{ {} port {}; }}; allow-notify {{ any; }}; }};\n",
        of.ip(),
        of.port()
    );
    changed(bind(at), "zone \"", &text, false)
}

fn nsd_secondary(at: SocketAddr, of: SocketAddr) -> Program {
    let text = format!(
        "zone:\n  name: example.\n  zonefile: copy\n  allow-notify: 127.0.0.1 NOKEY\n  request-xfr: {}@{} NOKEY\n",
        of.ip(),
        of.port()
    );
    changed(nsd(at), "zone:\n", &text, false)
}

/// Starts a server; `None` if the program is not installed.
fn started(program: Program) -> Option<RunningProgram> {
    match (Program { limit: PATIENCE, ..program }).start() {
        Ok(running) => Some(running),
        Err(error @ Error::NotInstalled { .. }) => {
            left_out(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Opens a session for a zone at these servers. The first server receives updates, signed with a key that has this
/// secret.
fn updates(servers: &[&RunningProgram], secret: &str) -> Updates {
    updates_at(servers, secret, unix_s)
}

/// Returns a server's error for a signature with a time that is an hour in the past.
fn at_a_wrong_time(server: &RunningProgram) -> String {
    let mut updates = updates_at(&[server], SECRET, || unix_s() - 3_600);
    updates.measure(0, &Trial { number: 0, seed: 8 }, &mut Samples::default()).unwrap_err().to_string()
}

fn updates_at(servers: &[&RunningProgram], secret: &str, clock: fn() -> u64) -> Updates {
    let addresses: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    let levels = [("zone", "example."), ("server", &*addresses[0]), ("addresses", &*addresses.join(","))];
    let mut updates = patient(Updates::open(&[arm_with(RFC2136, &levels)], &Setup::default()).unwrap());
    let key = Key::parse(&format!("mine:{secret}")).unwrap();
    let zone = &mut updates.arms[0].zone;
    let mut primary = Primary::new(servers[0].address(), Some(key));
    primary.clock = clock;
    zone.changed_by = ChangedBy::Us(Box::new(primary));
    zone.notes = NOTES.with(|notes| notes.path().into());
    updates
}

fn measured(updates: &mut Updates) -> Samples {
    let mut out = Samples::default();
    updates.verify(0).unwrap();
    updates.measure(0, &Trial { number: 0, seed: 7 }, &mut out).unwrap();
    out
}

fn value(out: &Samples, metric: usize) -> f64 {
    let sample = out.iter().find(|sample| sample.metric == metric).unwrap();
    assert_eq!(sample.status, Status::Ok);
    sample.value
}

#[test]
fn knot_is_told_and_holds_its_notify_back() {
    let [first, second, third] = free_addresses();
    let Some(knot) = started(knot_primary(first, &[second, third])) else { return };
    let Some(bind) = started(bind_secondary(second, first)) else { return };
    let Some(nsd) = started(nsd_secondary(third, first)) else { return };
    let mut updates_of_all = updates(&[&knot, &bind, &nsd], SECRET);
    let out = measured(&mut updates_of_all);
    assert_eq!(out.iter().filter(|sample| sample.metric == SERVER).count(), 3);
    assert_eq!(updates_of_all.arms[0].zone.primary(), Some(0));
    // The other servers get the change about a second later. The estimate is the middle between the bounds, so it is at
    // least about half a second. The remark about the delay is tested in `remarks`.
    assert!(value(&out, HELD) >= 0.0 && value(&out, ALL) >= 0.49e9, "{} {}", value(&out, HELD), value(&out, ALL));
    assert!(value(&out, DONE) > 0.0);
    // An update without a key is refused.
    let mut unsigned = updates(&[&knot], SECRET);
    unsigned.arms[0].zone.changed_by = ChangedBy::Us(Box::new(Primary::new(first, None)));
    let error = unsigned.measure(0, &Trial { number: 0, seed: 8 }, &mut Samples::default()).unwrap_err().to_string();
    assert!(error.contains("or it requires a key") && error.contains("$TSIG_KEY is not set"), "{error}");
    // An update with another key is refused.
    let error = updates(&[&knot], "b3RoZXI=").measure(0, &Trial { number: 0, seed: 8 }, &mut Samples::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("BADSIG"), "{error}");
    let error = at_a_wrong_time(&knot);
    assert!(error.contains("differ by 3") && error.contains("BADTIME"), "{error}");
}

#[test]
fn bind_is_told() {
    let [first, second, third] = free_addresses();
    let mut primary = bind_primary(first, &[second, third]);
    // A wildcard, so that the name has another text before the change.
    primary.files[1].1 += "* 1 TXT always\n";
    let Some(bind) = started(primary) else { return };
    let Some(knot) = started(knot_secondary(second, first)) else { return };
    let Some(nsd) = started(nsd_secondary(third, first)) else { return };
    let out = measured(&mut updates(&[&bind, &knot, &nsd], SECRET));
    assert_eq!(out.iter().filter(|sample| sample.metric == SERVER).count(), 3);
    let shares: Vec<f64> = out.iter().filter(|sample| sample.metric == SHARE).map(|sample| sample.value).collect();
    assert!(value(&out, ALL) > 0.0 && value(&out, FIRST) > 0.0 && shares.contains(&1.0));
    let error = updates(&[&bind], "b3RoZXI=").measure(0, &Trial { number: 0, seed: 8 }, &mut Samples::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("BADSIG"), "{error}");
    let error = at_a_wrong_time(&bind);
    assert!(error.contains("differ by 3") && error.contains("BADTIME"), "{error}");
}

/// The session queries the given servers for an alias. These servers do not know its target.
#[test]
fn a_name_that_is_another_name_is_said() {
    let [at] = free_addresses();
    let mut program = knot(at);
    program.files[1].1 += "alias 1 CNAME elsewhere.example.net.\n";
    let Some(knot) = started(program) else { return };
    let address = knot.address().to_string();
    let mut limit_s = 1_u64;
    wait_until("there was an answer before the limit", || {
        let arm = arm_with(WATCH, &[("record", "alias.example."), ("expect", "x"), ("addresses", &address)]);
        let arm = Arm { point: arm.point.with("limit_s", limit_s), ..arm };
        let mut updates = patient(Updates::open(&[arm], &Setup::default()).unwrap());
        let error = updates.measure(0, &Trial { number: 0, seed: 8 }, &mut Samples::default()).unwrap_err().to_string();
        limit_s *= 2;
        assert!(error.contains("not as expected"), "{error}");
        error.ends_with("not as expected: the name is an alias of elsewhere.example.net.")
    });
}

/// NSD takes no updates and limits the rate of its answers, so it is queried less often.
#[test]
fn nsd_takes_no_updates_and_has_a_limit() {
    let [at] = free_addresses();
    let mut program = nsd(at);
    program.files[0].1 = program.files[0].1.replacen("server:\n", "server:\n  rrl-ratelimit: 8\n", 1);
    let Some(nsd) = started(program) else { return };
    let mut updates = updates(&[&nsd], SECRET);
    // The prober waits this long for each query that is not answered.
    updates.arms[0].least_patience = LEAST_PATIENCE;
    let error = updates.measure(0, &Trial { number: 0, seed: 8 }, &mut Samples::default()).unwrap_err().to_string();
    assert!(error.contains("does not support updates") || error.contains("refuses updates"), "{error}");
    assert_eq!(updates.arms[0].limited(), None);
    updates.arms[0].first_look = FIRST_LOOK;
    // A busy machine may not send more queries than the limit.
    wait_until("the rate limit of NSD is noticed", || {
        updates.verify(0).unwrap();
        updates.arms[0].limited().is_some()
    });
    let limited = updates.arms[0].limited();
    let Some(Remark::Limited { servers, interval_ns }) = limited else { panic!("{limited:?}") };
    assert!(servers.len() == 1 && servers[0].0 == at.to_string() && servers[0].1 >= 2 * interval_ns, "{servers:?}");
}
