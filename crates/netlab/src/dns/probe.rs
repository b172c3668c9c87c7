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

/// So much is sent, or received at a port, before something else has its turn: a flood is not to keep us from asking,
/// nor a rate that is beyond this machine from ending.
const AT_ONCE: usize = 64;

/// Asks in a rhythm until it is told to end, and waits for the answers to what was asked by then; by sockets that are
/// bound and not connected, one a flow. What the kernel refuses to send is lost. A question that is late is sent late:
/// its time is when it was sent.
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
    let mut is_asking = true;
    while is_asking || probing.is_waiting(now_ns()) {
        let mut due_ns = start_ns + rhythm.due_ns(number);
        for _ in 0..AT_ONCE {
            if !is_asking || due_ns > now_ns() {
                break;
            }
            let (server, flow) = rhythm.of(number);
            let (to, question) = probing.ask(now_ns(), server, flow);
            _ = sockets[flow].send_to(question, to);
            number += 1;
            due_ns = start_ns + rhythm.due_ns(number);
        }
        is_asking = is_asking && !is_over(probing, now_ns());
        let wait_ns = if is_asking { due_ns.saturating_sub(now_ns()) } else { u64::MAX };
        let wait = Duration::from_nanos(wait_ns).min(LOOK);
        let ready = ready(sockets, wait)?;
        for flow in ready {
            for _ in 0..AT_ONCE {
                match sockets[flow].recv_from(&mut bytes) {
                    Ok((length, from)) => probing.arrived(now_ns(), flow, from, &bytes[..length]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // What the network says of something that was sent before.
                    Err(_) => {}
                }
            }
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
