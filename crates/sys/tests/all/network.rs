//! Tests of network namespaces, interfaces and routes, as root and as the user nobody.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use ascertain_sys::namespace::Namespace;
use ascertain_sys::netlink::{Metrics, Netlink, VethEnd};
use ascertain_sys::packet::{self, VIRTIO_HEADER_BYTES};
use ascertain_sys::privileges::{NOBODY, effective_user};
use ascertain_sys::testing::{LIST, left_out, or_left_out, wait_until};
use ascertain_sys::tun;
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketType, bind, connect, listen};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);

fn namespace() -> Option<Namespace> {
    or_left_out(Namespace::new().map_err(|error| format!("no namespaces here: {error}")))
}

fn text(namespace: &Namespace, path: &std::ffi::CStr) -> String {
    let mut text = String::new();
    namespace.open(path, OFlags::RDONLY).unwrap().read_to_string(&mut text).unwrap();
    text
}

/// Configures an interface with an address, and a default route through it.
fn configure(netlink: &mut Netlink, index: u32, address: IpAddr, metrics: &Metrics<'_>) -> std::io::Result<()> {
    netlink.set_up(index, 1400, 1000)?;
    netlink.add_address(index, address)?;
    netlink.add_default_route(index, address, metrics)
}

/// Reads from a non-blocking source as soon as it has data.
fn read_one(what: &str, mut read: impl FnMut() -> io::Result<usize>) -> usize {
    let mut bytes = None;
    wait_until(what, || {
        bytes = match read() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            read => Some(read.unwrap()),
        };
        bytes.is_some()
    });
    bytes.unwrap()
}

fn listener(namespace: &Namespace, port: u16) -> TcpListener {
    let socket = namespace.socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)).unwrap();
    listen(&socket, 8).unwrap();
    socket.into()
}

#[test]
fn ports_are_a_namespaces_own() {
    let Some(one) = namespace() else { return };
    let other = one.another().unwrap();
    for namespace in [&one, &other] {
        Netlink::new(namespace).unwrap().set_loopback_up().unwrap();
    }
    let (_here, _there) = (listener(&one, 80), listener(&other, 80));
    let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 80);
    let client = one.socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    connect(&client, &to).unwrap();
    // This process and its threads are still in their own namespace.
    assert_ne!(text(&one, c"/proc/self/net/dev"), std::fs::read_to_string("/proc/self/net/dev").unwrap());
}

#[test]
fn a_command_runs_inside_as_who_we_are() {
    let Some(namespace) = namespace() else { return };
    let mut command = Command::new("sh");
    command.args(["-c", "id -u; readlink /proc/self/ns/net"]);
    namespace.enter(&mut command);
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let (user, link) = output.trim().split_once('\n').unwrap();
    assert_eq!(user, effective_user().to_string());
    assert_ne!(link, std::fs::read_link("/proc/self/ns/net").unwrap().to_str().unwrap());
}

#[test]
fn what_is_sent_to_a_tun_is_read_from_it() {
    let Some(namespace) = namespace() else { return };
    let Some(mut file) = or_left_out(tun::create(&namespace, "link", true).map_err(|error| format!("TUN: {error}")))
    else {
        return;
    };
    let mut netlink = Netlink::new(&namespace).unwrap();
    let index = netlink.index("link").unwrap();
    if let Err(error) = netlink.without_link_local(index) {
        left_out(format!("IPv6: {error}"));
    }
    configure(&mut netlink, index, ADDRESS.into(), &Metrics::default()).unwrap();
    netlink.set_loopback_up().unwrap();
    netlink.add_own_addresses(ADDRESS.into(), 24).unwrap();
    let none = file.read(&mut [0; 100]).unwrap_err();
    assert_eq!(none.kind(), std::io::ErrorKind::WouldBlock, "an unrequested packet was sent");
    let socket = namespace.socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    // This address belongs to the namespace, though no interface has it.
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 77), 7)).unwrap();
    let socket = UdpSocket::from(socket);
    socket.send_to(b"there", (PEER, 9)).unwrap();
    let mut packet = [0; 100];
    let read = read_one("the packet", || file.read(&mut packet));
    assert_eq!(&packet[VIRTIO_HEADER_BYTES..read][28..], b"there");
    // Sends the packet back to its sender, without a checksum.
    let header = VIRTIO_HEADER_BYTES;
    packet[..header].fill(0);
    packet[header + 12..header + 20].rotate_left(4);
    packet[header + 20..header + 24].rotate_left(2);
    packet[header + 26..header + 28].fill(0);
    file.write_all(&packet[..read]).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut answer = [0; 10];
    let (bytes, from) = socket.recv_from(&mut answer).unwrap();
    assert_eq!((&answer[..bytes], from), (&b"there"[..], SocketAddr::from((PEER, 9))));
}

#[test]
fn frames_go_through_a_pair_to_a_packet_socket() {
    let Some(inside) = namespace() else { return };
    let outside = inside.another().unwrap();
    let hardware_address = [2, 0, 0, 0, 0, 1];
    let ends = [("link", &inside), ("peer", &outside)];
    let ends = ends.map(|(name, namespace)| VethEnd { namespace, name, hardware_address });
    let mut netlink = Netlink::new(&outside).unwrap();
    if or_left_out(netlink.add_veth(ends).map_err(|error| format!("veth: {error}"))).is_none() {
        return;
    }
    let peer = netlink.index("peer").unwrap();
    let _ = netlink.without_link_local(peer);
    netlink.set_up(peer, 1400, 1000).unwrap();
    let socket = packet::open(&outside, peer).unwrap();
    let mut netlink = Netlink::new(&inside).unwrap();
    let index = netlink.index("link").unwrap();
    let _ = netlink.without_link_local(index);
    configure(&mut netlink, index, ADDRESS.into(), &Metrics::default()).unwrap();
    let sender = UdpSocket::from(inside.socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap());
    sender.send_to(b"there", (PEER, 9)).unwrap();
    let mut frame = [0; 100];
    let read = read_one("the frame", || Ok(rustix::io::read(&socket, &mut frame)?));
    assert_eq!(&frame[VIRTIO_HEADER_BYTES..read][14 + 28..], b"there");
    assert_eq!(&frame[VIRTIO_HEADER_BYTES..][..12], [hardware_address, hardware_address].concat());
    assert_eq!(packet::take_dropped(&socket).unwrap(), 0);
}

#[test]
fn a_route_has_its_congestion_control_and_first_window() {
    let Some(namespace) = namespace() else { return };
    let other = namespace.another().unwrap();
    let ends = [("link", &namespace), ("peer", &other)];
    let ends = ends.map(|(name, namespace)| VethEnd { namespace, name, hardware_address: [2, 0, 0, 0, 0, 1] });
    let mut ours = Netlink::new(&namespace).unwrap();
    if or_left_out(ours.add_veth(ends).map_err(|error| format!("veth: {error}"))).is_none() {
        return;
    }
    let [index, peer] = [("link", &ours), ("peer", &Netlink::new(&other).unwrap())].map(|(n, l)| l.index(n).unwrap());
    let mut theirs = Netlink::new(&other).unwrap();
    let unknown = Metrics { congestion_control: Some("nosuchthing"), ..Metrics::default() };
    ours.set_up(index, 1400, 1000).unwrap();
    ours.add_address(index, ADDRESS.into()).unwrap();
    assert!(ours.add_default_route(index, ADDRESS.into(), &unknown).is_err());
    // Every kernel supports this algorithm.
    let metrics = Metrics { congestion_control: Some("reno"), initial_window_segments: Some(7), mtu_bytes: Some(1300) };
    ours.add_default_route(index, ADDRESS.into(), &metrics).unwrap();
    configure(&mut theirs, peer, PEER.into(), &Metrics::default()).unwrap();
    let listener = listener(&other, 80);
    let client = namespace.socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    connect(&client, &SocketAddrV4::new(PEER, 80)).unwrap();
    assert_eq!(rustix::net::sockopt::tcp_congestion(&client).unwrap(), "reno");
    let (mut client, (mut server, _)) = (TcpStream::from(client), listener.accept().unwrap());
    client.write_all(b"through").unwrap();
    let mut seven = [0; 7];
    server.read_exact(&mut seven).unwrap();
    assert_eq!(&seven, b"through");
    let routes = text(&namespace, c"/proc/self/net/route");
    assert!(routes.lines().any(|line| line.starts_with("link\t00000000")), "{routes}");
}

#[test]
fn ipv6_as_well() {
    let Some(namespace) = namespace() else { return };
    let mut netlink = Netlink::new(&namespace).unwrap();
    netlink.set_loopback_up().unwrap();
    let address: Ipv6Addr = "fd00::1".parse().unwrap();
    let lo = netlink.index("lo").unwrap();
    if or_left_out(netlink.add_address(lo, address.into()).map_err(|error| format!("IPv6: {error}"))).is_none() {
        return;
    }
    netlink.add_own_addresses("fd00:1::".parse::<Ipv6Addr>().unwrap().into(), 64).unwrap();
    let sockets = [(); 2].map(|()| namespace.socket(AddressFamily::INET6, SocketType::DGRAM, None).unwrap());
    let [receiver, sender] = sockets;
    bind(&receiver, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, 7))).unwrap();
    let (receiver, sender) = (UdpSocket::from(receiver), UdpSocket::from(sender));
    // No interface has this address.
    sender.send_to(b"there", "[fd00:1::77]:7").unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(receiver.recv_from(&mut [0; 10]).unwrap().0, 5);
}

/// Runs all tests above again, in a process of the user nobody.
#[test]
fn as_nobody() {
    if effective_user() != 0 {
        return left_out("becoming nobody needs root; the other tests here did not run as root");
    }
    // A path that this user can read.
    let program = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new(&program);
    command.args(["network::", "--skip", "as_nobody"]).uid(NOBODY).gid(NOBODY).current_dir("/").env_remove(LIST);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("6 passed"), "{:?}: {said}{complained}", output.status);
    complained.lines().filter_map(|line| line.strip_prefix("left out: ")).for_each(left_out);
}
