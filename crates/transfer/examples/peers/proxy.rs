//! A proxy in front of the server that limits the bandwidth of each connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bandwidth of each connection, in each direction, in bytes per second.
const BYTES_PER_S: f64 = 3e6;
/// Maximum number of bytes per read.
const STEP_BYTES: usize = 16 << 10;
/// The longest delay that the proxy makes up for. If a thread is late, it sends the next bytes sooner.
const CATCH_UP: Duration = Duration::from_millis(10);

/// The name by which AWS's Common Runtime (CRT) identifies itself in a request.
const CRT: &[u8] = b"CRTS3NativeClient";

/// `true` if the first request on any connection so far came from the CRT.
pub static HAS_SEEN_CRT: AtomicBool = AtomicBool::new(false);

/// Starts a proxy in front of `server`, and returns its address. The proxy runs until the process ends.
pub fn start(server: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // If the server refuses a connection, the client's connection is closed too.
            let _ = serve(client, server);
        }
    });
    Ok(address)
}

fn serve(client: TcpStream, server: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    for (from, to) in [(&client, &server), (&server, &client)] {
        to.set_nodelay(true)?;
        let (from, to) = (from.try_clone()?, to.try_clone()?);
        thread::spawn(move || {
            let is_complete = copy(&from, &to).is_ok();
            // After an error, the other direction is useless as well.
            let _ = if is_complete { to.shutdown(Shutdown::Write) } else { from.shutdown(Shutdown::Both) };
        });
    }
    Ok(())
}

/// Copies bytes at the limited bandwidth until `from` ends.
fn copy(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    let (mut block, mut due, mut is_first) = ([0; STEP_BYTES], Instant::now(), true);
    loop {
        let bytes = from.read(&mut block)?;
        if bytes == 0 {
            return Ok(());
        }
        if is_first && block[..bytes].windows(CRT.len()).any(|found| found == CRT) {
            HAS_SEEN_CRT.store(true, Ordering::Relaxed);
        }
        is_first = false;
        let now = Instant::now();
        // An idle connection does not save up bandwidth.
        due = due.max(now.checked_sub(CATCH_UP).unwrap_or(now)) + Duration::from_secs_f64(bytes as f64 / BYTES_PER_S);
        thread::sleep(due.saturating_duration_since(now));
        to.write_all(&block[..bytes])?;
    }
}
