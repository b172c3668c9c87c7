//! What a trial's datagrams say of the link that they came through.

/// The headers of IPv4 and UDP.
const HEADER_BYTES: u64 = 28;
/// What a datagram says: of which trial it is, and its number.
const TEXT_BYTES: usize = 16;
/// A packet holds as much at the least.
pub const LEAST_BYTES: u64 = HEADER_BYTES + TEXT_BYTES as u64;
/// The number of one that says that there are no more.
pub const END: u64 = u64::MAX;

/// A datagram that fills a packet of that size.
pub fn datagram(trial: u64, number: u64, packet_bytes: u64) -> Vec<u8> {
    let mut datagram = [trial.to_be_bytes(), number.to_be_bytes()].concat();
    datagram.resize(datagram.len().max((packet_bytes - HEADER_BYTES.min(packet_bytes)) as usize), 0);
    datagram
}

/// The number of a datagram of that trial.
pub fn number(trial: u64, datagram: &[u8]) -> Option<u64> {
    let (of_trial, rest) = datagram.split_first_chunk()?;
    (u64::from_be_bytes(*of_trial) == trial).then(|| rest.first_chunk().map(|number| u64::from_be_bytes(*number)))?
}

/// What a link was asked to be, one way.
pub struct Asked {
    pub delay_ns: f64,
    pub bits_per_ns: Option<f64>,
    pub packet_bytes: u64,
}

/// What it was.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// By how much datagrams arrived later than they should have, sorted; below zero is too early.
    pub excess_ns: Vec<f64>,
    /// How many arrived behind a later one.
    pub reordered: usize,
    /// The share that did not arrive.
    pub lost: f64,
    /// How fast they arrived, as a share of how fast they should have.
    pub rate_share: Option<f64>,
}

impl Seen {
    /// Of datagrams that were sent at these moments, and those that arrived: number and moment, as they came. Each
    /// should have been sent on when those that arrived before it had been.
    pub fn new(asked: &Asked, sent_ns: &[u64], arrived: &[(usize, u64)]) -> Self {
        let wire_ns = asked.bits_per_ns.map(|bits_per_ns| (8 * asked.packet_bytes) as f64 / bits_per_ns);
        let origin_ns = sent_ns.first().copied().unwrap_or(0);
        let since_ns = |at_ns: u64| at_ns.saturating_sub(origin_ns) as f64;
        let mut free_ns = 0.0;
        let times = |(number, arrived_ns): &(usize, u64)| {
            free_ns = since_ns(sent_ns[*number]).max(free_ns) + wire_ns.unwrap_or(0.0);
            [free_ns + asked.delay_ns, since_ns(*arrived_ns)]
        };
        let times: Vec<[f64; 2]> = arrived.iter().map(times).collect();
        let mut excess_ns: Vec<f64> = times.iter().map(|[due_ns, at_ns]| at_ns - due_ns).collect();
        excess_ns.sort_unstable_by(f64::total_cmp);
        let mut latest = 0;
        let is_behind = |(number, _): &&(usize, u64)| {
            latest = latest.max(*number);
            *number < latest
        };
        let reordered = arrived.iter().filter(is_behind).count();
        let rate_share = match times[..] {
            [first, .., last] if wire_ns.is_some() => Some((last[0] - first[0]) / (last[1] - first[1])),
            _ => None,
        };
        let lost = 1.0 - arrived.len() as f64 / sent_ns.len() as f64;
        Self { excess_ns, reordered, lost, rate_share }
    }

    /// The least excess that so large a share of the datagrams does not exceed; none where none arrived.
    pub fn excess_ns(&self, share: f64) -> Option<f64> {
        let rank = (share * self.excess_ns.len() as f64).ceil().max(1.0) as usize;
        self.excess_ns.get(rank - 1).copied()
    }

    /// How many arrived before they should have.
    pub fn early(&self) -> usize {
        self.excess_ns.iter().take_while(|excess_ns| **excess_ns < 0.0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of 10 ms and 8 Mbit/s: a packet of 1,000 bytes takes a millisecond.
    const ASKED: Asked = Asked { delay_ns: 10e6, bits_per_ns: Some(8e-3), packet_bytes: 1_000 };
    const MS: u64 = 1_000_000;

    #[test]
    fn a_true_link_has_no_excess() {
        // A burst, and one when it is over.
        let sent_ns = [5, 5, 5, 20].map(|at_ms| at_ms * MS);
        let seen = Seen::new(&ASKED, &sent_ns, &[(0, 16 * MS), (1, 17 * MS), (2, 18 * MS), (3, 31 * MS)]);
        assert_eq!(seen, Seen { excess_ns: vec![0.0; 4], reordered: 0, lost: 0.0, rate_share: Some(1.0) });
        assert_eq!((seen.early(), seen.excess_ns(0.99)), (0, Some(0.0)));
        let slow = Seen::new(&ASKED, &sent_ns[..3], &[(0, 16 * MS), (1, 18 * MS), (2, 20 * MS)]);
        assert_eq!(slow.rate_share, Some(0.5));
    }

    #[test]
    fn what_is_wrong_is_seen() {
        let sent_ns = [0; 4];
        let late = Seen::new(&ASKED, &sent_ns, &[(0, 11 * MS), (1, 12 * MS), (2, 15 * MS), (3, 14 * MS)]);
        assert_eq!((late.excess_ns(0.5), late.excess_ns(1.0)), (Some(0.0), Some(2e6)));
        let early = Seen::new(&ASKED, &sent_ns, &[(0, 11 * MS), (1, 12 * MS - 1), (2, 13 * MS), (3, 14 * MS)]);
        assert_eq!((early.early(), early.excess_ns(0.0)), (1, Some(-1.0)));
        let swapped = Seen::new(&ASKED, &sent_ns, &[(1, 11 * MS), (0, 12 * MS), (2, 13 * MS), (3, 14 * MS)]);
        assert_eq!((swapped.reordered, swapped.lost), (1, 0.0));
        let lost = Seen::new(&ASKED, &sent_ns, &[(0, 11 * MS), (3, 12 * MS)]);
        assert_eq!((lost.reordered, lost.lost, lost.excess_ns(1.0)), (0, 0.5, Some(0.0)));
        let fast = Seen::new(&ASKED, &sent_ns, &[(0, 11 * MS), (1, 11 * MS + MS / 2), (2, 12 * MS)]);
        assert_eq!(fast.rate_share, Some(2.0));
        let at_once = Seen::new(&Asked { bits_per_ns: None, ..ASKED }, &sent_ns, &[(0, 10 * MS), (1, 11 * MS)]);
        assert_eq!((at_once.excess_ns(1.0), at_once.rate_share), (Some(1e6), None));
        let none = Seen::new(&ASKED, &sent_ns, &[]);
        assert_eq!((none.excess_ns(0.5), none.lost, none.rate_share), (None, 1.0, None));
    }

    #[test]
    fn a_datagram_is_of_its_trial() {
        let one = datagram(7, 3, 100);
        assert_eq!((one.len(), number(7, &one), number(8, &one)), (72, Some(3), None));
        assert_eq!((datagram(7, 3, 0).len(), number(7, &one[..15]), number(7, &[])), (16, None, None));
    }
}
