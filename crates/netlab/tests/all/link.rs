//! Tests properties of links that do not depend on how busy the machine is.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ascertain_netlab::model::{Conditions, Fate, Favoured, Flow, Line, Throttle, TokenBucket};
use ascertain_netlab::{Carrier, Link, RunningLink, tcp};
use ascertain_sys::privileges::{NOBODY, effective_user};
use ascertain_sys::testing::{LIST, alone, left_out, or_left_out};

const CARRIERS: [Carrier; 3] =
    [Carrier::Tun { has_offloads: true }, Carrier::Tun { has_offloads: false }, Carrier::Veth];
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a test over the link with each carrier that this machine has.
fn with_each_carrier(link: &Link, conditions: &[Conditions; 2], test: impl Fn(&RunningLink)) {
    for carrier in CARRIERS {
        let link = Link { carrier: Some(carrier), ..link.clone() };
        if let Some(running) = or_left_out(link.start_with(&conditions[0], &conditions[1])) {
            assert_eq!(running.carrier(), carrier);
            test(&running);
            assert_eq!(running.report().unwrap().refused_frames, 0);
        }
    }
}

fn addresses(link: &RunningLink) -> Vec<IpAddr> {
    let ipv6 = link.far().ipv6_address().map(IpAddr::from);
    if ipv6.is_none() {
        left_out("there is no IPv6");
    }
    [Some(link.far().address().into()), ipv6].into_iter().flatten().collect()
}

fn noise(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Sends bytes from the near side to the far side, and returns the time until all have arrived.
fn transfer(link: &RunningLink, to: IpAddr, bytes: usize) -> Duration {
    let listener = link.far().listen((to, 80)).unwrap();
    let mut near = link.near().connect((to, 80)).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    far.set_read_timeout(Some(PATIENCE)).unwrap();
    let sent = noise(bytes);
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            near.write_all(&sent).unwrap();
            near.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        far.read_to_end(&mut received).unwrap();
        assert!(received == sent, "{} bytes of {bytes} arrived, or they differ", received.len());
    });
    start.elapsed()
}

#[test]
fn a_connection_takes_a_round_trip() {
    let link = Link { rtt: Duration::from_millis(20), ..Link::default() };
    with_each_carrier(&link, &link.conditions(), |running| {
        for address in addresses(running) {
            let listener = running.far().listen((address, 80)).unwrap();
            let start = Instant::now();
            let stream = running.near().connect((address, 80)).unwrap();
            assert!(start.elapsed() >= link.rtt, "{:?}", start.elapsed());
            let (_, from) = listener.accept().unwrap();
            assert_eq!(from, stream.local_addr().unwrap());
        }
        let report = running.report().unwrap();
        // The report counts the connection's first two segments, and the third one if it has been sent and has arrived.
        assert!(report.lateness.count() >= 2, "{report:?}");
    });
}

#[test]
fn what_is_lost_is_what_the_model_loses_and_order_is_kept() {
    const DATAGRAMS: u64 = 1000;
    let link = Link { loss: 0.1, seed: 7, rtt: Duration::from_millis(1), ..Link::default() };
    with_each_carrier(&link, &link.conditions(), |running| {
        let (near, far) = (running.near(), running.far());
        let receiver = far.udp((far.address(), 9)).unwrap();
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        let sender = near.udp((near.address(), 0)).unwrap();
        sender.connect((far.address(), 9)).unwrap();
        let mut line = Line::new(&link.conditions()[0]).unwrap();
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        let flow = Flow { source: nobody, destination: nobody };
        for number in 0..DATAGRAMS {
            sender.send(&number.to_be_bytes()).unwrap();
            let arrives = matches!(line.offer(0, 28 + 8, flow), Fate::Due(_));
            if arrives {
                let mut bytes = [0; 8];
                assert_eq!(receiver.recv(&mut bytes).unwrap(), 8);
                assert_eq!(u64::from_be_bytes(bytes), number);
            }
        }
        let counts = running.report().unwrap().to_far;
        assert_eq!(counts, line.counts());
        assert!(counts.lost.segments > 0);
    });
}

#[test]
fn all_of_it_arrives_though_segments_are_lost() {
    let link = Link { loss: 0.01, rtt: Duration::from_millis(1), ..Link::default() };
    with_each_carrier(&link, &link.conditions(), |running| {
        for address in addresses(running) {
            transfer(running, address, 2_000_000);
        }
        let report = running.report().unwrap();
        assert!(report.to_far.lost.segments > 0, "{report:?}");
        assert!(report.to_far.offered.bytes <= 1500 * report.to_far.offered.segments, "frames were not cut");
    });
}

#[test]
fn nothing_is_faster_than_the_rate() {
    let link = Link { rate_bits_per_s: Some(40_000_000), ..Link::default() };
    with_each_carrier(&link, &link.conditions(), |running| {
        for address in addresses(running) {
            let bytes = 1_000_000;
            let took = transfer(running, address, bytes);
            assert!(took >= Duration::from_millis(200), "{bytes} bytes at 40 Mbit/s took {took:?}");
        }
    });
}

#[test]
fn each_segment_is_a_frame_at_a_rate_alone() {
    let at_once = Link::default();
    // A segment takes 12 µs at this rate, so several are due within 50 µs, but they are still delivered one by one.
    let at_a_rate = Link { rate_bits_per_s: Some(1_000_000_000), ..Link::default() };
    for (link, is_cut) in [(at_once, false), (at_a_rate, true)] {
        with_each_carrier(&link, &link.conditions(), |running| {
            transfer(running, running.far().address().into(), 2_000_000);
            let report = running.report().unwrap();
            let due = report.to_far.due.segments + report.to_near.due.segments;
            let is_plain = running.carrier() == Carrier::Tun { has_offloads: false };
            // Up to ten segments may still be in transit when the connection ends, so their lateness is not recorded
            // yet.
            assert_eq!(report.lateness.count() + 10 > due, is_cut || is_plain, "{report:?}");
        });
    }
}

#[test]
fn a_full_queue_drops_and_all_of_it_arrives() {
    let link = Link { rate_bits_per_s: Some(100_000_000), queue_bytes: 20_000, ..Link::default() };
    with_each_carrier(&link, &link.conditions(), |running| {
        transfer(running, running.far().address().into(), 2_000_000);
        assert!(running.report().unwrap().to_far.queue_full.segments > 0);
    });
}

#[test]
fn a_provider_favours_a_port() {
    let link = Link::default();
    let [mut to_far, to_near] = link.conditions();
    to_far.throttle = Some(Throttle {
        bucket: TokenBucket { burst_bytes: 0, rate_bits_per_s: 1 },
        favoured: vec![Favoured { port: Some(81), address: None }],
        lifted_for_all: None,
    });
    with_each_carrier(&link, &[to_far, to_near], |running| {
        let (near, far) = (running.near(), running.far());
        let sender = near.udp((near.address(), 0)).unwrap();
        let receivers = [80, 81].map(|port| far.udp((far.address(), port)).unwrap());
        for _ in 0..10 {
            for receiver in &receivers {
                sender.send_to(b"there", receiver.local_addr().unwrap()).unwrap();
            }
        }
        receivers[1].set_read_timeout(Some(PATIENCE)).unwrap();
        (0..10).for_each(|_| assert_eq!(receivers[1].recv(&mut [0; 8]).unwrap(), 5));
        let counts = running.report().unwrap().to_far;
        // The first segment passes although it is larger than the bucket, because the bucket is full.
        assert_eq!((counts.throttled.segments, counts.due.segments), (9, 11), "{counts:?}");
    });
}

#[test]
fn tcp_is_as_it_was_asked_to_be() {
    let congestion_control = Some("reno".into());
    let link = Link { initial_window_segments: Some(23), congestion_control, mtu_bytes: 1400, ..Link::default() };
    with_each_carrier(&link, &link.conditions(), |running| {
        for address in addresses(running) {
            let _listener = running.far().listen((address, 80)).unwrap();
            let stream = running.near().connect((address, 80)).unwrap();
            let info = tcp::info(&stream).unwrap();
            assert_eq!((info.congestion_control.as_str(), info.window_segments), ("reno", 23));
            let headers = if address.is_ipv4() { 40 } else { 60 };
            assert_eq!(info.mss_bytes + headers + if info.has_timestamps { 12 } else { 0 }, 1400);
        }
        let timestamps = running.far().setting("net/ipv4/tcp_timestamps").unwrap();
        assert!(["0", "1", "2"].contains(&timestamps.as_str()), "{timestamps}");
    });
}

#[test]
fn programs_use_it_too_and_there_are_many_addresses() {
    let Some(running) = or_left_out(Link::default().start()) else { return };
    let listener = running.far().listen(([198, 18, 1, 200], 80)).unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", "echo from a program > /dev/tcp/198.18.1.200/80"]);
    running.near().enter(&mut command);
    if or_left_out(command.status().map_err(|error| format!("bash: {error}"))).is_none() {
        return;
    }
    let mut text = String::new();
    listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
    assert_eq!(text, "from a program\n");
}

#[cfg(feature = "servers")]
#[test]
fn a_page_over_the_first_window_takes_a_round_trip_more() {
    use ascertain_netlab::http::{ClientOptions, Connection, HttpRequest, Server};
    use ascertain_netlab::{Phase, Phases, now_ns};

    let rtt = Duration::from_millis(20);
    let link = Link { rtt, congestion_control: Some("reno".into()), ..Link::default() };
    with_each_carrier(&link, &link.conditions(), |running| {
        let address = (running.far().address(), 80);
        let server = Server::start(running.far().listen(address).unwrap(), None).unwrap();
        for (bytes, round_trips) in [(14_000, 1), (14_600, 2)] {
            let mut phases = Phases::begin(now_ns());
            let stream = running.near().connect(address).unwrap();
            phases.end(Phase::Connect, now_ns());
            let offer = ClientOptions::plain(&server.address().to_string(), PATIENCE);
            let mut connection = Connection::open(stream, &offer, &mut phases).unwrap();
            let answer = connection.send(&HttpRequest::get(&format!("/bytes/{bytes}")), &mut phases).unwrap();
            assert_eq!(answer.body_bytes, bytes);
            let took = |phase| Duration::from_nanos(phases.took_ns(phase).unwrap());
            assert!(took(Phase::Connect) >= rtt);
            // The time to write the request is included, because the request leaves before the write returns.
            let asked = took(Phase::Sent) + took(Phase::FirstByte) + took(Phase::LastByte);
            assert!(asked >= rtt * round_trips, "{phases:?}");
        }
    });
}

#[cfg(feature = "servers")]
#[test]
fn a_server_that_is_installed_lives_on_the_far_side() {
    use ascertain_netlab::installed::{Program, nginx};

    let Some(running) = or_left_out(Link::default().start()) else { return };
    let (near, far) = (running.near(), running.far());
    let address = SocketAddr::from((far.address(), 8080));
    let nginx = Program { limit: PATIENCE, ..nginx(address, None) };
    let server = nginx.start_where(|command| far.enter(command), || far.connect(address));
    let Some(server) = or_left_out(server) else { return };
    std::fs::write(server.folder().join("www/page"), "from the far side").unwrap();
    let mut stream = near.connect(address).unwrap();
    stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("\r\n\r\nfrom the far side"), "{text}");
}

#[test]
fn errors_name_what_is_missing() {
    let link = |name: &str, mtu_bytes| Link { congestion_control: Some(name.into()), mtu_bytes, ..Link::default() };
    if or_left_out(link("reno", 1500).start()).is_none() {
        return;
    }
    let said = link("nosuchthing", 1500).start().unwrap_err().to_string();
    assert!(said.contains("`nosuchthing`") && said.contains("modprobe"), "{said}");
    let said = link("reno", 10_000_000).start().unwrap_err().to_string();
    assert!(said.contains("10000000 bytes"), "{said}");
}

/// Returns this process's descriptors of namespaces and TUN devices.
fn descriptors_of_namespaces() -> Vec<String> {
    let files =
        std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    let files = files.filter_map(|path| path.to_str().map(String::from));
    let is_one = |path: &String| path.starts_with("net:[") || path.starts_with("user:[") || path.ends_with("/net/tun");
    files.filter(is_one).collect()
}

const PART: &str = "ASCERTAIN_TEST_LINK_PART";

fn play(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "link::played_by_a_process_of_its_own", "--nocapture", "--test-threads=1"]);
    command.env(PART, part);
    command
}

/// Runs a part of the tests below in another process. The variable [`PART`] names the part; without it, nothing runs.
#[test]
fn played_by_a_process_of_its_own() {
    let Ok(part) = std::env::var(PART) else { return };
    let say = |text: &str| std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
    match part.as_str() {
        "hold" => {
            let _link = Link::default().start().unwrap();
            say(&descriptors_of_namespaces().join(" "));
            // Waits until the test kills this process, or until the test has ended.
            let _ = std::io::stdin().read(&mut [0]);
        }
        _ => say(&Link::default().start().unwrap_err().to_string()),
    }
}

#[test]
fn nothing_is_left_after_a_panic() {
    // Runs alone, because other tests have links and descriptors, too.
    alone(|| {
        if or_left_out(Link::default().start()).is_none() {
            return;
        }
        let panicking = thread::spawn(|| {
            let _link = Link::default().start().unwrap();
            assert!(!descriptors_of_namespaces().is_empty());
            panic!("with a link");
        });
        panicking.join().unwrap_err();
        assert_eq!(descriptors_of_namespaces(), Vec::<String>::new());
    });
}

#[test]
fn nothing_is_left_after_a_kill() {
    if or_left_out(Link::default().start()).is_none() {
        return;
    }
    let mut command = play("hold");
    let mut child = command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    while !said.contains("net:[") {
        said.clear();
        assert_ne!(std::io::BufRead::read_line(&mut stderr, &mut said).unwrap(), 0, "it ended");
    }
    let namespaces: Vec<&str> = said.split_whitespace().filter(|path| path.contains(":[")).collect();
    assert!(namespaces.len() >= 2, "{said}");
    assert!(!holders(&namespaces).is_empty(), "the process must hold namespaces that this test can see");
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel closes the files of a dead process before its parent is notified.
    assert_eq!(holders(&namespaces), Vec::<String>::new());
    let ours = std::fs::read_to_string("/proc/self/net/dev").unwrap();
    assert!(!ours.lines().any(|line| line.trim_start().starts_with("link:")), "{ours}");
}

/// Returns the descriptors and processes that hold one of these namespaces.
fn holders(namespaces: &[&str]) -> Vec<String> {
    let entries = |path: &str| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let processes = entries("/proc").filter(|path| path.join("fd").exists());
    let links = processes.flat_map(|path| [path.join("fd"), path.join("ns")]);
    let links = links.flat_map(|folder| entries(folder.to_str().unwrap()).collect::<Vec<_>>());
    let leads_there = |path: &std::path::PathBuf| {
        std::fs::read_link(path).is_ok_and(|to| to.to_str().is_some_and(|to| namespaces.contains(&to)))
    };
    links.filter(leads_there).map(|path| path.display().to_string()).collect()
}

#[test]
fn without_namespaces_that_is_said() {
    let play = play("fail");
    let mut command = Command::new("unshare");
    let none = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"";
    command.args(["-Ur", "sh", "-c", none, "sh"]).arg(play.get_program()).args(play.get_args()).env(PART, "fail");
    let said = command.output().map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    let Some(said) = or_left_out(said.map_err(|error| format!("unshare: {error}"))) else { return };
    if !said.contains("could not create a network namespace") {
        assert!(said.contains("unshare:") || said.contains("sh:"), "{said}");
        left_out(said);
    }
}

/// Runs all tests above again as an unprivileged user: once with a TUN device that the user may not open, and once with
/// one that everybody may open.
#[test]
fn as_nobody() {
    if effective_user() != 0 {
        return left_out("only root can become nobody; the other tests here ran without root");
    }
    // The unprivileged user may not look into the build's folder.
    let folder = tempfile::tempdir().unwrap();
    let for_all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), for_all).unwrap();
    let program = folder.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let own_tun = "mknod -m 666 tun c 10 200 && mount --bind tun /dev/net/tun";
    for prepare in ["true", own_tun] {
        let run = format!("{prepare} && cd / && exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &run, "sh"]).arg(&program).args(["link::", "--skip", "as_nobody"]);
        let output = command.current_dir(folder.path()).env_remove(LIST).output();
        let Some(output) = or_left_out(output.map_err(|error| format!("unshare: {error}"))) else { return };
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        if said[0].contains("running") {
            assert!(output.status.success(), "{prepare}, {:?}: {}", output.status, said.concat());
            // Without a TUN that the user may open, tests with TUN are expected to be skipped, so this is not reported.
            let missed = said[1].lines().filter_map(|line| line.strip_prefix("left out: "));
            missed.filter(|_| prepare == own_tun).for_each(left_out);
        } else {
            left_out(format!("{prepare}, and becoming nobody: {}", said[1]));
        }
    }
}
