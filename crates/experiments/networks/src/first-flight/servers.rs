//! The servers of pages: at the far side of emulated links, or at a user's address.

use std::net::SocketAddr;
use std::rc::Rc;

use ascertain_engine::experiment::{Arm, TargetError, Unavailable};
use ascertain_netlab::http::{Server, TlsVersion};
use ascertain_netlab::installed::{Program, RunningProgram, caddy, nginx};
use ascertain_netlab::{Carrier, Error, Link, RunningLink};

use super::{Host, KERNEL, SERVER_VARIANTS, ServerVariant};
use crate::levels::{milliseconds, word};
use crate::links::{self, failed, shared};
use crate::url::Url;

/// Port of a session's first server; each further server listens on the next port.
const FIRST_PORT: u16 = 8000;

/// Returns the arm's emulated link. The experiment counts the frames that the kernel receives, so each segment must be
/// a frame of its own. A TUN device without offloads ensures this. If this machine has no TUN, the link uses virtual
/// Ethernet, which ensures it too.
pub fn link_spec(arm: &Arm) -> Result<Link, TargetError> {
    let link = Link {
        rtt: milliseconds(arm, "rtt_ms")?,
        initial_window_segments: u32::try_from(arm.integer("window")?).ok(),
        congestion_control: Some(word(arm, "congestion")).filter(|name| *name != KERNEL).map(String::from),
        carrier: Some(Carrier::Tun { has_offloads: false }),
        ..Link::default()
    };
    Ok(if links::is_available(&link).is_ok() { link } else { Link { carrier: None, ..link } })
}

impl ServerVariant {
    pub fn from_arm(arm: &Arm) -> Result<Self, TargetError> {
        let variant = SERVER_VARIANTS.into_iter().find(|variant| variant.name == arm.variant);
        variant.ok_or_else(|| TargetError::Failed(format!("{arm}: unknown variant")))
    }

    /// Returns the installed program that serves the page; `None` for our own server.
    fn program(self, address: SocketAddr) -> Option<Program> {
        match self.host {
            Host::Own => None,
            Host::Nginx => Some(nginx(address, self.tls)),
            Host::Caddy => Some(caddy(address, self.tls)),
        }
    }
}

/// Checks that this machine has the arm's link and server. If the user gave the page's address, checks that the variant
/// fits the address.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let variant = ServerVariant::from_arm(arm).map_err(Unavailable::other)?;
    match Url::from_arm(arm, "url") {
        Ok(Some(url)) if variant.host != Host::Own => {
            return Err(Unavailable::levels(format!(
                "a variant with `nginx` or `caddy` starts its own server and cannot measure {url}; use another variant"
            )));
        }
        Ok(Some(url)) if variant.tls.is_some() != url.is_secure => {
            return Err(Unavailable::levels(format!(
                "{url} needs {}",
                if url.is_secure { "a variant with TLS" } else { "the variant `http`" }
            )));
        }
        // If the address is invalid, that is reported when the run begins.
        Ok(Some(_)) | Err(_) => return Ok(()),
        Ok(None) => {}
    }
    if let Some(program) = variant.program(([127, 0, 0, 1], FIRST_PORT).into()) {
        program.is_installed().map_err(Unavailable::other)?;
    }
    links::is_available(&link_spec(arm).map_err(Unavailable::other)?)
}

/// A server of pages. It is either at the far side of a link (our own server or an installed program), or at an address
/// that the user gave.
pub enum PageServer {
    Own(Server),
    Installed(RunningProgram),
    Elsewhere(Url, SocketAddr),
}

impl PageServer {
    fn start(variant: ServerVariant, link: &RunningLink, port: u16) -> Result<Self, Error> {
        let address = SocketAddr::from((link.far().address(), port));
        if let Some(program) = variant.program(address) {
            let place = |command: &mut _| link.far().enter(command);
            return program.start_where(place, || link.near().connect(address)).map(Self::Installed);
        }
        let listener = link.far().listen(address).map_err(Error::Server)?;
        Server::start(listener, variant.tls.as_ref().map(std::slice::from_ref)).map(Self::Own)
    }

    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Own(server) => server.address(),
            Self::Installed(running) => running.address(),
            Self::Elsewhere(_, address) => *address,
        }
    }

    /// Returns the path of a page with a body of `bytes` bytes; for an installed program, creates the page first. At an
    /// address that the user gave, there is only one page.
    pub fn page(&self, bytes: u64) -> Result<String, TargetError> {
        match self {
            Self::Own(_) => Ok(format!("/bytes/{bytes}")),
            Self::Elsewhere(url, _) => Ok(url.path.clone()),
            Self::Installed(running) => running.make_page(bytes).map_err(failed),
        }
    }
}

/// Identifies a server by its link, its host and the version of TLS. Arms with the same key share a server.
type ServerKey = (*const RunningLink, Host, Option<TlsVersion>);

/// The links and servers of a session, so that arms can share them.
#[derive(Default)]
pub struct SharedServers {
    links: Vec<(Link, Rc<RunningLink>)>,
    servers: Vec<(ServerKey, Rc<PageServer>)>,
}

impl SharedServers {
    pub fn link(&mut self, spec: &Link) -> Result<Rc<RunningLink>, TargetError> {
        shared(&mut self.links, spec.clone(), || spec.start().map_err(failed))
    }

    pub fn server(&mut self, variant: ServerVariant, link: &Rc<RunningLink>) -> Result<Rc<PageServer>, TargetError> {
        let (key, port) = ((Rc::as_ptr(link), variant.host, variant.tls), FIRST_PORT + self.servers.len() as u16);
        shared(&mut self.servers, key, || PageServer::start(variant, link, port).map_err(failed))
    }
}
