//! A client that sends any request. It computes signatures with its own code, not with the code of the stores.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use md5::{Digest, Md5};
use ring::hmac;

const PATIENCE: Duration = Duration::from_secs(60);

pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(bytes)
}

pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn md5(bytes: &[u8]) -> Vec<u8> {
    Md5::digest(bytes).to_vec()
}

pub fn sha256(bytes: &[u8]) -> Vec<u8> {
    ring::digest::digest(&ring::digest::SHA256, bytes).as_ref().into()
}

pub fn sha1(bytes: &[u8]) -> Vec<u8> {
    ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().into()
}

pub fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().into()
}

/// Formats a time as `20261123T070212Z`.
pub fn basic_date(moment: SystemTime) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let date = httpdate::fmt_http_date(moment);
    let [_, day, month, year, time, _] = date.split(' ').collect::<Vec<_>>()[..] else { unreachable!() };
    let month = MONTHS.find(month).unwrap() / 3 + 1;
    format!("{year}{month:02}{day}T{}Z", time.replace(':', ""))
}

/// A request that is still to be signed. Its path and query are sent unchanged.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: &'static str,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub moment: SystemTime,
}

pub fn new_request(method: &'static str, path: &str) -> Ask {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    Ask { method, path: path.into(), query: query.into(), headers: vec![], body: vec![], moment: SystemTime::now() }
}

impl Ask {
    pub fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.into(), value.to_string()));
        self
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().into();
        self
    }

    pub fn get(&self, name: &str) -> &str {
        self.headers.iter().find(|(header, _)| header == name).map_or("", |(_, value)| value)
    }
}

#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the text of the first XML element with this name.
    pub fn element(&self, name: &str) -> String {
        self.elements(name).into_iter().next().unwrap_or_default()
    }

    pub fn elements(&self, name: &str) -> Vec<String> {
        let text = self.text();
        let (start, end) = (format!("<{name}>"), format!("</{name}>"));
        let found = text.split(&start).skip(1);
        found.filter_map(|rest| Some(rest.split_once(&end)?.0.to_string())).collect()
    }
}

/// The address and the credentials of a client.
#[derive(Clone, Debug)]
pub struct Client {
    pub address: SocketAddr,
    pub account: String,
    pub secret: String,
}

impl Client {
    /// Sends a request unchanged. Returns `None` if the connection breaks.
    pub fn send(&self, ask: &Ask) -> Option<Reply> {
        let query = if ask.query.is_empty() { String::new() } else { format!("?{}", ask.query) };
        let mut head = format!("{} {}{query} HTTP/1.1\r\nhost: {}\r\n", ask.method, ask.path, self.address);
        for (name, value) in &ask.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n", ask.body.len()));
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A server that answers early may not read the whole request.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&ask.body));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines.map(|line| line.split_once(':').unwrap());
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_string())).collect();
        let mut reply = Reply { status, headers, body: answer.split_off(end + 4) };
        if reply.header("transfer-encoding") == "chunked" {
            reply.body = unchunked(&reply.body);
        }
        let length = reply.header("content-length").parse().unwrap_or(reply.body.len());
        (ask.method == "HEAD" || reply.body.len() == length).then_some(reply)
    }

    /// Sends a request that is signed in a header, as for S3.
    pub fn s3(&self, ask: &Ask) -> Option<Reply> {
        self.send(&self.signed(ask, "us-east-1"))
    }

    pub fn signed(&self, ask: &Ask, region: &str) -> Ask {
        let mut ask = ask.clone();
        if ask.get("x-amz-content-sha256").is_empty() {
            ask.headers.push(("x-amz-content-sha256".into(), hex(sha256(&ask.body))));
        }
        ask.headers.push(("x-amz-date".into(), basic_date(ask.moment)));
        let payload = ask.get("x-amz-content-sha256").to_string();
        let (names, signature) = self.signature(&ask, region, &payload);
        let (scope, account) = (scope(&ask, region), &self.account);
        let value =
            format!("AWS4-HMAC-SHA256 Credential={account}/{scope}, SignedHeaders={names}, Signature={signature}");
        ask.headers.push(("authorization".into(), value));
        ask
    }

    /// Signs a request in its URL. The signature is valid for `expires_s` seconds from the request's time on.
    pub fn presigned(&self, ask: &Ask, expires_s: u64) -> Ask {
        let mut ask = ask.clone();
        let (date, scope) = (basic_date(ask.moment), scope(&ask, "us-east-1").replace('/', "%2F"));
        let separator = if ask.query.is_empty() { "" } else { "&" };
        ask.query.push_str(&format!(
            "{separator}X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={}%2F{scope}&X-Amz-Date={date}\
             &X-Amz-Expires={expires_s}&X-Amz-SignedHeaders=host",
            self.account
        ));
        let (_, signature) = self.signature(&ask, "us-east-1", "UNSIGNED-PAYLOAD");
        ask.query.push_str(&format!("&X-Amz-Signature={signature}"));
        ask
    }

    /// Returns the names of the signed headers, and the signature.
    fn signature(&self, ask: &Ask, region: &str, payload: &str) -> (String, String) {
        let mut headers = ask.headers.clone();
        headers.push(("host".into(), self.address.to_string()));
        headers.sort();
        let names = headers.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(";");
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let mut query: Vec<_> = ask.query.split('&').filter(|pair| !pair.is_empty()).collect();
        query.sort_unstable();
        let query: Vec<_> =
            query.iter().map(|pair| if pair.contains('=') { pair.to_string() } else { format!("{pair}=") }).collect();
        let request = format!("{}\n{}\n{}\n{lines}\n{names}\n{payload}", ask.method, ask.path, query.join("&"));
        let (date, scope) = (basic_date(ask.moment), scope(ask, region));
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(sha256(request.as_bytes())));
        (names, hex(hmac(&self.key(ask, region), &text)))
    }

    fn key(&self, ask: &Ask, region: &str) -> Vec<u8> {
        scope(ask, region).split('/').fold(format!("AWS4{}", self.secret).into(), |key, part| hmac(&key, part))
    }

    /// Returns a signed request whose body is in signed chunks, optionally followed by a checksum.
    pub fn in_chunks(&self, ask: &Ask, chunk_bytes: usize, trailer: Option<(&str, &str)>) -> Ask {
        let mut ask = ask.clone();
        let kind = format!("STREAMING-AWS4-HMAC-SHA256-PAYLOAD{}", if trailer.is_some() { "-TRAILER" } else { "" });
        let length = ask.body.len();
        ask = ask.header("x-amz-content-sha256", kind).header("x-amz-decoded-content-length", length);
        if let Some((name, _)) = trailer {
            ask = ask.header("x-amz-trailer", name);
        }
        let body = std::mem::take(&mut ask.body);
        let mut ask = self.signed(&ask, "us-east-1");
        let mut before = ask.get("authorization").rsplit_once('=').unwrap().1.to_string();
        let key = self.key(&ask, "us-east-1");
        let about = format!("{}\n{}", basic_date(ask.moment), scope(&ask, "us-east-1"));
        for chunk in body.chunks(chunk_bytes).chain([&[][..]]) {
            let text =
                format!("AWS4-HMAC-SHA256-PAYLOAD\n{about}\n{before}\n{}\n{}", hex(sha256(b"")), hex(sha256(chunk)));
            before = hex(hmac(&key, &text));
            ask.body.extend(format!("{:x};chunk-signature={before}\r\n", chunk.len()).into_bytes());
            ask.body.extend(chunk);
            if !chunk.is_empty() || trailer.is_none() {
                ask.body.extend(b"\r\n");
            }
        }
        if let Some((name, value)) = trailer {
            let line = format!("{name}:{value}\n");
            let text = format!("AWS4-HMAC-SHA256-TRAILER\n{about}\n{before}\n{}", hex(sha256(line.as_bytes())));
            let signature = hex(hmac(&key, &text));
            ask.body.extend(format!("{name}:{value}\r\nx-amz-trailer-signature:{signature}\r\n\r\n").into_bytes());
        }
        ask
    }

    /// Sends a request that is signed with the account's key, as for Azure. Puts the account in front of the path.
    pub fn azure(&self, ask: &Ask) -> Option<Reply> {
        let mut ask = ask.clone();
        ask.path = format!("/{}{}", self.account, ask.path);
        ask.headers.push(("x-ms-date".into(), httpdate::fmt_http_date(ask.moment)));
        ask.headers.push(("x-ms-version".into(), "2023-11-03".into()));
        let length = if ask.body.is_empty() { String::new() } else { ask.body.len().to_string() };
        let mut text = format!("{}\n\n\n{length}\n", ask.method);
        for name in ["content-md5", "content-type", "", "if-modified-since", "if-match", "if-none-match"] {
            text.push_str(&format!("{}\n", ask.get(name)));
        }
        text.push_str(&format!("{}\n{}\n", ask.get("if-unmodified-since"), ask.get("range")));
        let mut headers: Vec<_> = ask.headers.iter().filter(|(name, _)| name.starts_with("x-ms-")).collect();
        headers.sort();
        for (name, value) in headers {
            text.push_str(&format!("{name}:{value}\n"));
        }
        text.push_str(&format!("/{}{}", self.account, ask.path));
        let mut query: Vec<_> = ask.query.split('&').filter(|pair| !pair.is_empty()).collect();
        query.sort_unstable();
        for pair in query {
            let (name, value) = pair.split_once('=').unwrap();
            text.push_str(&format!("\n{name}:{}", value.replace("%3D", "=").replace("%2F", "/")));
        }
        let key = BASE64_STANDARD.decode(&self.secret).unwrap();
        let value = format!("SharedKey {}:{}", self.account, base64(hmac(&key, &text)));
        ask.headers.push(("authorization".into(), value));
        self.send(&ask)
    }
}

fn scope(ask: &Ask, region: &str) -> String {
    format!("{}/{region}/s3/aws4_request", &basic_date(ask.moment)[..8])
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|bytes| bytes == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend(&body[end + 2..][..length]);
        body = &body[end + 2 + length + 2..];
    }
}
