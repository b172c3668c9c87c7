//! The fault check: a proxy flips one bit in each part of a request and of an answer, and the check finds out
//! whether the store or the client notices.
//!
//! The proxy must read the requests, so the check needs a store without TLS. With TLS, every flipped bit breaks the
//! connection.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ascertain_engine::experiment::TargetError;
use ascertain_engine::finding::{FaultNoticed, FaultPlace};
use ascertain_experiments_networks::links::failed;
use ascertain_transfer::{Attempt, Checksum, ObjectMeta, Store, crc64};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::budget::Usage;
use super::objects::{Content, Objects};

/// A part of a message in which a bit is flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessagePart {
    /// The last character of the path of a request, which is the end of the key.
    Key,
    /// The last digit of the status of an answer.
    Status,
    /// The last character of the value of the first header whose name has this beginning.
    Header(&'static str),
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fault {
    is_answer: bool,
    part: MessagePart,
}

impl MessagePart {
    /// Returns the time after which a request with a flipped bit in this part counts as noticed by the client.
    fn limit(self) -> Duration {
        if self == Self::Header("content-length") { WRONG_LENGTH_TIMEOUT } else { REQUEST_TIMEOUT }
    }
}

/// The places in an upload: the name, `true` for a place in the answer, and the part of the message.
const UPLOAD: [(&str, bool, MessagePart); 6] = [
    ("upload: key", false, MessagePart::Key),
    ("upload: length", false, MessagePart::Header("content-length")),
    ("upload: signature", false, MessagePart::Header("authorization")),
    ("upload: body", false, MessagePart::Body),
    ("upload: status of the answer", true, MessagePart::Status),
    ("upload: ETag of the answer", true, MessagePart::Header("etag")),
];
/// The places in a download, as in [`UPLOAD`]. The answer contains the checksum that the store keeps, if there is one.
const DOWNLOAD: [(&str, bool, MessagePart); 4] = [
    ("download: status", true, MessagePart::Status),
    ("download: length", true, MessagePart::Header("content-length")),
    ("download: ETag", true, MessagePart::Header("etag")),
    ("download: body", true, MessagePart::Body),
];

/// Time after which a request counts as noticed by the client.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// The same time for a request with a wrong length. One side then waits for bytes that never come.
const WRONG_LENGTH_TIMEOUT: Duration = Duration::from_secs(3);
/// Size of the objects in bytes.
pub const CONTENT_BYTES: u64 = 10_000;

/// Forwards connections to a store, and flips a bit of the next message that a fault applies to. Dropping the proxy
/// ends all of its connections.
pub struct FaultProxy {
    pub address: SocketAddr,
    fault: Arc<Mutex<Option<Fault>>>,
    _connections: JoinSet<()>,
}

impl FaultProxy {
    /// Starts a proxy on the current runtime.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let (address, fault) = (listener.local_addr()?, Arc::new(Mutex::new(None)));
        let (of_task, mut connections) = (fault.clone(), JoinSet::new());
        connections.spawn(async move {
            let mut forwarding = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let fault = of_task.clone();
                // A failure closes the connection, which the client notices.
                forwarding.spawn(async move { forward(near, TcpStream::connect(target).await?, &fault).await });
            }
        });
        Ok(Self { address, fault, _connections: connections })
    }

    /// Returns the requests and bytes that a check uses. If the answer to an upload was lost, the check reads the
    /// object, and deletes everything with the upload's two keys.
    pub fn usage() -> Usage {
        let uploads = UPLOAD.len() as u64 + 1;
        let reads = uploads + DOWNLOAD.len() as u64;
        Usage {
            reads,
            writes: 5 * uploads,
            deletes: 2 * uploads,
            bytes_read: reads * CONTENT_BYTES,
            bytes_written: uploads * CONTENT_BYTES,
        }
    }

    fn arm(&self, fault: Fault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }
}

/// Forwards requests and answers in turn.
async fn forward(near: TcpStream, far: TcpStream, fault: &Mutex<Option<Fault>>) -> io::Result<()> {
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (mut near, mut far) = (BufStream::new(near), BufStream::new(far));
    while let Some(mut request) = Message::read(&mut near, false).await? {
        let is_head = request.head.starts_with(b"HEAD");
        request.flip(fault, false);
        request.write(&mut far).await?;
        let Some(mut answer) = Message::read(&mut far, is_head).await? else { break };
        answer.flip(fault, true);
        answer.write(&mut near).await?;
    }
    Ok(())
}

struct Message {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Message {
    /// Reads a message with a `Content-Length`, or without a body. `None` at the end of the connection.
    async fn read(from: &mut BufStream<TcpStream>, has_no_body: bool) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        loop {
            let start = head.len();
            if from.read_until(b'\n', &mut head).await? == 0 {
                return Ok(None);
            }
            if head[start..] == *b"\r\n" {
                break;
            }
        }
        let length =
            header(&head, "content-length").and_then(|range| std::str::from_utf8(&head[range]).ok()?.parse().ok());
        let mut body = vec![0; if has_no_body { 0 } else { length.unwrap_or(0) }];
        from.read_exact(&mut body).await?;
        Ok(Some(Self { head, body }))
    }

    async fn write(&self, to: &mut BufStream<TcpStream>) -> io::Result<()> {
        to.write_all(&self.head).await?;
        to.write_all(&self.body).await?;
        to.flush().await
    }

    /// Flips the lowest bit of the byte that the armed fault names, if it applies to this message.
    fn flip(&mut self, fault: &Mutex<Option<Fault>>, is_answer: bool) {
        let mut armed = fault.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Fault { part, .. }) = armed.filter(|fault| fault.is_answer == is_answer) else { return };
        let line_end = self.head.iter().position(|byte| *byte == b'\r').unwrap_or(0);
        let place = match part {
            MessagePart::Key => self.head[..line_end].iter().rposition(|byte| *byte == b' ').map(|space| space - 1),
            MessagePart::Status => (line_end > 11).then_some(11),
            MessagePart::Header(name) => header(&self.head, name).map(|range| {
                // The last character of an ETag is a quotation mark.
                range.end - if self.head[range.end - 1] == b'"' { 2 } else { 1 }
            }),
            MessagePart::Body => None,
        };
        match place {
            Some(place) => self.head[place] ^= 1,
            None if part == MessagePart::Body && !self.body.is_empty() => {
                let middle = self.body.len() / 2;
                self.body[middle] ^= 1;
            }
            None => return,
        }
        *armed = None;
    }
}

/// Returns the place of the value of a header.
fn header(head: &[u8], name: &str) -> Option<std::ops::Range<usize>> {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let start = text.find(&format!("\r\n{name}:"))? + name.len() + 3;
    let start = start + text[start..].len() - text[start..].trim_start_matches(' ').len();
    let end = start + text[start..].find("\r\n")?;
    (start < end).then_some(start..end)
}

/// Flips a bit in each place of an upload with this checksum, and in each place of a download. `through` is the store
/// behind the proxy. `objects` writes to the same store without the proxy.
pub async fn check(
    objects: &Objects,
    through: &dyn Store,
    proxy: &FaultProxy,
    (checksum, content): (Checksum, &Content),
) -> Result<Vec<FaultPlace>, TargetError> {
    let direct = objects.store.store.clone();
    let mut places = Vec::new();
    for (place, is_answer, part) in UPLOAD {
        // A flipped bit at the end of the first key makes the second one, so both are in the journal.
        let keys = objects.flippable().map_err(failed)?;
        let body = content.whole.bytes.clone();
        proxy.arm(Fault { is_answer, part });
        let mut attempt = Attempt::default();
        let put = timeout(part.limit(), through.put_with_checksum(&keys[0], body, checksum, &mut attempt)).await;
        let noticed = match put {
            Ok(Err(_)) if attempt.status.is_some_and(|status| status >= 400) => FaultNoticed::ByStore,
            Ok(Err(_)) | Err(_) => FaultNoticed::ByClient,
            Ok(Ok(())) => match read(&*direct, &keys[0], content).await {
                Some(true) => FaultNoticed::Harmless,
                _ => FaultNoticed::Unnoticed,
            },
        };
        places.push(FaultPlace { place: place.into(), noticed });
        for key in &keys {
            objects.remove(key, false).await.map_err(failed)?;
        }
    }
    let key = objects.keys(1, false).map_err(failed)?.remove(0);
    let mut attempt = Attempt::default();
    direct.put_with_checksum(&key, content.whole.bytes.clone(), checksum, &mut attempt).await.map_err(failed)?;
    for (place, is_answer, part) in DOWNLOAD {
        proxy.arm(Fault { is_answer, part });
        let of = ObjectMeta { name: key.clone(), bytes: content.bytes(), ..ObjectMeta::default() };
        let noticed = match timeout(part.limit(), through.get_checked(&of, &mut Attempt::default())).await {
            Ok(Ok(sum)) if sum == content.whole.crc64 => FaultNoticed::Harmless,
            Ok(Ok(_)) => FaultNoticed::Unnoticed,
            Ok(Err(_)) | Err(_) => FaultNoticed::ByClient,
        };
        places.push(FaultPlace { place: place.into(), noticed });
    }
    objects.remove(&key, false).await.map_err(failed)?;
    Ok(places)
}

/// Returns whether the object has the content; `None` if it cannot be read.
async fn read(store: &dyn Store, key: &str, content: &Content) -> Option<bool> {
    let mut bytes = Vec::new();
    store.read_into(key, None, content.bytes() * 2, &mut bytes, &mut Attempt::default()).await.ok()?;
    Some(crc64(&bytes) == content.whole.crc64)
}
