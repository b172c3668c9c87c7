//! Opens connections and keeps them for reuse. Connections go through a proxy if the environment names one, and use TLS
//! for `https`.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::Uri;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HeaderValue;
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::Result;
use super::body::SlicedBody;
use super::no_proxy::is_exempt;
use super::open::{Environment, Options, Sockets};
use super::refusal::shown;
use super::watched::{CurrentRequest, WatchedStream};
use crate::{Attempt, Failure};

/// Default of [`Connections::timeout`], the time without progress after which a request fails.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time to open one connection.
const LIMIT: Duration = Duration::from_secs(20);
/// Maximum size in bytes of a proxy's answer to `CONNECT`.
const PROXY_HEAD_BYTES: usize = 16 << 10;
/// Default of [`Connections::kept`], the time until we close an unused connection. It is shorter than the time after
/// which most servers close it.
const KEPT: Duration = Duration::from_secs(4);
/// Maximum number of bytes that one read takes from a connection. The number is so small that the bytes are still in
/// the processor's cache when they are copied.
const READ_BYTES: usize = 256 << 10;
/// Maximum number of encrypted bytes that one read takes from a socket. It is four records of TLS. Without this buffer,
/// rustls reads at most 4 KiB at a time, so each record needs several system calls.
const READ_AHEAD_BYTES: usize = 64 << 10;

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The server to which a connection leads: its host and port, and whether TLS is used.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub secure: bool,
    pub host: String,
    pub port: u16,
}

/// Opens connections, and keeps unused ones for later requests.
pub struct Connections {
    /// Opens TLS connections. `None` until the first TLS connection, because loading the system's certificates takes
    /// milliseconds, and `http` does not need them.
    tls: Mutex<Option<TlsConnector>>,
    environment: Environment,
    sockets: Option<Sockets>,
    idle: Mutex<HashMap<Endpoint, Vec<IdleConnection>>>,
    /// Permits for connections that are in use or being opened. Unused connections are closed if they outnumber the
    /// free permits. The permits thus limit the number of all connections.
    permits: Arc<Semaphore>,
    /// Time until an unused connection is closed.
    kept: Duration,
    /// Time without progress after which a request fails.
    pub timeout: Duration,
}

/// An open connection. The task that waits for an answer also moves the bytes of the connection. With a second task for
/// this, each answer would have to wake both.
pub struct Connection {
    pub sender: SendRequest<SlicedBody>,
    pub driver: Driver,
    /// Receives the progress of the connection.
    pub request: CurrentRequest,
}

type HttpConnection = http1::Connection<TokioIo<Box<dyn Stream>>, SlicedBody>;

/// Moves the bytes of a connection.
pub struct Driver {
    /// `None` after the connection has ended.
    connection: Option<Pin<Box<HttpConnection>>>,
}

impl Driver {
    /// Waits for `work`, which uses the connection, and moves the connection's bytes meanwhile.
    pub async fn run<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            // First the bytes, because the server may have closed the connection. Then `work` takes them, or asks for
            // more.
            self.poll(context);
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            self.poll(context);
            work.as_mut().poll(context)
        })
        .await
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        // When the connection has failed, dropping it gives `work` the error.
        self.connection.take_if(|connection| connection.as_mut().poll(context).is_ready());
    }
}

impl Connection {
    /// Starts HTTP on a stream, which records its progress in `request`.
    async fn new(stream: Box<dyn Stream>, request: CurrentRequest) -> hyper::Result<Self> {
        let mut builder = http1::Builder::new();
        let opening = builder.read_buf_exact_size(Some(READ_BYTES)).handshake(TokioIo::new(stream));
        let (mut sender, connection) = opening.await?;
        let mut driver = Driver { connection: Some(Box::pin(connection)) };
        driver.run(sender.ready()).await?;
        Ok(Self { sender, driver, request })
    }
}

struct IdleConnection {
    connection: Connection,
    since: Instant,
    /// `true` if no request has been sent over this connection yet. The first request will be slow.
    is_new: bool,
}

/// A proxy. If it needs a user and password, `authorization` is the header with these.
pub struct Proxy {
    host: String,
    port: u16,
    pub authorization: Option<HeaderValue>,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = if self.secure { 443 } else { 80 };
        f.write_str(&self.host)?;
        if self.port == usual { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl Endpoint {
    pub fn from_uri(uri: &Uri) -> Result<Self> {
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(Failure::fatal("expected an address with http:// or https://")),
        };
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| Failure::fatal("the host in the address is missing"))?;
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        Ok(Self { secure, host: host.trim_matches(['[', ']']).into(), port })
    }
}

impl Connections {
    /// Creates an empty pool of connections.
    pub fn new(options: &Options) -> Self {
        Self {
            tls: Mutex::default(),
            environment: options.environment.clone(),
            sockets: options.sockets.clone(),
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(options.max_connections.unwrap_or(Semaphore::MAX_PERMITS))),
            kept: options.kept.unwrap_or(KEPT),
            timeout: options.timeout.unwrap_or(TIMEOUT),
        }
    }

    /// Returns the connector that opens TLS connections. The connector trusts the certificates in the file or folder
    /// that the environment names, or else the system's certificates.
    fn tls(&self) -> Result<TlsConnector> {
        let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tls) = &*tls {
            return Ok(tls.clone());
        }
        let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::fatal(format!("TLS: {error}")))?
            .with_root_certificates(roots(&self.environment)?)
            .with_no_client_auth();
        // HTTP/2 is not offered, because all parts would then share one connection.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(tls.insert(TlsConnector::from(Arc::new(config))).clone())
    }

    /// Returns the proxy for connections to this endpoint; `None` for a direct connection.
    pub fn proxy(&self, endpoint: &Endpoint) -> Result<Option<Proxy>> {
        // `HTTP_PROXY` is ignored. If this process is a CGI program, a client of the web server can set this variable
        // by a header `Proxy:`.
        let names: &[&str] = if endpoint.secure {
            &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        } else {
            &["http_proxy", "all_proxy", "ALL_PROXY"]
        };
        let Some(address) = self.environment.first(names) else { return Ok(None) };
        if self
            .environment
            .first(&["no_proxy", "NO_PROXY"])
            .is_some_and(|list| is_exempt(&endpoint.host, endpoint.port, list))
        {
            return Ok(None);
        }
        Proxy::parse(address).map(Some).ok_or_else(|| {
            let words = format!("the proxy in `{}` is not supported; expected http://HOST:PORT", names[0]);
            Failure::fatal(words).of_whole_store()
        })
    }

    /// Takes an unused connection to the server, or opens a new one. If the permitted number of requests is in flight,
    /// first waits until one of them has ended. The caller must drop the connection, or give it back to [`Self::keep`],
    /// before the caller drops the permit.
    pub async fn get(
        &self,
        endpoint: &Endpoint,
        proxy: Option<&Proxy>,
        attempt: &mut Attempt,
    ) -> Result<(OwnedSemaphorePermit, Connection)> {
        attempt.clock.iter().for_each(|clock| clock.stop());
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|error| Failure::fatal(error.to_string()))?;
        attempt.clock.iter().for_each(|clock| clock.start());
        if endpoint.secure {
            // Loading the certificates is not part of the time to connect.
            self.tls()?;
        }
        attempt.began = Some(Instant::now());
        while let Some(mut idle) = if attempt.is_fresh { None } else { self.take_idle(endpoint) } {
            // The server may have closed this connection. No part of the current request was sent over it yet, so the
            // loop can try another one.
            let Connection { sender, driver, .. } = &mut idle.connection;
            if let Ok(Ok(())) = timeout(KEPT, driver.run(sender.ready())).await {
                attempt.idle = Some(idle.since.elapsed());
                // The congestion window is still small for the first request of a connection. So this request counts as
                // if it had opened the connection.
                attempt.connected = attempt.began.filter(|_| idle.is_new);
                return Ok((permit, idle.connection));
            }
        }
        self.make_room();
        let connection = self.connect(endpoint, proxy, attempt).await?;
        Ok((permit, connection))
    }

    /// Closes unused connections until their number is at most the number of free permits. The caller is about to open
    /// a connection, because no unused connection leads to its server. The unused connections usually lead to other
    /// servers, such as the server before a redirect.
    fn make_room(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut excess = count(&idle).saturating_sub(self.permits.available_permits());
        for kept in idle.values_mut() {
            let closed = excess.min(kept.len());
            kept.drain(..closed);
            excess -= closed;
        }
    }

    /// Drops connections that are too old, or that have ended. If the server closed a connection while it was unused,
    /// this is noticed only when the connection is taken.
    fn drop_unusable(&self, idle: &mut Vec<IdleConnection>) {
        idle.retain(|idle| idle.since.elapsed() < self.kept && !idle.connection.sender.is_closed());
    }

    fn take_idle(&self, endpoint: &Endpoint) -> Option<IdleConnection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.get_mut(endpoint)?;
        self.drop_unusable(kept);
        kept.pop()
    }

    /// Keeps an open connection to `endpoint` for later requests. `is_new` is `true` if no request was sent over it.
    pub fn keep(&self, endpoint: Endpoint, connection: Connection, is_new: bool) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.entry(endpoint).or_default().push(IdleConnection { connection, since: Instant::now(), is_new });
    }

    /// Keeps a stream as an open connection to `endpoint`.
    #[cfg(test)]
    pub async fn keep_stream(&self, endpoint: Endpoint, stream: impl Stream + 'static) {
        let request = CurrentRequest::default();
        let stream = WatchedStream::new(stream, request.clone());
        self.keep(endpoint, Connection::new(Box::new(stream), request).await.unwrap(), true);
    }

    /// Opens connections until `connections` of them are unused, for requests that are about to be sent in parallel.
    /// Opens fewer if there would be more connections than permitted. Ignores errors, because the requests will report
    /// them.
    pub async fn prepare(self: &Arc<Self>, uri: &Uri, connections: usize) {
        let Ok(endpoint) = Endpoint::from_uri(uri) else { return };
        let mut connecting = JoinSet::new();
        for permit in self.permits_to_prepare(&endpoint, connections) {
            let (this, endpoint) = (Arc::clone(self), endpoint.clone());
            connecting.spawn(async move {
                let proxy = this.proxy(&endpoint)?;
                let connection = this.connect(&endpoint, proxy.as_ref(), &mut Attempt::default()).await?;
                this.keep(endpoint, connection, true);
                drop(permit);
                Ok::<(), Failure>(())
            });
        }
        while connecting.join_next().await.is_some() {}
    }

    /// Takes the permits for the connections that [`Self::prepare`] opens.
    fn permits_to_prepare(&self, endpoint: &Endpoint, connections: usize) -> Vec<OwnedSemaphorePermit> {
        // A request gives its connection back before its permit, and takes them in the other order. So a connection may
        // be counted twice here, but none is missed.
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.values_mut().for_each(|kept| self.drop_unusable(kept));
        let wanted = connections.saturating_sub(idle.get(endpoint).map_or(0, Vec::len));
        let room = self.permits.available_permits().saturating_sub(count(&idle));
        (0..wanted.min(room)).map_while(|_| Arc::clone(&self.permits).try_acquire_owned().ok()).collect()
    }

    /// Opens a new connection to a server, through the proxy if there is one.
    async fn connect(&self, endpoint: &Endpoint, proxy: Option<&Proxy>, attempt: &mut Attempt) -> Result<Connection> {
        let request = CurrentRequest::default();
        let opening = self.open(endpoint, proxy, &request, attempt);
        let limit = LIMIT.min(self.timeout);
        let late = || Failure::transient(format!("no connection to {endpoint} within {} s", limit.as_secs_f64()));
        let stream = timeout(limit, opening).await.unwrap_or_else(|_| Err(late()))?;
        let broken = |error: hyper::Error| Failure::transient(format!("the connection to {endpoint} ended: {error}"));
        Connection::new(stream, request).await.map_err(broken)
    }

    async fn open(
        &self,
        endpoint: &Endpoint,
        proxy: Option<&Proxy>,
        request: &CurrentRequest,
        attempt: &mut Attempt,
    ) -> Result<Box<dyn Stream>> {
        let (host, port) = proxy.map_or((&endpoint.host, endpoint.port), |proxy| (&proxy.host, proxy.port));
        // If the command has reached a server before, a host name that is now unknown is a sign of an outage.
        let was_known = attempt.contact.as_ref().is_some_and(|contact| contact.was_made());
        let unreachable = |error| unreachable(host, port, &error, was_known);
        let mut tcp = self.connect_tcp(host, port, attempt).await.map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        if !endpoint.secure {
            attempt.connected = Some(Instant::now());
            return Ok(Box::new(WatchedStream::new(tcp, request.clone())));
        }
        if let Some(proxy) = proxy {
            proxy.tunnel(&mut tcp, endpoint).await?;
        }
        attempt.connected = Some(Instant::now());
        let name = ServerName::try_from(endpoint.host.clone())
            .map_err(|_| Failure::fatal(format!("{} can't be the name of a server", endpoint.host)))?;
        let tcp = BufReader::with_capacity(READ_AHEAD_BYTES, WatchedStream::new(tcp, request.clone()));
        let stream = self.tls()?.connect(name, tcp).await.map_err(|error| insecure(&endpoint.host, &error))?;
        attempt.secured = Some(Instant::now());
        Ok(Box::new(stream))
    }

    /// Connects to a host, at the first of its addresses that accepts a connection.
    async fn connect_tcp(&self, host: &str, port: u16, attempt: &mut Attempt) -> io::Result<TcpStream> {
        let addresses = tokio::net::lookup_host((host, port)).await?;
        attempt.resolved = Some(Instant::now());
        let mut refused = io::Error::other("the name has no address");
        for address in addresses {
            match self.connect_to(address).await {
                Err(error) => refused = error,
                connected => return connected,
            }
        }
        Err(refused)
    }

    async fn connect_to(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let Some(sockets) = &self.sockets else { return TcpStream::connect(address).await };
        let socket = std::net::TcpStream::from(sockets(&address)?);
        socket.set_nonblocking(true)?;
        TcpSocket::from_std_stream(socket).connect(address).await
    }
}

/// Returns the number of unused connections to all servers.
fn count(idle: &HashMap<Endpoint, Vec<IdleConnection>>) -> usize {
    idle.values().map(Vec::len).sum()
}

impl Proxy {
    pub fn host(&self) -> &str {
        &self.host
    }

    fn parse(address: &str) -> Option<Self> {
        let rest = address.strip_prefix("http://").or_else(|| (!address.contains("://")).then_some(address))?;
        let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
        let uri: Uri = format!("http://{}/", host.trim_end_matches('/')).parse().ok()?;
        let authorization = if let Some(user) = user { Some(basic(user)?) } else { None };
        let host = uri.host()?.trim_matches(['[', ']']).into();
        Some(Self { host, port: uri.port_u16().unwrap_or(80), authorization })
    }

    /// Asks the proxy at `tcp` to connect this connection to `endpoint` (a tunnel).
    async fn tunnel(&self, tcp: &mut TcpStream, endpoint: &Endpoint) -> Result<()> {
        let proxy = format!("the proxy {}:{}", self.host, self.port);
        let broken = |error: io::Error| Failure::transient(format!("{proxy}: {error}"));
        let host = if endpoint.host.contains(':') { format!("[{}]", endpoint.host) } else { endpoint.host.clone() };
        let mut request = format!("CONNECT {host}:{0} HTTP/1.1\r\nHost: {host}:{0}\r\n", endpoint.port).into_bytes();
        if let Some(authorization) = &self.authorization {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(authorization.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        tcp.write_all(&request).await.map_err(broken)?;
        // After its answer, the proxy sends nothing until we do, because the client starts the TLS handshake. So no
        // byte of TLS is read here.
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            if answer.len() > PROXY_HEAD_BYTES || tcp.read_buf(&mut answer).await.map_err(broken)? == 0 {
                return Err(Failure::transient(format!("{proxy} did not answer")));
            }
        }
        let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        match status {
            Some(200..300) => Ok(()),
            Some(407) => {
                Err(Failure::denied(format!("{proxy} requires a user and a password; put them into its address")))
            }
            Some(status @ (429 | 500..600)) => Err(Failure::transient(format!("{proxy} answers {status}"))),
            Some(status) => Err(Failure::fatal(format!("{proxy} answers {status}"))),
            None => Err(Failure::fatal(format!("the server at {}:{} is not a proxy", self.host, self.port))),
        }
    }
}

/// Returns the value of an `Authorization` header (Basic) for the `USER:PASSWORD` of an address.
pub fn basic(user_info: &str) -> Option<HeaderValue> {
    let plain: Vec<u8> = percent_decode_str(user_info).collect();
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(plain))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn roots(environment: &Environment) -> Result<RootCertStore> {
    let named = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, environment.first(&[name])?)));
    let file = named(&["SSL_CERT_FILE", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"]);
    let folder = named(&["SSL_CERT_DIR"]);
    let loaded = if file.is_some() || folder.is_some() {
        let path = |(_, value)| Path::new(value);
        rustls_native_certs::load_certs_from_paths(file.map(path), folder.map(path))
    } else {
        rustls_native_certs::load_native_certs()
    };
    let mut roots = RootCertStore::empty();
    // Certificates that can't be parsed are ignored, because the system's folder often contains a few.
    roots.add_parsable_certificates(loaded.certs);
    if let (true, Some((variable, place))) = (roots.is_empty(), file.or(folder)) {
        let why = format!("there is no valid certificate in {place}; correct or unset {variable}");
        return Err(Failure::fatal(why).of_whole_store());
    }
    Ok(roots)
}

/// Returns the failure to connect to a host. `was_known` is `true` if the command has reached a server before.
fn unreachable(host: &str, port: u16, error: &io::Error, was_known: bool) -> Failure {
    let words = error.to_string();
    // The standard library has no error kind for an unknown host, so the text is searched.
    let is_unknown = ["not known", "no address", "nodename"].iter().any(|answer| words.contains(answer));
    if is_unknown && !was_known {
        let hint = "check the address, and the region or the account in it";
        return Failure::fatal(format!("there is no host {host}; {hint}")).of_whole_store();
    }
    Failure::transient(format!("no connection to {host}:{port}: {words}"))
}

fn insecure(host: &str, error: &io::Error) -> Failure {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return Failure::transient(format!("the connection to {host} ended during the TLS handshake: {error}"));
    };
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let failure = match tls {
        rustls::Error::InvalidCertificate(
            Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
        ) => Failure::fatal(format!(
            "the certificate of {host} is not valid at this time; check this machine's clock, which shows {}",
            shown(SystemTime::now())
        )),
        rustls::Error::InvalidCertificate(why) => Failure::fatal(format!(
            "the certificate of {host} is not trusted ({why}); if a proxy has replaced it, name the proxy's \
             bundle of certificates in SSL_CERT_FILE"
        )),
        rustls::Error::InvalidMessage(_) => {
            Failure::fatal(format!("{host} does not use TLS on this port; try http:// or another port"))
        }
        other => Failure::fatal(format!("TLS with {host}: {other}")),
    };
    failure.of_whole_store()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_certificate_error_names_its_remedy() {
        use rustls::CertificateError::{Expired, NotValidYet, UnknownIssuer};
        for (why, words) in [(Expired, "clock"), (NotValidYet, "clock"), (UnknownIssuer, "SSL_CERT_FILE")] {
            let error = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::InvalidCertificate(why));
            let failure = insecure("host", &error);
            assert!(failure.kind == crate::Kind::Fatal && failure.message.contains(words), "{failure}");
        }
    }

    /// Without a network, macOS and some routers answer that a host does not exist.
    #[test]
    fn a_host_that_vanishes_is_an_outage() {
        let error = io::Error::other("failed to lookup address information: Name or service not known");
        let [first, later] = [false, true].map(|was_known| unreachable("host", 443, &error, was_known));
        assert!(first.kind == crate::Kind::Fatal && first.concerns_whole_store, "{first}");
        assert!(later.kind == crate::Kind::Transient(None) && !later.concerns_whole_store, "{later}");
    }
}
