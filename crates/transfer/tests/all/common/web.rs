//! An HTTP server whose answers a test defines.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A server that answers each request with the result of a function. The server stops when it is dropped.
pub struct Web {
    pub address: SocketAddr,
    /// The heads of all requests so far.
    pub heads: Arc<Mutex<Vec<String>>>,
}

impl Web {
    /// Starts a server. `answer` gets the head and the body of a request, and returns the bytes to send. If it returns
    /// no bytes, the connection is closed.
    pub fn start(answer: impl Fn(&str, &[u8]) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (heads.clone(), Arc::new(answer));
        // The thread is not joined; it ends with the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, answer) = (seen.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &seen, &*answer));
            }
        });
        Self { address, heads }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>, answer: &dyn Fn(&str, &[u8]) -> Vec<u8>) -> Option<()> {
    let mut received = Vec::new();
    loop {
        let head_bytes = loop {
            match received.windows(4).position(|end| end == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => more(&mut stream, &mut received)?,
            }
        };
        let head = String::from_utf8_lossy(&received[..head_bytes]).into_owned();
        let body_bytes = header(&head, "content-length").and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        while received.len() < head_bytes + body_bytes {
            more(&mut stream, &mut received)?;
        }
        seen.lock().unwrap().push(head.clone());
        let answered = answer(&head, &received[head_bytes..head_bytes + body_bytes]);
        received.drain(..head_bytes + body_bytes);
        if answered.is_empty() {
            return None;
        }
        stream.write_all(&answered).ok()?;
        if answered.windows(17).any(|part| part == b"Connection: close") {
            return None;
        }
    }
}

fn more(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 65536];
    let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
    received.extend_from_slice(&buffer[..read]);
    Some(())
}

/// Returns the value of a header in the head of a request.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns the bytes of an answer. In `headers`, each line ends with a line break.
pub fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Returns the answer of a server that supports ranges. `identity` are headers such as the ETag.
pub fn file(head: &str, identity: &str, content: &[u8]) -> Vec<u8> {
    let Some(range) = header(head, "range").and_then(|range| range.strip_prefix("bytes=")) else {
        return answer("200 OK", identity, content);
    };
    let (from, to) = range.split_once('-').unwrap();
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    if from >= content.len() {
        let none = format!("{identity}Content-Range: bytes */{}\r\n", content.len());
        return answer("416 Range Not Satisfiable", &none, b"");
    }
    let to = to.min(content.len() - 1);
    let part = format!("{identity}Content-Range: bytes {from}-{to}/{}\r\n", content.len());
    answer("206 Partial Content", &part, &content[from..=to])
}

/// Starts a proxy that supports only `CONNECT`, and connects each client to its target.
pub fn tunnel() -> Web {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let seen = seen.clone();
            std::thread::spawn(move || through(stream, &seen));
        }
    });
    Web { address, heads }
}

fn through(mut stream: TcpStream, seen: &Mutex<Vec<String>>) -> Option<()> {
    let mut received = Vec::new();
    while !received.ends_with(b"\r\n\r\n") {
        more(&mut stream, &mut received)?;
    }
    let head = String::from_utf8_lossy(&received).into_owned();
    let mut there = TcpStream::connect(head.split(' ').nth(1)?).ok()?;
    seen.lock().unwrap().push(head);
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
    let (mut from, mut to) = (stream.try_clone().ok()?, there.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let _ = std::io::copy(&mut there, &mut stream);
    stream.shutdown(std::net::Shutdown::Write).ok()
}
