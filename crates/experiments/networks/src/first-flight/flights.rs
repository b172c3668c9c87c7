//! Groups the arriving bytes of an answer into flights. A flight is the data that a server sends before it must wait a
//! round trip for an acknowledgement.

use std::time::Duration;

use ascertain_netlab::http::Arrival;

/// Number of full segments in the smallest possible window. A pause after fewer segments does not end a flight: the
/// server has only sent TLS tickets, HTTP/2 settings or its head, and is still preparing the page.
const LEAST_SEGMENTS: u64 = 2;

/// The flights in which one answer arrived. A flight is the data that a server sends before it waits for an
/// acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flights {
    /// The number of flights.
    pub count: u64,
    /// Number of bytes in the first flight, including the bytes that TLS adds.
    pub first_bytes: u64,
    /// Number of bytes in the last flight.
    pub last_bytes: u64,
    /// Number of bytes in all flights together.
    pub all_bytes: u64,
}

impl Flights {
    /// Groups arrivals into flights. Bytes that arrive half a round trip or more after the previous bytes begin a new
    /// flight. If a server pauses that long within a page for another reason, the rest of the page therefore counts as
    /// a new flight.
    pub fn from_arrivals(arrivals: &[Arrival], rtt: Duration, segment_bytes: u64) -> Self {
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

    /// Returns the number of bytes that arrived after the first flight. The first flight is the data that the server
    /// sent before it first waited.
    pub fn over_bytes(&self) -> u64 {
        self.all_bytes - self.first_bytes
    }

    /// Returns how many bytes smaller the page must be to save a round trip: the number of bytes in the last flight. It
    /// is 0 if there is only one flight.
    pub fn trim_bytes(&self) -> u64 {
        if self.count > 1 { self.last_bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    /// Groups arrivals, given as pairs of a time in milliseconds and a number of bytes.
    fn flights(arrivals: &[(u64, u64)]) -> Flights {
        let arrivals: Vec<_> =
            arrivals.iter().map(|&(at_ms, bytes)| Arrival { at_ns: at_ms * 1_000_000, bytes }).collect();
        Flights::from_arrivals(&arrivals, RTT, 1_448)
    }

    /// A small amount of data before the page, such as tickets and settings, must not count as a separate flight. This
    /// must be true even if the page arrives a round trip later.
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
        // An observed page of 11,600 bytes over HTTP/2, which took two round trips.
        let two = flights(&[(20, 11_584), (40, 362)]);
        assert_eq!((two.count, two.over_bytes(), two.trim_bytes()), (2, 362, 362));
        // An observed page that took one round trip, because the window had 20 segments.
        assert_eq!(flights(&[(20, 14_480), (22, 5_762)]).trim_bytes(), 0);
        let three = flights(&[(20, 14_480), (40, 14_480), (41, 14_480), (60, 7)]);
        assert_eq!((three.count, three.first_bytes, three.over_bytes(), three.trim_bytes()), (3, 14_480, 28_967, 7));
    }
}
