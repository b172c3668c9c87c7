use std::io::{Read, Write};

use ascertain_sys::namespace::Namespace;
use ascertain_sys::netlink::{Metrics, Netlink};
use ascertain_sys::testing::or_left_out;
use ascertain_sys::tun;
use proptest::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use super::*;

const ETHERNET: usize = 14;

/// The parameters of a frame that is sent.
#[derive(Clone, Debug)]
struct Sent {
    is_v4: bool,
    is_tcp: bool,
    link_header_bytes: usize,
    number: u16,
    sequence: u32,
    flags: u8,
    options: Vec<u8>,
    segment_bytes: usize,
    payload: Vec<u8>,
    /// Hop limit (IPv6) or TTL (IPv4).
    hops: u8,
}

impl Sent {
    fn protocol(&self) -> u8 {
        if self.is_tcp { TCP } else { UDP }
    }

    fn ip_header(&self, packets_before: usize, carried_bytes: usize) -> Vec<u8> {
        let carried = (carried_bytes as u16).to_be_bytes();
        if !self.is_v4 {
            let mut header = vec![0x60, 0, 0, 0, carried[0], carried[1], self.protocol(), self.hops];
            header.extend([0xfd; 4]);
            header.extend((0..28).map(|octet| octet * 7));
            return header;
        }
        let total = (20 + carried_bytes as u16).to_be_bytes();
        let number = self.number.wrapping_add(packets_before as u16).to_be_bytes();
        let mut header =
            vec![0x45, 0, total[0], total[1], number[0], number[1], 0x40, 0, self.hops, self.protocol(), 0, 0];
        header.extend([10, 1, 2, 3, 10, 255, 254, 253]);
        let sum = complete(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    fn transport_header(&self, sent_before: usize, carried_bytes: usize, flags: u8) -> Vec<u8> {
        let ports = [0xc3, 0x50, 0, 80];
        if !self.is_tcp {
            let length = (8 + carried_bytes as u16).to_be_bytes();
            return [&ports[..], &length, &[0, 0]].concat();
        }
        let sequence = self.sequence.wrapping_add(sent_before as u32).to_be_bytes();
        let words = (5 + self.options.len() / 4) as u8;
        let rest = [9, 8, 7, 6, words << 4, flags, 1, 2, 0, 0, 0, 0];
        [&ports[..], &sequence, &rest, &self.options].concat()
    }

    fn checksum_at(&self) -> usize {
        if self.is_tcp { 16 } else { 6 }
    }

    fn pseudo_header(&self, ip: &[u8], transport_bytes: usize) -> Vec<u8> {
        let addresses = if self.is_v4 { &ip[12..20] } else { &ip[8..40] };
        [addresses, &[0, self.protocol()], &(transport_bytes as u16).to_be_bytes()].concat()
    }

    /// Returns the uncut frame, in the form in which a device receives it from the kernel.
    fn frame(&self) -> Vec<u8> {
        let mut transport = self.transport_header(0, self.payload.len(), self.flags);
        let header_bytes = transport.len();
        let at = self.checksum_at();
        transport.extend(&self.payload);
        let ip = self.ip_header(0, transport.len());
        let partial = !complete(&self.pseudo_header(&ip, transport.len()));
        transport[at..at + 2].copy_from_slice(&partial.to_be_bytes());
        let kind = match (self.is_tcp, self.is_v4) {
            (true, true) => GSO_TCP_V4 | GSO_ECN,
            (true, false) => GSO_TCP_V6,
            (false, _) => GSO_UDP_SEGMENTS,
        };
        let start = self.link_header_bytes + ip.len();
        // The kernel's value for the length of the headers may be too large.
        let said_bytes = if self.number.is_multiple_of(2) { start + header_bytes } else { start + transport.len() };
        let halves = [said_bytes, self.segment_bytes, start, at].map(|half| (half as u16).to_ne_bytes());
        [&[NEEDS_CHECKSUM, kind][..], halves.as_flattened(), &vec![0xe; self.link_header_bytes], &ip, &transport]
            .concat()
    }

    /// Returns the packets into which the frame should be cut, each built from scratch with a full checksum.
    fn packets(&self) -> Vec<Vec<u8>> {
        let chunks: Vec<_> = self.payload.chunks(self.segment_bytes).collect();
        let packet = |(index, chunk): (usize, &&[u8])| {
            let mut flags = self.flags;
            if index > 0 {
                flags &= !TCP_CWR;
            }
            if index + 1 < chunks.len() {
                flags &= !TCP_FIN_PSH;
            }
            let mut transport = self.transport_header(index * self.segment_bytes, chunk.len(), flags);
            transport.extend(*chunk);
            let ip = self.ip_header(index, transport.len());
            let sum = complete(&[&self.pseudo_header(&ip, transport.len())[..], &transport].concat());
            // In UDP, 0 means that there is no checksum.
            let sum = if sum == 0 && !self.is_tcp { 0xffff } else { sum };
            let at = self.checksum_at();
            transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            [ip, transport].concat()
        };
        chunks.iter().enumerate().map(packet).collect()
    }
}

/// Computes the checksum of RFC 1071, word by word.
fn complete(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns the packet that a device would send for a frame of one segment, after it has completed the checksum.
fn sent_by_a_device(frame: &[u8], link_header_bytes: usize) -> Vec<u8> {
    assert_eq!((frame[0], frame[1], &frame[4..6]), (NEEDS_CHECKSUM, 0, &[0, 0][..]));
    let half = |at: usize| usize::from(u16::from_ne_bytes([frame[at], frame[at + 1]]));
    let mut packet = frame[VIRTIO_HEADER_BYTES..].to_vec();
    assert!(half(2) <= packet.len());
    let sum = complete(&packet[half(6)..]);
    let sum = if sum == 0 && half(8) == 6 { 0xffff } else { sum };
    packet[half(6) + half(8)..][..2].copy_from_slice(&sum.to_be_bytes());
    packet.split_off(link_header_bytes)
}

fn sent() -> impl Strategy<Value = Sent> {
    let kinds = (any::<bool>(), any::<bool>(), prop::sample::select(vec![0, ETHERNET]));
    let numbers = (any::<u16>(), any::<u32>(), any::<u8>(), 0..=10_usize, 1..1500_usize, 2..8000_usize);
    (kinds, numbers, any::<u64>()).prop_map(
        |(kinds, (number, sequence, flags, options, segment_bytes, bytes), seed)| {
            let (is_v4, is_tcp, link_header_bytes) = kinds;
            let options = vec![1; 4 * options];
            let payload = (0..bytes as u64).map(|index| (seed.wrapping_mul(index | 1) >> 56) as u8).collect();
            let segment_bytes = segment_bytes.min(bytes - 1);
            Sent {
                is_v4,
                is_tcp,
                link_header_bytes,
                number,
                sequence,
                flags,
                options,
                segment_bytes,
                payload,
                hops: 64,
            }
        },
    )
}

proptest! {
    #[test]
    fn each_segment_is_the_packet_that_it_should_be(sent in sent()) {
        let bytes = sent.frame();
        let frame = Frame::new(&bytes, sent.link_header_bytes).unwrap();
        let packets = sent.packets();
        prop_assert_eq!(frame.segments(), packets.len());
        for (index, packet) in packets.iter().enumerate() {
            prop_assert_eq!(frame.segment_bytes(index), packet.len());
            let piece = frame.piece(index..index + 1);
            prop_assert_eq!(&sent_by_a_device(&piece, sent.link_header_bytes), packet);
            prop_assert_eq!(Frame::new(&piece, sent.link_header_bytes).unwrap().flow(), frame.flow());
        }
    }

    #[test]
    fn pieces_of_several_are_cut_into_the_same(
        sent in sent(),
        at in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let bytes = sent.frame();
        let frame = Frame::new(&bytes, sent.link_header_bytes).unwrap();
        let count = frame.segments();
        let (one, other) = (at.0.index(count + 1), at.1.index(count + 1));
        let bounds = [0, one.min(other), one.max(other), count];
        let mut again = Vec::new();
        for range in bounds.windows(2).filter(|range| range[0] < range[1]) {
            let piece = frame.piece(range[0]..range[1]);
            let piece = Frame::new(&piece, sent.link_header_bytes).unwrap();
            prop_assert_eq!(piece.segments(), range[1] - range[0]);
            if piece.segments() == 1 {
                again.push(piece.bytes.to_vec());
            } else {
                again.extend((0..piece.segments()).map(|index| piece.piece(index..index + 1)));
            }
        }
        let once: Vec<_> = again.iter().map(|piece| sent_by_a_device(piece, sent.link_header_bytes)).collect();
        prop_assert_eq!(once, sent.packets());
    }

    #[test]
    fn no_frame_is_too_strange(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        sent in sent(),
        link in 0..20_usize,
    ) {
        let whole = sent.frame();
        let strange = [&whole[..bytes.len().min(60).min(whole.len())], &bytes].concat();
        for bytes in [&bytes, &strange] {
            let Some(frame) = Frame::new(bytes, link) else { continue };
            let _ = frame.flow();
            for index in 0..frame.segments() {
                prop_assert!(frame.segment_bytes(index) <= bytes.len());
                let _ = frame.piece(index..index + 1);
            }
        }
    }
}

#[test]
fn a_flow_is_told_from_a_packet() {
    let sent = Sent {
        is_v4: true,
        is_tcp: true,
        link_header_bytes: ETHERNET,
        number: 0,
        sequence: 0,
        flags: 0x10,
        options: Vec::new(),
        segment_bytes: 10,
        payload: vec![7; 20],
        hops: 64,
    };
    let bytes = sent.frame();
    let flow = Frame::new(&bytes, ETHERNET).unwrap().flow();
    assert_eq!(flow.source, "10.1.2.3:50000".parse().unwrap());
    assert_eq!(flow.destination, "10.255.254.253:80".parse().unwrap());
}

/// A router in the kernel between two TUNs. It gets uncut frames from the first TUN, and sends segments to the second.
struct Router {
    into: std::fs::File,
    out: std::fs::File,
}

impl Router {
    fn new() -> std::io::Result<Self> {
        let namespace = Namespace::new()?;
        let mut netlink = Netlink::new(&namespace)?;
        let [into, out] = [("into", true), ("out", false)].map(|(name, has_offloads)| {
            let file = tun::create(&namespace, name, has_offloads)?;
            let index = netlink.index(name)?;
            netlink.without_link_local(index)?;
            netlink.set_up(index, 9000, 1000)?;
            std::io::Result::Ok((file, index))
        });
        let ((into, _), (out, index)) = (into?, out?);
        for address in ["198.18.0.1", "fd00::1"].map(|address| address.parse::<IpAddr>().unwrap()) {
            netlink.add_address(index, address)?;
            netlink.add_default_route(index, address, &Metrics::default())?;
        }
        let settings = [(c"/proc/sys/net/ipv4/ip_forward", "1"), (c"/proc/sys/net/ipv6/conf/all/forwarding", "1")];
        let sources = [c"/proc/sys/net/ipv4/conf/all/rp_filter", c"/proc/sys/net/ipv4/conf/into/rp_filter"];
        for (path, value) in settings.into_iter().chain(sources.map(|path| (path, "0"))) {
            namespace.open(path, OFlags::WRONLY)?.write_all(value.as_bytes())?;
        }
        Ok(Self { into, out })
    }

    /// Returns the packets into which the kernel cuts a frame.
    fn cut(&mut self, frame: &[u8], count: usize) -> Vec<Vec<u8>> {
        self.into.write_all(frame).unwrap();
        let packet = |_| {
            let mut events = [PollFd::new(&self.out, PollFlags::IN)];
            poll(&mut events, Some(&Timespec { tv_sec: 60, tv_nsec: 0 })).unwrap();
            let mut packet = vec![0; 66_000];
            let bytes = self.out.read(&mut packet).unwrap();
            packet.truncate(bytes);
            assert_eq!(packet[..2], [0, 0], "it was not cut, or has no checksum");
            packet.split_off(VIRTIO_HEADER_BYTES)
        };
        (0..count).map(packet).collect()
    }
}

/// Checks that the kernel cuts a frame into the same packets that [`Sent::packets`] returns.
#[test]
fn the_kernel_cuts_it_into_the_same() {
    let Some(router) = or_left_out(Router::new().map_err(|error| format!("TUN: {error}"))) else { return };
    let router = std::cell::RefCell::new(router);
    let mut runner = proptest::test_runner::TestRunner::default();
    let result = runner.run(&sent(), |sent| {
        // The kernel cuts a frame into at most 128 UDP datagrams, so the segments must not be too small.
        let segment_bytes = sent.segment_bytes.max(sent.payload.len().div_ceil(100));
        let sent = Sent { link_header_bytes: 0, segment_bytes, ..sent };
        let packets = Sent { hops: 63, ..sent.clone() }.packets();
        prop_assert_eq!(router.borrow_mut().cut(&sent.frame(), packets.len()), packets);
        Ok(())
    });
    result.unwrap();
}
