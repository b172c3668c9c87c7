//! A provider that does not treat all flows alike.

use std::time::Duration;

use super::bucket::Tokens;
use super::{Favoured, Flow, TokenBucket};

/// A provider that drops what exceeds a rate, and favours some: those flows alone are let through, or, while there is
/// such a flow, every flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    /// What flows are held back to, all of them together.
    pub bucket: TokenBucket,
    /// With whom flows are let through.
    pub favoured: Vec<Favoured>,
    /// Lets every flow through until that long after the latest segment of a favoured one.
    pub lifted_for_all: Option<Duration>,
}

/// A throttle at work.
#[derive(Clone, Debug)]
pub(super) struct Throttling {
    tokens: Tokens,
    favoured: Vec<Favoured>,
    lifted_for_all_ns: Option<u64>,
    lifted_until_ns: Option<u64>,
}

impl Throttling {
    pub fn new(throttle: &Throttle) -> Self {
        let lifted_for_all = throttle.lifted_for_all;
        Self {
            tokens: Tokens::new(throttle.bucket),
            favoured: throttle.favoured.clone(),
            lifted_for_all_ns: lifted_for_all.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            lifted_until_ns: None,
        }
    }

    /// Whether it lets a segment through; what is favoured costs no tokens.
    pub fn lets_through(&mut self, now_ns: u64, nanobits: u128, flow: &Flow) -> bool {
        if self.favoured.iter().any(|favoured| favoured.takes_part_in(flow)) {
            self.lifted_until_ns = self.lifted_for_all_ns.map(|time_ns| now_ns.saturating_add(time_ns));
            return true;
        }
        if self.lifted_until_ns.is_some_and(|until_ns| now_ns <= until_ns) {
            return true;
        }
        let conforms = self.tokens.ready_ns(now_ns, nanobits) == now_ns;
        if conforms {
            self.tokens.spend(now_ns, nanobits);
        }
        conforms
    }
}
