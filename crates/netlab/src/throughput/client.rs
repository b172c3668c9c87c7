//! The near side: asks a listener, and puts together what both ends saw.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use ascertain_sys::clock::now_ns;

use super::Token;
use super::bucket::Curve;
use super::clock::Offset;
use super::counting::{Allowance, End, Over, Timing};
use super::datagrams::{Header, KNOCK};
use super::flows::{Carried, Flows};
use super::message::{Control, Hello, Message};
use super::plan::{Plan, Refusal, Transport};
use super::stream::LOOK;
use crate::Error;

/// A listener that says nothing for that long is gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// The shortest of so many round trips tells what separates the clocks.
const PINGS: usize = 10;
/// Longer than anybody measures.
const MOST_TIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long before it begins the listener is told, beside a round trip. Where that is lost it is told again some time
/// later, which is too late: the next try has more.
const AHEAD_MS: [u64; 4] = [2, 20, 500, 5_000];

/// A way to a listener.
pub trait Reach {
    /// A connection to it.
    ///
    /// # Errors
    /// As the kernel says.
    fn connect(&self) -> io::Result<TcpStream>;

    /// A socket that is connected to it.
    ///
    /// # Errors
    /// As the kernel says.
    fn datagrams(&self) -> io::Result<UdpSocket>;
}

impl Reach for SocketAddr {
    fn connect(&self) -> io::Result<TcpStream> {
        TcpStream::connect_timeout(self, PATIENCE / 2)
    }

    fn datagrams(&self) -> io::Result<UdpSocket> {
        let any = if self.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
        socket.connect(self)?;
        Ok(socket)
    }
}

/// Through a link, from its near side.
#[cfg(target_os = "linux")]
impl Reach for (&crate::Side, SocketAddr) {
    fn connect(&self) -> io::Result<TcpStream> {
        self.0.connect(self.1)
    }

    fn datagrams(&self) -> io::Result<UdpSocket> {
        let socket: UdpSocket = self.0.socket(&self.1, rustix::net::SocketType::DGRAM)?.into();
        socket.connect(self.1)?;
        Ok(socket)
    }
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// What was asked for.
    pub plan: Plan,
    /// Each flow, in the order of their numbers.
    pub flows: Vec<Flow>,
    /// What the listener's clock said more than ours.
    pub clock: Offset,
}

/// A flow as both ends saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Whether it went to the listener.
    pub is_up: bool,
    /// Who sent.
    pub sender: End,
    /// Who received.
    pub receiver: End,
}

impl Measured {
    /// What arrived, by all flows.
    #[must_use]
    pub fn curve(&self) -> Curve {
        let Plan { interval, left_out, intervals, .. } = self.plan;
        let mut bytes = vec![0; (left_out + intervals) as usize];
        for flow in &self.flows {
            bytes.iter_mut().zip(&flow.receiver.bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
        Curve { interval, left_out: left_out as usize, bytes }
    }

    /// What the near and the far end's threads took of CPUs, without what was left out.
    #[must_use]
    pub fn cpu_ns(&self) -> [u64; 2] {
        let sum = |is_near| {
            self.flows.iter().map(|flow| if flow.is_up == is_near { &flow.sender } else { &flow.receiver }.cpu_ns).sum()
        };
        [sum(true), sum(false)]
    }

    /// The share of the datagrams that never arrived; none without any.
    #[must_use]
    pub fn lost(&self) -> Option<f64> {
        let sum = |of: fn(&Flow) -> u64| self.flows.iter().map(of).sum::<u64>();
        let (sent, arrived) = (sum(|flow| flow.sender.datagrams), sum(|flow| flow.receiver.datagrams));
        (sent > 0).then(|| sent.saturating_sub(arrived) as f64 / sent as f64)
    }
}

/// Measures what goes to and from a listener, until that is done or somebody asks for the end.
///
/// # Errors
/// [`Error::Refused`], with the listener's reason; [`Error::NoListener`] where there is something else, or the token is
/// another; [`Error::Stopped`]; [`Error::TimedOut`] and [`Error::Broken`] for what is cut.
pub fn measure(
    reach: &dyn Reach,
    token: &Token,
    plan: &Plan,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Measured, Error> {
    plan.check(MOST_TIME).map_err(Error::Refused)?;
    let mut measured = Err(Error::Refused(Refusal::Late));
    for ahead_ms in AHEAD_MS {
        measured = measure_once(reach, token, plan, ahead_ms, is_stopped);
        if !matches!(measured, Err(Error::Refused(Refusal::Late))) {
            break;
        }
    }
    measured
}

fn measure_once(
    reach: &dyn Reach,
    token: &Token,
    plan: &Plan,
    ahead_ms: u64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Measured, Error> {
    let mut talk = Talk::open(reach, token, is_stopped)?;
    let clock = talk.clock()?;
    talk.say(&Message::Ask(plan.clone()))?;
    let sockets = talk.sockets(plan, reach)?;
    let carried = match plan.transport {
        Transport::Tcp => Carried::Streams(talk.streams(plan, reach, token)?),
        Transport::Udp { .. } => Carried::Datagrams(sockets.iter().map(|socket| (socket, None)).collect()),
    };
    talk.until_ready(&sockets)?;
    // When the listener has heard of it.
    let zero_ns = now_ns() + 2 * clock.bound_ns + ahead_ms * 1_000_000;
    talk.say(&Message::Begin { at_ns: clock.theirs_ns(zero_ns), bound_ns: clock.bound_ns })?;
    let timing = Timing::new(plan, zero_ns, clock.bound_ns);
    if timing.is_late(now_ns()) {
        talk.hang_up();
        return Err(Error::Refused(Refusal::Late));
    }
    let flows = Flows { session: talk.session, plan, is_client: true, timing };
    let left_bytes = AtomicU64::new(u64::MAX);
    let mut theirs = Vec::new();
    let ran = flows.run(&carried, &Allowance::new(&left_bytes), || talk.watch(&mut theirs));
    let mut ours = ran.map_err(|error| talk.why(error))?;
    let start = Instant::now();
    while theirs.len() < ours.len() {
        talk.watch(&mut theirs)?;
        if start.elapsed() > PATIENCE {
            return Err(Error::TimedOut { limit: PATIENCE });
        }
    }
    ours.sort_by_key(|(flow, _)| *flow);
    theirs.sort_by_key(|(flow, _)| *flow);
    let flows = plan.flows().into_iter().zip(ours).zip(theirs).map(|((is_up, (_, ours)), (_, theirs))| {
        let (sender, receiver) = if is_up { (ours, theirs) } else { (theirs, ours) };
        Flow { is_up, sender, receiver }
    });
    Ok(Measured { plan: plan.clone(), flows: flows.collect(), clock })
}

impl From<Over> for Error {
    fn from(over: Over) -> Self {
        match over {
            Over::Broken(error) => Self::broken("in the middle of a flow", error),
            Over::Told => Self::Stopped,
            Over::UsedUp => Self::Refused(Refusal::UsedUp),
        }
    }
}

/// A control connection that somebody waits for.
struct Talk<'a> {
    control: Control,
    session: u64,
    is_stopped: &'a dyn Fn() -> bool,
}

impl<'a> Talk<'a> {
    fn open(reach: &dyn Reach, token: &Token, is_stopped: &'a dyn Fn() -> bool) -> Result<Self, Error> {
        let stream = flow_of(reach, token, 0, 0)?;
        let control = Control::new(stream).map_err(|error| Error::broken("when it was made", error))?;
        let mut talk = Self { control, session: 0, is_stopped };
        match talk.next(Duration::ZERO, || Ok(())) {
            Ok(Message::Welcome { session }) => Ok(Self { session, ..talk }),
            Err(error @ (Error::Refused(_) | Error::Stopped | Error::TimedOut { .. })) => Err(error),
            Ok(_) | Err(_) => Err(Error::NoListener),
        }
    }

    fn say(&mut self, message: &Message) -> Result<(), Error> {
        self.control.send(message).map_err(|error| Error::broken("while it was asked", error))
    }

    /// What the listener says within that time.
    fn poll(&mut self, wait: Duration) -> Result<Option<Message>, Error> {
        if (self.is_stopped)() {
            return Err(Error::Stopped);
        }
        match self.control.poll(wait) {
            Ok(Some(Message::Refused(refusal))) => Err(Error::Refused(refusal)),
            Ok(message) => Ok(message),
            Err(error) => Err(Error::broken("with the listener", error)),
        }
    }

    /// What the listener says next; `meanwhile` is done again and again.
    fn next(&mut self, wait: Duration, mut meanwhile: impl FnMut() -> io::Result<()>) -> Result<Message, Error> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            meanwhile().map_err(|error| Error::broken("with the listener", error))?;
            if let Some(message) = self.poll(wait.max(Duration::from_millis(1)))? {
                return Ok(message);
            }
        }
        Err(Error::TimedOut { limit: PATIENCE })
    }

    fn clock(&mut self) -> Result<Offset, Error> {
        let mut trips = Vec::new();
        for _ in 0..PINGS {
            let sent_ns = now_ns();
            self.say(&Message::Ping { sent_ns })?;
            match self.next(LOOK, || Ok(()))? {
                Message::Pong { sent_ns: said_ns, at_ns } if said_ns == sent_ns => {
                    trips.push([sent_ns, at_ns, now_ns()]);
                }
                _ => return Err(Error::NoListener),
            }
        }
        Offset::of(&trips).ok_or(Error::NoListener)
    }

    fn streams(&self, plan: &Plan, reach: &dyn Reach, token: &Token) -> Result<Vec<TcpStream>, Error> {
        (0..).zip(plan.flows()).map(|(flow, _)| flow_of(reach, token, self.session, flow)).collect()
    }

    fn sockets(&self, plan: &Plan, reach: &dyn Reach) -> Result<Vec<UdpSocket>, Error> {
        let is_udp = plan.transport != Transport::Tcp;
        let flows = plan.flows().into_iter().filter(|_| is_udp);
        let sockets = flows.map(|_| reach.datagrams()).collect::<io::Result<_>>();
        sockets.map_err(|error| Error::broken("when a socket was made", error))
    }

    /// Until the listener has every flow. It learns where sockets are from what they send, which may be lost.
    fn until_ready(&mut self, sockets: &[UdpSocket]) -> Result<(), Error> {
        let session = self.session;
        let knock = || {
            (0..).zip(sockets).for_each(|(flow, socket)| {
                // Lost ones are sent again.
                let _ = socket.send(&Header { session, flow, number: KNOCK, sent_ns: 0 }.bytes());
            });
            Ok(())
        };
        match self.next(LOOK, knock)? {
            Message::Ready => Ok(()),
            _ => Err(Error::NoListener),
        }
    }

    /// Waits a little for what the listener has seen.
    fn watch(&mut self, theirs: &mut Vec<(u32, End)>) -> Result<(), Error> {
        match self.poll(LOOK)? {
            Some(Message::End { flow, end }) => theirs.push((flow, end)),
            Some(_) => return Err(Error::NoListener),
            None => {}
        }
        Ok(())
    }

    /// Says that there is no more to come, and waits until the listener is done with this, a second at most: who is back
    /// before that is told that somebody is measured.
    fn hang_up(&mut self) {
        let start = Instant::now();
        let _ = self.control.stream.shutdown(Shutdown::Write);
        while start.elapsed() < Duration::from_secs(1) && self.control.poll(LOOK).is_ok() {}
    }

    /// Where a flow broke, the listener may be about to say why.
    fn why(&mut self, error: Error) -> Error {
        match error {
            Error::Broken { .. } => match self.control.poll(Duration::from_secs(1)) {
                Ok(Some(Message::Refused(refusal))) => Error::Refused(refusal),
                _ => error,
            },
            error => error,
        }
    }
}

fn flow_of(reach: &dyn Reach, token: &Token, session: u64, flow: u32) -> Result<TcpStream, Error> {
    let stream = reach.connect().map_err(|error| Error::broken("before there was one", error))?;
    let hello = Hello::new(token, session, flow).bytes();
    io::Write::write_all(&mut &stream, &hello).map_err(|error| Error::broken("when it was made", error))?;
    Ok(stream)
}
