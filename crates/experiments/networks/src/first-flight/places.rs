//! What pages come through and from: emulated links with servers behind them, and somebody's servers.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, Level, TargetError, Unavailable};
use ascertain_netlab::http::{Server, TlsVersion};
use ascertain_netlab::installed::{Program, Running, caddy, nginx};
use ascertain_netlab::{Carrier, Error, Link, RunningLink};

use super::{Host, KERNEL, WAYS, Way};
use crate::links::{self, failed};
use crate::url::Url;

/// Servers listen from this port on.
const FIRST_PORT: u16 = 8000;

/// Links that are alike are one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkKey {
    pub rtt_ms: u64,
    pub window: u64,
    congestion: Option<String>,
}

impl LinkKey {
    pub fn of(arm: &Arm) -> Result<Self, TargetError> {
        let congestion = arm.point.get("congestion").map(Level::to_string).filter(|name| name != KERNEL);
        Ok(Self { rtt_ms: arm.integer("rtt_ms")?, window: arm.integer("window")?, congestion })
    }

    /// Each segment is to be a frame of its own, for the kernel counts frames: so it is on a TUN without offloads, and
    /// on virtual Ethernet, which is left where there is no TUN.
    fn link(&self) -> Link {
        let link = Link {
            rtt: Duration::from_millis(self.rtt_ms),
            initial_window_segments: u32::try_from(self.window).ok(),
            congestion_control: self.congestion.clone(),
            carrier: Some(Carrier::Tun { has_offloads: false }),
            ..Link::default()
        };
        if links::is_available(&link).is_ok() { link } else { Link { carrier: None, ..link } }
    }
}

pub fn way_of(arm: &Arm) -> Result<Way, TargetError> {
    let way = WAYS.into_iter().find(|way| way.name == arm.variant);
    way.ok_or_else(|| TargetError::Failed(format!("{arm}: there is no such variant")))
}

impl Way {
    /// The program that answers; none for our own server.
    fn program(self, address: SocketAddr) -> Option<Program> {
        match self.host {
            Host::Own => None,
            Host::Nginx => Some(nginx(address, self.tls)),
            Host::Caddy => Some(caddy(address, self.tls)),
        }
    }
}

/// Whether there is such a link, and the server.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let way = way_of(arm).map_err(Unavailable::other)?;
    match Url::of(arm, "url") {
        Ok(Some(url)) if way.host != Host::Own => return Err(Unavailable::levels(format!("{url} has its own server"))),
        Ok(Some(url)) if way.tls.is_some() != url.is_secure => {
            return Err(Unavailable::levels(format!("{url} is for {}", if url.is_secure { "TLS" } else { "`http`" })));
        }
        // An address that cannot be read is reported when the run begins.
        Ok(Some(_)) | Err(_) => return Ok(()),
        Ok(None) => {}
    }
    if let Some(program) = way.program(([127, 0, 0, 1], FIRST_PORT).into()) {
        program.is_installed().map_err(Unavailable::other)?;
    }
    links::is_available(&LinkKey::of(arm).map_err(Unavailable::other)?.link())
}

/// A server, at the far side of a link or elsewhere.
pub enum Serving {
    Own(Server),
    Installed(Running),
    Elsewhere(Url, SocketAddr),
}

impl Serving {
    fn start(way: Way, link: &RunningLink, port: u16) -> Result<Self, Error> {
        let address = SocketAddr::from((link.far().address(), port));
        if let Some(program) = way.program(address) {
            let place = |command: &mut _| link.far().enter(command);
            return program.start_where(place, || link.near().connect(address)).map(Self::Installed);
        }
        let listener = link.far().listen(address).map_err(Error::Server)?;
        Server::start(listener, way.tls.as_ref().map(std::slice::from_ref)).map(Self::Own)
    }

    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Own(server) => server.address(),
            Self::Installed(running) => running.address(),
            Self::Elsewhere(_, address) => *address,
        }
    }

    /// Where a page of that size is, which is made if it is not there yet.
    pub fn page(&self, bytes: u64) -> Result<String, TargetError> {
        let running = match self {
            Self::Own(_) => return Ok(format!("/bytes/{bytes}")),
            Self::Elsewhere(url, _) => return Ok(url.path.clone()),
            Self::Installed(running) => running,
        };
        let path = running.folder().join(format!("www/{bytes}"));
        if !path.exists() {
            fs::write(path, vec![b'x'; bytes as usize]).map_err(failed)?;
        }
        Ok(format!("/{bytes}"))
    }
}

/// The links and servers of a session, which arms share where they can.
#[derive(Default)]
pub struct Places {
    links: BTreeMap<LinkKey, Rc<RunningLink>>,
    servers: Vec<(LinkKey, Host, Option<TlsVersion>, Rc<Serving>)>,
}

impl Places {
    pub fn link(&mut self, key: &LinkKey) -> Result<Rc<RunningLink>, Error> {
        if let Some(link) = self.links.get(key) {
            return Ok(link.clone());
        }
        let link = Rc::new(key.link().start()?);
        self.links.insert(key.clone(), link.clone());
        Ok(link)
    }

    pub fn server(&mut self, key: &LinkKey, way: Way, link: &RunningLink) -> Result<Rc<Serving>, Error> {
        let is_it = |(of, host, tls, _): &&(_, _, _, _)| of == key && *host == way.host && *tls == way.tls;
        if let Some((.., server)) = self.servers.iter().find(is_it) {
            return Ok(server.clone());
        }
        let server = Rc::new(Serving::start(way, link, FIRST_PORT + self.servers.len() as u16)?);
        self.servers.push((key.clone(), way.host, way.tls, server.clone()));
        Ok(server)
    }
}
