//! The HTTP servers that the clients download from.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use ascertain_engine::experiment::{Arm, TargetError, Unavailable};
use ascertain_netlab::http::{Server, TlsVersion, kernel_has_tls};
use ascertain_netlab::installed::{RunningProgram, caddy, find, nginx, nginx_with_kernel_tls, start_anywhere};
use ascertain_netlab::tcp::{self, TlsCipher};
use ascertain_sys::clock::process_cpu_ns;
use ascertain_sys::interrupt::Stop;

use super::go::{self, GoProcess};
use super::{AS_MUCH, CADDY, CIPHERS, CURL, GO, KERNEL_TLS, NGINX, OWN, PLAIN, RUSTLS};
use crate::levels::word;
use crate::links::failed;

/// An address where no server listens.
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// Checks that the arm's client and server are installed, and that both support the arm.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let (client, server) = (word(arm, "client"), word(arm, "server"));
    let is_by_go = [client, server].contains(&GO);
    if arm.variant == KERNEL_TLS {
        if ![OWN, NGINX].contains(&server) {
            return Err(Unavailable::levels(format!(
                "{server} does not pass its TLS keys to the kernel; use `own` or `nginx`"
            )));
        }
        kernel_has_tls(kernels_cipher(arm)).map_err(|error| Unavailable::other(no_kernel_tls(&error, tcp::above())))?;
    }
    if arm.integer("rate").is_ok_and(|rate| rate != AS_MUCH) && client != OWN {
        return Err(Unavailable::levels(format!(
            "`rate` needs the client `own`; {client} waits for each answer before it sends the next request"
        )));
    }
    if arm.variant != PLAIN && client == GO && word(arm, "cipher") != CIPHERS[0].0 {
        let cipher = CIPHERS[0].0;
        return Err(Unavailable::levels(format!(
            "Go's client does not let the user choose a cipher of TLS 1.3; use {cipher}"
        )));
    }
    if arm.variant == PLAIN && client == RUSTLS {
        return Err(Unavailable::levels("the client `rustls` only speaks TLS; use `own`"));
    }
    if client == CURL {
        find("curl", "apt-get install curl").map_err(Unavailable::other)?;
    }
    match server {
        NGINX => nginx(NOWHERE, None).is_installed().map_err(Unavailable::other)?,
        CADDY => caddy(NOWHERE, None).is_installed().map_err(Unavailable::other)?,
        _ => {}
    }
    if is_by_go { go::is_available().map_err(Unavailable::other) } else { Ok(()) }
}

fn kernels_cipher(arm: &Arm) -> TlsCipher {
    match word(arm, "cipher") {
        "aes-128-gcm" => TlsCipher::Aes128Gcm,
        "aes-256-gcm" => TlsCipher::Aes256Gcm,
        _ => TlsCipher::ChaCha20Poly1305,
    }
}

/// Explains why the kernel does not encrypt connections. `error` is the kernel's error for a connection. `above` lists
/// the protocols above TCP that the kernel has loaded so far. It need not contain `tls`, because the kernel may load
/// that module later.
pub fn no_kernel_tls(error: &io::Error, above: io::Result<String>) -> String {
    let file = "/proc/sys/net/ipv4/tcp_available_ulp";
    let says = format!("the kernel refuses TLS for a connection (TCP_ULP `tls`): {error}");
    let loads = "run `modprobe tls` as root to load this module, if the kernel was built with it";
    match above {
        Ok(names) if names.split(' ').any(|name| name == "tls") => format!("{says}; {file} lists `{names}`"),
        Ok(names) => format!("{says}; {file} lists `{names}`, but not `tls`; {loads}"),
        Err(_) => format!(
            "{says}; {file} does not exist, perhaps because this is the network namespace of a container; {loads}"
        ),
    }
}

/// Returns the number of connections that the kernel has encrypted since the system started.
pub fn encrypted_by_kernel() -> io::Result<u64> {
    let counters = std::fs::read_to_string("/proc/net/tls_stat")?;
    let count =
        |line: &str| line.strip_prefix("TlsTxSw").or(line.strip_prefix("TlsTxDevice"))?.trim().parse::<u64>().ok();
    Ok(counters.lines().filter_map(count).sum())
}

/// The servers of an arm. A server with a single thread or process is started once for each stream.
pub enum BodyServer {
    Own(Vec<Server>),
    Installed(Vec<RunningProgram>),
    Go(GoProcess, SocketAddr),
}

impl BodyServer {
    /// Starts the arm's servers.
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

    /// Returns the address to which a stream connects.
    pub fn address(&self, stream: usize) -> SocketAddr {
        match self {
            Self::Own(servers) => servers[stream % servers.len()].address(),
            Self::Installed(servers) => servers[stream % servers.len()].address(),
            Self::Go(_, address) => *address,
        }
    }

    /// Returns the path of a body of this size. The body is created if needed.
    pub fn path(&self, bytes: u64) -> Result<String, TargetError> {
        let Self::Installed(servers) = self else { return Ok(format!("/bytes/{bytes}")) };
        servers.iter().try_for_each(|server| server.make_page(bytes).map(drop)).map_err(failed)?;
        Ok(format!("/{bytes}"))
    }

    /// Returns the CPU time that the servers have used so far, in nanoseconds.
    pub fn cpu_ns(&self) -> Result<u64, TargetError> {
        let sum = match self {
            Self::Own(servers) => servers.iter().map(Server::cpu_ns).sum::<io::Result<u64>>(),
            Self::Installed(servers) => servers.iter().map(|server| process_cpu_ns(server.pid())).sum(),
            Self::Go(end, _) => end.cpu_ns(),
        };
        sum.map_err(|error| failed(format!("could not read the server's CPU time: {error}{}", self.output())))
    }

    /// Returns the output of the server programs, to append it to an error message.
    pub fn output(&self) -> String {
        let Self::Installed(servers) = self else { return String::new() };
        let outputs: Vec<String> =
            servers.iter().map(RunningProgram::output).filter(|output| !output.is_empty()).collect();
        if outputs.is_empty() { String::new() } else { format!("; the server's output:\n{}", outputs.join("\n")) }
    }
}
