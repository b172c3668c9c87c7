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
//! The client opens a control connection and all flows, each to the same port of the listener. On each connection it
//! first sends the token. The listener closes a connection without the token, and sends no answer. So strangers who
//! find an open port cannot use it. The token is sent in plain text, so it is not a secret from those who can read the
//! traffic.
//!
//! The listener measures with only one client at a time. It sends datagrams only to the address of that client. A port
//! of the client must first send the session number, which the listener announced on the control connection. Only then
//! does the listener send datagrams to that port.
//!
//! Both hosts count in intervals that begin at the same moment. The offset of their clocks is estimated from round
//! trips on the control connection. The error of the estimate is at most half of the shortest round trip.

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
