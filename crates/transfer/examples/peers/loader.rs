//! A client that only sends or receives bytes. Its rate is the highest that the server allows.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::HttpRequestBody;

use crate::BUCKET;

/// Maximum number of bytes per read or write.
const STEP_BYTES: usize = 256 << 10;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// One request: the name of the object, and the first byte and the number of bytes that are requested of it.
type Request = (String, u64, u64);

/// Runs the loader with the arguments `put|get ADDRESS LIST CONNECTIONS REQUEST_BYTES`. The file `LIST` has a line
/// `BYTES NAME` for each object. Each request transfers at most `REQUEST_BYTES` bytes of one object.
pub fn run(arguments: &[String]) -> Result<()> {
    const USAGE: &str = "expected put|get ADDRESS LIST CONNECTIONS REQUEST_BYTES";
    let [way, address, list, connections, request_bytes] = arguments else { return Err(USAGE.into()) };
    let (address, is_put): (SocketAddr, bool) = (address.parse()?, way == "put");
    let (connections, request_bytes): (u64, u64) = (connections.parse()?, request_bytes.parse()?);
    let mut requests: Vec<Request> = Vec::new();
    for line in fs::read_to_string(list)?.lines() {
        let (bytes, name) = line.split_once(' ').ok_or("expected BYTES NAME in each line of the list")?;
        let bytes: u64 = bytes.parse()?;
        let offsets = (0..bytes).step_by(request_bytes as usize);
        requests.extend(offsets.map(|offset| (name.to_string(), offset, request_bytes.min(bytes - offset))));
    }
    let next = AtomicUsize::new(0);
    let connection = || {
        let (mut stream, mut block) = (TcpStream::connect(address)?, vec![7; STEP_BYTES]);
        stream.set_nodelay(true)?;
        while let Some(one) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
            request(&mut stream, &mut block, (address, is_put), one)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..connections).map(|_| scope.spawn(connection)).collect();
        all.into_iter().try_for_each(|one| one.join().map_err(|_| "a connection's thread panicked")?)
    })
}

/// Sends one request. Each PUT creates a separate object, so the server has no parts to assemble.
fn request(
    stream: &mut TcpStream,
    block: &mut [u8],
    (address, is_put): (SocketAddr, bool),
    (name, offset, bytes): &Request,
) -> Result<()> {
    let (offset, bytes) = (*offset, *bytes);
    let (method, name) = if is_put { ("PUT", format!("{name}-{offset}")) } else { ("GET", name.clone()) };
    let request = hyper::Request::builder().method(method).uri(format!("http://{address}/{BUCKET}/{name}"));
    let request = match is_put {
        true => request.header("content-length", bytes),
        false => request.header("range", format!("bytes={offset}-{}", offset + bytes - 1)),
    };
    let mut request = request.body(HttpRequestBody::empty())?;
    let secret = "minioadmin".to_string();
    let credential = AwsCredential { key_id: secret.clone(), secret_key: secret, token: None };
    AwsAuthorizer::new(&credential, "s3", "us-east-1").with_sign_payload(false).try_authorize(&mut request, None)?;
    let mut head = format!("{method} {} HTTP/1.1\r\nhost: {address}\r\n", request.uri().path()).into_bytes();
    for (name, value) in request.headers().iter().filter(|(name, _)| *name != "host") {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    stream.write_all(&[&head[..], b"\r\n"].concat())?;
    let steps = |bytes: u64| (0..bytes).step_by(STEP_BYTES).map(move |at| STEP_BYTES.min((bytes - at) as usize));
    if is_put {
        steps(bytes).try_for_each(|step| stream.write_all(&block[..step]))?;
    }
    // The first bytes of the body may arrive together with the head.
    let mut filled = 0;
    let head_bytes = loop {
        match stream.read(&mut block[filled..])? {
            0 => return Err("the answer is truncated".into()),
            read => filled += read,
        }
        if let Some(end) = block[..filled].windows(4).position(|end| end == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&block[..head_bytes]).into_owned();
    if !head.starts_with("HTTP/1.1 20") {
        return Err(head.into());
    }
    let expected = if is_put { 0 } else { bytes };
    let mut left = expected.saturating_sub((filled - head_bytes) as u64);
    while left > 0 {
        let most = STEP_BYTES.min(left as usize);
        match stream.read(&mut block[..most])? {
            0 => return Err("the answer is truncated".into()),
            read => left -= read as u64,
        }
    }
    Ok(())
}
