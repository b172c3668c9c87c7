//! One side of an emulated link: a network namespace for the sockets and programs that use the link.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::Command;

use ascertain_sys::namespace::Namespace;
use ascertain_sys::netlink::{Metrics, Netlink};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::{Errno, pread};
use rustix::net::{AddressFamily, SocketType, bind, connect, listen, sockopt};

use super::link::Link;
use crate::Error;

/// Name of the link's network interface. Both sides use the same name.
pub(crate) const INTERFACE: &str = "link";
/// Maximum number of frames that wait in the kernel until the emulator reads them.
const QUEUE_PACKETS: u32 = 10_000;

/// One side of an emulated link. The sockets that are opened on it belong to this process, and any thread may use them.
///
/// The near side has the subnets `198.18.0.0/24` and `fd00::/64`. The far side has the subnets `198.18.1.0/24` and
/// `fd00:0:0:1::/64`. A side accepts all addresses in its subnets, so that it can offer many destinations. It connects
/// from [`address`](Self::address).
#[derive(Debug)]
pub struct Side {
    namespace: Namespace,
    address: Ipv4Addr,
    ipv6_address: Option<Ipv6Addr>,
    /// The kernel's file with the traffic counts of the side's interfaces.
    traffic: File,
}

impl Side {
    /// Configures a side in a namespace that already has the link's interface. `number` is 0 for the near side and 1
    /// for the far side.
    pub(crate) fn new(namespace: Namespace, number: u8, link: &Link) -> Result<Self, Error> {
        let address = Ipv4Addr::new(198, 18, number, 1);
        let ipv6_address = Ipv6Addr::new(0xfd00, 0, 0, number.into(), 0, 0, 0, 1);
        let failed = Error::system;
        let mut netlink = Netlink::new(&namespace).map_err(failed("could not open netlink in the link's namespace"))?;
        let index = netlink.index(INTERFACE).map_err(failed("the link's interface is missing"))?;
        netlink.set_loopback_up().map_err(failed("could not bring up the loopback interface"))?;
        let has_ipv6 = netlink.without_link_local(index).is_ok();
        let up = netlink.set_up(index, link.mtu_bytes, QUEUE_PACKETS);
        up.map_err(failed("could not bring up the link's interface"))?;
        let mut add = |address: IpAddr, prefix_bits| {
            let metrics = Metrics {
                initial_window_segments: link.initial_window_segments,
                congestion_control: link.congestion_control.as_deref(),
                mtu_bytes: None,
            };
            netlink.add_address(index, address).map_err(failed("could not give the link an address"))?;
            netlink.add_own_addresses(address, prefix_bits).map_err(failed("could not give the link its addresses"))?;
            let added = netlink.add_default_route(index, address, &metrics);
            added.map_err(|source| match &link.congestion_control {
                Some(name) => Error::Link(format!(
                    "could not create a route with the congestion control `{name}` ({source}); \
                     /proc/sys/net/ipv4/tcp_available_congestion_control lists what this kernel has; load others with \
                     `modprobe tcp_NAME`"
                )),
                None => Error::System { what: "could not give the link a route", source },
            })
        };
        add(address.into(), 24)?;
        // If IPv6 is disabled, the side has no IPv6 address.
        let ipv6_address = (has_ipv6 && add(ipv6_address.into(), 64).is_ok()).then_some(ipv6_address);
        let traffic = namespace.open(c"/proc/self/net/dev", OFlags::RDONLY);
        let traffic = traffic.map_err(failed("could not read /proc/net/dev"))?;
        let side = Self { namespace, address, ipv6_address, traffic };
        // Without this setting, the kernel would keep what it learned about the link from one connection, and use it
        // for later connections.
        side.set("net/ipv4/tcp_no_metrics_save", "1").map_err(failed("could not set net.ipv4.tcp_no_metrics_save"))?;
        Ok(side)
    }

    /// Returns the IPv4 address from which this side connects to the other side.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Returns the IPv6 address of this side; `None` if the kernel has no IPv6.
    pub fn ipv6_address(&self) -> Option<Ipv6Addr> {
        self.ipv6_address
    }

    /// Opens a TCP connection from this side. If nothing answers, the kernel gives up after two minutes.
    ///
    /// # Errors
    /// Returns errors of the kernel.
    pub fn connect(&self, to: impl Into<SocketAddr>) -> io::Result<TcpStream> {
        let to = to.into();
        let socket = self.socket(&to, SocketType::STREAM)?;
        match connect(&socket, &to) {
            // A signal interrupted the call, but the kernel continues to connect. So this waits until the kernel has
            // finished.
            Err(Errno::INTR) => {
                while poll(&mut [PollFd::new(&socket, PollFlags::OUT)], None) == Err(Errno::INTR) {}
                sockopt::socket_error(&socket)??;
            }
            connected => connected?,
        }
        Ok(socket.into())
    }

    /// Opens a TCP listener on this side.
    ///
    /// # Errors
    /// Returns errors of the kernel: `EADDRINUSE`, `EADDRNOTAVAIL`.
    pub fn listen(&self, at: impl Into<SocketAddr>) -> io::Result<TcpListener> {
        let at = at.into();
        let socket = self.socket(&at, SocketType::STREAM)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &at)?;
        listen(&socket, 1024)?;
        Ok(socket.into())
    }

    /// Opens a UDP socket on this side.
    ///
    /// # Errors
    /// Returns errors of the kernel: `EADDRINUSE`, `EADDRNOTAVAIL`.
    pub fn udp(&self, at: impl Into<SocketAddr>) -> io::Result<UdpSocket> {
        let at = at.into();
        let socket = self.socket(&at, SocketType::DGRAM)?;
        bind(&socket, &at)?;
        Ok(socket.into())
    }

    /// Opens an unbound socket on this side, for addresses of the same family as `like`.
    ///
    /// # Errors
    /// Returns errors of the kernel.
    pub fn socket(&self, like: &SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
        let family = if like.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        self.namespace.socket(family, kind, None)
    }

    /// Makes a command run on this side of the link, that is, in its network namespace. The command may be a server, or
    /// a client that has no access to this [`Side`].
    pub fn enter(&self, command: &mut Command) {
        self.namespace.enter(command);
    }

    /// Returns a kernel setting of this side, such as `net/ipv4/tcp_timestamps`, to record it with a measurement.
    ///
    /// # Errors
    /// Returns errors of the kernel: `ENOENT` if there is no such setting.
    pub fn setting(&self, name: &str) -> io::Result<String> {
        let mut text = String::new();
        self.open_setting(name, OFlags::RDONLY)?.read_to_string(&mut text)?;
        Ok(text.trim_end().into())
    }

    /// Changes a kernel setting of this side.
    ///
    /// # Errors
    /// Returns errors of the kernel: `EINVAL` if the value is not allowed.
    pub fn set(&self, name: &str, value: &str) -> io::Result<()> {
        io::Write::write_all(&mut self.open_setting(name, OFlags::WRONLY)?, value.as_bytes())
    }

    fn open_setting(&self, name: &str, flags: OFlags) -> io::Result<File> {
        self.namespace.open(&CString::new(format!("/proc/sys/{name}"))?, flags)
    }

    /// Returns the number of frames that the kernel dropped because the queue of frames for the emulator was full.
    pub(crate) fn dropped_frames(&self) -> io::Result<u64> {
        let mut text = [0; 4096];
        let bytes = pread(&self.traffic, &mut text, 0)?;
        let text = String::from_utf8_lossy(&text[..bytes]);
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'));
        // The line has eight numbers for received traffic. The numbers for sent traffic follow: bytes, packets, errors
        // and drops.
        let dropped = line.and_then(|line| line.split_whitespace().nth(11)?.parse().ok());
        dropped.ok_or_else(|| io::Error::other("/proc/net/dev has no count of dropped frames"))
    }
}
