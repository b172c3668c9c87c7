//! Where a store is, and requests to it: addressed, signed, sent once, and refused in words.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use hyper::header::{ETAG, HeaderName, HeaderValue, LAST_MODIFIED};
use hyper::{Method, Request, Uri};
use object_store::client::HttpRequestBody;

use super::address::{Address, encoded_name, encoded_query};
use super::client::{ANSWER_BYTES, Answer, Client};
use super::connect::fatal;
use super::keys::Keys;
use super::refusal::{Asked, refused, time};
use crate::{Attempt, Failure, Filling, Kind, Meta};

/// A bucket or a container.
pub struct Site {
    client: Client,
    keys: Keys,
    base: String,
    shown: String,
    credentials: Option<&'static str>,
}

/// What has no answer as stores have them: somebody else's page, of a captive portal or behind a wrong endpoint.
pub const NO_STORE: &str = "what answers is no such store: is the endpoint right?";

/// A list whose pages lead round would have no end.
pub const ROUND: &str = "the pages of its list lead round in a circle";
/// What is said of a list that is not whole and has no next page.
pub const BROKEN_OFF: &str = "its list breaks off and does not say where it goes on";

/// Names in lower case, and what each says.
pub type Headers = Vec<(&'static str, String)>;

/// What is asked of it.
#[derive(Default)]
pub struct Ask<'a> {
    pub method: Method,
    pub name: &'a str,
    pub query: &'a [(&'a str, &'a str)],
    pub headers: Headers,
    pub body: Bytes,
    /// Whether it should be carried out only once, so that a lost answer is [`Kind::Unanswered`].
    pub once: bool,
}

impl Site {
    /// `shown` is what it is called in words, `credentials` where those come from.
    pub fn new(
        client: Client,
        base: &str,
        shown: String,
        keys: Keys,
        credentials: &'static str,
    ) -> Result<Self, Failure> {
        let base = Address::parse(base)?.trimmed().to_string();
        let credentials = (!matches!(keys, Keys::Anonymous)).then_some(credentials);
        Ok(Self { client, keys, base, shown, credentials })
    }

    /// An object, or with an empty name all of it, in words.
    pub fn shown(&self, name: &str) -> String {
        if name.is_empty() { self.shown.clone() } else { format!("{}/{name}", self.shown) }
    }

    /// A failure of this object.
    pub fn failure(&self, name: &str, kind: Kind, said: &str) -> Failure {
        Failure { kind, said: format!("{}: {said}", self.shown(name)) }
    }

    /// Makes connections for requests that come all at once.
    pub async fn connect(&self, connections: usize) {
        if let Ok(uri) = self.base.parse() {
            self.client.connect(&uri, connections).await;
        }
    }

    /// Asks, and takes any answer whatever its status.
    pub async fn any(&self, ask: Ask<'_>, seen: &mut Attempt) -> Result<Answer, Failure> {
        let about = |failure: Failure| self.failure(ask.name, failure.kind, &failure.said);
        let mut address = self.base.clone();
        if !ask.name.is_empty() {
            address = format!("{address}/{}", encoded_name(ask.name).map_err(about)?);
        }
        if !ask.query.is_empty() {
            address = format!("{address}?{}", encoded_query(ask.query));
        }
        let uri: Uri = address.parse().map_err(|_| about(fatal("its name is too long for an address".into())))?;
        let mut request = Request::new(HttpRequestBody::empty());
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = uri;
        for (name, value) in &ask.headers {
            let value = HeaderValue::try_from(value).map_err(|_| about(fatal(format!("`{value}` can't be sent"))))?;
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        if matches!(ask.method, Method::PUT | Method::POST) {
            // Azure's signature is over it.
            request.headers_mut().insert(hyper::header::CONTENT_LENGTH, HeaderValue::from(ask.body.len()));
        }
        self.keys.sign(&mut request).await.map_err(about)?;
        let request = request.map(|_| ask.body);
        self.client.send(request, ask.once, seen).await.map_err(about)
    }

    /// Asks, and takes nothing but success.
    pub async fn call(&self, ask: Ask<'_>, seen: &mut Attempt) -> Result<Answer, Failure> {
        let (method, shown, once) = (ask.method.clone(), self.shown(ask.name), ask.once);
        let answer = self.any(ask, seen).await?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(refused(answer, &self.asked(&method, &shown, once), seen).await)
    }

    pub fn asked<'a>(&self, method: &'a Method, shown: &'a str, once: bool) -> Asked<'a> {
        Asked { method, shown, credentials: self.credentials, once }
    }

    /// Asks, and reads what is answered in words.
    pub async fn text(&self, ask: Ask<'_>, seen: &mut Attempt) -> Result<(Answer, String), Failure> {
        let name = ask.name;
        let mut answer = self.call(ask, seen).await?;
        let body = answer.bytes(ANSWER_BYTES, seen).await;
        let body = body.map_err(|failure| self.failure(name, failure.kind, &failure.said))?;
        let text = String::from_utf8_lossy(&body).into_owned();
        Ok((answer, text))
    }

    /// Takes something away; gone is what it was to be.
    pub async fn delete(
        &self,
        name: &str,
        query: &[(&str, &str)],
        headers: Headers,
        seen: &mut Attempt,
    ) -> Result<(), Failure> {
        let ask = Ask { method: Method::DELETE, name, query, headers, ..Ask::default() };
        match self.text(ask, seen).await {
            Err(failure) if failure.kind != Kind::Missing => Err(failure),
            _ => Ok(()),
        }
    }

    /// What HEAD says of an object; none if there is nothing.
    pub async fn head(&self, ask: Ask<'_>, seen: &mut Attempt) -> Result<Option<(Answer, Meta)>, Failure> {
        let (name, shown) = (ask.name, self.shown(ask.name));
        let mut headers = ask.headers.clone();
        let mut answer = self.any(ask, seen).await?;
        // Its body is empty, but has to be read to its end for the connection to be used again.
        let read = answer.bytes(ANSWER_BYTES, seen).await;
        read.map_err(|failure| self.failure(name, failure.kind, &failure.said))?;
        if answer.status == 404 && answer.header("x-ms-error-code") != Some("ContainerNotFound") {
            return Ok(None);
        }
        if !answer.status.is_success() {
            let mut words = Vec::new();
            // HEAD has no room for words, such as the right region: GET has.
            if answer.status == 400 && answer.header("x-amz-bucket-region").is_none() {
                headers.push(("range", "bytes=0-0".into()));
                if let Ok(mut told) = self.any(Ask { name, headers, ..Ask::default() }, seen).await {
                    words = told.bytes(ANSWER_BYTES, seen).await.map(|bytes| bytes.to_vec()).unwrap_or_default();
                }
            }
            let words = String::from_utf8_lossy(&words);
            return Err(super::refusal::failure(&answer, &words, &self.asked(&Method::HEAD, &shown, false)));
        }
        if answer.header(ETAG.as_str()).is_none() {
            return Err(self.failure(name, Kind::Fatal, NO_STORE));
        }
        let bytes = answer.header("content-length").and_then(|bytes| bytes.parse().ok());
        let bytes = bytes.ok_or_else(|| self.failure(name, Kind::Fatal, "the store doesn't say how long it is"))?;
        let meta = meta(name, bytes, &answer);
        Ok(Some((answer, meta)))
    }

    /// Reads the bytes of a range, if the answer is about them and about this object as it was.
    pub async fn range(
        &self,
        of: &Meta,
        into: Filling,
        headers: Headers,
        seen: &mut Attempt,
    ) -> Result<(Answer, Filling), Failure> {
        let answer = self.ask_range(of, &into.range(), headers, seen).await?;
        self.fill(of, answer, into, seen).await
    }

    /// Requests a range, and returns the answer before its bytes are read.
    pub async fn ask_range(
        &self,
        of: &Meta,
        range: &Range<u64>,
        mut headers: Headers,
        seen: &mut Attempt,
    ) -> Result<Answer, Failure> {
        if range.is_empty() {
            return Err(self.failure(&of.name, Kind::Fatal, "an empty range can't be asked for"));
        }
        headers.push(("range", format!("bytes={}-{}", range.start, range.end - 1)));
        if let Some(etag) = &of.etag {
            headers.push(("if-match", etag.clone()));
        }
        let ask = Ask { name: &of.name, headers, ..Ask::default() };
        let answer = self.call(ask, seen).await?;
        let about = |kind, said: &str| self.failure(&of.name, kind, said);
        same(of, &answer).map_err(|failure| about(failure.kind, &failure.said))?;
        check_range(&answer, range, of.bytes).map_err(|said| about(Kind::Corrupted, said))?;
        Ok(answer)
    }

    /// Reads the bytes of an answer.
    pub async fn fill(
        &self,
        of: &Meta,
        mut answer: Answer,
        into: Filling,
        seen: &mut Attempt,
    ) -> Result<(Answer, Filling), Failure> {
        let filled = answer.fill(into, seen).await;
        let filled = filled.map_err(|failure| self.failure(&of.name, failure.kind, &failure.said))?;
        Ok((answer, filled))
    }
}

/// An object as the headers of an answer have it.
pub fn meta(name: &str, bytes: u64, answer: &Answer) -> Meta {
    let modified = answer.header(LAST_MODIFIED.as_str()).and_then(time);
    let etag = answer.header(ETAG.as_str()).map(Into::into);
    Meta { name: name.into(), bytes, etag, modified, crc64: None, crc32c: None }
}

/// Whether an answer is about the object as it was. A store that knows no conditions answers all the same.
pub fn same(of: &Meta, answer: &Answer) -> Result<(), Failure> {
    let now = meta(&of.name, of.bytes, answer);
    let differs = match (&of.etag, &now.etag) {
        (Some(then), Some(now)) => then != now,
        _ => of.modified.zip(now.modified).is_some_and(|(then, now)| then != now),
    };
    if differs {
        return Err(Failure { kind: Kind::Changed, said: "it has changed since it was looked at".into() });
    }
    Ok(())
}

/// Whether an answer holds this range and no other.
fn check_range(answer: &Answer, range: &std::ops::Range<u64>, whole: u64) -> Result<(), &'static str> {
    let Some(said) = answer.header("content-range") else {
        // All of it was asked for, and sent.
        return if *range == (0..whole) { Ok(()) } else { Err("the store sent all of it instead of a range") };
    };
    let expected = format!("bytes {}-{}/", range.start, range.end - 1);
    if said.starts_with(&expected) { Ok(()) } else { Err("the store sent another range than it was asked for") }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("shown", &self.shown).finish_non_exhaustive()
    }
}
