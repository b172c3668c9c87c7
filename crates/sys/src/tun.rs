//! A network interface whose packets a program reads and writes: TUN. Linux only.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::OFlags;

use crate::namespace::Namespace;

/// Makes one in a namespace, and leaves it down. It is gone when the file is closed.
///
/// Each read and write, which don't wait, is one IP packet after a header of
/// [`VIRTIO_HEADER_BYTES`](crate::packet::VIRTIO_HEADER_BYTES). With offloads the kernel leaves checksums to whoever
/// reads, and hands out what TCP and UDP send as packets of up to 64 KiB, to be cut.
///
/// # Errors
/// As the kernel says: `ENOENT` where it has no TUN, `EACCES` where the user may not open `/dev/net/tun`.
pub fn create(namespace: &Namespace, name: &str, has_offloads: bool) -> io::Result<File> {
    let file = namespace.open(c"/dev/net/tun", OFlags::RDWR | OFlags::NONBLOCK)?;
    // SAFETY: a structure for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let letters = name.bytes().take(libc::IFNAMSIZ - 1);
    request.ifr_name.iter_mut().zip(letters).for_each(|(place, letter)| *place = letter.cast_signed() as libc::c_char);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    let check = |answer| if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: the kernel reads and writes the request.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    if has_offloads {
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let set = |offloads: libc::c_uint| {
            // SAFETY: the argument is a number.
            check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, offloads) })
        };
        // Before Linux 6.2 there is none for UDP.
        set(tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6).or_else(|_| set(tcp))?;
    }
    Ok(file)
}
