//! What a request spends its time on.

/// A part of a request, in the order in which they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The name is an address.
    Name,
    /// The connection is made.
    Connect,
    /// Keys are agreed upon.
    Tls,
    /// The request is sent, with its body.
    Sent,
    /// The answer's head has arrived and is understood: of what TLS encrypts as one record all must have come.
    FirstByte,
    /// The answer is whole.
    LastByte,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Self; 6] = [Self::Name, Self::Connect, Self::Tls, Self::Sent, Self::FirstByte, Self::LastByte];

    /// Its name in evidence and pictures.
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

/// When a request's phases ended, in nanoseconds of whatever monotonic clock it was begun with. What a request did
/// without (TLS, or a connection that was already there), and what it did not live to see, has no end.
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
    /// A request that begins at this moment.
    #[must_use]
    pub fn begin(now_ns: u64) -> Self {
        Self { start_ns: now_ns, ends_ns: [None; Phase::ALL.len()] }
    }

    /// When it began.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// A phase ends at this moment.
    pub fn end(&mut self, phase: Phase, now_ns: u64) {
        self.ends_ns[phase as usize] = Some(now_ns);
    }

    /// When a phase ended.
    #[must_use]
    pub fn end_ns(&self, phase: Phase) -> Option<u64> {
        self.ends_ns[phase as usize]
    }

    /// How long a phase took: since the one that ended before it, or the beginning. A server that answers before the
    /// request is whole leaves nothing to its answer.
    #[must_use]
    pub fn took_ns(&self, phase: Phase) -> Option<u64> {
        let before = self.ends_ns[..phase as usize].iter().flatten().max();
        Some(self.end_ns(phase)?.saturating_sub(*before.unwrap_or(&self.start_ns)))
    }

    /// How long it took as far as it came.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.ends_ns.iter().flatten().max().map_or(0, |end_ns| end_ns.saturating_sub(self.start_ns))
    }
}
