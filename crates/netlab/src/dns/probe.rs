//! Runs a [`Prober`] over sockets.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ascertain_sys::clock::now_ns;
use ascertain_sys::datagrams::{AT_ONCE, Inbox, note_times};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Prober, Rhythm, query_by_tcp};
use crate::Error;

/// Maximum time for which a waiting thread sleeps before it checks again whether it has to end.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// Length of a time slot, in nanoseconds. The queries that are due within a slot are sent together, and the answers
/// that arrive within a slot are read together. This saves wake-ups, which cost more than sending or reading. Reading
/// answers late does not change their recorded times, because the kernel records when each answer arrived.
pub(super) const ROUND_NS: u64 = 500_000;

/// Size of the receive buffer, in bytes. It is larger than the answer size that queries announce
/// ([`UDP_BYTES`](super::message::UDP_BYTES)).
pub(super) const MOST_BYTES: usize = 4096;

/// Maximum number of TCP connections that are open at once. TCP is used to repeat queries whose answers over UDP were
/// truncated.
const MOST_BY_TCP: usize = 64;

/// Sends queries according to the schedule `rhythm` until `is_over` returns `true`, then waits for the outstanding
/// answers. `is_over` gets the prober and the current time in nanoseconds.
///
/// `sockets` has a bound, unconnected socket for each flow. If an answer is truncated, the query is sent again over
/// TCP. A query that the kernel refuses to send counts as lost. A query that is sent late is recorded with the time at
/// which it was sent.
///
/// # Errors
/// Returns an error of the kernel if nothing can be received.
pub fn probe(
    prober: &mut Prober,
    rhythm: Rhythm,
    sockets: &[UdpSocket],
    mut is_over: impl FnMut(&Prober, u64) -> bool,
) -> io::Result<()> {
    for socket in sockets {
        socket.set_nonblocking(true)?;
        note_times(socket)?;
    }
    let start_ns = now_ns();
    let (mut number, mut inbox) = (0, Inbox::new(MOST_BYTES));
    let mut is_asking = true;
    let (told, by_tcp) = mpsc::channel::<(usize, SocketAddr, u64, Result<Vec<u8>, Error>)>();
    let mut connections = 0;
    while is_asking || prober.is_waiting(now_ns()) {
        let round_ns = now_ns();
        let mut due_ns = start_ns + rhythm.due_ns(number);
        // The number of queries per slot is limited, so that answers are read even if this machine is too slow for the
        // queries.
        for _ in 0..AT_ONCE {
            if !is_asking || due_ns > now_ns() {
                break;
            }
            let (server, flow) = rhythm.server_and_flow(number);
            if prober.is_due(server, flow, rhythm.round(number)) {
                let (to, question) = prober.query(now_ns(), server, flow);
                _ = sockets[flow].send_to(question, to);
            }
            number += 1;
            due_ns = start_ns + rhythm.due_ns(number);
        }
        for (flow, from, at_ns, answer) in by_tcp.try_iter() {
            connections -= 1;
            if let Ok(bytes) = answer {
                prober.arrived(at_ns, flow, from, &bytes);
            }
        }
        while is_asking
            && connections < MOST_BY_TCP
            && let Some((flow, server, question)) = prober.query_by_tcp(now_ns())
        {
            let (told, limit) = (told.clone(), prober.limit());
            let ask = move || {
                let answer = query_by_tcp(server, &question, limit);
                // Sending on the channel fails only if `probe` has returned. Then the answer is not needed any more.
                _ = told.send((flow, server, now_ns(), answer));
            };
            // If no thread can be started, the query is lost.
            connections += usize::from(thread::Builder::new().name("dns-by-tcp".into()).spawn(ask).is_ok());
        }
        is_asking = is_asking && !is_over(prober, now_ns());
        let wait_ns = if is_asking { due_ns.saturating_sub(now_ns()) } else { u64::MAX };
        let wait = Duration::from_nanos(wait_ns).min(LOOK);
        for flow in ready(sockets, wait)? {
            let arrived = |at_ns, from, bytes: &[u8]| prober.arrived(at_ns, flow, from, bytes);
            // An error is ignored: it reports that an earlier datagram was not delivered, and the query in that
            // datagram counts as lost.
            _ = inbox.receive(&sockets[flow], arrived);
        }
        let rest_ns = (round_ns + ROUND_NS).saturating_sub(now_ns());
        if due_ns > now_ns() {
            thread::sleep(Duration::from_nanos(rest_ns));
        }
    }
    Ok(())
}

/// Waits for at most `wait` until something arrives at one of the sockets. Returns the indexes of the sockets at which
/// something has arrived; the list is empty if nothing has.
pub(super) fn ready(sockets: &[impl AsFd], wait: Duration) -> io::Result<Vec<usize>> {
    let mut polled: Vec<PollFd> = sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    match poll(&mut polled, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok((0..polled.len()).filter(|flow| !polled[*flow].revents().is_empty()).collect())
}
