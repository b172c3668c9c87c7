//! What an end sees of a flow, in the time that counts.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ascertain_sys::clock::{now_ns, thread_cpu_ns};

use super::Plan;

/// One end of a flow, while it was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// What it sent or received, by interval, from the first one that is left out.
    pub bytes: Vec<u64>,
    /// The CPU time of its thread, with what the kernel did in it. Datagrams that arrive at a listener have one thread;
    /// its time is the first flow's.
    pub cpu_ns: u64,
    /// What the kernel knows of the connection; none for UDP, and where the kernel says nothing.
    pub tcp: Option<Tcp>,
    /// How many datagrams were sent, or, of those, arrived.
    pub datagrams: u64,
    /// How many of them arrived behind a later one.
    pub reordered: u64,
    /// How many came once more.
    pub duplicates: u64,
    /// By how much the time that they were under way varies, as RFC 3550 has it, at the end.
    pub jitter_ns: u64,
}

/// What the kernel knows of a connection at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// What was sent again while it was counted.
    pub retransmitted_segments: u64,
    /// The round trip, smoothed.
    pub rtt_us: u32,
    /// The shortest of late; 0 where that is not known.
    pub rtt_min_us: u32,
    /// What a full segment carries.
    pub mss_bytes: u32,
    /// The largest packet on the way, headers and all.
    pub path_mtu_bytes: u32,
    /// The algorithm: `cubic`, `bbr`.
    pub congestion_control: String,
}

#[cfg(target_os = "linux")]
fn tcp_of(stream: &TcpStream) -> Option<Tcp> {
    let info = ascertain_sys::tcp::info(stream).ok()?;
    Some(Tcp {
        retransmitted_segments: info.retransmitted_segments.into(),
        rtt_us: info.rtt_us,
        rtt_min_us: info.rtt_min_us.unwrap_or(0),
        mss_bytes: info.mss_bytes,
        path_mtu_bytes: info.path_mtu_bytes,
        congestion_control: info.congestion_control,
    })
}

#[cfg(not(target_os = "linux"))]
fn tcp_of(_: &TcpStream) -> Option<Tcp> {
    None
}

/// When what happens, by the clock of this end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub zero_ns: u64,
    pub interval_ns: u64,
    /// So many intervals are left out before it counts.
    pub left_out: u32,
    pub intervals: u32,
    /// For that long a sender goes on when nothing counts any more, and a receiver of datagrams waits for the last: the
    /// other end may be as late.
    pub slack_ns: u64,
}

impl Timing {
    pub fn new(plan: &Plan, zero_ns: u64, bound_ns: u64) -> Self {
        /// A machine may be busy; nobody is to wait for long because of what somebody says.
        const SLACK_NS: [u64; 2] = [20_000_000, 2_000_000_000];
        Self {
            zero_ns,
            interval_ns: plan.interval.as_nanos() as u64,
            left_out: plan.left_out,
            intervals: plan.intervals,
            slack_ns: SLACK_NS[0] + bound_ns.saturating_mul(2).min(SLACK_NS[1]),
        }
    }

    fn begin_ns(&self) -> u64 {
        self.zero_ns + self.interval_ns * u64::from(self.left_out)
    }

    pub fn end_ns(&self) -> u64 {
        self.begin_ns() + self.interval_ns * u64::from(self.intervals)
    }

    /// Whether it has begun to count without us.
    pub fn is_late(&self, now_ns: u64) -> bool {
        now_ns > self.begin_ns() + self.interval_ns / 2
    }

    /// Whether it counts what was sent that long after zero.
    pub fn counts(&self, sent_ns: u64) -> bool {
        (self.begin_ns() - self.zero_ns..self.end_ns() - self.zero_ns).contains(&sent_ns)
    }
}

/// Why a flow ended.
pub(super) enum Over {
    /// It broke.
    Broken(std::io::Error),
    /// It was told to.
    Told,
    /// There is nothing left of what may be sent and received.
    UsedUp,
}

/// What flows may still send and receive, and whether they are to end.
pub(super) struct Allowance<'a> {
    left_bytes: &'a AtomicU64,
    pub is_over: AtomicBool,
}

impl<'a> Allowance<'a> {
    pub fn new(left_bytes: &'a AtomicU64) -> Self {
        Self { left_bytes, is_over: AtomicBool::new(false) }
    }

    /// Spends as much, or all that there is.
    pub fn spend(&self, bytes: u64) -> Result<(), Over> {
        let less = |left: u64| Some(left.saturating_sub(bytes));
        let left = self.left_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if left.is_ok_and(|left| left >= bytes) { self.look() } else { Err(Over::UsedUp) }
    }

    pub fn look(&self) -> Result<(), Over> {
        if self.is_over.load(Ordering::Relaxed) { Err(Over::Told) } else { Ok(()) }
    }
}

/// An end that is being counted. What it is told of times never goes back.
pub(super) struct Counting<'a> {
    timing: Timing,
    stream: Option<&'a TcpStream>,
    end: End,
    /// CPU time and segments sent again when it began to count; none before.
    before: Option<(u64, u64)>,
    is_done: bool,
}

impl<'a> Counting<'a> {
    /// Of a connection, or of datagrams.
    pub fn new(timing: Timing, stream: Option<&'a TcpStream>) -> Self {
        let end = End { bytes: vec![0; (timing.left_out + timing.intervals) as usize], ..End::default() };
        Self { timing, stream, end, before: None, is_done: false }
    }

    /// It is that late.
    pub fn at(&mut self, now_ns: u64) {
        if self.before.is_none() && now_ns >= self.timing.begin_ns() {
            let retransmitted = self.stream.and_then(tcp_of).map_or(0, |tcp| tcp.retransmitted_segments);
            self.before = Some((thread_cpu_ns(), retransmitted));
        }
        if !self.is_done && now_ns >= self.timing.end_ns() {
            let (cpu_ns, retransmitted) = self.before.unwrap_or_default();
            self.is_done = true;
            self.end.cpu_ns = thread_cpu_ns() - cpu_ns;
            self.end.tcp = self.stream.and_then(tcp_of).map(|tcp| Tcp {
                retransmitted_segments: tcp.retransmitted_segments.saturating_sub(retransmitted),
                ..tcp
            });
        }
    }

    /// Bytes were sent or have arrived.
    pub fn add(&mut self, now_ns: u64, bytes: usize) {
        self.at(now_ns);
        let since_ns = now_ns.saturating_sub(self.timing.zero_ns);
        if let Some(counted) = self.end.bytes.get_mut((since_ns / self.timing.interval_ns) as usize) {
            *counted += bytes as u64;
        }
    }

    /// What was seen.
    pub fn end(mut self) -> End {
        self.at(now_ns().max(self.timing.end_ns()));
        self.end
    }
}
