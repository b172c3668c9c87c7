//! Receives many datagrams per call, each with its arrival time according to the kernel. So the arrival times are exact
//! even if the program reads the socket rarely.

use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Maximum number of datagrams that one call of [`Inbox::receive`] reads.
pub const AT_ONCE: usize = 32;

/// A buffer for received datagrams.
pub struct Inbox {
    bytes: Vec<u8>,
    bytes_each: usize,
}

impl Inbox {
    /// Creates a buffer for datagrams of at most `bytes_each` bytes. Longer datagrams are cut.
    #[must_use]
    pub fn new(bytes_each: usize) -> Self {
        Self { bytes: vec![0; AT_ONCE * bytes_each], bytes_each }
    }

    /// Receives the pending datagrams of a socket and returns their number. If the number is below [`AT_ONCE`], the
    /// socket is empty. Calls `each` with the arrival time, the sender and the bytes of each datagram. The arrival time
    /// is on the clock of [`now_ns`](crate::clock::now_ns). If the kernel did not [record arrival times](note_times),
    /// the time of this call is used instead. On Linux this does not block; on other systems the socket must be
    /// non-blocking.
    ///
    /// # Errors
    /// The kernel's error, which may be caused by a datagram that this socket sent earlier. If there are no datagrams,
    /// this returns 0.
    pub fn receive(&mut self, socket: &UdpSocket, mut each: impl FnMut(u64, SocketAddr, &[u8])) -> io::Result<usize> {
        receive(self, socket, now, &mut each)
    }
}

/// Reads two clocks, and returns the times of both: first that of [`unix_ns`](crate::clock::unix_ns), which the kernel
/// uses, then that of [`now_ns`](crate::clock::now_ns). The two times are used to convert the kernel's time of a
/// datagram to the second clock. With this order, a delay between the two readings makes the converted time too late,
/// never too early.
fn now() -> (u64, u64) {
    (crate::clock::unix_ns(), crate::clock::now_ns())
}

/// A function that is called for each datagram with its time, its sender and its bytes.
type Each<'a> = &'a mut dyn FnMut(u64, SocketAddr, &[u8]);

#[cfg(target_os = "linux")]
mod here {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::os::fd::AsRawFd;
    use std::{array, ptr};

    use super::{AT_ONCE, Each, Inbox, SocketAddr, UdpSocket, io};
    use crate::syscall::set_socket_option;

    /// Size of the control buffer for the timestamp of one datagram, in 8-byte words. Words give the buffer the
    /// alignment of the kernel's header.
    const CONTROL_WORDS: usize = 8;

    /// Makes the kernel record the time at which each datagram arrives.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn note_times(socket: &UdpSocket) -> io::Result<()> {
        let on: libc::c_int = 1;
        set_socket_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on.to_ne_bytes())
    }

    pub fn receive(
        inbox: &mut Inbox,
        socket: &UdpSocket,
        now: impl FnOnce() -> (u64, u64),
        each: Each,
    ) -> io::Result<usize> {
        // SAFETY: zeros are valid for these structures.
        let mut addresses: [libc::sockaddr_storage; AT_ONCE] = unsafe { std::mem::zeroed() };
        let mut controls = [[0_u64; CONTROL_WORDS]; AT_ONCE];
        let mut parts: [libc::iovec; AT_ONCE] =
            array::from_fn(|_| libc::iovec { iov_base: ptr::null_mut(), iov_len: inbox.bytes_each });
        for (part, bytes) in parts.iter_mut().zip(inbox.bytes.chunks_exact_mut(inbox.bytes_each.max(1))) {
            part.iov_base = bytes.as_mut_ptr().cast();
        }
        // SAFETY: zeros are valid for these structures; pointers may be null if their length is zero.
        let mut headers: [libc::mmsghdr; AT_ONCE] = unsafe { std::mem::zeroed() };
        for (number, header) in headers.iter_mut().enumerate() {
            header.msg_hdr.msg_name = (&raw mut addresses[number]).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_hdr.msg_iov = &raw mut parts[number];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = controls[number].as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = size_of_val(&controls[number]) as _;
        }
        let (flags, no_limit) = (libc::MSG_DONTWAIT, ptr::null_mut());
        // SAFETY: each header points to an address, a buffer for the bytes and a control buffer of the given lengths,
        // which all live until the end of this function.
        let count =
            unsafe { libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), AT_ONCE as u32, flags as _, no_limit) };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(0) } else { Err(error) };
        };
        // Computes the age of a datagram on the clock of the kernel, and subtracts the age from the time on the clock
        // of `now_ns`.
        let (now_unix_ns, now_ns) = now();
        let received = headers.iter().zip(&addresses).zip(inbox.bytes.chunks_exact(inbox.bytes_each.max(1)));
        for ((header, address), bytes) in received.take(count) {
            let Some(from) = address_of(address) else { continue };
            let ago_ns = time_ns(&header.msg_hdr).map_or(0, |at_ns| now_unix_ns.saturating_sub(at_ns));
            let length = (header.msg_len as usize).min(bytes.len());
            each(now_ns.saturating_sub(ago_ns), from, &bytes[..length]);
        }
        Ok(count)
    }

    fn address_of(address: &libc::sockaddr_storage) -> Option<SocketAddr> {
        match libc::c_int::from(address.ss_family) {
            libc::AF_INET => {
                // SAFETY: an address of this family is a `sockaddr_in`, which is neither longer nor more strictly
                // aligned than `sockaddr_storage`.
                let address = unsafe { &*ptr::from_ref(address).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                Some((ip, u16::from_be(address.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: an address of this family is a `sockaddr_in6`, which is neither longer nor more strictly
                // aligned than `sockaddr_storage`.
                let address = unsafe { &*ptr::from_ref(address).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                let port = u16::from_be(address.sin6_port);
                Some(std::net::SocketAddrV6::new(ip, port, address.sin6_flowinfo, address.sin6_scope_id).into())
            }
            _ => None,
        }
    }

    /// Returns the time at which the kernel received a datagram, in nanoseconds since 1970.
    fn time_ns(header: &libc::msghdr) -> Option<u64> {
        // SAFETY: the kernel has written the control buffer, which the header points to, and the length of that buffer.
        let control = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
        if (control.cmsg_level, control.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            return None;
        }
        // SAFETY: a control message of this type is a `timespec` after its header.
        let time = unsafe { libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned() };
        Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

#[cfg(target_os = "linux")]
pub use here::note_times;
#[cfg(target_os = "linux")]
use here::receive;

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{AT_ONCE, Each, Inbox, SocketAddr, UdpSocket, io};

    /// Does nothing, because this module records arrival times only on Linux. The time of a datagram is the time of the
    /// call that reads it.
    ///
    /// # Errors
    /// This never fails.
    pub fn note_times(_: &UdpSocket) -> io::Result<()> {
        Ok(())
    }

    pub fn receive(
        inbox: &mut Inbox,
        socket: &UdpSocket,
        now: impl Fn() -> (u64, u64),
        each: Each,
    ) -> io::Result<usize> {
        for count in 0..AT_ONCE {
            match socket.recv_from(&mut inbox.bytes[..inbox.bytes_each]) {
                Ok((length, from)) => each(now().1, from, &inbox.bytes[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(count),
                Err(error) => return Err(error),
            }
        }
        Ok(AT_ONCE)
    }
}

#[cfg(not(target_os = "linux"))]
pub use elsewhere::note_times;
#[cfg(not(target_os = "linux"))]
use elsewhere::receive;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::clock::{now_ns, unix_ns};

    fn all(inbox: &mut Inbox, socket: &UdpSocket) -> Vec<(u64, SocketAddr, Vec<u8>)> {
        let mut all = Vec::new();
        inbox.receive(socket, |at_ns, from, bytes| all.push((at_ns, from, bytes.to_vec()))).unwrap();
        all
    }

    fn pair(ip: IpAddr) -> Option<[UdpSocket; 2]> {
        let pair = UdpSocket::bind((ip, 0)).and_then(|one| Ok([one, UdpSocket::bind((ip, 0))?]));
        let pair = crate::testing::or_left_out(pair)?;
        pair[0].set_nonblocking(true).unwrap();
        note_times(&pair[0]).unwrap();
        Some(pair)
    }

    #[test]
    fn each_datagram_has_its_sender_and_what_there_is_room_for() {
        for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let Some([socket, other]) = pair(ip) else { continue };
            let (to, from) = (socket.local_addr().unwrap(), other.local_addr().unwrap());
            let mut inbox = Inbox::new(4);
            assert_eq!(all(&mut inbox, &socket), []);
            let before_ns = now_ns();
            for number in 0..AT_ONCE as u8 + 3 {
                other.send_to(&[number; 4], to).unwrap();
            }
            other.send_to(b"longer", to).unwrap();
            let mut received = Vec::new();
            while received.len() < AT_ONCE + 4 {
                received.extend(all(&mut inbox, &socket));
            }
            let expected = (0..AT_ONCE as u8 + 3).map(|number| vec![number; 4]).chain([b"long".to_vec()]);
            for ((at_ns, sender, bytes), expected) in received.into_iter().zip(expected) {
                assert_eq!((sender, bytes), (from, expected));
                // The rates of the two clocks may differ a little.
                assert!(at_ns + 1_000_000 > before_ns && at_ns <= now_ns());
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn its_time_is_when_it_came_and_not_when_it_was_looked_for() {
        let Some([socket, other]) = pair(Ipv4Addr::LOCALHOST.into()) else { return };
        let before_ns = unix_ns();
        other.send_to(b"a", socket.local_addr().unwrap()).unwrap();
        crate::testing::wait_until("a datagram comes", || socket.peek(&mut [0; 4]).is_ok());
        let after_ns = unix_ns();
        // The datagram is read 7 seconds after it arrived, when the other clock shows 100 seconds.
        let (later_ns, now_ns) = (after_ns + 7_000_000_000, 100_000_000_000);
        let mut at_ns = 0;
        receive(&mut Inbox::new(4), &socket, || (later_ns, now_ns), &mut |ns, _, _| at_ns = ns).unwrap();
        let latest_ns = now_ns - 7_000_000_000;
        assert!((latest_ns - (after_ns - before_ns)..=latest_ns).contains(&at_ns), "{at_ns}");
    }
}
