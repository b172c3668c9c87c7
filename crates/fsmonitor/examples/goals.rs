//! Measures the goals of the monitor, and prints one line per goal: `cargo run --release --example goals HOOK`. With
//! further words, such as `start idle`, it measures only those goals.
//!
//! The repository is in a temporary folder (`TMPDIR` chooses the place). No other program may run at the same time.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ascertain_fsmonitor::{EnableOptions, MonitorStatus, disable, enable, since, status};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const FOLDERS: usize = 10_000;
const FILES_PER_FOLDER: usize = 10;
/// Number of files that change between two readings of the queue, which holds 16,384 events.
const BATCH: usize = 1_000;
/// Number of measurements, of which the median is printed.
const ROUNDS: usize = 11;
/// Time without events, and time of the emulated build.
const PERIOD: Duration = Duration::from_secs(20);
/// Files that the emulated build writes in a second, and the size of each.
const BUILD_FILES_PER_S: u32 = 100;
const BUILD_FILE_BYTES: usize = 64 << 10;
/// Number of calls of the hook whose CPU time is added up. The kernel counts the time in steps of 10 ms.
const CALLS: u32 = 1_000;

/// Time between two queries until an answer is short. Shorter pauses would take the CPU from the daemon.
const PAUSE: Duration = Duration::from_millis(10);

type Goal = (&'static str, fn(&Bench) -> Result<String>);

const GOALS: [Goal; 7] = [
    ("memory", Bench::memory),
    ("start", Bench::start),
    ("overflow", Bench::start_after_overflow),
    ("idle", Bench::idle),
    ("build", Bench::build),
    ("stopped", Bench::stopped),
    ("hook", Bench::hook_cpu),
];

#[allow(clippy::print_stdout, reason = "an example")]
fn main() -> Result {
    let hook = std::env::args_os().nth(1).map(PathBuf::from).ok_or("usage: goals HOOK")?;
    let folder = tempfile::tempdir()?;
    let bench = Bench { root: folder.path().join("r"), hook };
    bench.create()?;
    let wanted: Vec<String> = std::env::args().skip(2).collect();
    for (name, goal) in GOALS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            println!("  {name}: {}", goal(&bench)?);
        }
    }
    disable(&bench.root)?;
    Ok(())
}

struct Bench {
    root: PathBuf,
    hook: PathBuf,
}

impl Bench {
    fn create(&self) -> Result {
        for number in 0..FOLDERS {
            // A tree of three levels.
            let folder = self.folder(number);
            fs::create_dir_all(&folder)?;
            for file in 0..FILES_PER_FOLDER {
                fs::write(folder.join(file.to_string()), number.to_string())?;
            }
        }
        self.git(&["init", "-q"])?;
        self.git(&["add", "."])?;
        self.git(&["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "a"])?;
        let enabled = enable(&self.root, &EnableOptions { hook: Some(self.hook.clone()), ..EnableOptions::default() })?;
        enabled.problem.map_or(Ok(()), |problem| Err(problem.into()))
    }

    fn folder(&self, number: usize) -> PathBuf {
        self.root.join(format!("{}/{}/{number}", number / 1000, number / 20 % 50))
    }

    fn git(&self, arguments: &[&str]) -> Result {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(&self.root).stdin(Stdio::null()).stdout(Stdio::null());
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        if git.status()?.success() { Ok(()) } else { Err(format!("git {arguments:?} failed").into()) }
    }

    /// Waits until the daemon is ready; starts it if none runs.
    fn ready(&self) -> Result<MonitorStatus> {
        since(&self.root, b"")?;
        loop {
            let status = status(&self.root)?;
            if status.is_ready {
                return Ok(status);
            }
            sleep(Duration::from_millis(1));
        }
    }

    fn pid(&self) -> Result<u32> {
        Ok(self.ready()?.pid.ok_or("no daemon")?)
    }

    fn signal(&self, name: &str) -> Result {
        let pid = self.pid_now()?.to_string();
        if Command::new("kill").args(["-s", name, &pid]).status()?.success() { Ok(()) } else { Err("kill".into()) }
    }

    /// The daemon's process, also while it is stopped.
    fn pid_now(&self) -> Result<u32> {
        Ok(status(&self.root)?.pid.ok_or("no daemon")?)
    }

    fn memory(&self) -> Result<String> {
        let before = self.ready()?;
        let (mut token, _) = since(&self.root, b"")?;
        for number in 0..FOLDERS {
            for file in 0..FILES_PER_FOLDER {
                fs::write(self.folder(number).join(file.to_string()), "changed")?;
            }
            if ((number + 1) * FILES_PER_FOLDER).is_multiple_of(BATCH) {
                (token, _) = since(&self.root, &token)?;
            }
        }
        let after = status(&self.root)?;
        let mb = |status: &MonitorStatus| status.memory_bytes as f64 / 1e6;
        Ok(format!(
            "{:.1} MB with {} folders and {} pending paths, {:.1} MB before the changes; {:.1} MB of the kernel",
            mb(&after),
            after.watches.folders,
            after.pending,
            mb(&before),
            after.watches.kernel_bytes as f64 / 1e6,
        ))
    }

    /// Reads all folders as the daemon does, but without watches.
    fn bare_walk_ms(&self) -> Result<f64> {
        let start = Instant::now();
        let mut queue = vec![self.root.clone()];
        while let Some(folder) = queue.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() && entry.file_name() != ".git" {
                    queue.push(entry.path());
                }
            }
        }
        Ok(ms(start))
    }

    /// Queries the hook as git does until an answer is short. Returns the time since `start`.
    fn first_short_answer_ms(&self, start: Instant) -> Result<f64> {
        let mut token = String::new();
        loop {
            let mut hook = Command::new(&self.hook);
            let answer = hook.args(["2", &token]).current_dir(&self.root).stdin(Stdio::null()).output()?.stdout;
            let text = String::from_utf8_lossy(&answer).into_owned();
            let (next, paths) = text.split_once('\0').ok_or("the hook sent no token")?;
            if paths != "/\0" {
                return Ok(ms(start));
            }
            token = next.to_owned();
            sleep(PAUSE);
        }
    }

    fn start(&self) -> Result<String> {
        let (mut ready, mut walk, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            self.signal("KILL")?;
            // The kernel removes the watches of the killed daemon.
            sleep(Duration::from_secs(1));
            ready.push(self.first_short_answer_ms(Instant::now())?);
            walk.push(self.ready()?.walk_us as f64 / 1e3);
            bare.push(self.bare_walk_ms()?);
        }
        Ok(shown(ready, walk, bare))
    }

    fn start_after_overflow(&self) -> Result<String> {
        let (mut ready, mut walk, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let walks = self.ready()?.walks;
            // The list of tracked files that the last query started.
            sleep(Duration::from_secs(1));
            self.signal("STOP")?;
            for number in 0..10_000 {
                let path = self.root.join(format!("overflow{}", number % 2));
                fs::write(&path, "")?;
                fs::remove_file(&path)?;
            }
            self.signal("CONT")?;
            ready.push(self.first_short_answer_ms(Instant::now())?);
            let after = self.ready()?;
            if after.walks == walks {
                return Err("the queue did not overflow".into());
            }
            walk.push(after.walk_us as f64 / 1e3);
            bare.push(self.bare_walk_ms()?);
        }
        Ok(shown(ready, walk, bare))
    }

    fn idle(&self) -> Result<String> {
        let pid = self.pid()?;
        // The answer before starts a list of tracked files.
        sleep(Duration::from_secs(3));
        let (switches, cpu) = (switches(pid)?, cpu_ms(pid)?);
        sleep(PERIOD);
        let more = self::switches(pid)? - switches;
        Ok(format!("{more} wake-ups and {:.3} ms of CPU in {PERIOD:?}", cpu_ms(pid)? - cpu))
    }

    fn build(&self) -> Result<String> {
        let pid = self.pid()?;
        let output = self.root.join("target");
        fs::create_dir_all(&output)?;
        sleep(Duration::from_secs(1));
        let (cpu, start) = (cpu_ms(pid)?, Instant::now());
        let mut count = 0;
        while start.elapsed() < PERIOD {
            // Compilers write a file in pieces, under another name.
            let (draft, path) = (output.join("draft"), output.join(format!("{}.o", count % 5000)));
            let file = fs::File::create(&draft)?;
            for _ in 0..BUILD_FILE_BYTES >> 12 {
                std::io::Write::write_all(&mut &file, &[0; 4096])?;
            }
            drop(file);
            fs::rename(draft, path)?;
            count += 1;
            let next = start + Duration::from_secs(1) * count / BUILD_FILES_PER_S;
            sleep(next.saturating_duration_since(Instant::now()));
        }
        let elapsed = ms(start);
        let share = (cpu_ms(pid)? - cpu) / elapsed * 100.0;
        let rate = f64::from(count) / elapsed * 1e3;
        fs::remove_dir_all(output)?;
        Ok(format!(
            "{share:.2} % of a CPU beside a build that writes {rate:.0} files of {BUILD_FILE_BYTES} bytes per second"
        ))
    }

    fn stopped(&self) -> Result<String> {
        let folder = tempfile::tempdir_in(self.root.parent().ok_or("no parent")?)?;
        let small = Bench { root: folder.path().into(), hook: self.hook.clone() };
        fs::write(small.root.join("f"), "")?;
        small.git(&["init", "-q"])?;
        enable(&small.root, &EnableOptions { hook: Some(self.hook.clone()), ..EnableOptions::default() })?;
        let (mut running, mut stopped) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            small.ready()?;
            running.push(small.status_ms()?);
            small.signal("STOP")?;
            stopped.push(small.status_ms()?);
            small.signal("CONT")?;
        }
        disable(&small.root)?;
        let longest = stopped.iter().copied().fold(0.0, f64::max);
        let [running, stopped] = [running, stopped].map(median);
        Ok(format!(
            "`git status` takes {stopped:.0} ms with a stopped daemon ({longest:.0} ms at most), and \
             {running:.0} ms with a running one"
        ))
    }

    fn status_ms(&self) -> Result<f64> {
        let start = Instant::now();
        self.git(&["status"])?;
        Ok(ms(start))
    }

    fn hook_cpu(&self) -> Result<String> {
        self.ready()?;
        let (token, _) = since(&self.root, b"")?;
        let token = String::from_utf8(token)?;
        let run = |program: &Path, arguments: &[&str]| -> Result<(f64, f64)> {
            let (cpu, start) = (children_cpu_ms()?, Instant::now());
            for _ in 0..CALLS {
                let mut command = Command::new(program);
                command.args(arguments).current_dir(&self.root).stdin(Stdio::null()).stdout(Stdio::null());
                command.status()?;
            }
            let calls = f64::from(CALLS);
            Ok(((children_cpu_ms()? - cpu) / calls, ms(start) / calls))
        };
        let (cpu, wall) = run(&self.hook, &["2", &token])?;
        let (of_true, _) = run(Path::new("true"), &[])?;
        Ok(format!("{cpu:.2} ms of CPU and {wall:.2} ms per call; `true` takes {of_true:.2} ms of CPU"))
    }
}

fn shown(ready: Vec<f64>, walk: Vec<f64>, bare: Vec<f64>) -> String {
    let [ready, walk, bare] = [ready, walk, bare].map(median);
    format!(
        "all folders watched in {walk:.0} ms, {:.2} times the bare walk of {bare:.0} ms; first short answer after \
         {ready:.0} ms, {:.2} times",
        walk / bare,
        ready / bare
    )
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns how often a process went to sleep by itself so far.
fn switches(pid: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Ok(line.ok_or("no voluntary_ctxt_switches")?.trim().parse()?)
}

/// Returns the CPU time of a process with one thread.
fn cpu_ms(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    Ok(text.split(' ').next().ok_or("no schedstat")?.parse::<f64>()? / 1e6)
}

/// Returns the CPU time of all processes that this one has started and that have ended.
fn children_cpu_ms() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = text.rsplit_once(") ").ok_or("no stat")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Ok((fields[13].parse::<f64>()? + fields[14].parse::<f64>()?) * 10.0)
}
