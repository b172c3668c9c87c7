//! Who answers.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use ascertain_engine::experiment::{Arm, Level, TargetError, Unavailable};
use ascertain_netlab::http::{Server, TlsVersion, kernel_has_tls};
use ascertain_netlab::installed::{Running, caddy, find, nginx, nginx_with_kernel_tls, start_anywhere};
use ascertain_netlab::tcp::{self, TlsCipher};
use ascertain_sys::clock::process_cpu_ns;
use ascertain_sys::interrupt::Stop;

use super::go::{self, End};
use super::{AS_MUCH, CADDY, CIPHERS, CURL, GO, KERNEL_TLS, NGINX, OWN, PLAIN};
use crate::links::failed;

/// Where there is none.
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

pub fn word<'a>(arm: &'a Arm, factor: &str) -> &'a str {
    match arm.point.get(factor) {
        Some(Level::Text(word)) => word,
        _ => "",
    }
}

/// Whether the machine has both ends, and they can do what is asked of them.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let (client, server) = (word(arm, "client"), word(arm, "server"));
    let is_by_go = [client, server].contains(&GO);
    if arm.variant == KERNEL_TLS {
        if ![OWN, NGINX].contains(&server) {
            return Err(Unavailable::levels(format!("{server} does not give the kernel its keys: ours and nginx do")));
        }
        kernel_has_tls(kernels_cipher(arm)).map_err(|error| Unavailable::other(no_kernel_tls(&error, tcp::above())))?;
    }
    if arm.integer("rate").is_ok_and(|rate| rate != AS_MUCH) && client != OWN {
        return Err(Unavailable::levels(format!("`rate` is for our own client: {client} sends when it has an answer")));
    }
    if arm.variant != PLAIN && client == GO && word(arm, "cipher") != CIPHERS[0].0 {
        let cipher = CIPHERS[0].0;
        return Err(Unavailable::levels(format!("Go's client can't be told a cipher of TLS 1.3: it has {cipher}")));
    }
    let client = match client {
        CURL => find("curl", "apt-get install curl").map(drop).map_err(Unavailable::other),
        _ => Ok(()),
    };
    let server = || match server {
        NGINX => nginx(NOWHERE, None).is_installed().map_err(Unavailable::other),
        CADDY => caddy(NOWHERE, None).is_installed().map_err(Unavailable::other),
        _ => Ok(()),
    };
    client.and_then(|()| server())?;
    if is_by_go { go::is_available().map_err(Unavailable::other) } else { Ok(()) }
}

fn kernels_cipher(arm: &Arm) -> TlsCipher {
    match word(arm, "cipher") {
        "aes-128-gcm" => TlsCipher::Aes128Gcm,
        "aes-256-gcm" => TlsCipher::Aes256Gcm,
        _ => TlsCipher::ChaCha20Poly1305,
    }
}

/// Why nothing is encrypted by the kernel: what it said of a connection, for a list of what is loaded does not say what
/// could be.
pub fn no_kernel_tls(error: &io::Error, above: io::Result<String>) -> String {
    let file = "/proc/sys/net/ipv4/tcp_available_ulp";
    let says = format!("a connection that is to have the kernel's TLS (TCP_ULP `tls`) answers: {error}");
    let loads = "root's `modprobe tls` loads it where the kernel was built with it";
    match above {
        Ok(names) if names.split(' ').any(|name| name == "tls") => format!("{says}; {file} has `{names}`"),
        Ok(names) => format!("{says}; {file} has `{names}`, and not `tls`: {loads}"),
        Err(_) => format!("{says}; {file} is not there (a container's network?): {loads}"),
    }
}

/// The connections that the kernel has encrypted for since it started.
pub fn encrypted_by_kernel() -> io::Result<u64> {
    let counters = std::fs::read_to_string("/proc/net/tls_stat")?;
    let count =
        |line: &str| line.strip_prefix("TlsTxSw").or(line.strip_prefix("TlsTxDevice"))?.trim().parse::<u64>().ok();
    Ok(counters.lines().filter_map(count).sum())
}

/// What answers: of what has one thread or process, one for each stream.
pub enum Serving {
    Own(Vec<Server>),
    Installed(Vec<Running>),
    Go(End, SocketAddr),
}

impl Serving {
    /// The arm's.
    pub fn start(arm: &Arm, stop: &Stop) -> Result<Self, TargetError> {
        let version = (arm.variant != PLAIN).then_some(TlsVersion::V1_3);
        let is_by_kernel = arm.variant == KERNEL_TLS;
        let streams = arm.integer("streams")?;
        let own = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
            let server = match is_by_kernel {
                true => Server::with_kernel_tls(listener),
                false => Server::start(listener, version.as_ref().map(std::slice::from_ref)),
            };
            server.map_err(failed)
        };
        Ok(match word(arm, "server") {
            NGINX => {
                let program = |address| match is_by_kernel {
                    true => nginx_with_kernel_tls(address),
                    false => nginx(address, version),
                };
                let started = || start_anywhere(program).map_err(failed);
                Self::Installed((0..streams).map(|_| started()).collect::<Result<_, _>>()?)
            }
            CADDY => Self::Installed(vec![start_anywhere(|address| caddy(address, version)).map_err(failed)?]),
            GO => {
                let (end, address) = go::serve(version.is_some(), stop)?;
                Self::Go(end, address)
            }
            _ => Self::Own((0..streams).map(|_| own()).collect::<Result<_, _>>()?),
        })
    }

    /// Whom a stream is to ask.
    pub fn address(&self, stream: usize) -> SocketAddr {
        match self {
            Self::Own(servers) => servers[stream % servers.len()].address(),
            Self::Installed(servers) => servers[stream % servers.len()].address(),
            Self::Go(_, address) => *address,
        }
    }

    /// Where a body of that size is, which is made if it is not there yet.
    pub fn path(&self, bytes: u64) -> Result<String, TargetError> {
        let Self::Installed(servers) = self else { return Ok(format!("/bytes/{bytes}")) };
        for server in servers {
            let path = server.folder().join(format!("www/{bytes}"));
            if !path.exists() {
                let made = File::create(&path).and_then(|file| fill(file, bytes));
                made.map_err(|error| failed(format!("{}: {error}", path.display())))?;
            }
        }
        Ok(format!("/{bytes}"))
    }

    /// The CPU time that they have used.
    pub fn cpu_ns(&self) -> Result<u64, TargetError> {
        let sum = match self {
            Self::Own(servers) => servers.iter().map(Server::cpu_ns).sum::<io::Result<u64>>(),
            Self::Installed(servers) => servers.iter().map(|server| process_cpu_ns(server.pid())).sum(),
            Self::Go(end, _) => end.cpu_ns(),
        };
        sum.map_err(|error| failed(format!("the server's CPU time: {error}{}", self.said())))
    }

    /// What was said by those that are programs, to be put behind an error.
    pub fn said(&self) -> String {
        let Self::Installed(servers) = self else { return String::new() };
        let said: Vec<String> = servers.iter().map(Running::said).filter(|said| !said.is_empty()).collect();
        if said.is_empty() { String::new() } else { format!("; the server says:\n{}", said.join("\n")) }
    }
}

/// Not with a hole, of which there would be nothing to read.
fn fill(file: File, mut bytes: u64) -> io::Result<()> {
    let piece = vec![b'x'; 1 << 16];
    let mut file = BufWriter::new(file);
    while bytes > 0 {
        let count = bytes.min(piece.len() as u64);
        file.write_all(&piece[..count as usize])?;
        bytes -= count;
    }
    file.flush()
}
