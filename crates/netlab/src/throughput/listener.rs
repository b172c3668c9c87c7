//! The listener of throughput measurements. It waits for clients, and measures with one client at a time.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ascertain_sys::clock::now_ns;
use rustix::event::{PollFd, PollFlags, poll};

use super::Token;
use super::counting::{Allowance, FlowEnd, Timing};
use super::datagrams::{Header, KNOCK};
use super::flows::{FlowSockets, Flows, LOOK};
use super::message::{Control, Hello, LineReader, MOST_CLIENT_LINE_BYTES, Message, VERSION, is_nothing_yet};
use super::traffic::{MOST_STREAMS, Refusal, TrafficSpec, Transport};
use crate::Error;
use crate::threads::{JoinedThread, lock};

/// Time after which a client that sends no message counts as gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of connections that are open at once.
const MOST_CONNECTIONS: usize = 2 * MOST_STREAMS as usize + 64;
/// Maximum number of connections from one address that have not sent the token yet. This is enough for all flows of a
/// client, and a few more.
const MOST_WAITING: usize = 2 * MOST_STREAMS as usize + 8;

/// The limits of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Maximum number of bytes to send and receive in all measurements together.
    pub bytes: u64,
    /// Maximum duration of a measurement.
    pub time: Duration,
}

impl Default for ListenerLimits {
    /// Returns limits of 100 GB for all measurements together, and of one hour for each measurement.
    fn default() -> Self {
        Self { bytes: 100_000_000_000, time: Duration::from_secs(3600) }
    }
}

/// The counts of a listener since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerStats {
    /// Number of completed measurements.
    pub measurements: u64,
    /// Number of bytes that were sent and received in measurements.
    pub bytes: u64,
    /// Number of connections that were closed because they did not send the token.
    pub refused: u64,
}

/// A listener that waits for clients in its own thread. Dropping it closes all connections.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    shared: Arc<Shared>,
    _wake: PipeWriter,
    _thread: JoinedThread,
}

/// The current session: its number, and a channel to it. The session gets the connections of its flows through the
/// channel, each with the index of the flow.
type ActiveSession = (u64, SyncSender<(u32, TcpStream)>);

#[derive(Debug)]
struct Shared {
    datagrams: UdpSocket,
    token: Token,
    limits: ListenerLimits,
    left_bytes: AtomicU64,
    is_over: AtomicBool,
    session: Mutex<Option<ActiveSession>>,
    measurements: AtomicU64,
    refused: AtomicU64,
}

impl Listener {
    /// Starts a listener that waits for clients at this address. With port 0, the kernel chooses a free port.
    ///
    /// # Errors
    /// Returns [`Error::Server`] with the kernel's error.
    pub fn bind(address: SocketAddr, token: Token, limits: ListenerLimits) -> Result<Self, Error> {
        let mut tries = if address.port() == 0 { 100 } else { 1 };
        loop {
            let listener = TcpListener::bind(address).map_err(Error::Server)?;
            let bound = listener.local_addr().and_then(UdpSocket::bind);
            tries -= 1;
            match bound {
                Ok(datagrams) => return Self::start(listener, datagrams, token, limits),
                // Another program uses this port for UDP, so another port is tried.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
                Err(error) => return Err(Error::Server(error)),
            }
        }
    }

    /// Starts a listener that waits for clients at these two sockets, which must have the same address and port.
    ///
    /// # Errors
    /// Returns [`Error::Server`] with the kernel's error.
    pub fn start(
        listener: TcpListener,
        datagrams: UdpSocket,
        token: Token,
        limits: ListenerLimits,
    ) -> Result<Self, Error> {
        let address = listener.local_addr().map_err(Error::Server)?;
        listener.set_nonblocking(true).map_err(Error::Server)?;
        let shared = Arc::new(Shared {
            datagrams,
            token,
            limits,
            left_bytes: AtomicU64::new(limits.bytes),
            is_over: AtomicBool::new(false),
            session: Mutex::default(),
            measurements: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let (woken, _wake) = io::pipe().map_err(Error::Server)?;
        let accepting = shared.clone();
        let accept = move || accept(&listener, &woken, &accepting);
        let _thread = JoinedThread::spawn("netlab-listener", accept).map_err(Error::Server)?;
        Ok(Self { address, shared, _wake, _thread })
    }

    /// Returns the address on which the listener waits for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the listener's counts so far.
    pub fn stats(&self) -> ListenerStats {
        let Shared { limits, left_bytes, measurements, refused, .. } = &*self.shared;
        let [left_bytes, measurements, refused] =
            [left_bytes, measurements, refused].map(|counter| counter.load(Ordering::Relaxed));
        ListenerStats { measurements, bytes: limits.bytes - left_bytes, refused }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

/// Accepts connections until the listener is dropped. Dropping the listener closes the write side of the pipe `woken`,
/// which wakes this thread.
fn accept(listener: &TcpListener, woken: &PipeReader, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut waiting = WaitingConnections::default();
    while !shared.is_over() {
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)], None);
        threads.retain(|thread| !thread.is_finished());
        match listener.accept() {
            Ok((stream, peer)) => {
                let stream = Arc::new(stream);
                // `shared` has one reference for each connection's thread, and two more: of the listener and of this
                // thread.
                let is_full = Arc::strong_count(shared) >= MOST_CONNECTIONS + 2;
                if !waiting.admit(&stream, peer.ip(), is_full) {
                    continue;
                }
                let serving = shared.clone();
                let name = thread::Builder::new().name("netlab-throughput".into());
                // If no thread can be started, the connection is closed.
                threads.extend(name.spawn(move || _ = serving.serve(stream)));
            }
            Err(error) if is_nothing_yet(&error) => {}
            // Accepting fails if no file descriptors are left, for example. The listener tries again after a pause, in
            // which other connections may end.
            Err(_) => thread::sleep(LOOK),
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// The connections whose token has not arrived yet, each with the client's address. The oldest comes first.
#[derive(Default)]
struct WaitingConnections(VecDeque<(IpAddr, Weak<TcpStream>)>);

impl WaitingConnections {
    /// Returns whether a new connection from `peer` may wait for its token. If too many connections from `peer` wait
    /// already, closes the oldest of them. Otherwise, if too many connections are open (`is_full`), closes the oldest
    /// one that waits. Clients send the token at once, so this only closes idle connections of strangers.
    fn admit(&mut self, stream: &Arc<TcpStream>, peer: IpAddr, is_full: bool) -> bool {
        self.0.retain(|(_, stream)| stream.strong_count() > 0);
        let of_peer = self.0.iter().filter(|(of, _)| *of == peer).count();
        let must_go = match (of_peer >= MOST_WAITING, is_full) {
            (true, _) => self.0.iter().position(|(of, _)| *of == peer),
            (false, true) => Some(0),
            (false, false) => None,
        };
        if let Some(index) = must_go {
            // If all open connections have sent the token, none of them can be closed.
            let Some((_, oldest)) = self.0.remove(index) else { return false };
            oldest.upgrade().iter().for_each(|oldest| _ = oldest.shutdown(Shutdown::Both));
        }
        self.0.push_back((peer, Arc::downgrade(stream)));
        true
    }
}

impl Shared {
    /// Serves a connection. An error ends the connection and is not reported, because the client notices the end.
    fn serve(&self, stream: Arc<TcpStream>) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        let peer = stream.peer_addr()?.ip();
        let mut reader = LineReader::new(MOST_CLIENT_LINE_BYTES);
        let Some(hello) = self.hello(&stream, &mut reader)? else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        // A connection counts as waiting while an `Arc` of it exists. This one has sent the token, so its `Arc` is
        // given up. If the accepting thread still holds another `Arc` for a moment, the stream is cloned.
        let stream = Arc::try_unwrap(stream).or_else(|stream| stream.try_clone())?;
        if hello.session != 0 {
            // A flow's connection is closed if its session is not the current one, or has too many flows already.
            if let Some((number, flows)) = &*lock(&self.session)
                && *number == hello.session
            {
                let _ = flows.try_send((hello.flow, stream));
            }
            return Ok(());
        }
        let mut control = Control::new(stream, reader)?;
        if hello.version != VERSION {
            return control.send(&Message::Refused(Refusal::Version { speaks: VERSION }));
        }
        let Some(session) = ClientSession::begin(self)? else {
            return control.send(&Message::Refused(Refusal::Busy));
        };
        let served = session.serve(&mut control, peer);
        // Ends the session before the answer, so that the client can request its next measurement at once.
        drop(session);
        match served {
            Ok((_sockets, ends)) => {
                for (flow, end) in ends {
                    control.send(&Message::End { flow, end })?;
                }
                // The flows' connections stay open until the client has finished with them and closes the control
                // connection.
                _ = self.next(&mut control);
                Ok(())
            }
            Err(Error::Refused(refusal)) => control.send(&Message::Refused(refusal)),
            Err(_) => Ok(()),
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Calls `look` until it returns a value. Returns `None` after [`PATIENCE`], or if the listener is dropped.
    fn patiently<T>(&self, mut look: impl FnMut() -> io::Result<Option<T>>) -> io::Result<Option<T>> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE && !self.is_over() {
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the first line of text on a connection. `None` if it has the wrong token or does not arrive in time.
    fn hello(&self, stream: &TcpStream, reader: &mut LineReader) -> io::Result<Option<Hello>> {
        match self.patiently(|| reader.poll::<Hello>(stream, LOOK)) {
            Err(error) if [ErrorKind::UnexpectedEof, ErrorKind::InvalidData].contains(&error.kind()) => Ok(None),
            hello => Ok(hello?.filter(|hello| self.token.is(&hello.token))),
        }
    }

    /// Returns the client's next message that is not a ping, and answers the pings before it.
    fn next(&self, control: &mut Control) -> Result<Message, Error> {
        loop {
            match self.patiently(|| control.poll(LOOK)).map_err(stopped)? {
                None => return Err(Error::Stopped),
                Some(Message::Ping { sent_ns }) => {
                    control.send(&Message::Pong { sent_ns, at_ns: now_ns() }).map_err(stopped)?;
                }
                Some(message) => return Ok(message),
            }
        }
    }
}

/// Returns the error with which a session ends if its client is gone or sends invalid messages. The listener does not
/// report this error to the client.
fn stopped(_: io::Error) -> Error {
    Error::Stopped
}

/// The session with a client. There is at most one session at a time.
struct ClientSession<'a> {
    shared: &'a Shared,
    number: u64,
    flows: Receiver<(u32, TcpStream)>,
}

impl<'a> ClientSession<'a> {
    /// Begins a session; `None` if another session has not ended.
    fn begin(shared: &'a Shared) -> io::Result<Option<Self>> {
        let mut session = lock(&shared.session);
        if session.is_some() {
            return Ok(None);
        }
        let mut number = [0; 8];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut number)?;
        let number = u64::from_le_bytes(number).max(1);
        let (sender, flows) = sync_channel(2 * MOST_STREAMS as usize);
        *session = Some((number, sender));
        Ok(Some(Self { shared, number, flows }))
    }

    /// Runs a measurement with the client at `peer`. Returns the sockets of the flows, and the listener's counts for
    /// each flow with the index of the flow. The sockets stay open because the client may still use them.
    fn serve(&self, control: &mut Control, peer: IpAddr) -> Result<(FlowSockets<'a>, Vec<(u32, FlowEnd)>), Error> {
        control.send(&Message::Welcome { session: self.number }).map_err(stopped)?;
        let Message::Measure(spec) = self.shared.next(control)? else { return Err(Error::Stopped) };
        spec.check(self.shared.limits.time).map_err(Error::Refused)?;
        // If no bytes are left, the listener refuses here. Otherwise every further measurement would begin, and send or
        // receive a little more than the limit allows.
        if self.shared.left_bytes.load(Ordering::Relaxed) == 0 {
            return Err(Error::Refused(Refusal::UsedUp));
        }
        let sockets = match spec.transport {
            Transport::Tcp => FlowSockets::Streams(self.streams(&spec, control)?),
            Transport::Udp { .. } => {
                let to = self.knocks(&spec, control, peer)?;
                FlowSockets::Datagrams(to.into_iter().map(|to| (&self.shared.datagrams, Some(to))).collect())
            }
        };
        control.send(&Message::Ready).map_err(stopped)?;
        let Message::Begin { at_ns, bound_ns } = self.shared.next(control)? else { return Err(Error::Stopped) };
        // The start is at most `PATIENCE` from now, so that a client cannot make the listener wait for longer.
        let zero_ns = at_ns.min(now_ns() + PATIENCE.as_nanos() as u64);
        let timing = Timing::new(&spec, zero_ns, bound_ns);
        if timing.is_late(now_ns()) {
            return Err(Error::Refused(Refusal::Late));
        }
        let flows = Flows { session: self.number, spec: &spec, is_client: false, timing };
        let watch = || match control.poll(LOOK) {
            Ok(None) if !self.shared.is_over() => Ok(()),
            _ => Err(Error::Stopped),
        };
        let ends = flows.run(&sockets, &Allowance::new(&self.shared.left_bytes), watch);
        let ends = ends.map_err(|error| match error {
            Error::Broken { .. } => Error::Refused(Refusal::Broken),
            error => error,
        })?;
        self.shared.measurements.fetch_add(1, Ordering::Relaxed);
        Ok((sockets, ends))
    }

    /// Calls `look` until it returns a value, and checks the client between the calls. Returns an error if the client
    /// is gone or the time limit passes.
    fn wait<T>(&self, control: &mut Control, mut look: impl FnMut() -> io::Result<Option<T>>) -> Result<T, Error> {
        let found = self.shared.patiently(|| {
            let found = look()?;
            if found.is_none() && control.poll(Duration::from_millis(1))?.is_some() {
                return Err(ErrorKind::InvalidData.into());
            }
            Ok(found)
        });
        found.map_err(stopped)?.ok_or(Error::Refused(Refusal::NotReached))
    }

    /// Waits for the connections of the flows, and returns them in the order of flow indexes.
    fn streams(&self, spec: &TrafficSpec, control: &mut Control) -> Result<Vec<TcpStream>, Error> {
        let wanted = spec.flows().len();
        let mut streams = BTreeMap::new();
        self.wait(control, || {
            streams.extend(self.flows.try_iter().filter(|(flow, _)| *flow < wanted as u32));
            Ok((streams.len() == wanted).then_some(()))
        })?;
        Ok(streams.into_values().collect())
    }

    /// Waits until each of the client's UDP sockets has sent a datagram with the session number. Returns the addresses
    /// of these sockets.
    fn knocks(&self, spec: &TrafficSpec, control: &mut Control, peer: IpAddr) -> Result<Vec<SocketAddr>, Error> {
        let (socket, wanted) = (&self.shared.datagrams, spec.flows().len());
        socket.set_read_timeout(Some(Duration::from_millis(1))).map_err(stopped)?;
        let mut from = BTreeMap::new();
        self.wait(control, || {
            let mut bytes = [0; 64];
            match socket.recv_from(&mut bytes) {
                Ok((length, address)) if address.ip().to_canonical() == peer.to_canonical() => {
                    let header = Header::parse(&bytes[..length]);
                    let is_ours = |header: &Header| header.session == self.number && header.number == KNOCK;
                    if let Some(header) = header.filter(is_ours).filter(|header| header.flow < wanted as u32) {
                        from.insert(header.flow, address);
                    }
                }
                Ok(_) => {}
                Err(error) if is_nothing_yet(&error) => {}
                Err(error) => return Err(error),
            }
            Ok((from.len() == wanted).then_some(()))
        })?;
        Ok(from.into_values().collect())
    }
}

impl Drop for ClientSession<'_> {
    fn drop(&mut self) {
        *lock(&self.shared.session) = None;
    }
}
