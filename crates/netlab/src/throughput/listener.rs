//! The far side: waits for clients, and does what they ask for.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ascertain_sys::clock::now_ns;
use rustix::event::{PollFd, PollFlags, poll};

use super::Token;
use super::counting::{Allowance, End, Over, Timing};
use super::datagrams::{Header, KNOCK};
use super::flows::{Carried, Flows};
use super::message::{Control, Hello, Message, VERSION, is_nothing_yet};
use super::plan::{MOST_STREAMS, Plan, Refusal, Transport};
use super::stream::LOOK;
use crate::Error;

/// Somebody who says nothing for that long is gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many may be about to say who they are, or be a flow.
const MOST_CONNECTIONS: usize = 2 * MOST_STREAMS as usize + 64;
/// The most connections from one address that have not sent the token: all flows of a client, and a few more.
const MOST_WAITING: usize = 2 * MOST_STREAMS as usize + 8;

/// What a listener does at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What it sends and receives, in its life.
    pub bytes: u64,
    /// How long one measurement takes.
    pub time: Duration,
}

impl Default for Limits {
    /// 100 GB, and an hour.
    fn default() -> Self {
        Self { bytes: 100_000_000_000, time: Duration::from_secs(3600) }
    }
}

/// What a listener did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Measurements that it carried out.
    pub measurements: u64,
    /// What it sent and received in them.
    pub bytes: u64,
    /// Connections that it hung up on: they did not say the token.
    pub refused: u64,
}

/// Waits for clients. When dropped it hangs up on everybody.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    shared: Arc<Shared>,
    wake: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

/// Who is measured: the session's number, and where its flows go, each with its own.
type Measuring = (u64, SyncSender<(u64, TcpStream)>);

struct Shared {
    datagrams: UdpSocket,
    token: Token,
    limits: Limits,
    left_bytes: AtomicU64,
    is_over: AtomicBool,
    session: Mutex<Option<Measuring>>,
    connections: AtomicUsize,
    measurements: AtomicU64,
    refused: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Listener {
    /// Waits for clients at this address; at port 0, at one that nobody else has.
    ///
    /// # Errors
    /// [`Error::Server`] as the kernel says.
    pub fn bind(address: SocketAddr, token: Token, limits: Limits) -> Result<Self, Error> {
        let mut tries = if address.port() == 0 { 100 } else { 1 };
        loop {
            let listener = TcpListener::bind(address).map_err(Error::Server)?;
            let bound = listener.local_addr().and_then(UdpSocket::bind);
            tries -= 1;
            match bound {
                Ok(datagrams) => return Self::start(listener, datagrams, token, limits),
                // Somebody has that port of UDP.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
                Err(error) => return Err(Error::Server(error)),
            }
        }
    }

    /// Waits for clients at these sockets, which have one address and port.
    ///
    /// # Errors
    /// [`Error::Server`] as the kernel says.
    pub fn start(listener: TcpListener, datagrams: UdpSocket, token: Token, limits: Limits) -> Result<Self, Error> {
        let address = listener.local_addr().map_err(Error::Server)?;
        listener.set_nonblocking(true).map_err(Error::Server)?;
        let shared = Arc::new(Shared {
            datagrams,
            token,
            limits,
            left_bytes: AtomicU64::new(limits.bytes),
            is_over: AtomicBool::new(false),
            session: Mutex::default(),
            connections: AtomicUsize::new(0),
            measurements: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let (woken, wake) = io::pipe().map_err(Error::Server)?;
        let accepting = shared.clone();
        let accept = move || accept(&listener, &woken, &accepting);
        let thread = thread::Builder::new().name("netlab-listener".into()).spawn(accept).map_err(Error::Server)?;
        Ok(Self { address, shared, wake: Some(wake), thread: Some(thread) })
    }

    /// Where it waits.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it did so far.
    #[must_use]
    pub fn served(&self) -> Served {
        let Shared { limits, left_bytes, measurements, refused, .. } = &*self.shared;
        let [left_bytes, measurements, refused] =
            [left_bytes, measurements, refused].map(|counter| counter.load(Ordering::Relaxed));
        Served { measurements, bytes: limits.bytes - left_bytes, refused }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Until the other end of the pipe is closed.
fn accept(listener: &TcpListener, woken: &PipeReader, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut waiting = Waiting::default();
    while !shared.is_over() {
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)], None);
        threads.retain(|thread| !thread.is_finished());
        match listener.accept() {
            Ok((stream, peer)) => {
                let stream = Arc::new(stream);
                let is_full = shared.connections.load(Ordering::Relaxed) >= MOST_CONNECTIONS;
                if !waiting.admit(&stream, peer.ip(), is_full) {
                    continue;
                }
                let connection = Connection::new(shared.clone());
                let name = thread::Builder::new().name("netlab-throughput".into());
                // Where there is no thread left it is hung up on.
                threads.extend(name.spawn(move || _ = connection.serve(stream)));
            }
            Err(error) if is_nothing_yet(&error) => {}
            // No descriptors left, perhaps: others must end first.
            Err(_) => thread::sleep(LOOK),
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// The connections that have not said the token yet, the oldest first.
#[derive(Default)]
struct Waiting(VecDeque<(IpAddr, Weak<TcpStream>)>);

impl Waiting {
    /// Returns whether the connection may wait. If there are too many, from its address or in all, the one that has waited
    /// longest is closed: whoever has the token says so at once, and strangers who say nothing keep nobody out.
    fn admit(&mut self, stream: &Arc<TcpStream>, peer: IpAddr, is_full: bool) -> bool {
        self.0.retain(|(_, stream)| stream.strong_count() > 0);
        let of_peer = self.0.iter().filter(|(of, _)| *of == peer).count();
        let must_go = match (of_peer >= MOST_WAITING, is_full) {
            (true, _) => self.0.iter().position(|(of, _)| *of == peer),
            (false, true) => Some(0),
            (false, false) => None,
        };
        if let Some(index) = must_go {
            // None is left where all of them have the token.
            let Some((_, oldest)) = self.0.remove(index) else { return false };
            oldest.upgrade().iter().for_each(|oldest| _ = oldest.shutdown(Shutdown::Both));
        }
        self.0.push_back((peer, Arc::downgrade(stream)));
        true
    }
}

/// One that is counted as long as it is there.
struct Connection(Arc<Shared>);

impl Connection {
    fn new(shared: Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }

    /// What goes wrong with a connection is its client's to see.
    fn serve(&self, stream: Arc<TcpStream>) -> io::Result<()> {
        let shared = &*self.0;
        stream.set_nonblocking(false)?;
        let peer = stream.peer_addr()?.ip();
        let Some(hello) = shared.hello(&stream)? else {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        // It waits no longer. The thread that accepts may look at it just now.
        let stream = Arc::try_unwrap(stream).or_else(|stream| stream.try_clone())?;
        if hello.session != 0 {
            // What is nobody's flow is hung up on, and so is one more than there may be.
            if let Some((number, flows)) = &*shared.session()
                && *number == hello.session
            {
                let _ = flows.try_send((hello.flow, stream));
            }
            return Ok(());
        }
        let mut control = Control::new(stream)?;
        if hello.version != VERSION {
            return control.send(&Message::Refused(Refusal::Version { speaks: VERSION }));
        }
        let Some(session) = Session::begin(shared)? else {
            return control.send(&Message::Refused(Refusal::Busy));
        };
        let served = session.serve(&mut control, peer);
        // Who has an answer, or is refused, may come back at once.
        drop(session);
        match served {
            Ok((_flows, ends)) => {
                for (flow, end) in ends {
                    control.send(&Message::End { flow, end })?;
                }
                // The flows' connections stay until the client is done with them, who hangs up then.
                _ = shared.next(&mut control);
                Ok(())
            }
            Err(Ended::Refused(refusal)) => control.send(&Message::Refused(refusal)),
            Err(Ended::Lost(error)) => Err(error),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn session(&self) -> MutexGuard<'_, Option<Measuring>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the connection begins with, if that has the token, and comes in time.
    fn hello(&self, mut stream: &TcpStream) -> io::Result<Option<Hello>> {
        stream.set_read_timeout(Some(LOOK))?;
        let (start, mut bytes, mut there) = (Instant::now(), [0; Hello::BYTES], 0);
        while there < bytes.len() {
            match stream.read(&mut bytes[there..]) {
                Ok(0) => return Ok(None),
                Ok(more) => there += more,
                Err(error) if is_nothing_yet(&error) => {}
                Err(error) => return Err(error),
            }
            if start.elapsed() > PATIENCE || self.is_over() {
                return Ok(None);
            }
        }
        Ok(Hello::parse(&bytes).filter(|hello| self.token.is(&hello.token)))
    }

    /// What the client says next. He may ask for the time as often as he likes.
    fn next(&self, control: &mut Control) -> Result<Message, Ended> {
        let mut start = Instant::now();
        while start.elapsed() < PATIENCE && !self.is_over() {
            match control.poll(LOOK)? {
                None => {}
                Some(Message::Ping { sent_ns }) => {
                    control.send(&Message::Pong { sent_ns, at_ns: now_ns() })?;
                    start = Instant::now();
                }
                Some(message) => return Ok(message),
            }
        }
        Err(gone())
    }
}

/// Why a session ends before it is done.
enum Ended {
    Refused(Refusal),
    Lost(io::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl From<Over> for Ended {
    fn from(over: Over) -> Self {
        match over {
            Over::Broken(_) => Self::Refused(Refusal::Broken),
            Over::Told => gone(),
            Over::UsedUp => Self::Refused(Refusal::UsedUp),
        }
    }
}

/// The client says nothing any more, or the listener ends.
fn gone() -> Ended {
    Ended::Lost(io::ErrorKind::TimedOut.into())
}

/// The client says what makes no sense at this place.
fn strange() -> Ended {
    Ended::Lost(io::ErrorKind::InvalidData.into())
}

/// The one client who is measured.
struct Session<'a> {
    shared: &'a Shared,
    number: u64,
    flows: Receiver<(u64, TcpStream)>,
}

impl<'a> Session<'a> {
    /// None while there is another one.
    fn begin(shared: &'a Shared) -> io::Result<Option<Self>> {
        let mut session = shared.session();
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

    /// The flows, for as long as the client may look at them, and how each ended here.
    fn serve(&self, control: &mut Control, peer: IpAddr) -> Result<(Carried<'a>, Vec<(u32, End)>), Ended> {
        control.send(&Message::Welcome { session: self.number })?;
        let Message::Ask(plan) = self.shared.next(control)? else { return Err(strange()) };
        plan.check(self.shared.limits.time).map_err(Ended::Refused)?;
        // Otherwise each measurement would begin, and send or receive a little more.
        if self.shared.left_bytes.load(Ordering::Relaxed) == 0 {
            return Err(Ended::Refused(Refusal::UsedUp));
        }
        let carried = match plan.transport {
            Transport::Tcp => Carried::Streams(self.streams(&plan, control)?),
            Transport::Udp { .. } => {
                let to = self.knocks(&plan, control, peer)?;
                Carried::Datagrams(to.into_iter().map(|to| (&self.shared.datagrams, Some(to))).collect())
            }
        };
        control.send(&Message::Ready)?;
        let Message::Begin { at_ns, bound_ns } = self.shared.next(control)? else { return Err(strange()) };
        // Nobody has us wait.
        let zero_ns = at_ns.min(now_ns() + PATIENCE.as_nanos() as u64);
        let timing = Timing::new(&plan, zero_ns, bound_ns);
        if timing.is_late(now_ns()) {
            return Err(Ended::Refused(Refusal::Late));
        }
        let flows = Flows { session: self.number, plan: &plan, is_client: false, timing };
        let ends = flows.run(&carried, &Allowance::new(&self.shared.left_bytes), || match control.poll(LOOK)? {
            None if self.shared.is_over() => Err(gone()),
            None => Ok(()),
            Some(_) => Err(strange()),
        })?;
        self.shared.measurements.fetch_add(1, Ordering::Relaxed);
        Ok((carried, ends))
    }

    /// Goes on until there is an answer, the client is gone, or his time is over.
    fn wait<T>(&self, control: &mut Control, mut look: impl FnMut() -> io::Result<Option<T>>) -> Result<T, Ended> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE && !self.shared.is_over() {
            if let Some(found) = look()? {
                return Ok(found);
            }
            if control.poll(Duration::from_millis(1))?.is_some() {
                return Err(strange());
            }
        }
        Err(Ended::Refused(Refusal::NotReached))
    }

    /// The plan's connections, in the order of their numbers.
    fn streams(&self, plan: &Plan, control: &mut Control) -> Result<Vec<TcpStream>, Ended> {
        let wanted = plan.flows().len();
        let mut streams = BTreeMap::new();
        self.wait(control, || {
            streams.extend(self.flows.try_iter().filter(|(flow, _)| *flow < wanted as u64));
            Ok((streams.len() == wanted).then_some(()))
        })?;
        Ok(streams.into_values().collect())
    }

    /// Where the client's sockets are, each of which said the session's number.
    fn knocks(&self, plan: &Plan, control: &mut Control, peer: IpAddr) -> Result<Vec<SocketAddr>, Ended> {
        let (socket, wanted) = (&self.shared.datagrams, plan.flows().len());
        socket.set_read_timeout(Some(Duration::from_millis(1)))?;
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

impl Drop for Session<'_> {
    fn drop(&mut self) {
        *self.shared.session() = None;
    }
}
