//! The effects of a link on the packets sent over it, on a virtual clock. The model does no input or output, has no
//! threads, and reads no clock.
//!
//! A link has two directions, each a [`Line`] under its own [`Conditions`]. The carrier, which moves the segments,
//! offers each segment to the line. The line immediately returns the time at which the segment is due at the far end,
//! or the reason why it never arrives. Due times never decrease, so a carrier needs only a first-in-first-out queue of
//! segments.
//!
//! A segment passes these stages, in this order:
//!
//! 1. the [`Throttle`], which drops traffic above its rate, except on favoured flows;
//! 2. the queue, which drops segments that do not fit;
//! 3. the [`TokenBucket`]: the segment waits for tokens at the head of the queue;
//! 4. the wire, which sends one segment after the other at the rate;
//! 5. loss: a lost segment still takes up time on the wire;
//! 6. the delay.
//!
//! The size of a segment is the size of its IP packet, with headers but without Ethernet framing. A TUN device and a
//! pair of Ethernet devices therefore have the same conditions.
//!
//! Times are whole nanoseconds since a zero that the carrier chooses. Rates are exact over any length of time: a due
//! time is rounded by up to a nanosecond, but rounding errors do not add up. No input causes an overflow: a due time
//! that is too large becomes `u64::MAX` (584 years). If `now_ns` is earlier than in a previous call, the latest
//! `now_ns` so far is used instead.

mod line;
mod shaping;

pub use line::{Conditions, Counts, Fate, Line, Tally, Why};
pub use shaping::{Favoured, Flow, Throttle, TokenBucket};
