//! The list of hosts that are reached without a proxy.

use std::net::IpAddr;

/// Returns whether the list in `no_proxy` contains this host. Its entries are separated by commas or spaces:
///
/// - `*`: every host
/// - `example.com` or `.example.com`: this name and all names below it. `*.example.com` is the same.
/// - `10.0.0.1`, `::1` or `[::1]`: this address
/// - `10.0.0.0/8` or `fd00::/8`: all addresses of this network
/// - a name or an address with `:PORT` or `[…]:PORT` applies only to this port
///
/// Networks apply only if the store's address contains an IP address, because names are not resolved.
pub fn is_exempt(host: &str, port: u16, list: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let address = parse_address(&host);
    list.split(|char: char| char == ',' || char.is_whitespace()).filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let Some((network, bits)) = entry.split_once('/') {
            return address.is_some_and(|address| contains(network, bits, address));
        }
        let (name, only) = split_port(entry);
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        only.is_none_or(|only| only == port)
            && match (address, parse_address(&name)) {
                (None, None) => is_below(&host, &name),
                (address, named) => address == named,
            }
    })
}

/// Returns whether `host` is the domain `name`, or is below it.
fn is_below(host: &str, name: &str) -> bool {
    let domain = name.trim_start_matches('*').trim_start_matches('.');
    let rest = host.strip_suffix(domain).filter(|_| !domain.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Parses an IP address. An IPv4 address in the form of IPv6 (`::ffff:10.0.0.1`) is the IPv4 address.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    Some(text.parse::<IpAddr>().ok()?.to_canonical())
}

/// Splits a port from the end of an entry. The colons of an IPv6 address without brackets are no such separator.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    let split = entry.rsplit_once(':').filter(|(name, _)| name.ends_with(']') || !name.contains(':'));
    match split.and_then(|(name, port)| Some((name, port.parse().ok()?))) {
        Some((name, port)) => (name, Some(port)),
        None => (entry, None),
    }
}

/// Returns whether the network `network/bits` contains the address. An invalid network contains none.
fn contains(network: &str, bits: &str, address: IpAddr) -> bool {
    let (network, bits) = match (network.trim_matches(['[', ']']).parse(), bits.parse::<u32>()) {
        (Ok(network), Ok(bits)) => (network, bits),
        _ => return false,
    };
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) if bits <= 32 => {
            (network.to_bits() ^ address.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) if bits <= 128 => {
            (network.to_bits() ^ address.to_bits()).checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_exempt;

    #[test]
    fn networks_addresses_and_names_are_exempt() {
        for (host, list) in [
            ("10.1.2.3", "10.0.0.0/8"),
            ("10.1.2.3", "example.com, 10.1.2.0/23"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("1.2.3.4", "0.0.0.0/0"),
            ("::ffff:10.1.2.3", "10.0.0.0/8"),
            ("fd00::1", "fd00::/8"),
            ("fd00::1", "[fd00::]/8"),
            ("fdff:1:2::3", "10.0.0.0/8 fc00::/7"),
            ("fd00::1", "::/0"),
            ("::1", "::1"),
            ("::1", "[0:0::1]"),
            ("::1", "[::1]:9000"),
            ("10.0.0.1", "10.0.0.1:9000"),
            ("10.0.0.1", "10.0.0.1"),
            ("store.example.com", "example.com"),
            ("store.Example.com.", ".EXAMPLE.com"),
            ("store.example.com", "*.example.com"),
            ("example.com", ".example.com"),
            ("example.com", "example.com:9000"),
            ("localhost", "127.0.0.1,localhost"),
            ("anything", " * "),
        ] {
            assert!(is_exempt(host, 9000, list), "{host} {list}");
        }
    }

    #[test]
    fn other_hosts_use_the_proxy() {
        for (host, list) in [
            ("11.1.2.3", "10.0.0.0/8"),
            ("10.1.4.3", "10.1.2.0/23"),
            ("10.1.2.4", "10.1.2.3/32"),
            ("10.1.2.3", "10.0.0.0/33"),
            ("10.1.2.3", "10.0.0.0/x"),
            ("10.1.2.3", "10.0.0.0/"),
            ("10.1.2.3", "::/0"),
            ("fe00::1", "fd00::/8"),
            ("fd00::1", "fd00::/129"),
            ("fd00::1", "0.0.0.0/0"),
            ("host10.0.0.0", "10.0.0.0/8"),
            ("127.0.0.1", "0.0.1"),
            ("127.0.0.1", "1"),
            ("10.0.0.1", "10.0.0.1:80"),
            ("::1", "::2"),
            ("::1", "[::1]:80"),
            ("example.com", "example.com:80"),
            ("notexample.com", "example.com"),
            ("example.com", "store.example.com"),
            ("example.com", "."),
            ("example.com", ""),
            ("example.com", ",, ,"),
        ] {
            assert!(!is_exempt(host, 9000, list), "{host} {list}");
        }
    }
}
