//! From a host's name to a stream of bytes: past a proxy where the environment names one, and through TLS.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::open::{Environment, Options, Sockets};
use super::refusal::shown;
use crate::{Attempt, Failure, Kind};

/// How long it may take until there is a connection.
const LIMIT: Duration = Duration::from_secs(20);
/// The most that a proxy may say before it lets us through.
const PROXY_HEAD_BYTES: usize = 16 << 10;

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What is at the other end: where connections are kept, one list for each.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Place {
    pub secure: bool,
    pub host: String,
    pub port: u16,
}

/// How connections are made.
pub struct Connector {
    tls: TlsConnector,
    environment: Environment,
    sockets: Option<Sockets>,
}

/// A proxy, and what it wants to be told.
pub struct Proxy {
    host: String,
    port: u16,
    pub authorization: Option<HeaderValue>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = if self.secure { 443 } else { 80 };
        f.write_str(&self.host)?;
        if self.port == usual { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl Place {
    pub fn of(uri: &Uri) -> Result<Self, Failure> {
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(fatal("an address begins with http:// or https://".into())),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| fatal("an address has a host".into()))?;
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        Ok(Self { secure, host: host.trim_matches(['[', ']']).into(), port })
    }
}

impl Connector {
    /// Trusts the system's certificates, or those of the file or folder that the environment names.
    pub fn new(options: &Options) -> Result<Self, Failure> {
        let environment = &options.environment;
        let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| fatal(format!("TLS: {error}")))?
            .with_root_certificates(roots(environment)?)
            .with_no_client_auth();
        // A connection a request: what HTTP/2 would share, blocks want for themselves.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            tls: TlsConnector::from(Arc::new(config)),
            environment: environment.clone(),
            sockets: options.sockets.clone(),
        })
    }

    /// The proxy on the way there.
    pub fn proxy(&self, place: &Place) -> Result<Option<Proxy>, Failure> {
        // In capitals it can be what a client of a web server wrote: CGI passes a header `Proxy:` on as HTTP_PROXY.
        let names: &[&str] = if place.secure {
            &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        } else {
            &["http_proxy", "all_proxy", "ALL_PROXY"]
        };
        let Some(address) = self.environment.first(names) else { return Ok(None) };
        if self.environment.first(&["no_proxy", "NO_PROXY"]).is_some_and(|list| is_exempt(&place.host, list)) {
            return Ok(None);
        }
        Proxy::parse(address).map(Some).ok_or_else(|| {
            fatal(format!("the proxy in `{}` is not of the form http://HOST:PORT: only such are spoken to", names[0]))
        })
    }

    /// Opens a connection.
    pub async fn connect(
        &self,
        place: &Place,
        proxy: Option<&Proxy>,
        seen: &mut Attempt,
    ) -> Result<Box<dyn Stream>, Failure> {
        let opening = self.open(place, proxy, seen);
        let limit = format!("no connection to {place} within {} s", LIMIT.as_secs());
        tokio::time::timeout(LIMIT, opening).await.unwrap_or_else(|_| Err(transient(limit)))
    }

    async fn open(&self, place: &Place, proxy: Option<&Proxy>, seen: &mut Attempt) -> Result<Box<dyn Stream>, Failure> {
        let (host, port) = proxy.map_or((&place.host, place.port), |proxy| (&proxy.host, proxy.port));
        let mut tcp = self.reach(host, port).await.map_err(|error| unreachable(host, port, &error))?;
        tcp.set_nodelay(true).map_err(|error| unreachable(host, port, &error))?;
        if !place.secure {
            seen.connected = Some(Instant::now());
            return Ok(Box::new(tcp));
        }
        if let Some(proxy) = proxy {
            proxy.tunnel(&mut tcp, place).await?;
        }
        seen.connected = Some(Instant::now());
        let name = ServerName::try_from(place.host.clone())
            .map_err(|_| fatal(format!("{} can't be the name of a server", place.host)))?;
        let stream = self.tls.connect(name, tcp).await.map_err(|error| insecure(&place.host, &error))?;
        seen.secured = Some(Instant::now());
        Ok(Box::new(stream))
    }

    /// A connection to the first of a host's addresses that takes one.
    async fn reach(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let Some(sockets) = &self.sockets else { return TcpStream::connect((host, port)).await };
        let mut refused = io::Error::other("its name has no address");
        for address in tokio::net::lookup_host((host, port)).await? {
            let socket = std::net::TcpStream::from(sockets(&address)?);
            socket.set_nonblocking(true)?;
            match TcpSocket::from_std_stream(socket).connect(address).await {
                Err(error) => refused = error,
                connected => return connected,
            }
        }
        Err(refused)
    }
}

impl Proxy {
    fn parse(address: &str) -> Option<Self> {
        let rest = address.strip_prefix("http://").or_else(|| (!address.contains("://")).then_some(address))?;
        let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
        let uri: Uri = format!("http://{}/", host.trim_end_matches('/')).parse().ok()?;
        let authorization = match user {
            Some(user) => Some(basic(user)?),
            None => None,
        };
        let host = uri.host()?.trim_matches(['[', ']']).into();
        Some(Self { host, port: uri.port_u16().unwrap_or(80), authorization })
    }

    /// Asks the proxy to be let through.
    async fn tunnel(&self, tcp: &mut TcpStream, place: &Place) -> Result<(), Failure> {
        let broken = |error: io::Error| transient(format!("the proxy {}:{}: {error}", self.host, self.port));
        let host = if place.host.contains(':') { format!("[{}]", place.host) } else { place.host.clone() };
        let mut asked = format!("CONNECT {host}:{0} HTTP/1.1\r\nHost: {host}:{0}\r\n", place.port).into_bytes();
        if let Some(authorization) = &self.authorization {
            asked.extend_from_slice(b"Proxy-Authorization: ");
            asked.extend_from_slice(authorization.as_bytes());
            asked.extend_from_slice(b"\r\n");
        }
        asked.extend_from_slice(b"\r\n");
        tcp.write_all(&asked).await.map_err(broken)?;
        // Behind its answer nothing comes before we have spoken: a client begins with TLS.
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            if answer.len() > PROXY_HEAD_BYTES || tcp.read_buf(&mut answer).await.map_err(broken)? == 0 {
                return Err(transient(format!("the proxy {}:{} gave no answer", self.host, self.port)));
            }
        }
        let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        match status {
            Some(200..300) => Ok(()),
            Some(407) => Err(Failure {
                kind: Kind::Denied,
                said: format!("the proxy {}:{} wants a user and password in its address", self.host, self.port),
            }),
            Some(status @ (429 | 500..600)) => {
                Err(transient(format!("the proxy {}:{} answers {status}", self.host, self.port)))
            }
            Some(status) => Err(fatal(format!("the proxy {}:{} answers {status}", self.host, self.port))),
            None => Err(fatal(format!("what is at {}:{} is no proxy", self.host, self.port))),
        }
    }
}

/// The header for a user and password as they stand in an address.
pub fn basic(user_info: &str) -> Option<HeaderValue> {
    let plain: Vec<u8> = percent_decode_str(user_info).collect();
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(plain))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Whether a host is in such a list: `localhost,.internal,10.0.0.1,*`.
fn is_exempt(host: &str, list: &str) -> bool {
    list.split(',').map(|entry| entry.trim().trim_start_matches('.')).filter(|entry| !entry.is_empty()).any(|entry| {
        entry == "*"
            || host.eq_ignore_ascii_case(entry)
            || host.len() > entry.len()
                && host.as_bytes()[host.len() - entry.len() - 1] == b'.'
                && host.as_bytes()[host.len() - entry.len()..].eq_ignore_ascii_case(entry.as_bytes())
    })
}

fn roots(environment: &Environment) -> Result<RootCertStore, Failure> {
    let file = environment.first(&["SSL_CERT_FILE", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"]);
    let folder = environment.first(&["SSL_CERT_DIR"]);
    let loaded = if file.is_some() || folder.is_some() {
        rustls_native_certs::load_certs_from_paths(file.map(Path::new), folder.map(Path::new))
    } else {
        rustls_native_certs::load_native_certs()
    };
    let mut roots = RootCertStore::empty();
    // A system's folder often has a few that nobody can read.
    roots.add_parsable_certificates(loaded.certs);
    if let (true, Some(place)) = (roots.is_empty(), file.or(folder)) {
        return Err(fatal(format!("there is no certificate in {place}, which the environment names")));
    }
    Ok(roots)
}

fn unreachable(host: &str, port: u16, error: &io::Error) -> Failure {
    let words = error.to_string();
    // The resolver's answer has no code of its own in the standard library.
    let unknown = words.contains("not known") || words.contains("no address") || words.contains("nodename");
    if unknown {
        return fatal(format!("there is no host {host}: is the address right, and the region or the account in it?"));
    }
    transient(format!("no connection to {host}:{port}: {words}"))
}

fn insecure(host: &str, error: &io::Error) -> Failure {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return transient(format!("the connection to {host} ended while keys were agreed upon: {error}"));
    };
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    match tls {
        rustls::Error::InvalidCertificate(
            Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
        ) => fatal(format!(
            "the certificate of {host} is not valid at this time: is this machine's clock right, which says {}?",
            shown(SystemTime::now())
        )),
        rustls::Error::InvalidCertificate(why) => fatal(format!(
            "the certificate of {host} is not trusted ({why}): if a proxy has put in its own, name its bundle in \
             SSL_CERT_FILE"
        )),
        rustls::Error::InvalidMessage(_) => {
            fatal(format!("{host} does not speak TLS there: is it http:// or another port?"))
        }
        other => fatal(format!("TLS with {host}: {other}")),
    }
}

pub fn fatal(said: String) -> Failure {
    Failure { kind: Kind::Fatal, said }
}

pub fn transient(said: String) -> Failure {
    Failure { kind: Kind::Transient(None), said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_certificate_lacks_is_told_apart() {
        use rustls::CertificateError::{Expired, NotValidYet, UnknownIssuer};
        for (why, words) in [(Expired, "clock"), (NotValidYet, "clock"), (UnknownIssuer, "SSL_CERT_FILE")] {
            let error = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::InvalidCertificate(why));
            let failure = insecure("host", &error);
            assert!(failure.kind == Kind::Fatal && failure.said.contains(words), "{failure}");
        }
    }
}
