//! Servers, as plain data: enough to be asked something, with nothing outside of their folders.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::Program;
use crate::http::{CERTIFICATE_PEM, KEY_PEM, TlsVersion};

/// The machine may be busy with other things.
const LIMIT: Duration = Duration::from_secs(20);

fn program(name: &'static str, install: &'static str, arguments: &[&str], address: SocketAddr) -> Program {
    let arguments = arguments.iter().map(ToString::to_string).collect();
    Program { name, install, arguments, files: vec![], address, is_ready: |_| true, limit: LIMIT }
}

fn with_files<const N: usize>(program: Program, files: [(&str, String); N]) -> Program {
    Program { files: files.map(|(path, text)| (path.to_string(), text)).into(), ..program }
}

/// nginx, with the files of the folder `www`. With TLS, which it speaks in this version alone, also HTTP/2, and with
/// the certificate of our own servers.
#[must_use]
pub fn nginx(address: SocketAddr, tls: Option<TlsVersion>) -> Program {
    nginx_with(address, tls, "")
}

/// The same by TLS 1.3, for which it gives the kernel its keys: where its OpenSSL was built so, and the kernel takes
/// them.
#[must_use]
pub fn nginx_with_kernel_tls(address: SocketAddr) -> Program {
    nginx_with(address, Some(TlsVersion::V1_3), "ssl_conf_command Options KTLS;")
}

fn nginx_with(address: SocketAddr, tls: Option<TlsVersion>, also: &str) -> Program {
    // One process, for the workers of one that is killed live on.
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
    with_files(program, [("conf", text), ("www/", String::new()), certificate(), key()])
}

/// Caddy, with the files of the folder `www`. With TLS, which it speaks in this version alone, also HTTP/2, and with
/// the certificate of our own servers.
#[must_use]
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
    let program = program("caddy", "apt-get install caddy", &arguments, address);
    with_files(program, [("conf", text), ("www/", String::new()), certificate(), key()])
}

fn certificate() -> (&'static str, String) {
    ("certificate.pem", CERTIFICATE_PEM.into())
}

fn key() -> (&'static str, String) {
    ("key.pem", KEY_PEM.into())
}

/// iperf3's server. What asks whether it is there is a test to it, which fails at once.
#[must_use]
pub fn iperf3(address: SocketAddr) -> Program {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    program(
        "iperf3",
        "apt-get install iperf3",
        &["--server", "--forceflush", "--bind", &host, "--port", &port],
        address,
    )
}

/// A zone with an address in it, for the servers of names below.
const ZONE: &str = "\
$ORIGIN example.
$TTL 60
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A 192.0.2.1
www A 192.0.2.2
";

/// Whether it knows the zone: some take questions before they have read it.
fn knows_zone(mut stream: TcpStream) -> bool {
    // The start of authority of `example.`, behind its length.
    const QUESTION: &[u8] = b"\0\x19\0\x01\0\0\0\x01\0\0\0\0\0\0\x07example\0\0\x06\0\x01";
    let mut answer = [0; 6];
    let mut ask = || {
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(QUESTION)?;
        stream.read_exact(&mut answer)
    };
    // Of the answer's head the lowest bits of its fourth byte say what went wrong.
    ask().is_ok() && answer[5] & 0x0f == 0
}

fn with_zone(program: Program, text: String) -> Program {
    let program = Program { is_ready: knows_zone, ..program };
    with_files(program, [("conf", text), ("zone", ZONE.into())])
}

/// Knot DNS, with the zone `example.`.
#[must_use]
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

/// BIND, with the zone `example.`.
#[must_use]
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

/// NSD, with the zone `example.`.
#[must_use]
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

/// MinIO, a store that speaks S3, with the user and password `minioadmin`.
#[must_use]
pub fn minio(address: SocketAddr) -> Program {
    let listen = address.to_string();
    let arguments = ["server", "--quiet", "--address", &listen, "--console-address", "127.0.0.1:0", "{folder}/data"];
    let program = program("minio", "go install github.com/minio/minio@latest", &arguments, address);
    Program { is_ready: is_refusing, ..program }
}

/// Whether it refuses who asks without a name: before it is ready it says so, even where it calls itself healthy.
fn is_refusing(mut stream: TcpStream) -> bool {
    let mut answer = [0; 12];
    let mut ask = || {
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: minio\r\n\r\n")?;
        stream.read_exact(&mut answer)
    };
    ask().is_ok() && answer.ends_with(b" 403")
}

/// Azurite, a store that speaks Azure's blobs, with the account `devstoreaccount1`, whose key is well known, in the
/// path. It takes any version of the protocol.
#[must_use]
pub fn azurite(address: SocketAddr) -> Program {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let listen = ["--blobHost", &host, "--blobPort", &port];
    let how = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"];
    program("azurite-blob", "npm install --global azurite", &[&listen[..], &how].concat(), address)
}

/// The key of the account `devstoreaccount1`, everybody's.
pub const AZURITE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Makes a container of an Azurite.
///
/// # Errors
/// As the system says, or with Azurite's answer.
pub fn make_container(azurite: SocketAddr, name: &str) -> io::Result<()> {
    // Signed with the key once and for all: it allows to make containers, until that year.
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
