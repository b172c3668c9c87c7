//! Sends and receives the UDP flows of a measurement. The client and the listener both use this module.
//!
//! A datagram begins with four numbers: the session number, the index of its flow, its sequence number, and its send
//! time. The send time is relative to the start of the measurement, which both hosts share. Both hosts decide by the
//! send time whether to count a datagram, so they count the same datagrams.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use ascertain_sys::clock::now_ns;

use super::counting::{Allowance, Counting, FlowEnd, Timing, broken};
use super::flows::LOOK;
use super::message::is_nothing_yet;
use super::traffic::HEADER_BYTES;
use crate::Error;
use crate::http::random_bytes;

/// The header at the beginning of a datagram's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub session: u64,
    pub flow: u32,
    pub number: u64,
    pub sent_ns: u64,
}

/// Special sequence number of a datagram that only announces its sender's address.
pub(super) const KNOCK: u64 = u64::MAX;

impl Header {
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.session.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.flow.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.number.to_le_bytes());
        bytes[20..].copy_from_slice(&self.sent_ns.to_le_bytes());
        bytes
    }

    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (session, rest) = bytes.split_first_chunk()?;
        let (flow, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (sent_ns, _) = rest.split_first_chunk()?;
        let [session, number, sent_ns] = [session, number, sent_ns].map(|bytes| u64::from_le_bytes(*bytes));
        Some(Self { session, flow: u32::from_le_bytes(*flow), number, sent_ns })
    }
}

/// The parameters with which the client or the listener sends a UDP flow.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    pub session: u64,
    pub flow: u32,
    /// The destination of the datagrams; `None` if the socket is connected.
    pub to: Option<SocketAddr>,
    pub rate_bits_per_s: u64,
    pub datagram_bytes: u32,
}

/// Sends datagrams at the rate of the flow until [`Timing::slack_ns`] after the counted intervals. If sending falls
/// behind by more than [`LOOK`], the missed datagrams are left out. Sending them in a burst could fill a queue on the
/// network path, whereas the normal rate does not fill this queue.
pub(super) fn send(socket: &UdpSocket, what: Sending, timing: Timing, allowance: &Allowance) -> Result<FlowEnd, Error> {
    let mut datagram = random_bytes(what.datagram_bytes as usize);
    let each_ns = (f64::from(what.datagram_bytes) * 8e9 / what.rate_bits_per_s as f64).max(1.0);
    let mut counting = Counting::new(timing, None);
    let (mut from_ns, mut since, mut datagrams, mut number) = (timing.zero_ns, 0_u64, 0, 0);
    loop {
        let now_ns = now_ns();
        counting.at(now_ns);
        allowance.look()?;
        if now_ns >= timing.end_ns + timing.slack_ns {
            return Ok(FlowEnd { datagrams, ..counting.end() });
        }
        let due_ns = from_ns + (since as f64 * each_ns) as u64;
        if due_ns > now_ns {
            sleep(Duration::from_nanos(due_ns - now_ns).min(LOOK));
            continue;
        }
        if now_ns - due_ns > LOOK.as_nanos() as u64 {
            (from_ns, since) = (now_ns, 0);
        }
        let sent_ns = now_ns - timing.zero_ns.min(now_ns);
        let header = Header { session: what.session, flow: what.flow, number, sent_ns };
        datagram[..HEADER_BYTES].copy_from_slice(&header.bytes());
        let sent = match what.to {
            Some(to) => socket.send_to(&datagram, to),
            None => socket.send(&datagram),
        };
        match sent {
            Ok(bytes) => {
                counting.add(now_ns, bytes);
                datagrams += u64::from(timing.counts(sent_ns));
                allowance.spend(bytes as u64)?;
            }
            // The kernel had no buffer for the datagram, so the datagram is left out.
            Err(error)
                if is_nothing_yet(&error) || error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {
            }
            Err(error) => return Err(broken(error)),
        }
        number += 1;
        since += 1;
    }
}

/// Receives UDP flows until [`Timing::slack_ns`] after the counted intervals. Then reads the datagrams that the socket
/// already holds, so that a thread that reads late loses nothing.
pub(super) fn receive(
    socket: &UdpSocket,
    session: u64,
    flows: &[u32],
    timing: Timing,
    allowance: &Allowance,
) -> Result<Vec<(u32, FlowEnd)>, Error> {
    socket.set_read_timeout(Some(LOOK)).map_err(broken)?;
    let new = |flow: &u32| (*flow, (Counting::new(timing, None), Arrivals::default()));
    let mut seen: BTreeMap<u32, _> = flows.iter().map(new).collect();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let received = socket.recv(&mut buffer);
        let now_ns = now_ns();
        // The flows share this thread. Its CPU time is counted for the first flow.
        if let Some((counting, _)) = seen.values_mut().next() {
            counting.at(now_ns);
        }
        match received {
            Ok(bytes) => {
                let header = Header::parse(&buffer[..bytes]).filter(|header| header.session == session);
                let known = header.and_then(|header| Some((header, seen.get_mut(&header.flow)?)));
                if let Some((header, (counting, arrivals))) = known.filter(|(header, _)| header.number != KNOCK) {
                    counting.add(now_ns, bytes);
                    arrivals.add(header, now_ns, timing.counts(header.sent_ns), &mut counting.end);
                    allowance.spend(bytes as u64)?;
                }
            }
            // `ConnectionRefused` means that the other host's socket is not open yet, or is closed. The datagrams that
            // are lost thereby are counted as lost.
            Err(error) if is_nothing_yet(&error) || error.kind() == std::io::ErrorKind::ConnectionRefused => {
                if now_ns >= timing.end_ns + timing.slack_ns {
                    break;
                }
            }
            Err(error) => return Err(broken(error)),
        }
        allowance.look()?;
        // Receiving ends at this time even if datagrams still arrive.
        if now_ns >= timing.end_ns + 2 * timing.slack_ns + PATIENCE_NS {
            break;
        }
    }
    let ends = seen.into_iter().enumerate().map(|(index, (flow, (counting, _)))| {
        let end = counting.end();
        (flow, FlowEnd { cpu_ns: if index == 0 { end.cpu_ns } else { 0 }, ..end })
    });
    Ok(ends.collect())
}

const PATIENCE_NS: u64 = 1_000_000_000;
/// Number of sequence numbers that are remembered, to distinguish a late datagram from a duplicate.
const REMEMBERED: usize = 1 << 12;

/// The sequence numbers and the transit times of the datagrams of one flow that have arrived so far.
struct Arrivals {
    /// The jitter so far, in nanoseconds, as defined in RFC 3550.
    jitter_ns: f64,
    /// Transit time of the previous datagram, from the sender's clock at sending to this host's clock at arrival. The
    /// clocks' constant offset does not matter, because the jitter is computed from differences of transit times.
    transit_ns: Option<i128>,
    /// The highest sequence number so far, plus one.
    next: u64,
    /// For each remainder modulo [`REMEMBERED`], the highest sequence number with this remainder so far, plus one. The
    /// value is 0 if no such number has arrived.
    latest: Vec<u64>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self { jitter_ns: 0.0, transit_ns: None, next: 0, latest: vec![0; REMEMBERED] }
    }
}

impl Arrivals {
    fn add(&mut self, header: Header, now_ns: u64, is_counted: bool, end: &mut FlowEnd) {
        let transit_ns = i128::from(now_ns) - i128::from(header.sent_ns);
        let place = &mut self.latest[(header.number % REMEMBERED as u64) as usize];
        if *place == header.number + 1 {
            end.duplicates += u64::from(is_counted);
            return;
        }
        // A datagram that is too old to be remembered may be a duplicate, but is counted as a first arrival.
        *place = (*place).max(header.number + 1);
        let is_late = header.number < self.next;
        self.next = self.next.max(header.number + 1);
        if let Some(before_ns) = self.transit_ns.replace(transit_ns) {
            let differs_ns = (transit_ns - before_ns).unsigned_abs() as f64;
            self.jitter_ns += (differs_ns - self.jitter_ns) / 16.0;
            end.jitter_ns = self.jitter_ns as u64;
        }
        if is_counted {
            end.datagrams += 1;
            end.reordered += u64::from(is_late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(number: u64, sent_ns: u64) -> Header {
        Header { session: 1, flow: 2, number, sent_ns }
    }

    #[test]
    fn a_header_is_what_it_was() {
        let sent = header(3, 4);
        assert_eq!(Header::parse(&sent.bytes()), Some(sent));
        assert_eq!(Header::parse(&[&sent.bytes()[..], b"more"].concat()), Some(sent));
        assert_eq!(Header::parse(&sent.bytes()[1..]), None);
    }

    #[test]
    fn late_ones_and_second_ones_are_told_apart() {
        let (mut arrivals, mut end) = (Arrivals::default(), FlowEnd::default());
        // Number 2 is late, 1 arrives twice, 4 never arrives, and 0 does not count.
        for number in [0, 1, 3, 1, 2, 5] {
            arrivals.add(header(number, 0), 0, number > 0, &mut end);
        }
        assert_eq!((end.datagrams, end.reordered, end.duplicates), (4, 1, 1));
        // Number 0 comes again when it is too old to be remembered. The other number comes again while it is
        // remembered.
        let (mut arrivals, mut end) = (Arrivals::default(), FlowEnd::default());
        for number in [0, REMEMBERED as u64, 0, REMEMBERED as u64] {
            arrivals.add(header(number, 0), 0, true, &mut end);
        }
        assert_eq!((end.datagrams, end.reordered, end.duplicates), (3, 1, 1));
    }

    /// The jitter is a moving average: each new difference of two transit times has a weight of 1/16 (RFC 3550, section
    /// 6.4.1).
    #[test]
    fn jitter_is_as_the_standard_has_it() {
        let (mut arrivals, mut end) = (Arrivals::default(), FlowEnd::default());
        // The receiver's clock is 5,000 ns ahead of the sender's.
        for (number, sent_ns, now_ns) in [(0, 0, 5_000), (1, 1_000, 6_000), (2, 2_000, 7_160), (3, 3_000, 8_000)] {
            arrivals.add(header(number, sent_ns), now_ns, true, &mut end);
        }
        // The jitter is 0 at first, then 160 / 16, then 10 + (160 − 10) / 16.
        assert_eq!((arrivals.jitter_ns, end.jitter_ns), (19.375, 19));
    }
}
