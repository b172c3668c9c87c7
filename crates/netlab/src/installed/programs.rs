//! Descriptions of server programs as plain data. Each server has a minimal configuration, and writes only to its own
//! folder.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::Program;
use crate::http::{CERTIFICATE_PEM, KEY_PEM, TlsVersion};

/// Time limit for a server to become ready. It is long, because the machine may be busy.
const LIMIT: Duration = Duration::from_secs(20);

fn program(name: &'static str, install: &'static str, arguments: &[&str], address: SocketAddr) -> Program {
    let arguments = arguments.iter().map(ToString::to_string).collect();
    Program { name, install, arguments, files: vec![], address, is_ready: |_| true, limit: LIMIT }
}

fn with_files<const N: usize>(program: Program, files: [(&str, String); N]) -> Program {
    Program { files: files.map(|(path, text)| (path.to_string(), text)).into(), ..program }
}

fn with_pages(program: Program, text: String) -> Program {
    let certificate = ("certificate.pem", CERTIFICATE_PEM.into());
    with_files(program, [("conf", text), ("www/", String::new()), certificate, ("key.pem", KEY_PEM.into())])
}

/// The web server nginx, which serves the files of the folder `www`. With `tls`, it speaks only this version of TLS,
/// offers HTTP/2 as well, and uses the certificate of this crate's servers.
pub fn nginx(address: SocketAddr, tls: Option<TlsVersion>) -> Program {
    nginx_with(address, tls, "")
}

/// The web server nginx with TLS 1.3. It passes its keys to the kernel if its OpenSSL was built for kernel TLS and the
/// kernel accepts the keys.
pub fn nginx_with_kernel_tls(address: SocketAddr) -> Program {
    nginx_with(address, Some(TlsVersion::V1_3), "ssl_conf_command Options KTLS;")
}

fn nginx_with(address: SocketAddr, tls: Option<TlsVersion>, also: &str) -> Program {
    // nginx runs as a single process, because its worker processes would survive if it were killed.
    let program =
        program("nginx", "apt-get install nginx", &["-p", "{folder}", "-c", "{folder}/conf", "-e", "stderr"], address);
    let (listen, tls) = match tls {
        None => ("", ""),
        Some(TlsVersion::V1_2) => (" ssl http2", "ssl_protocols TLSv1.2;"),
        Some(TlsVersion::V1_3) => (" ssl http2", "ssl_protocols TLSv1.3;"),
    };
    let text = format!(
        "daemon off; master_process off; pid {{folder}}/pid; error_log stderr warn;
events {{}}
http {{
  access_log off; tcp_nopush on; sendfile on; keepalive_requests 1000000000;
  client_body_temp_path {{folder}}/body; proxy_temp_path {{folder}}/proxy; fastcgi_temp_path {{folder}}/fastcgi;
  uwsgi_temp_path {{folder}}/uwsgi; scgi_temp_path {{folder}}/scgi;
  server {{
    listen {address}{listen}; {tls} {also}
    ssl_certificate {{folder}}/certificate.pem; ssl_certificate_key {{folder}}/key.pem;
    root {{folder}}/www;
  }}
}}
"
    );
    with_pages(program, text)
}

/// The web server Caddy, which serves the files of the folder `www`. With `tls`, it speaks only this version of TLS,
/// offers HTTP/2 as well, and uses the certificate of this crate's servers.
pub fn caddy(address: SocketAddr, tls: Option<TlsVersion>) -> Program {
    let arguments = ["run", "--config", "{folder}/conf", "--adapter", "caddyfile"];
    let (scheme, tls) = match tls {
        None => ("http", String::new()),
        Some(version) => {
            let name = if version == TlsVersion::V1_2 { "tls1.2" } else { "tls1.3" };
            let protocols = format!("protocols {name} {name}");
            ("https", format!("tls {{folder}}/certificate.pem {{folder}}/key.pem {{\n{protocols}\n}}"))
        }
    };
    let (host, port) = (address.ip(), address.port());
    let text = format!(
        "{{
  admin off
  auto_https off
}}
{scheme}://:{port} {{
  bind {host}
  {tls}
  root * {{folder}}/www
  file_server
}}
"
    );
    with_pages(program("caddy", "apt-get install caddy", &arguments, address), text)
}

/// The server of iperf3. [`Program::start`] connects to a server to check that it is ready. iperf3 takes this
/// connection for a measurement, which fails at once.
pub fn iperf3(address: SocketAddr) -> Program {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    program(
        "iperf3",
        "apt-get install iperf3",
        &["--server", "--forceflush", "--bind", &host, "--port", &port],
        address,
    )
}

/// The zone file of the name servers [`knot`], [`bind`] and [`nsd`].
const ZONE: &str = "\
$ORIGIN example.
$TTL 60
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A 192.0.2.1
www A 192.0.2.2
";

/// Returns whether the name server on this connection has loaded the zone. Some name servers accept queries earlier.
fn knows_zone(stream: TcpStream) -> bool {
    // A query for the SOA record of `example.`, preceded by its length.
    const QUESTION: &[u8] = b"\0\x19\0\x01\0\0\0\x01\0\0\0\0\0\0\x07example\0\0\x06\0\x01";
    // The lowest four bits of this byte are the response code.
    ask(stream, QUESTION).is_ok_and(|answer: [u8; 6]| answer[5] & 0x0f == 0)
}

fn with_zone(program: Program, text: String) -> Program {
    let program = Program { is_ready: knows_zone, ..program };
    with_files(program, [("conf", text), ("zone", ZONE.into())])
}

/// The name server Knot DNS, which serves the zone `example.`.
pub fn knot(address: SocketAddr) -> Program {
    let (host, port) = (address.ip(), address.port());
    let text = format!(
        "server:
  rundir: {{folder}}
  listen: {host}@{port}
log:
- target: stderr
  any: warning
database:
  storage: {{folder}}
zone:
- domain: example.
  storage: {{folder}}
  file: zone
"
    );
    let program = program("knotd", "apt-get install knot", &["--config", "{folder}/conf"], address);
    with_zone(program, text)
}

/// The name server BIND, which serves the zone `example.`.
pub fn bind(address: SocketAddr) -> Program {
    let (host, port) = (address.ip(), address.port());
    let (listen, not) = if address.is_ipv4() { ("listen-on", "listen-on-v6") } else { ("listen-on-v6", "listen-on") };
    let text = format!(
        "options {{
  directory \"{{folder}}\"; pid-file none; session-keyfile none; managed-keys-directory \"{{folder}}\";
  {listen} port {port} {{ {host}; }}; {not} {{ none; }};
  recursion no; dnssec-validation no;
}};
controls {{}};
zone \"example.\" {{ type primary; file \"zone\"; }};
"
    );
    let program = program("named", "apt-get install bind9", &["-g", "-c", "{folder}/conf"], address);
    with_zone(program, text)
}

/// The name server NSD, which serves the zone `example.`.
pub fn nsd(address: SocketAddr) -> Program {
    let (host, port) = (address.ip(), address.port());
    let text = format!(
        "server:
  ip-address: {host}@{port}
  username: \"\"
  chroot: \"\"
  zonesdir: \"{{folder}}\"
  database: \"\"
  pidfile: \"{{folder}}/pid\"
  xfrdfile: \"{{folder}}/xfrd\"
  xfrdir: \"{{folder}}\"
  zonelistfile: \"{{folder}}/zones\"
remote-control:
  control-enable: no
zone:
  name: example.
  zonefile: zone
"
    );
    let program = program("nsd", "apt-get install nsd", &["-d", "-c", "{folder}/conf"], address);
    with_zone(program, text)
}

/// MinIO, a store that speaks S3. Its user name and its password are `minioadmin`.
pub fn minio(address: SocketAddr) -> Program {
    let listen = address.to_string();
    let arguments = ["server", "--quiet", "--address", &listen, "--console-address", "127.0.0.1:0", "{folder}/data"];
    let program = program("minio", "go install github.com/minio/minio@latest", &arguments, address);
    Program { is_ready: is_refusing, ..program }
}

/// Returns whether MinIO is ready, which means that it answers a request without credentials with status 403. The
/// health check of MinIO succeeds too early.
fn is_refusing(stream: TcpStream) -> bool {
    let question = b"GET / HTTP/1.1\r\nhost: minio\r\n\r\n";
    ask(stream, question).is_ok_and(|answer: [u8; 12]| answer.ends_with(b" 403"))
}

/// Sends the request `question` over a connection, and returns the first `N` bytes of the answer.
fn ask<const N: usize>(mut stream: TcpStream, question: &[u8]) -> io::Result<[u8; N]> {
    let mut answer = [0; N];
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(question)?;
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// Azurite, a store that speaks any version of Azure's blob protocol. Its account is `devstoreaccount1`, with the key
/// [`AZURITE_KEY`]. Paths must begin with the account's name.
pub fn azurite(address: SocketAddr) -> Program {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let listen = ["--blobHost", &host, "--blobPort", &port];
    let how = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"];
    program("azurite-blob", "npm install --global azurite", &[&listen[..], &how].concat(), address)
}

/// The published key of Azurite's account `devstoreaccount1`.
pub const AZURITE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Creates a container in a running Azurite.
///
/// # Errors
/// Returns errors of the system. If Azurite refuses, the error contains Azurite's answer.
pub fn make_container(azurite: SocketAddr, name: &str) -> io::Result<()> {
    // The parameters of a URL that was signed with [`AZURITE_KEY`]. They allow the creation of containers until 2099.
    const SIGNED: &str = "sv=2020-12-06&ss=b&srt=c&sp=c&se=2099-01-01T00:00:00Z\
                          &sig=YrymX%2FPZTt92f5aA0cKsbQiJpptCggZGlzv5Y9JaJbw%3D";
    let mut stream = TcpStream::connect(azurite)?;
    let path = format!("/devstoreaccount1/{name}?restype=container&{SIGNED}");
    let head = format!("PUT {path} HTTP/1.1\r\nHost: {azurite}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 201") { Ok(()) } else { Err(io::Error::other(answer)) }
}
