//! The addresses of pages that users want to measure.

use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, io};

use ascertain_engine::experiment::{Accepts, Address, Arm, Level};
use ascertain_netlab::Error;
use ascertain_netlab::http::{Tls, TlsVersion, trusting};

use crate::links::OURS;

/// Usual paths of the file with the certificates that a system trusts. The first path that exists is used.
const ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// An address that begins with `http://` or `https://`. If the user gave it as `$NAME`, the address is in the
/// environment variable NAME, and `$NAME` is displayed instead of the address.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    pub is_secure: bool,
    /// The host as written in the address, with the port if it has one.
    pub host: String,
    pub path: String,
    written: String,
}

impl Url {
    /// Returns the rule for the levels of a factor that takes addresses.
    pub fn accepted() -> Accepts {
        let schemes = ["http://", "https://"].map(String::from).into();
        Accepts::Address { none: OURS.into(), schemes, from_variable: true }
    }

    /// Returns the address of a page on a server in this process, without TLS.
    pub fn ours(address: SocketAddr, path: &str) -> Self {
        let host = address.to_string();
        Self { is_secure: false, written: format!("http://{host}{path}"), host, path: path.into() }
    }

    /// Returns the address that a factor names; `None` if the page is on our own server.
    ///
    /// # Errors
    /// Returns the reason, for the user, if the address is invalid.
    pub fn from_arm(arm: &Arm, factor: &str) -> Result<Option<Self>, String> {
        let address = arm.address(factor, OURS).map_err(|error| error.to_string())?;
        address.as_ref().map(Self::parse).transpose()
    }

    /// Checks that a level is an address, or selects our own server.
    ///
    /// # Errors
    /// Returns the reason, for the user, if it is neither.
    pub fn check(level: &Level) -> Result<(), String> {
        if *level == OURS.into() {
            return Ok(());
        }
        let address = Address::from_level(level).map_err(|error| error.to_string())?;
        Self::parse(&address).map(drop)
    }

    fn parse(address: &Address) -> Result<Self, String> {
        let schemes = [("http://", false), ("https://", true)];
        let text = &*address.secret;
        let found = schemes.iter().find_map(|(scheme, is_secure)| Some((text.strip_prefix(scheme)?, *is_secure)));
        let (rest, is_secure) = found.ok_or_else(|| format!("`{address}` must begin with http:// or https://"))?;
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
        if !rest.bytes().all(is_allowed) {
            return Err(format!("`{address}` has a character that is not allowed in an address"));
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if host.is_empty() || host.contains('@') {
            return Err(format!("`{address}` has no host, or has a user name before it"));
        }
        // For an IPv6 address in brackets, the text after the bracket.
        let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
        if behind.split_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_err()) {
            return Err(format!("`{address}` has a port that is not a number up to 65535"));
        }
        let path = if path.starts_with('/') { path.into() } else { format!("/{path}") };
        Ok(Self { is_secure, host: host.into(), path, written: address.to_string() })
    }

    /// Returns `text` with this address's host and path replaced by `$NAME`, if they come from that environment
    /// variable.
    pub fn without_secret(&self, text: &str) -> String {
        if !self.written.starts_with('$') {
            return text.to_string();
        }
        // The host without its port. Errors about certificates and name resolution contain the host in this form.
        let name = self.host.rsplit_once(':').map_or(&*self.host, |(name, _)| name);
        let secrets = [&*self.path, &*self.host, name].into_iter().filter(|part| part.len() > 1);
        secrets.fold(text.to_string(), |text, part| text.replace(part, &self.written))
    }

    /// Connects to the host: to the first of its IP addresses that accepts a connection within `limit`.
    ///
    /// # Errors
    /// Returns the error of the name resolution, or of the last connection attempt.
    pub fn connect(&self, limit: Duration) -> io::Result<(SocketAddr, TcpStream)> {
        let has_port = self.host.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
        let port = if self.is_secure { 443 } else { 80 };
        let addresses =
            if has_port { self.host.to_socket_addrs() } else { format!("{}:{port}", self.host).to_socket_addrs() };
        let mut error = io::Error::other("the host name has no address");
        for address in addresses? {
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => return Ok((address, stream)),
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({:?})", self.written)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// Returns a TLS configuration that trusts this system's certificates: those in the file that `SSL_CERT_FILE` names, or
/// in one of the usual files.
///
/// # Errors
/// Returns the reason if the file is missing or invalid.
pub fn trusted_here(versions: &[TlsVersion]) -> Result<Tls, String> {
    let named = env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let usual = || ROOTS.iter().map(PathBuf::from).find(|path| path.is_file());
    let path = named
        .or_else(usual)
        .ok_or("found no file of trusted certificates on this system; set SSL_CERT_FILE to the path of one")?;
    let pem = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    trusting(&pem, versions).map_err(|error: Error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use ascertain_sys::testing;

    use super::*;

    #[test]
    fn addresses_are_read_or_said_to_be_none() {
        let url = |text: &str| {
            let address = Address::from_level(&text.into()).unwrap();
            Url::parse(&address).map(|url| (url.is_secure, url.host, url.path))
        };
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
            "http://h/a b",
            "http://h/\u{7f}",
        ] {
            assert!(url(text).is_err(), "{text}");
            assert!(text == "none" || Url::check(&text.into()).is_err(), "{text}");
        }
    }

    /// Levels and errors are recorded, so neither may contain a secret.
    #[test]
    fn a_secret_stands_in_a_variable_and_is_never_printed() {
        let url = Url::accepted();
        for text in ["https://u:SECRET@host/", "https://host/?token=SECRET", "https://host/#SECRET", "ftp://host", "x"]
        {
            assert!(!url.admits(&text.into()), "{text}");
        }
        for text in ["none", "http://host", "https://host:8443/a/b", "$PAGE"] {
            assert!(url.admits(&text.into()), "{text}");
        }
        testing::alone_with(&[("PAGE", "https://host/?token=SECRET"), ("WRONG", "ftp://SECRET@host")], || {
            let of = |name: &str| Url::parse(&Address::from_level(&name.into()).unwrap());
            let page = of("$PAGE").unwrap();
            assert_eq!((&*page.host, &*page.path, page.to_string()), ("host", "/?token=SECRET", "$PAGE".into()));
            assert_eq!(format!("{page:?}"), "Url(\"$PAGE\")");
            let said = page.without_secret("certificate not valid for name \"host\"; at /?token=SECRET of host");
            assert!(!said.contains("SECRET") && !said.contains("host"), "{said}");
            let error = of("$WRONG").unwrap_err();
            assert!(error.contains("$WRONG") && !error.contains("SECRET"), "{error}");
        });
    }
}
