//! Asking by sockets.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use ascertain_sys::clock::now_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Probing, Rhythm};

/// How often it is looked whether it is to end, at least.
const LOOK: Duration = Duration::from_millis(20);

/// Asks in a rhythm until it is told to end, by sockets that are bound and not connected, one a flow. What the kernel
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
    sockets.iter().try_for_each(|socket| socket.set_nonblocking(true))?;
    let start_ns = now_ns();
    let (mut number, mut bytes) = (0, vec![0; 1 << 16]);
    loop {
        let mut due_ns = start_ns + rhythm.due_ns(number);
        while due_ns <= now_ns() {
            let (server, flow) = rhythm.of(number);
            let (to, question) = probing.ask(now_ns(), server, flow);
            _ = sockets[flow].send_to(question, to);
            number += 1;
            due_ns = start_ns + rhythm.due_ns(number);
        }
        if is_over(probing, now_ns()) {
            return Ok(());
        }
        let wait = Duration::from_nanos(due_ns.saturating_sub(now_ns())).min(LOOK);
        let ready = ready(sockets, wait)?;
        for flow in ready {
            // Not until there is nothing left: what is due must not wait for who floods us.
            for _ in 0..64 {
                match sockets[flow].recv_from(&mut bytes) {
                    Ok((length, from)) => probing.arrived(now_ns(), flow, from, &bytes[..length]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // What the network says of something that was sent before.
                    Err(_) => {}
                }
            }
        }
    }
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
