//! Servers that are installed on this machine. An experiment starts these servers, and stops them at its end. This
//! module exists only on Linux.
//!
//! A [`Program`] is plain data: the command to start, and its files. A running program has its own temporary folder,
//! which is removed when the program ends.
//!
//! ```no_run
//! use ascertain_netlab::installed::nginx;
//!
//! let server = nginx("127.0.0.1:8080".parse()?, None).start()?;
//! std::fs::write(server.folder().join("www/page"), [0; 14_238])?;
//! // … requests for /page …
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To start a server on the far side of a [link](crate::Link), pass two functions. The first one makes the command run
//! there. The second one connects to the server from there, to check whether it is ready:
//!
//! ```no_run
//! # use ascertain_netlab::{Link, installed::nginx};
//! # let link = Link::default().start()?;
//! let (far, address) = (link.far(), (link.far().address(), 8080).into());
//! nginx(address, None).start_where(|command| far.enter(command), || far.connect(address))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod programs;
mod running;

pub use programs::{
    AZURITE_KEY, azurite, bind, caddy, iperf3, knot, make_container, minio, nginx, nginx_with_kernel_tls, nsd,
};
pub use running::{Folder, Program, RunningProgram, find, or_left_out, start_anywhere};
