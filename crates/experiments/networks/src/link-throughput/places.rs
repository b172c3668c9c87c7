//! What is measured, and through what: emulated links with listeners behind them, and somebody's listener.

use std::env;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use ascertain_engine::experiment::{Arm, Level, TargetError, Unavailable};
use ascertain_netlab::installed::{Program, Running, iperf3};
use ascertain_netlab::model::{Conditions, TokenBucket};
use ascertain_netlab::throughput::{Direction, Limits, Listener, Plan, Reach, Token, Transport};
use ascertain_netlab::{Link, RunningLink};

use super::{BOTH, IPERF3, OURS, UDP, UP};
use crate::links::{self, failed};

const OWN_PORT: u16 = 5200;
const IPERF3_PORT: u16 = 5201;
/// iperf3 takes no shorter ones.
const SHORTEST_IPERF3_MS: u64 = 100;
/// What may wait at least.
const FEWEST_BYTES: u64 = 30_000;
/// Where the listener's token is looked for: not among the levels, which are written down.
const TOKEN: &str = "ASCERTAIN_LISTEN_TOKEN";

fn word<'a>(arm: &'a Arm, factor: &str) -> &'a str {
    match arm.point.get(factor) {
        Some(Level::Text(word)) => word,
        _ => "",
    }
}

pub fn plan_of(arm: &Arm) -> Result<Plan, TargetError> {
    let transport = if word(arm, "protocol") == UDP {
        let rate_bits_per_s = arm.integer("udp_kbit_s")? * 1_000;
        Transport::Udp { rate_bits_per_s, datagram_bytes: arm.integer("datagram_bytes")? as u32 }
    } else {
        Transport::Tcp
    };
    let direction = match word(arm, "direction") {
        UP => Direction::Up,
        BOTH => Direction::Both,
        _ => Direction::Down,
    };
    let interval_ms = arm.integer("interval_ms")?;
    // There is none that is left out in part, or counted.
    let intervals = |factor| arm.integer(factor).map(|ms| ms.div_ceil(interval_ms.max(1)) as u32);
    let (streams, interval) = (arm.integer("streams")? as u32, Duration::from_millis(interval_ms));
    let (left_out, intervals) = (intervals("left_out_ms")?, intervals("measured_ms")?);
    Ok(Plan { transport, direction, streams, interval, left_out, intervals })
}

/// Somebody's listener; none for ours.
fn listener_of(arm: &Arm) -> Option<String> {
    arm.point.get("listener").map(Level::to_string).filter(|listener| listener != OURS)
}

fn token_here() -> Result<Token, String> {
    let token = env::var(TOKEN).map_err(|_| format!("set {TOKEN} to what `ascertain listen` says"))?;
    token.parse().map_err(|why| format!("{TOKEN}: {why}"))
}

/// Whether there are a link and a listener, or a token for somebody's.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let not = |why: &str| Err(Unavailable::levels(why));
    let is_iperf3 = arm.variant == IPERF3;
    if listener_of(arm).is_some() {
        if is_iperf3 {
            return not("`ascertain listen` does not speak iperf3's protocol");
        }
        return token_here().map(drop).map_err(Unavailable::other);
    }
    if is_iperf3 {
        iperf3(([127, 0, 0, 1], IPERF3_PORT).into()).is_installed().map_err(Unavailable::other)?;
        if word(arm, "direction") == BOTH {
            return not("iperf3 says of both directions at once only what one end saw");
        }
        if arm.integer("interval_ms").is_ok_and(|ms| ms < SHORTEST_IPERF3_MS) {
            return not("iperf3's intervals are of 100 ms or more");
        }
    }
    links::is_available(&Link::default())
}

/// What a full bucket lets through at once, where the arm has one.
pub fn bucket_of(arm: &Arm) -> Result<Option<TokenBucket>, TargetError> {
    if listener_of(arm).is_some() {
        return Ok(None);
    }
    let burst_bytes = arm.integer("burst_kb")? * 1_000;
    let rate_bits_per_s = arm.integer("refill_mbit_s")? * 1_000_000;
    Ok((burst_bytes > 0).then_some(TokenBucket { burst_bytes, rate_bits_per_s }))
}

/// The arm's link without its bucket. As much may wait as is under way in a round trip.
pub fn link_of(arm: &Arm) -> Result<Link, TargetError> {
    let (rate_bits_per_s, rtt_ms) = (arm.integer("rate_mbit_s")? * 1_000_000, arm.integer("rtt_ms")?);
    let queue_bytes = (rate_bits_per_s / 8 * rtt_ms / 1_000).max(FEWEST_BYTES);
    Ok(Link {
        rtt: Duration::from_millis(rtt_ms),
        rate_bits_per_s: Some(rate_bits_per_s),
        queue_bytes: usize::try_from(queue_bytes).unwrap_or(usize::MAX),
        ..Link::default()
    })
}

/// Both directions of the arm's link.
pub fn conditions_of(arm: &Arm, link: &Link) -> Result<[Conditions; 2], TargetError> {
    let bucket = bucket_of(arm)?;
    Ok(link.conditions().map(|conditions| Conditions { bucket, ..conditions }))
}

/// What one measures to.
pub struct Place {
    pub address: SocketAddr,
    pub token: Token,
    /// Ours.
    _listener: Option<Listener>,
    /// Where one was asked for.
    pub iperf3: Option<Running>,
    // Ends after those behind it do.
    pub link: Option<RunningLink>,
}

impl Place {
    /// The arm's, with a server of iperf3 if that is asked for.
    pub fn of(arm: &Arm, has_iperf3: bool) -> Result<Self, TargetError> {
        let is_v4 = arm.integer("ip")? == 4;
        if let Some(name) = listener_of(arm) {
            return Self::elsewhere(&name, is_v4, token_here().map_err(TargetError::Failed)?);
        }
        let link = link_of(arm)?;
        let [to_far, to_near] = conditions_of(arm, &link)?;
        let link = link.start_with(&to_far, &to_near).map_err(failed)?;
        let far = link.far();
        let ip = if is_v4 { Some(far.address().into()) } else { far.ipv6_address().map(Into::into) };
        let ip = ip.ok_or_else(|| failed("this kernel has no IPv6"))?;
        let [address, iperf3_address] = [OWN_PORT, IPERF3_PORT].map(|port| SocketAddr::new(ip, port));
        let (tcp, udp) = (far.listen(address).map_err(failed)?, far.udp(address).map_err(failed)?);
        let token = Token::new().map_err(failed)?;
        // Nobody else comes to it.
        let limits = Limits { bytes: u64::MAX, time: Duration::MAX };
        let listener = Listener::start(tcp, udp, token.clone(), limits).map_err(failed)?;
        let iperf3 = if has_iperf3 { Some(start_iperf3(arm, &link, iperf3_address)?) } else { None };
        Ok(Self { address, token, _listener: Some(listener), iperf3, link: Some(link) })
    }

    /// Somebody's.
    pub fn elsewhere(name: &str, is_v4: bool, token: Token) -> Result<Self, TargetError> {
        let unknown = |why: String| TargetError::Failed(format!("{name}: {why}"));
        let mut addresses = name.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        let address = addresses.find(|address| address.is_ipv4() == is_v4);
        let none = || unknown(format!("it has no address of `ip` {}", if is_v4 { 4 } else { 6 }));
        Ok(Self { address: address.ok_or_else(none)?, token, _listener: None, iperf3: None, link: None })
    }

    /// The way to the listener.
    pub fn way(&self) -> Box<dyn Reach + '_> {
        match &self.link {
            Some(link) => Box::new((link.near(), self.address)),
            None => Box::new(self.address),
        }
    }
}

/// Says what it sees as data, in the arm's intervals.
fn start_iperf3(arm: &Arm, link: &RunningLink, address: SocketAddr) -> Result<Running, TargetError> {
    let mut program: Program = iperf3(address);
    let interval_s = (arm.integer("interval_ms")? as f64 / 1e3).to_string();
    program.arguments.extend(["--json", "--interval", &interval_s].map(String::from));
    let place = |command: &mut _| link.far().enter(command);
    program.start_where(place, || link.near().connect(address)).map_err(failed)
}

#[cfg(test)]
#[path = "simulated.rs"]
mod simulated;
