//! All flows of a measurement, at one end.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;

use super::Transport;
use super::counting::{Allowance, End, Over, Timing};
use super::datagrams::{self, Sending};
use super::plan::Plan;
use super::stream::{self, LOOK};

/// What flows go by, in the order of their numbers.
pub(super) enum Carried<'a> {
    Streams(Vec<TcpStream>),
    /// With the address of the other end; none where a socket is connected. A socket that is not is the same for all.
    Datagrams(Vec<(&'a UdpSocket, Option<SocketAddr>)>),
}

/// What one end has to do.
pub(super) struct Flows<'a> {
    pub session: u64,
    pub plan: &'a Plan,
    pub is_client: bool,
    pub timing: Timing,
}

type Ends = Result<Vec<(u32, End)>, Over>;
type Job<'a> = Box<dyn FnOnce() -> Ends + Send + 'a>;

impl Flows<'_> {
    /// Sends and receives, each in a thread of its own, until that is done, or one of them or `watch` fails; that is
    /// called again and again, and waits a little.
    pub fn run<E: From<Over>>(
        &self,
        carried: &Carried,
        allowance: &Allowance,
        mut watch: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<(u32, End)>, E> {
        let cut = || allowance.is_over.store(true, Ordering::Relaxed);
        let work = |job: Job<'_>| job().inspect_err(|_| cut());
        thread::scope(|scope| {
            let jobs = self.jobs(carried, allowance).into_iter();
            let threads: Vec<_> = jobs.map(|job| scope.spawn(|| work(job))).collect();
            let mut watched = Ok(());
            while threads.iter().any(|thread| !thread.is_finished()) {
                if watched.is_ok() {
                    watched = watch();
                } else {
                    cut();
                    thread::sleep(LOOK / 4);
                }
            }
            let broken = || Err(Over::Broken(std::io::Error::other("a thread ended by a mistake of ours")));
            let ends: Vec<Ends> =
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| broken())).collect();
            watched?;
            // Who was told to end says nothing of why.
            let (told, why): (Vec<_>, Vec<_>) = ends.into_iter().partition(|ends| matches!(ends, Err(Over::Told)));
            let ends = why.into_iter().chain(told).collect::<Result<Vec<_>, _>>()?;
            Ok(ends.into_iter().flatten().collect())
        })
    }

    fn jobs<'a>(&self, carried: &'a Carried, allowance: &'a Allowance) -> Vec<Job<'a>> {
        let (session, timing) = (self.session, self.timing);
        let flows: Vec<_> = (0..).zip(self.plan.flows()).map(|(flow, is_up)| (flow, is_up == self.is_client)).collect();
        let (rate_bits_per_s, datagram_bytes) = match self.plan.transport {
            Transport::Tcp => (0, 0),
            Transport::Udp { rate_bits_per_s, datagram_bytes } => (rate_bits_per_s, datagram_bytes),
        };
        let sockets = match carried {
            Carried::Streams(streams) => {
                let job = |((flow, is_sender), stream): ((u32, bool), &'a TcpStream)| -> Job<'a> {
                    let carry = if is_sender { stream::send } else { stream::receive };
                    Box::new(move || Ok(vec![(flow, carry(stream, timing, allowance)?)]))
                };
                return flows.into_iter().zip(streams).map(job).collect();
            }
            Carried::Datagrams(sockets) => sockets,
        };
        let receive = move |socket: &'a UdpSocket, flows: Vec<u32>| -> Job<'a> {
            Box::new(move || datagrams::receive(socket, session, &flows, timing, allowance))
        };
        let (mut jobs, mut received): (Vec<Job>, Vec<(&UdpSocket, u32)>) = (Vec::new(), Vec::new());
        for ((flow, is_sender), (socket, to)) in flows.into_iter().zip(sockets) {
            if is_sender {
                let what = Sending { session, flow, to: *to, rate_bits_per_s, datagram_bytes };
                jobs.push(Box::new(move || Ok(vec![(flow, datagrams::send(socket, what, timing, allowance)?)])));
            } else {
                received.push((socket, flow));
            }
        }
        // What arrives at one socket is told apart there.
        let shared = received.chunk_by(|(one, _), (other, _)| std::ptr::eq(*one, *other));
        jobs.extend(shared.map(|flows| receive(flows[0].0, flows.iter().map(|(_, flow)| *flow).collect())));
        jobs
    }
}
