//! Runs all flows of a measurement, on the client or on the listener. TCP flows are sent and received in this module,
//! UDP flows in [`datagrams`].

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread::{self, sleep};
use std::time::Duration;

use ascertain_sys::clock::now_ns;

use super::counting::{Allowance, Counting, FlowEnd, Timing, broken};
use super::datagrams::{self, Sending};
use super::message::is_nothing_yet;
use super::traffic::{TrafficSpec, Transport};
use crate::Error;
use crate::http::random_bytes;

/// The connections or sockets of the flows, in the order of flow indexes.
pub(super) enum FlowSockets<'a> {
    Streams(Vec<TcpStream>),
    /// For each UDP flow, its socket and the address of the other host. The address is `None` if the socket is
    /// connected. All entries with an address share one socket.
    Datagrams(Vec<(&'a UdpSocket, Option<SocketAddr>)>),
}

/// The flows of a measurement on one host, which [`run`](Self::run) sends and receives.
pub(super) struct Flows<'a> {
    pub session: u64,
    pub spec: &'a TrafficSpec,
    pub is_client: bool,
    pub timing: Timing,
}

type Ends = Result<Vec<(u32, FlowEnd)>, Error>;
type Job<'a> = Box<dyn FnOnce() -> Ends + Send + 'a>;

impl Flows<'_> {
    /// Sends and receives all flows in threads, until all flows are done, or until a flow or `watch` fails. While the
    /// threads run, `watch` is called in a loop. It must wait briefly in each call, because nothing else slows down the
    /// loop.
    pub fn run(
        &self,
        sockets: &FlowSockets,
        allowance: &Allowance,
        mut watch: impl FnMut() -> Result<(), Error>,
    ) -> Ends {
        let stop = || allowance.is_over.store(true, Ordering::Relaxed);
        let work = |job: Job<'_>| job().inspect_err(|_| stop());
        thread::scope(|scope| {
            let jobs = self.jobs(sockets, allowance).into_iter();
            let threads: Vec<_> = jobs.map(|job| scope.spawn(|| work(job))).collect();
            let mut watched = Ok(());
            while threads.iter().any(|thread| !thread.is_finished()) {
                if watched.is_ok() {
                    watched = watch();
                } else {
                    stop();
                    sleep(LOOK / 4);
                }
            }
            let panicked = || Err(broken(io::Error::other("a thread panicked because of a bug")));
            let ends = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked()));
            let mut ends: Vec<Ends> = ends.collect();
            watched?;
            // A flow that fails ends the other flows with `Stopped`. Its own error comes first, so that it is returned.
            ends.sort_by_key(|end| matches!(end, Err(Error::Stopped)));
            let ends = ends.into_iter().collect::<Result<Vec<_>, _>>()?;
            Ok(ends.into_iter().flatten().collect())
        })
    }

    fn jobs<'a>(&self, sockets: &'a FlowSockets, allowance: &'a Allowance) -> Vec<Job<'a>> {
        let (session, timing) = (self.session, self.timing);
        let flows = (0..).zip(self.spec.flows()).map(|(flow, is_up)| (flow, is_up == self.is_client));
        let (rate_bits_per_s, datagram_bytes) = match self.spec.transport {
            Transport::Tcp => (0, 0),
            Transport::Udp { rate_bits_per_s, datagram_bytes } => (rate_bits_per_s, datagram_bytes),
        };
        let sockets = match sockets {
            FlowSockets::Streams(streams) => {
                let job = |((flow, is_sender), stream): ((u32, bool), &'a TcpStream)| -> Job<'a> {
                    let carry = if is_sender { send } else { receive };
                    Box::new(move || Ok(vec![(flow, carry(stream, timing, allowance)?)]))
                };
                return flows.zip(streams).map(job).collect();
            }
            FlowSockets::Datagrams(sockets) => sockets,
        };
        let (mut jobs, mut received): (Vec<Job>, Vec<(&UdpSocket, u32)>) = (Vec::new(), Vec::new());
        for ((flow, is_sender), (socket, to)) in flows.zip(sockets) {
            if is_sender {
                let sending = Sending { session, flow, to: *to, rate_bits_per_s, datagram_bytes };
                jobs.push(Box::new(move || Ok(vec![(flow, datagrams::send(socket, sending, timing, allowance)?)])));
            } else {
                received.push((socket, flow));
            }
        }
        // One job receives all flows that share a socket, and assigns each datagram to its flow.
        for shared in received.chunk_by(|(one, _), (other, _)| std::ptr::eq(*one, *other)) {
            let (socket, flows) = (shared[0].0, shared.iter().map(|(_, flow)| *flow).collect::<Vec<_>>());
            jobs.push(Box::new(move || datagrams::receive(socket, session, &flows, timing, allowance)));
        }
        jobs
    }
}

/// Maximum time for which a waiting thread sleeps before it checks the clock again.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// Number of bytes that are sent or received in one system call.
const PIECE_BYTES: usize = 128 << 10;

/// Sends a TCP flow from the common start until [`Timing::slack_ns`] after the counted intervals.
fn send(stream: &TcpStream, timing: Timing, allowance: &Allowance) -> Result<FlowEnd, Error> {
    stream.set_write_timeout(Some(LOOK)).map_err(broken)?;
    let filling = random_bytes(PIECE_BYTES);
    // Waits for the common start, because bytes that arrive earlier would be counted in the first interval.
    loop {
        allowance.look()?;
        match timing.zero_ns.saturating_sub(now_ns()) {
            0 => break,
            left_ns => sleep(Duration::from_nanos(left_ns).min(LOOK)),
        }
    }
    carry(stream, timing, timing.slack_ns, allowance, |mut stream| stream.write(&filling))
}

/// Receives a TCP flow until the end of the counted intervals.
fn receive(stream: &TcpStream, timing: Timing, allowance: &Allowance) -> Result<FlowEnd, Error> {
    stream.set_read_timeout(Some(LOOK)).map_err(broken)?;
    let mut buffer = vec![0; PIECE_BYTES];
    carry(stream, timing, 0, allowance, |mut stream| stream.read(&mut buffer))
}

fn carry(
    stream: &TcpStream,
    timing: Timing,
    longer_ns: u64,
    allowance: &Allowance,
    mut carry_some: impl FnMut(&TcpStream) -> io::Result<usize>,
) -> Result<FlowEnd, Error> {
    let mut counting = Counting::new(timing, Some(stream));
    loop {
        let carried = carry_some(stream);
        let now_ns = now_ns();
        match carried {
            Ok(0) => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(bytes) => {
                counting.add(now_ns, bytes);
                allowance.spend(bytes as u64)?;
            }
            Err(error) if is_nothing_yet(&error) => {
                counting.at(now_ns);
                allowance.look()?;
            }
            Err(error) => return Err(broken(error)),
        }
        if now_ns >= timing.end_ns + longer_ns {
            return Ok(counting.end());
        }
    }
}
