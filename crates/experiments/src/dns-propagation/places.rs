//! Whom to ask, and who changes what they know: simulated zones through an emulated link.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use ascertain_engine::experiment::{Arm, TargetError, Unavailable};
use ascertain_netlab::dns::{Change, Name, Plan, Served, exchange, update};
use ascertain_netlab::{Link, RunningLink};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::APART;
use crate::links::{self, failed};

/// As long as a server may take to answer what changes its zone.
const PATIENCE: Duration = Duration::from_secs(20);
/// By what part the simulated delays differ from one change to the next.
const JITTER: f64 = 0.05;

/// Whether there are links.
pub fn is_available(_: &Arm) -> Result<(), Unavailable> {
    links::is_available(&Link::default())
}

/// A zone, its servers, and how it is changed.
pub struct Place {
    pub zone: Name,
    /// Their names, and where they are.
    pub servers: Vec<(String, SocketAddr)>,
    /// How long its provider takes to say that a change is done.
    done_after: Duration,
    served: Served,
    // Ends after what goes through it.
    pub link: RunningLink,
}

impl Place {
    pub fn of(arm: &Arm, seed: u64) -> Result<Self, TargetError> {
        let link = Link {
            rtt: Duration::from_millis(arm.integer("rtt_ms")?),
            loss: arm.integer("loss_percent")? as f64 / 100.0,
            seed,
            ..Link::default()
        };
        let link = link.start().map_err(failed)?;
        let plan = plan(arm, seed)?;
        let (zone, count) = (plan.origin.clone(), plan.servers.len() as u8);
        // A host of the far net each.
        let [a, b, c, host] = link.far().address().octets();
        let sockets: Result<Vec<UdpSocket>, _> =
            (1..=count).map(|number| link.far().udp(([a, b, c, host + number], 53))).collect();
        let primary = link.far().listen((link.far().address(), 53)).map_err(failed)?;
        let served = Served::start(plan, primary, sockets.map_err(failed)?).map_err(failed)?;
        let servers = served.servers().iter().enumerate().map(|(number, at)| (format!("ns{number}"), *at)).collect();
        let done_after = Duration::from_millis(arm.integer("done_after_ms")?);
        Ok(Self { zone, servers, done_after, served, link })
    }

    /// A socket to ask from.
    pub fn socket(&self) -> Result<UdpSocket, TargetError> {
        self.link.near().udp((self.link.near().address(), 0)).map_err(failed)
    }

    /// Changes the zone, and waits until its provider says that this is done.
    pub fn change(&self, change: &Change, number: u16) -> Result<(), TargetError> {
        let mut request = update(&self.zone, change, None, number, 0).map_err(failed)?;
        let mut stream = self.link.near().connect(self.served.primary()).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let answer = exchange(&mut stream, &request.bytes).map_err(failed)?;
        request.accept(&answer).map_err(failed)?;
        std::thread::sleep(self.done_after);
        Ok(())
    }

    /// When the replicas really had the newest version, on the clock of `now_ns`, of each server.
    #[cfg(test)]
    pub fn truth(&self) -> Vec<Vec<u64>> {
        let truth = self.served.truth();
        let newest = truth.iter().map(|had| had.serial).max();
        let of_server = |server| {
            let had = truth.iter().filter(|had| had.server == server && Some(had.serial) == newest);
            had.map(|had| had.at_ns).collect()
        };
        (0..self.servers.len()).map(of_server).collect()
    }
}

/// Where replicas stand together, place after place has what is new, for all servers at once; else server after server.
/// The last of them takes `slowest_ms`, and the others as many parts of it as it is their turn.
fn plan(arm: &Arm, seed: u64) -> Result<Plan, TargetError> {
    let (servers, replicas) = (arm.integer("servers")?, arm.integer("replicas")?);
    let slowest_ms = arm.integer("slowest_ms")? as f64;
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let part = |turn: u64, of: u64| (turn + 1) as f64 / of as f64;
    let mut delay = |server, replica| match arm.variant.as_str() {
        // Its replicas differ by less than servers do.
        APART => part(server, servers) * chance.random_range(0.9..1.0),
        _ => part(replica, replicas),
    };
    let mut of_server = |server| -> Vec<Duration> {
        (0..replicas).map(|replica| Duration::from_secs_f64(slowest_ms / 1e3 * delay(server, replica))).collect()
    };
    let servers = (0..servers).map(&mut of_server).collect();
    Ok(Plan { has_nsid: true, jitter: JITTER, seed, ..Plan::new(servers) })
}
