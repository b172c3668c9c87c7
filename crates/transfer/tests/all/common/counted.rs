//! A proxy in front of a store that counts the connections to it.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Maximum time that the proxy needs to notice that the client has closed a connection.
const GRACE: Duration = Duration::from_secs(10);

/// A running proxy. It counts how many connections are open at the same time.
pub struct Counted {
    pub address: SocketAddr,
    most: Arc<AtomicUsize>,
}

impl Counted {
    /// Starts a proxy to the server at `to`. If more than `permitted` connections are open, first waits for up to
    /// [`GRACE`] until the client has closed one.
    pub fn start(to: SocketAddr, permitted: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, most) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let (counted, open) = (Arc::clone(&most), Arc::new((Mutex::new(0), Condvar::new())));
        // The thread is not joined; it ends with the process of the tests.
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let mut now = open.0.lock().unwrap();
                *now += 1;
                // The client may have closed another connection just before it opened this one.
                now = open.1.wait_timeout_while(now, GRACE, |now| *now > permitted).unwrap().0;
                counted.fetch_max(*now, Ordering::Relaxed);
                drop(now);
                let open = Arc::clone(&open);
                std::thread::spawn(move || {
                    let _ = connect_through(client, to);
                    *open.0.lock().unwrap() -= 1;
                    open.1.notify_one();
                });
            }
        });
        Self { address, most }
    }

    /// Returns the largest number of connections that were open at the same time.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

/// Copies bytes between a client and the server at `to` until the client closes the connection.
fn connect_through(mut client: TcpStream, to: SocketAddr) -> io::Result<()> {
    let mut server = TcpStream::connect(to)?;
    let (mut answers, mut answered) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || {
        let _ = io::copy(&mut answers, &mut answered);
        let _ = answered.shutdown(Shutdown::Write);
    });
    let _ = io::copy(&mut client, &mut server);
    server.shutdown(Shutdown::Write)
}
