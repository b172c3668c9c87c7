//! The kernel's data about a TCP connection (`TCP_INFO`), and kernel TLS on a connection. Linux only.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::sockopt::tcp_congestion;

use crate::syscall::{check, set_socket_option};

/// The state of a connection at one moment, according to the kernel. A field that an older kernel does not report is
/// `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The congestion control algorithm, such as `cubic` or `bbr`.
    pub congestion_control: String,
    /// The payload of a full segment that we send, without headers and options, in bytes.
    pub mss_bytes: u32,
    /// The payload of the segments that we receive, as estimated by the kernel, in bytes.
    pub received_mss_bytes: u32,
    /// The maximum segment size that we advertised to the other side, in bytes.
    pub advertised_mss_bytes: u32,
    /// The largest packet on the path, including headers, in bytes.
    pub path_mtu_bytes: u32,
    /// `true` if each segment has a timestamp, which takes 12 bytes.
    pub has_timestamps: bool,
    /// `true` if the other side acknowledges data that arrived after a gap.
    pub has_selective_acknowledgements: bool,
    /// The congestion window: how many segments may be in flight. For a new connection this is the initial window.
    pub window_segments: u32,
    /// The slow-start threshold: a window above this size grows slowly. `None` before the first loss.
    pub slow_start_threshold_segments: Option<u32>,
    /// The smoothed round-trip time, in microseconds.
    pub rtt_us: u32,
    /// The variation of the round-trip time, in microseconds.
    pub rtt_variation_us: u32,
    /// The shortest recent round-trip time, in microseconds.
    pub rtt_min_us: Option<u32>,
    /// The time until unacknowledged data is sent again, in microseconds.
    pub retransmission_timeout_us: u32,
    /// The number of segments that were sent and still wait for their acknowledgement.
    pub unacknowledged_segments: u32,
    /// The number of segments that were sent again since the connection was opened.
    pub retransmitted_segments: u32,
    /// The number of segments with data that were sent, including retransmissions.
    pub sent_segments: Option<u32>,
    /// The number of segments with data that were received. If the data arrived in pieces larger than segments, for
    /// example from an emulator without segmentation, this counts the pieces.
    pub received_segments: Option<u32>,
    /// The number of bytes that the other side has acknowledged.
    pub acknowledged_bytes: Option<u64>,
    /// The number of bytes that were received from the other side.
    pub received_bytes: Option<u64>,
    /// The recent rate at which the other side acknowledged data.
    pub delivery_rate_bytes_per_s: Option<u64>,
    /// The maximum rate at which the kernel sends data. `None` if there is no limit, or if the kernel does not report
    /// it.
    pub pacing_rate_bytes_per_s: Option<u64>,
    /// The receive window of the other side: the number of bytes that it has room to receive.
    pub peer_window_bytes: Option<u32>,
    /// The time since data was last sent, in milliseconds.
    pub idle_ms: u32,
}

/// Returns the kernel's data about the connection.
///
/// # Errors
/// The kernel's error: `ENOPROTOOPT` or `EOPNOTSUPP` for a socket that is not TCP.
pub fn info(socket: impl AsFd) -> io::Result<Info> {
    let socket = socket.as_fd();
    let mut bytes = [0_u8; 512];
    let mut length = bytes.len() as libc::socklen_t;
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: both pointers are to local variables, and the length is that of the buffer.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, bytes.as_mut_ptr().cast(), &raw mut length) })?;
    let raw = RawInfo(&bytes[..bytes.len().min(length as usize)]);
    let too_old = || {
        io::Error::new(
            io::ErrorKind::Unsupported,
            "the TCP_INFO of this kernel lacks required fields; use a newer kernel",
        )
    };
    raw.info(tcp_congestion(socket)?).ok_or_else(too_old)
}

/// Puts the kernel's TLS on top of a connection (`TCP_ULP`). TLS has no effect until [`give_tls_key`] sets a key. If
/// the caller is root, the kernel loads its TLS module, if the module exists.
///
/// # Errors
/// The kernel's error. `ENOENT` means that the kernel does not know the name of the protocol, because TLS is not loaded
/// or was not compiled. [`above`] lists the names that the kernel knows.
pub fn put_tls_above(socket: impl AsFd) -> io::Result<()> {
    set_socket_option(socket, libc::IPPROTO_TCP, libc::TCP_ULP, b"tls")
}

/// A direction of a connection, from the point of view of this program's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Data that this side sends.
    Sent,
    /// Data that this side receives.
    Received,
}

/// The ciphers of TLS 1.3 that the kernel supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsCipher {
    /// AES-128 in GCM mode, with a key of 16 bytes.
    Aes128Gcm,
    /// AES-256 in GCM mode, with a key of 32 bytes.
    Aes256Gcm,
    /// ChaCha20-Poly1305 with a key of 32 bytes.
    ChaCha20Poly1305,
}

/// Makes the kernel encrypt sent data or decrypt received data with TLS 1.3, starting with the record whose sequence
/// number is `record`. Call [`put_tls_above`] first. The program then writes and reads plain bytes.
///
/// # Errors
/// The kernel's error: `EINVAL` for a key of the wrong length and for a cipher that it does not support.
pub fn give_tls_key(
    socket: impl AsFd,
    direction: Direction,
    cipher: TlsCipher,
    key: &[u8],
    iv: [u8; 12],
    record: u64,
) -> io::Result<()> {
    const SOL_TLS: libc::c_int = 282;
    const TLS_1_3: u16 = 0x0304;
    // `TLS_TX`, `TLS_RX` and `TLS_CIPHER_…` of `linux/tls.h`. For AES, the kernel calls the first bytes of the IV the
    // salt, and expects the salt after the key.
    let name = if direction == Direction::Sent { 1 } else { 2 };
    let (number, salt_bytes) = match cipher {
        TlsCipher::Aes128Gcm => (51_u16, 4),
        TlsCipher::Aes256Gcm => (52, 4),
        TlsCipher::ChaCha20Poly1305 => (54, 0),
    };
    let (salt, iv) = iv.split_at(salt_bytes);
    let [version, number, record] = [&TLS_1_3.to_ne_bytes()[..], &number.to_ne_bytes(), &record.to_be_bytes()];
    set_socket_option(socket, SOL_TLS, name, &[version, number, iv, key, salt, record].concat())
}

/// Returns the names of the protocols that the kernel can put on top of a connection and that are loaded.
///
/// # Errors
/// If the kernel does not have the list: before Linux 4.13, and in any network namespace except the initial one, for
/// example in containers.
pub fn above() -> io::Result<String> {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp").map(|names| names.trim().into())
}

/// The kernel's reply (`struct tcp_info` in `linux/tcp.h`). Its fields have kept their offsets since Linux 2.6, and
/// newer kernels append fields, so a newer kernel returns a longer reply.
struct RawInfo<'a>(&'a [u8]);

impl RawInfo<'_> {
    fn u8(&self, offset: usize) -> Option<u8> {
        self.0.get(offset).copied()
    }

    fn u32(&self, offset: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(*self.0.get(offset..)?.first_chunk()?))
    }

    fn u64(&self, offset: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(*self.0.get(offset..)?.first_chunk()?))
    }

    fn info(&self, congestion_control: String) -> Option<Info> {
        const TIMESTAMPS: u8 = 1;
        const SELECTIVE: u8 = 2;
        const NO_THRESHOLD: u32 = i32::MAX.cast_unsigned();
        let options = self.u8(5)?;
        Some(Info {
            congestion_control,
            mss_bytes: self.u32(16)?,
            received_mss_bytes: self.u32(20)?,
            advertised_mss_bytes: self.u32(84)?,
            path_mtu_bytes: self.u32(60)?,
            has_timestamps: options & TIMESTAMPS != 0,
            has_selective_acknowledgements: options & SELECTIVE != 0,
            window_segments: self.u32(80)?,
            slow_start_threshold_segments: Some(self.u32(76)?).filter(|segments| *segments < NO_THRESHOLD),
            rtt_us: self.u32(68)?,
            rtt_variation_us: self.u32(72)?,
            rtt_min_us: self.u32(148).filter(|us| *us != u32::MAX),
            retransmission_timeout_us: self.u32(8)?,
            unacknowledged_segments: self.u32(24)?,
            retransmitted_segments: self.u32(100)?,
            sent_segments: self.u32(156),
            received_segments: self.u32(152),
            acknowledged_bytes: self.u64(120),
            received_bytes: self.u64(128),
            delivery_rate_bytes_per_s: self.u64(160),
            pacing_rate_bytes_per_s: self.u64(104).filter(|rate| *rate != u64::MAX),
            peer_window_bytes: self.u32(228),
            idle_ms: self.u32(44)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;
    use crate::testing::or_left_out;

    #[test]
    fn a_connection_is_described() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[0; 1_000]).unwrap();
        far.read_exact(&mut [0; 1_000]).unwrap();
        far.write_all(&[0; 10]).unwrap();
        near.read_exact(&mut [0; 10]).unwrap();

        let (sent, received) = (info(&near).unwrap(), info(&far).unwrap());
        let kernel = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        assert_eq!(sent.congestion_control, kernel.trim());
        // The packets of the loopback interface have 65,536 bytes, of which headers take 40 and timestamps 12.
        let options_bytes = if sent.has_timestamps { 12 } else { 0 };
        assert!(sent.path_mtu_bytes > 1_000 && sent.mss_bytes <= sent.path_mtu_bytes - 40 - options_bytes);
        assert_eq!(sent.has_timestamps, received.has_timestamps);
        assert!(sent.window_segments > 0 && sent.advertised_mss_bytes > 0);
        assert!(sent.acknowledged_bytes.is_none_or(|bytes| bytes >= 1_000));
        assert!(received.received_bytes.is_none_or(|bytes| bytes == 1_000));
        assert!(sent.sent_segments.is_none_or(|segments| segments >= 1));
        assert_eq!(received.received_segments, received.received_segments.and(Some(1)));
        assert_eq!(sent.received_segments, sent.received_segments.and(Some(1)));
        assert!(sent.rtt_us > 0 && sent.retransmission_timeout_us >= sent.rtt_us);
    }

    #[test]
    fn the_kernel_has_tls_or_says_so() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // The networks of containers do not have the list.
        let Some(names) = or_left_out(above()) else { return };
        let put = put_tls_above(&near);
        let has_tls = names.split(' ').any(|name| name == "tls");
        match put {
            Ok(()) => assert!(has_tls, "{names}"),
            Err(error) => assert!(!has_tls && error.raw_os_error() == Some(libc::ENOENT), "{names}: {error}"),
        }
        assert!(put_tls_above(UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }

    #[test]
    fn other_sockets_are_refused_and_short_answers_understood() {
        assert!(info(UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
        let bytes: Vec<u8> = (0..232).collect();
        let name = || "reno".to_string();
        assert_eq!(RawInfo(&bytes[..103]).info(name()), None);
        let old = RawInfo(&bytes[..104]).info(name()).unwrap();
        assert_eq!(old.pacing_rate_bytes_per_s, None);
        assert_eq!(old.mss_bytes, u32::from_ne_bytes([16, 17, 18, 19]));
        let new = RawInfo(&bytes).info(name()).unwrap();
        assert_eq!(new.peer_window_bytes, Some(u32::from_ne_bytes([228, 229, 230, 231])));
    }
}
