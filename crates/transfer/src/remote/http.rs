//! Downloads from any server of HTTP: in ranges where it has them, and from front to back where it has none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use hyper::header::{
    AUTHORIZATION, CONTENT_RANGE, HeaderName, HeaderValue, IF_MATCH, IF_UNMODIFIED_SINCE, LOCATION, RANGE,
};
use hyper::{Method, Request, Uri};

use super::address::{Address, shown};
use super::client::{Answer, Client};
use super::connect::{Place, fatal};
use super::refusal::{Asked, refused};
use super::site::{meta, same};
use crate::{Attempt, Block, Failure, Filling, Integrity, Kind, Limits, Meta, Pieces, PutOptions, Store, Upload};

/// How often an address may lead to another.
const REDIRECTS: usize = 10;

/// One address.
pub struct Web {
    client: Client,
    address: Address,
    shown: String,
    /// Where the address led to: asked directly from then on.
    led_to: Mutex<Option<String>>,
    whole_only: AtomicBool,
    /// An answer that is read as it comes, where there are no ranges.
    open: tokio::sync::Mutex<Option<Open>>,
}

struct Open {
    answer: Answer,
    at: u64,
    /// What was read and not asked for yet.
    rest: Bytes,
}

impl Web {
    pub fn new(address: Address, client: Client) -> Result<Self, Failure> {
        let shown = shown(&address.base);
        Ok(Self {
            client,
            address,
            shown,
            led_to: Mutex::default(),
            whole_only: AtomicBool::new(false),
            open: tokio::sync::Mutex::default(),
        })
    }

    fn failure(&self, kind: Kind, said: &str) -> Failure {
        Failure { kind, said: format!("{}: {said}", self.shown) }
    }

    /// Asks by GET, and goes where that leads. HEAD is what servers are wrong about, and what no signed address allows.
    async fn ask(&self, headers: &[(HeaderName, String)], seen: &mut Attempt) -> Result<Answer, Failure> {
        let led_to = self.led_to.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut address = led_to.unwrap_or_else(|| self.address.whole());
        let first = self.place(&self.address.whole())?;
        for _ in 0..REDIRECTS {
            let uri: Uri = address.parse().map_err(|_| self.failure(Kind::Fatal, "it leads to no address"))?;
            let mut request = Request::new(Bytes::new());
            for (name, value) in headers {
                let value =
                    HeaderValue::try_from(value).map_err(|_| self.failure(Kind::Fatal, "its ETag can't be sent"))?;
                request.headers_mut().insert(name, value);
            }
            // Nobody else is told who we are.
            if let Some(user) = self.address.user.clone().filter(|_| self.place(&address).is_ok_and(|at| at == first)) {
                request.headers_mut().insert(AUTHORIZATION, user);
            }
            *request.uri_mut() = uri;
            let answer = self.client.send(request, false, seen).await;
            let answer = answer.map_err(|failure| self.failure(failure.kind, &failure.said))?;
            if !matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                *self.led_to.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(address).filter(|address| *address != self.address.whole() && answer.status.is_success());
                return Ok(answer);
            }
            let next = answer.header(LOCATION.as_str()).and_then(|location| Address::joined(&address, location));
            let next = next.filter(|next| !(address.starts_with("https:") && next.starts_with("http:")));
            address = next.ok_or_else(|| self.failure(Kind::Fatal, "it leads to no address that can be trusted"))?;
        }
        Err(self.failure(Kind::Fatal, "it leads on and on to other addresses"))
    }

    fn place(&self, address: &str) -> Result<Place, Failure> {
        Place::of(&address.parse().map_err(|_| self.failure(Kind::Fatal, "it leads to no address"))?)
    }

    /// What an answer that is no success means. An address that it led to may have expired: the next try begins anew.
    async fn refused(&self, answer: Answer, seen: &mut Attempt) -> Failure {
        let has_any = self.address.user.is_some() || self.address.query.is_some();
        let asked = Asked {
            method: &Method::GET,
            shown: &self.shown,
            credentials: has_any.then_some("the user, the password or the signature in the address"),
            once: false,
        };
        let led = self.led_to.lock().unwrap_or_else(PoisonError::into_inner).take().is_some();
        let failure = refused(answer, &asked, seen).await;
        let expired = led && matches!(failure.kind, Kind::Denied | Kind::Missing);
        if expired { Failure { kind: Kind::Transient(None), ..failure } } else { failure }
    }

    /// The bytes of a range from an answer that is read once, from front to back. One who asks in order loses nothing.
    async fn in_turn(&self, of: &Meta, mut into: Filling, seen: &mut Attempt) -> Result<Filling, Failure> {
        let range = into.range();
        let mut turn = self.open.lock().await;
        let mut open = match turn.take().filter(|open| open.at <= range.start) {
            Some(open) => open,
            None => {
                let answer = self.ask(&conditions(of), seen).await?;
                if answer.status != 200 {
                    return Err(self.refused(answer, seen).await);
                }
                same(of, &answer).map_err(|failure| self.failure(failure.kind, &failure.said))?;
                Open { answer, at: 0, rest: Bytes::new() }
            }
        };
        while open.at < range.end {
            if open.rest.is_empty() {
                let next =
                    open.answer.chunk(seen).await.map_err(|failure| self.failure(failure.kind, &failure.said))?;
                open.rest = next.ok_or_else(|| self.failure(Kind::Changed, "it is shorter than the server said"))?;
            }
            let skipped = range.start.saturating_sub(open.at).min(open.rest.len() as u64);
            let wanted = (range.end - open.at).min(open.rest.len() as u64);
            let piece = open.rest.split_to(usize::try_from(wanted).unwrap_or(open.rest.len()));
            open.at += piece.len() as u64;
            // What is before the range is not wanted, and behind it nothing was taken: there is room.
            into.add(&piece[usize::try_from(skipped).unwrap_or(piece.len()).min(piece.len())..])?;
        }
        if open.at < of.bytes {
            *turn = Some(open);
        } else {
            // To its end, so that the connection is used again, and to see that there is no more.
            let more = open.rest.len() as u64 + open.answer.bytes(1, seen).await.map_or(1, |rest| rest.len() as u64);
            if more > 0 {
                return Err(self.failure(Kind::Changed, "it is longer than the server said"));
            }
        }
        Ok(into)
    }
}

/// An answer that is read to its end: the last chunk, or the closing of the connection.
struct AsTheyCome {
    answer: Answer,
    shown: String,
}

#[async_trait]
impl Pieces for AsTheyCome {
    async fn next(&mut self, seen: &mut Attempt) -> Result<Option<Bytes>, Failure> {
        let next = self.answer.chunk(seen).await;
        next.map_err(|Failure { kind, said }| Failure { kind, said: format!("{}: {said}", self.shown) })
    }
}

/// That it be the object it was. A weak ETag promises too little for this; `same` compares it.
fn conditions(of: &Meta) -> Vec<(HeaderName, String)> {
    match (&of.etag, of.modified) {
        (Some(etag), _) if !etag.starts_with("W/") => vec![(IF_MATCH, etag.clone())],
        (_, Some(modified)) => {
            let modified = chrono::DateTime::<chrono::Utc>::from(modified);
            vec![(IF_UNMODIFIED_SINCE, modified.format("%a, %d %b %Y %H:%M:%S GMT").to_string())]
        }
        _ => Vec::new(),
    }
}

/// The size in `bytes 0-0/1234`, or in `bytes */0`.
fn size_in(content_range: &str) -> Option<u64> {
    content_range.strip_prefix("bytes ")?.rsplit_once('/')?.1.parse().ok()
}

#[async_trait]
impl Store for Web {
    fn limits(&self) -> Limits {
        let none = 0;
        Limits {
            min_block_bytes: 1,
            max_block_bytes: u64::MAX,
            max_blocks: none,
            max_put_bytes: none as u64,
            integrity: Integrity::ReadBack,
        }
    }

    /// Asks for the first byte: the answer tells size and identity, and whether there are ranges.
    async fn head(&self, name: &str, seen: &mut Attempt) -> Result<Option<Meta>, Failure> {
        let mut answer = self.ask(&[(RANGE, "bytes=0-0".into())], seen).await?;
        let ranges = answer.header(CONTENT_RANGE.as_str()).and_then(size_in);
        let bytes = match answer.status.as_u16() {
            206 => ranges,
            // An empty file has no first byte.
            416 if ranges == Some(0) => ranges,
            200 => answer.header("content-length").and_then(|bytes| bytes.parse().ok()),
            404 | 410 => return Ok(None),
            _ => return Err(self.refused(answer, seen).await),
        };
        let bytes = bytes.ok_or_else(|| self.failure(Kind::Unsized, "the server doesn't say how long it is"))?;
        self.whole_only.store(answer.status == 200, Ordering::Relaxed);
        let meta = meta(name, bytes, &answer);
        if answer.status != 200 {
            // Small, and the connection can be used again.
            answer.bytes(1 << 16, seen).await.map_err(|failure| self.failure(failure.kind, &failure.said))?;
        }
        Ok(Some(meta))
    }

    async fn get_into(&self, of: &Meta, into: Filling, seen: &mut Attempt) -> Result<Filling, Failure> {
        let range = into.range();
        if range.is_empty() || range.end > of.bytes {
            return Err(self.failure(Kind::Fatal, "there is no such range in it"));
        }
        if self.in_order(of) {
            return self.in_turn(of, into, seen).await;
        }
        let mut headers = conditions(of);
        headers.push((RANGE, format!("bytes={}-{}", range.start, range.end - 1)));
        let mut answer = self.ask(&headers, seen).await?;
        match answer.status.as_u16() {
            206 => {
                same(of, &answer).map_err(|failure| self.failure(failure.kind, &failure.said))?;
                let said = answer.header(CONTENT_RANGE.as_str()).unwrap_or_default();
                if !said.starts_with(&format!("bytes {}-{}/", range.start, range.end - 1)) {
                    return Err(self.failure(Kind::Corrupted, "the server sent another range than it was asked for"));
                }
                if size_in(said).is_some_and(|bytes| bytes != of.bytes) {
                    return Err(self.failure(Kind::Changed, "its size has changed since it was looked at"));
                }
                answer.fill(into, seen).await.map_err(|failure| self.failure(failure.kind, &failure.said))
            }
            // It had ranges a moment ago, and has none for this: as some do behind several machines.
            200 => {
                self.whole_only.store(true, Ordering::Relaxed);
                Err(self.failure(Kind::Transient(None), "the server has no ranges any more: it is read in order now"))
            }
            _ => Err(self.refused(answer, seen).await),
        }
    }

    async fn get_pieces(&self, name: &str, seen: &mut Attempt) -> Result<(Meta, Box<dyn Pieces>), Failure> {
        let answer = self.ask(&[], seen).await?;
        if answer.status != 200 {
            return Err(self.refused(answer, seen).await);
        }
        let meta = meta(name, 0, &answer);
        Ok((meta, Box::new(AsTheyCome { answer, shown: self.shown.clone() })))
    }

    fn in_order(&self, _of: &Meta) -> bool {
        self.whole_only.load(Ordering::Relaxed)
    }

    async fn put(&self, _: &str, _: Block, _: &PutOptions, _: &mut Attempt) -> Result<Meta, Failure> {
        Err(self.read_only())
    }

    async fn begin(&self, _: &str, _: &PutOptions, _: &mut Attempt) -> Result<Upload, Failure> {
        Err(self.read_only())
    }

    async fn put_block(&self, _: &Upload, _: usize, _: Block, _: &mut Attempt) -> Result<String, Failure> {
        Err(self.read_only())
    }

    async fn commit(&self, _: &Upload, _: &[String], _: u64, _: &PutOptions, _: &mut Attempt) -> Result<Meta, Failure> {
        Err(self.read_only())
    }

    async fn abort(&self, _: &Upload, _: &mut Attempt) -> Result<(), Failure> {
        Err(self.read_only())
    }

    async fn list(&self, _: &str, _: &mut Attempt) -> Result<Vec<Meta>, Failure> {
        Err(self.read_only())
    }
}

impl Web {
    fn read_only(&self) -> Failure {
        let Failure { kind, said } = fatal("HTTP can only be read from, one address at a time".into());
        self.failure(kind, &said)
    }
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Web").field("shown", &self.shown).finish_non_exhaustive()
    }
}
