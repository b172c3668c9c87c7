//! The clients that are compared, with the settings of each.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use ascertain_sys::process::{Command, Output, Prepared};

use crate::BUCKET;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Put,
    Get,
}

/// A client, and the settings that are tried for it.
#[derive(Clone)]
pub struct Client {
    pub name: &'static str,
    pub version: String,
    put: Vec<Setting>,
    get: Vec<Setting>,
    /// Descriptions of the checksums that are compared, and of the side that compares them: for an upload, and for a
    /// download.
    pub checks: [&'static str; 2],
}

/// Name of the bare loader, a client that only sends or receives bytes. It appears in the table, and is the first
/// argument that starts the loader.
pub const LOADER: &str = "bare-loader";

/// Name of an unavailable client, and the reason.
pub type Missing = (&'static str, String);

/// Settings in words for the table, and the command that uses them.
#[derive(Clone)]
pub struct Setting {
    pub said: String,
    pub command: Command,
}

impl Client {
    pub fn settings(&self, way: Direction) -> &[Setting] {
        if way == Direction::Put { &self.put } else { &self.get }
    }
}

/// Returns the available clients, and the unavailable ones with the reason. Each client uses an object of its own,
/// named after the client. The first client is ours, and the last one is the loader.
pub fn all(
    program: &str,
    folder: &Path,
    server: SocketAddr,
    bytes: u64,
) -> Result<(Vec<Client>, Vec<Missing>), Box<dyn Error>> {
    let at = |name: &str| folder.join(name).display().to_string();
    let url = format!("http://{server}");
    let environment = [
        ("AWS_ACCESS_KEY_ID", "minioadmin"),
        ("AWS_SECRET_ACCESS_KEY", "minioadmin"),
        ("AWS_ENDPOINT_URL", &url),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_SHARED_CREDENTIALS_FILE", &at("nothing")),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("XDG_STATE_HOME", &at("state")),
        ("RCLONE_CONFIG", &at("nothing")),
        ("RCLONE_CONFIG_STORE_TYPE", "s3"),
        ("RCLONE_CONFIG_STORE_PROVIDER", "Minio"),
        ("RCLONE_CONFIG_STORE_ENV_AUTH", "true"),
        ("RCLONE_CONFIG_STORE_ENDPOINT", &url),
        ("RCLONE_CONFIG_STORE_REGION", "us-east-1"),
    ]
    .map(|(name, value)| (name.into(), value.into()));
    let command = |program: &str, words: &str, more: &[(&str, String)]| {
        let mut command = Command::new(program, &words.split(' ').collect::<Vec<_>>());
        command.env = environment.to_vec();
        command.env.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
        (command.stdout, command.stderr) = (Output::Memory, Output::Memory);
        command
    };
    let (source, got) = (at("source"), at("got"));
    let plain = |words: String| vec![Setting { said: "default".into(), command: command(program, &words, &[]) }];
    let ours = Client {
        name: "ascertain",
        version: env!("CARGO_PKG_VERSION").into(),
        put: plain(format!("put -q {source} s3://{BUCKET}/ascertain")),
        get: plain(format!("get -q s3://{BUCKET}/ascertain {got}")),
        checks: ["store, each part and the whole: CRC-64", "client, the whole: CRC-64"],
    };
    let (mut clients, mut missing) = (vec![ours], Vec::new());

    match version("aws", &["--version"]) {
        Ok(version) => {
            // Over plain HTTP, awscli would also hash the payload for the signature; these settings prevent it.
            let setting = |words: &str, said: String, settings: &str, copied: String| {
                let file = at(&format!("aws-{}", said.replace(' ', "-")));
                let text = format!("[default]\ns3 =\n  payload_signing_enabled = false\n{settings}");
                let command = command(
                    "aws",
                    &format!("s3 cp --only-show-errors {words}{copied}"),
                    &[("AWS_CONFIG_FILE", file.clone())],
                );
                fs::write(file, text).map(|()| Setting { said, command })
            };
            let put = [(8, 16), (8, 64), (4, 16)].map(|(requests, megabytes)| {
                let said = format!("{requests} × {megabytes} MB, payload not signed");
                let settings =
                    format!("  max_concurrent_requests = {requests}\n  multipart_chunksize = {megabytes}MB\n");
                let copied = format!("{source} s3://{BUCKET}/aws");
                setting("--checksum-algorithm CRC64NVME ", said, &settings, copied)
            });
            // awscli does not check the ranges of a parallel download, so its downloads use a single stream.
            let get = ["4MB", "1MB"].map(|chunk| {
                let settings = format!("  multipart_threshold = 8GB\n  io_chunksize = {chunk}\n");
                let copied = format!("s3://{BUCKET}/aws {got}");
                setting("", format!("one stream, chunks of {chunk}"), &settings, copied)
            });
            clients.push(Client {
                name: "awscli",
                version,
                put: put.into_iter().collect::<Result<_, _>>()?,
                get: get.into_iter().collect::<Result<_, _>>()?,
                checks: ["store, each part: CRC-64; it keeps that of the whole", "client, the whole: CRC-64"],
            });
        }
        Err(error) => missing.push(("awscli", error.to_string())),
    }

    match version("rclone", &["version"]) {
        Ok(version) => {
            let setting = |said: &str, rest: String| Setting {
                said: said.into(),
                command: command("rclone", &format!("copyto --ignore-times {said} {rest}"), &[]),
            };
            let put = [(4, 16), (8, 16)].map(|(requests, megabytes)| {
                let said = format!("--s3-upload-concurrency {requests} --s3-chunk-size {megabytes}M");
                setting(&said, format!("--s3-no-check-bucket {source} store:{BUCKET}/rclone"))
            });
            let get = ["--multi-thread-streams 4", "--multi-thread-streams 0"]
                .map(|said| setting(said, format!("store:{BUCKET}/rclone {got}")));
            clients.push(Client {
                name: "rclone",
                version,
                put: put.into(),
                get: get.into(),
                checks: ["store, each part: MD5; it keeps that of the whole", "client, the whole: MD5"],
            });
        }
        Err(error) => missing.push(("rclone", error.to_string())),
    }
    let own = std::env::current_exe()?.display().to_string();
    let load = |way: &str, connections: u64, request_bytes: u64| Setting {
        said: format!("{connections} × {:.0} MB", request_bytes as f64 / 1e6),
        command: command(&own, &format!("{LOADER} {way} {server} {bytes} {connections} {request_bytes}"), &[]),
    };
    clients.push(Client {
        name: LOADER,
        version: "sends and receives bytes, without files, checksums or assembled parts".into(),
        put: [(2, 16 << 20), (4, 16 << 20), (8, 16 << 20)].map(|(at_once, each)| load("put", at_once, each)).into(),
        get: [(1, bytes), (2, bytes / 2), (4, 16 << 20)].map(|(at_once, each)| load("get", at_once, each)).into(),
        checks: ["no side"; 2],
    });
    for name in ["s5cmd", "warp"] {
        missing.push((name, "not in the Go module proxy, PyPI, npm or Debian".into()));
    }
    Ok((clients, missing))
}

/// Returns the first line of a program's version output.
fn version(program: &str, arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let command = Command { stdout: Output::Memory, ..Command::new(program, arguments) };
    let prepared = Prepared::new(&command)?;
    prepared.run(None)?;
    let said = String::from_utf8_lossy(&prepared.captured_output()).into_owned();
    Ok(said.lines().next().ok_or("it prints no version")?.to_string())
}
