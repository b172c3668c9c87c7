//! The flights that an answer came in, as its arrivals show them: a server sends what its window has room for, and
//! waits a round trip for an acknowledgement.

use std::time::Duration;

use ascertain_netlab::http::Arrival;

/// The flights of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flights {
    /// How many there were.
    pub count: u64,
    /// Bytes of the first, with all that TLS adds.
    pub first_bytes: u64,
    /// Bytes of the last.
    pub last_bytes: u64,
    /// Bytes of all.
    pub all_bytes: u64,
}

impl Flights {
    /// Groups arrivals: what comes half a round trip or more after what came before begins a flight.
    pub fn of(arrivals: &[Arrival], rtt: Duration) -> Self {
        let pause_ns = (rtt.as_nanos() / 2) as u64;
        let mut flights = Self::default();
        let mut before_ns = None;
        for Arrival { at_ns, bytes } in arrivals {
            if before_ns.is_none_or(|before_ns| at_ns - before_ns >= pause_ns) {
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

    /// How many bytes came behind the first flight.
    pub fn over_bytes(&self) -> u64 {
        self.all_bytes - self.first_bytes
    }

    /// How many bytes less would take a round trip less: those of the last flight. None of a single one.
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
        Flights::of(&arrivals, RTT)
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
