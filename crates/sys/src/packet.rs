//! Ethernet frames that a program reads from an interface and writes to it: packet(7). Linux only.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::net::{AddressFamily, Protocol, SocketType};

use crate::namespace::Namespace;
use crate::syscall::{check, set_socket_option};

/// Size in bytes of the header (`struct virtio_net_hdr`) before each packet of a TUN interface, and before each frame
/// of a socket from [`open`].
pub const VIRTIO_HEADER_BYTES: usize = 10;

/// Opens a socket that reads the frames that the interface receives and sends the frames that are written to it.
///
/// Each read or write transfers one frame after a header of [`VIRTIO_HEADER_BYTES`] bytes, without blocking. On a
/// virtual Ethernet device, frames have up to 64 KiB if the other device of the pair does not segment data before it
/// sends. Frames that are not read in time are lost: [`take_dropped`] counts them.
///
/// # Errors
/// The kernel's error.
pub fn open(namespace: &Namespace, index: u32) -> io::Result<OwnedFd> {
    let socket = namespace.socket(AddressFamily::PACKET, SocketType::RAW, None::<Protocol>)?;
    fcntl_setfl(&socket, OFlags::NONBLOCK)?;
    set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
    // Bypasses the queue, which drops frames for up to a second after the other end of a pair came up.
    set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    // Requests the largest buffer. Above the system-wide limit this works only with root.
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES)?;
    let _ = set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES);
    // SAFETY: zeros are valid for this structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index.cast_signed();
    let bytes = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads that many bytes of the address.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) })?;
    Ok(socket)
}

const BUFFER_BYTES: c_int = 32 << 20;

/// Returns the number of frames that were lost since the last call because they were not read in time.
///
/// # Errors
/// The kernel's error.
pub fn take_dropped(socket: &OwnedFd) -> io::Result<u64> {
    let mut counts = [0_u32; 2]; // `struct tpacket_stats`: the number of all packets, and of dropped ones
    let mut bytes = size_of_val(&counts) as libc::socklen_t;
    let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    // SAFETY: the kernel writes at most `bytes` to `counts`.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, counts.as_mut_ptr().cast(), &raw mut bytes) })?;
    Ok(counts[1].into())
}

fn set(socket: &OwnedFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    set_socket_option(socket, level, option, &value.to_ne_bytes())
}
