//! Servers as one would not have them.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::server::Counters;

/// What a server does once it has a request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// Nothing, and it keeps the connection.
    Silent,
    /// It closes the connection without an answer.
    Closes,
    /// It resets the connection in the middle of a body.
    Resets,
    /// It promises a body of 1,000 bytes, sends half of it and closes the connection.
    SendsLess,
    /// It promises a body of 500 bytes and sends 1,000.
    SendsMore,
    /// It promises a body of 1,000 bytes and sends one each time.
    Slow {
        /// How long it waits before each.
        each: Duration,
    },
    /// It speaks something else.
    NotHttp,
}

pub(super) async fn misbehave(mut stream: TcpStream, how: Misbehaviour, counters: Arc<Counters>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    counters.requests.fetch_add(1, Ordering::Relaxed);
    let (promised_bytes, sent_bytes) = match how {
        Misbehaviour::Silent => pending().await,
        Misbehaviour::Closes => return Ok(()),
        Misbehaviour::NotHttp => return stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await,
        Misbehaviour::SendsMore => (500, 1_000),
        Misbehaviour::SendsLess | Misbehaviour::Resets => (1_000, 500),
        Misbehaviour::Slow { .. } => (1_000, 0),
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {promised_bytes}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), &vec![b'.'; sent_bytes]].concat()).await?;
    if how == Misbehaviour::Resets {
        // Instead of an end there is a reset.
        set_socket_linger(&stream, Some(Duration::ZERO))?;
    }
    if let Misbehaviour::Slow { each } = how {
        for _ in 0..promised_bytes {
            tokio::time::sleep(each).await;
            stream.write_all(b".").await?;
        }
    }
    Ok(())
}
