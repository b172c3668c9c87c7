//! The origin: a server at the far end of a link, and a client that keeps its connections open.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use std::{fs, io};

use ascertain_netlab::http::Server;
use ascertain_netlab::installed::{Program, RunningProgram, caddy, nginx};
use ascertain_netlab::{Error, RunningLink};
use rustix::net::SocketType;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::spawn_local;
use tokio::time::timeout;

/// Timeout of a request. It is so long that even a busy machine answers before it.
const PATIENCE: Duration = Duration::from_secs(20);
const MOST_HEAD_BYTES: usize = 16 << 10;

/// Returns the program that the level `server` names, configured to listen at `address`; `None` for our own server.
pub fn program(server: &str, address: SocketAddr) -> Option<Program> {
    match server {
        "nginx" => Some(nginx(address, None)),
        "caddy" => Some(caddy(address, None)),
        _ => None,
    }
}

/// The server while it is running. Dropping this value stops the server.
pub enum Serving {
    Own { _server: Server },
    Installed { _running: RunningProgram },
}

/// A server that has the same object as the cache, and the client's connections to it.
pub struct Origin {
    _serving: Serving,
    link: Rc<RunningLink>,
    address: SocketAddr,
    path: String,
    idle: RefCell<Vec<TcpStream>>,
    /// Number of connections that are being opened in advance. They replace the connections that are closed when a
    /// request loses its race.
    opening: Cell<usize>,
    most_idle: usize,
}

impl Origin {
    /// Starts a server for an object of `bytes` bytes, at the far side of `link`. `server` is the level that names the
    /// program, and `port` is its port. The client keeps up to `most_idle` unused connections.
    ///
    /// # Errors
    /// Returns the error of the server.
    pub fn start(server: &str, link: Rc<RunningLink>, port: u16, bytes: u64, most_idle: usize) -> Result<Self, Error> {
        let address = SocketAddr::from((link.far().address(), port));
        let (serving, path) = match program(server, address) {
            None => {
                let listener = link.far().listen(address).map_err(Error::Server)?;
                (Serving::Own { _server: Server::start(listener, None)? }, format!("/bytes/{bytes}"))
            }
            Some(program) => {
                let running =
                    program.start_where(|command| link.far().enter(command), || link.near().connect(address))?;
                fs::write(running.folder().join("www/object"), vec![b'x'; bytes as usize]).map_err(Error::Server)?;
                (Serving::Installed { _running: running }, "/object".into())
            }
        };
        Ok(Self::new(serving, link, address, path, most_idle))
    }

    /// Creates a client for the object at `path` of the server `serving`, which listens at `address`. The client keeps
    /// up to `most_idle` unused connections.
    pub fn new(serving: Serving, link: Rc<RunningLink>, address: SocketAddr, path: String, most_idle: usize) -> Self {
        let (idle, opening) = Default::default();
        Self { _serving: serving, link, address, path, idle, opening, most_idle }
    }

    /// Requests the object over an unused connection, or over a new one. If the future is dropped, its connection is
    /// closed, and another connection is opened for the next request.
    ///
    /// # Errors
    /// Fails if the answer is invalid, or if it does not arrive before the timeout.
    pub async fn get(self: Rc<Self>) -> io::Result<Vec<u8>> {
        let mut lost = LostConnection(Some(self.clone()));
        let asking = async {
            let idle = self.idle.borrow_mut().pop();
            if let Some(mut stream) = idle {
                match exchange(&mut stream, &self.path).await {
                    Ok(answer) => return Ok((stream, answer)),
                    // An invalid answer is an error of the request. Any other error means that the server has closed
                    // the unused connection, so a new one is tried.
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error),
                    Err(_) => {}
                }
            }
            let mut stream = self.connect().await?;
            let answer = exchange(&mut stream, &self.path).await?;
            Ok((stream, answer))
        };
        let (stream, (body, stays_open)) = timeout(PATIENCE, asking).await.map_err(io::Error::from)??;
        lost.0 = None;
        if stays_open {
            self.idle.borrow_mut().push(stream);
        }
        Ok(body)
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let socket = std::net::TcpStream::from(self.link.near().socket(&self.address, SocketType::STREAM)?);
        socket.set_nonblocking(true)?;
        let stream = TcpSocket::from_std_stream(socket).connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Opens connections for later requests, until the number of those that are unused or being opened is `most_idle`.
    pub fn open_ahead(self: &Rc<Self>) {
        while self.opening.get() + self.idle.borrow().len() < self.most_idle {
            self.opening.set(self.opening.get() + 1);
            let origin = self.clone();
            spawn_local(async move {
                let opened = timeout(PATIENCE, origin.connect()).await;
                origin.opening.set(origin.opening.get() - 1);
                // Errors are ignored here, because the next request opens a connection itself and reports its error.
                origin.idle.borrow_mut().extend(opened.into_iter().flatten());
            });
        }
    }
}

/// A guard for the connection of a request. After a successful request, the guard holds `None`. If the request fails or
/// is cancelled, the guard is dropped while it holds the origin, and makes the origin open another connection.
struct LostConnection(Option<Rc<Origin>>);

impl Drop for LostConnection {
    fn drop(&mut self) {
        if let Some(origin) = self.0.take() {
            origin.open_ahead();
        }
    }
}

/// Sends a GET request. Returns the body of the answer, and whether the server keeps the connection open.
async fn exchange(stream: &mut TcpStream, path: &str) -> io::Result<(Vec<u8>, bool)> {
    let bad = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
    let mut bytes = Vec::with_capacity(MOST_HEAD_BYTES);
    let head_bytes = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if bytes.len() >= MOST_HEAD_BYTES {
            return Err(bad("the head of the answer is too long".into()));
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_bytes]).to_ascii_lowercase();
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(bad(format!("the answer begins with `{status}`")));
    }
    let field = |name| lines.clone().find_map(|line| line.strip_prefix(name).map(str::trim));
    let length = field("content-length:").and_then(|length| length.parse::<usize>().ok());
    let length = length.filter(|length| *length <= 1 << 30).ok_or_else(|| bad("the answer has no length".into()))?;
    let stays_open = field("connection:") != Some("close");
    let mut body = bytes.split_off(head_bytes);
    let had = body.len();
    if had > length {
        return Err(bad(format!("the answer is longer than {length} bytes")));
    }
    body.resize(length, 0);
    stream.read_exact(&mut body[had..]).await?;
    Ok((body, stays_open))
}
