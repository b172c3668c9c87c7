//! How much goes through a network, between a listener and whoever asks it: bytes by interval at the receiver, what TCP
//! sent again, what UDP lost, and the CPU time of both ends.
//!
//! ```
//! use ascertain_netlab::throughput::{Limits, Listener, Plan, Token, measure};
//!
//! let token = Token::new()?;
//! let listener = Listener::bind("127.0.0.1:0".parse()?, token.clone(), Limits::default())?;
//! let plan = Plan { intervals: 2, ..Plan::default() };
//! let measured = measure(&listener.address(), &token, &plan, &|| false)?;
//! assert_eq!(measured.curve().bytes.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The control connection and every flow come from the client, to one port; the token comes first on each. What lacks
//! it is hung up on without a word. The token is sent as it is, so that who can read the line has it: it is there for
//! an open port, not for a secret. One client is measured at a time. Datagrams are sent only to an address that a
//! control connection came from, and there only to a port that has said the session's number, which was told by that
//! connection.
//!
//! Both ends count in intervals that begin at one moment. What separates their clocks is estimated from round trips on
//! the control connection: it is known to half of the shortest one.

mod bucket;
mod client;
mod clock;
mod counting;
mod datagrams;
mod flows;
mod listener;
mod message;
mod plan;
mod stream;
mod token;

pub use bucket::{Bucket, Curve};
pub use client::{Flow, Measured, Reach, measure};
pub use clock::Offset;
pub use counting::{End, Tcp};
pub use listener::{Limits, Listener, Served};
pub use message::{Message, Strange};
pub use plan::{Direction, Plan, Refusal, Transport};
pub use token::Token;
