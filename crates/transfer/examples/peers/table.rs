//! Formats the results as Markdown.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use ascertain_stats::{log_binomial, median_sorted};

use crate::clients::{Client, LOADER, version};
use crate::{Arm, MeasuredRow, Measurement, SLOW, SLOW_ROUNDS};

/// Probability that the true median is below an interval. The probability that it is above the interval is the same.
const ERROR: f64 = 0.05;

/// The goal for the ratio of our wall time to the wall time of the fastest peer.
const WALL_GOAL: f64 = 0.9;
/// The goal for the ratio of our CPU time to the CPU time of the fastest peer. It applies if the server limits the
/// speed and our wall time is not longer.
const CPU_GOAL: f64 = 0.6;
/// A share of the free CPU time. If the client and the server together use this share or more, the server counts as the
/// limit on the speed.
const SERVER_IS_LIMIT: f64 = 0.9;

/// A number that is computed from the measurement of each round.
type Figure = fn(&Measurement) -> f64;

const WALL: Figure = |took| took.wall_s;
const CLIENT: Figure = |took| took.client_s;
const SERVER: Figure = |took| took.server_s;
/// The server's share of the machine's CPU time during the command.
const SERVER_SHARE: Figure = |took| took.server_s / (took.wall_s * cpus() as f64);
/// The share that the client and the server use of the CPU time that other processes left to them.
const BOTH_SHARE: Figure = |took| (took.client_s + took.server_s) / took.free_s;
/// The share that other processes used of the machine's CPU time.
const OTHERS_SHARE: Figure = |took| 1.0 - took.free_s / (took.wall_s * cpus() as f64);

/// A median, with an interval if there are enough rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Median {
    value: f64,
    interval: Option<(f64, f64)>,
}

/// Our client compared with the fastest peer of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Comparison {
    /// The ratio of our wall time to the peer's.
    wall: Median,
    /// The ratio of our CPU time to the peer's.
    cpu: Median,
    /// The value of [`BOTH_SHARE`] for our client's commands.
    both_share: f64,
}

/// Formats everything: the tables, the settings and the versions.
pub fn page(rows: &[MeasuredRow], clients: &[Client], missing: &[String], seed: u64, server_folder: &Path) -> String {
    let rounds = rows.iter().flat_map(|row| row.arms.iter().map(|arm| arm.took.len())).max().unwrap_or(0);
    let memory = if server_folder.starts_with("/dev/shm") { "memory" } else { "a file system" };
    let cells = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let all: Vec<Measurement> = rows.iter().flat_map(|row| &row.arms).flat_map(|arm| arm.took.clone()).collect();
    let intervals = match margin(rounds) {
        Some(_) => format!("each end of an interval is wrong at most once in {:.0}", 1.0 / ERROR),
        None => "too few rounds for intervals".into(),
    };
    let mut text = format!(
        "Measured on {} on {} CPUs ({}) with Linux {}, over loopback to MinIO, with the files in {memory}.\n\
         Medians of {rounds} rounds in random order (seed {seed}); {intervals}.\n\
         A client that took more than {SLOW} times as long as the fastest one in each of the first {SLOW_ROUNDS} \
         rounds ran\nonly in these.\n\
         Other processes used {:.0} % of the CPUs (median of all commands).\n\n\
         Wall time in seconds, and the CPU time of the client in seconds:\n\n",
        today(),
        cpus(),
        processor(),
        fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        Median::of(all.iter().map(OTHERS_SHARE).collect()).value * 100.0,
    );
    let names = || clients.iter().map(|client| client.name.to_string());
    text += &cells([String::new()].into_iter().chain(names()).collect());
    text += &cells(vec!["---".into(); clients.len() + 1]);
    for row in rows {
        let times = row.arms.iter().map(|arm| match &arm.failure {
            Some(_) => "failed".into(),
            None => format!("{}, CPU {:.2}", arm.median(WALL).show(2), arm.median(CLIENT).value),
        });
        text += &cells([row.title.clone()].into_iter().chain(times).collect());
    }
    text += "\nRatios of our times to those of the fastest peer, in the same rounds. The CPU time of the server is \
             that during our\ncommand, in seconds and as a share of the machine's. The next column adds our client, \
             and counts only the CPU time that\nother processes leave:\n\n";
    let heads = [
        "",
        "fastest peer",
        "wall time",
        "CPU time",
        "wall time, ours to the bare loader's",
        "server's CPU time",
        "server and client",
        "goal",
    ];
    text += &cells(heads.map(String::from).into());
    text += &cells(vec!["---".into(); heads.len()]);
    for row in rows {
        text += &cells([vec![row.title.clone()], row.comparison_cells()].concat());
    }
    let _ = write!(
        text,
        "\nThe goal is a wall time of at most {WALL_GOAL} × the peer's. The server counts as the limit if client and \
         server together\nuse at least {:.0} % of the free CPU time. In that case, the goal is also met if our CPU \
         time is at most {CPU_GOAL} × the peer's\nand our wall time is not longer.\n\nSettings, each tried once with its wall time in seconds; the fastest was \
         compared:\n\n| | client | compared | others |\n|---|---|---|---|\n",
        SERVER_IS_LIMIT * 100.0,
    );
    for row in rows {
        for arm in row.arms.iter().filter(|arm| arm.client.name != "ascertain" && !arm.tried.is_empty()) {
            let shown = |at: usize| format!("`{}` {:.2}", arm.tried[at].0, arm.tried[at].1);
            let others = (0..arm.tried.len()).filter(|at| *at != arm.setting).map(shown).collect::<Vec<_>>().join(", ");
            text += &cells(vec![row.title.clone(), arm.client.name.into(), shown(arm.setting), others]);
        }
    }
    text.push('\n');
    for client in clients {
        let _ = writeln!(text, "- {}: {}", client.name, client.version);
    }
    let failures = rows.iter().flat_map(|row| row.arms.iter().filter_map(|arm| arm.failure.as_ref()));
    let server = version("minio", "--version").unwrap_or_else(|error| format!("unknown version: {error}"));
    let _ = writeln!(text, "- MinIO: {server}");
    for line in missing.iter().chain(failures) {
        let _ = writeln!(text, "- {}", line.lines().next().unwrap_or_default());
    }
    text
}

/// Formats one row in a line, to be printed as soon as the row is measured.
pub fn line(row: &MeasuredRow) -> String {
    let times = row.arms.iter().map(|arm| match &arm.failure {
        Some(failure) => failure.clone(),
        None => format!("{} {}", arm.client.name, arm.median(WALL).show(2)),
    });
    format!("  {}\n  {}", times.collect::<Vec<_>>().join("; "), row.comparison_cells().join("; "))
}

impl Arm {
    fn median(&self, figure: Figure) -> Median {
        Median::of(self.took.iter().map(figure).collect())
    }

    /// Returns the median of the ratios of this arm to another one. The ratio is computed within each round, because
    /// other load on the machine affects both clients alike.
    fn ratio(&self, other: &Arm, figure: Figure) -> Median {
        Median::of(self.took.iter().zip(&other.took).map(|(one, other)| figure(one) / figure(other)).collect())
    }
}

impl MeasuredRow {
    fn comparison_cells(&self) -> Vec<String> {
        let arm = |name: &str| self.arms.iter().find(|arm| arm.client.name == name && arm.failure.is_none());
        let Some(ours) = arm("ascertain") else { return vec!["our own client failed".into()] };
        let peers = self.arms.iter().filter(|arm| !["ascertain", LOADER].contains(&arm.client.name));
        let wall = |arm: &&Arm| arm.median(WALL).value;
        let fastest = peers.filter(|arm| arm.failure.is_none()).min_by(|a, b| wall(a).total_cmp(&wall(b)));
        let Some(peer) = fastest else { return vec!["no peer".into()] };
        let both_share = ours.median(BOTH_SHARE).value;
        let comparison = Comparison { wall: ours.ratio(peer, WALL), cpu: ours.ratio(peer, CLIENT), both_share };
        let limit = arm(LOADER).map_or(String::new(), |loader| ours.ratio(loader, WALL).show(2));
        vec![
            peer.client.name.into(),
            comparison.wall.show(2),
            comparison.cpu.show(2),
            limit,
            format!("{:.2} s, {:.0} %", ours.median(SERVER).value, ours.median(SERVER_SHARE).value * 100.0),
            format!("{:.0} %", both_share * 100.0),
            comparison.goal(),
        ]
    }
}

impl Comparison {
    /// Describes whether the goal is met, by the wall time or by the CPU time, and whether this is certain.
    fn goal(&self) -> String {
        let is_server_limit = self.both_share >= SERVER_IS_LIMIT;
        let is_met_by_cpu = is_server_limit && self.wall.value <= 1.0 && self.cpu.value <= CPU_GOAL;
        let (verdict, is_certain) = if self.wall.value <= WALL_GOAL {
            ("met by wall time", self.wall.is_certain(WALL_GOAL))
        } else if is_met_by_cpu {
            ("met by CPU time", self.wall.is_certain(1.0) && self.cpu.is_certain(CPU_GOAL))
        } else if is_server_limit && self.wall.value <= 1.0 {
            ("missed", self.wall.is_certain(WALL_GOAL) && self.cpu.is_certain(CPU_GOAL))
        } else {
            ("missed", self.wall.is_certain(WALL_GOAL))
        };
        if is_certain { verdict.into() } else { format!("{verdict}, but not certain") }
    }
}

impl Median {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let interval = margin(values.len()).map(|margin| (values[margin], values[values.len() - 1 - margin]));
        Self { value: median_sorted(&values).unwrap_or(f64::NAN), interval }
    }

    /// Returns whether the interval lies on one side of `limit`.
    fn is_certain(&self, limit: f64) -> bool {
        self.interval.is_some_and(|(low, high)| high <= limit || low > limit)
    }

    fn show(&self, digits: usize) -> String {
        let value = self.value;
        match self.interval {
            Some((low, high)) => format!("{value:.digits$} ({low:.digits$} to {high:.digits$})"),
            None => format!("{value:.digits$}"),
        }
    }
}

/// Returns the number of values beyond each end of the interval for the median; `None` if there are too few values. The
/// number of rounds is fixed before the first one, so the probabilities are those of the binomial distribution.
fn margin(count: usize) -> Option<usize> {
    let mut below = 0.0;
    let beyond = (0..count).take_while(|rank| {
        below += log_binomial(count as f64, *rank as f64, 0.5).exp();
        below <= ERROR
    });
    beyond.count().checked_sub(1)
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns today's date.
fn today() -> String {
    let seconds = ascertain_sys::clock::unix_ns() / 1_000_000_000;
    let date = chrono::DateTime::from_timestamp(seconds as i64, 0);
    date.map_or("an unknown date".into(), |date| date.format("%Y-%m-%d").to_string())
}

/// Returns the name of the CPU.
fn processor() -> String {
    let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = known.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("unknown".into(), |(_, name)| name.trim().into())
}

/// Returns a folder on a disk with ext4, and the name of its file system. If there is no such folder, returns `/tmp`
/// and a name that states this.
pub fn disk_folder() -> Result<(PathBuf, String), Box<dyn Error>> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let kind_of = |folder: &Path| {
        let mounts = mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((Path::new(fields.next()?), fields.next()?))
        });
        let holding = mounts.filter(|(mounted, _)| folder.starts_with(mounted));
        // If two file systems are mounted at the same place, the last one is visible.
        holding.max_by_key(|(mounted, _)| mounted.components().count()).map_or("unknown", |(_, kind)| kind)
    };
    for folder in [PathBuf::from("/tmp"), "/var/tmp".into(), std::env::current_dir()?] {
        if kind_of(&folder) == "ext4" {
            return Ok((folder, "ext4".into()));
        }
    }
    Ok(("/tmp".into(), format!("{}, as there is no ext4", kind_of(Path::new("/tmp")))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median(value: f64, low: f64, high: f64) -> Median {
        Median { value, interval: Some((low, high)) }
    }

    #[test]
    fn ten_rounds_leave_one_value_beyond_each_end() {
        assert_eq!([4, 5, 7, 8, 10, 20].map(margin), [None, Some(0), Some(0), Some(1), Some(1), Some(5)]);
        let values = (1..=10).rev().map(f64::from).collect();
        assert_eq!(Median::of(values), median(5.5, 2.0, 9.0));
    }

    #[test]
    fn the_goal_is_met_by_wall_time_or_by_cpu_time_if_the_server_is_the_limit() {
        let goal = |wall, cpu, both_share| Comparison { wall, cpu, both_share }.goal();
        let (fast, even, slow) = (median(0.7, 0.6, 0.8), median(0.95, 0.92, 0.98), median(1.2, 1.1, 1.3));
        let (little, much) = (median(0.5, 0.4, 0.55), median(0.8, 0.7, 0.9));
        assert_eq!(goal(fast, much, 0.5), "met by wall time");
        assert_eq!(goal(median(0.85, 0.7, 0.95), much, 0.5), "met by wall time, but not certain");
        assert_eq!(goal(even, little, 0.95), "met by CPU time");
        assert_eq!(goal(even, little, 0.5), "missed");
        assert_eq!(goal(even, much, 0.95), "missed");
        assert_eq!(goal(slow, little, 0.95), "missed");
        assert_eq!(goal(median(0.95, 0.85, 1.0), much, 0.5), "missed, but not certain");
        assert_eq!(goal(Median { value: 1.2, interval: None }, much, 0.5), "missed, but not certain");
    }
}
