//! The clients, which download one large body on each stream.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, TargetError};
use ascertain_netlab::http::{
    CERTIFICATE_PEM, ClientOptions, Connection, HttpRequest, HttpResponse, Tls, TlsSession, TlsVersion,
    download_with_rustls, trusting_ours,
};
use ascertain_netlab::installed::Folder;
use ascertain_netlab::{Error, Phases, now_ns};
use ascertain_sys::clock::thread_cpu_ns;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::{Command, Exit, Output, Prepared};

use super::go::{self, GoProcess};
use super::servers::BodyServer;
use super::{CIPHERS, CURL, GO, PLAIN, RUSTLS};
use crate::levels::word;
use crate::links::{attended, failed};

/// Time limit of a download, in addition to the time for its bytes. The limit is long, because the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Lowest throughput, in bytes per second, for which the time limit of a download is long enough. The limit is
/// generous, because every machine is faster.
const FEWEST_BYTES_PER_S: u64 = 5_000_000;

/// The response on one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamResponse {
    pub status: u16,
    pub bytes: u64,
    pub protocol: String,
    /// The cipher suite by its official name, such as `TLS_AES_128_GCM_SHA256`; `None` without TLS, or if the client
    /// does not report it.
    pub cipher: Option<String>,
}

/// The responses on all streams, with their duration and the client's CPU time.
pub struct Download {
    pub responses: Vec<StreamResponse>,
    pub took_ns: u64,
    pub cpu_ns: u64,
}

pub enum Client {
    Own(ClientOptions),
    /// The TLS library of our own client, without an HTTP library and without a runtime.
    Rustls(ClientOptions),
    Curl(Curl),
    /// The process of the Go client, with the scheme of the URLs that the client requests.
    Go(GoProcess, &'static str),
}

/// The curl commands, one for each stream, and a folder with the certificate that they trust.
pub struct Curl {
    transfers: Vec<Prepared>,
    /// A curl command that prints the negotiated cipher suite.
    verbose: Command,
    _folder: Folder,
}

/// Returns the official name of the cipher suite that the arm must use; `None` without TLS.
pub fn cipher_of(arm: &Arm) -> Option<String> {
    let (_, name) = CIPHERS.into_iter().find(|(level, _)| *level == word(arm, "cipher"))?;
    (arm.variant != PLAIN).then(|| official(name))
}

/// Converts the name that rustls gives to a cipher suite to the official name.
fn official(name: &str) -> String {
    name.replace("TLS13_", "TLS_")
}

/// Returns the official name of the connection's cipher suite; `None` without TLS.
pub fn cipher_on(connection: &Connection) -> Option<String> {
    cipher_in(connection.session())
}

fn cipher_in(session: Option<&TlsSession>) -> Option<String> {
    session.map(|session| official(&session.cipher))
}

fn tls_of(arm: &Arm) -> Result<Option<Tls>, TargetError> {
    let name = cipher_of(arm).map(|name| name.replace("TLS_", "TLS13_"));
    name.map(|name| trusting_ours(&[TlsVersion::V1_3])?.with_cipher(&name)).transpose().map_err(failed)
}

fn limit(bytes: u64) -> Duration {
    PATIENCE + Duration::from_secs(bytes / FEWEST_BYTES_PER_S)
}

impl Client {
    /// Starts the arm's client, which will download `path`.
    pub fn start(arm: &Arm, serving: &BodyServer, path: &str, stop: &Stop) -> Result<Self, TargetError> {
        Ok(match word(arm, "client") {
            CURL => Self::Curl(Curl::new(arm, serving, path, stop)?),
            GO => {
                let is_secure = arm.variant != PLAIN;
                Self::Go(go::client(is_secure)?, if is_secure { "https" } else { "http" })
            }
            client => {
                let options = ClientOptions { tls: tls_of(arm)?, ..ClientOptions::plain("localhost", PATIENCE) };
                if client == RUSTLS { Self::Rustls(options) } else { Self::Own(options) }
            }
        })
    }

    /// Downloads `path`, which has `bytes` bytes, from all addresses at the same time, over a new connection to each
    /// address.
    pub fn download(
        &mut self,
        addresses: &[SocketAddr],
        path: &str,
        bytes: u64,
        stop: &Stop,
    ) -> Result<Download, TargetError> {
        let limit = limit(bytes * addresses.len() as u64);
        match self {
            Self::Own(offer) => own(&ClientOptions { limit, ..offer.clone() }, addresses, path, stop, by_hyper),
            Self::Rustls(offer) => {
                own(&ClientOptions { limit, ..offer.clone() }, addresses, path, stop, download_with_rustls)
            }
            Self::Curl(curl) => curl.download(limit, stop),
            Self::Go(end, scheme) => {
                let urls = addresses.iter().map(|address| format!("{scheme}://{address}{path}"));
                by_go(end, &urls.collect::<Vec<_>>(), limit, stop)
            }
        }
    }

    /// Finds out the cipher suite over an extra connection, whose time is not measured. Returns `None` if no extra
    /// connection is needed, because the client reports the cipher suite with each download.
    pub fn cipher(&self) -> Result<Option<String>, TargetError> {
        match self {
            Self::Curl(curl) => curl.cipher(),
            Self::Own(_) | Self::Rustls(_) | Self::Go(..) => Ok(None),
        }
    }
}

/// Opens a TCP connection to each address.
pub fn connect(addresses: &[SocketAddr]) -> Result<Vec<TcpStream>, TargetError> {
    let connect = |address| {
        TcpStream::connect(address).map_err(|error| failed(format!("could not connect to {address}: {error}")))
    };
    addresses.iter().map(connect).collect()
}

/// Downloads `path` over a connection with our own client.
fn by_hyper(
    stream: TcpStream,
    options: &ClientOptions,
    path: &str,
) -> Result<(HttpResponse, Option<TlsSession>), Error> {
    let mut connection = Connection::open(stream, options, &mut Phases::begin(0))?;
    let answer = connection.send(&HttpRequest::get(path), &mut Phases::begin(0))?;
    Ok((answer, connection.session().cloned()))
}

/// Downloads `path` from all addresses with `download`, on a thread for each connection.
fn own(
    offer: &ClientOptions,
    addresses: &[SocketAddr],
    path: &str,
    stop: &Stop,
    download: impl Fn(TcpStream, &ClientOptions, &str) -> Result<(HttpResponse, Option<TlsSession>), Error>
    + Copy
    + Send
    + Sync,
) -> Result<Download, TargetError> {
    let start_ns = now_ns();
    let streams = connect(addresses)?;
    let shared = streams.iter().map(TcpStream::try_clone).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let get = |stream| {
        move || {
            let before_ns = thread_cpu_ns();
            let (answer, session) = download(stream, offer, path)?;
            let (cpu_ns, end_ns) = (thread_cpu_ns() - before_ns, now_ns());
            let cipher = cipher_in(session.as_ref());
            let (status, bytes, protocol) = (answer.status, answer.body_bytes, answer.version.into());
            Ok((StreamResponse { status, bytes, protocol, cipher }, cpu_ns, end_ns))
        }
    };
    let cut = || shared.iter().for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
    let got = attended(streams.into_iter().map(get).collect(), offer.limit, stop, cut)?;
    let got = got.into_iter().collect::<Result<Vec<_>, Error>>().map_err(failed)?;
    let end_ns = got.iter().map(|(.., end_ns)| *end_ns).max().unwrap_or(start_ns);
    let cpu_ns = got.iter().map(|(_, cpu_ns, _)| cpu_ns).sum();
    let responses = got.into_iter().map(|(response, ..)| response).collect();
    Ok(Download { responses, took_ns: end_ns - start_ns, cpu_ns })
}

impl Curl {
    fn new(arm: &Arm, serving: &BodyServer, path: &str, stop: &Stop) -> Result<Self, TargetError> {
        let folder = Folder::new().map_err(failed)?;
        let certificate = folder.path().join("certificate.pem");
        fs::write(&certificate, CERTIFICATE_PEM).map_err(failed)?;
        let cipher = cipher_of(arm);
        let command = |stream: usize, options: &[&str]| {
            let scheme = if cipher.is_some() { "https" } else { "http" };
            let url = format!("{scheme}://{}{path}", serving.address(stream));
            let certificate = certificate.to_string_lossy();
            // `--disable` ignores the user's configuration file. curl accepts it only as the first option.
            let mut words = vec!["--disable", "--noproxy", "*", "--http1.1", "--show-error", "--cacert", &certificate];
            if let Some(cipher) = &cipher {
                words.extend(["--tlsv1.3", "--tls13-ciphers", cipher]);
            }
            words.extend(options);
            words.push(&url);
            Command { stdout: Output::Memory, stderr: Output::Memory, ..Command::new("curl", &words) }
        };
        let says = "%{http_code} %{size_download} HTTP/%{http_version} -\n";
        let transfer = |stream| {
            let command = command(stream, &["--silent", "--output", "/dev/null", "--write-out", says]);
            Prepared::new(&command).map(|prepared| prepared.stopping_with(stop)).map_err(failed)
        };
        let transfers = (0..arm.integer("streams")? as usize).map(transfer).collect::<Result<_, _>>()?;
        let verbose = command(0, &["--verbose", "--head", "--max-time", "20"]);
        Ok(Self { transfers, verbose, _folder: folder })
    }

    #[cfg(test)]
    pub fn folder(&self) -> &std::path::Path {
        self._folder.path()
    }

    fn download(&self, limit: Duration, stop: &Stop) -> Result<Download, TargetError> {
        let start_ns = now_ns();
        let run = |transfer| move || (Prepared::run(transfer, Some(limit)), now_ns());
        // Each command has its own time limit and checks `stop` itself, so nothing has to be cut off here.
        let ran = attended(self.transfers.iter().map(run).collect(), limit + PATIENCE, stop, || ())?;
        let (mut responses, mut cpu_ns, mut end_ns) = (Vec::new(), 0, start_ns);
        for ((usage, ended_ns), transfer) in ran.into_iter().zip(&self.transfers) {
            let usage = usage.map_err(failed)?;
            let said = String::from_utf8_lossy(&transfer.captured_output()).trim_end().to_string();
            match usage.exit {
                Exit::Code(0) => responses.push(read(&said)?),
                Exit::Interrupted => return Err(TargetError::Interrupted),
                Exit::TimedOut => return Err(failed(Error::TimedOut { limit })),
                Exit::Code(_) | Exit::Signal(_) => return Err(failed(format!("curl failed: {said}"))),
            }
            cpu_ns += usage.user_ns + usage.system_ns;
            end_ns = end_ns.max(ended_ns);
        }
        Ok(Download { responses, took_ns: end_ns - start_ns, cpu_ns })
    }

    /// Returns the cipher suite from curl's verbose output for an extra request, which is not measured.
    fn cipher(&self) -> Result<Option<String>, TargetError> {
        let mut command = std::process::Command::new(&self.verbose.program);
        let output = command.args(&self.verbose.args).stdin(Stdio::null()).output();
        let output = output.map_err(|error| failed(format!("curl could not be started: {error}")))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let behind = said.split_once("SSL connection using TLSv1.3 / ").map(|(_, behind)| behind);
        Ok(behind.and_then(|behind| behind.split_whitespace().next()).map(str::to_string))
    }
}

fn by_go(end: &mut GoProcess, urls: &[String], limit: Duration, stop: &Stop) -> Result<Download, TargetError> {
    let before_ns = end.cpu_ns().map_err(failed)?;
    let start_ns = now_ns();
    end.tell(&urls.join(" "))?;
    let (said, end_ns) = end.line(limit, stop)?;
    let cpu_ns = end.cpu_ns().map_err(failed)? - before_ns;
    let responses = said.split("; ").map(read).collect::<Result<_, _>>()?;
    Ok(Download { responses, took_ns: end_ns - start_ns, cpu_ns })
}

/// Parses a client's report about one stream, such as `200 14000 HTTP/1.1 TLS_AES_128_GCM_SHA256`.
fn read(said: &str) -> Result<StreamResponse, TargetError> {
    let read = || {
        let [status, bytes, protocol, cipher] = said.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let cipher = Some(cipher.to_string()).filter(|cipher| cipher != "-");
        Some(StreamResponse {
            status: status.parse().ok()?,
            bytes: bytes.parse().ok()?,
            protocol: protocol.into(),
            cipher,
        })
    };
    read().ok_or_else(|| failed(said.strip_prefix("error: ").unwrap_or(said)))
}
