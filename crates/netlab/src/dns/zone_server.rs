//! Serves a simulated zone over sockets.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sys::clock::now_ns;

use super::probe::{LOOK, ready};
use super::update::{read_message, write_message};
use super::{Recipient, ReplicaUpdate, Simulation, SimulationSpec};
use crate::Error;
use crate::threads::{JoinedThread, lock};

/// Time limit for reading or writing a message.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time after which a connection is closed if no message arrives.
const LONG: Duration = Duration::from_secs(60);

/// A simulated zone that is served over sockets: its primary server over TCP, and its other servers over UDP. Dropping
/// it ends the threads.
pub struct ZoneServer {
    simulation: Arc<Mutex<Simulation>>,
    primary: SocketAddr,
    servers: Vec<SocketAddr>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinedThread>,
}

impl ZoneServer {
    /// Serves the zone of `spec` on the caller's sockets. `servers` has one socket for each server of `spec`. The
    /// sockets may be in another network namespace.
    ///
    /// # Errors
    /// Returns [`Error::Server`] if a socket fails or a thread cannot be started.
    pub fn start(spec: SimulationSpec, primary: TcpListener, servers: Vec<UdpSocket>) -> Result<Self, Error> {
        let addresses: io::Result<Vec<SocketAddr>> = servers.iter().map(UdpSocket::local_addr).collect();
        let addresses = addresses.map_err(Error::Server)?;
        let primary_address = primary.local_addr().map_err(Error::Server)?;
        servers.iter().try_for_each(|socket| socket.set_nonblocking(true)).map_err(Error::Server)?;
        primary.set_nonblocking(true).map_err(Error::Server)?;
        let simulation = Arc::new(Mutex::new(Simulation::new(spec, now_ns())));
        let is_over = Arc::new(AtomicBool::new(false));
        let mut served =
            Self { simulation, primary: primary_address, servers: addresses, is_over, threads: Vec::new() };
        let (simulation, is_over) = (served.simulation.clone(), served.is_over.clone());
        served.spawn("dns-servers", move || answer(&servers, &simulation, &is_over))?;
        let (simulation, is_over) = (served.simulation.clone(), served.is_over.clone());
        served.spawn("dns-primary", move || take_updates(&primary, &simulation, &is_over))?;
        Ok(served)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        self.threads.push(JoinedThread::spawn(name, run).map_err(Error::Server)?);
        Ok(())
    }

    /// Returns the address of the primary, which accepts updates.
    pub fn primary(&self) -> SocketAddr {
        self.primary
    }

    /// Returns the addresses of the servers, which answer queries.
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// Returns when each version of the zone arrived at each replica so far, on the clock of [`now_ns`](crate::now_ns).
    pub fn truth(&self) -> Vec<ReplicaUpdate> {
        let mut simulation = lock(&self.simulation);
        simulation.advance(now_ns());
        simulation.truth().to_vec()
    }
}

impl Drop for ZoneServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn answer(sockets: &[UdpSocket], simulation: &Mutex<Simulation>, is_over: &AtomicBool) {
    let mut bytes = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        for server in ready(sockets, LOOK).unwrap_or_default() {
            while let Ok((length, from)) = sockets[server].recv_from(&mut bytes) {
                let answer = lock(simulation).request(now_ns(), Recipient::Server(server), from, &bytes[..length]);
                // A client that is gone receives no answer, so the error is ignored.
                answer.map(|answer| sockets[server].send_to(&answer, from));
            }
        }
    }
}

fn take_updates(listener: &TcpListener, simulation: &Mutex<Simulation>, is_over: &AtomicBool) {
    thread::scope(|scope| {
        while !is_over.load(Ordering::Relaxed) {
            if !ready(slice::from_ref(listener), LOOK).is_ok_and(|ready| !ready.is_empty()) {
                continue;
            }
            let Ok((stream, from)) = listener.accept() else { continue };
            let connection = move || serve(stream, from, simulation, is_over);
            // If no thread can be started, the connection is closed.
            _ = thread::Builder::new().name("dns-connection".into()).spawn_scoped(scope, connection);
        }
    });
}

/// Serves a connection to the primary until `is_over` is set. Closes it earlier if a message stays incomplete, or if no
/// message arrives for a minute.
fn serve(mut stream: TcpStream, from: SocketAddr, simulation: &Mutex<Simulation>, is_over: &AtomicBool) {
    _ = stream.set_nonblocking(false);
    _ = stream.set_nodelay(true);
    _ = stream.set_read_timeout(Some(PATIENCE));
    _ = stream.set_write_timeout(Some(PATIENCE));
    let mut last = Instant::now();
    while !is_over.load(Ordering::Relaxed) && last.elapsed() < LONG {
        if !ready(slice::from_ref(&stream), LOOK).is_ok_and(|ready| !ready.is_empty()) {
            continue;
        }
        let Ok(message) = read_message(&mut stream) else { break };
        let answer = lock(simulation).request(now_ns(), Recipient::Primary, from, &message);
        if answer.is_none_or(|answer| write_message(&mut stream, &answer).is_err()) {
            break;
        }
        last = Instant::now();
    }
}
