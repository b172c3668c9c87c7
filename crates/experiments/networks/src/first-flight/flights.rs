//! The flights that an answer came in, as its arrivals show them: a server sends what its window has room for, and
//! waits a round trip for an acknowledgement.

use std::time::Duration;

use ascertain_netlab::http::Arrival;

/// A server that waits before it has sent so many full segments does not wait for its window: no window is smaller. It
/// has sent tickets of TLS, settings of HTTP/2 or its head, and thinks about the page.
const LEAST_SEGMENTS: u64 = 2;

/// The flights of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flights {
    /// The number of flights.
    pub count: u64,
    /// Bytes of the first, with all that TLS adds.
    pub first_bytes: u64,
    /// Bytes of the last.
    pub last_bytes: u64,
    /// Bytes of all.
    pub all_bytes: u64,
}

impl Flights {
    /// Groups arrivals: bytes that arrive half a round trip or more after those before them begin a flight. A server that
    /// pauses in the middle of a page for a reason of its own looks the same.
    pub fn of(arrivals: &[Arrival], rtt: Duration, segment_bytes: u64) -> Self {
        let pause_ns = (rtt.as_nanos() / 2) as u64;
        let mut flights = Self::default();
        let mut before_ns = None;
        for Arrival { at_ns, bytes } in arrivals {
            let has_begun = flights.all_bytes >= LEAST_SEGMENTS * segment_bytes;
            if before_ns.is_none_or(|before_ns| has_begun && at_ns - before_ns >= pause_ns) {
                flights.count += 1;
                flights.last_bytes = 0;
            }
            before_ns = Some(*at_ns);
            flights.last_bytes += bytes;
            flights.all_bytes += bytes;
            if flights.count == 1 {
                flights.first_bytes += bytes;
            }
        }
        flights
    }

    /// Bytes after the first flight.
    pub fn over_bytes(&self) -> u64 {
        self.all_bytes - self.first_bytes
    }

    /// Bytes to remove to save a round trip: those of the last flight; 0 of a single one.
    pub fn trim_bytes(&self) -> u64 {
        if self.count > 1 { self.last_bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    /// Arrivals at so many milliseconds.
    fn flights(arrivals: &[(u64, u64)]) -> Flights {
        let arrivals: Vec<_> =
            arrivals.iter().map(|&(at_ms, bytes)| Arrival { at_ns: at_ms * 1_000_000, bytes }).collect();
        Flights::of(&arrivals, RTT, 1_448)
    }

    /// Tickets and settings may come a round trip before the page, and a server may think.
    #[test]
    fn bytes_before_the_page_are_no_flight_of_their_own() {
        assert_eq!(flights(&[(0, 500), (20, 11_000)]).count, 1);
        assert_eq!(flights(&[(20, 40), (50, 14_000)]).count, 1);
        let late = flights(&[(0, 500), (40, 11_000), (60, 90)]);
        assert_eq!((late.count, late.trim_bytes()), (2, 90));
    }

    #[test]
    fn an_answer_is_cut_where_the_server_waited() {
        assert_eq!(flights(&[]), Flights::default());
        let one = flights(&[(30, 1_448), (31, 1_448), (40, 500)]);
        assert_eq!((one.count, one.first_bytes, one.over_bytes(), one.trim_bytes()), (1, 3_396, 0, 0));
        // h2 with 11,600 bytes took two round trips: the model said that nothing was to be trimmed.
        let two = flights(&[(20, 11_584), (40, 362)]);
        assert_eq!((two.count, two.over_bytes(), two.trim_bytes()), (2, 362, 362));
        // A window of 20 took one: the model wanted 5,762 bytes less.
        assert_eq!(flights(&[(20, 14_480), (22, 5_762)]).trim_bytes(), 0);
        let three = flights(&[(20, 14_480), (40, 14_480), (41, 14_480), (60, 7)]);
        assert_eq!((three.count, three.first_bytes, three.over_bytes(), three.trim_bytes()), (3, 14_480, 28_967, 7));
    }
}
