//! The Ethernet frames of an interface, as a program reads and writes them: packet(7). Linux only.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::net::{AddressFamily, Protocol, SocketType};

use crate::namespace::Namespace;

/// What is before each packet of a TUN and each frame of these sockets: `struct virtio_net_hdr`.
pub const VIRTIO_HEADER_BYTES: usize = 10;

/// Reads what the interface receives and sends what is written.
///
/// Each read and write, which don't wait, is one frame after a header of [`VIRTIO_HEADER_BYTES`]; frames may be as
/// large as 64 KiB, to be cut, where the other end of the pair leaves that to its interface. What nobody reads in time
/// is lost: [`take_dropped`] counts it.
///
/// # Errors
/// As the kernel says.
pub fn open(namespace: &Namespace, index: u32) -> io::Result<OwnedFd> {
    let socket = namespace.socket(AddressFamily::PACKET, SocketType::RAW, None::<Protocol>)?;
    fcntl_setfl(&socket, OFlags::NONBLOCK)?;
    set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
    // Without a queue, which for up to a second after the other end of a pair came up drops what it is given.
    set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    // As much as can be had: above the limit for all only with root.
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES)?;
    let _ = set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES);
    // SAFETY: a structure for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index.cast_signed();
    let bytes = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads so many bytes of it.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) })?;
    Ok(socket)
}

const BUFFER_BYTES: c_int = 32 << 20;

/// How many frames were lost since this was asked last, because they were not read in time.
///
/// # Errors
/// As the kernel says.
pub fn take_dropped(socket: &OwnedFd) -> io::Result<u64> {
    let mut counts = [0_u32; 2]; // `struct tpacket_stats`: all, and those dropped
    let mut bytes = size_of_val(&counts) as libc::socklen_t;
    let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    // SAFETY: the kernel writes at most `bytes` to `counts`.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, counts.as_mut_ptr().cast(), &raw mut bytes) })?;
    Ok(counts[1].into())
}

fn set(socket: &OwnedFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let bytes = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel reads so many bytes of it.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), bytes) })
}

fn check(answer: c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
