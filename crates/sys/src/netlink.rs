//! Interfaces, addresses and routes of a network namespace, by rtnetlink(7). Linux only.
//!
//! This module has its own encoder for the few messages that an emulated link needs. The existing crates for netlink
//! have several thousand lines. Also, the existing crate for routes encodes the congestion control as a number, but the
//! kernel expects a name.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketType, netdevice, recv, send};

use crate::namespace::Namespace;

// Constants that the C library's headers lack, from linux/rtnetlink.h, linux/veth.h and linux/if_link.h.
const RTAX_MTU: u16 = 2;
const RTAX_INITCWND: u16 = 11;
const RTAX_CC_ALGO: u16 = 16;
const VETH_INFO_PEER: u16 = 1;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;

const HEADER_BYTES: usize = 16;

/// A socket that sends requests about one namespace to the kernel.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

/// One of the two virtual Ethernet devices of a pair.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// The namespace of the device.
    pub namespace: &'a Namespace,
    /// The device's name in that namespace.
    pub name: &'a str,
    /// The hardware (MAC) address of the device.
    pub hardware_address: [u8; 6],
}

/// Properties of TCP connections over a route. The kernel's default applies to properties that are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Metrics<'a> {
    /// The size of the largest packet on the route, in bytes.
    pub mtu_bytes: Option<u32>,
    /// Number of segments that may be sent before the first acknowledgement.
    pub initial_window_segments: Option<u32>,
    /// The algorithm for congestion control, such as `cubic`.
    pub congestion_control: Option<&'a str>,
}

impl Netlink {
    /// Opens a socket for the interfaces of this namespace.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(namespace: &Namespace) -> io::Result<Self> {
        let family = AddressFamily::NETLINK; // protocol 0, the default, is that of routes
        Ok(Self { socket: namespace.socket(family, SocketType::RAW, None::<Protocol>)?, sequence: 0 })
    }

    /// Returns the index of the interface with this name, which identifies the interface in requests.
    ///
    /// # Errors
    /// `ENODEV` if there is no such interface.
    pub fn index(&self, name: &str) -> io::Result<u32> {
        Ok(netdevice::name_to_index(&self.socket, name)?)
    }

    /// Creates a pair of virtual Ethernet devices. Both are down at first. Each device receives the frames that the
    /// other one sends.
    ///
    /// # Errors
    /// The kernel's error: `EPERM`, `EEXIST`, or `EOPNOTSUPP` if the kernel does not support such devices.
    pub fn add_veth(&mut self, ends: [VethEnd<'_>; 2]) -> io::Result<()> {
        let end = |message: Message, end: &VethEnd<'_>| {
            message
                .string(libc::IFLA_IFNAME, end.name)
                .attribute(libc::IFLA_ADDRESS, &end.hardware_address)
                .number(libc::IFLA_NET_NS_FD, end.namespace.as_fd().as_raw_fd().cast_unsigned())
        };
        let [one, other] = &ends;
        let message = end(Message::new(libc::RTM_NEWLINK, NEW, &interface(0, 0, 0)), one);
        self.request(message.nested(libc::IFLA_LINKINFO, |info| {
            info.string(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, |data| {
                // The data about the other end has the same format as a separate message about it.
                data.nested(VETH_INFO_PEER, |peer| end(peer.bytes(&interface(0, 0, 0)), other))
            })
        }))
    }

    /// Prevents the kernel from giving an IPv6 link-local address to an interface that is still down. With such an
    /// address, the kernel would send packets by itself.
    ///
    /// # Errors
    /// `EAFNOSUPPORT` if the system does not support IPv6.
    pub fn without_link_local(&mut self, index: u32) -> io::Result<()> {
        let message = Message::new(libc::RTM_SETLINK, 0, &interface(index, 0, 0));
        self.request(message.nested(libc::IFLA_AF_SPEC, |families| {
            families.nested(libc::AF_INET6 as u16, |inet6| {
                inet6.attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE])
            })
        }))
    }

    /// Brings the interface `index` up, without address resolution (ARP) and without multicast. `mtu_bytes` is the size
    /// of its largest packet, and `queue_packets` is the maximum number of packets in its queue.
    ///
    /// # Errors
    /// The kernel's error: `EINVAL` if the interface does not support packets of this size.
    pub fn set_up(&mut self, index: u32, mtu_bytes: u32, queue_packets: u32) -> io::Result<()> {
        let on = libc::IFF_UP | libc::IFF_NOARP;
        let header = interface(index, on, on | libc::IFF_MULTICAST);
        let message = Message::new(libc::RTM_SETLINK, 0, &header);
        self.request(message.number(libc::IFLA_MTU, mtu_bytes).number(libc::IFLA_TXQLEN, queue_packets))
    }

    /// Brings the loopback interface up.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_loopback_up(&mut self) -> io::Result<()> {
        let index = self.index("lo")?;
        self.request(Message::new(libc::RTM_SETLINK, 0, &interface(index, libc::IFF_UP, libc::IFF_UP)))
    }

    /// Gives an interface an address. The prefix covers only this address (/32 or /128).
    ///
    /// # Errors
    /// The kernel's error: `EACCES` if IPv6 is switched off.
    pub fn add_address(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let (family, octets) = parts(address);
        let bits = (octets.len() * 8) as u8;
        // `struct ifaddrmsg`. No other host can have the address, so the kernel need not search for duplicates.
        let mut header = vec![family, bits, libc::IFA_F_NODAD as u8, libc::RT_SCOPE_UNIVERSE];
        header.extend(index.to_ne_bytes());
        let message = Message::new(libc::RTM_NEWADDR, NEW, &header);
        self.request(message.attribute(libc::IFA_LOCAL, &octets).attribute(libc::IFA_ADDRESS, &octets))
    }

    /// Adds a default route through an interface, for the address family of `source`. Packets that match no other route
    /// take this route.
    ///
    /// # Errors
    /// The kernel's error: `EINVAL` or `ENOENT` if the kernel does not have this congestion control.
    pub fn add_default_route(&mut self, index: u32, source: IpAddr, metrics: &Metrics<'_>) -> io::Result<()> {
        let (family, octets) = parts(source);
        let header = route(family, 0, libc::RT_TABLE_MAIN, libc::RTN_UNICAST, libc::RT_SCOPE_LINK);
        let message = Message::new(libc::RTM_NEWROUTE, NEW, &header)
            .number(libc::RTA_OIF, index)
            .attribute(libc::RTA_PREFSRC, &octets);
        self.request(message.nested(libc::RTA_METRICS, |mut message| {
            for (kind, value) in [(RTAX_MTU, metrics.mtu_bytes), (RTAX_INITCWND, metrics.initial_window_segments)] {
                message = value.into_iter().fold(message, |message, value| message.number(kind, value));
            }
            let name = metrics.congestion_control.into_iter();
            name.fold(message, |message, name| message.string(RTAX_CC_ALGO, name))
        }))
    }

    /// Makes the namespace treat all addresses with this prefix as its own.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_own_addresses(&mut self, address: IpAddr, prefix_bits: u8) -> io::Result<()> {
        let (family, mut octets) = parts(address);
        for (octet, first_bit) in octets.iter_mut().zip((0..).step_by(8)) {
            *octet &= !(0xff_u32 >> u32::from(prefix_bits).saturating_sub(first_bit).min(8)) as u8;
        }
        let loopback = self.index("lo")?;
        let header = route(family, prefix_bits, libc::RT_TABLE_LOCAL, libc::RTN_LOCAL, libc::RT_SCOPE_HOST);
        let message = Message::new(libc::RTM_NEWROUTE, NEW, &header);
        self.request(message.attribute(libc::RTA_DST, &octets).number(libc::RTA_OIF, loopback))
    }

    /// Sends the message and waits for the kernel's reply. Returns the error if the reply contains one.
    fn request(&mut self, message: Message) -> io::Result<()> {
        self.sequence += 1;
        let mut bytes = message.bytes;
        let total = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        bytes[0..4].copy_from_slice(&total.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        send(&self.socket, &bytes, SendFlags::empty())?;
        let mut answer = [0_u8; 4096];
        loop {
            let (read, _) = recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
            let word =
                |at: usize| answer[..read].get(at..at + 4).map_or([0; 4], |word| word.try_into().unwrap_or([0; 4]));
            let kind = u16::from_ne_bytes([word(4)[0], word(4)[1]]);
            let is_ours = u32::from_ne_bytes(word(8)) == self.sequence;
            match i32::from_ne_bytes(word(HEADER_BYTES)) {
                _ if !is_ours || i32::from(kind) != libc::NLMSG_ERROR => {}
                0 => return Ok(()),
                error => return Err(io::Error::from_raw_os_error(-error)),
            }
        }
    }
}

/// The flags of a request that creates an object which must not exist yet.
const NEW: i32 = libc::NLM_F_CREATE | libc::NLM_F_EXCL;

/// Encodes a `struct ifinfomsg`, the kernel's header of a message about an interface. `change` selects the interface's
/// flags that change, and `flags` has their new values.
fn interface(index: u32, flags: i32, change: i32) -> Vec<u8> {
    let words = [0, index, flags.cast_unsigned(), change.cast_unsigned()];
    words.into_iter().flat_map(u32::to_ne_bytes).collect()
}

/// Encodes a `struct rtmsg`, the kernel's header of a message about a route.
fn route(family: u8, prefix_bits: u8, table: u8, kind: u8, scope: u8) -> Vec<u8> {
    vec![family, prefix_bits, 0, 0, table, libc::RTPROT_STATIC, scope, kind, 0, 0, 0, 0]
}

fn parts(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

/// A netlink message that is being built.
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Begins a message. Its length and sequence number are written when it is sent.
    fn new(kind: u16, flags: i32, header: &[u8]) -> Self {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Self { bytes }.bytes(header)
    }

    /// Appends bytes, padded to a multiple of four as netlink requires.
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    fn attribute(self, kind: u16, value: &[u8]) -> Self {
        let length = (4 + value.len()) as u16;
        self.bytes(&[length.to_ne_bytes(), kind.to_ne_bytes()].concat()).bytes(value)
    }

    fn number(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    fn string(self, kind: u16, value: &str) -> Self {
        self.attribute(kind, &[value.as_bytes(), &[0]].concat())
    }

    fn nested(self, kind: u16, inside: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        let mut whole = inside(self.attribute(kind, &[]));
        let length = (whole.bytes.len() - start) as u16;
        whole.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        whole
    }
}
