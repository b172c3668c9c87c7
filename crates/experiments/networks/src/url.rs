//! The address of somebody's page.

use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, io};

use ascertain_engine::experiment::{Arm, Level};
use ascertain_netlab::Error;
use ascertain_netlab::http::{Tls, TlsVersion, trusting};

use crate::links::OURS;

/// Where systems keep the certificates that they trust.
const ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// `http://…` or `https://…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub is_secure: bool,
    /// As it is written: with a port where that is not the usual one.
    pub host: String,
    pub path: String,
}

impl Url {
    /// The one that a factor names; none where it is ours.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub fn of(arm: &Arm, factor: &str) -> Result<Option<Self>, String> {
        let level = arm.point.get(factor).map(Level::to_string).filter(|level| level != OURS);
        level.map(|level| Self::parse(&level)).transpose()
    }

    /// # Errors
    /// Why it is none, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let schemes = [("http://", false), ("https://", true)];
        let found = schemes.iter().find_map(|(scheme, is_secure)| Some((text.strip_prefix(scheme)?, *is_secure)));
        let (rest, is_secure) = found.ok_or_else(|| format!("`{text}` begins with neither http:// nor https://"))?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if host.is_empty() || host.contains('@') {
            return Err(format!("`{text}` has no host, or a user before it"));
        }
        // Behind the brackets of an address of IPv6.
        let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
        if behind.split_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_err()) {
            return Err(format!("`{text}` has a port that is none"));
        }
        let path = if path.starts_with('/') { path.into() } else { format!("/{path}") };
        Ok(Self { is_secure, host: host.into(), path })
    }

    /// A connection to it, by the first of its addresses that takes one.
    ///
    /// # Errors
    /// As the system says.
    pub fn connect(&self, limit: Duration) -> io::Result<(SocketAddr, TcpStream)> {
        let has_port = self.host.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
        let port = if self.is_secure { 443 } else { 80 };
        let addresses =
            if has_port { self.host.to_socket_addrs() } else { format!("{}:{port}", self.host).to_socket_addrs() };
        let mut error = io::Error::other("its name has no address");
        for address in addresses? {
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => return Ok((address, stream)),
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http{}://{}{}", if self.is_secure { "s" } else { "" }, self.host, self.path)
    }
}

/// Whom this system trusts: the file that `SSL_CERT_FILE` names, or the usual one.
///
/// # Errors
/// Where there is no such file, or it is none.
pub fn trusted_here(version: TlsVersion) -> Result<Tls, String> {
    let named = env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let usual = || ROOTS.iter().map(PathBuf::from).find(|path| path.is_file());
    let path =
        named.or_else(usual).ok_or("this system has no file of trusted certificates: name one in SSL_CERT_FILE")?;
    let pem = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    trusting(&pem, &[version]).map_err(|error: Error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_said_to_be_none() {
        let url = |text| Url::parse(text).map(|url| (url.is_secure, url.host, url.path));
        let is = |is_secure, host: &str, path: &str| Ok((is_secure, host.to_string(), path.to_string()));
        assert_eq!(url("http://example.com"), is(false, "example.com", "/"));
        assert_eq!(url("https://example.com:8443/a/b?c=d#e"), is(true, "example.com:8443", "/a/b?c=d"));
        assert_eq!(url("https://[::1]:8443?c"), is(true, "[::1]:8443", "/?c"));
        assert_eq!(url("http://[::1]/"), is(false, "[::1]", "/"));
        for text in [
            "",
            "none",
            "example.com",
            "ftp://example.com/",
            "http://",
            "https:///a",
            "http://u@h/",
            "http://u:p@h/",
            "http://h:x/",
        ] {
            assert!(url(text).is_err(), "{text}");
        }
    }
}
