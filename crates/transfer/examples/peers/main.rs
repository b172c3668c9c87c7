//! Compares `ascertain put` and `get` of 1 GB with awscli and rclone, against MinIO on loopback. Prints a Markdown
//! table.
//!
//! `cargo xtask bench transfer` installs the clients and runs this program. First, each setting of each client is tried
//! once, in at most a third of the time; only the fastest setting is compared. Then rounds follow until the time is up.
//! In each round, every client runs once, in random order.
//!
//! The CPU time of a client is that of its process and of the children that it waited for, according to the kernel. The
//! CPU time of the server is that of its process during the transfer. All compared transfers are verified: each part of
//! an upload, and the whole object of a download. A bare loader, which only sends and receives bytes, shows the highest
//! rate of the server.
//!
//! Usage: `peers ASCERTAIN [SECONDS [MEGABYTES]]`. `ASCERTAIN` is the path of the program. `SECONDS` is the time limit
//! for everything (default 480, which gives enough rounds for intervals). `MEGABYTES` is the size of the file (default
//! 1000).
#![allow(clippy::print_stdout)]

mod clients;
mod loader;
mod table;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use ascertain_netlab::installed::{RunningProgram, minio};
use ascertain_sys::process::{Command, Exit, Prepared};
use ascertain_transfer::crc64_of_blocks;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use clients::{Client, Direction, LOADER, all};

/// Timeout of one transfer, which even a busy machine does not reach.
const LIMIT: Duration = Duration::from_secs(120);
/// Name of the bucket that all clients use.
const BUCKET: &str = "bucket";

/// The measurement of one transfer.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    gigabytes: f64,
    wall_s: f64,
    client_s: f64,
    server_s: f64,
}

/// One client in one direction, with its measurements.
struct Arm {
    client: Client,
    way: Direction,
    /// Index of the setting that was the fastest when all were tried.
    setting: usize,
    /// The measurements of the settings, one for each that was tried.
    tried: Vec<Measurement>,
    took: Vec<Measurement>,
}

/// The server, and the files that are transferred.
struct Bench {
    server: RunningProgram,
    folder: tempfile::TempDir,
    bytes: u64,
    sum: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, rest @ ..] = &*arguments else { return Err("peers ASCERTAIN [SECONDS [MEGABYTES]]".into()) };
    if program == LOADER {
        return loader::run(rest).map_err(|error| error.to_string().into());
    }
    let number = |at: usize, without| rest.get(at).map_or(Ok(without), |number| number.parse());
    let (began, limit) = (Instant::now(), Duration::from_secs(number(0, 480)?));
    let bench = Bench::new(number(1, 1000)?)?;
    let (clients, missing) = all(program, bench.folder.path(), bench.server.address(), bench.bytes)?;
    let mut arms = Vec::new();
    for client in clients {
        for way in [Direction::Put, Direction::Get] {
            let mut tried = Vec::new();
            for setting in 0..client.settings(way).len() {
                // The first setting is always tried. The others are tried only in the first third of the time, to leave
                // time for rounds.
                if setting == 0 || began.elapsed() < limit / 3 {
                    tried.push(bench.measure(&client, way, setting)?);
                }
            }
            let fastest = (0..tried.len()).min_by(|a, b| tried[*a].wall_s.total_cmp(&tried[*b].wall_s));
            let setting = fastest.ok_or("no settings")?;
            arms.push(Arm { client: client.clone(), way, setting, tried, took: Vec::new() });
        }
    }
    let seed = ascertain_sys::clock::unix_ns();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut round = Duration::ZERO;
    let mut ended = Ok(());
    while ended.is_ok() && (arms[0].took.is_empty() || began.elapsed() + round < limit) {
        let round_began = Instant::now();
        ended = bench.round(&mut arms, &mut random);
        // A new round starts only if the slowest round so far would fit into the remaining time.
        round = round.max(round_began.elapsed());
    }
    // If a client fails, the measurements before the failure are printed.
    if arms.iter().all(|arm| !arm.took.is_empty()) {
        print!("{}", table::table(&arms, &missing, seed));
    }
    ended
}

impl Bench {
    fn new(megabytes: u64) -> Result<Self, Box<dyn Error>> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let server = minio(free).start()?;
        // MinIO treats each folder in its data folder as a bucket.
        fs::create_dir(server.folder().join("data").join(BUCKET))?;
        let folder = tempfile::tempdir()?;
        let mut file = BufWriter::new(File::create(folder.path().join("source"))?);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut block = vec![0; 1_000_000];
        random.fill_bytes(&mut block);
        for number in 0..megabytes {
            // A different number in each block makes all parts of the file different.
            block[..8].copy_from_slice(&number.to_le_bytes());
            file.write_all(&block)?;
        }
        file.flush()?;
        let sum = sum(&folder.path().join("source"))?;
        Ok(Self { server, folder, bytes: megabytes * 1_000_000, sum })
    }

    /// Runs each arm once, in random order.
    fn round(&self, arms: &mut [Arm], random: &mut Xoshiro256PlusPlus) -> Result<(), Box<dyn Error>> {
        let mut order: Vec<&mut Arm> = arms.iter_mut().collect();
        order.shuffle(random);
        for arm in order {
            arm.took.push(self.measure(&arm.client, arm.way, arm.setting)?);
        }
        Ok(())
    }

    fn measure(&self, client: &Client, way: Direction, setting: usize) -> Result<Measurement, Box<dyn Error>> {
        // MinIO keeps overwritten objects in this folder for five minutes. They would fill the memory.
        for entry in fs::read_dir(self.server.folder().join("data/.minio.sys/tmp/.trash"))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) }?;
        }
        let got = self.folder.path().join("got");
        if way == Direction::Get {
            // Before the clock starts, removes the file that the previous client downloaded, which also frees its
            // memory.
            let _ = fs::remove_file(&got);
        }
        let before_s = server_s(self.server.pid())?;
        let took = run(&client.settings(way)[setting].command)?;
        let server_s = server_s(self.server.pid())? - before_s;
        if way == Direction::Get && client.name != LOADER && sum(&got)? != self.sum {
            return Err(format!("{}: the downloaded bytes differ from the uploaded ones", client.name).into());
        }
        Ok(Measurement { server_s, gigabytes: self.bytes as f64 / 1e9, ..took })
    }
}

/// Runs a command. Fails if the command fails.
fn run(command: &Command) -> Result<Measurement, Box<dyn Error>> {
    let prepared = Prepared::new(command)?;
    let usage = prepared.run(Some(LIMIT))?;
    if usage.exit != Exit::Code(0) {
        let said = prepared.captured_output();
        return Err(format!("{command:?}: {:?}: {}", usage.exit, String::from_utf8_lossy(&said)).into());
    }
    let client_s = (usage.user_ns + usage.system_ns) as f64 / 1e9;
    Ok(Measurement { gigabytes: 0.0, wall_s: usage.wall_ns as f64 / 1e9, client_s, server_s: 0.0 })
}

/// Returns the CPU time in seconds that a process has used since its start.
fn server_s(pid: u32) -> Result<f64, Box<dyn Error>> {
    /// The unit of CPU times in `/proc` (`USER_HZ`), which is the same on every Linux machine.
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the name of the program, in parentheses, and may contain spaces.
    let fields = stat.rsplit_once(") ").ok_or("no name in stat")?.1.split(' ');
    let ticks = fields.skip(11).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / TICKS_A_SECOND)
}

/// Returns the CRC-64/NVME of a file.
fn sum(path: &Path) -> Result<u64, Box<dyn Error>> {
    use std::io::Read;
    let mut file = File::open(path)?;
    let (mut sums, mut block) = (Vec::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(crc64_of_blocks(sums)),
            bytes => sums.push((bytes as u64, ascertain_transfer::crc64(&block[..bytes]))),
        }
    }
}
