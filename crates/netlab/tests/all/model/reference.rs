//! A slow reference implementation of the link model, which simulates every nanosecond.

use std::collections::VecDeque;

use ascertain_netlab::model::{Conditions, Fate, Flow, TokenBucket, Why};

/// Returns the outcomes for these segments. Each segment has a time, a size and a flow; times must not decrease.
pub fn fates(conditions: &Conditions, segments: &[(u64, usize, Flow)]) -> Vec<Fate> {
    let mut line = Stepped {
        conditions,
        now_ns: 0,
        waiting: VecDeque::new(),
        on_wire: None,
        spare: 0,
        tokens: conditions.bucket.map(Tokens::full),
        throttle: conditions.throttle.as_ref().map(|throttle| Tokens::full(throttle.bucket)),
        favoured_ns: None,
        fates: vec![None; segments.len()],
    };
    let mut offered = 0;
    while line.fates.iter().any(Option::is_none) {
        line.send_what_can_go();
        while let Some((_, bytes, flow)) = segments.get(offered).filter(|(at_ns, ..)| *at_ns == line.now_ns) {
            line.offer(offered, *bytes, flow);
            offered += 1;
        }
        line.pass_a_nanosecond();
    }
    line.fates.into_iter().map(Option::unwrap).collect()
}

struct Tokens {
    bucket: TokenBucket,
    held: i128,
}

struct Stepped<'a> {
    conditions: &'a Conditions,
    now_ns: u64,
    /// The indexes and sizes of the waiting segments.
    waiting: VecDeque<(usize, usize)>,
    /// The index of the segment on the wire, and its part that is not sent yet, in billionths of a bit.
    on_wire: Option<(usize, i128)>,
    /// The amount that the wire could still have sent in the last nanosecond, in billionths of a bit.
    spare: i128,
    tokens: Option<Tokens>,
    throttle: Option<Tokens>,
    /// The time of the latest segment of a flow that the throttle does not limit (a favoured flow).
    favoured_ns: Option<u64>,
    fates: Vec<Option<Fate>>,
}

/// Converts a number of bytes to billionths of a bit, so that the amount sent in a nanosecond is a whole number.
fn work(bytes: usize) -> i128 {
    bytes as i128 * 8 * 1_000_000_000
}

impl Tokens {
    fn full(bucket: TokenBucket) -> Self {
        Self { bucket, held: work(bucket.burst_bytes as usize) }
    }

    fn spend(&mut self, bytes: usize) -> bool {
        let goes = self.held >= work(bytes).min(work(self.bucket.burst_bytes as usize));
        if goes {
            self.held -= work(bytes);
        }
        goes
    }

    fn pass_a_nanosecond(&mut self) {
        let full = work(self.bucket.burst_bytes as usize);
        self.held = full.min(self.held + i128::from(self.bucket.rate_bits_per_s));
    }
}

impl Stepped<'_> {
    fn offer(&mut self, number: usize, bytes: usize, flow: &Flow) {
        if self.is_throttled(bytes, flow) {
            self.fates[number] = Some(Fate::Dropped(Why::Throttled));
            return;
        }
        self.waiting.push_back((number, bytes));
        self.send_what_can_go();
        if self.waiting.iter().map(|(_, bytes)| bytes).sum::<usize>() > self.conditions.queue_bytes {
            self.waiting.pop_back();
            self.fates[number] = Some(Fate::Dropped(Why::QueueFull));
        }
    }

    fn is_throttled(&mut self, bytes: usize, flow: &Flow) -> bool {
        let (Some(throttle), Some(tokens)) = (&self.conditions.throttle, &mut self.throttle) else {
            return false;
        };
        if throttle.favoured.iter().any(|favoured| favoured.takes_part_in(flow)) {
            self.favoured_ns = Some(self.now_ns);
            return false;
        }
        let is_lifted = throttle
            .lifted_for_all
            .zip(self.favoured_ns)
            .is_some_and(|(time, favoured_ns)| u128::from(self.now_ns - favoured_ns) <= time.as_nanos());
        !is_lifted && !tokens.spend(bytes)
    }

    fn send_what_can_go(&mut self) {
        while self.on_wire.is_none() {
            let Some((number, bytes)) = self.waiting.front().copied() else { return };
            if self.tokens.as_mut().is_some_and(|tokens| !tokens.spend(bytes)) {
                return;
            }
            self.waiting.pop_front();
            self.on_wire = Some((number, work(bytes) - std::mem::take(&mut self.spare)));
            self.arrive();
        }
    }

    /// If the segment on the wire is completely sent, sets its outcome and removes it from the wire.
    fn arrive(&mut self) {
        let Some((number, left)) = self.on_wire else { return };
        if self.conditions.rate_bits_per_s.is_none() || left <= 0 {
            let is_lost = self.conditions.lost.contains(&(number as u64));
            let due_ns = self.now_ns + self.conditions.delay.as_nanos() as u64;
            self.fates[number] = Some(if is_lost { Fate::Dropped(Why::Lost) } else { Fate::Due(due_ns) });
            self.on_wire = None;
            self.spare = -left.min(0);
        }
    }

    fn pass_a_nanosecond(&mut self) {
        self.now_ns += 1;
        // The spare amount is lost, because no segment followed immediately.
        self.spare = 0;
        if let (Some((_, left)), Some(rate)) = (&mut self.on_wire, self.conditions.rate_bits_per_s) {
            *left -= i128::from(rate);
        }
        self.arrive();
        for tokens in [&mut self.tokens, &mut self.throttle].into_iter().flatten() {
            tokens.pass_a_nanosecond();
        }
    }
}
