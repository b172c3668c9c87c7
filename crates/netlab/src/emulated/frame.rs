//! A frame that was read from a device. The frame may have up to 64 KiB, because the kernel does not cut it into
//! segments but leaves this to the device.
//!
//! A frame begins with a `struct virtio_net_hdr`. An Ethernet header follows if the device has one, and then the
//! packet. The `virtio_net_hdr` describes how to cut the packet, and whether a checksum is still to be computed.
//!
//! Pieces of a frame are written to the other device in the same form. Each piece has the headers that the kernel would
//! have given it. The checksum of its payload is still to be computed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use ascertain_sys::packet::VIRTIO_HEADER_BYTES;

use crate::model::Flow;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP_SEGMENTS: u8 = 5;
/// Flag in the segmentation type of a TCP frame (`gso_type`). It means that the frame carries CWR (congestion window
/// reduced), which only its first segment may carry.
const GSO_ECN: u8 = 0x80;

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_FIN_PSH: u8 = 0x09;
const TCP_CWR: u8 = 0x80;

const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
/// Placeholder for the flow of a packet whose addresses are unknown, because it is not a whole IP packet. It is also
/// used if the model does not distinguish flows.
pub const NOBODYS: Flow = Flow { source: NOBODY, destination: NOBODY };

/// A frame that was read from a device.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    /// Offset of the IP packet in `bytes`.
    ip: usize,
    cut: Option<Cut>,
}

/// The offsets and sizes in a frame that are needed to cut it into segments.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Offset of the TCP or UDP header in the frame.
    transport: usize,
    payload: usize,
    segment_payload_bytes: usize,
    is_tcp: bool,
}

impl<'a> Frame<'a> {
    /// Parses a frame whose Ethernet header has `link_header_bytes` bytes; `None` if the frame is too short. A frame
    /// that cannot be cut counts as one segment.
    pub fn new(bytes: &'a [u8], link_header_bytes: usize) -> Option<Self> {
        let ip = VIRTIO_HEADER_BYTES + link_header_bytes;
        (bytes.len() > ip).then(|| Self { bytes, ip, cut: Cut::new(bytes, ip) })
    }

    /// Returns the number of segments in the frame.
    pub fn segments(&self) -> usize {
        let carried = |cut: Cut| (self.bytes.len() - cut.payload).div_ceil(cut.segment_payload_bytes);
        self.cut.map_or(1, carried)
    }

    /// Returns the size of the IP packet that carries a segment, in bytes.
    pub fn segment_bytes(&self, segment: usize) -> usize {
        let payload = |cut: Cut| cut.payload - self.ip + self.payload(cut, segment..segment + 1).len();
        self.cut.map_or(self.bytes.len() - self.ip, payload)
    }

    /// Returns the sender and the recipient of the frame, or [`NOBODYS`] if they are unknown.
    pub fn flow(&self) -> Flow {
        flow(&self.bytes[self.ip..]).unwrap_or(NOBODYS)
    }

    /// Returns a new frame that carries only the segments with these indexes.
    pub fn piece(&self, segments: Range<usize>) -> Vec<u8> {
        match self.cut {
            Some(cut) if segments.len() < self.segments() => self.cut_out(cut, segments),
            _ => self.bytes.to_vec(),
        }
    }

    /// Returns the byte range of these segments' payload in the frame.
    fn payload(&self, cut: Cut, segments: Range<usize>) -> Range<usize> {
        let at = |segment: usize| (cut.payload + segment * cut.segment_payload_bytes).min(self.bytes.len());
        at(segments.start)..at(segments.end)
    }

    fn cut_out(&self, cut: Cut, segments: Range<usize>) -> Vec<u8> {
        let payload = &self.bytes[self.payload(cut, segments.clone())];
        let mut piece = Vec::with_capacity(cut.payload + payload.len());
        piece.extend_from_slice(&self.bytes[..cut.payload]);
        piece.extend_from_slice(payload);
        // The kernel's `hdr_len` may be larger than the headers, and even larger than the piece. So the exact length is
        // written.
        let header_bytes = (cut.payload - VIRTIO_HEADER_BYTES) as u16;
        piece[2..4].copy_from_slice(&header_bytes.to_ne_bytes());
        if segments.len() == 1 {
            piece[1] = 0;
            piece[4..6].fill(0);
        } else if segments.start > 0 {
            piece[1] &= !GSO_ECN;
        }
        let sent_before_bytes = segments.start * cut.segment_payload_bytes;
        let is_last = segments.end == self.segments();
        write_ip_header(&mut piece[self.ip..], segments.start as u16);
        let (ip, header) = piece[self.ip..].split_at_mut(cut.transport - self.ip);
        let (protocol, checksum) = if cut.is_tcp {
            let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            header[4..8].copy_from_slice(&sequence.wrapping_add(sent_before_bytes as u32).to_be_bytes());
            header[13] &= if is_last { 0xff } else { !TCP_FIN_PSH };
            header[13] &= if segments.start == 0 { 0xff } else { !TCP_CWR };
            (TCP, 16)
        } else {
            let length = (header.len() as u16).to_be_bytes();
            header[4..6].copy_from_slice(&length);
            (UDP, 6)
        };
        // This is a partial checksum, which covers only the pseudo-header. The kernel writes it if the device is to
        // complete the checksum.
        let addresses = if ip[0] >> 4 == 4 { &ip[12..20] } else { &ip[8..40] };
        let sum = folded(sum(addresses) + u64::from(protocol) + header.len() as u64);
        header[checksum..checksum + 2].copy_from_slice(&sum.to_be_bytes());
        piece
    }
}

impl Cut {
    fn new(bytes: &[u8], ip: usize) -> Option<Self> {
        let half = |at: usize| usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
        let kind = bytes[1] & !GSO_ECN;
        let (segment_payload_bytes, transport) = (half(4), VIRTIO_HEADER_BYTES + half(6));
        let is_tcp = kind == GSO_TCP_V4 || kind == GSO_TCP_V6;
        let is_known = is_tcp || kind == GSO_UDP_SEGMENTS;
        if !is_known || bytes[0] & NEEDS_CHECKSUM == 0 || segment_payload_bytes == 0 {
            return None;
        }
        let ip_header_bytes = if bytes[ip] >> 4 == 4 { 20 } else { 40 };
        let header_bytes = if is_tcp { usize::from(bytes.get(transport + 12)? >> 4) * 4 } else { 8 };
        let payload = transport + header_bytes;
        let is_whole = transport >= ip + ip_header_bytes && header_bytes >= if is_tcp { 20 } else { 8 };
        (is_whole && payload < bytes.len()).then_some(Self { transport, payload, segment_payload_bytes, is_tcp })
    }
}

/// Writes the IP header of a piece of a frame. `packets_before` is the number of the frame's segments before the piece.
/// It is added to the identifier of an IPv4 packet.
fn write_ip_header(packet: &mut [u8], packets_before: u16) {
    let length = packet.len();
    if packet[0] >> 4 == 6 {
        packet[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        return;
    }
    packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    let number = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(packets_before);
    packet[4..6].copy_from_slice(&number.to_be_bytes());
    packet[10..12].fill(0);
    let header_bytes = usize::from(packet[0] & 15) * 4;
    let sum = !folded(sum(&packet[..header_bytes.min(length)]));
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low))).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

fn flow(packet: &[u8]) -> Option<Flow> {
    let octets = |at: usize| packet.get(at..at + 16).and_then(|octets| <[u8; 16]>::try_from(octets).ok());
    let short = |at: usize| packet.get(at..at + 4).and_then(|octets| <[u8; 4]>::try_from(octets).ok());
    let (source, destination, protocol, transport) = match packet[0] >> 4 {
        4 => {
            let (source, destination) = (IpAddr::from(short(12)?), IpAddr::from(short(16)?));
            // The ports are only in the first fragment of a packet.
            let is_first = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff == 0;
            (source, destination, if is_first { packet[9] } else { 0 }, usize::from(packet[0] & 15) * 4)
        }
        6 => (Ipv6Addr::from(octets(8)?).into(), Ipv6Addr::from(octets(24)?).into(), packet[6], 40),
        _ => return None,
    };
    let ports = if [TCP, UDP].contains(&protocol) { short(transport).unwrap_or_default() } else { [0; 4] };
    let [source_port, destination_port] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
    let (source, destination) = (SocketAddr::new(source, source_port), SocketAddr::new(destination, destination_port));
    Some(Flow { source, destination })
}

#[cfg(test)]
mod tests;
