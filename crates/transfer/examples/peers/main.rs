//! Compares `ascertain put` and `get` with s5cmd, rclone and awscli, against MinIO on loopback. Prints Markdown.
//!
//! `cargo xtask bench transfer` installs the clients and runs this program. For each row of the table, every setting of
//! every client is tried once, which also warms the caches; only the fastest setting of each client is compared. Then
//! each round runs every client once, in random order. A client that is much slower than the fastest one in each of the
//! first rounds does not run in the later ones.
//!
//! The CPU time of a client is that of its process and of the children that it waited for, according to the kernel. The
//! CPU time of the server is that of its process during the command, from `/proc`. After each command, the number of
//! files or objects and their bytes are compared with the source. The contents are compared once for each client and
//! row. A bare loader, which only sends and receives bytes, shows the highest rate of the server.
//!
//! All clients download the same objects, which `ascertain put` has uploaded.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod clients;
mod loader;
mod proxy;
mod rows;
mod table;

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ascertain_netlab::installed::{RunningProgram, minio, start_anywhere};
use ascertain_sys::process::{Command, Exit, Prepared};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use clients::{Client, Job, LOADER, NAMES};
use rows::{Direction, Place, ROWS, Row};

/// Timeout of one command, which even a busy machine does not reach.
const LIMIT: Duration = Duration::from_secs(900);
/// A client that took this many times as long as the fastest one, in each of the first [`SLOW_ROUNDS`] rounds, is not
/// measured further. It would use most of the time of the bench, and cannot become the fastest peer.
const SLOW: f64 = 2.5;
/// Number of rounds after which slow clients are left out.
const SLOW_ROUNDS: usize = 3;
/// Name of the bucket that all clients use.
const BUCKET: &str = "bucket";

const USAGE: &str = "\
peers ASCERTAIN [OPTION …]

--rows ROW,…        measure only these rows
--clients CLIENT,…  compare ascertain only with these clients
--rounds N          number of rounds (default 10)
--tiny              use files so small that only the bench itself is tested";

/// The options of this program.
struct Arguments {
    rows: Vec<&'static Row>,
    clients: Vec<&'static str>,
    rounds: usize,
    is_tiny: bool,
}

/// The measurement of one command.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    wall_s: f64,
    client_s: f64,
    server_s: f64,
    /// CPU time that other processes left to the client and the server.
    free_s: f64,
}

/// One client in one row, with its measurements.
struct Arm {
    client: Client,
    /// The settings that were tried, each with its wall time in seconds.
    tried: Vec<(String, f64)>,
    /// Index of the fastest setting.
    setting: usize,
    took: Vec<Measurement>,
    /// The reason why this client is not measured any more.
    failure: Option<String>,
}

/// A row with its measurements.
struct MeasuredRow {
    title: String,
    arms: Vec<Arm>,
}

/// The server, and the folders of the bench.
struct Bench {
    server: RunningProgram,
    /// Address of the proxy that limits each connection.
    proxy: SocketAddr,
    folder: tempfile::TempDir,
    /// Folder on a disk for [`Place::Ext4`].
    on_disk: tempfile::TempDir,
    /// Description of the disk.
    disk: String,
    ours: String,
    is_tiny: bool,
}

/// The files of a row.
struct Source {
    folder: PathBuf,
    /// The path of each file below the folder, and its size.
    files: Vec<(String, u64)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [ours, rest @ ..] = &*words else { return Err(USAGE.into()) };
    if ours == LOADER {
        return loader::run(rest).map_err(|error| error.to_string().into());
    }
    let arguments = Arguments::parse(rest)?;
    let bench = Bench::new(ours, arguments.is_tiny)?;
    let (clients, missing) = clients::all(&arguments.clients, ours, bench.folder.path(), bench.proxy);
    let seed = ascertain_sys::clock::unix_ns();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut measured = Vec::new();
    for row in &arguments.rows {
        eprintln!("{}", row.name());
        let done = bench.measure_row(row, &clients, arguments.rounds, &mut random)?;
        eprintln!("{}", table::line(&done));
        measured.push(done);
    }
    print!("{}", table::page(&measured, &clients, &missing, seed, bench.server.folder()));
    let failures = measured.iter().flat_map(|row| row.arms.iter().filter_map(|arm| arm.failure.as_deref()));
    let failures: Vec<&str> = failures.collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

impl Arguments {
    fn parse(words: &[String]) -> Result<Self, Box<dyn Error>> {
        let mut parsed = Arguments { rows: ROWS.iter().collect(), clients: NAMES.into(), rounds: 10, is_tiny: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value\n{USAGE}"));
            match &**word {
                "--rows" => parsed.rows = chosen(value()?, &ROWS.iter().collect::<Vec<_>>(), |row| row.name())?,
                "--clients" => {
                    parsed.clients = chosen(&format!("ascertain,{}", value()?), &NAMES, ToString::to_string)?;
                }
                "--rounds" => {
                    let rounds = value()?;
                    let number = rounds.parse().ok().filter(|number| *number > 0);
                    parsed.rounds = number.ok_or(format!("--rounds needs a number above 0, not `{rounds}`"))?;
                }
                "--tiny" => parsed.is_tiny = true,
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(parsed)
    }
}

/// Returns the elements of `all` that the comma-separated `list` names, in the order of `all`.
fn chosen<T: Copy>(list: &str, all: &[T], name: impl Fn(&T) -> String) -> Result<Vec<T>, String> {
    let known: Vec<String> = all.iter().map(&name).collect();
    if let Some(unknown) = list.split(',').find(|wanted| known.iter().all(|known| known != wanted)) {
        return Err(format!("`{unknown}` is unknown; known are {}", known.join(", ")));
    }
    Ok(all.iter().copied().filter(|one| list.split(',').any(|wanted| wanted == name(one))).collect())
}

impl Bench {
    fn new(ours: &str, is_tiny: bool) -> Result<Self, Box<dyn Error>> {
        let server = start_anywhere(minio)?;
        // MinIO treats each folder in its data folder as a bucket.
        fs::create_dir(server.folder().join("data").join(BUCKET))?;
        let proxy = proxy::start(server.address())?;
        let (disk_folder, kind) = table::disk_folder()?;
        let on_disk = tempfile::tempdir_in(&disk_folder)?;
        let disk = format!("{kind} ({})", disk_folder.display());
        Ok(Self { server, proxy, folder: tempfile::tempdir()?, on_disk, disk, ours: ours.into(), is_tiny })
    }

    fn measure_row(
        &self,
        row: &'static Row,
        clients: &[Client],
        rounds: usize,
        random: &mut Xoshiro256PlusPlus,
    ) -> Result<MeasuredRow, Box<dyn Error>> {
        let source = Source::new(row, self.folder.path().join("source"), self.is_tiny)?;
        if row.way == Direction::Get {
            self.upload(&source)?;
        }
        source
            .write_list(&self.folder.path().join("objects"), if row.way == Direction::Put { "put" } else { "get" })?;
        let mut arms: Vec<Arm> = clients.iter().map(|client| self.try_settings(client, row, &source)).collect();
        for round in 0..rounds {
            let is_slow = slow(&arms);
            let arms = arms.iter_mut().zip(is_slow);
            let mut order: Vec<&mut Arm> =
                arms.filter(|(arm, is_slow)| arm.failure.is_none() && !is_slow).map(|(arm, _)| arm).collect();
            order.shuffle(random);
            for arm in order {
                let setting = arm.tried[arm.setting].0.clone();
                match self.measure(&arm.client, &setting, row, &source, false) {
                    Ok(took) => arm.took.push(took),
                    Err(error) => arm.failure = Some(failure(row, arm.client.name, &setting, &*error)),
                }
            }
            eprint!("\r  round {} of {rounds}", round + 1);
        }
        eprintln!();
        for entry in fs::read_dir(self.on_disk.path())? {
            remove(&entry?.path())?;
        }
        fs::remove_dir_all(&source.folder)?;
        self.remove_objects()?;
        Ok(MeasuredRow { title: row.title(&self.disk), arms })
    }

    /// Tries each setting of a client once, until one fails. The contents are compared after the first try.
    fn try_settings(&self, client: &Client, row: &Row, source: &Source) -> Arm {
        let mut arm = Arm { client: client.clone(), tried: Vec::new(), setting: 0, took: Vec::new(), failure: None };
        for setting in client.settings(row) {
            match self.measure(client, &setting, row, source, arm.tried.is_empty()) {
                Ok(took) => arm.tried.push((setting, took.wall_s)),
                Err(error) => {
                    arm.failure = Some(failure(row, client.name, &setting, &*error));
                    break;
                }
            }
        }
        let fastest = (0..arm.tried.len()).min_by(|a, b| arm.tried[*a].1.total_cmp(&arm.tried[*b].1));
        arm.setting = fastest.unwrap_or(0);
        arm
    }

    /// Runs a client once, and checks that it has transferred everything.
    fn measure(
        &self,
        client: &Client,
        setting: &str,
        row: &Row,
        source: &Source,
        compares_contents: bool,
    ) -> Result<Measurement, Box<dyn Error>> {
        let is_put = row.way == Direction::Put;
        let key = if is_put { "put" } else { "get" };
        let folder = if row.place == Place::Ext4 { self.on_disk.path() } else { self.folder.path() };
        let got = folder.join("got");
        // The results of the previous command must not take memory, or keep the disk busy, while the clock runs.
        if row.place == Place::Ext4 && got.exists() {
            // For some minutes, ext4 does not use the inodes of removed files again, and each new file has to search
            // past them. So these results are removed at the end of the row.
            let count = fs::read_dir(folder)?.count();
            fs::rename(&got, folder.join(format!("got-{count}")))?;
        }
        remove(&got)?;
        fs::create_dir(&got)?;
        if is_put {
            self.remove_objects()?;
        }
        if row.place == Place::Ext4 {
            rustix::fs::sync();
        }
        let server = if row.place == Place::Capped { self.proxy } else { self.server.address() };
        let job = Job { row, server, folder: self.folder.path(), source: &source.folder, key, got: got.clone() };
        let command = client.command(setting, &job)?;
        let (before_s, before) = (server_s(self.server.pid())?, MachineTime::now()?);
        let usage = run(&command)?;
        let (server_s, machine) = (server_s(self.server.pid())? - before_s, MachineTime::now()?);
        let client_s = (usage.user_ns + usage.system_ns) as f64 / 1e9;
        if client.name != LOADER {
            if is_put {
                check::objects(self.server.address(), key, &source.files)?;
            }
            if is_put && compares_contents {
                self.download(&got)?;
            }
            if !is_put || compares_contents {
                check::files(&got, &source.files)?;
            }
            if compares_contents {
                check::contents(&source.folder, &got, &source.files)?;
            }
        }
        let others_s = (machine.busy_s - before.busy_s - client_s - server_s).max(0.0);
        let free_s = machine.total_s - before.total_s - others_s;
        Ok(Measurement { wall_s: usage.wall_ns as f64 / 1e9, client_s, server_s, free_s })
    }

    /// Runs our own client to upload the files of a row, so that all clients can download them.
    fn upload(&self, source: &Source) -> Result<(), Box<dyn Error>> {
        self.run_ours("put", &source.folder, "get", &self.folder.path().join("got"))
    }

    /// Runs our own client to download what another client has uploaded.
    fn download(&self, got: &Path) -> Result<(), Box<dyn Error>> {
        self.run_ours("get", Path::new(""), "put", got)
    }

    /// Transfers a whole folder with our own client.
    fn run_ours(&self, verb: &str, source: &Path, key: &str, got: &Path) -> Result<(), Box<dyn Error>> {
        let folder = rows::ROWS.iter().find(|row| row.way.verb() == verb && !row.files.is_single());
        let row = folder.ok_or("no row has a folder")?;
        let (clients, _) = clients::all(&["ascertain"], &self.ours, self.folder.path(), self.proxy);
        let client = clients.first().ok_or("our own client is missing")?;
        let (folder, server) = (self.folder.path(), self.server.address());
        run(&client.command("default", &Job { row, server, folder, source, key, got: got.into() })?).map(drop)
    }

    /// Removes all objects, and the overwritten and removed ones that MinIO keeps for five minutes. They would fill the
    /// memory.
    fn remove_objects(&self) -> Result<(), Box<dyn Error>> {
        let data = self.server.folder().join("data");
        for folder in [data.join(BUCKET), data.join(".minio.sys/tmp/.trash")] {
            for entry in fs::read_dir(folder)? {
                remove(&entry?.path())?;
            }
        }
        Ok(())
    }
}

impl Source {
    /// Creates the files of a row.
    fn new(row: &Row, folder: PathBuf, is_tiny: bool) -> Result<Self, Box<dyn Error>> {
        fs::create_dir_all(&folder)?;
        Ok(Self { files: row.files.create(&folder, is_tiny)?, folder })
    }

    /// Writes the list of objects that the bare loader reads.
    fn write_list(&self, path: &Path, key: &str) -> Result<(), Box<dyn Error>> {
        let lines = self.files.iter().map(|(name, bytes)| format!("{bytes} {key}/{name}\n"));
        Ok(fs::write(path, lines.collect::<String>())?)
    }
}

/// Returns, for each arm, whether it was slow in each of the first rounds.
fn slow(arms: &[Arm]) -> Vec<bool> {
    let fastest_s = |round: usize| {
        let times = arms.iter().filter(|arm| arm.client.name != LOADER).filter_map(|arm| arm.took.get(round));
        times.map(|took| took.wall_s).fold(f64::INFINITY, f64::min)
    };
    let is_slow = |arm: &Arm| {
        arm.took.len() >= SLOW_ROUNDS && (0..SLOW_ROUNDS).all(|round| arm.took[round].wall_s > SLOW * fastest_s(round))
    };
    arms.iter().map(is_slow).collect()
}

fn failure(row: &Row, client: &str, setting: &str, error: &dyn Error) -> String {
    format!("{}: {client} ({setting}) failed: {error}", row.name())
}

/// Removes a file or a folder, if it exists.
fn remove(path: &Path) -> std::io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

/// Runs a command. Fails if the command fails.
fn run(command: &Command) -> Result<ascertain_sys::process::Usage, Box<dyn Error>> {
    let prepared = Prepared::new(command)?;
    let usage = prepared.run(Some(LIMIT))?;
    if usage.exit != Exit::Code(0) {
        let output = prepared.captured_output();
        let words = [vec![command.program.clone()], command.args.clone()].concat();
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        return Err(format!("{}: {:?}: {}", words.join(" "), usage.exit, String::from_utf8_lossy(&output)).into());
    }
    Ok(usage)
}

/// Number of ticks per second. Ticks are the unit of CPU times in `/proc` (`USER_HZ`), and have the same length on
/// every Linux machine.
const TICKS_A_SECOND: f64 = 100.0;

/// Returns the CPU time in seconds that a process has used since its start.
fn server_s(pid: u32) -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the name of the program, in parentheses, and may contain spaces.
    let fields = stat.rsplit_once(") ").ok_or("no name in stat")?.1.split(' ');
    let ticks = fields.skip(11).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / TICKS_A_SECOND)
}

/// The time of all CPUs since the start of the machine.
#[derive(Clone, Copy)]
struct MachineTime {
    total_s: f64,
    /// The part in which a CPU was not idle, or in which the hypervisor ran something else.
    busy_s: f64,
}

impl MachineTime {
    fn now() -> Result<Self, Box<dyn Error>> {
        let stat = fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().and_then(|line| line.strip_prefix("cpu ")).ok_or("no CPUs in /proc/stat")?;
        // User, nice, system, idle, waiting for a disk, interrupts, soft interrupts, stolen; guests are in the first.
        let fields = line.split_whitespace().take(8).map(str::parse::<f64>).collect::<Result<Vec<_>, _>>()?;
        let total: f64 = fields.iter().sum();
        let idle: f64 = fields.iter().skip(3).take(2).sum();
        Ok(Self { total_s: total / TICKS_A_SECOND, busy_s: (total - idle) / TICKS_A_SECOND })
    }
}
