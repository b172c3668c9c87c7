//! What a link does to what is sent over it, on a virtual clock: no input or output, no threads, and no time of its
//! own.
//!
//! A link has two directions, each a [`Line`] under its own [`Conditions`]. Whoever carries the segments offers each
//! one as it comes, and learns at once when it is due at the far end, or why it never arrives. Due times never
//! decrease, so that a plain first-in-first-out queue of them is all that a carrier needs.
//!
//! A segment meets, in this order:
//!
//! 1. the [`Throttle`], which drops what exceeds its rate, unless the flow is favoured;
//! 2. the queue, which drops what does not fit into it;
//! 3. the [`TokenBucket`], whose tokens it waits for at the head of the queue;
//! 4. the wire, which takes its time to send it at the rate, one segment after the other;
//! 5. loss, on the wire: a lost segment took its time too;
//! 6. the delay.
//!
//! The size of a segment is that of its IP packet, with headers and without what an Ethernet adds, so that a TUN and a
//! pair of Ethernet devices have the same conditions.
//!
//! Times are whole nanoseconds from whatever the carrier calls zero. Rates are exact over any length of time: what is
//! rounded, up to a nanosecond, is when a segment is due, never what follows it. Whatever the input is, nothing
//! overflows: what would be due after `u64::MAX` is due then, which is in 584 years, and a `now_ns` before the latest
//! one counts as that.

mod conditions;
mod line;
mod shaping;

pub use conditions::Conditions;
pub use line::{Counts, Fate, Line, Tally, Why};
pub use shaping::{Favoured, Flow, Throttle, TokenBucket};
