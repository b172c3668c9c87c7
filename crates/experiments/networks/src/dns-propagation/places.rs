//! Whom to ask, and who changes what they know: zones that are simulated behind an emulated link, and others'.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, Experiment, Factor, Level, Setup, TargetError, Unavailable};
use ascertain_engine::finding::Remark;
use ascertain_netlab::dns::{Name, Plan, RData, RecordType, Served};
use ascertain_netlab::{Link, RunningLink};
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::Environment;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::authorities::{Authorities, Family, authorities, resolver_here};
use super::exec::Exec;
use super::hosted::Told;
use super::primary::{Primary, key_here};
use super::providers::{Provider, notes_folder};
use super::{
    APART, CLOUD_DNS, DnsPropagation, EXEC, MOST_PER_S, RFC2136, ROUTE53, TOGETHER, WATCH, cloud_dns, rhythm, route53,
};
use crate::links::{self, OURS, failed};
use crate::name_servers::{address, addresses};

/// By what part the simulated delays differ from one change to the next.
const JITTER: f64 = 0.05;

/// A level that somebody gave.
fn given(arm: &Arm, factor: &str) -> Option<String> {
    arm.point.get(factor).map(Level::to_string).filter(|level| level != OURS)
}

/// Whether somebody gave another one than everybody has.
fn is_given(arm: &Arm, factor: &str) -> bool {
    let is_of = |of: &&Factor| of.name == factor;
    let usual = DnsPropagation.spec().factors.iter().find(is_of).map(|factor| &factor.default);
    arm.point.get(factor).is_some_and(|level| Some(level) != usual)
}

/// What each variant has to be told, and may be: with others it means nothing.
const TOLD: [(&str, &[&str], &[&str]); 7] = [
    (TOGETHER, &[], &[]),
    (APART, &[], &[]),
    (WATCH, &["record", "expect"], &["type", "addresses", "resolver", "family"]),
    (RFC2136, &["zone", "server"], &["addresses", "resolver", "family"]),
    (ROUTE53, &["zone"], &["zone_id", "endpoint", "addresses", "resolver", "family"]),
    (CLOUD_DNS, &["zone"], &["project", "zone_id", "endpoint", "addresses", "resolver", "family"]),
    (EXEC, &["zone", "exec"], &["addresses", "resolver", "family"]),
];

/// Whether a factor means anything to an arm: what is simulated has none of what real servers have. Where it was told
/// something for another variant, that is a reason why it is not available.
pub fn has(arm: &Arm, factor: &str) -> bool {
    match factor {
        "servers" | "replicas" | "slowest_ms" | "done_after_ms" | "rtt_ms" | "loss_percent" => is_simulated(arm),
        "interval_ms" | "ports" | "limit_s" => true,
        _ => is_told(arm, factor) || is_given(arm, factor),
    }
}

/// Whether there are links, or what it needs was told.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    check(arm).map_err(Unavailable::levels)?;
    if is_simulated(arm) { links::is_available(&Link::default()) } else { Ok(()) }
}

fn is_simulated(arm: &Arm) -> bool {
    [TOGETHER, APART].contains(&arm.variant.as_str())
}

/// Of what each variant has to be told, or may be, with the variant.
fn told() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOLD.iter().flat_map(|(variant, needed, may)| needed.iter().chain(*may).map(move |factor| (*variant, *factor)))
}

/// Whether the factor is one that the variant has to be told, or may be.
fn is_told(arm: &Arm, factor: &str) -> bool {
    told().any(|told| told == (arm.variant.as_str(), factor))
}

/// Whether a variant was told what it needs, and nothing that is for others or can't be.
fn check(arm: &Arm) -> Result<(), String> {
    if let Some((_, factor)) = told().find(|(_, factor)| is_given(arm, factor) && !is_told(arm, factor)) {
        let variants: Vec<String> =
            told().filter(|(_, other)| *other == factor).map(|(variant, _)| format!("`{variant}`")).collect();
        // All but the two that are simulated.
        let is_for_all = variants.len() == TOLD.len() - 2;
        let whose = if is_for_all { "zones that are not simulated".into() } else { variants.join(", ") };
        return Err(format!("`{factor}` is for {whose}"));
    }
    let needed = TOLD.iter().filter(|(variant, ..)| *variant == arm.variant).flat_map(|(_, needed, _)| *needed);
    if let Some(missing) = needed.into_iter().find(|factor| !is_given(arm, factor)) {
        return Err(format!("needs --at {missing}=…"));
    }
    check_texts(arm)?;
    check_rate(arm)
}

/// Servers of others are not asked as often as this machine could.
fn check_rate(arm: &Arm) -> Result<(), String> {
    let (ports, interval) = rhythm(arm).map_err(|error| error.to_string())?;
    let per_s = ports as u64 * 1_000 / interval.as_millis() as u64;
    let is_here = |text: String| addresses(&text).is_ok_and(|all| all.iter().all(|at| at.ip().is_loopback()));
    if per_s <= MOST_PER_S || is_simulated(arm) || given(arm, "addresses").is_some_and(is_here) {
        return Ok(());
    }
    Err(format!(
        "{ports} `ports` each {} ms are {per_s} questions a second to each server: at most {MOST_PER_S} go to servers \
         elsewhere; take fewer `ports`, or a longer `interval_ms`",
        interval.as_millis()
    ))
}

/// The arms that what was told is for, where variants were not named.
pub fn chosen(arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
    let is_told_something = |arm: &Arm| told().any(|(_, factor)| is_given(arm, factor));
    if !are_named && !arms.iter().any(is_told_something) {
        return Ok(arms);
    }
    let with_name = |arm: &Arm, why: String| format!("`{}`: {why}", arm.variant);
    if are_named {
        arms.iter().try_for_each(|arm| check(arm).map_err(|why| with_name(arm, why)))?;
        return Ok(arms);
    }
    // Of variants to which all of it means something one may lack something else.
    let means = |arm: &Arm| told().all(|(_, factor)| !is_given(arm, factor) || is_told(arm, factor));
    let (fit, unfit): (Vec<Arm>, Vec<Arm>) = arms.into_iter().filter(means).partition(|arm| check(arm).is_ok());
    let mut variants: Vec<&str> = fit.iter().map(|arm| arm.variant.as_str()).collect();
    variants.dedup();
    match (&variants[..], unfit.first()) {
        ([_], _) => Ok(fit),
        ([], Some(arm)) => check(arm).map_err(|why| with_name(arm, why)).map(|()| Vec::new()),
        ([], None) => {
            Err("no variant has a use for all that it is told: see `ascertain explain dns-propagation`".into())
        }
        _ => Err(format!("what it is told is for each of {}: say which with --variants", variants.join(", "))),
    }
}

/// Types whose values are read as zone files have them; a text may say anything.
const CHECKED: [RecordType; 6] =
    [RecordType::A, RecordType::AAAA, RecordType::CNAME, RecordType::MX, RecordType::NS, RecordType::SRV];

/// What nobody can be asked with, or would ever answer.
fn check_texts(arm: &Arm) -> Result<(), String> {
    for factor in ["zone_id", "project"] {
        given(arm, factor).map_or(Ok(()), |text| check_text(factor, &text))?;
    }
    if let (Some(expected), Some(kind)) = (given(arm, "expect"), arm.point.get("type")) {
        let kind = kind_of(&kind.to_string())?;
        let reads = |text: &str| RData::try_from_str(kind, text).is_ok();
        if CHECKED.contains(&kind) && !reads(&expected) && !reads(&format!("{expected}.")) {
            return Err(format!("`{expected}` is nothing that a record of the type {kind} says"));
        }
    }
    Ok(())
}

/// What goes into addresses as it stands.
fn check_text(factor: &str, text: &str) -> Result<(), String> {
    let is_odd = |letter: char| !letter.is_ascii_alphanumeric() && !"-_.:/".contains(letter);
    if text.contains(is_odd) { Err(format!("`{text}` can't be a {factor}")) } else { Ok(()) }
}

/// What was asked for as it is measured: hosts by their addresses.
pub fn settled(factor: &str, level: Level) -> Result<Level, String> {
    let text = level.to_string();
    if text == OURS {
        return Ok(level);
    }
    match factor {
        // What it is told is signed: a key that is none is found before anybody is asked for anything.
        "server" => key_here().and(address(&text).map(|at| Level::Text(at.to_string()))),
        "resolver" => Ok(Level::Text(address(&text)?.to_string())),
        "addresses" => {
            let addresses: Vec<String> = addresses(&text)?.iter().map(ToString::to_string).collect();
            Ok(Level::Text(addresses.join(",")))
        }
        "record" | "zone" => name(&text).map(|_| level),
        "type" => kind_of(&text).map(|_| level),
        "zone_id" | "project" => check_text(factor, &text).map(|()| level),
        "exec" if !Path::new(&text).is_file() => Err("there is no such file".into()),
        _ => Ok(level),
    }
}

fn family(arm: &Arm) -> Family {
    match arm.point.get("family").and_then(Level::integer) {
        Some(4) => Family::V4,
        Some(6) => Family::V6,
        _ => Family::Both,
    }
}

/// What is watched, where nobody here changes it.
pub struct Watched {
    pub name: Name,
    pub kind: RecordType,
    pub expected: String,
}

/// A zone, its servers, and how it is changed.
pub struct Place {
    pub zone: Name,
    /// Their names, and where they are.
    pub servers: Vec<(String, SocketAddr)>,
    /// The names of those that have no address that could be asked.
    unreachable: Vec<String>,
    pub changed_by: ChangedBy,
    /// A simulated zone, which ends with this.
    _served: Option<Served>,
    /// Where notes are left.
    pub notes: PathBuf,
    // Ends after what goes through it.
    pub link: Option<Arc<RunningLink>>,
}

/// Who changes a zone.
pub enum ChangedBy {
    /// We do, by this.
    Us(Box<dyn Provider>),
    /// Others do.
    Others(Watched),
}

impl Place {
    pub fn of(arm: &Arm, setup: &Setup) -> Result<Self, TargetError> {
        match arm.variant.as_str() {
            TOGETHER | APART => Self::simulated(arm, setup.seed),
            _ => Self::elsewhere(arm, &setup.stop),
        }
    }

    fn simulated(arm: &Arm, seed: u64) -> Result<Self, TargetError> {
        let link = Link {
            rtt: Duration::from_millis(arm.integer("rtt_ms")?),
            loss: arm.integer("loss_percent")? as f64 / 100.0,
            seed,
            ..Link::default()
        };
        let link = Arc::new(link.start().map_err(failed)?);
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
        let primary = Primary::simulated(served.primary(), link.clone(), done_after);
        let changed_by = ChangedBy::Us(Box::new(primary));
        let (unreachable, notes) = (Vec::new(), notes_folder());
        Ok(Self { zone, servers, unreachable, changed_by, _served: Some(served), notes, link: Some(link) })
    }

    fn elsewhere(arm: &Arm, stop: &Stop) -> Result<Self, TargetError> {
        let is_watched = arm.variant == WATCH;
        let said = given(arm, if is_watched { "record" } else { "zone" }).unwrap_or_default();
        let name = name(&said).map_err(TargetError::Failed)?;
        // An alias that is watched itself is in its own zone.
        let follows_aliases = is_watched && given(arm, "type").is_some_and(|kind| !kind.eq_ignore_ascii_case("CNAME"));
        let resolver = match given(arm, "resolver") {
            Some(resolver) => address(&resolver),
            None => resolver_here(),
        };
        let found = match given(arm, "addresses") {
            Some(addresses) => named_by(&addresses).map(|servers| Authorities {
                zone: name.clone(),
                name,
                servers,
                unreachable: Vec::new(),
            }),
            None => resolver.and_then(|resolver| authorities(&name, follows_aliases, family(arm), resolver)),
        };
        let Authorities { name, zone, servers, unreachable } = found.map_err(TargetError::Failed)?;
        // Nobody changes a zone that was not named: of one that is mistyped what is above it has servers.
        if !is_watched && zone != name {
            return Err(failed(format!("`{said}` is no zone: it is in {zone}")));
        }
        let told = || -> Result<Told, TargetError> {
            Ok(Told {
                environment: Environment::of_process(),
                zone_id: given(arm, "zone_id"),
                project: given(arm, "project"),
                endpoint: given(arm, "endpoint"),
                limit: Duration::from_secs(arm.integer("limit_s")?),
            })
        };
        let changed_by = match (given(arm, "server"), given(arm, "exec")) {
            _ if arm.variant == ROUTE53 => {
                ChangedBy::Us(Box::new(route53::find(&zone, &told()?, stop).map_err(TargetError::Failed)?))
            }
            _ if arm.variant == CLOUD_DNS => {
                ChangedBy::Us(Box::new(cloud_dns::find(&zone, &told()?, stop).map_err(TargetError::Failed)?))
            }
            (Some(server), _) => {
                let address = address(&server).map_err(TargetError::Failed)?;
                ChangedBy::Us(Box::new(Primary::new(address, key_here().map_err(TargetError::Failed)?)))
            }
            // The note is read from somewhere else.
            (_, Some(program)) => ChangedBy::Us(Box::new(Exec::new(std::path::absolute(program).map_err(failed)?))),
            _ => {
                let kind = kind_of(&given(arm, "type").unwrap_or_default()).map_err(TargetError::Failed)?;
                ChangedBy::Others(Watched { name, kind, expected: given(arm, "expect").unwrap_or_default() })
            }
        };
        let (servers, notes) = (of_one_kind(servers), notes_folder());
        Ok(Self { zone, servers, unreachable, changed_by, _served: None, notes, link: None })
    }

    /// Whether others change it.
    pub fn is_watched(&self) -> bool {
        matches!(self.changed_by, ChangedBy::Others(_))
    }

    /// Which of the servers is told of changes, if it is one of them.
    pub fn told(&self) -> Option<usize> {
        let ChangedBy::Us(provider) = &self.changed_by else { return None };
        let told = provider.server()?;
        let is_told = |at: &SocketAddr| (at.ip().to_canonical(), at.port()) == (told.ip().to_canonical(), told.port());
        self.servers.iter().position(|(_, at)| is_told(at))
    }

    /// The zone's servers that can't be asked, if there are any.
    pub fn no_address(&self) -> Option<Remark> {
        let servers = self.unreachable.clone();
        (!servers.is_empty()).then_some(Remark::NoAddress { servers })
    }

    /// A socket to ask from.
    pub fn socket(&self) -> Result<UdpSocket, TargetError> {
        let is_ipv4 = self.servers.iter().all(|(_, address)| address.is_ipv4());
        match &self.link {
            Some(link) => link.near().udp((link.near().address(), 0)),
            None if is_ipv4 => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
            None => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
        }
        .map_err(failed)
    }

    /// When the replicas really had the newest version, on the clock of `now_ns`, of each server.
    #[cfg(test)]
    pub fn truth(&self) -> Vec<Vec<u64>> {
        let truth = self._served.as_ref().map(Served::truth).unwrap_or_default();
        let newest = truth.iter().map(|had| had.serial).max();
        let of_server = |server| {
            let had = truth.iter().filter(|had| had.server == server && Some(had.serial) == newest);
            had.map(|had| had.at_ns).collect()
        };
        (0..self.servers.len()).map(of_server).collect()
    }
}

fn name(text: &str) -> Result<Name, String> {
    let mut name = Name::from_ascii(text).map_err(|_| format!("`{text}` is no name"))?;
    name.set_fqdn(true);
    Ok(name)
}

fn kind_of(text: &str) -> Result<RecordType, String> {
    text.to_ascii_uppercase().parse().map_err(|_| format!("`{text}` is no type of records"))
}

fn named_by(text: &str) -> Result<Vec<(String, SocketAddr)>, String> {
    Ok(addresses(text)?.into_iter().map(|address| (address.to_string(), address)).collect())
}

/// One socket reaches addresses of both kinds if those of IPv4 are written as ones of IPv6.
fn of_one_kind(mut servers: Vec<(String, SocketAddr)>) -> Vec<(String, SocketAddr)> {
    if servers.iter().any(|(_, address)| address.is_ipv6()) {
        for (_, address) in &mut servers {
            if let IpAddr::V4(ip) = address.ip() {
                *address = (ip.to_ipv6_mapped(), address.port()).into();
            }
        }
    }
    servers
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
