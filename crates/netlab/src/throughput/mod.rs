//! Measures throughput between a client and a listener: the bytes that arrive per interval, TCP retransmissions, lost
//! UDP datagrams, and the CPU time of both hosts.
//!
//! ```
//! use ascertain_netlab::throughput::{Listener, ListenerLimits, Token, TrafficSpec, measure};
//!
//! let token = Token::new()?;
//! let listener = Listener::bind("127.0.0.1:0".parse()?, token.clone(), ListenerLimits::default())?;
//! let spec = TrafficSpec { intervals: 2, ..TrafficSpec::default() };
//! let measurement = measure(&listener.address(), &token, &spec, &|| false)?;
//! assert_eq!(measurement.curve().bytes.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The client opens a control connection and all flows to the same port of the listener. The first message on each
//! connection contains the token. If a connection does not send the token, the listener closes it without an answer.
//! Strangers who find the open port therefore cannot use it. The token is sent in plain text, so anyone who can read
//! the traffic can read the token.
//!
//! The listener measures with only one client at a time, and sends datagrams only to the address of that client. It
//! sends to a port of the client only after that port has sent the session number. The client gets this number on the
//! control connection.
//!
//! Both hosts count in intervals that begin at the same moment. The client estimates the offset of the two clocks from
//! round trips on the control connection. The error of the estimate is at most half of the shortest round trip time.

mod bucket;
mod client;
mod counting;
mod datagrams;
mod flows;
mod listener;
mod message;
mod token;
mod traffic;

pub use bucket::{Bucket, Curve};
pub use client::{ClockOffset, Connector, FlowReport, Measurement, measure};
pub use counting::{FlowEnd, TcpStats};
pub use listener::{Listener, ListenerLimits, ListenerStats};
pub use message::{Malformed, Message};
pub use token::Token;
pub use traffic::{Direction, Refusal, TrafficSpec, Transport};
