//! The clients that are compared, with the settings of each.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use ascertain_sys::process::{Command, Exit, Output, Prepared};

use crate::BUCKET;
use crate::proxy::HAS_SEEN_CRT;
use crate::rows::{Direction, Place, Row};

/// Name of the bare loader, a client that only sends or receives bytes. The name appears in the table. With this name
/// as its first argument, this program runs the loader.
pub const LOADER: &str = "bare-loader";

/// Names of all clients. The first client is ours, and the last one is the loader; the others are its peers.
pub const NAMES: [&str; 5] = ["ascertain", "s5cmd", "rclone", "awscli", LOADER];

/// Version 2 of awscli, as Debian installs it. It can use AWS's Common Runtime (CRT) for transfers.
const AWS_2: &str = "/usr/bin/aws";
/// Environment variable with a folder that contains only the Python package awscrt, for [`AWS_2`]. Debian's own awscrt
/// ignores the port of the server.
const AWSCRT: &str = "PEERS_AWSCRT";
/// First word of the settings that use [`AWS_2`] with the CRT.
const CRT: &str = "CRT";

/// A client that is installed.
#[derive(Clone, Debug)]
pub struct Client {
    pub name: &'static str,
    /// Path or name of the program.
    program: String,
    pub version: String,
    /// `true` if this is awscli, and [`AWS_2`] uses the CRT.
    has_crt: bool,
}

/// One transfer: the server, and the places of the files.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    pub row: &'a Row,
    pub server: SocketAddr,
    /// Folder for the files of the bench, such as configurations.
    pub folder: &'a Path,
    /// Folder with the source files.
    pub source: &'a Path,
    /// Prefix of the objects in the bucket, without a slash at the end.
    pub key: &'a str,
    /// Folder for the downloaded files.
    pub got: PathBuf,
}

/// Returns the available clients among `names`, and for each unavailable one its name and the reason. `folder` and
/// `proxy` are used for a test transfer, which shows whether awscli uses the CRT.
pub fn all(names: &[&str], ours: &str, folder: &Path, proxy: SocketAddr) -> (Vec<Client>, Vec<String>) {
    let (mut clients, mut missing) = (Vec::new(), Vec::new());
    for name in NAMES.into_iter().filter(|name| names.contains(name)) {
        match Client::find(name, ours, folder, proxy) {
            Ok(client) => clients.push(client),
            Err(error) => missing.push(format!("{name}: unavailable: {error}")),
        }
    }
    (clients, missing)
}

impl Client {
    fn find(name: &'static str, ours: &str, folder: &Path, proxy: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let client = |program: &str, version: String| Client { name, program: program.into(), version, has_crt: false };
        match name {
            "ascertain" => Ok(client(ours, version(ours, "--version")?)),
            "s5cmd" => Ok(client("s5cmd", version("s5cmd", "version")?)),
            "rclone" => Ok(client("rclone", version("rclone", "version")?)),
            "awscli" => {
                let first = version("aws", "--version")?;
                let found = client("aws", format!("{first}; its own transfers never use the CRT"));
                let Ok(second) = version(AWS_2, "--version") else {
                    return Ok(Client { version: format!("{}; {AWS_2} is not installed", found.version), ..found });
                };
                let is_engaged = crt_engages(folder, proxy)?;
                let engaged = if is_engaged { "the CRT engages" } else { "the CRT does not engage, so it is not used" };
                let version = format!("{}; and {second}: {engaged}", found.version);
                Ok(Client { version, has_crt: is_engaged, ..found })
            }
            _ => {
                let own = std::env::current_exe()?.display().to_string();
                Ok(client(&own, "sends and receives bytes, without files, checksums or assembled parts".into()))
            }
        }
    }

    /// Returns the settings that are tried for this row of the table, as options of the client. They were chosen on a
    /// machine with two CPUs.
    pub fn settings(&self, row: &Row) -> Vec<String> {
        let is_put = row.way == Direction::Put;
        let is_capped = row.place == Place::Capped;
        let settings: &[&str] = match (self.name, row.files.is_single(), is_put, is_capped) {
            ("ascertain", ..) => &["default"],
            ("s5cmd", true, true, true) => &["-c 16 -p 5"],
            ("s5cmd", true, false, true) => &["-c 64 -p 1", "-c 16 -p 4"],
            ("s5cmd", true, true, false) => &["-c 4 -p 16", "-c 8 -p 16", "-c 4 -p 50"],
            ("s5cmd", true, false, false) => &["-c 2 -p 64", "-c 4 -p 16", "-c 8 -p 50"],
            ("s5cmd", false, ..) => &["--numworkers 8", "--numworkers 32", "--numworkers 256"],
            ("rclone", true, true, true) => &["--s3-upload-cutoff 5M --s3-upload-concurrency 16 --s3-chunk-size 5M"],
            ("rclone", true, false, true) => &[
                "--multi-thread-cutoff 1M --multi-thread-streams 64 --multi-thread-chunk-size 1M",
                "--multi-thread-cutoff 1M --multi-thread-streams 16 --multi-thread-chunk-size 4M",
            ],
            ("rclone", true, true, false) => &[
                "--s3-upload-cutoff 16M --s3-upload-concurrency 4 --s3-chunk-size 16M",
                "--s3-upload-cutoff 16M --s3-upload-concurrency 8 --s3-chunk-size 32M",
                "--s3-upload-cutoff 5G",
            ],
            ("rclone", true, false, false) => &[
                "--multi-thread-cutoff 16M --multi-thread-streams 2 --multi-thread-chunk-size 64M",
                "--multi-thread-cutoff 16M --multi-thread-streams 4 --multi-thread-chunk-size 16M",
                "--multi-thread-streams 0",
            ],
            ("rclone", false, ..) => {
                &["--transfers 8 --checkers 8", "--transfers 32 --checkers 8", "--transfers 64 --checkers 16"]
            }
            ("awscli", true, true, true) => &["max_concurrent_requests=16 multipart_chunksize=5MB"],
            ("awscli", true, false, true) => &["max_concurrent_requests=64 multipart_chunksize=1MB"],
            ("awscli", true, true, false) => &[
                "max_concurrent_requests=4 multipart_chunksize=16MB",
                "max_concurrent_requests=8 multipart_chunksize=64MB",
            ],
            ("awscli", true, false, false) => {
                &["max_concurrent_requests=4 multipart_chunksize=16MB", "multipart_threshold=8GB io_chunksize=4MB"]
            }
            ("awscli", false, ..) => &["max_concurrent_requests=10"],
            (_, true, _, true) => &["32 1048576"],
            (_, true, true, false) => &["4 16777216", "8 16777216"],
            (_, true, false, false) => &["2 536870912", "4 16777216"],
            (_, false, ..) => &["8 16777216", "32 16777216"],
        };
        let mut settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        if self.has_crt {
            // The CRT chooses the number of connections from the bandwidth.
            settings.push(format!(
                "{CRT} target_bandwidth=1GB/s{}",
                if is_capped { " multipart_chunksize=5MB" } else { "" }
            ));
        }
        settings
    }

    /// Returns the command that does `job` with the given setting.
    pub fn command(&self, setting: &str, job: &Job) -> Result<Command, Box<dyn Error>> {
        let Job { row, server, folder, source, key, .. } = job;
        let url = format!("http://{server}");
        let is_put = row.way == Direction::Put;
        // A folder ends with a slash; a row with a single file names the file.
        let name = if row.files.is_single() { "00000" } else { "" };
        let local = if is_put { source.join(name) } else { job.got.join(name) }.display().to_string();
        let remote = format!("{BUCKET}/{key}/{name}");
        let between = |remote: String| if is_put { [local.clone(), remote] } else { [remote, local.clone()] };
        let split = |words: &str| words.split_whitespace().map(String::from).collect::<Vec<_>>();
        let mut program = self.program.clone();
        let mut environment = vec![];
        let arguments = match self.name {
            "ascertain" => {
                [split(&format!("{} -q", row.way.verb())), between(format!("s3://{remote}")).into()].concat()
            }
            "s5cmd" => {
                let (workers, copying) = if name.is_empty() { (setting, "") } else { ("", setting) };
                let remote = if is_put || !name.is_empty() { remote } else { format!("{remote}*") };
                let words = split(&format!("--endpoint-url {url} --log error {workers} cp {copying}"));
                [words, between(format!("s3://{remote}")).into()].concat()
            }
            "rclone" => {
                // Without these options, rclone lists the target, signs a hash of the bytes, requests each object by
                // HEAD, and computes and compares MD5.
                let fast = if is_put {
                    "--s3-no-check-bucket --s3-no-head --s3-use-unsigned-payload true --s3-disable-checksum"
                } else {
                    "--ignore-checksum --use-server-modtime --inplace"
                };
                let verb = if name.is_empty() { "copy" } else { "copyto" };
                let words = split(&format!("{verb} --no-check-dest {fast} {setting}"));
                [words, between(format!("store:{remote}")).into()].concat()
            }
            "awscli" => {
                let (is_crt, settings) = match setting.strip_prefix(CRT) {
                    Some(settings) => (true, format!("preferred_transfer_client=crt{settings}")),
                    None => (false, format!("payload_signing_enabled=false {setting}")),
                };
                if is_crt {
                    program = AWS_2.into();
                    environment.push(("PYTHONPATH", std::env::var(AWSCRT).unwrap_or_default()));
                }
                let file = folder.join("aws.config");
                let settings =
                    settings.split_whitespace().map(|setting| format!("  {}\n", setting.replace('=', " = ")));
                fs::write(&file, format!("[default]\ns3 =\n{}", settings.collect::<String>()))?;
                environment.push(("AWS_CONFIG_FILE", file.display().to_string()));
                let recursive = if name.is_empty() { "--recursive" } else { "" };
                let words = split(&format!("--endpoint-url {url} s3 cp --only-show-errors {recursive}"));
                [words, between(format!("s3://{remote}")).into()].concat()
            }
            _ => {
                let list = folder.join("objects").display().to_string();
                split(&format!("{LOADER} {} {server} {list} {setting}", row.way.verb()))
            }
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = Command::new(&program, &arguments);
        let nothing = folder.join("nothing").display().to_string();
        environment.extend([
            ("AWS_ACCESS_KEY_ID", "minioadmin".into()),
            ("AWS_SECRET_ACCESS_KEY", "minioadmin".into()),
            ("AWS_ENDPOINT_URL", url.clone()),
            ("AWS_DEFAULT_REGION", "us-east-1".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_SHARED_CREDENTIALS_FILE", nothing.clone()),
            ("AWS_EC2_METADATA_DISABLED", "true".into()),
            ("XDG_STATE_HOME", folder.join("state").display().to_string()),
            ("RCLONE_CONFIG", nothing.clone()),
            ("RCLONE_CONFIG_STORE_TYPE", "s3".into()),
            ("RCLONE_CONFIG_STORE_PROVIDER", "Minio".into()),
            ("RCLONE_CONFIG_STORE_ENV_AUTH", "true".into()),
            ("RCLONE_CONFIG_STORE_ENDPOINT", url),
            ("RCLONE_CONFIG_STORE_REGION", "us-east-1".into()),
        ]);
        if self.name == "awscli" {
            // The peers are compared at their fastest, so awscli computes no checksums.
            environment.push(("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required".into()));
            environment.push(("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_required".into()));
        } else {
            environment.push(("AWS_CONFIG_FILE", nothing.clone()));
        }
        command.env = environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        (command.stdout, command.stderr) = (Output::Memory, Output::Memory);
        Ok(command)
    }
}

/// Transfers a file with [`AWS_2`] over the proxy, and returns whether the CRT transferred it.
fn crt_engages(folder: &Path, proxy: SocketAddr) -> Result<bool, Box<dyn Error>> {
    let row = Row { way: Direction::Put, files: &crate::rows::MEGABYTES_60, place: Place::Capped };
    let source = folder.join("crt");
    fs::create_dir_all(&source)?;
    fs::write(source.join("00000"), "a small file")?;
    let client = Client { name: "awscli", program: String::new(), version: String::new(), has_crt: false };
    let job = Job { row: &row, server: proxy, folder, source: &source, key: "crt", got: PathBuf::new() };
    let usage = Prepared::new(&client.command(CRT, &job)?)?.run(Some(crate::LIMIT))?;
    Ok(usage.exit == Exit::Code(0) && HAS_SEEN_CRT.load(Ordering::Relaxed))
}

/// Returns the first line of a program's version output.
pub fn version(program: &str, argument: &str) -> Result<String, Box<dyn Error>> {
    let command = Command { stdout: Output::Memory, ..Command::new(program, &[argument]) };
    let prepared = Prepared::new(&command)?;
    prepared.run(None)?;
    let said = String::from_utf8_lossy(&prepared.captured_output()).into_owned();
    Ok(said.lines().next().ok_or("it prints no version")?.trim().to_string())
}
