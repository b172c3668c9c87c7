//! The phases of a request, and the time that each takes.

/// A phase of a request. The variants are in the order in which the phases end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The host name is resolved.
    Name,
    /// The connection is established.
    Connect,
    /// The TLS handshake takes place.
    Tls,
    /// The request is sent, with its body.
    Sent,
    /// The client waits until the head of the answer has arrived and is parsed. With TLS, the whole record that
    /// contains the end of the head must have arrived.
    FirstByte,
    /// The rest of the answer is received.
    LastByte,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 6] = [Self::Name, Self::Connect, Self::Tls, Self::Sent, Self::FirstByte, Self::LastByte];

    /// Returns the name of the phase in evidence files and charts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Connect => "connect",
            Self::Tls => "TLS",
            Self::Sent => "sent",
            Self::FirstByte => "first byte",
            Self::LastByte => "last byte",
        }
    }
}

/// The times at which the phases of a request ended. All times are in nanoseconds, on the clock of the caller.
///
/// A phase has an end only if the request needed and reached it. For example, a request without TLS has no end of
/// [`Phase::Tls`], and a request over an open connection has no end of [`Phase::Connect`].
///
/// ```
/// use ascertain_netlab::{Phase, Phases};
///
/// let mut phases = Phases::begin(1_000);
/// phases.end(Phase::Connect, 21_000);
/// phases.end(Phase::FirstByte, 61_000);
/// assert_eq!(phases.end_ns(Phase::FirstByte), Some(61_000));
/// assert_eq!(phases.took_ns(Phase::FirstByte), Some(40_000));
/// assert_eq!(phases.took_ns(Phase::Tls), None);
/// assert_eq!(phases.total_ns(), 60_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    start_ns: u64,
    ends_ns: [Option<u64>; Phase::ALL.len()],
}

impl Phases {
    /// Creates the record of a request that starts at `now_ns`.
    pub fn begin(now_ns: u64) -> Self {
        Self { start_ns: now_ns, ends_ns: [None; Phase::ALL.len()] }
    }

    /// Returns the time at which the request started.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Records that a phase ended at `now_ns`.
    pub fn end(&mut self, phase: Phase, now_ns: u64) {
        self.ends_ns[phase as usize] = Some(now_ns);
    }

    /// Returns the time at which a phase ended; `None` if no end was recorded.
    pub fn end_ns(&self, phase: Phase) -> Option<u64> {
        self.ends_ns[phase as usize]
    }

    /// Returns the duration of a phase, in nanoseconds. The duration counts from the latest end of an earlier phase, or
    /// from the start of the request if no earlier phase has an end. `None` if the phase has no end. If a server
    /// answers before the request is completely sent, [`Phase::FirstByte`] takes 0 ns.
    pub fn took_ns(&self, phase: Phase) -> Option<u64> {
        let before = self.ends_ns[..phase as usize].iter().flatten().max();
        Some(self.end_ns(phase)?.saturating_sub(*before.unwrap_or(&self.start_ns)))
    }

    /// Returns the time from the start of the request to the latest recorded end of a phase, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.ends_ns.iter().flatten().max().map_or(0, |end_ns| end_ns.saturating_sub(self.start_ns))
    }
}
