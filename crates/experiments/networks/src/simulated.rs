//! Simulates downloads over the model of a link, on a virtual clock. Only tests use it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ascertain_netlab::model::{Fate, Flow, Line};

/// Size in bytes of an IP packet with a full segment.
pub const SEGMENT_BYTES: u64 = 1500;

/// The simulated sender of one download, with Reno's congestion control.
pub struct Sender {
    flow: Flow,
    /// Reno's congestion window: the maximum number of segments in flight. For each segment that arrives, a window of
    /// `w` grows by 1 (slow start) or by `1 / w`. A loss halves the window.
    window_segments: f64,
    threshold_segments: f64,
    under_way: u32,
    last_halved_ns: u64,
    /// When the download starts, in nanoseconds.
    begin_ns: u64,
    end_ns: u64,
}

impl Sender {
    /// Creates a sender with this source port that sends from `begin_ns` to `end_ns`.
    pub fn new(port: u16, begin_ns: u64, end_ns: u64) -> Self {
        let flow = Flow { source: ([198, 18, 1, 1], port).into(), destination: ([198, 18, 0, 1], 50_000).into() };
        let (window_segments, threshold_segments) = (10.0, f64::INFINITY);
        Self { flow, window_segments, threshold_segments, under_way: 0, last_halved_ns: 0, begin_ns, end_ns }
    }

    fn learns(&mut self, now_ns: u64, sent_ns: u64, has_arrived: bool) {
        self.under_way -= 1;
        if has_arrived {
            let is_slow_start = self.window_segments < self.threshold_segments;
            self.window_segments += if is_slow_start { 1.0 } else { 1.0 / self.window_segments };
        } else if sent_ns >= self.last_halved_ns {
            self.window_segments = (self.window_segments / 2.0).max(1.0);
            self.threshold_segments = self.window_segments;
            self.last_halved_ns = now_ns;
        }
    }
}

/// Simulates all downloads. For each segment that arrives, calls `arrived` with the index of the sender, and with the
/// time at which the sender learns of the arrival.
pub fn download(line: &mut Line, rtt_ns: u64, mut senders: Vec<Sender>, mut arrived: impl FnMut(usize, u64)) {
    // The events: when a sender starts, and when a sender learns that a segment has arrived or was lost.
    let begins = senders.iter().enumerate().map(|(index, sender)| (sender.begin_ns, index, sender.begin_ns, None));
    let mut events: BinaryHeap<_> = begins.map(Reverse).collect();
    while let Some(Reverse((now_ns, index, sent_ns, has_arrived))) = events.pop() {
        let sender = &mut senders[index];
        if let Some(has_arrived) = has_arrived {
            sender.learns(now_ns, sent_ns, has_arrived);
            if has_arrived {
                arrived(index, now_ns);
            }
        }
        while now_ns < sender.end_ns && f64::from(sender.under_way) + 1.0 <= sender.window_segments {
            sender.under_way += 1;
            let (learns_ns, has_arrived) = match line.offer(now_ns, SEGMENT_BYTES as usize, sender.flow) {
                Fate::Due(due_ns) => (due_ns + rtt_ns / 2, true),
                // A sender notices a loss by the acknowledgements of later segments.
                Fate::Dropped(_) => (now_ns + rtt_ns, false),
            };
            events.push(Reverse((learns_ns, index, now_ns, Some(has_arrived))));
        }
    }
}
