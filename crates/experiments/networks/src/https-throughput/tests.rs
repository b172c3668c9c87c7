//! Tests of downloads and small requests, from the session to the metrics.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;

use ascertain_engine::experiment::{Experiment, Level, Status};
use ascertain_netlab::http::{Misbehaviour, Server};
use ascertain_sys::clock::process_cpu_ns;
use ascertain_sys::testing::{or_left_out, wait_until};

use super::super::go;
use super::super::servers::{is_available, no_kernel_tls};
use super::super::{
    ANSWERED, CADDY, CIPHERS, CURL, GO, HttpsThroughput, KERNEL_TLS, LATE, LATENCY, NGINX, OVERLOADED, OWN, PLAIN,
    REQUEST_CPU, RUSTLS, TLS,
};
use super::*;

fn arm(variant: &str, levels: &[(&str, Level)]) -> Arm {
    let point = HttpsThroughput.spec().default_point().with("mb", 1);
    let point = levels.iter().fold(point, |point, (factor, level)| point.with(factor, level.clone()));
    HttpsThroughput.trimmed(&Arm { variant: variant.into(), point })
}

fn between(client: &str, server: &str) -> [(&'static str, Level); 2] {
    [("client", client.into()), ("server", server.into())]
}

fn open(arms: &[Arm]) -> Transfers {
    Transfers::open(arms, &Setup { stop: Stop::new().unwrap(), ..Setup::default() }).unwrap()
}

fn measured(transfers: &mut Transfers, arm: ArmId) -> Result<Samples, TargetError> {
    let mut out = Samples::default();
    transfers.measure(arm, &Trial { number: 0, seed: 7 }, &mut out).map(|()| out)
}

fn value(out: &Samples, metric: usize) -> Option<f64> {
    out.iter().find(|sample| sample.metric == metric).map(|sample| sample.value)
}

#[test]
fn each_pair_is_measured_or_says_what_it_needs() {
    for (client, server) in
        [OWN, RUSTLS, CURL, GO].into_iter().flat_map(|client| [OWN, NGINX, CADDY, GO].map(|server| (client, server)))
    {
        let levels = [&between(client, server)[..], &[("streams", 3.into())]].concat();
        let variants: &[&str] = if client == RUSTLS { &[TLS] } else { &[PLAIN, TLS] };
        let arms: Vec<_> = variants.iter().map(|variant| arm(variant, &levels)).collect();
        if or_left_out(is_available(&arms[0])).is_none() {
            continue;
        }
        let mut transfers = open(&arms);
        for (index, arm) in arms.iter().enumerate() {
            transfers.verify(index).unwrap();
            let facts = transfers.facts(index).unwrap();
            let cipher = (arm.variant == TLS).then(|| Level::from("TLS_AES_128_GCM_SHA256"));
            assert_eq!(facts.get("cipher"), cipher.as_ref(), "{arm}");
            let out = measured(&mut transfers, index).unwrap();
            let [cpu, throughput, client, server] =
                [CPU, THROUGHPUT, CLIENT_CPU, SERVER_CPU].map(|metric| value(&out, metric).unwrap());
            assert!(client > 0.0 && server > 0.0 && throughput > 0.0, "{arm}: {out:?}");
            assert!((client + server - cpu).abs() < 1e-6 * cpu, "{arm}: {out:?}");
            assert_eq!(out.iter().count(), 4, "{arm}");
        }
    }
}

#[test]
fn what_encrypts_is_chosen_and_looked_at() {
    for client in [OWN, RUSTLS, CURL] {
        for (cipher, name) in CIPHERS {
            let arm = arm(TLS, &[("cipher", cipher.into()), ("client", client.into())]);
            if or_left_out(is_available(&arm)).is_none() {
                continue;
            }
            let mut transfers = open(&[arm]);
            transfers.verify(0).unwrap();
            assert_eq!(transfers.facts(0).unwrap().get("cipher"), Some(&name.replace("TLS13", "TLS").as_str().into()));
            for other in [Some("TLS_NULL".to_string()), None] {
                transfers.arms[0].cipher = other;
                // curl does not report the cipher with each download.
                let measured = (client == OWN).then(|| measured(&mut transfers, 0).map(drop));
                for error in [Some(transfers.verify(0)), measured].into_iter().flatten() {
                    let error = error.unwrap_err().to_string();
                    assert!(error.contains("was negotiated instead of") && error.contains("tls1.3: "), "{error}");
                }
            }
        }
    }
}

#[test]
fn arms_that_are_served_alike_have_one_server() {
    let arms = [arm(PLAIN, &[]), arm(PLAIN, &[("mb", 2.into())]), arm(TLS, &[])];
    let transfers = open(&arms);
    let [first, second, other] = [0, 1, 2].map(|index| &transfers.arms[index].server);
    assert!(Rc::ptr_eq(first, second) && !Rc::ptr_eq(first, other));
}

/// Starting a server on one CPU must not change which CPUs the starting thread may use.
#[test]
fn both_ends_may_share_a_cpu() {
    let before = affinity::allowed();
    let levels = [&between(OWN, NGINX)[..], &[("cpus", ONE.into())]].concat();
    let arms = [arm(PLAIN, &levels), arm(PLAIN, &between(OWN, NGINX))];
    if or_left_out(is_available(&arms[0])).is_none() {
        return;
    }
    let mut transfers = open(&arms);
    let counts = [0, 1].map(|index| {
        let BodyServer::Installed(servers) = &*transfers.arms[index].server else { panic!("not installed") };
        let status = std::fs::read_to_string(format!("/proc/{}/status", servers[0].pid())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:")).unwrap().trim().to_owned();
        let ones = |digit: char| digit.to_digit(16).map_or(0, u32::count_ones);
        mask.chars().map(ones).sum::<u32>() as usize
    });
    assert_eq!(counts, [1, before.len()]);
    for index in [0, 1] {
        let out = measured(&mut transfers, index).unwrap();
        assert!(value(&out, CPU) > Some(0.0), "{out:?}");
        assert_eq!(affinity::allowed(), before);
    }
}

#[test]
fn what_can_not_be_measured_is_said_to_be_so() {
    for (variant, levels, says) in [
        (PLAIN, vec![("rate", 5.into()), ("client", CURL.into())], "`rate` needs the client `own`"),
        (TLS, vec![("cipher", CIPHERS[1].0.into()), ("client", GO.into())], "does not let the user choose a cipher"),
    ] {
        let why = is_available(&arm(variant, &levels)).unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
    }
    for server in [CADDY, GO] {
        let why = is_available(&arm(KERNEL_TLS, &between(OWN, server))).unwrap_err().to_string();
        assert!(why.contains("does not pass its TLS keys to the kernel"), "{why}");
    }
}

#[test]
fn a_kernel_without_tls_is_said_to_be_so() {
    let error = io::Error::from_raw_os_error(2);
    for (above, says) in [
        (Ok("mptcp".into()), "lists `mptcp`, but not `tls`; run `modprobe tls` as root"),
        (Ok("espintcp tls".into()), "lists `espintcp tls`"),
        (
            Err(io::ErrorKind::NotFound.into()),
            "does not exist, perhaps because this is the network namespace of a container",
        ),
    ] {
        let why = no_kernel_tls(&error, above);
        assert!(why.contains("(os error 2)") && why.contains(says), "{why}");
    }
    let counted = |before, after| check_kernel(Ok(before), Ok(after), 4).map_err(|error| error.to_string());
    assert_eq!(counted(3, 7), Ok(()));
    assert!(counted(3, 6).unwrap_err().contains("encrypted 3 of 4 connections"));
}

/// Tests each cipher over several connections, with one download and with many requests on each. `cargo xtask test
/// guest` runs this test on a kernel that supports TLS.
#[test]
fn the_kernel_encrypts() {
    let servers = [OWN, NGINX].map(|server| between(OWN, server));
    for ((cipher, _), server) in CIPHERS.iter().flat_map(|cipher| servers.iter().map(move |server| (cipher, server))) {
        let levels = [&server[..], &[("cipher", (*cipher).into()), ("streams", 3.into())]].concat();
        let requests = [&levels[..], &[("rate", 200.into())]].concat();
        let arms = [arm(KERNEL_TLS, &levels), arm(KERNEL_TLS, &requests), arm(TLS, &levels)];
        if or_left_out(is_available(&arms[0])).is_none() {
            continue;
        }
        let mut transfers = open(&arms);
        for index in 0..arms.len() {
            transfers.verify(index).unwrap();
            measured(&mut transfers, index).unwrap();
        }
    }
}

#[test]
fn bad_servers_are_errors_in_time() {
    let hows = [
        (Misbehaviour::Closes, ["before an answer arrived", "Empty reply", "EOF"]),
        (Misbehaviour::NotHttp, ["before an answer arrived", "HTTP/0.9", "malformed"]),
        (Misbehaviour::SendsLess, ["in the middle of the answer", "500 bytes remaining", "after 500 bytes"]),
        (Misbehaviour::Resets, ["failed", "reset", "reset"]),
        (Misbehaviour::SendsMore, ["500 bytes instead of status 200 and 1000000 bytes"; 3]),
    ];
    for (index, client) in [OWN, CURL, GO].into_iter().enumerate() {
        let arm = arm(PLAIN, &[("client", client.into())]);
        if or_left_out(is_available(&arm)).is_none() {
            continue;
        }
        let stop = Stop::new().unwrap();
        for (how, says) in hows {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let serving = Rc::new(BodyServer::Own(vec![Server::misbehaving(listener, how).unwrap()]));
            let mut target = TransferArm::new(&arm, serving, &stop).unwrap();
            let error = target.measure(&stop, &mut Samples::default()).unwrap_err().to_string();
            assert!(error.contains(says[index]), "{client}, {how:?}: {error}");
        }
    }
}

#[test]
fn others_certificates_are_refused() {
    let mut transfers = open(&[arm(TLS, &[])]);
    let Client::Own(offer) = &mut transfers.arms[0].client else { panic!("not ours") };
    offer.host = "example.com".into();
    let error = measured(&mut transfers, 0).unwrap_err().to_string();
    assert!(error.starts_with("own from own, tls1.3: TLS: ") && error.contains("certificate"), "{error}");

    let other = arm(TLS, &between(CURL, OWN));
    if or_left_out(is_available(&other)).is_some() {
        let mut transfers = open(&[other]);
        // Removes the certificate that curl trusts.
        let Client::Curl(curl) = &transfers.arms[0].client else { panic!("not curl") };
        std::fs::remove_file(curl.folder().join("certificate.pem")).unwrap();
        let error = measured(&mut transfers, 0).unwrap_err().to_string();
        assert!(error.contains("curl: (77)") || error.contains("curl: (60)"), "{error}");
    }
}

/// A download of a terabyte must end when the run is interrupted.
#[test]
fn it_ends_when_it_is_told_to() {
    for client in [OWN, CURL, GO] {
        let arm = arm(PLAIN, &[("client", client.into()), ("mb", 1_000_000.into()), ("streams", 2.into())]);
        if or_left_out(is_available(&arm)).is_none() {
            continue;
        }
        let mut transfers = open(&[arm]);
        let (stop, serving) = (transfers.stop.clone(), transfers.arms[0].server.clone());
        let BodyServer::Own(servers) = &*serving else { panic!("not ours") };
        thread::scope(|scope| {
            scope.spawn(|| {
                wait_until("each server has a request", || servers.iter().all(|server| server.stats().requests > 0));
                stop.request();
            });
            assert_eq!(measured(&mut transfers, 0).err(), Some(TargetError::Interrupted), "{client}");
        });
    }
}

#[test]
fn a_server_that_dies_in_the_middle_is_an_error_and_leaves_nothing_behind() {
    let arm = arm(TLS, &[("server", GO.into()), ("mb", 1_000_000.into())]);
    if or_left_out(is_available(&arm)).is_none() {
        return;
    }
    let mut transfers = open(&[arm]);
    let BodyServer::Go(end, _) = &*transfers.arms[0].server else { panic!("not Go's") };
    let (pid, busy_ns) = (end.pid(), end.cpu_ns().unwrap() + 100_000_000);
    // All processes share the program, so it is not in the folder of any of them.
    let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert!(folder.join("certificate.pem").exists() && !folder.join("ends").exists());
    let killing = thread::spawn(move || {
        wait_until("the server is at work", || process_cpu_ns(pid).unwrap() > busy_ns);
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    });
    let error = measured(&mut transfers, 0).unwrap_err().to_string();
    killing.join().unwrap();
    assert!(error.starts_with("own from go, tls1.3: the connection failed in the middle of the answer"), "{error}");
    drop(transfers);
    assert!(!folder.exists() && !Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn clients_are_given_no_key() {
    let arm = arm(TLS, &between(GO, OWN));
    if or_left_out(is_available(&arm)).is_none() {
        return;
    }
    let transfers = open(&[arm]);
    let Client::Go(end, _) = &transfers.arms[0].client else { panic!("not Go's") };
    let files = std::fs::read_dir(format!("/proc/{}/cwd/", end.pid())).unwrap();
    assert_eq!(files.map(|file| file.unwrap().file_name()).collect::<Vec<_>>(), ["certificate.pem"]);
}

/// Interrupting the run must also interrupt the build of the client in Go. A script takes the place of the Go compiler,
/// so this test does not need Go.
#[test]
fn a_build_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let (go, begun) = (folder.path().join("go"), folder.path().join("begun"));
    std::fs::write(&go, format!("#!/bin/sh\ntouch '{}'\nexec sleep 600\n", begun.display())).unwrap();
    std::fs::set_permissions(&go, std::fs::Permissions::from_mode(0o755)).unwrap();
    let stop = Stop::new().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("the build has begun", || begun.exists());
            stop.request();
        });
        assert_eq!(go::build(go.clone(), &stop).err(), Some(TargetError::Interrupted));
    });
    assert_eq!(
        go::build(go.clone(), &stop).err(),
        Some(TargetError::Interrupted),
        "it can also be interrupted before it begins"
    );
}

#[test]
fn a_server_that_is_gone_is_an_error_and_leaves_nothing_behind() {
    for client in [OWN, CURL, GO] {
        let arm = arm(PLAIN, &between(client, NGINX));
        if or_left_out(is_available(&arm)).is_none() {
            continue;
        }
        let mut transfers = open(&[arm]);
        transfers.verify(0).unwrap();
        let BodyServer::Installed(servers) = &*transfers.arms[0].server else { panic!("not installed") };
        let (pid, folder) = (servers[0].pid(), servers[0].folder().to_owned());
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
        let is_gone = || std::net::TcpStream::connect(servers[0].address()).is_err();
        wait_until("the server is gone", is_gone);
        let error = measured(&mut transfers, 0).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{client} from nginx, plain: ")), "{error}");
        let says = ["refused", "Failed to connect", "couldn't connect", "Could not connect"];
        assert!(says.iter().any(|says| error.contains(says)), "{error}");
        drop(transfers);
        assert!(!folder.exists() && !Path::new(&format!("/proc/{pid}")).exists());
    }
}

#[test]
fn files_and_what_is_known_of_requests_take_memory() {
    let bytes = |server: &str, rate: u64| {
        let integers = [("rate", rate), ("measured_ms", 2_000), ("streams", 4), ("answer_bytes", 1_000), ("mb", 256)];
        let integers = integers.map(|(name, n)| (name, n.into()));
        HttpsThroughput.memory_bytes(&[arm(PLAIN, &[&integers[..], &[("server", server.into())]].concat())])
    };
    assert_eq!([OWN, NGINX, CADDY].map(|server| bytes(server, 0)), [0, 256_000_000, 256_000_000]);
    assert_eq!([OWN, NGINX, CADDY].map(|server| bytes(server, 500)), [64_000, 68_000, 65_000]);
}

#[test]
fn requests_are_asked_at_a_rate() {
    // By default nginx would close a connection after 1,000 requests.
    for (variant, server, rate, streams) in
        [(PLAIN, OWN, 200, 2), (TLS, OWN, 200, 2), (PLAIN, NGINX, 2_400, 1), (TLS, CADDY, 200, 2)]
    {
        let integers = [("rate", rate), ("measured_ms", 500), ("streams", streams)].map(|(name, n)| (name, n.into()));
        let levels = [&integers[..], &[("server", server.into())]].concat();
        let arm = arm(variant, &levels);
        if or_left_out(is_available(&arm)).is_none() {
            continue;
        }
        let mut transfers = open(&[arm]);
        transfers.verify(0).unwrap();
        let out = measured(&mut transfers, 0).unwrap();
        // A hundred requests are too few for a 99.9th percentile.
        let metrics: Vec<usize> =
            out.iter().map(|sample| sample.metric).filter(|metric| *metric != LATENCY + 3).collect();
        assert_eq!(metrics, [LATENCY, LATENCY + 1, LATENCY + 2, LATE, ANSWERED, OVERLOADED, REQUEST_CPU], "{out:?}");
        assert_eq!(value(&out, LATENCY + 3).is_some(), rate > 2_000, "{out:?}");
        // A busy machine may not answer all requests in time.
        assert!(out.iter().all(|sample| [Status::Ok, Status::Censored].contains(&sample.status)), "{out:?}");
        assert!(value(&out, LATENCY) <= value(&out, LATENCY + 2), "{out:?}");
        assert!(value(&out, ANSWERED) <= Some(rate as f64), "{out:?}");
    }
}

#[test]
fn more_requests_than_there_are_answers_to_are_an_overload() {
    let levels = [("rate", 1_000_000.into()), ("measured_ms", 100.into())];
    let mut transfers = open(&[arm(PLAIN, &levels)]);
    let out = measured(&mut transfers, 0).unwrap();
    // The tests of `RequestTimes` check the latencies.
    assert_eq!(value(&out, OVERLOADED), Some(1.0), "{out:?}");
    assert!(value(&out, ANSWERED) < Some(1e6), "{out:?}");
}

/// A server that never answers does not cause an error. Its unanswered requests count as slow, and the trial counts as
/// overloaded.
#[test]
fn who_is_silent_is_slow() {
    let arm = arm(PLAIN, &[("rate", 100.into()), ("measured_ms", 100.into())]);
    let stop = Stop::new().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let serving = Rc::new(BodyServer::Own(vec![Server::misbehaving(listener, Misbehaviour::Silent).unwrap()]));
    let mut out = Samples::default();
    TransferArm::new(&arm, serving, &stop).unwrap().measure(&stop, &mut out).unwrap();
    let p50 = out.iter().find(|sample| sample.metric == LATENCY).unwrap();
    assert!(p50.status == Status::Censored && p50.value > 1e9, "{p50:?}");
    assert_eq!([ANSWERED, OVERLOADED].map(|metric| value(&out, metric)), [Some(0.0), Some(1.0)], "{out:?}");
}

/// For each request, the client in this process must check the version of HTTP and the cipher.
#[test]
fn what_is_spoken_is_looked_at_each_time() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4_096]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\ncontent-length: 1000\r\n\r\n");
            let _ = stream.write_all(&[b'x'; 1_000]);
        }
    });
    for levels in [vec![("rate", 100.into()), ("measured_ms", 100.into())], vec![]] {
        let mut transfers = open(&[arm(PLAIN, &levels), arm(TLS, &levels)]);
        transfers.arms[0].addresses = vec![address];
        transfers.arms[0].bytes_each = 1_000;
        let error = measured(&mut transfers, 0).unwrap_err().to_string();
        assert!(error.contains("the answer has HTTP/1.0 instead of HTTP/1.1"), "{error}");
        transfers.arms[1].cipher = None;
        let error = measured(&mut transfers, 1).unwrap_err().to_string();
        assert!(error.contains("TLS_AES_128_GCM_SHA256 was negotiated instead of no TLS"), "{error}");
    }
}

#[test]
fn bad_servers_of_requests_are_errors() {
    let arm = arm(PLAIN, &[("rate", 100.into())]);
    let stop = Stop::new().unwrap();
    for (how, says) in [
        (Misbehaviour::Closes, "before an answer arrived"),
        (Misbehaviour::SendsLess, "in the middle of the answer"),
        (Misbehaviour::SendsMore, "500 bytes instead of status 200 and 1000 bytes"),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let serving = Rc::new(BodyServer::Own(vec![Server::misbehaving(listener, how).unwrap()]));
        let mut target = TransferArm::new(&arm, serving, &stop).unwrap();
        let error = target.measure(&stop, &mut Samples::default()).unwrap_err().to_string();
        assert!(error.contains(says), "{how:?}: {error}");
    }
}
