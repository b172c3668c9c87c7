//! One side of a link: where sockets and programs live that use it.

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

/// The name of the interface on either side.
pub(crate) const INTERFACE: &str = "link";
/// How many frames may wait for the emulator.
const QUEUE_PACKETS: u32 = 10_000;

/// One side of a link. Its sockets are this process's, and may be used by any thread.
///
/// Besides [`address`](Self::address) all of its net is the side's own, so that there can be many destinations: of IPv4
/// `198.18.0.0/24` on the near side and `198.18.1.0/24` on the far one, of IPv6 `fd00::/64` and `fd00:0:0:1::/64`.
#[derive(Debug)]
pub struct Side {
    namespace: Namespace,
    address: Ipv4Addr,
    ipv6_address: Option<Ipv6Addr>,
    /// The kernel's counts of what went through its interfaces.
    traffic: File,
}

impl Side {
    /// The side of that number, in a namespace that has its interface already.
    pub(crate) fn new(namespace: Namespace, number: u8, link: &Link) -> Result<Self, Error> {
        let address = Ipv4Addr::new(198, 18, number, 1);
        let ipv6_address = Ipv6Addr::new(0xfd00, 0, 0, number.into(), 0, 0, 0, 1);
        let failed = Error::system;
        let mut netlink = Netlink::new(&namespace).map_err(failed("the link's namespace has no netlink"))?;
        let index = netlink.index(INTERFACE).map_err(failed("the link's interface is not there"))?;
        netlink.set_loopback_up().map_err(failed("the loopback interface did not come up"))?;
        let has_ipv6 = netlink.without_link_local(index).is_ok();
        let up = netlink.set_up(index, link.mtu_bytes, QUEUE_PACKETS);
        up.map_err(failed("the link's interface did not come up"))?;
        let mut add = |address: IpAddr, prefix_bits| {
            let metrics = Metrics {
                initial_window_segments: link.initial_window_segments,
                congestion_control: link.congestion_control.as_deref(),
                mtu_bytes: None,
            };
            netlink.add_address(index, address).map_err(failed("the link got no address"))?;
            netlink.add_own_addresses(address, prefix_bits).map_err(failed("the link got no addresses"))?;
            let added = netlink.add_default_route(index, address, &metrics);
            added.map_err(|source| match &link.congestion_control {
                Some(name) => Error::Route { name: name.clone(), source },
                None => Error::System { what: "the link got no route", source },
            })
        };
        add(address.into(), 24)?;
        // Where IPv6 is switched off a link does without.
        let ipv6_address = (has_ipv6 && add(ipv6_address.into(), 64).is_ok()).then_some(ipv6_address);
        let traffic = namespace.open(c"/proc/self/net/dev", OFlags::RDONLY);
        let traffic = traffic.map_err(failed("/proc/net/dev could not be read"))?;
        let side = Self { namespace, address, ipv6_address, traffic };
        // What one connection learns of the link must not be known to the next one.
        side.set("net/ipv4/tcp_no_metrics_save", "1")
            .map_err(failed("net.ipv4.tcp_no_metrics_save could not be set"))?;
        Ok(side)
    }

    /// Its address, which its connections to the other side have.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Its address of IPv6, where the kernel has that.
    #[must_use]
    pub fn ipv6_address(&self) -> Option<Ipv6Addr> {
        self.ipv6_address
    }

    /// A connection from this side. It waits as long as the kernel tries: two minutes, if nothing answers.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn connect(&self, to: impl Into<SocketAddr>) -> io::Result<TcpStream> {
        let to = to.into();
        let socket = self.socket(&to, SocketType::STREAM)?;
        match connect(&socket, &to) {
            // A signal: it goes on without us.
            Err(Errno::INTR) => {
                while poll(&mut [PollFd::new(&socket, PollFlags::OUT)], None) == Err(Errno::INTR) {}
                sockopt::socket_error(&socket)??;
            }
            connected => connected?,
        }
        Ok(socket.into())
    }

    /// A listener on this side.
    ///
    /// # Errors
    /// As the kernel says: `EADDRINUSE`, `EADDRNOTAVAIL`.
    pub fn listen(&self, at: impl Into<SocketAddr>) -> io::Result<TcpListener> {
        let at = at.into();
        let socket = self.socket(&at, SocketType::STREAM)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &at)?;
        listen(&socket, 1024)?;
        Ok(socket.into())
    }

    /// A socket for datagrams on this side.
    ///
    /// # Errors
    /// As the kernel says: `EADDRINUSE`, `EADDRNOTAVAIL`.
    pub fn udp(&self, at: impl Into<SocketAddr>) -> io::Result<UdpSocket> {
        let at = at.into();
        let socket = self.socket(&at, SocketType::DGRAM)?;
        bind(&socket, &at)?;
        Ok(socket.into())
    }

    /// A socket on this side that is bound to nothing yet, for addresses like this one.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn socket(&self, like: &SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
        let family = if like.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        self.namespace.socket(family, kind, None)
    }

    /// The command will run on this side: a server, or a client that knows nothing of links.
    pub fn enter(&self, command: &mut Command) {
        self.namespace.enter(command);
    }

    /// A setting of this side's kernel, as `net/ipv4/tcp_timestamps`, for what is written down about a measurement.
    ///
    /// # Errors
    /// As the kernel says: `ENOENT` if it has none of that name.
    pub fn setting(&self, name: &str) -> io::Result<String> {
        let mut text = String::new();
        self.open_setting(name, OFlags::RDONLY)?.read_to_string(&mut text)?;
        Ok(text.trim_end().into())
    }

    /// Changes a setting of this side's kernel.
    ///
    /// # Errors
    /// As the kernel says: `EINVAL` for a value that it can't have.
    pub fn set(&self, name: &str, value: &str) -> io::Result<()> {
        io::Write::write_all(&mut self.open_setting(name, OFlags::WRONLY)?, value.as_bytes())
    }

    fn open_setting(&self, name: &str, flags: OFlags) -> io::Result<File> {
        self.namespace.open(&CString::new(format!("/proc/sys/{name}"))?, flags)
    }

    /// How many frames for the link were dropped here, because the emulator had not read those before them.
    pub(crate) fn dropped_frames(&self) -> io::Result<u64> {
        let mut text = [0; 4096];
        let bytes = pread(&self.traffic, &mut text, 0)?;
        let text = String::from_utf8_lossy(&text[..bytes]);
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'));
        // Eight numbers of what was received; bytes, packets, errors and drops of what was sent.
        let dropped = line.and_then(|line| line.split_whitespace().nth(11)?.parse().ok());
        dropped.ok_or_else(|| io::Error::other("/proc/net/dev does not say what was dropped"))
    }
}
