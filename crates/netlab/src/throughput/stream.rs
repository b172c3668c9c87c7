//! An end of a flow of TCP.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use ascertain_sys::clock::now_ns;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::counting::{Allowance, Counting, End, Over, Timing};
use super::message::is_nothing_yet;

/// How often what waits looks at the clock.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// What is sent and received at once.
const PIECE_BYTES: usize = 128 << 10;

/// What can't be compressed.
pub(super) fn filling(bytes: usize) -> Vec<u8> {
    let mut filling = vec![0; bytes];
    Xoshiro256PlusPlus::seed_from_u64(7).fill_bytes(&mut filling);
    filling
}

/// Sends from the moment at which both ends begin until it counts no more, and a little longer.
pub(super) fn send(stream: &TcpStream, timing: Timing, allowance: &Allowance) -> Result<End, Over> {
    stream.set_write_timeout(Some(LOOK)).map_err(Over::Broken)?;
    let filling = filling(PIECE_BYTES);
    // What was sent before would be counted in the first interval.
    loop {
        allowance.look()?;
        match timing.zero_ns.saturating_sub(now_ns()) {
            0 => break,
            left_ns => sleep(Duration::from_nanos(left_ns).min(LOOK)),
        }
    }
    carry(stream, timing, timing.slack_ns, allowance, |mut stream| stream.write(&filling))
}

/// Receives as long as it counts.
pub(super) fn receive(stream: &TcpStream, timing: Timing, allowance: &Allowance) -> Result<End, Over> {
    stream.set_read_timeout(Some(LOOK)).map_err(Over::Broken)?;
    let mut buffer = vec![0; PIECE_BYTES];
    carry(stream, timing, 0, allowance, |mut stream| stream.read(&mut buffer))
}

fn carry(
    stream: &TcpStream,
    timing: Timing,
    longer_ns: u64,
    allowance: &Allowance,
    mut carry_some: impl FnMut(&TcpStream) -> io::Result<usize>,
) -> Result<End, Over> {
    let mut counting = Counting::new(timing, Some(stream));
    loop {
        let carried = carry_some(stream);
        let now_ns = now_ns();
        match carried {
            Ok(0) => return Err(Over::Broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(bytes) => {
                counting.add(now_ns, bytes);
                allowance.spend(bytes as u64)?;
            }
            Err(error) if is_nothing_yet(&error) => {
                counting.at(now_ns);
                allowance.look()?;
            }
            Err(error) => return Err(Over::Broken(error)),
        }
        if now_ns >= timing.end_ns() + longer_ns {
            return Ok(counting.end());
        }
    }
}
