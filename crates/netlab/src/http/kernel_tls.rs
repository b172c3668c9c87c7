//! TLS connections for which rustls does the handshake, and the kernel encrypts and decrypts.

use std::io::{self, Cursor, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ascertain_sys::tcp::{Direction, TlsCipher, give_tls_key, put_tls_above};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ConnectionTrafficSecrets, ExtractedSecrets};

/// Tests on a loopback connection whether the kernel can encrypt and decrypt with this cipher.
///
/// # Errors
/// Returns errors of the kernel: `ENOENT` if the kernel has no support for TLS.
pub fn kernel_has_tls(cipher: TlsCipher) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
    let key = [0; 32];
    let key = if cipher == TlsCipher::Aes128Gcm { &key[..16] } else { &key };
    put_tls_above(&stream)?;
    [Direction::Sent, Direction::Received]
        .into_iter()
        .try_for_each(|direction| give_tls_key(&stream, direction, cipher, key, [0; 12], 0))
}

/// Runs the handshake with a client, and passes the keys to the kernel. The caller reads and writes plain data on the
/// returned stream. The settings of `acceptor` must allow the extraction of keys. If a client ends TLS with an alert
/// before it closes the connection, reading fails. The kernel returns alerts only to programs that ask for them, and
/// this stream does not ask.
pub async fn accept(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>> {
    let (stream, taken, secrets) = agree(acceptor, stream).await?;
    put_tls_above(&stream)?;
    for (direction, (record, secrets)) in [(Direction::Sent, secrets.tx), (Direction::Received, secrets.rx)] {
        let (cipher, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (TlsCipher::Aes128Gcm, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (TlsCipher::Aes256Gcm, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (TlsCipher::ChaCha20Poly1305, key, iv),
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        let iv = iv.as_ref().try_into().map_err(io::Error::other)?;
        give_tls_key(&stream, direction, cipher, key.as_ref(), iv, record)?;
    }
    let (read, write) = stream.into_split();
    Ok(tokio::io::join(AsyncReadExt::chain(Cursor::new(taken), read), write))
}

/// Runs the TLS handshake. Returns the stream, the decrypted data that was already read, and the keys. The decrypted
/// data is from at most one record after the handshake. Later records are still in the socket.
async fn agree(acceptor: &TlsAcceptor, stream: TcpStream) -> io::Result<(TcpStream, Vec<u8>, ExtractedSecrets)> {
    let (read, write) = stream.into_split();
    let read = ByRecord { stream: read, header: Vec::with_capacity(HEADER_BYTES), left_bytes: 0 };
    let (stream, mut connection) = acceptor.accept(tokio::io::join(read, write)).await?.into_inner();
    let (mut read, write) = stream.into_inner();
    // The kernel can take over only at the beginning of a record. So the rest of a partly read record is read here.
    while read.left_bytes > 0 || !read.header.is_empty() {
        let mut bytes = [0; 4096];
        let count = read.read(&mut bytes).await?;
        let mut rest = &bytes[..count];
        if rest.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while !rest.is_empty() {
            connection.read_tls(&mut rest)?;
            connection.process_new_packets().map_err(io::Error::other)?;
        }
    }
    let taken_bytes = connection.process_new_packets().map_err(io::Error::other)?.plaintext_bytes_to_read();
    let mut taken = vec![0; taken_bytes];
    connection.reader().read_exact(&mut taken)?;
    let stream = read.stream.reunite(write).map_err(io::Error::other)?;
    Ok((stream, taken, connection.dangerous_extract_secrets().map_err(io::Error::other)?))
}

/// Size of the header of a TLS record in bytes: a type, a version, and the length of the rest.
const HEADER_BYTES: usize = 5;

/// A reader that never reads beyond the end of the current TLS record. So at the end of the handshake, at most the
/// beginning of one further record has been read.
struct ByRecord {
    stream: OwnedReadHalf,
    /// The bytes of the current record's header that were read so far.
    header: Vec<u8>,
    /// Number of bytes of the current record that follow its header and are still to be read. 0 while the header is
    /// incomplete.
    left_bytes: usize,
}

impl AsyncRead for ByRecord {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context, into: &mut ReadBuf) -> Poll<io::Result<()>> {
        let is_in_header = self.left_bytes == 0;
        let most = if is_in_header { HEADER_BYTES - self.header.len() } else { self.left_bytes };
        let most = most.min(into.remaining());
        let mut read = ReadBuf::new(into.initialize_unfilled_to(most));
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
        let read = read.filled();
        let count = read.len();
        if is_in_header {
            self.header.extend(read);
            if let [_, _, _, high, low] = self.header[..] {
                self.left_bytes = u16::from_be_bytes([high, low]).into();
                self.header.clear();
            }
        } else {
            self.left_bytes -= count;
        }
        into.advance(count);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio_rustls::rustls::ClientConnection;

    use super::super::tls::serving;
    use super::super::{Protocol, TlsVersion, trusting_ours};
    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n";
    /// Size of a record with [`REQUEST`], including the byte for its type and the authentication tag.
    const RECORD_BYTES: usize = HEADER_BYTES + REQUEST.len() + 1 + 16;

    /// A client may send requests together with the end of the handshake, and a part of a request may arrive later.
    /// Each record must either be decrypted completely by rustls, or be left to the kernel. The kernel must continue
    /// the count of records where rustls stopped.
    #[test]
    fn what_follows_the_handshake_is_left_to_the_kernel() {
        for later_bytes in [0, RECORD_BYTES * 3 - 2, RECORD_BYTES * 3 - 10, RECORD_BYTES * 2] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = listener.local_addr().unwrap();
            let config = trusting_ours(&[TlsVersion::V1_3]).unwrap().asking_for(Protocol::Http1);
            let mut client = ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
            let client = std::thread::spawn(move || {
                let mut stream = std::net::TcpStream::connect(address).unwrap();
                client.write_tls(&mut stream).unwrap();
                while client.is_handshaking() {
                    client.read_tls(&mut stream).unwrap();
                    client.process_new_packets().unwrap();
                }
                for _ in 0..3 {
                    client.writer().write_all(REQUEST).unwrap();
                }
                let mut last = Vec::new();
                while client.wants_write() {
                    client.write_tls(&mut last).unwrap();
                }
                let later = last.split_off(last.len() - later_bytes);
                stream.write_all(&last).unwrap();
                // If the sleep is too short, the test still passes, but it covers less.
                std::thread::sleep(std::time::Duration::from_millis(20));
                stream.write_all(&later).unwrap();
                stream
            });
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (stream, _) = listener.accept().unwrap();
                stream.set_nonblocking(true).unwrap();
                let acceptor = serving(&[TlsVersion::V1_3]).unwrap();
                let (stream, taken, secrets) = agree(&acceptor, TcpStream::from_std(stream).unwrap()).await.unwrap();
                let _client = client.join().unwrap();
                let mut left = [0; 1_000];
                let bytes = stream.into_std().unwrap().peek(&mut left).unwrap();
                let left: Vec<_> = left[..bytes].chunks(RECORD_BYTES).map(|record| (record[0], record.len())).collect();
                assert!(!left.is_empty() && left.iter().all(|record| *record == (23, RECORD_BYTES)), "{left:?}");
                assert_eq!(taken, REQUEST.repeat(3 - left.len()));
                assert_eq!(secrets.rx.0, 3 - left.len() as u64);
            });
        }
    }
}
