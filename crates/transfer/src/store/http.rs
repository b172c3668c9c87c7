//! Downloads from HTTP servers. Objects are read in ranges if the server supports this, or else from front to back.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use hyper::header::{
    AUTHORIZATION, CONTENT_RANGE, HeaderName, HeaderValue, IF_MATCH, IF_UNMODIFIED_SINCE, LOCATION, RANGE,
};
use hyper::{Method, Request, Uri};

use super::Result;
use super::address::{Address, shown};
use super::connections::Endpoint;
use super::transport::{RequestInfo, Response, Transport};
use crate::{Attempt, ByteStream, Failure, Kind, Limits, ObjectMeta, PartBody, PutOptions, RangeWriter, Store, Upload};

/// Maximum number of redirects that one request follows.
const MAX_REDIRECTS: usize = 10;

/// A store with a single object: the file at an HTTP address.
pub struct WebFile {
    transport: Transport,
    address: Address,
    shown: String,
    /// The address to which the latest request was redirected. Later requests go there directly.
    redirect: Mutex<Option<String>>,
    whole_only: AtomicBool,
    /// An open answer that is being read from front to back, because the server does not support ranges.
    sequential: tokio::sync::Mutex<Option<SequentialRead>>,
}

struct SequentialRead {
    response: Response,
    offset: u64,
    /// Bytes that have arrived already, but belong to the range that is requested next.
    rest: Bytes,
}

impl WebFile {
    pub fn new(address: Address, transport: Transport) -> Self {
        let (shown, whole_only) = (shown(&address.base), AtomicBool::new(false));
        Self { transport, address, shown, redirect: Mutex::default(), whole_only, sequential: Default::default() }
    }

    fn failure(&self, kind: Kind, message: &str) -> Failure {
        Failure::new(kind, message).about(&self.shown)
    }

    fn redirect(&self) -> MutexGuard<'_, Option<String>> {
        self.redirect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a GET request with `headers`, follows redirects, and returns the head of the answer. A HEAD request is not
    /// possible: many servers answer it wrongly, and signed addresses do not permit it.
    async fn get_head(&self, headers: &[(HeaderName, String)], attempt: &mut Attempt) -> Result<Response> {
        let mut address = self.redirect().clone().unwrap_or_else(|| self.address.whole());
        let first = self.endpoint(&self.address.whole())?;
        for _ in 0..MAX_REDIRECTS {
            let uri: Uri =
                address.parse().map_err(|_| self.failure(Kind::Fatal, "the server redirects to an invalid address"))?;
            let mut request = Request::new(Bytes::new());
            for (name, value) in headers {
                let value = HeaderValue::try_from(value);
                let value =
                    value.map_err(|_| self.failure(Kind::Fatal, "the ETag contains characters that can't be sent"))?;
                request.headers_mut().insert(name, value);
            }
            // User and password are sent only to the server that the address names, not to the target of a redirect.
            if let Some(user) =
                self.address.user.clone().filter(|_| self.endpoint(&address).is_ok_and(|at| at == first))
            {
                request.headers_mut().insert(AUTHORIZATION, user);
            }
            *request.uri_mut() = uri;
            let has_secret = self.address.user.is_some() || self.address.query.is_some();
            let credentials = has_secret.then_some("the user, the password or the signature in the address");
            let (method, subject) = (Method::GET, self.shown.clone());
            let info = RequestInfo { method, subject, credentials, ..RequestInfo::default() };
            let response = self.transport.send(request, info, attempt).await?;
            if !matches!(response.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                let is_redirect = address != self.address.whole() && response.status.is_success();
                *self.redirect() = is_redirect.then_some(address);
                return Ok(response);
            }
            let next = response.header(LOCATION.as_str()).and_then(|location| Address::joined(&address, location));
            let next = next.filter(|next| !(address.starts_with("https:") && next.starts_with("http:")));
            address = next
                .ok_or_else(|| self.failure(Kind::Fatal, "the server redirects to an address that is not trusted"))?;
        }
        Err(self.failure(Kind::Fatal, "the server redirects too often"))
    }

    fn endpoint(&self, address: &str) -> Result<Endpoint> {
        Endpoint::from_uri(
            &address.parse().map_err(|_| self.failure(Kind::Fatal, "the server redirects to an invalid address"))?,
        )
    }

    /// Explains a refusal. If the request was redirected, the redirect's target may have expired. So the next attempt
    /// starts at the original address.
    async fn refusal(&self, response: Response, attempt: &mut Attempt) -> Failure {
        let was_redirected = self.redirect().take().is_some();
        let failure = response.refusal(attempt).await;
        let has_expired = was_redirected && matches!(failure.kind, Kind::Denied | Kind::Missing);
        if has_expired { Failure { kind: Kind::Transient(None), ..failure } } else { failure }
    }

    /// Reads a range from an open answer that contains the whole object. If ranges are requested in order, one answer
    /// provides all of them.
    async fn read_sequentially(
        &self,
        of: &ObjectMeta,
        mut into: RangeWriter,
        attempt: &mut Attempt,
    ) -> Result<RangeWriter> {
        let range = into.range();
        let mut kept = self.sequential.lock().await;
        let mut read = match kept.take().filter(|read| read.offset <= range.start) {
            Some(read) => read,
            None => {
                let response = self.get_head(&conditions(of), attempt).await?;
                if response.status != 200 {
                    return Err(self.refusal(response, attempt).await);
                }
                response.check_unchanged(of)?;
                SequentialRead { response, offset: 0, rest: Bytes::new() }
            }
        };
        while read.offset < range.end {
            if read.rest.is_empty() {
                let next = read.response.chunk(attempt).await?;
                // The answer may belong to an earlier attempt, and then records its progress there.
                attempt.record_progress();
                read.rest =
                    next.ok_or_else(|| self.failure(Kind::Changed, "the object is shorter than its announced length"))?;
            }
            let skipped = range.start.saturating_sub(read.offset).min(read.rest.len() as u64);
            let wanted = (range.end - read.offset).min(read.rest.len() as u64);
            let piece = read.rest.split_to(usize::try_from(wanted).unwrap_or(read.rest.len()));
            read.offset += piece.len() as u64;
            // Bytes before the range are dropped. The piece contains no bytes after the range.
            into.add(&piece[usize::try_from(skipped).unwrap_or(piece.len()).min(piece.len())..])?;
        }
        if read.offset < of.bytes {
            *kept = Some(read);
        } else {
            // The rest of the answer is read, so that the connection can be reused and additional bytes are detected.
            let more =
                read.rest.len() as u64 + read.response.bytes(1, attempt).await.map_or(1, |rest| rest.len() as u64);
            if more > 0 {
                return Err(self.failure(Kind::Changed, "the object is longer than its announced length"));
            }
        }
        Ok(into)
    }
}

#[async_trait]
impl ByteStream for Response {
    async fn next(&mut self, attempt: &mut Attempt) -> Result<Option<Bytes>> {
        self.chunk(attempt).await
    }
}

/// Returns headers that make the server refuse the request if the object is no longer as `of` describes it. `If-Match`
/// does not support weak ETags, so [`Response::check_unchanged`] compares these later.
fn conditions(of: &ObjectMeta) -> Vec<(HeaderName, String)> {
    match (&of.etag, of.modified) {
        (Some(etag), _) if !etag.starts_with("W/") => vec![(IF_MATCH, etag.clone())],
        (_, Some(modified)) => {
            let modified = chrono::DateTime::<chrono::Utc>::from(modified);
            vec![(IF_UNMODIFIED_SINCE, modified.format("%a, %d %b %Y %H:%M:%S GMT").to_string())]
        }
        _ => Vec::new(),
    }
}

/// Returns the size of the object in a header `Content-Range`, such as `bytes 0-0/1234` or `bytes */0`.
fn size_in(content_range: &str) -> Option<u64> {
    content_range.strip_prefix("bytes ")?.rsplit_once('/')?.1.parse().ok()
}

#[async_trait]
impl Store for WebFile {
    fn limits(&self) -> Limits {
        Limits { min_part_bytes: 1, max_part_bytes: u64::MAX, max_parts: 0, max_put_bytes: 0 }
    }

    /// Describes the object by a request for its first byte. The answer contains the size and the ETag. It also shows
    /// whether the server supports ranges.
    async fn head(&self, name: &str, attempt: &mut Attempt) -> Result<Option<ObjectMeta>> {
        let mut response = self.get_head(&[(RANGE, "bytes=0-0".into())], attempt).await?;
        let ranges = response.header(CONTENT_RANGE.as_str()).and_then(size_in);
        let bytes = match response.status.as_u16() {
            206 => ranges,
            // The server refuses the range if the file is empty, because there is no first byte.
            416 if ranges == Some(0) => ranges,
            200 => response.header("content-length").and_then(|bytes| bytes.parse().ok()),
            404 | 410 => return Ok(None),
            _ => return Err(self.refusal(response, attempt).await),
        };
        let bytes =
            bytes.ok_or_else(|| self.failure(Kind::Unsized, "the server does not send the length of the object"))?;
        self.whole_only.store(response.status == 200, Ordering::Relaxed);
        let meta = response.meta(name, bytes);
        if response.status != 200 {
            // The body is short. It is read so that the connection can be reused.
            response.bytes(1 << 16, attempt).await?;
        }
        Ok(Some(meta))
    }

    async fn get_range(&self, of: &ObjectMeta, into: RangeWriter, attempt: &mut Attempt) -> Result<RangeWriter> {
        let range = into.range();
        if range.is_empty() || range.end > of.bytes {
            return Err(self.failure(Kind::Fatal, "the object does not have the requested range"));
        }
        if self.is_sequential(of) {
            return self.read_sequentially(of, into, attempt).await;
        }
        let mut headers = conditions(of);
        headers.push((RANGE, format!("bytes={}-{}", range.start, range.end - 1)));
        let mut response = self.get_head(&headers, attempt).await?;
        match response.status.as_u16() {
            206 => {
                response.check_unchanged(of)?;
                let answered = response.header(CONTENT_RANGE.as_str()).unwrap_or_default();
                if !answered.starts_with(&format!("bytes {}-{}/", range.start, range.end - 1)) {
                    return Err(self.failure(Kind::Corrupted, "the server sent another range than the requested one"));
                }
                if size_in(answered).is_some_and(|bytes| bytes != of.bytes) {
                    return Err(
                        self.failure(Kind::Changed, "the size of the object has changed since it was first read")
                    );
                }
                response.fill(into, attempt).await
            }
            // The server supported ranges before, but this answer is the whole object. The server may consist of
            // several machines, some of which do not support ranges.
            200 => {
                self.whole_only.store(true, Ordering::Relaxed);
                Err(self.failure(Kind::Transient(None), "the server no longer supports ranges; reading it in order"))
            }
            _ => Err(self.refusal(response, attempt).await),
        }
    }

    fn proxy(&self) -> Result<Option<String>> {
        self.address.base.parse().map_or(Ok(None), |uri| self.transport.proxy(&uri))
    }

    async fn read_into(
        &self,
        _name: &str,
        range: Option<Range<u64>>,
        most: u64,
        into: &mut Vec<u8>,
        attempt: &mut Attempt,
    ) -> Result<()> {
        let headers =
            range.iter().map(|range| (RANGE, format!("bytes={}-{}", range.start, range.end.saturating_sub(1))));
        let mut response = self.get_head(&headers.collect::<Vec<_>>(), attempt).await?;
        if !response.status.is_success() {
            return Err(self.refusal(response, attempt).await);
        }
        response.check_range(range.as_ref())?;
        response.append(most, into, attempt).await
    }

    async fn open_stream(&self, name: &str, attempt: &mut Attempt) -> Result<(ObjectMeta, Box<dyn ByteStream>)> {
        let response = self.get_head(&[], attempt).await?;
        if response.status != 200 {
            return Err(self.refusal(response, attempt).await);
        }
        Ok((response.meta(name, 0), Box::new(response)))
    }

    fn is_sequential(&self, _of: &ObjectMeta) -> bool {
        self.whole_only.load(Ordering::Relaxed)
    }

    async fn put(&self, _: &str, _: PartBody, _: &PutOptions, _: &mut Attempt) -> Result<ObjectMeta> {
        Err(self.read_only())
    }

    async fn start_upload(&self, _: &str, _: &PutOptions, _: &mut Attempt) -> Result<Upload> {
        Err(self.read_only())
    }

    async fn put_part(&self, _: &Upload, _: usize, _: PartBody, _: &mut Attempt) -> Result<String> {
        Err(self.read_only())
    }

    async fn commit(&self, _: &Upload, _: &[String], _: u64, _: &PutOptions, _: &mut Attempt) -> Result<ObjectMeta> {
        Err(self.read_only())
    }

    async fn abort(&self, _: &Upload, _: &mut Attempt) -> Result<()> {
        Err(self.read_only())
    }

    async fn list(&self, _: &str, _: &mut Attempt) -> Result<Vec<ObjectMeta>> {
        Err(self.read_only())
    }
}

impl WebFile {
    fn read_only(&self) -> Failure {
        self.failure(Kind::Fatal, "HTTP servers support only the reading of single files")
    }
}

impl std::fmt::Debug for WebFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebFile").field("shown", &self.shown).finish_non_exhaustive()
    }
}
