//! The client of a throughput measurement. It requests the measurement from a listener, and combines the listener's
//! counts with its own.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use ascertain_sys::clock::now_ns;

use super::Token;
use super::bucket::Curve;
use super::counting::{Allowance, FlowEnd, Timing};
use super::datagrams::{Header, KNOCK};
use super::flows::{FlowSockets, Flows, LOOK};
use super::message::{Control, Hello, LineReader, MOST_LINE_BYTES, Message, VERSION, to_line};
use super::traffic::{Refusal, TrafficSpec, Transport};
use crate::Error;

/// Time after which a listener that sends no message counts as gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// Number of round trips that are measured to estimate the offset of the clocks. The estimate uses the shortest round
/// trip.
const PINGS: usize = 10;

/// Times that the client allows for the start message to reach the listener, in milliseconds, in addition to a round
/// trip. The first attempt uses the first time, and each further attempt uses the next one. The first times are too
/// short for a start message that is lost and retransmitted.
const AHEAD_MS: [u64; 4] = [2, 20, 500, 5_000];

/// A way to reach a listener, for example by its address or through an emulated link.
pub trait Connector {
    /// Opens a TCP connection to the listener.
    ///
    /// # Errors
    /// Returns errors of the kernel.
    fn connect(&self) -> io::Result<TcpStream>;

    /// Opens a UDP socket that is connected to the listener.
    ///
    /// # Errors
    /// Returns errors of the kernel.
    fn datagrams(&self) -> io::Result<UdpSocket>;
}

impl Connector for SocketAddr {
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

/// Connects from one side of an emulated link to an address on the other side.
#[cfg(target_os = "linux")]
impl Connector for (&crate::Side, SocketAddr) {
    fn connect(&self) -> io::Result<TcpStream> {
        self.0.connect(self.1)
    }

    fn datagrams(&self) -> io::Result<UdpSocket> {
        let socket: UdpSocket = self.0.socket(&self.1, rustix::net::SocketType::DGRAM)?.into();
        socket.connect(self.1)?;
        Ok(socket)
    }
}

/// The result of a throughput measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The traffic that was measured: its protocol, direction, flows and duration.
    pub spec: TrafficSpec,
    /// The counts of each flow, in the order of flow indexes.
    pub flows: Vec<FlowReport>,
    /// Estimated offset of the listener's clock from the client's clock. The client used it to choose a common start
    /// time.
    pub clock: ClockOffset,
}

/// The counts of one flow, by its sender and by its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// `true` if the flow was sent from the client to the listener.
    pub is_up: bool,
    /// The counts by the sender of the flow.
    pub sender: FlowEnd,
    /// The counts by the receiver of the flow.
    pub receiver: FlowEnd,
}

impl Measurement {
    /// Returns the bytes that arrived in each interval, summed over all flows.
    pub fn curve(&self) -> Curve {
        let TrafficSpec { interval, left_out, intervals, .. } = self.spec;
        let mut bytes = vec![0; (left_out + intervals) as usize];
        for flow in &self.flows {
            bytes.iter_mut().zip(&flow.receiver.bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
        Curve { interval, left_out: left_out as usize, bytes }
    }

    /// Returns the CPU time in the counted intervals, in nanoseconds. The intervals that are left out at the beginning
    /// do not count. The first element is the CPU time of the client's threads, and the second element is the CPU time
    /// of the listener's threads.
    pub fn cpu_ns(&self) -> [u64; 2] {
        let sum = |is_near| {
            self.flows.iter().map(|flow| if flow.is_up == is_near { &flow.sender } else { &flow.receiver }.cpu_ns).sum()
        };
        [sum(true), sum(false)]
    }

    /// Returns the share of datagrams that never arrived, from 0 to 1; `None` if no datagram was sent.
    pub fn lost(&self) -> Option<f64> {
        let sum = |count: fn(&FlowReport) -> u64| self.flows.iter().map(count).sum::<u64>();
        let (sent, arrived) = (sum(|flow| flow.sender.datagrams), sum(|flow| flow.receiver.datagrams));
        (sent > 0).then(|| sent.saturating_sub(arrived) as f64 / sent as f64)
    }
}

/// Measures traffic to and from a listener, until the measurement is complete or `is_stopped` returns `true`.
///
/// # Errors
/// - [`Error::Refused`] with the listener's reason, if it does not measure or stops measuring;
/// - [`Error::NoListener`] if the connector does not reach a listener, or the token is wrong;
/// - [`Error::Stopped`] if `is_stopped` returned `true`;
/// - [`Error::TimedOut`] or [`Error::Broken`] if a connection fails.
pub fn measure(
    connector: &dyn Connector,
    token: &Token,
    spec: &TrafficSpec,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Measurement, Error> {
    spec.check(Duration::MAX).map_err(Error::Refused)?;
    let mut result = Err(Error::Refused(Refusal::Late));
    for ahead_ms in AHEAD_MS {
        result = measure_once(connector, token, spec, ahead_ms, is_stopped);
        if !matches!(result, Err(Error::Refused(Refusal::Late))) {
            break;
        }
    }
    result
}

fn measure_once(
    connector: &dyn Connector,
    token: &Token,
    spec: &TrafficSpec,
    ahead_ms: u64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Measurement, Error> {
    let mut control = ClientControl::open(connector, token, is_stopped)?;
    let clock = control.clock()?;
    control.send(&Message::Measure(spec.clone()))?;
    let sockets = control.sockets(spec, connector)?;
    let flow_sockets = match spec.transport {
        Transport::Tcp => FlowSockets::Streams(control.streams(spec, connector, token)?),
        Transport::Udp { .. } => FlowSockets::Datagrams(sockets.iter().map(|socket| (socket, None)).collect()),
    };
    control.until_ready(&sockets)?;
    // The start is far enough ahead for the start message to reach the listener in time.
    let zero_ns = now_ns() + 2 * clock.bound_ns + ahead_ms * 1_000_000;
    control.send(&Message::Begin { at_ns: clock.theirs_ns(zero_ns), bound_ns: clock.bound_ns })?;
    let timing = Timing::new(spec, zero_ns, clock.bound_ns);
    if timing.is_late(now_ns()) {
        control.hang_up();
        return Err(Error::Refused(Refusal::Late));
    }
    let flows = Flows { session: control.session, spec, is_client: true, timing };
    let left_bytes = AtomicU64::new(u64::MAX);
    let mut theirs = Vec::new();
    let ran = flows.run(&flow_sockets, &Allowance::new(&left_bytes), || control.watch(&mut theirs));
    let mut ours = ran.map_err(|error| control.reason(error))?;
    let start = Instant::now();
    while theirs.len() < ours.len() {
        control.watch(&mut theirs)?;
        if start.elapsed() > PATIENCE {
            return Err(Error::TimedOut { limit: PATIENCE });
        }
    }
    ours.sort_by_key(|(flow, _)| *flow);
    theirs.sort_by_key(|(flow, _)| *flow);
    let flows = spec.flows().into_iter().zip(ours).zip(theirs).map(|((is_up, (_, ours)), (_, theirs))| {
        let (sender, receiver) = if is_up { (ours, theirs) } else { (theirs, ours) };
        FlowReport { is_up, sender, receiver }
    });
    Ok(Measurement { spec: spec.clone(), flows: flows.collect(), clock })
}

/// The client's side of the control connection, over which client and listener exchange messages.
struct ClientControl<'a> {
    control: Control,
    session: u64,
    is_stopped: &'a dyn Fn() -> bool,
}

impl<'a> ClientControl<'a> {
    fn open(connector: &dyn Connector, token: &Token, is_stopped: &'a dyn Fn() -> bool) -> Result<Self, Error> {
        let stream = connect(connector, token, 0, 0)?;
        let control = Control::new(stream, LineReader::new(MOST_LINE_BYTES));
        let control = control.map_err(|error| Error::broken("while it was being set up", error))?;
        let mut client = Self { control, session: 0, is_stopped };
        match client.next(Duration::ZERO, || ()) {
            Ok(Message::Welcome { session }) if session > 0 => Ok(Self { session, ..client }),
            Err(error @ (Error::Refused(_) | Error::Stopped | Error::TimedOut { .. })) => Err(error),
            Ok(_) | Err(_) => Err(Error::NoListener),
        }
    }

    fn send(&mut self, message: &Message) -> Result<(), Error> {
        self.control.send(message).map_err(|error| Error::broken("while a request was sent to the listener", error))
    }

    /// Returns the listener's next message; `None` if the message does not arrive within the time `wait`.
    fn poll(&mut self, wait: Duration) -> Result<Option<Message>, Error> {
        if (self.is_stopped)() {
            return Err(Error::Stopped);
        }
        match self.control.poll(wait) {
            Ok(Some(Message::Refused(refusal))) => Err(Error::Refused(refusal)),
            Ok(message) => Ok(message),
            Err(error) => Err(Error::broken("while waiting for the listener", error)),
        }
    }

    /// Returns the listener's next message. Until it arrives, calls `meanwhile` again and again, and waits for at most
    /// `wait` between two calls.
    fn next(&mut self, wait: Duration, mut meanwhile: impl FnMut()) -> Result<Message, Error> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            meanwhile();
            if let Some(message) = self.poll(wait.max(Duration::from_millis(1)))? {
                return Ok(message);
            }
        }
        Err(Error::TimedOut { limit: PATIENCE })
    }

    fn clock(&mut self) -> Result<ClockOffset, Error> {
        let mut trips = Vec::new();
        for _ in 0..PINGS {
            let sent_ns = now_ns();
            self.send(&Message::Ping { sent_ns })?;
            match self.next(LOOK, || ())? {
                Message::Pong { sent_ns: same_ns, at_ns } if same_ns == sent_ns => {
                    trips.push([sent_ns, at_ns, now_ns()]);
                }
                _ => return Err(Error::NoListener),
            }
        }
        ClockOffset::from_round_trips(&trips).ok_or(Error::NoListener)
    }

    fn streams(&self, spec: &TrafficSpec, connector: &dyn Connector, token: &Token) -> Result<Vec<TcpStream>, Error> {
        (0..).zip(spec.flows()).map(|(flow, _)| connect(connector, token, self.session, flow)).collect()
    }

    fn sockets(&self, spec: &TrafficSpec, connector: &dyn Connector) -> Result<Vec<UdpSocket>, Error> {
        let is_udp = spec.transport != Transport::Tcp;
        let flows = spec.flows().into_iter().filter(|_| is_udp);
        let sockets = flows.map(|_| connector.datagrams()).collect::<io::Result<_>>();
        sockets.map_err(|error| Error::broken("while a socket was opened", error))
    }

    /// Waits until the listener has the connections of all TCP flows, or the addresses of all UDP sockets. The listener
    /// learns the addresses from datagrams. They are sent repeatedly, because a datagram may be lost.
    fn until_ready(&mut self, sockets: &[UdpSocket]) -> Result<(), Error> {
        let session = self.session;
        let knock = || {
            (0..).zip(sockets).for_each(|(flow, socket)| {
                // The result is ignored, because the datagram is sent again until the listener is ready.
                let _ = socket.send(&Header { session, flow, number: KNOCK, sent_ns: 0 }.bytes());
            });
        };
        match self.next(LOOK, knock)? {
            Message::Ready => Ok(()),
            _ => Err(Error::NoListener),
        }
    }

    /// Waits briefly for the listener's next message with the counts of a flow. Adds the index of the flow and its
    /// counts to `theirs`.
    fn watch(&mut self, theirs: &mut Vec<(u32, FlowEnd)>) -> Result<(), Error> {
        match self.poll(LOOK)? {
            Some(Message::End { flow, end }) => theirs.push((flow, end)),
            Some(_) => return Err(Error::NoListener),
            None => {}
        }
        Ok(())
    }

    /// Closes the client's side of the control connection. Then waits for at most a second until the listener has
    /// closed the other side. Until then, the listener is busy and refuses a new measurement.
    fn hang_up(&mut self) {
        let start = Instant::now();
        let _ = self.control.stream.shutdown(Shutdown::Write);
        while start.elapsed() < Duration::from_secs(1) && self.control.poll(LOOK).is_ok() {}
    }

    /// Returns the listener's reason for ending the measurement, if a message with the reason arrives within a second.
    /// Otherwise returns `error`, which the client itself saw when a flow broke.
    fn reason(&mut self, error: Error) -> Error {
        match error {
            Error::Broken { .. } => match self.control.poll(Duration::from_secs(1)) {
                Ok(Some(Message::Refused(refusal))) => Error::Refused(refusal),
                _ => error,
            },
            error => error,
        }
    }
}

/// Opens a connection to the listener for the flow with index `flow`, and sends a [`Hello`] with the token on it.
fn connect(connector: &dyn Connector, token: &Token, session: u64, flow: u32) -> Result<TcpStream, Error> {
    let stream = connector.connect().map_err(|error| Error::broken("before it was established", error))?;
    let hello = Hello { version: VERSION, token: token.as_str().into(), session, flow };
    io::Write::write_all(&mut &stream, &to_line(&hello))
        .map_err(|error| Error::broken("while it was being set up", error))?;
    Ok(stream)
}

/// The offset of another machine's clock from this machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Estimated time by which the other clock is ahead.
    pub offset_ns: i128,
    /// Largest error of the estimate, in either direction: half of the shortest round trip.
    pub bound_ns: u64,
}

impl ClockOffset {
    /// Estimates the offset from the shortest of these round trips; `None` if there are none. Each round trip has three
    /// times: when we sent the request (our clock), when the other host answered (its clock), and when we received the
    /// answer (our clock).
    pub fn from_round_trips(trips: &[[u64; 3]]) -> Option<Self> {
        let [sent_ns, theirs_ns, answered_ns] = *trips.iter().min_by_key(|trip| trip[2].saturating_sub(trip[0]))?;
        let middle_ns = (i128::from(sent_ns) + i128::from(answered_ns)) / 2;
        let bound_ns = answered_ns.saturating_sub(sent_ns).div_ceil(2);
        Some(Self { offset_ns: i128::from(theirs_ns) - middle_ns, bound_ns })
    }

    /// Converts a time on our clock to a time on the other clock.
    pub fn theirs_ns(&self, ours_ns: u64) -> u64 {
        u64::try_from(i128::from(ours_ns) + self.offset_ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_is_believed() {
        assert_eq!(ClockOffset::from_round_trips(&[]), None);
        // The first message is slow on the way there, and the second on the way back. The third takes equally long both
        // ways.
        let trips = [[1_000, 6_400, 1_500], [2_000, 7_100, 2_600], [3_000, 8_030, 3_060]];
        let offset = ClockOffset::from_round_trips(&trips).unwrap();
        assert_eq!(offset, ClockOffset { offset_ns: 5_000, bound_ns: 30 });
        assert_eq!(offset.theirs_ns(4_000), 9_000);
        assert_eq!(ClockOffset::from_round_trips(&[[10_000, 5, 10_001]]).unwrap().theirs_ns(1), 0);
    }

    proptest::proptest! {
        #[test]
        fn the_truth_is_within_the_bound(
            truth_ns in -1_000_000_000_i64..1_000_000_000,
            trips in proptest::collection::vec((0_u64..1_000_000, 0_u64..100_000, 0_u64..100_000), 1..20),
        ) {
            let trips: Vec<_> = trips.iter().map(|(at_ns, there_ns, back_ns)| {
                let sent_ns = 2_000_000_000 + at_ns;
                let theirs_ns = (sent_ns + there_ns).checked_add_signed(truth_ns).unwrap();
                [sent_ns, theirs_ns, sent_ns + there_ns + back_ns]
            }).collect();
            let offset = ClockOffset::from_round_trips(&trips).unwrap();
            // Rounding may exceed the bound by a nanosecond.
            assert!((offset.offset_ns - i128::from(truth_ns)).unsigned_abs() <= u128::from(offset.bound_ns) + 1);
        }
    }
}
