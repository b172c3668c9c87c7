//! The answers of a store, with helpers for XML and dates.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

use chrono::{DateTime, Utc};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use quick_xml::Reader;
pub(crate) use quick_xml::escape::escape;
use quick_xml::escape::unescape;
use quick_xml::events::Event;

use super::service::AnswerTimes;

/// The reason why a store refuses a request, and the HTTP status of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
    /// The store's region, if the client's signature names a wrong region, service or date; otherwise `None`.
    pub region: Option<String>,
}

impl Refusal {
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), region: None }
    }

    /// Returns the refusal as an answer with an XML document that describes the error. S3 and Azure use almost the same
    /// document.
    pub fn answer(&self) -> Answer {
        let Self { status, code, message, region } = self;
        if *status == 304 {
            return Answer::new(304);
        }
        let message = escape(message.as_str());
        let region = region.as_ref().map(|region| format!("<Region>{}</Region>", escape(region.as_str())));
        let region = region.unwrap_or_default();
        let text = format!("<Error><Code>{code}</Code><Message>{message}</Message>{region}</Error>");
        Answer::new(*status).with_xml(&text).header("x-ms-error-code", code)
    }
}

/// Returns `Err` with a [`Refusal`] that has this status, error code and message.
pub(super) fn refuse<T>(status: u16, code: &'static str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(status, code, message))
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub content: Vec<Bytes>,
}

impl Answer {
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), content: Vec::new() }
    }

    /// Creates an answer with an XML document, to which the XML declaration is added.
    pub fn xml(text: &str) -> Self {
        Self::new(200).with_xml(text)
    }

    pub fn with_xml(mut self, text: &str) -> Self {
        self.content = vec![format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}").into()];
        self.header("content-type", "application/xml")
    }

    /// Adds a header. An invalid name or value would be left out; this cannot happen, because both come from other
    /// headers or from this crate.
    pub fn header(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value.as_ref())) {
            self.headers.push((name, value));
        }
        self
    }

    /// Converts the answer to an HTTP response. The response to HEAD states the length of the body, but omits the body.
    pub fn response(self, is_head: bool) -> Response<Content> {
        let length_bytes: usize = self.content.iter().map(Bytes::len).sum();
        let content = if is_head { Vec::new() } else { self.content };
        let mut response = Response::new(Content { pieces: content.into(), cut_after_bytes: None, paced: None });
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or_default();
        response.headers_mut().extend(self.headers);
        if is_head {
            response.headers_mut().insert(CONTENT_LENGTH, length_bytes.into());
        }
        response
    }
}

/// The body of an answer. It is a list of pieces, so that their bytes need not be copied into one buffer.
pub(crate) struct Content {
    pub pieces: VecDeque<Bytes>,
    /// Number of bytes after which the connection breaks, for [`Misdeed::CutDownload`](super::Misdeed::CutDownload).
    /// `None` if the whole body is sent.
    pub cut_after_bytes: Option<u64>,
    /// The rate at which the body is sent; `None` to send it at once.
    pub(super) paced: Option<Paced>,
}

/// Sends a body at a rate, in steps. The first step is sent at `start`, and each later step when its last byte is due
/// at this rate.
pub(super) struct Paced {
    pub times: AnswerTimes,
    /// The time at which the first byte is sent.
    pub start: Instant,
    pub sent_bytes: u64,
    pub wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Duration of a step of [`Paced`] at its rate.
const STEP_S: f64 = 0.0005;
/// Smallest size of a step of [`Paced`], and size of the first step, in bytes.
const LEAST_STEP_BYTES: usize = 1_000;

impl Paced {
    /// Waits until the next bytes of `piece` may be sent, and returns their number.
    fn poll_bytes(&mut self, piece: &Bytes, context: &mut Context<'_>) -> Poll<usize> {
        let step_bytes = match self.sent_bytes {
            0 => LEAST_STEP_BYTES,
            _ => ((self.times.bytes_per_s * STEP_S) as usize).max(LEAST_STEP_BYTES),
        };
        let bytes = piece.len().min(step_bytes);
        let due = match self.sent_bytes {
            0 => self.start,
            sent => self.start + self.times.of_bytes(sent + bytes as u64),
        };
        let Self { times, wait, .. } = self;
        let wait = wait.get_or_insert_with(|| Box::pin(times.wait(due, bytes as u64)));
        std::task::ready!(wait.as_mut().poll(context));
        self.wait = None;
        self.sent_bytes += bytes as u64;
        Poll::Ready(bytes)
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Self { pieces, paced, .. } = &mut *self;
        let Some(first) = pieces.front_mut() else { return Poll::Ready(None) };
        let bytes = match paced {
            Some(paced) => std::task::ready!(paced.poll_bytes(first, context)),
            None => first.len(),
        };
        let mut piece = first.split_to(bytes);
        if first.is_empty() {
            pieces.pop_front();
        }
        if let Some(left_bytes) = self.cut_after_bytes {
            if left_bytes == 0 {
                return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
            }
            let rest = piece.split_off(piece.len().min(left_bytes as usize));
            self.cut_after_bytes = Some(left_bytes - piece.len() as u64);
            if !rest.is_empty() {
                self.pieces.push_front(rest);
            }
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// Returns the name and the text of each element of an XML document, in the order of their end tags. `None` if the
/// document cannot be parsed.
pub(crate) fn elements(document: &[u8]) -> Option<Vec<(String, String)>> {
    let mut reader = Reader::from_reader(document);
    reader.config_mut().expand_empty_elements = true;
    let (mut elements, mut open) = (Vec::new(), Vec::new());
    loop {
        let event = reader.read_event().ok()?;
        match event {
            Event::Start(start) => {
                open.push((String::from_utf8(start.local_name().as_ref().into()).ok()?, String::new()));
            }
            Event::End(_) => elements.push(open.pop()?),
            Event::Text(text) => {
                let text = text.decode().ok()?;
                match open.last_mut() {
                    Some((_, within)) => within.push_str(&text),
                    None if text.trim().is_empty() => {}
                    None => return None,
                }
            }
            Event::GeneralRef(name) => {
                let reference = format!("&{};", name.decode().ok()?);
                open.last_mut()?.1.push_str(&unescape(&reference).ok()?);
            }
            Event::Eof => return open.is_empty().then_some(elements),
            _ => {}
        }
    }
}

/// Formats a time as `2026-11-23T07:02:12Z`. The alphabetical order of such texts is also their chronological order.
pub(super) fn iso(moment: SystemTime) -> String {
    DateTime::<Utc>::from(moment).format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats a time as `20261123T070212Z`, the form that AWS's signatures use.
pub(super) fn basic(moment: SystemTime) -> String {
    iso(moment).replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn elements_come_as_they_end() {
        let document = "<?xml version=\"1.0\"?>\n<A xmlns=\"x\"><B>&quot;1&#34; &amp; 2</B><C/><D><E>3</E></D></A>";
        let elements = elements(document.as_bytes()).unwrap();
        let elements: Vec<_> = elements.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(elements, [("B", "\"1\" & 2"), ("C", ""), ("E", "3"), ("D", ""), ("A", "")]);
        for other in ["<A>", "<A></B>", "text", "<A>&what;</A>", "</A>"] {
            assert!(super::elements(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        let known = [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_369_353_600, "2013-05-24T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in known {
            assert_eq!(iso(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
        assert_eq!(basic(UNIX_EPOCH), "19700101T000000Z");
    }
}
