//! Asking by sockets.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ascertain_sys::clock::now_ns;
use ascertain_sys::datagrams::{AT_ONCE, Inbox, note_times};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Probing, Rhythm, ask_by_tcp};
use crate::Error;

/// How often it is looked whether it is to end, at least.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// What is due within this time is sent together, and what has come by then is read together: to wake up takes more
/// than either. The kernel writes down when it came.
pub(super) const ROUND_NS: u64 = 500_000;

/// More than is asked for ([`UDP_BYTES`](super::message::UDP_BYTES)).
pub(super) const MOST_BYTES: usize = 4096;

/// So many connections there are at the most at once.
const MOST_BY_TCP: usize = 64;

/// Asks in a rhythm until it is told to end, and waits for the answers to what was asked by then; by sockets that are
/// bound and not connected, one a flow. An answer that is not whole is asked for by a connection. What the kernel
/// refuses to send is lost. A question that is late is sent late: its time is when it was sent.
///
/// # Errors
/// As the kernel says, where nothing can be received.
pub fn probe(
    probing: &mut Probing,
    rhythm: Rhythm,
    sockets: &[UdpSocket],
    mut is_over: impl FnMut(&Probing, u64) -> bool,
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
    while is_asking || probing.is_waiting(now_ns()) {
        let round_ns = now_ns();
        let mut due_ns = start_ns + rhythm.due_ns(number);
        // Others have their turn, too, where this machine can't keep up.
        for _ in 0..AT_ONCE {
            if !is_asking || due_ns > now_ns() {
                break;
            }
            let (server, flow) = rhythm.of(number);
            if probing.asks(server, flow, rhythm.round(number)) {
                let (to, question) = probing.ask(now_ns(), server, flow);
                _ = sockets[flow].send_to(question, to);
            }
            number += 1;
            due_ns = start_ns + rhythm.due_ns(number);
        }
        for (flow, from, at_ns, answer) in by_tcp.try_iter() {
            connections -= 1;
            if let Ok(bytes) = answer {
                probing.arrived(at_ns, flow, from, &bytes);
            }
        }
        while is_asking
            && connections < MOST_BY_TCP
            && let Some((flow, server, question)) = probing.ask_by_tcp(now_ns())
        {
            let (told, limit) = (told.clone(), probing.limit());
            let ask = move || {
                let answer = ask_by_tcp(server, &question, limit);
                // Nobody hears of it any more where asking is over.
                _ = told.send((flow, server, now_ns(), answer));
            };
            // Without room for another thread the question is lost.
            connections += usize::from(thread::Builder::new().name("dns-by-tcp".into()).spawn(ask).is_ok());
        }
        is_asking = is_asking && !is_over(probing, now_ns());
        let wait_ns = if is_asking { due_ns.saturating_sub(now_ns()) } else { u64::MAX };
        let wait = Duration::from_nanos(wait_ns).min(LOOK);
        for flow in ready(sockets, wait)? {
            let arrived = |at_ns, from, bytes: &[u8]| probing.arrived(at_ns, flow, from, bytes);
            // An error is what the network says of something that was sent before.
            _ = inbox.receive(&sockets[flow], arrived);
        }
        let rest_ns = (round_ns + ROUND_NS).saturating_sub(now_ns());
        if due_ns > now_ns() {
            thread::sleep(Duration::from_nanos(rest_ns));
        }
    }
    Ok(())
}

/// Those of the sockets at which something has arrived.
pub(super) fn ready(sockets: &[impl AsFd], wait: Duration) -> io::Result<Vec<usize>> {
    let mut polled: Vec<PollFd> = sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    match poll(&mut polled, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok((0..polled.len()).filter(|flow| !polled[*flow].revents().is_empty()).collect())
}
