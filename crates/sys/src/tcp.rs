//! What the kernel knows of a TCP connection (`TCP_INFO`), and what it can do with one. Linux only.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::sockopt::tcp_congestion;

/// A connection as the kernel sees it at a moment. What an older kernel does not say is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The algorithm: `cubic`, `bbr`.
    pub congestion_control: String,
    /// What a full segment that we send carries, without headers and options.
    pub mss_bytes: u32,
    /// What the segments that we receive carry, as far as the kernel could tell.
    pub received_mss_bytes: u32,
    /// The largest segment that the other side was told to send.
    pub advertised_mss_bytes: u32,
    /// The largest packet on the way, headers and all.
    pub path_mtu_bytes: u32,
    /// Whether each segment has a timestamp, at the cost of 12 bytes.
    pub has_timestamps: bool,
    /// Whether the other side says what arrived beyond a gap.
    pub has_selective_acknowledgements: bool,
    /// How much may be under way. Of a new connection it is the initial window.
    pub window_segments: u32,
    /// Where the window grows slowly from; `None` before anything was lost.
    pub slow_start_threshold_segments: Option<u32>,
    /// The round trip, smoothed.
    pub rtt_us: u32,
    /// How much it varies.
    pub rtt_variation_us: u32,
    /// The shortest one, of late.
    pub rtt_min_us: Option<u32>,
    /// When what is not acknowledged is sent again.
    pub retransmission_timeout_us: u32,
    /// What was sent and is not acknowledged yet.
    pub unacknowledged_segments: u32,
    /// What was sent again, since the connection was made.
    pub retransmitted_segments: u32,
    /// What was sent with data in it, again or not.
    pub sent_segments: Option<u32>,
    /// What was received with data in it. Of what came in larger pieces than segments, as from an emulator that does
    /// without cutting, the pieces count.
    pub received_segments: Option<u32>,
    /// What the other side has acknowledged.
    pub acknowledged_bytes: Option<u64>,
    /// What it has sent.
    pub received_bytes: Option<u64>,
    /// How fast it acknowledged of late.
    pub delivery_rate_bytes_per_s: Option<u64>,
    /// How fast the kernel sends at the most; `None` also if there is no limit.
    pub pacing_rate_bytes_per_s: Option<u64>,
    /// How much more the other side can take.
    pub peer_window_bytes: Option<u32>,
    /// How long it is since data was sent.
    pub idle_ms: u32,
}

/// What the kernel knows of the connection.
///
/// # Errors
/// As the kernel says: `ENOPROTOOPT` or `EOPNOTSUPP` for a socket of another kind.
pub fn info(socket: impl AsFd) -> io::Result<Info> {
    let socket = socket.as_fd();
    let mut bytes = [0_u8; 512];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: both pointers are to locals, and the length is that of the buffer.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let said = Said(&bytes[..bytes.len().min(length as usize)]);
    let too_old = || io::Error::new(io::ErrorKind::Unsupported, "this kernel says too little of a connection");
    said.info(tcp_congestion(socket)?).ok_or_else(too_old)
}

/// Has the kernel put its own TLS above a connection (`TCP_ULP`), which needs [keys](give_tls_key) before it does
/// anything. Root has the module loaded by that, where there is one.
///
/// # Errors
/// As the kernel says. `ENOENT` says that it has none, but it says so to any name: [`above`] lists those it knows.
pub fn put_tls_above(socket: impl AsFd) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_ULP, b"tls")
}

/// A direction of a connection, as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What it sends.
    Sent,
    /// What it receives.
    Received,
}

/// What TLS 1.3 encrypts with, and that the kernel can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsCipher {
    /// Its key has 16 bytes.
    Aes128Gcm,
    /// Its key has 32 bytes.
    Aes256Gcm,
    /// Its key has 32 bytes.
    ChaCha20Poly1305,
}

/// Has the kernel encrypt or decrypt by TLS 1.3 what is sent or received from the record of that number on, after
/// [`put_tls_above`]. A program then writes and reads plain bytes.
///
/// # Errors
/// As the kernel says: `EINVAL` for a key of another length and for a cipher that it does not know.
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
    // `TLS_TX`, `TLS_RX` and `TLS_CIPHER_…` of `linux/tls.h`. Of AES the first bytes of the IV, the salt, are last.
    let name = if direction == Direction::Sent { 1 } else { 2 };
    let (number, salt_bytes) = match cipher {
        TlsCipher::Aes128Gcm => (51_u16, 4),
        TlsCipher::Aes256Gcm => (52, 4),
        TlsCipher::ChaCha20Poly1305 => (54, 0),
    };
    let (salt, iv) = iv.split_at(salt_bytes);
    let [version, number, record] = [&TLS_1_3.to_ne_bytes()[..], &number.to_ne_bytes(), &record.to_be_bytes()];
    set(socket, SOL_TLS, name, &[version, number, iv, key, salt, record].concat())
}

fn set(socket: impl AsFd, level: libc::c_int, name: libc::c_int, value: &[u8]) -> io::Result<()> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: the kernel reads as many bytes as the slice has.
    let result = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What the kernel can put above a connection, as far as it is loaded.
///
/// # Errors
/// Where it does not say: before Linux 4.13, and in any network but the machine's first, as containers have.
pub fn above() -> io::Result<String> {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp").map(|names| names.trim().into())
}

/// The kernel's answer, whose fields have kept their places since Linux 2.6 while others were added behind them
/// (`struct tcp_info` in `linux/tcp.h`). It is as long as the kernel is new.
struct Said<'a>(&'a [u8]);

impl Said<'_> {
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
        // The loopback's packets are of 65,536 bytes, of which headers take 40 and timestamps 12.
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
        // Networks of containers do not have the list.
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
        assert_eq!(Said(&bytes[..103]).info(name()), None);
        let old = Said(&bytes[..104]).info(name()).unwrap();
        assert_eq!(old.pacing_rate_bytes_per_s, None);
        assert_eq!(old.mss_bytes, u32::from_ne_bytes([16, 17, 18, 19]));
        let new = Said(&bytes).info(name()).unwrap();
        assert_eq!(new.peer_window_bytes, Some(u32::from_ne_bytes([228, 229, 230, 231])));
    }
}
