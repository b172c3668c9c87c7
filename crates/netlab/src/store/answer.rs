//! What a store answers.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::xml::escape;

/// What is not done, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
    /// The region that would be right.
    pub region: Option<String>,
}

impl Refusal {
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), region: None }
    }

    /// S3 and Azure tell their errors almost alike.
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

    /// A document, without its first line.
    pub fn xml(text: &str) -> Self {
        Self::new(200).with_xml(text)
    }

    pub fn with_xml(mut self, text: &str) -> Self {
        self.content = vec![format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}").into()];
        self.header("content-type", "application/xml")
    }

    /// What can't be a header is left out: it comes from a header, or is of ours.
    pub fn header(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value.as_ref())) {
            self.headers.push((name, value));
        }
        self
    }

    /// As it is sent. The answer to HEAD has the length of what it leaves out.
    pub fn response(self, is_head: bool) -> Response<Content> {
        let length_bytes: usize = self.content.iter().map(Bytes::len).sum();
        let content = if is_head { Vec::new() } else { self.content };
        let mut response = Response::new(Content { pieces: content.into(), cut_after_bytes: None });
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or_default();
        response.headers_mut().extend(self.headers);
        if is_head {
            response.headers_mut().insert(CONTENT_LENGTH, length_bytes.into());
        }
        response
    }
}

/// A body in pieces, none of which is copied.
#[derive(Debug)]
pub(crate) struct Content {
    pub pieces: VecDeque<Bytes>,
    /// The connection breaks once so much of it is sent.
    pub cut_after_bytes: Option<u64>,
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(mut piece) = self.pieces.pop_front() else { return Poll::Ready(None) };
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
