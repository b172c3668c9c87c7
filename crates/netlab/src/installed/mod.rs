//! Servers that are installed on this machine, started for an experiment and ended with it. Linux only.
//!
//! Each is plain data, a [`Program`]: what is started, with which files. Everything lies in a folder of its own,
//! which is gone in the end.
//!
//! ```no_run
//! use std::time::Duration;
//! use ascertain_netlab::installed::{Running, nginx};
//!
//! let server = nginx("127.0.0.1:8080".parse()?, None).start()?;
//! std::fs::write(server.folder().join("www/page"), [0; 14_238])?;
//! // … requests for /page …
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In another namespace, where the command is to run and connections come from:
//!
//! ```ignore
//! nginx(address, None).start_where(|command| namespace.enter(command), || link.connect(address))?
//! ```

mod programs;
mod running;

pub use programs::{bind, caddy, iperf3, knot, nginx, nsd};
pub use running::{Program, Running};
