//! A network interface whose packets a program reads and writes: TUN. Linux only.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::OFlags;

use crate::namespace::Namespace;
use crate::syscall::check;

/// Creates a TUN interface in a namespace, and leaves it down. The interface is removed when the file is closed.
///
/// Each read or write transfers one IP packet after a header of
/// [`VIRTIO_HEADER_BYTES`](crate::packet::VIRTIO_HEADER_BYTES) bytes, without blocking. With offloads, the kernel
/// leaves checksums to the reader. It also delivers data of TCP and UDP in packets of up to 64 KiB, which the reader
/// has to segment.
///
/// # Errors
/// The kernel's error: `ENOENT` if it does not support TUN, `EACCES` if the user may not open `/dev/net/tun`.
pub fn create(namespace: &Namespace, name: &str, has_offloads: bool) -> io::Result<File> {
    let file = namespace.open(c"/dev/net/tun", OFlags::RDWR | OFlags::NONBLOCK)?;
    // SAFETY: zeros are valid for this structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let letters = name.bytes().take(libc::IFNAMSIZ - 1);
    request.ifr_name.iter_mut().zip(letters).for_each(|(place, letter)| *place = letter.cast_signed() as libc::c_char);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: the kernel reads and writes the request.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    if has_offloads {
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let set = |offloads: libc::c_uint| {
            // SAFETY: the argument is a number.
            check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, offloads) })
        };
        // Before Linux 6.2 there is no offload for UDP.
        set(tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6).or_else(|_| set(tcp))?;
    }
    Ok(file)
}
