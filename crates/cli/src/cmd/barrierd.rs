//! `ascertain barrierd`: runs the daemon that reports when each CPU was interrupted.

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

use crate::errors;
use crate::options::{Display, Format};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  sudo ascertain barrierd
      Start the daemon
  ascertain barrierd --status
      Print the state of the running daemon";

/// Run the daemon that reports when each CPU was interrupted
///
/// Programs use the daemon for asymmetric memory barriers (`ascertain_sync::barrierd`). The threads on the fast side of
/// such a barrier need no fence. A thread on the slow side waits until each CPU has been interrupted or is idle. The
/// daemon sleeps while no program waits.
///
/// The daemon runs until SIGTERM or Ctrl-C, as the user `nobody` and with no capability other than CAP_BPF. Exit code
/// 4: the machine or the user can't run the daemon, or no daemon answers --status.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Socket that programs connect to
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH)]
    path: PathBuf,
    /// Shortest time between heartbeats while a program waits
    #[arg(long, value_name = "TIME", default_value = "250us", value_parser = period)]
    period: Duration,
    /// Make one heartbeat, print the result and exit
    #[arg(long)]
    once: bool,
    /// Print the state of the running daemon
    #[arg(long, conflicts_with_all = ["once", "period"])]
    status: bool,
    #[command(flatten)]
    display: Display,
}

/// Parses the shortest time between two of the daemon's heartbeats. Refuses a time that is so long that clients would
/// consider the daemon dead.
fn period(text: &str) -> Result<Duration, String> {
    let most_ns = PERIOD_MAX.as_nanos() as f64;
    match parse_quantity(text, Unit::Nanosecond).map_err(|error| error.to_string())? {
        ns if ns >= 1.0 && ns <= most_ns => Ok(Duration::from_nanos(ns as u64)),
        ns if ns > most_ns => Err(format!(
            "heartbeats this rare would make clients consider the daemon dead; give at most {} ms",
            PERIOD_MAX.as_millis()
        )),
        _ => Err(format!("`{text}` is not a time between heartbeats; give a time such as 250us")),
    }
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    if matches!(args.display.format, Format::Csv | Format::Markdown) {
        bail!("`barrierd` does not support this format; use --format table or --format json");
    }
    if args.display.format == Format::Json && !args.once && !args.status {
        bail!("the daemon prints nothing; use --format json with --once or --status");
    }
    let done = match args {
        Args { status: true, .. } => status(args),
        Args { once: true, .. } => once(args),
        _ => serve(args),
    };
    let can_not = |error: &Error| error.is_unavailable() || matches!(error, Error::NotRunning { .. });
    match done {
        Err(error) if error.downcast_ref().is_some_and(can_not) => {
            output::note(&format!("error: {:#}", errors::with_option(error)));
            Ok(Ending::Nothing)
        }
        done => done.map(|()| Ending::Done),
    }
}

fn serve(args: &Args) -> anyhow::Result<()> {
    let mut daemon = Daemon::new(args.period)?;
    daemon.listen(&args.path)?;
    interrupt::install()?;
    let stop = interrupt::wake_fd().context("can't wait for signals")?;
    if let Err(error) = daemon.run_in_real_time() {
        output::note(&format!(
            "warning: no real-time priority ({error}); heartbeats come late while all CPUs are busy"
        ));
    }
    daemon.drop_privileges().context("can't drop the daemon's privileges")?;
    if !args.display.quiet {
        output::note(&format!("barrierd: programs can connect to {}", args.path.display()));
    }
    daemon.serve(stop).context("the kernel refused a request that it accepted before")
}

fn once(args: &Args) -> anyhow::Result<()> {
    let mut daemon = Daemon::new(args.period)?;
    let client = daemon.connect()?;
    let (stopped, stop) = io::pipe()?;
    // The thread owns the daemon. If the daemon fails, the thread drops it, so that the client notices the failure
    // immediately.
    let serving = thread::spawn(move || {
        // Real-time priority is optional; without it, heartbeats may come late.
        let _ = daemon.run_in_real_time();
        daemon.serve(stopped.as_fd())
    });
    let start = Instant::now();
    let waited = client.wait(client.timestamp(), None, start + Duration::from_secs(10));
    let barrier_ns = start.elapsed().as_nanos() as u64;
    let status = client.status();
    drop(stop);
    // Report the daemon's own error first, because it explains more than the client's.
    serving
        .join()
        .map_err(|_| anyhow!("the daemon's thread panicked"))?
        .context("the kernel refused a request that it accepted before")?;
    waited?;
    print(&Reading { place: None, status, barrier_ns: Some(barrier_ns) }, &args.display)
}

fn status(args: &Args) -> anyhow::Result<()> {
    let status = Client::open(&args.path)?.status();
    print(&Reading { place: Some(args.path.display().to_string()), status, barrier_ns: None }, &args.display)
}

/// The state of the daemon, as the command prints it.
struct Reading {
    /// Path of the daemon's socket; `None` for a daemon that this command started only for `--once`.
    place: Option<String>,
    status: Status,
    /// Time that one wait for all CPUs took, in nanoseconds; `None` if the command did not wait.
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
            None => format!("barrierd, started for this command: {beats} {noun}"),
        };
        let _ = writeln!(text, " (at most every {}), {} of CPU time", human(*period_ns), human(*cpu_time_ns));
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
barrierd at /run/b: process 77, 42 heartbeats (at most every 250.0 µs), 3.000 ms of CPU time
 CPU  state      interrupts  last
   0  running          1234  1.250 ms ago
   1  idle                0  never
";
        assert_eq!(reading().text(), expected);
        let once = Reading { place: None, barrier_ns: Some(47_000), ..reading() }.text();
        assert!(
            once.contains("for this command: 42") && once.contains("\nwaiting for all CPUs took 47.00 µs\n"),
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
