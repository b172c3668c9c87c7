//! Uses a resolver to find the zone of a name and the servers of the zone.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use ascertain_netlab::dns::{Answer, Name, Question, RData, RecordType, ResponseCode, query_by_tcp};

use crate::name_servers::PORT;

/// Time limit for an answer of the resolver to one query.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of queries after which the resolver counts as silent, if it has answered none of them.
const TRIES: u16 = 3;
/// Largest number of aliases that are followed one after the other.
const MOST_ALIASES: usize = 8;

/// A name, its zone, and the zone's servers.
#[derive(Debug)]
pub struct Authorities {
    pub name: Name,
    pub zone: Name,
    /// Name and address of each server.
    pub servers: Vec<(String, SocketAddr)>,
    /// Names of the servers that cannot be queried, because no usable address is known for them.
    pub unreachable: Vec<String>,
}

/// The IP versions of the addresses at which servers are queried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Uses IPv4 addresses, and those IPv6 addresses to which this system has a route.
    Both,
    V4,
    V6,
}

/// Finds the zone that contains `name`, and the zone's servers. If `name` is an alias and `follows_aliases` is `true`,
/// uses the name to which the alias leads.
///
/// # Errors
/// Returns the reason, for the user, if the zone or its servers cannot be found.
pub fn authorities(
    name: &Name,
    follows_aliases: bool,
    family: Family,
    resolver: SocketAddr,
) -> Result<Authorities, String> {
    let resolve = |name: &Name, kind| query_resolver(resolver, name, kind);
    let mut name = name.clone();
    let mut met = Vec::new();
    while follows_aliases && let Some(alias) = resolve(&name, RecordType::CNAME)?.values.first().and_then(named) {
        met.push(name);
        if met.contains(&alias) || met.len() > MOST_ALIASES {
            return Err(format!("{} is an alias of {alias}, which is part of an alias loop", met[0]));
        }
        name = alias;
    }
    let mut zone = name.clone();
    let hosts: Vec<Name> = loop {
        let hosts: Vec<Name> = resolve(&zone, RecordType::NS)?.values.iter().filter_map(named).collect();
        if !hosts.is_empty() {
            break hosts;
        }
        if zone.num_labels() <= 1 {
            return Err(format!("the resolver at {resolver} knows no zone that contains {name}"));
        }
        zone = zone.base_name();
    };
    let (mut servers, mut unreachable) = (Vec::new(), Vec::new());
    for host in hosts {
        let addresses =
            |kind| Ok::<_, String>(resolve(&host, kind)?.values.iter().filter_map(address).collect::<Vec<_>>());
        let mut of_host = if family == Family::V6 { Vec::new() } else { addresses(RecordType::A)? };
        if family != Family::V4 {
            let mut of_ipv6 = addresses(RecordType::AAAA)?;
            of_ipv6.retain(|ip| family == Family::V6 || has_route(*ip));
            of_host.extend(of_ipv6);
        }
        let text = host.to_ascii().trim_end_matches('.').to_string();
        // If a host has several addresses, each address counts as a server, whose name includes the address.
        let called = |ip: &IpAddr| if of_host.len() == 1 { text.clone() } else { format!("{text} {ip}") };
        servers.extend(of_host.iter().map(|ip| (called(ip), SocketAddr::new(*ip, PORT))));
        if of_host.is_empty() {
            unreachable.push(text);
        }
    }
    if servers.is_empty() {
        return Err(format!("no server of {zone} has an address that can be queried: {}", unreachable.join(", ")));
    }
    Ok(Authorities { name, zone, servers, unreachable })
}

/// Returns whether this system has a route to an address; many systems have no IPv6. Sends nothing.
fn has_route(ip: IpAddr) -> bool {
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok_and(|socket| socket.connect((ip, PORT)).is_ok())
}

fn named(value: &RData) -> Option<Name> {
    match value {
        RData::CNAME(name) => Some(name.0.clone()),
        RData::NS(name) => Some(name.0.clone()),
        _ => None,
    }
}

fn address(value: &RData) -> Option<IpAddr> {
    match value {
        RData::A(address) => Some(address.0.into()),
        RData::AAAA(address) => Some(address.0.into()),
        _ => None,
    }
}

fn query_resolver(resolver: SocketAddr, name: &Name, kind: RecordType) -> Result<Answer, String> {
    let failed = |error: String| format!("could not query the resolver at {resolver} for {name} {kind}: {error}");
    let mut question = Question::new(name.clone(), kind).map_err(|error| failed(error.to_string()))?.for_resolver();
    let any: IpAddr = if resolver.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    for _ in 0..TRIES {
        let mut answer = || -> io::Result<Option<Answer>> {
            // Each try uses a new port. The socket is connected, so it receives only the resolver's packets.
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect(resolver)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            let number = rand::random();
            socket.send(question.numbered(number))?;
            let mut bytes = [0; 4096];
            let length = socket.recv(&mut bytes)?;
            match question.answer(&bytes[..length]).filter(|(of, _)| *of == number) {
                Some((_, answer)) if answer.is_truncated => by_tcp(resolver, &mut question, number).map(Some),
                answer => Ok(answer.map(|(_, answer)| answer)),
            }
        };
        match answer() {
            Ok(Some(answer)) => {
                return match answer.code {
                    ResponseCode::NoError | ResponseCode::NXDomain => Ok(answer),
                    code => Err(failed(format!("it answers {}", code.to_str()))),
                };
            }
            Ok(None) => {}
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {}
            Err(error) => return Err(failed(error.to_string())),
        }
    }
    Err(failed("no answer arrived in time".into()))
}

/// Repeats the query over TCP, because the answer does not fit into a datagram.
fn by_tcp(server: SocketAddr, question: &mut Question, number: u16) -> io::Result<Answer> {
    let bytes = query_by_tcp(server, question.numbered(number), PATIENCE).map_err(io::Error::other)?;
    let answer = question.answer(&bytes).filter(|(of, answer)| *of == number && !answer.is_truncated);
    answer.map(|(_, answer)| answer).ok_or_else(|| io::Error::other("the answer over TCP is truncated, too"))
}

/// Returns the first resolver of this system.
///
/// # Errors
/// Returns the reason if `/etc/resolv.conf` cannot be read or names no resolver.
pub fn resolver_here() -> Result<SocketAddr, String> {
    const PATH: &str = "/etc/resolv.conf";
    let text = fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    let addresses = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok());
    let address: Option<IpAddr> = addresses.into_iter().next();
    address.map(|address| (address, PORT).into()).ok_or_else(|| format!("{PATH} names no resolver; set `resolver`"))
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Starts a resolver that knows only `known`, and returns its address. The resolver ends after `questions` queries.
    pub fn resolver(known: &[(&str, RecordType, &str)], questions: usize) -> SocketAddr {
        let known: BTreeMap<(String, RecordType), Vec<String>> =
            known.iter().fold(BTreeMap::new(), |mut known, (name, kind, value)| {
                known.entry((name.to_string(), *kind)).or_default().push(value.to_string());
                known
            });
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        thread::spawn(move || {
            for _ in 0..questions {
                let mut bytes = [0; 512];
                let (length, from) = socket.recv_from(&mut bytes).unwrap();
                assert_eq!(bytes[2] & 1, 1, "a query to a resolver must ask for recursion");
                _ = socket.send_to(&answer(&bytes[..length], &known), from);
            }
        });
        address
    }

    /// Returns the bytes of an answer: the header, the question, and a record with the question's name for each value.
    fn answer(question: &[u8], known: &BTreeMap<(String, RecordType), Vec<String>>) -> Vec<u8> {
        let mut at = 12;
        let mut name = String::new();
        while question[at] != 0 {
            let label = &question[at + 1..=at + usize::from(question[at])];
            name += &format!("{}.", std::str::from_utf8(label).unwrap());
            at += 1 + label.len();
        }
        let kind = RecordType::from(u16::from_be_bytes([question[at + 1], question[at + 2]]));
        let values = known.get(&(name, kind)).cloned().unwrap_or_default();
        let mut bytes = [&question[..2], &[0x81, 0x80, 0, 1, 0, values.len() as u8, 0, 0, 0, 0]].concat();
        bytes.extend_from_slice(&question[12..at + 5]);
        for value in values {
            let data = match value.parse::<IpAddr>() {
                Ok(IpAddr::V4(address)) => address.octets().to_vec(),
                Ok(IpAddr::V6(address)) => address.octets().to_vec(),
                Err(_) => {
                    let labels = value.trim_end_matches('.').split('.');
                    let labels = labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
                    labels.chain([0]).collect()
                }
            };
            bytes.extend_from_slice(&[0xc0, 12]);
            bytes.extend_from_slice(&question[at + 1..at + 5]);
            bytes.extend_from_slice(&[0, 0, 0, 1, 0, data.len() as u8]);
            bytes.extend_from_slice(&data);
        }
        bytes
    }

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    /// Returns a UDP socket and a TCP listener with the same port.
    pub fn of_one_port() -> (UdpSocket, TcpListener) {
        loop {
            let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
                return (udp, tcp);
            }
        }
    }

    #[test]
    fn aliases_are_followed_to_the_zone_and_its_servers() {
        use RecordType::{A, CNAME, NS};
        let known = [
            ("_acme-challenge.www.example.org.", CNAME, "here.example.net."),
            ("example.net.", NS, "ns1.example.net."),
            ("example.net.", NS, "ns2.example.com."),
            ("ns1.example.net.", A, "192.0.2.1"),
            ("ns2.example.com.", A, "192.0.2.2"),
            ("ns2.example.com.", A, "192.0.2.3"),
        ];
        let found =
            authorities(&name("_acme-challenge.www.example.org."), true, Family::Both, resolver(&known, 100)).unwrap();
        assert_eq!((found.name, found.zone), (name("here.example.net."), name("example.net.")));
        let at = |host: u8| SocketAddr::from(([192, 0, 2, host], PORT));
        let servers = [("ns1.example.net", 1), ("ns2.example.com 192.0.2.2", 2), ("ns2.example.com 192.0.2.3", 3)];
        assert_eq!(found.servers, servers.map(|(name, host)| (name.into(), at(host))));
    }

    /// Tests one server with an IPv4 and an IPv6 address, and one server without an address. The missing address must
    /// not prevent queries to the first server.
    #[test]
    fn servers_are_asked_by_the_addresses_that_they_have() {
        use RecordType::{A, AAAA, NS};
        let known = [
            ("example.", NS, "both.example."),
            ("example.", NS, "none.example."),
            ("both.example.", A, "127.0.0.1"),
            ("both.example.", AAAA, "2001:db8::1"),
        ];
        let found = |family| authorities(&name("example."), false, family, resolver(&known, 100)).unwrap();
        for (family, address) in [(Family::V4, "127.0.0.1"), (Family::V6, "2001:db8::1")] {
            let Authorities { servers, unreachable, .. } = found(family);
            let address = SocketAddr::new(address.parse().unwrap(), PORT);
            assert_eq!(
                (servers, unreachable),
                (vec![("both.example".into(), address)], vec!["none.example".to_string()])
            );
        }
        // The machine may have no route for IPv6.
        let count = found(Family::Both).servers.len();
        assert_eq!(count, 1 + usize::from(has_route("2001:db8::1".parse().unwrap())));
    }

    /// All answers of this resolver over UDP are truncated.
    #[test]
    fn an_answer_that_is_truncated_is_asked_for_by_tcp() {
        let known = BTreeMap::from([
            (("example.".to_string(), RecordType::NS), vec!["ns.example.".to_string()]),
            (("ns.example.".to_string(), RecordType::A), vec!["192.0.2.1".to_string()]),
        ]);
        let (udp, tcp) = of_one_port();
        let resolver = udp.local_addr().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 512];
            while let Ok((length, from)) = udp.recv_from(&mut bytes) {
                let mut truncated = answer(&bytes[..length], &BTreeMap::new());
                truncated[2] |= 2;
                _ = udp.send_to(&truncated, from);
            }
        });
        thread::spawn(move || {
            for stream in tcp.incoming() {
                let (mut stream, mut bytes) = (stream.unwrap(), [0; 512]);
                stream.read_exact(&mut bytes[..2]).unwrap();
                let length = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
                stream.read_exact(&mut bytes[..length]).unwrap();
                let answer = answer(&bytes[..length], &known);
                stream.write_all(&[&(answer.len() as u16).to_be_bytes()[..], &answer].concat()).unwrap();
            }
        });
        let found = authorities(&name("example."), false, Family::Both, resolver).unwrap();
        assert_eq!(found.servers, [("ns.example".to_string(), SocketAddr::from(([192, 0, 2, 1], PORT)))]);
    }

    #[test]
    fn what_leads_nowhere_is_said() {
        use RecordType::{CNAME, NS};
        let said =
            |known: &[_]| authorities(&name("a.example."), true, Family::Both, resolver(known, 100)).unwrap_err();
        let circle = [("a.example.", CNAME, "b.example."), ("b.example.", CNAME, "a.example.")];
        assert!(said(&circle).contains("alias loop"));
        assert!(said(&[]).contains("knows no zone that contains"));
        assert!(
            said(&[("example.", NS, "ns.example.")])
                .contains("no server of example. has an address that can be queried: ns.example")
        );
        let refused = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        assert!(authorities(&name("a.example."), true, Family::Both, refused).unwrap_err().contains("refused"));
    }
}
