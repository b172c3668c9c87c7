//! `ascertain barrierd`.

use std::fmt::Write;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use ascertain::Ending;
use ascertain_engine::unit::{Unit, parse_quantity};
use ascertain_sync::barrierd::{Client, CpuStatus, DEFAULT_PATH, Daemon, Error, PERIOD_MAX, Status};
use ascertain_sys::interrupt;
use serde_json::{Value, json};

use crate::options::{Display, Format};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  sudo ascertain barrierd
      Start the daemon
  ascertain barrierd --status
      Print what the running daemon knows";

/// Tell programs when each CPU was last interrupted: a daemon, to be started by root
///
/// It is the slow side of an asymmetric memory barrier (`ascertain_sync::barrierd`): whoever waits until each CPU has
/// been interrupted, or is idle, needs no fence on the fast side. While nobody waits it sleeps. It runs until SIGTERM
/// or Ctrl-C, as `nobody` with CAP_BPF alone. Exit code 4: this machine or user can't, or none is running.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The socket that programs connect to
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH)]
    path: PathBuf,
    /// Heartbeats, while somebody waits, come at most that often
    #[arg(long, value_name = "TIME", default_value = "250us", value_parser = period)]
    period: Duration,
    /// Make one heartbeat, print what it found, and end
    #[arg(long)]
    once: bool,
    /// Print what the daemon that is running knows
    #[arg(long, conflicts_with_all = ["once", "period"])]
    status: bool,
    #[command(flatten)]
    display: Display,
}

/// A time between heartbeats that the daemon keeps to.
fn period(text: &str) -> Result<Duration, String> {
    let most_ns = PERIOD_MAX.as_nanos() as f64;
    match parse_quantity(text, Unit::Nanosecond).map_err(|error| error.to_string())? {
        ns if ns >= 1.0 && ns <= most_ns => Ok(Duration::from_nanos(ns as u64)),
        ns if ns > most_ns => {
            Err(format!("new clients would take the daemon for dead; give {} ms at most", PERIOD_MAX.as_millis()))
        }
        _ => Err(format!("`{text}` is no time between heartbeats; give one such as 250us")),
    }
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    if matches!(args.display.format, Format::Csv | Format::Markdown) {
        bail!("`barrierd` prints a table or --format json");
    }
    if args.display.format == Format::Json && !args.once && !args.status {
        bail!("the daemon prints nothing; --format json goes with --once or --status");
    }
    let done = match args {
        Args { status: true, .. } => status(args),
        Args { once: true, .. } => once(args),
        _ => serve(args),
    };
    match done.as_ref().err().and_then(|error| error.downcast_ref::<Error>()) {
        Some(error) if error.is_unavailable() || matches!(error, Error::NotRunning { .. }) => {
            output::note(&format!("error: {error}"));
            Ok(Ending::Nothing)
        }
        _ => done.map(|()| Ending::Done),
    }
}

fn serve(args: &Args) -> anyhow::Result<()> {
    let mut daemon = Daemon::new(args.period)?;
    daemon.listen(&args.path)?;
    interrupt::install()?;
    let stop = interrupt::wake_fd().context("signals can't be waited for")?;
    if let Err(error) = daemon.run_in_real_time() {
        output::note(&format!("without real time ({error}), heartbeats come late while all CPUs are busy"));
    }
    daemon.drop_privileges().context("its privileges can't be dropped")?;
    if !args.display.quiet {
        output::note(&format!("barrierd: programs can connect to {}", args.path.display()));
    }
    daemon.serve(stop).context("the kernel refuses what it did before")
}

fn once(args: &Args) -> anyhow::Result<()> {
    let mut daemon = Daemon::new(args.period)?;
    let client = daemon.connect()?;
    let (stopped, stop) = io::pipe()?;
    // The daemon goes into the thread: when it fails it is dropped there, and the client learns that at once.
    let serving = thread::spawn(move || {
        // It works without, only later.
        let _ = daemon.run_in_real_time();
        daemon.serve(stopped.as_fd())
    });
    let start = Instant::now();
    let waited = client.wait(client.timestamp(), None, start + Duration::from_secs(10));
    let barrier_ns = start.elapsed().as_nanos() as u64;
    let status = client.status();
    drop(stop);
    // What the daemon met says more than that it has ended.
    serving
        .join()
        .map_err(|_| anyhow!("the daemon's thread panicked"))?
        .context("the kernel refuses what it did before")?;
    waited?;
    print(&Reading { place: None, status, barrier_ns: Some(barrier_ns) }, &args.display)
}

fn status(args: &Args) -> anyhow::Result<()> {
    let status = Client::open(&args.path)?.status();
    print(&Reading { place: Some(args.path.display().to_string()), status, barrier_ns: None }, &args.display)
}

/// What is printed.
struct Reading {
    /// Where the daemon is found; none for one that only this command had.
    place: Option<String>,
    status: Status,
    /// How long one wait took; none if there was none.
    barrier_ns: Option<u64>,
}

fn print(reading: &Reading, display: &Display) -> anyhow::Result<()> {
    match display.format {
        Format::Json => output::print(&format!("{:#}\n", reading.json())),
        _ if display.quiet => Ok(()),
        _ => output::print(&reading.text()),
    }
}

impl Reading {
    fn json(&self) -> Value {
        let Status { pid, virtual_time, beats, period_ns, cpu_time_ns, ref cpus } = self.status;
        let cpu = |status: &CpuStatus| {
            let CpuStatus { cpu, is_idle, interrupts, age_ns } = status;
            json!({ "cpu": cpu, "idle": is_idle, "interrupts": interrupts, "age_ns": age_ns })
        };
        json!({
            "schema": "ascertain.barrierd/1",
            "path": self.place,
            "pid": pid,
            "virtual_time": virtual_time,
            "beats": beats,
            "period_ns": period_ns,
            "cpu_time_ns": cpu_time_ns,
            "barrier_ns": self.barrier_ns,
            "cpus": cpus.iter().map(cpu).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let human = |ns: u64| Unit::Nanosecond.human(ns as f64);
        let Status { pid, beats, period_ns, cpu_time_ns, cpus, .. } = &self.status;
        let noun = if *beats == 1 { "heartbeat" } else { "heartbeats" };
        let mut text = match &self.place {
            Some(place) => format!("barrierd at {place}: process {pid}, {beats} {noun}"),
            None => format!("barrierd, for this once: {beats} {noun}"),
        };
        let _ = writeln!(text, " (every {} at most), {} of CPU time", human(*period_ns), human(*cpu_time_ns));
        if let Some(barrier_ns) = self.barrier_ns {
            let _ = writeln!(text, "waiting for all CPUs took {}", human(barrier_ns));
        }
        let _ = writeln!(text, "{:>4}  {:<7}  {:>12}  last", "CPU", "state", "interrupts");
        for CpuStatus { cpu, is_idle, interrupts, age_ns } in cpus {
            let state = if *is_idle { "idle" } else { "running" };
            let last = age_ns.map_or("never".into(), |age_ns| format!("{} ago", human(age_ns)));
            let _ = writeln!(text, "{cpu:>4}  {state:<7}  {interrupts:>12}  {last}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading() -> Reading {
        let cpus = vec![
            CpuStatus { cpu: 0, is_idle: false, interrupts: 1_234, age_ns: Some(1_250_000) },
            CpuStatus { cpu: 1, is_idle: true, interrupts: 0, age_ns: None },
        ];
        let (pid, virtual_time, beats) = (77, 1_234, 42);
        let status = Status { pid, virtual_time, beats, period_ns: 250_000, cpu_time_ns: 3_000_000, cpus };
        Reading { place: Some("/run/b".into()), status, barrier_ns: None }
    }

    #[test]
    fn barrierd_status_for_people() {
        let expected = "\
barrierd at /run/b: process 77, 42 heartbeats (every 250.0 µs at most), 3.000 ms of CPU time
 CPU  state      interrupts  last
   0  running          1234  1.250 ms ago
   1  idle                0  never
";
        assert_eq!(reading().text(), expected);
        let once = Reading { place: None, barrier_ns: Some(47_000), ..reading() }.text();
        assert!(
            once.contains("for this once: 42") && once.contains("\nwaiting for all CPUs took 47.00 µs\n"),
            "{once}"
        );
    }

    #[test]
    fn barrierd_status_for_programs() {
        let expected = concat!(
            r#"{"schema":"ascertain.barrierd/1","path":"/run/b","pid":77,"virtual_time":1234,"beats":42,"#,
            r#""period_ns":250000,"cpu_time_ns":3000000,"barrier_ns":null,"cpus":["#,
            r#"{"cpu":0,"idle":false,"interrupts":1234,"age_ns":1250000},"#,
            r#"{"cpu":1,"idle":true,"interrupts":0,"age_ns":null}]}"#,
        );
        assert_eq!(reading().json().to_string(), expected);
    }
}
