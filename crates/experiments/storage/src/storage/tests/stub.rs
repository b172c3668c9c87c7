//! A web server that answers as a test wants, as the stubs in the public reports do. It checks no signature.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// The path and the query.
    pub path: String,
    pub body: Vec<u8>,
}

/// An answer of the stub.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The wait before the answer.
    pub delay: Duration,
    /// Number of bytes of the body after which the connection is closed.
    pub cut_after: Option<usize>,
}

impl Answer {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("ETag", "\"e\"".into())];
        Self { status, headers, body: body.into(), delay: Duration::ZERO, cut_after: None }
    }

    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

pub struct Stub {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Stub {
    /// Starts a stub. It ends with the test's process.
    pub fn new(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let (answer, of_thread) = (Arc::new(answer), seen.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, seen) = (answer.clone(), of_thread.clone());
                thread::spawn(move || serve(&stream, &*answer, &seen));
            }
        });
        Self { address, seen }
    }

    /// Returns a stub that keeps what was put, and passes each request to `change` after its usual answer was made.
    pub fn store(change: impl Fn(&Request, Answer) -> Answer + Send + Sync + 'static) -> Self {
        let objects: Mutex<std::collections::BTreeMap<String, Vec<u8>>> = Mutex::default();
        Self::new(move |request| {
            let mut objects = objects.lock().unwrap();
            let name = request.path.split('?').next().unwrap_or_default().to_string();
            let answer = match &*request.method {
                "PUT" => {
                    objects.insert(name, request.body.clone());
                    Answer::new(200, "")
                }
                "GET" if request.path.contains('?') => Answer::new(501, "<Error><Code>NotImplemented</Code></Error>"),
                "GET" | "HEAD" => match objects.get(&name) {
                    Some(body) => Answer::new(200, body.clone()),
                    None => Answer::new(404, "<Error><Code>NoSuchKey</Code></Error>"),
                },
                "DELETE" => {
                    objects.remove(&name);
                    Answer::new(204, "")
                }
                _ => Answer::new(501, "<Error><Code>NotImplemented</Code></Error>"),
            };
            drop(objects);
            change(request, answer)
        })
    }

    /// Returns the address of a bucket of this stub, as a level of `url`.
    pub fn url(&self) -> String {
        format!("s3+http://{}/bucket/mine", self.address)
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, answer: &dyn Fn(&Request) -> Answer, seen: &Mutex<Vec<Request>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let (method, rest) = line.split_once(' ')?;
        let (method, path) = (method.to_string(), rest.split(' ').next()?.to_string());
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            if header.trim().is_empty() {
                break;
            }
            let (name, value) = header.split_once(':')?;
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let request = Request { method, path, body };
        seen.lock().unwrap().push(request.clone());
        let answer = answer(&request);
        thread::sleep(answer.delay);
        let mut head = format!("HTTP/1.1 {} X\r\nContent-Length: {}\r\n", answer.status, answer.body.len());
        answer.headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        let mut stream = stream;
        let mut whole = (head + "\r\n").into_bytes();
        if request.method != "HEAD" {
            whole.extend(&answer.body[..answer.cut_after.unwrap_or(answer.body.len())]);
        }
        stream.write_all(&whole).ok()?;
        if answer.cut_after.is_some() {
            return None;
        }
    }
}
