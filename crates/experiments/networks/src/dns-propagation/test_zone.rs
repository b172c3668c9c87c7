//! Opens the zone of an arm: a simulated zone behind an emulated link, or a zone on real servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, Setup, TargetError};
use ascertain_engine::finding::Remark;
use ascertain_netlab::dns::{Name, RecordType, SimulationSpec, ZoneServer};
use ascertain_netlab::{Link, RunningLink};
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::Environment;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::authorities::{Authorities, Family, authorities, resolver_here};
use super::exec::Exec;
use super::hosted::ProviderOptions;
use super::primary::{Primary, key_here};
use super::providers::{Provider, notes_folder};
use super::rules::{parse_name, parse_type};
use super::{APART, CLOUD_DNS, RFC2136, ROUTE53, WATCH, cloud_dns, is_simulated, route53};
use crate::levels::{given, milliseconds};
use crate::links::failed;
use crate::name_servers::{address, addresses};

/// Largest random deviation of a simulated delay, as a share of that delay. The deviations differ from change to
/// change.
const JITTER: f64 = 0.05;

/// The record that another program changes, and its expected value.
pub struct WatchedRecord {
    pub name: Name,
    pub kind: RecordType,
    pub expected: String,
}

/// A zone, its servers, and the provider or other program that changes it.
pub struct TestZone {
    pub zone: Name,
    /// Name and address of each server.
    pub servers: Vec<(String, SocketAddr)>,
    /// Names of the servers that cannot be queried, because no usable address is known for them.
    unreachable: Vec<String>,
    pub changed_by: ChangedBy,
    /// The simulated zone, if there is one. Dropping it ends the simulation.
    _simulation: Option<ZoneServer>,
    /// The folder with the [notes](super::providers::Note) about records that this program adds.
    pub notes: PathBuf,
    // Dropped last: the link must outlive all that uses it.
    pub link: Option<Arc<RunningLink>>,
}

/// The program that changes the zone.
pub enum ChangedBy {
    /// This program changes the zone, through a provider's interface.
    Us(Box<dyn Provider>),
    /// Another program changes the record; the run waits until the servers have the change.
    Others(WatchedRecord),
}

impl TestZone {
    pub fn open(arm: &Arm, setup: &Setup) -> Result<Self, TargetError> {
        if is_simulated(arm) {
            return Self::simulated(arm, setup.seed);
        }
        Self::real(arm, &setup.stop).map_err(TargetError::Failed)
    }

    fn simulated(arm: &Arm, seed: u64) -> Result<Self, TargetError> {
        let loss = arm.integer("loss_percent")? as f64 / 100.0;
        let link = Link { rtt: milliseconds(arm, "rtt_ms")?, loss, seed, ..Link::default() };
        let link = Arc::new(link.start().map_err(failed)?);
        let spec = simulation_spec(arm, seed)?;
        let (zone, count) = (spec.origin.clone(), spec.servers.len() as u8);
        // Each server has its own address in the network at the far side of the link.
        let [a, b, c, host] = link.far().address().octets();
        let sockets: Result<Vec<UdpSocket>, _> =
            (1..=count).map(|number| link.far().udp(([a, b, c, host + number], 53))).collect();
        let primary = link.far().listen((link.far().address(), 53)).map_err(failed)?;
        let simulation = ZoneServer::start(spec, primary, sockets.map_err(failed)?).map_err(failed)?;
        let servers = simulation.servers().iter().enumerate();
        let primary = Primary::simulated(simulation.primary(), link.clone(), milliseconds(arm, "done_after_ms")?);
        Ok(Self {
            zone,
            servers: servers.map(|(number, at)| (format!("ns{number}"), *at)).collect(),
            unreachable: Vec::new(),
            changed_by: ChangedBy::Us(Box::new(primary)),
            _simulation: Some(simulation),
            notes: notes_folder(),
            link: Some(link),
        })
    }

    fn real(arm: &Arm, stop: &Stop) -> Result<Self, String> {
        let text = |factor| given(arm, factor).unwrap_or_default();
        let is_watched = arm.variant == WATCH;
        let given_name = text(if is_watched { "record" } else { "zone" });
        let name = parse_name(&given_name)?;
        let Authorities { name, zone, servers, unreachable } = match given(arm, "addresses") {
            Some(listed) => {
                let servers = addresses(&listed)?.into_iter().map(|at| (at.to_string(), at)).collect();
                Authorities { zone: name.clone(), name, servers, unreachable: Vec::new() }
            }
            None => {
                let resolver = given(arm, "resolver").map_or_else(resolver_here, |resolver| address(&resolver))?;
                // A watched record that is itself an alias is in the zone of its own name, so the alias is not
                // followed.
                let follows_aliases = is_watched && !text("type").eq_ignore_ascii_case("CNAME");
                let family = match &*text("family") {
                    "4" => Family::V4,
                    "6" => Family::V6,
                    _ => Family::Both,
                };
                authorities(&name, follows_aliases, family, resolver)?
            }
        };
        // Only a zone that the user named may be changed. A mistyped name would otherwise lead to its parent zone.
        if !is_watched && zone != name {
            return Err(format!("`{given_name}` is not a zone; it is in {zone}"));
        }
        let options = ProviderOptions {
            environment: Environment::from_process(),
            zone_id: given(arm, "zone_id"),
            project: given(arm, "project"),
            endpoint: given(arm, "endpoint"),
            limit: Duration::from_secs(arm.integer("limit_s").map_err(|error| error.to_string())?),
        };
        let changed_by = match arm.variant.as_str() {
            ROUTE53 => ChangedBy::Us(Box::new(route53::open(&options)?.find(&zone, stop)?)),
            CLOUD_DNS => ChangedBy::Us(Box::new(cloud_dns::open(&options)?.find(&zone, stop)?)),
            RFC2136 => ChangedBy::Us(Box::new(Primary::new(address(&text("server"))?, key_here()?))),
            WATCH => {
                ChangedBy::Others(WatchedRecord { name, kind: parse_type(&text("type"))?, expected: text("expect") })
            }
            // `clean` may read the note in another working directory, so the program's path is made absolute.
            _ => {
                let program = std::path::absolute(text("exec")).map_err(|error| error.to_string())?;
                ChangedBy::Us(Box::new(Exec::new(program)))
            }
        };
        let (servers, notes) = (of_one_family(servers), notes_folder());
        Ok(Self { zone, servers, unreachable, changed_by, _simulation: None, notes, link: None })
    }

    /// Returns `true` if another program changes the zone.
    pub fn is_watched(&self) -> bool {
        matches!(self.changed_by, ChangedBy::Others(_))
    }

    /// Returns the index of the zone's server to which the provider sends changes, or `None` if none of them receives
    /// changes.
    pub fn primary(&self) -> Option<usize> {
        let ChangedBy::Us(provider) = &self.changed_by else { return None };
        let primary = provider.server()?;
        let same = |at: &SocketAddr| (at.ip().to_canonical(), at.port());
        self.servers.iter().position(|(_, at)| same(at) == same(&primary))
    }

    /// Returns a remark about the servers that cannot be queried, because no usable address is known for them. Returns
    /// `None` if all servers can be queried.
    pub fn no_address(&self) -> Option<Remark> {
        let servers = self.unreachable.clone();
        (!servers.is_empty()).then_some(Remark::NoAddress { servers })
    }

    /// Opens a UDP socket on a new port, from which all servers can be queried.
    pub fn socket(&self) -> Result<UdpSocket, TargetError> {
        let is_ipv4 = self.servers.iter().all(|(_, address)| address.is_ipv4());
        match &self.link {
            Some(link) => link.near().udp((link.near().address(), 0)),
            None if is_ipv4 => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
            None => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
        }
        .map_err(failed)
    }

    /// Returns the times at which the replicas of each server received the newest version of the zone. The times are
    /// readings of the clock `now_ns`.
    #[cfg(test)]
    pub fn truth(&self) -> Vec<Vec<u64>> {
        let truth = self._simulation.as_ref().map(ZoneServer::truth).unwrap_or_default();
        let newest = truth.iter().map(|had| had.serial).max();
        let of_server = |server| {
            let had = truth.iter().filter(|had| had.server == server && Some(had.serial) == newest);
            had.map(|had| had.at_ns).collect()
        };
        (0..self.servers.len()).map(of_server).collect()
    }
}

/// Makes all addresses reachable from one socket: if any address is IPv6, IPv4 addresses are mapped to IPv6.
fn of_one_family(mut servers: Vec<(String, SocketAddr)>) -> Vec<(String, SocketAddr)> {
    if servers.iter().any(|(_, address)| address.is_ipv6()) {
        for (_, address) in &mut servers {
            if let IpAddr::V4(ip) = address.ip() {
                *address = (ip.to_ipv6_mapped(), address.port()).into();
            }
        }
    }
    servers
}

/// Returns the simulation of an arm's zone. With `together`, all servers receive a change at the same time, but the
/// replicas of each server receive it one after the other. With `apart`, the servers receive it one after the other. In
/// both cases, the delays grow in equal steps up to `slowest_ms`.
fn simulation_spec(arm: &Arm, seed: u64) -> Result<SimulationSpec, TargetError> {
    let (servers, replicas) = (arm.integer("servers")?, arm.integer("replicas")?);
    let slowest = milliseconds(arm, "slowest_ms")?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let part = |turn: u64, of: u64| (turn + 1) as f64 / of as f64;
    let mut delay = |server, replica| {
        slowest.mul_f64(match arm.variant.as_str() {
            // The delays of a server's replicas differ by less than those of two servers.
            APART => part(server, servers) * rng.random_range(0.9..1.0),
            _ => part(replica, replicas),
        })
    };
    let delays = (0..servers).map(|server| (0..replicas).map(|replica| delay(server, replica)).collect()).collect();
    Ok(SimulationSpec { has_nsid: true, jitter: JITTER, seed, ..SimulationSpec::new(delays) })
}
