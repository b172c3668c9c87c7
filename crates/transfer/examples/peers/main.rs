//! `ascertain put` and `get` of 1 GB beside awscli and rclone, against MinIO on loopback, as a table in Markdown.
//!
//! `cargo xtask bench transfer` installs what it needs and runs it. First each peer's settings are tried, once each, in
//! at most a third of the time: the fastest is compared. Then all take their turns in an order that is random in each
//! round, until the time is up. Times of a client are the kernel's, of its process and those it waited for; the
//! server's are what its process took meanwhile. Only what is checked is compared: each block on its way up, and the
//! whole on its way down. A bare loader, which sends and takes bytes and does nothing else, shows the most that the
//! server gives anybody.
//!
//! `peers ASCERTAIN [SECONDS [MEGABYTES]]`: the program, how long all of it may take (480, in which there are rounds
//! enough for intervals), and how much is moved (1000).
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

use ascertain_netlab::installed::{Running, minio};
use ascertain_sys::process::{Command, Exit, Prepared};
use ascertain_transfer::crc64_of_blocks;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use clients::{Client, LOADER, Way, all};

/// What one transfer may take, on a machine with other things to do too.
const LIMIT: Duration = Duration::from_secs(120);
/// The bucket.
const BUCKET: &str = "bucket";

/// What one transfer took.
#[derive(Clone, Copy, Debug)]
struct Took {
    gigabytes: f64,
    wall_s: f64,
    client_s: f64,
    server_s: f64,
}

/// One way of one client, with the settings that are compared.
struct Arm {
    client: Client,
    way: Way,
    /// The fastest of those that were tried, …
    setting: usize,
    /// … each once.
    tried: Vec<Took>,
    took: Vec<Took>,
}

/// Where all of it happens.
struct Bench {
    server: Running,
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
        for way in [Way::Put, Way::Get] {
            let mut tried = Vec::new();
            for setting in 0..client.settings(way).len() {
                // One has to be; and time is for rounds.
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
        // One more must fit, and a slow one.
        round = round.max(round_began.elapsed());
    }
    // Where one has failed, what was measured before is not lost.
    if arms.iter().all(|arm| !arm.took.is_empty()) {
        print!("{}", table::of(&arms, &missing, seed));
    }
    ended
}

impl Bench {
    fn new(megabytes: u64) -> Result<Self, Box<dyn Error>> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let server = minio(free).start()?;
        // A folder is a bucket.
        fs::create_dir(server.folder().join("data").join(BUCKET))?;
        let folder = tempfile::tempdir()?;
        let mut file = BufWriter::new(File::create(folder.path().join("source"))?);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut block = vec![0; 1_000_000];
        random.fill_bytes(&mut block);
        for number in 0..megabytes {
            // No two are the same.
            block[..8].copy_from_slice(&number.to_le_bytes());
            file.write_all(&block)?;
        }
        file.flush()?;
        let sum = sum(&folder.path().join("source"))?;
        Ok(Self { server, folder, bytes: megabytes * 1_000_000, sum })
    }

    /// Each once, in a random order.
    fn round(&self, arms: &mut [Arm], random: &mut Xoshiro256PlusPlus) -> Result<(), Box<dyn Error>> {
        let mut order: Vec<&mut Arm> = arms.iter_mut().collect();
        order.shuffle(random);
        for arm in order {
            arm.took.push(self.measure(&arm.client, arm.way, arm.setting)?);
        }
        Ok(())
    }

    fn measure(&self, client: &Client, way: Way, setting: usize) -> Result<Took, Box<dyn Error>> {
        // MinIO keeps there what was overwritten, for five minutes, in which it would fill the memory.
        for entry in fs::read_dir(self.server.folder().join("data/.minio.sys/tmp/.trash"))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) }?;
        }
        let got = self.folder.path().join("got");
        if way == Way::Get {
            // What another one has left there is gone, and its memory given back, before the clock runs.
            let _ = fs::remove_file(&got);
        }
        let before_s = server_s(self.server.pid())?;
        let took = run(&client.settings(way)[setting].command)?;
        let server_s = server_s(self.server.pid())? - before_s;
        if way == Way::Get && client.name != LOADER && sum(&got)? != self.sum {
            return Err(format!("{}: what it got is not what was put", client.name).into());
        }
        Ok(Took { server_s, gigabytes: self.bytes as f64 / 1e9, ..took })
    }
}

/// Carries a command out, which must succeed.
fn run(command: &Command) -> Result<Took, Box<dyn Error>> {
    let prepared = Prepared::new(command)?;
    let usage = prepared.run(Some(LIMIT))?;
    if usage.exit != Exit::Code(0) {
        let said = prepared.said();
        return Err(format!("{command:?}: {:?}: {}", usage.exit, String::from_utf8_lossy(&said)).into());
    }
    let client_s = (usage.user_ns + usage.system_ns) as f64 / 1e9;
    Ok(Took { gigabytes: 0.0, wall_s: usage.wall_ns as f64 / 1e9, client_s, server_s: 0.0 })
}

/// What a process has used of processors so far.
fn server_s(pid: u32) -> Result<f64, Box<dyn Error>> {
    /// `USER_HZ`, which is the same on every machine.
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is a name, which may have blanks in it.
    let fields = stat.rsplit_once(") ").ok_or("no name in stat")?.1.split(' ');
    let ticks = fields.skip(11).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / TICKS_A_SECOND)
}

/// The CRC-64/NVME of a file.
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
