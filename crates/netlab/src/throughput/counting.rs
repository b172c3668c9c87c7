//! Counts the traffic of a flow at the client or at the listener, in the intervals of a measurement.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ascertain_sys::clock::{now_ns, thread_cpu_ns};
use serde::{Deserialize, Serialize};

use super::message::plain_name;
use super::traffic::{Refusal, TrafficSpec};
use crate::Error;

/// The counts of one flow by one host, the client or the listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEnd {
    /// Number of bytes that this host sent or received in each interval. The list begins with the intervals that are
    /// left out.
    pub bytes: Vec<u64>,
    /// CPU time of the flow's thread on this host, including system calls, without the intervals that are left out. A
    /// listener receives all UDP flows in one thread, whose CPU time is counted for the first of these flows.
    pub cpu_ns: u64,
    /// The kernel's statistics of the flow's TCP connection. `None` for UDP, or if the kernel does not provide them.
    pub tcp: Option<TcpStats>,
    /// Number of datagrams that this host sent or received in the counted intervals, without duplicates.
    pub datagrams: u64,
    /// Number of datagrams that arrived after a datagram with a higher sequence number.
    pub reordered: u64,
    /// Number of received copies of datagrams that had already arrived. These copies are not counted in `datagrams`.
    pub duplicates: u64,
    /// Jitter as defined in RFC 3550: the smoothed variation of the transit time between consecutive datagrams. This is
    /// the value after the last datagram.
    pub jitter_ns: u64,
}

/// The kernel's statistics of a TCP connection, taken when the measurement ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpStats {
    /// Number of segments that were retransmitted during the counted intervals.
    pub retransmitted_segments: u64,
    /// The smoothed round-trip time of the connection.
    pub rtt_us: u32,
    /// The shortest round-trip time of the recent past; 0 if the kernel does not provide it.
    pub rtt_min_us: u32,
    /// Maximum payload of a segment (MSS).
    pub mss_bytes: u32,
    /// Size of the largest packet that the path can carry (MTU), including headers.
    pub path_mtu_bytes: u32,
    /// The algorithm of congestion control, such as `cubic` or `bbr`.
    #[serde(deserialize_with = "plain_name")]
    pub congestion_control: String,
}

#[cfg(target_os = "linux")]
fn tcp_stats(stream: &TcpStream) -> Option<TcpStats> {
    let info = ascertain_sys::tcp::info(stream).ok()?;
    Some(TcpStats {
        retransmitted_segments: info.retransmitted_segments.into(),
        rtt_us: info.rtt_us,
        rtt_min_us: info.rtt_min_us.unwrap_or(0),
        mss_bytes: info.mss_bytes,
        path_mtu_bytes: info.path_mtu_bytes,
        congestion_control: info.congestion_control,
    })
}

#[cfg(not(target_os = "linux"))]
fn tcp_stats(_: &TcpStream) -> Option<TcpStats> {
    None
}

/// The times of a measurement in nanoseconds, on the clock of this host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub zero_ns: u64,
    pub interval_ns: u64,
    /// Number of intervals, including those that are left out at the beginning.
    intervals: usize,
    /// Start of the counted intervals.
    begin_ns: u64,
    /// End of the counted intervals.
    pub end_ns: u64,
    /// Time after the counted intervals for which a sender continues to send, and for which a receiver waits for the
    /// last datagrams. The other host may be late by up to this time, because it is busy, or because the offset of the
    /// clocks is an estimate.
    pub slack_ns: u64,
}

impl Timing {
    pub fn new(spec: &TrafficSpec, zero_ns: u64, bound_ns: u64) -> Self {
        /// Two limits of `slack_ns` in nanoseconds: its minimum, and the maximum that the error of the clock offset can
        /// add to the minimum. The minimum is not 0, because a machine may be busy. The maximum prevents a long wait if
        /// the other host sends a wrong `bound_ns`.
        const SLACK_NS: [u64; 2] = [20_000_000, 2_000_000_000];
        let interval_ns = spec.interval.as_nanos() as u64;
        let begin_ns = zero_ns + interval_ns * u64::from(spec.left_out);
        Self {
            zero_ns,
            interval_ns,
            intervals: (spec.left_out + spec.intervals) as usize,
            begin_ns,
            end_ns: begin_ns + interval_ns * u64::from(spec.intervals),
            slack_ns: SLACK_NS[0] + bound_ns.saturating_mul(2).min(SLACK_NS[1]),
        }
    }

    /// Returns whether the measurement begins too late on this host: more than half of the first counted interval has
    /// passed.
    pub fn is_late(&self, now_ns: u64) -> bool {
        now_ns > self.begin_ns + self.interval_ns / 2
    }

    /// Returns whether data that was sent `sent_ns` nanoseconds after the start is in the counted intervals.
    pub fn counts(&self, sent_ns: u64) -> bool {
        (self.begin_ns - self.zero_ns..self.end_ns - self.zero_ns).contains(&sent_ns)
    }
}

/// Returns the error for a flow whose connection broke.
pub(super) fn broken(error: io::Error) -> Error {
    Error::broken("in the middle of a flow", error)
}

/// The number of bytes that the flows of a measurement may still send and receive together, and a flag that ends all
/// flows.
pub(super) struct Allowance<'a> {
    left_bytes: &'a AtomicU64,
    pub is_over: AtomicBool,
}

impl<'a> Allowance<'a> {
    pub fn new(left_bytes: &'a AtomicU64) -> Self {
        Self { left_bytes, is_over: AtomicBool::new(false) }
    }

    /// Subtracts `bytes` from the bytes that the flows may still send and receive. Returns an error if fewer are left,
    /// or if the flows must end.
    pub fn spend(&self, bytes: u64) -> Result<(), Error> {
        let less = |left: u64| Some(left.saturating_sub(bytes));
        let left = self.left_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if left.is_ok_and(|left| left >= bytes) { self.look() } else { Err(Error::Refused(Refusal::UsedUp)) }
    }

    pub fn look(&self) -> Result<(), Error> {
        if self.is_over.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// Counts the traffic of one flow on one host. From call to call, the times that are passed to it must not decrease.
pub(super) struct Counting<'a> {
    timing: Timing,
    stream: Option<&'a TcpStream>,
    pub end: FlowEnd,
    /// CPU time and number of retransmitted segments at the start of the counted intervals; `None` before that.
    before: Option<(u64, u64)>,
    is_done: bool,
}

impl<'a> Counting<'a> {
    /// Starts to count a flow over the TCP connection `stream`, or a flow of datagrams if `stream` is `None`.
    pub fn new(timing: Timing, stream: Option<&'a TcpStream>) -> Self {
        let end = FlowEnd { bytes: vec![0; timing.intervals], ..FlowEnd::default() };
        Self { timing, stream, end, before: None, is_done: false }
    }

    /// Reads the CPU time and the kernel's statistics if the counted intervals began or ended between the last call and
    /// `now_ns`.
    pub fn at(&mut self, now_ns: u64) {
        if self.before.is_none() && now_ns >= self.timing.begin_ns {
            let retransmitted = self.stream.and_then(tcp_stats).map_or(0, |tcp| tcp.retransmitted_segments);
            self.before = Some((thread_cpu_ns(), retransmitted));
        }
        if !self.is_done && now_ns >= self.timing.end_ns {
            let (cpu_ns, retransmitted) = self.before.unwrap_or_default();
            self.is_done = true;
            self.end.cpu_ns = thread_cpu_ns() - cpu_ns;
            self.end.tcp = self.stream.and_then(tcp_stats).map(|tcp| TcpStats {
                retransmitted_segments: tcp.retransmitted_segments.saturating_sub(retransmitted),
                ..tcp
            });
        }
    }

    /// Counts the bytes that were sent or received at `now_ns`.
    pub fn add(&mut self, now_ns: u64, bytes: usize) {
        self.at(now_ns);
        let since_ns = now_ns.saturating_sub(self.timing.zero_ns);
        if let Some(counted) = self.end.bytes.get_mut((since_ns / self.timing.interval_ns) as usize) {
            *counted += bytes as u64;
        }
    }

    /// Completes the counts and returns them.
    pub fn end(mut self) -> FlowEnd {
        self.at(now_ns().max(self.timing.end_ns));
        self.end
    }
}
