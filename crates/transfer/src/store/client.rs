//! A client for a bucket or container. Each request is signed and sent once. If the store refuses a request, the
//! failure contains an explanation.

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, ETAG, HeaderName, HeaderValue};
use hyper::{Method, Request};
use object_store::client::HttpRequestBody;
use serde::Deserialize;

use super::Result;
use super::address::{Address, encoded_name, encoded_query};
use super::keys::Keys;
use super::refusal;
use super::transport::{MAX_ANSWER_BYTES, RequestInfo, Response, Transport};
use crate::store::ListCursor;
use crate::{Attempt, Failure, Kind, ObjectMeta, PutOptions};

/// The message if a server's answer is not the answer of a store. Causes are for example a captive portal or a wrong
/// endpoint.
pub const NO_STORE: &str = "the server does not look like a store of this kind; check the endpoint";
/// HTTP headers, each with its name in lower case and its value.
pub type Headers = Vec<(&'static str, String)>;

/// A request to a store, before it is signed.
#[derive(Default)]
pub struct Call<'a> {
    pub method: Method,
    /// The address of the bucket, if it is not [`Client::configured_base`].
    pub base: Option<&'a str>,
    pub name: &'a str,
    pub query: &'a [(&'a str, &'a str)],
    pub headers: Headers,
    /// Further headers with the metadata of an object, each with its name in lower case and its value.
    pub metadata: Vec<(String, String)>,
    pub body: Bytes,
    /// `true` if the request must not be repeated. If its answer is lost, the failure is [`Kind::Unanswered`].
    pub once: bool,
    /// `true` if the store assembles an object, which may take minutes.
    pub assembles: bool,
}

/// An HTTP client for a bucket or container.
pub struct Client {
    transport: Transport,
    keys: Keys,
    base: String,
    shown: String,
    /// Headers that every request has.
    headers: Headers,
    credentials: Option<&'static str>,
    /// The configured region of S3; `None` for other stores.
    region: Option<String>,
    /// The region that the store has named instead. It applies to all later requests.
    moved: OnceLock<Moved>,
}

/// The actual region of a bucket, and the bucket's address there.
struct Moved {
    region: String,
    base: String,
}

impl Client {
    /// Creates a client for the bucket or container at the address `base`. `shown` is the form of this address in
    /// messages, and `credentials` states in messages where the `keys` come from. Every request has the `headers`.
    pub fn new(
        transport: Transport,
        base: &str,
        shown: String,
        headers: Headers,
        (keys, credentials): (Keys, &'static str),
    ) -> Result<Self> {
        let base = Address::parse(base)?.trimmed().to_string();
        let credentials = (!matches!(keys, Keys::Anonymous)).then_some(credentials);
        Ok(Self { transport, keys, base, shown, headers, credentials, region: None, moved: OnceLock::new() })
    }

    /// Sets the region of S3. If the store names another region, the client uses that region from then on.
    pub fn in_region(self, region: String) -> Self {
        Self { region: Some(region), ..self }
    }

    /// Returns the address of the bucket in the configured region. It contains no user and no query.
    pub fn configured_base(&self) -> &str {
        &self.base
    }

    /// Returns the address of the bucket.
    fn base(&self) -> &str {
        self.moved.get().map_or(&self.base, |moved| &moved.base)
    }

    /// Uses `region` for all later requests. Returns `false` if this would change nothing. The host stays in its
    /// domain: only the name of the region in it is replaced.
    fn follow(&self, region: &str) -> bool {
        let Some(configured) = self.region.as_ref().filter(|configured| *configured != region) else { return false };
        let base = in_region(&self.base, configured, region);
        if base == self.base && matches!(self.keys, Keys::Anonymous) {
            return false;
        }
        // If another request has followed the same redirect meanwhile, there is nothing to set.
        let _ = self.moved.set(Moved { region: region.into(), base });
        true
    }

    /// Returns the address of an object for messages. If the name is empty, returns the address of the bucket.
    fn address(&self, name: &str) -> String {
        if name.is_empty() { self.shown.clone() } else { format!("{}/{name}", self.shown) }
    }

    /// Creates a failure whose message starts with the address of an object.
    pub fn failure(&self, name: &str, kind: Kind, message: &str) -> Failure {
        Failure::new(kind, message).about(&self.address(name))
    }

    /// Opens connections for requests that are about to be sent in parallel.
    pub async fn connect(&self, connections: usize) {
        if let Ok(uri) = self.base().parse() {
            self.transport.prepare(&uri, connections).await;
        }
    }

    /// Returns the host of the proxy through which requests are sent.
    pub fn proxy(&self) -> Result<Option<String>> {
        match self.base().parse() {
            Ok(uri) => self.transport.proxy(&uri),
            Err(_) => Ok(None),
        }
    }

    /// Signs and sends a request. Turns every status except success into a failure.
    pub async fn send(&self, call: Call<'_>, attempt: &mut Attempt) -> Result<Response> {
        let (response, text) = self.send_any(&call, attempt).await?;
        if response.status.is_success() {
            return Ok(response);
        }
        attempt.refusal_code = refusal::code(&response, &text).map(String::from);
        Err(refusal::failure(&response, &text))
    }

    /// Signs and sends a request, and repeats it once if the store names another region for the bucket. Returns answers
    /// of every status. If the answer has an error status, its body has been read and is returned as text.
    async fn send_any(&self, call: &Call<'_>, attempt: &mut Attempt) -> Result<(Response, String)> {
        let was_moved = self.moved.get().is_some();
        let (response, text) = self.send_once(call, attempt).await?;
        // A redirect means that the store has not carried out the request.
        let region = refusal::other_region(&response, &text).filter(|_| !was_moved).map(String::from);
        if region.is_some_and(|region| self.follow(&region)) {
            // The second request may need the permit for the connection of the first one.
            drop(response);
            return self.send_once(call, attempt).await;
        }
        Ok((response, text))
    }

    async fn send_once(&self, call: &Call<'_>, attempt: &mut Attempt) -> Result<(Response, String)> {
        let (method, subject) = (call.method.clone(), self.address(call.name));
        let Call { once, assembles, .. } = *call;
        let info = RequestInfo { method, subject, credentials: self.credentials, once, assembles };
        let request = self.sign(call).await.map_err(|failure| failure.about(&info.subject))?;
        let mut response = self.transport.send(request, info, attempt).await?;
        let mut text = String::new();
        if !response.status.is_success() {
            // If the body can't be read, the explanation uses only the status.
            text = response.text(attempt).await.unwrap_or_default();
        }
        Ok((response, text))
    }

    /// Sends a request whose answer carries no object. Returns the head of the answer, and its body as text.
    pub async fn send_for_text(&self, call: Call<'_>, attempt: &mut Attempt) -> Result<(Response, String)> {
        let mut response = self.send(call, attempt).await?;
        let text = response.text(attempt).await?;
        Ok((response, text))
    }

    /// Requests a list of objects page by page, as [`Self::list_page`] does, and returns the objects of all pages.
    pub async fn list<T>(
        &self,
        query: &[(&str, &str)],
        key: &str,
        attempt: &mut Attempt,
        parse: impl Fn(&str) -> Result<(Vec<T>, Option<String>)>,
    ) -> Result<Vec<T>> {
        let (mut found, mut cursor) = (Vec::new(), ListCursor::default());
        loop {
            let (objects, next) = self.list_page(query, (key, cursor.page()), attempt, &parse).await?;
            found.extend(objects);
            if !cursor.advance(next).map_err(|failure| failure.about(&self.shown))? {
                return Ok(found);
            }
        }
    }

    /// Requests one page of a list. `parse` returns the objects of a page, and the token of the next page if there is
    /// one. If the token `page` is set, it is sent as the query parameter `key`.
    pub async fn list_page<T>(
        &self,
        query: &[(&str, &str)],
        (key, page): (&str, Option<&str>),
        attempt: &mut Attempt,
        parse: impl Fn(&str) -> Result<(Vec<T>, Option<String>)>,
    ) -> Result<(Vec<T>, Option<String>)> {
        let mut query = query.to_vec();
        query.extend(page.map(|page| (key, page)));
        let (_, text) = self.send_for_text(Call { query: &query, ..Call::default() }, attempt).await?;
        parse(&text)
    }

    /// Parses the body of an answer as XML. The error names the object `name`.
    pub fn parse<'de, T: Deserialize<'de>>(&self, name: &str, text: &'de str) -> Result<T> {
        quick_xml::de::from_str(text).map_err(|_| self.failure(name, Kind::Fatal, NO_STORE))
    }

    async fn sign(&self, call: &Call<'_>) -> Result<Request<Bytes>> {
        let mut address = call.base.unwrap_or_else(|| self.base()).to_string();
        if !call.name.is_empty() {
            address = format!("{address}/{}", encoded_name(call.name)?);
        }
        if !call.query.is_empty() {
            address = format!("{address}?{}", encoded_query(call.query));
        }
        let mut request = Request::new(HttpRequestBody::empty());
        *request.uri_mut() = address.parse().map_err(|_| Failure::fatal("the name is too long for an address"))?;
        for (name, value) in self.headers.iter().chain(&call.headers) {
            let value = HeaderValue::try_from(value)
                .map_err(|_| Failure::fatal(format!("a header can't contain `{value}`")))?;
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        for (name, value) in &call.metadata {
            let invalid = || Failure::fatal(format!("a header can't be `{name}: {value}`"));
            let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            request.headers_mut().extend([header.ok_or_else(invalid)?]);
        }
        if matches!(call.method, Method::PUT | Method::POST) {
            // The header is set before signing, because Azure's signature includes it.
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(call.body.len()));
        }
        *request.method_mut() = call.method.clone();
        self.keys.sign(&mut request, self.moved.get().map(|moved| &*moved.region)).await?;
        Ok(request.map(|_| call.body.clone()))
    }

    /// Removes the object `name`, or the upload that `query` names. Succeeds if it is already missing.
    pub async fn delete(
        &self,
        name: &str,
        query: &[(&str, &str)],
        headers: Headers,
        attempt: &mut Attempt,
    ) -> Result<()> {
        let call = Call { method: Method::DELETE, name, query, headers, ..Call::default() };
        match self.send_for_text(call, attempt).await {
            // In a missing bucket, nothing can be removed. Its name, the endpoint or the account may be wrong.
            Err(failure) if failure.kind != Kind::Missing || failure.concerns_whole_store => Err(failure),
            _ => Ok(()),
        }
    }

    /// Reads an object, or a range of it, without checksums. See [`Store::read_into`](crate::Store::read_into).
    pub async fn read_into(
        &self,
        name: &str,
        range: Option<Range<u64>>,
        most: u64,
        into: &mut Vec<u8>,
        attempt: &mut Attempt,
    ) -> Result<()> {
        let headers =
            range.iter().map(|range| ("range", format!("bytes={}-{}", range.start, range.end.saturating_sub(1))));
        let headers = headers.collect();
        let mut response = self.send(Call { name, headers, ..Call::default() }, attempt).await?;
        response.check_range(range.as_ref())?;
        response.append(most, into, attempt).await
    }

    /// Describes an object, by a HEAD request. Returns `None` if the object does not exist.
    pub async fn head(
        &self,
        name: &str,
        mut headers: Headers,
        attempt: &mut Attempt,
    ) -> Result<Option<(Response, ObjectMeta)>> {
        let was_moved = self.moved.get().is_some();
        let call = Call { method: Method::HEAD, name, headers: headers.clone(), ..Call::default() };
        let (mut response, _) = self.send_any(&call, attempt).await?;
        let mut text = String::new();
        // An answer to HEAD has no body. A GET request asks for the reason, which may be the bucket's region.
        if response.status == 400 {
            headers.push(("range", "bytes=0-0".into()));
            if let Ok((_, answered)) = self.send_any(&Call { name, headers, ..Call::default() }, attempt).await {
                text = answered;
            }
            if !was_moved && self.moved.get().is_some() {
                response = self.send_once(&call, attempt).await?.0;
            }
        }
        // The body is empty, but must be read to its end before the connection can be reused.
        if response.status.is_success() {
            response.bytes(MAX_ANSWER_BYTES, attempt).await?;
        }
        let code = refusal::code(&response, "");
        if response.status == 404 && !code.is_some_and(|code| ["ContainerNotFound", "NoSuchBucket"].contains(&code)) {
            return Ok(None);
        }
        if !response.status.is_success() {
            return Err(refusal::failure(&response, &text));
        }
        if response.header(ETAG.as_str()).is_none() {
            return Err(self.failure(name, Kind::Fatal, NO_STORE));
        }
        let bytes = response.header("content-length").and_then(|bytes| bytes.parse().ok());
        let bytes =
            bytes.ok_or_else(|| self.failure(name, Kind::Fatal, "the store does not send the length of the object"))?;
        let meta = response.meta(name, bytes);
        Ok(Some((response, meta)))
    }

    /// Requests the whole object that `of` describes. Fails if the object has changed since `of` was read.
    pub async fn get(&self, of: &ObjectMeta, mut headers: Headers, attempt: &mut Attempt) -> Result<Response> {
        headers.extend(of.etag.clone().map(|etag| ("if-match", etag)));
        let response = self.send(Call { name: &of.name, headers, ..Call::default() }, attempt).await?;
        response.check_unchanged(of)?;
        Ok(response)
    }

    /// Requests a range of the object that `of` describes. Fails if the object has changed since `of` was read.
    pub async fn get_range(
        &self,
        of: &ObjectMeta,
        range: &Range<u64>,
        mut headers: Headers,
        attempt: &mut Attempt,
    ) -> Result<Response> {
        if range.is_empty() {
            return Err(self.failure(&of.name, Kind::Fatal, "can't request an empty range"));
        }
        headers.push(("range", format!("bytes={}-{}", range.start, range.end - 1)));
        let response = self.get(of, headers, attempt).await?;
        response.check_range(Some(range))?;
        Ok(response)
    }
}

/// Adds the quotes that an ETag has in headers, if they are missing.
pub fn quoted(etag: String) -> String {
    if etag.ends_with('"') { etag } else { format!("\"{etag}\"") }
}

/// Converts the failure of a request whose stored bytes differ from the bytes that were sent. Usually, the request is
/// repeated and replaces the stored bytes. With `no_clobber`, it must not replace any object, so the failure becomes
/// fatal.
pub fn refused_again(failure: Failure, options: &PutOptions) -> Failure {
    if options.no_clobber { Failure { kind: Kind::Fatal, ..failure } } else { failure }
}

/// Replaces the name of the region in the host of an address. Does not change hosts without it.
fn in_region(base: &str, from: &str, to: &str) -> String {
    let Some((scheme, rest)) = base.split_once("://") else { return base.into() };
    let end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let mut labels: Vec<String> = host.split('.').map(String::from).collect();
    // The name of the bucket, in front of the host, may be the same.
    match labels.iter().rposition(|label| label == from || label.strip_prefix("s3-") == Some(from)) {
        Some(at) => labels[at] = labels[at].replace(from, to),
        None if host == "s3.amazonaws.com" || host.ends_with(".s3.amazonaws.com") => {
            labels.insert(labels.len() - 2, to.into());
        }
        None => {}
    }
    format!("{scheme}://{}{path}", labels.join("."))
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("shown", &self.shown).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::in_region;

    #[test]
    fn another_region_changes_only_its_name_in_the_host() {
        for (base, expected) in [
            ("https://box.s3.old-1.amazonaws.com", "https://box.s3.new-2.amazonaws.com"),
            ("https://s3.old-1.amazonaws.com/box", "https://s3.new-2.amazonaws.com/box"),
            ("https://s3-old-1.amazonaws.com/box", "https://s3-new-2.amazonaws.com/box"),
            ("https://old-1.s3.old-1.example.com:90/old-1", "https://old-1.s3.new-2.example.com:90/old-1"),
            ("https://s3.amazonaws.com/box", "https://s3.new-2.amazonaws.com/box"),
            ("https://box.s3.amazonaws.com", "https://box.s3.new-2.amazonaws.com"),
            ("http://127.0.0.1:9000/old-1", "http://127.0.0.1:9000/old-1"),
            ("http://evils3.amazonaws.com/box", "http://evils3.amazonaws.com/box"),
        ] {
            assert_eq!(in_region(base, "old-1", "new-2"), expected);
        }
    }
}
