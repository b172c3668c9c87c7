//! Downloads through the model of a link, on a virtual clock: for tests of what is found in them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ascertain_netlab::model::{Fate, Flow, Line};

/// As large as its IP packet is.
pub const SEGMENT_BYTES: u64 = 1500;

/// Somebody who downloads.
pub struct Sender {
    flow: Flow,
    /// As Reno has them: the window grows by a segment for each that arrives, or for a whole window; loss halves it.
    window_segments: f64,
    threshold_segments: f64,
    under_way: u32,
    last_halved_ns: u64,
    /// When it downloads.
    begin_ns: u64,
    end_ns: u64,
}

impl Sender {
    /// From that port, for that time.
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

/// All of their downloads; of each segment that arrives it is told whose it is, and when he learns of that.
pub fn download(line: &mut Line, rtt_ns: u64, mut senders: Vec<Sender>, mut arrived: impl FnMut(usize, u64)) {
    // When a sender learns something: it begins, or a segment of that moment arrived, or did not.
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
                // What came behind it shows that.
                Fate::Dropped(_) => (now_ns + rtt_ns, false),
            };
            events.push(Reverse((learns_ns, index, now_ns, Some(has_arrived))));
        }
    }
}
