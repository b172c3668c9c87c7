//! An end of flows of UDP.
//!
//! A datagram begins with the session's number, the flow's, its own, and when it was sent, since the moment at which
//! both ends begin. Whether it counts is decided by that time, so that both ends mean the same ones.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use ascertain_sys::clock::now_ns;

use super::counting::{Allowance, Counting, End, Over, Timing};
use super::message::is_nothing_yet;
use super::plan::HEADER_BYTES;
use super::stream::{LOOK, filling};

/// What a datagram begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub session: u64,
    pub flow: u32,
    pub number: u64,
    pub sent_ns: u64,
}

/// The number of what is only sent so that the listener learns where its sender is.
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

/// What a sender is to do.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    pub session: u64,
    pub flow: u32,
    /// Where to, unless the socket is connected.
    pub to: Option<SocketAddr>,
    pub rate_bits_per_s: u64,
    pub datagram_bytes: u32,
}

/// Sends at the rate until it counts no more, and a little longer. What could not be sent for longer than a sleep is
/// left out: sent at once it would be lost to a queue on the way that the rate does not fill.
pub(super) fn send(socket: &UdpSocket, what: Sending, timing: Timing, allowance: &Allowance) -> Result<End, Over> {
    let mut datagram = filling(what.datagram_bytes as usize);
    let each_ns = (f64::from(what.datagram_bytes) * 8e9 / what.rate_bits_per_s as f64).max(1.0);
    let mut counting = Counting::new(timing, None);
    let (mut from_ns, mut since, mut datagrams, mut number) = (timing.zero_ns, 0_u64, 0, 0);
    loop {
        let now_ns = now_ns();
        counting.at(now_ns);
        allowance.look()?;
        if now_ns >= timing.end_ns() + timing.slack_ns {
            return Ok(End { datagrams, ..counting.end() });
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
            // One's own machine had no room for it.
            Err(error)
                if is_nothing_yet(&error) || error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {
            }
            Err(error) => return Err(Over::Broken(error)),
        }
        number += 1;
        since += 1;
    }
}

/// Receives flows as long as it counts, waits for the last of what counts, and takes what is there by then: who is late
/// to look has lost nothing.
pub(super) fn receive(
    socket: &UdpSocket,
    session: u64,
    flows: &[u32],
    timing: Timing,
    allowance: &Allowance,
) -> Result<Vec<(u32, End)>, Over> {
    socket.set_read_timeout(Some(LOOK)).map_err(Over::Broken)?;
    let new = |flow: &u32| (*flow, (Counting::new(timing, None), Arrivals::default()));
    let mut seen: BTreeMap<u32, _> = flows.iter().map(new).collect();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let received = socket.recv(&mut buffer);
        let now_ns = now_ns();
        // Their thread is one; the first has its time.
        if let Some((counting, _)) = seen.values_mut().next() {
            counting.at(now_ns);
        }
        match received {
            Ok(bytes) => {
                let header = Header::parse(&buffer[..bytes]).filter(|header| header.session == session);
                let known = header.and_then(|header| Some((header, seen.get_mut(&header.flow)?)));
                if let Some((header, (counting, arrivals))) = known.filter(|(header, _)| header.number != KNOCK) {
                    counting.add(now_ns, bytes);
                    arrivals.add(header, now_ns, timing.counts(header.sent_ns));
                    allowance.spend(bytes as u64)?;
                }
            }
            // The other end says that nobody is there yet, or any more: what is lost is counted anyway.
            Err(error) if is_nothing_yet(&error) || error.kind() == std::io::ErrorKind::ConnectionRefused => {
                if now_ns >= timing.end_ns() + timing.slack_ns {
                    break;
                }
            }
            Err(error) => return Err(Over::Broken(error)),
        }
        allowance.look()?;
        // Whatever still comes then is not worth waiting for.
        if now_ns >= timing.end_ns() + 2 * timing.slack_ns + PATIENCE_NS {
            break;
        }
    }
    let ends = seen.into_iter().enumerate().map(|(index, (flow, (counting, arrivals)))| {
        let end = counting.end();
        (flow, arrivals.into_end(End { cpu_ns: if index == 0 { end.cpu_ns } else { 0 }, ..end }))
    });
    Ok(ends.collect())
}

const PATIENCE_NS: u64 = 1_000_000_000;
/// So many numbers are remembered, to tell what comes late from what comes twice.
const REMEMBERED: usize = 1 << 12;

/// What arrived of a flow.
struct Arrivals {
    datagrams: u64,
    reordered: u64,
    duplicates: u64,
    /// As RFC 3550 has it, so far.
    jitter_ns: f64,
    /// How long the one before was under way, by two clocks that differ by a constant.
    transit_ns: Option<i128>,
    /// One more than the highest number.
    next: u64,
    /// One more than the number of what came, at its place.
    latest: Vec<u64>,
}

impl Default for Arrivals {
    fn default() -> Self {
        let latest = vec![0; REMEMBERED];
        Self { datagrams: 0, reordered: 0, duplicates: 0, jitter_ns: 0.0, transit_ns: None, next: 0, latest }
    }
}

impl Arrivals {
    fn add(&mut self, header: Header, now_ns: u64, is_counted: bool) {
        let transit_ns = i128::from(now_ns) - i128::from(header.sent_ns);
        let place = &mut self.latest[(header.number % REMEMBERED as u64) as usize];
        if *place == header.number + 1 {
            self.duplicates += u64::from(is_counted);
            return;
        }
        // Of what is too old to be remembered nobody knows whether it came before.
        *place = (*place).max(header.number + 1);
        let is_late = header.number < self.next;
        self.next = self.next.max(header.number + 1);
        if let Some(before_ns) = self.transit_ns.replace(transit_ns) {
            let differs_ns = (transit_ns - before_ns).unsigned_abs() as f64;
            self.jitter_ns += (differs_ns - self.jitter_ns) / 16.0;
        }
        if is_counted {
            self.datagrams += 1;
            self.reordered += u64::from(is_late);
        }
    }

    fn into_end(self, end: End) -> End {
        let Self { datagrams, reordered, duplicates, jitter_ns, .. } = self;
        End { datagrams, reordered, duplicates, jitter_ns: jitter_ns as u64, ..end }
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
        let mut arrivals = Arrivals::default();
        // 2 comes late, 1 twice, 4 never, and 0 counts no more.
        for number in [0, 1, 3, 1, 2, 5] {
            arrivals.add(header(number, 0), 0, number > 0);
        }
        let end = arrivals.into_end(End::default());
        assert_eq!((end.datagrams, end.reordered, end.duplicates), (4, 1, 1));
        // As far away as is remembered, and then further.
        let mut arrivals = Arrivals::default();
        for number in [0, REMEMBERED as u64, 0, REMEMBERED as u64] {
            arrivals.add(header(number, 0), 0, true);
        }
        let end = arrivals.into_end(End::default());
        assert_eq!((end.datagrams, end.reordered, end.duplicates), (3, 1, 1));
    }

    /// Section 6.4.1 of RFC 3550: a sixteenth of what the difference is more than the jitter so far.
    #[test]
    fn jitter_is_as_the_standard_has_it() {
        let mut arrivals = Arrivals::default();
        // Their clock is far from ours.
        for (number, sent_ns, now_ns) in [(0, 0, 5_000), (1, 1_000, 6_000), (2, 2_000, 7_160), (3, 3_000, 8_000)] {
            arrivals.add(header(number, sent_ns), now_ns, true);
        }
        // Nothing, then 160 / 16, then 10 + (160 − 10) / 16.
        assert_eq!(arrivals.jitter_ns, 19.375);
    }
}
