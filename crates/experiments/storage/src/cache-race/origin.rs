//! A server at the far side of a link, asked over connections that are kept open.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use std::{fs, io};

use ascertain_netlab::http::Server;
use ascertain_netlab::installed::{Program, Running, caddy, nginx};
use ascertain_netlab::{Error, RunningLink};
use rustix::net::SocketType;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::spawn_local;
use tokio::time::timeout;

/// Longer than any answer takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);
const MOST_HEAD_BYTES: usize = 16 << 10;

/// The program that stands behind a level of `server`; none for ours.
pub fn program(server: &str, address: SocketAddr) -> Option<Program> {
    match server {
        "nginx" => Some(nginx(address, None)),
        "caddy" => Some(caddy(address, None)),
        _ => None,
    }
}

/// Ended when dropped.
pub enum Serving {
    Own { _server: Server },
    Installed { _running: Running },
}

/// Who has the object that the cache has.
pub struct Origin {
    _serving: Serving,
    link: Rc<RunningLink>,
    address: SocketAddr,
    path: String,
    idle: RefCell<Vec<TcpStream>>,
    /// Connections that are being made for those to come, because a loser has taken its own with it.
    opening: Cell<usize>,
    most_idle: usize,
}

impl Origin {
    /// Such a server behind this link, with an object of that size.
    ///
    /// # Errors
    /// As the server says.
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
        Ok(Self::of(serving, link, address, path, most_idle))
    }

    /// What stands at that address, and is asked for that path.
    pub fn of(serving: Serving, link: Rc<RunningLink>, address: SocketAddr, path: String, most_idle: usize) -> Self {
        let (idle, opening) = Default::default();
        Self { _serving: serving, link, address, path, idle, opening, most_idle }
    }

    /// Asks for the object, on a connection that is open, or a new one. Dropped, it takes its connection with it, and
    /// another one is made for who comes next.
    ///
    /// # Errors
    /// What is no answer, or none in time.
    pub async fn get(self: Rc<Self>) -> io::Result<Vec<u8>> {
        let mut lost = Lost(Some(self.clone()));
        let asking = async {
            let idle = self.idle.borrow_mut().pop();
            if let Some(mut stream) = idle {
                match exchange(&mut stream, &self.path).await {
                    Ok(answer) => return Ok((stream, answer)),
                    // It had been closed meanwhile.
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

    /// Connections for those that will want one soon.
    pub fn open_ahead(self: &Rc<Self>) {
        while self.opening.get() + self.idle.borrow().len() < self.most_idle {
            self.opening.set(self.opening.get() + 1);
            let origin = self.clone();
            spawn_local(async move {
                let opened = timeout(PATIENCE, origin.connect()).await;
                origin.opening.set(origin.opening.get() - 1);
                // What can't be opened is told to who asks next.
                origin.idle.borrow_mut().extend(opened.into_iter().flatten());
            });
        }
    }
}

/// A request whose connection is of no more use.
struct Lost(Option<Rc<Origin>>);

impl Drop for Lost {
    fn drop(&mut self) {
        if let Some(origin) = self.0.take() {
            origin.open_ahead();
        }
    }
}

/// A GET by HTTP/1.1: the body, and whether the connection stays open.
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
            return Err(bad("the head of the answer has no end".into()));
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
