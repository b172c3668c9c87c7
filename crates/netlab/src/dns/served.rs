//! A simulation behind sockets.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ascertain_sys::clock::now_ns;

use super::exchange::{read_message, write_message};
use super::probe::ready;
use super::{Had, Plan, Simulation, To};
use crate::Error;

/// How often it is looked whether it is to end.
const LOOK: Duration = Duration::from_millis(20);
/// How long a message may take to be whole, and how long a connection may say nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(60);

/// A zone that is served: its primary by TCP, its servers by UDP. It is gone when this is dropped.
pub struct Served {
    simulation: Arc<Mutex<Simulation>>,
    primary: SocketAddr,
    servers: Vec<SocketAddr>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Served {
    /// Serves a zone: a socket for each of its servers, which the caller has made, wherever that is.
    ///
    /// # Errors
    /// [`Error::Server`].
    pub fn start(plan: Plan, primary: TcpListener, servers: Vec<UdpSocket>) -> Result<Self, Error> {
        let addresses: io::Result<Vec<SocketAddr>> = servers.iter().map(UdpSocket::local_addr).collect();
        let addresses = addresses.map_err(Error::Server)?;
        let primary_address = primary.local_addr().map_err(Error::Server)?;
        servers.iter().try_for_each(|socket| socket.set_nonblocking(true)).map_err(Error::Server)?;
        primary.set_nonblocking(true).map_err(Error::Server)?;
        let simulation = Arc::new(Mutex::new(Simulation::new(plan, now_ns())));
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
        let thread = thread::Builder::new().name(name.into()).spawn(run).map_err(Error::Server)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Where updates go.
    #[must_use]
    pub fn primary(&self) -> SocketAddr {
        self.primary
    }

    /// Where questions go.
    #[must_use]
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// The truth so far, on the clock of [`now_ns`](crate::now_ns).
    #[must_use]
    pub fn truth(&self) -> Vec<Had> {
        let mut simulation = lock(&self.simulation);
        simulation.advance(now_ns());
        simulation.truth().to_vec()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            _ = thread.join();
        }
    }
}

fn lock(simulation: &Mutex<Simulation>) -> MutexGuard<'_, Simulation> {
    simulation.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(sockets: &[UdpSocket], simulation: &Mutex<Simulation>, is_over: &AtomicBool) {
    let mut bytes = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        for server in ready(sockets, LOOK).unwrap_or_default() {
            while let Ok((length, from)) = sockets[server].recv_from(&mut bytes) {
                let answer = lock(simulation).request(now_ns(), To::Server(server), from, &bytes[..length]);
                // A client that is gone has no answer.
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
            // Without room for another thread it is closed.
            _ = thread::Builder::new().name("dns-connection".into()).spawn_scoped(scope, connection);
        }
    });
}

/// Whoever begins a message and does not end it is sent away, and who says nothing for long.
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
        let answer = lock(simulation).request(now_ns(), To::Primary, from, &message);
        if answer.is_none_or(|answer| write_message(&mut stream, &answer).is_err()) {
            break;
        }
        last = Instant::now();
    }
}
