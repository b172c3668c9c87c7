//! Who asks for one large body on each stream.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, TargetError};
use ascertain_netlab::http::{CERTIFICATE_PEM, Connection, Offer, Request, Tls, TlsVersion, trusting_ours};
use ascertain_netlab::installed::Folder;
use ascertain_netlab::{Error, Phases, now_ns};
use ascertain_sys::clock::thread_cpu_ns;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::{Command, Exit, Output, Prepared};

use super::go::{self, End};
use super::servers::{Serving, word};
use super::{CIPHERS, CURL, GO, PLAIN};
use crate::links::failed;

/// Longer than anything takes beside its bytes, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked whether they have ended.
const LOOK: Duration = Duration::from_millis(2);
/// Slower than any machine is.
const FEWEST_BYTES_PER_S: u64 = 5_000_000;

/// What a stream saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub status: u16,
    pub bytes: u64,
    pub protocol: String,
    /// By the name that TLS 1.3 has for it; none where nobody said.
    pub cipher: Option<String>,
}

/// What all streams saw, and what that cost.
pub struct Download {
    pub seen: Vec<Seen>,
    pub took_ns: u64,
    pub cpu_ns: u64,
}

pub enum Client {
    Own(Offer),
    Curl(Curl),
    /// With the scheme that it asks by.
    Go(End, &'static str),
}

/// One command for each stream, in a folder with the certificate.
pub struct Curl {
    transfers: Vec<Prepared>,
    /// Says what was agreed upon.
    verbose: Command,
    _folder: Folder,
}

/// The cipher that is to be agreed upon, by its name in TLS 1.3; none in the open.
pub fn cipher_of(arm: &Arm) -> Option<String> {
    let (_, name) = CIPHERS.into_iter().find(|(level, _)| *level == word(arm, "cipher"))?;
    (arm.variant != PLAIN).then(|| official(name))
}

/// rustls has one name for all versions.
fn official(name: &str) -> String {
    name.replace("TLS13_", "TLS_")
}

/// What encrypts there, by its name in TLS 1.3; none in the open.
pub fn cipher_on(connection: &Connection) -> Option<String> {
    connection.session().map(|session| official(&session.cipher))
}

fn tls_of(arm: &Arm) -> Result<Option<Tls>, TargetError> {
    let name = cipher_of(arm).map(|name| name.replace("TLS_", "TLS13_"));
    name.map(|name| trusting_ours(&[TlsVersion::V1_3])?.with_cipher(&name)).transpose().map_err(failed)
}

fn limit(bytes: u64) -> Duration {
    PATIENCE + Duration::from_secs(bytes / FEWEST_BYTES_PER_S)
}

impl Client {
    /// The arm's, who asks for that path.
    pub fn start(arm: &Arm, serving: &Serving, path: &str, stop: &Stop) -> Result<Self, TargetError> {
        Ok(match word(arm, "client") {
            CURL => Self::Curl(Curl::new(arm, serving, path, stop)?),
            GO => {
                let is_secure = arm.variant != PLAIN;
                Self::Go(go::client(is_secure)?, if is_secure { "https" } else { "http" })
            }
            _ => Self::Own(Offer { tls: tls_of(arm)?, ..Offer::plain("localhost", PATIENCE) }),
        })
    }

    /// Asks for `bytes` at that path on each stream, which has a connection of its own.
    pub fn download(
        &mut self,
        addresses: &[SocketAddr],
        path: &str,
        bytes: u64,
        stop: &Stop,
    ) -> Result<Download, TargetError> {
        let limit = limit(bytes * addresses.len() as u64);
        match self {
            Self::Own(offer) => own(&Offer { limit, ..offer.clone() }, addresses, path, stop),
            Self::Curl(curl) => curl.download(limit, stop),
            Self::Go(end, scheme) => {
                let urls = addresses.iter().map(|address| format!("{scheme}://{address}{path}"));
                by_go(end, &urls.collect::<Vec<_>>(), limit, stop)
            }
        }
    }

    /// What encrypts, where that is not seen with each download.
    pub fn cipher(&self) -> Result<Option<String>, TargetError> {
        match self {
            Self::Curl(curl) => curl.cipher(),
            Self::Own(_) | Self::Go(..) => Ok(None),
        }
    }
}

fn own(offer: &Offer, addresses: &[SocketAddr], path: &str, stop: &Stop) -> Result<Download, TargetError> {
    let start_ns = now_ns();
    let connect =
        |address| TcpStream::connect(address).map_err(|error| failed(format!("no connection to {address}: {error}")));
    let streams = addresses.iter().map(connect).collect::<Result<Vec<_>, _>>()?;
    let shared = streams.iter().map(TcpStream::try_clone).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let get = |stream| {
        let request = Request::get(path);
        move || {
            let before_ns = thread_cpu_ns();
            let mut connection = Connection::open(stream, offer, &mut Phases::begin(0))?;
            let answer = connection.send(&request, &mut Phases::begin(0))?;
            let end_ns = now_ns();
            let cipher = cipher_on(&connection);
            let (status, bytes, protocol) = (answer.status, answer.body_bytes, answer.version.into());
            let seen = Seen { status, bytes, protocol, cipher };
            Ok((seen, thread_cpu_ns() - before_ns, end_ns))
        }
    };
    let cut = || shared.iter().for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
    let got = attended(streams.into_iter().map(get).collect(), offer.limit, stop, cut)?;
    let got = got.into_iter().collect::<Result<Vec<_>, Error>>().map_err(failed)?;
    let end_ns = got.iter().map(|(.., end_ns)| *end_ns).max().unwrap_or(start_ns);
    let cpu_ns = got.iter().map(|(_, cpu_ns, _)| cpu_ns).sum();
    Ok(Download { seen: got.into_iter().map(|(seen, ..)| seen).collect(), took_ns: end_ns - start_ns, cpu_ns })
}

impl Curl {
    fn new(arm: &Arm, serving: &Serving, path: &str, stop: &Stop) -> Result<Self, TargetError> {
        let folder = Folder::new().map_err(failed)?;
        let certificate = folder.path().join("certificate.pem");
        fs::write(&certificate, CERTIFICATE_PEM).map_err(failed)?;
        let cipher = cipher_of(arm);
        let command = |stream: usize, options: &[&str]| {
            let scheme = if cipher.is_some() { "https" } else { "http" };
            let url = format!("{scheme}://{}{path}", serving.address(stream));
            let certificate = certificate.to_string_lossy();
            // First of all nothing that its user has set.
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
        // They see to their own limit, and whether somebody asked for the end.
        let ran = attended(self.transfers.iter().map(run).collect(), limit + PATIENCE, stop, || ())?;
        let (mut seen, mut cpu_ns, mut end_ns) = (Vec::new(), 0, start_ns);
        for ((usage, ended_ns), transfer) in ran.into_iter().zip(&self.transfers) {
            let usage = usage.map_err(failed)?;
            let said = String::from_utf8_lossy(&transfer.said()).trim_end().to_string();
            match usage.exit {
                Exit::Code(0) => seen.push(read(&said)?),
                Exit::Interrupted => return Err(TargetError::Interrupted),
                Exit::TimedOut => return Err(failed(Error::TimedOut { limit })),
                Exit::Code(_) | Exit::Signal(_) => return Err(failed(format!("curl failed: {said}"))),
            }
            cpu_ns += usage.user_ns + usage.system_ns;
            end_ns = end_ns.max(ended_ns);
        }
        Ok(Download { seen, took_ns: end_ns - start_ns, cpu_ns })
    }

    /// As it says where it is asked to say everything, which is not measured.
    fn cipher(&self) -> Result<Option<String>, TargetError> {
        let mut command = std::process::Command::new(&self.verbose.program);
        let output = command.args(&self.verbose.args).stdin(Stdio::null()).output();
        let output = output.map_err(|error| failed(format!("curl could not be started: {error}")))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let behind = said.split_once("SSL connection using TLSv1.3 / ").map(|(_, behind)| behind);
        Ok(behind.and_then(|behind| behind.split_whitespace().next()).map(str::to_string))
    }
}

fn by_go(end: &mut End, urls: &[String], limit: Duration, stop: &Stop) -> Result<Download, TargetError> {
    let before_ns = end.cpu_ns().map_err(failed)?;
    let start_ns = now_ns();
    end.tell(&urls.join(" "))?;
    let (said, end_ns) = end.line(limit, stop)?;
    let cpu_ns = end.cpu_ns().map_err(failed)? - before_ns;
    let seen = said.split("; ").map(read).collect::<Result<_, _>>()?;
    Ok(Download { seen, took_ns: end_ns - start_ns, cpu_ns })
}

/// What a program says of a stream: `200 14000 HTTP/1.1 TLS_AES_128_GCM_SHA256`.
fn read(said: &str) -> Result<Seen, TargetError> {
    let read = || {
        let [status, bytes, protocol, cipher] = said.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let cipher = Some(cipher.to_string()).filter(|cipher| cipher != "-");
        Some(Seen { status: status.parse().ok()?, bytes: bytes.parse().ok()?, protocol: protocol.into(), cipher })
    };
    read().ok_or_else(|| failed(said.strip_prefix("error: ").unwrap_or(said)))
}

/// Has each done by a thread of its own. When somebody asks for the end, or after the limit, they are cut short.
pub fn attended<T: Send, F: FnOnce() -> T + Send>(
    work: Vec<F>,
    limit: Duration,
    stop: &Stop,
    mut cut: impl FnMut(),
) -> Result<Vec<T>, TargetError> {
    let until_ns = now_ns() + limit.as_nanos() as u64;
    thread::scope(|scope| {
        let threads: Vec<_> = work.into_iter().map(|work| scope.spawn(work)).collect();
        let mut end = Ok(());
        while end.is_ok() && !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(LOOK);
            end = match () {
                () if stop.is_asked() => Err(TargetError::Interrupted),
                () if now_ns() > until_ns => Err(failed(Error::TimedOut { limit })),
                () => Ok(()),
            };
        }
        if end.is_err() {
            cut();
        }
        let ended: Result<Vec<T>, _> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        end?;
        ended.map_err(|_| failed("a thread ended by a mistake of ours"))
    })
}
