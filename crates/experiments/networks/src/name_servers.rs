//! Parses the addresses of name servers.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The default port of name servers.
pub const PORT: u16 = 53;

/// Parses the address of a name server: an IP address or a host name, optionally with a port. A host name is resolved
/// by this machine's resolver.
///
/// # Errors
/// Returns the reason, for the user, if the address is invalid or unknown.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Some(address) = text.parse().ok().or(bare.parse().ok().map(|ip: IpAddr| (ip, PORT).into())) {
        return Ok(address);
    }
    let such = "such as 192.0.2.1, [2001:db8::1]:53 or ns1.example.org";
    let no_server = || format!("`{text}` is not a name server; give an address or a host, {such}");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| no_server())?),
        None => (text, PORT),
    };
    // Refuses invalid host names here, because a resolver may take long to reject them.
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if host.is_empty() || host.starts_with('.') || host.contains("..") || !host.chars().all(is_of_name) {
        return Err(no_server());
    }
    let found =
        (host, port).to_socket_addrs().map_err(|error| format!("could not resolve the host of `{text}`: {error}"))?;
    found.into_iter().next().ok_or_else(|| format!("the host of `{text}` has no IP address"))
}

/// Parses several addresses, separated by commas. Plus signs, the separators of older versions, are also accepted.
///
/// # Errors
/// Returns the errors of [`address`].
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub fn addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    text.split([',', '+']).map(|one| address(one.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_and_brackets_may_be_left_out() {
        for (text, is) in [
            ("192.0.2.1", "192.0.2.1:53"),
            ("192.0.2.1:5353", "192.0.2.1:5353"),
            ("2001:db8::1", "[2001:db8::1]:53"),
            ("[2001:db8::1]", "[2001:db8::1]:53"),
            ("[2001:db8::1]:5353", "[2001:db8::1]:5353"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), is);
        }
        let of_host = |text| address(text).map(|address| (address.ip().is_loopback(), address.port()));
        assert_eq!((of_host("localhost"), of_host("localhost:5353")), (Ok((true, PORT)), Ok((true, 5353))));
        let [one, other] = addresses("192.0.2.1, 192.0.2.2:5353").unwrap()[..] else { panic!("two") };
        assert_eq!([one, other].map(|address| address.to_string()), ["192.0.2.1:53", "192.0.2.2:5353"]);
    }

    /// Invalid addresses are refused without a DNS query.
    #[test]
    fn what_can_be_no_server_is_said() {
        for text in ["", ":53", "a b", "a..b", ".a", "192.0.2.1:65536", "[2001:db8::1", "a:b", "192.0.2.1,"] {
            let said = addresses(text).unwrap_err();
            assert!(said.contains("is not a name server; give an address or a host"), "{text}: {said}");
        }
    }
}
