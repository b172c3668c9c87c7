//! Servers that are installed on this machine, started for an experiment and ended with it. Linux only.
//!
//! Each is plain data, a [`Program`]: what is started, with which files. Everything lies in a folder of its own,
//! which is gone in the end.
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
//! On the far side of a [link](crate::Link), where the command is to run and is asked whether it is ready:
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
pub use running::{Folder, Program, Running, find, or_left_out, start_anywhere};
