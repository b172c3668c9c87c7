//! A download over TLS with rustls alone: the limit of each client that uses this library.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, Stream};

use super::client::{ClientOptions, HttpResponse, READ_AHEAD_BYTES, name};
use super::tls::disagreement;
use super::{Protocol, TlsSession};
use crate::Error;

/// Size in bytes of the buffer for the answer. It holds four records of TLS.
const BUFFER_BYTES: usize = 1 << 16;

/// Requests `path` by HTTP/1.1 over TLS, and reads the answer into one buffer, without a runtime and without an HTTP
/// library. This is the least work of a client that uses rustls. Returns the answer and the session.
///
/// ```
/// use std::net::{TcpListener, TcpStream};
/// use std::time::Duration;
/// use ascertain_netlab::http::{ClientOptions, Server, TlsVersion, download_with_rustls, trusting_ours};
///
/// let server = Server::start(TcpListener::bind("127.0.0.1:0")?, Some(&[TlsVersion::V1_3]))?;
/// let tls = Some(trusting_ours(&[TlsVersion::V1_3])?);
/// let options = ClientOptions { tls, ..ClientOptions::plain("localhost", Duration::from_secs(5)) };
/// let (answer, _) = download_with_rustls(TcpStream::connect(server.address())?, &options, "/bytes/100000")?;
/// assert_eq!((answer.status, answer.body_bytes), (200, 100_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// - [`Error::Invalid`] if the options have no TLS;
/// - [`Error::Tls`] if the handshake fails;
/// - [`Error::Broken`] for an answer without a length, or one that ends early, or if no byte arrives for
///   [`limit`](ClientOptions::limit).
pub fn download_with_rustls(
    stream: TcpStream,
    options: &ClientOptions,
    path: &str,
) -> Result<(HttpResponse, Option<TlsSession>), Error> {
    let tls = options.tls.as_ref().ok_or_else(|| Error::Invalid("a download with rustls needs TLS settings".into()))?;
    let set_up = |error| Error::broken("while it was being set up", error);
    stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(options.limit))).map_err(set_up)?;
    let server = ServerName::try_from(name(&options.host).to_string()).map_err(Error::tls)?;
    let mut connection = ClientConnection::new(tls.asking_for(Protocol::Http1), server).map_err(Error::tls)?;
    let mut stream = Socket { reads: BufReader::with_capacity(READ_AHEAD_BYTES, &stream), writes: &stream };
    connection.complete_io(&mut stream).map_err(disagreement)?;
    let session = TlsSession::from_state(&connection);
    let mut tls = Stream::new(&mut connection, &mut stream);
    let answer = send(&mut tls, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", options.host));
    Ok((answer.map_err(|error| Error::broken("in the middle of the answer", error))?, session))
}

/// A socket with a buffer for its reads.
struct Socket<'a> {
    reads: BufReader<&'a TcpStream>,
    writes: &'a TcpStream,
}

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads.read(buffer)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writes.flush()
    }
}

fn send(tls: &mut (impl Read + Write), request: &str) -> io::Result<HttpResponse> {
    tls.write_all(request.as_bytes())?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut filled = 0;
    let head_end = loop {
        filled += read_some(tls, &mut buffer[filled..])?;
        if let Some(at) = buffer[..filled].windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let (status, length) = parse(&head).ok_or_else(|| io::Error::other("the answer has no status or no length"))?;
    let mut body_bytes = (filled - head_end) as u64;
    while body_bytes < length {
        body_bytes += read_some(tls, &mut buffer)? as u64;
    }
    if body_bytes > length {
        return Err(io::Error::other(format!("the answer has more than {length} bytes")));
    }
    let received_bytes = head_end as u64 + body_bytes;
    Ok(HttpResponse { status, version: "HTTP/1.1", body_bytes, received_bytes, compression: None })
}

/// Reads at least one byte, or returns an error.
fn read_some(tls: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    match tls.read(buffer)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        bytes => Ok(bytes),
    }
}

/// Returns the status and the length of the body, from the head of an answer by HTTP/1.1.
fn parse(head: &str) -> Option<(u16, u64)> {
    let (first, headers) = head.split_once("\r\n")?;
    let status = first.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().ok()?;
    let mut fields = headers.lines().filter_map(|line| line.split_once(':'));
    let (_, length) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    Some((status, length.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A connection whose reads return these pieces.
    struct Pieces(VecDeque<&'static [u8]>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let piece = self.0.pop_front().unwrap_or_default();
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answer(pieces: &[&'static [u8]]) -> io::Result<HttpResponse> {
        send(&mut Pieces(pieces.iter().copied().collect()), "GET / HTTP/1.1\r\n\r\n")
    }

    #[test]
    fn an_answer_in_any_pieces_has_its_length() {
        for pieces in [
            &[&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..]][..],
            &[b"HTTP/1.1 200 OK\r\ncontent-length:5\r", b"\n\r", b"\nhe", b"llo"],
        ] {
            let answer = answer(pieces).unwrap();
            assert_eq!((answer.status, answer.body_bytes), (200, 5));
        }
    }

    #[test]
    fn what_is_no_whole_answer_is_an_error() {
        for (pieces, says) in [
            (&[&b"HTTP/1.1 200 OK\r\n"[..]][..], "end of file"),
            (&[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"], "end of file"),
            (&[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!"], "more than 5 bytes"),
            (&[b"HTTP/1.1 200 OK\r\n\r\nhello"], "no status or no length"),
            (&[b"SSH-2.0\r\nContent-Length: 5\r\n\r\nhello"], "no status or no length"),
        ] {
            let error = answer(pieces).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
