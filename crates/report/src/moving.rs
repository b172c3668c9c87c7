//! What `ascertain put` and `ascertain get` say: how far they are, and what came of each file.

use std::fmt::Write;
use std::time::Duration;

use ascertain_engine::unit::Unit;
use ascertain_transfer::model::Plan;
use ascertain_transfer::{self as transfer, Outcome, Progress, Requests, Skipped, Way};
use serde::Serialize;

use crate::json;
use crate::text::{counted, escape_controls};

/// The name and version of the schema of [`Moves`] in JSON.
pub const SCHEMA: &str = "ascertain.transfer/1";

/// Of more files than that each is said only where it failed, or where somebody wants to read them all.
const MANY_FILES: usize = 20;

/// What came of one `put` or `get`. What is not known is `None`, in JSON `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moves {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Which way.
    pub way: Way,
    /// Whether it was only to be said what would be moved.
    pub dry_run: bool,
    /// How long all of it took.
    pub elapsed_s: f64,
    /// Each file.
    pub files: Vec<FileMove>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileMove {
    /// The file's path, or `-`.
    pub path: String,
    /// The object's address.
    pub name: String,
    /// Its size; 0 of a stream that has not come yet.
    pub bytes: u64,
    /// What came of it.
    pub done: Done,
    /// Why it failed.
    pub error: Option<String>,
    /// What of it was there from an earlier time.
    pub resumed_bytes: Option<u64>,
    /// Why an earlier attempt was not gone on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun_anew: Option<String>,
    /// How many requests carried the rest.
    pub blocks: Option<u64>,
    /// How long it took.
    pub elapsed_s: Option<f64>,
    /// Its CRC-64/NVME, in hexadecimal digits.
    pub crc64: Option<String>,
    /// How long the phases of its requests took, and what was tried again.
    pub requests: Option<Requests>,
    /// Whether it was read back and found the same.
    pub verified: Option<bool>,
    /// What was expected, when enough had been seen.
    pub plan: Option<Plan>,
}

/// What came of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Done {
    /// It would be moved, and nothing was to be.
    DryRun,
    /// It was moved.
    Moved,
    /// It was, or would be, left alone: there is something under that name.
    Exists,
    /// It was, or would be, left alone: the same is there.
    Unchanged,
    /// It was not moved.
    Failed,
}

fn size(bytes: u64) -> String {
    Unit::Byte.human(bytes as f64)
}

fn time(seconds: f64) -> String {
    Unit::Nanosecond.human((seconds * 1e9).max(0.0))
}

fn speed(bytes: u64, seconds: f64) -> String {
    Unit::BytePerSecond.human(bytes as f64 / seconds.max(1e-9))
}

/// How long it took, and how fast that was; of nothing there is no rate.
fn took(bytes: u64, seconds: f64) -> String {
    match bytes {
        0 => time(seconds),
        bytes => format!("{} ({})", time(seconds), speed(bytes, seconds)),
    }
}

/// Blocks, and how many of them go at once.
fn blocks(number: u64, plan: &Plan) -> String {
    let at_once = number.min(plan.shape.concurrency as u64);
    format!("{} of {}, {at_once} at once", counted(number, "block"), size(plan.shape.block_bytes))
}

/// Which share of it is there; 0 while nobody knows.
#[must_use]
pub fn share(progress: &Progress<'_>) -> f64 {
    progress.bytes.map_or(0.0, |bytes| progress.done_bytes as f64 / bytes.max(1) as f64)
}

/// How far it is: `data.tar: 0.5 GB of 2 GB, 120 MB/s; 375 blocks of 4 MB, 64 at once, 12 s left`; of many files
/// `120 of 3000 files, 0.5 GB of 2 GB, 120 MB/s, 12 s left; data.tar`.
#[must_use]
pub fn sentence(progress: &Progress<'_>) -> String {
    let &Progress { name, done_bytes, bytes, elapsed_s, plan, files } = progress;
    let name = escape_controls(name);
    let of = bytes.map_or(String::new(), |bytes| format!(" of {}", size(bytes)));
    let done = format!("{}{of}, {}", size(done_bytes), speed(done_bytes, elapsed_s));
    let rest_bytes = bytes.unwrap_or(0).saturating_sub(done_bytes);
    if let Some([done_files, files]) = files {
        let left_s = elapsed_s * rest_bytes as f64 / done_bytes.max(1) as f64;
        let left = if done_bytes > 0 && rest_bytes > 0 { format!(", {} left", time(left_s)) } else { String::new() };
        return format!("{done_files} of {files} files, {done}{left}; {name}");
    }
    let rest = plan.map_or(String::new(), |plan| match (rest_bytes, plan.expected_s - elapsed_s) {
        (0, _) => "; waiting for its end".into(),
        (bytes, left_s) => {
            let blocks = blocks(bytes.div_ceil(plan.shape.block_bytes), plan);
            let left = if left_s > 0.0 { format!("{} left", time(left_s)) } else { "longer than planned".into() };
            format!("; {blocks}, {left}")
        }
    });
    format!("{name}: {done}{rest}")
}

impl Moves {
    /// What came of each file.
    #[must_use]
    pub fn new(way: Way, dry_run: bool, outcomes: &[Outcome], elapsed: Duration) -> Self {
        let files = outcomes.iter().map(FileMove::from).collect();
        Self { schema: SCHEMA, way, dry_run, elapsed_s: elapsed.as_secs_f64(), files }
    }

    /// Each file, and the sum of several; of more than twenty the sum alone, unless all are wanted. Of one alone the
    /// plan is said too, and how right it was. Failures are said where they happen, and not here.
    #[must_use]
    pub fn text(&self, all: bool) -> String {
        let mut text = String::new();
        if all || self.files.len() <= MANY_FILES {
            for file in self.files.iter().filter(|file| file.done != Done::Failed) {
                let _ = writeln!(text, "{}", self.of_file(file));
            }
        }
        if self.files.len() > 1 && self.files.iter().any(|file| file.done != Done::Failed) {
            let _ = writeln!(text, "{}", self.sum());
        }
        text
    }

    /// What `--format json` prints.
    #[must_use]
    pub fn json(&self) -> String {
        json::object(self)
    }

    fn of_file(&self, file: &FileMove) -> String {
        // Whoever chose them may have meant to steer a terminal.
        let [from, to] = match self.way {
            Way::Put => [&file.path, &file.name],
            Way::Get => [&file.name, &file.path],
        }
        .map(|name| escape_controls(name));
        let way = format!("{from} → {to}");
        match file.done {
            // How much comes is not known before it has come.
            Done::DryRun if self.way == Way::Put && file.path == "-" => way,
            Done::DryRun => format!("{way}: {}", size(file.bytes)),
            Done::Exists => format!("{way}: left alone, for it is there"),
            Done::Unchanged => format!("{way}: left alone, for it is there and the same"),
            Done::Moved | Done::Failed => {
                let lines = file.lines();
                let lines = if self.files.len() == 1 { &lines[..] } else { &lines[..1] };
                format!("{way}: {}", lines.join("\n  "))
            }
        }
    }

    /// "3000 of 3000 files moved, 4.498 MB in 5.400 s (833.0 kB/s)".
    fn sum(&self) -> String {
        let of = |done| self.files.iter().filter(move |file| file.done == done);
        let bytes_of = |done| of(done).map(|file| file.bytes - file.resumed_bytes.unwrap_or(0)).sum();
        let files = self.files.len();
        let mut sum = if self.dry_run {
            let count = of(Done::DryRun).count();
            format!("{count} of {files} files would be moved, {}", size(bytes_of(Done::DryRun)))
        } else {
            let took = took(bytes_of(Done::Moved), self.elapsed_s);
            let bytes: u64 = of(Done::Moved).map(|file| file.bytes).sum();
            format!("{} of {files} files moved, {} in {took}", of(Done::Moved).count(), size(bytes))
        };
        let left_alone = of(Done::Exists).count() + of(Done::Unchanged).count();
        for (count, what) in [(left_alone, "left alone"), (of(Done::Failed).count(), "not moved")] {
            if count > 0 {
                let _ = write!(sum, "; {count} {what}");
            }
        }
        sum
    }
}

impl From<&Outcome> for FileMove {
    fn from(Outcome { path, name, bytes, done }: &Outcome) -> Self {
        let moved = if let transfer::Done::Moved(moved) = done { Some(&**moved) } else { None };
        let of_moved = moved.filter(|moved| moved.skipped.is_none());
        Self {
            path: path.display().to_string(),
            name: name.clone(),
            bytes: *bytes,
            done: match (done, moved.and_then(|moved| moved.skipped)) {
                (transfer::Done::Said, _) => Done::DryRun,
                (transfer::Done::Failed(_), _) => Done::Failed,
                (_, Some(Skipped::Exists)) => Done::Exists,
                (_, Some(Skipped::Unchanged)) => Done::Unchanged,
                (_, None) => Done::Moved,
            },
            error: if let transfer::Done::Failed(error) = done { Some(error.to_string()) } else { None },
            resumed_bytes: of_moved.map(|moved| moved.resumed_bytes),
            begun_anew: of_moved.and_then(|moved| moved.begun_anew.clone()),
            blocks: of_moved.map(|moved| moved.blocks),
            elapsed_s: of_moved.map(|moved| moved.elapsed_s),
            crc64: of_moved.and_then(|moved| moved.crc64).map(|crc64| format!("{crc64:016x}")),
            requests: of_moved.map(|moved| moved.requests),
            verified: of_moved.map(|moved| moved.verified),
            plan: of_moved.and_then(|moved| moved.plan),
        }
    }
}

impl FileMove {
    /// What came of it; how right the plan was; and its sum.
    fn lines(&self) -> Vec<String> {
        let resumed_bytes = self.resumed_bytes.unwrap_or(0);
        let rest_bytes = self.bytes - resumed_bytes;
        let elapsed_s = self.elapsed_s.unwrap_or(0.0);
        let mut said = format!("{} in {}", size(self.bytes), took(rest_bytes, elapsed_s));
        if resumed_bytes > 0 {
            let _ = write!(said, ", {} of it were there", size(resumed_bytes));
        }
        let mut lines = vec![said];
        if let Some(plan) = self.plan {
            let times = elapsed_s / plan.expected_s;
            let took = match (times - 1.0) * 100.0 {
                _ if times > 2.0 => format!("{times:.1} times as long"),
                percent if percent < 0.0 => format!("{:.0} % less", -percent),
                percent => format!("{percent:.0} % more"),
            };
            let blocks = blocks(rest_bytes.div_ceil(plan.shape.block_bytes), &plan);
            let [expected, low, high] = [plan.expected_s, plan.low_s, plan.high_s].map(time);
            lines.push(format!("planned {blocks}: {expected} ({low} to {high})"));
            lines.push(format!("it took {took}"));
        }
        if let Some(crc64) = &self.crc64 {
            let verified = if self.verified == Some(true) { ", read back and the same" } else { "" };
            lines.push(format!("CRC-64/NVME {crc64}{verified}"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use ascertain_transfer::Moved;
    use ascertain_transfer::model::{Link, Shape};

    use super::*;

    fn plan() -> Plan {
        let shape = Shape { block_bytes: 4_000_000, concurrency: 64 };
        let (fixed_s, fresh_s, latency_s) = (0.1, 0.05, 0.05);
        let link = Link { fixed_s, fresh_s, latency_s, bytes_per_s: 2e6, ceiling_bytes_per_s: None };
        Plan { shape, expected_s: 8.0, low_s: 7.5, high_s: 8.5, link }
    }

    fn moved() -> FileMove {
        FileMove {
            begun_anew: None,
            path: "a b".into(),
            name: "n".into(),
            bytes: 1_000_000_000,
            done: Done::Moved,
            error: None,
            resumed_bytes: Some(0),
            blocks: Some(250),
            elapsed_s: Some(8.4),
            crc64: Some("0000000000000abc".into()),
            requests: None,
            verified: Some(true),
            plan: Some(plan()),
        }
    }

    fn not_moved(done: Done) -> FileMove {
        FileMove {
            begun_anew: None,
            bytes: 1,
            done,
            resumed_bytes: None,
            blocks: None,
            elapsed_s: None,
            crc64: None,
            verified: None,
            plan: None,
            ..moved()
        }
    }

    fn moves(way: Way, files: Vec<FileMove>) -> Moves {
        let dry_run = files.iter().any(|file| file.done == Done::DryRun);
        Moves { schema: SCHEMA, way, dry_run, elapsed_s: 10.0, files }
    }

    #[test]
    fn what_came_of_it_and_how_right_the_plan_was() {
        let expected = [
            "1.000 GB in 8.400 s (119.0 MB/s)",
            "planned 250 blocks of 4.000 MB, 64 at once: 8.000 s (7.500 s to 8.500 s)",
            "it took 5 % more",
            "CRC-64/NVME 0000000000000abc, read back and the same",
        ];
        assert_eq!(moved().lines(), expected);
        let slower = FileMove { elapsed_s: Some(24.0), resumed_bytes: Some(400_000_000), ..moved() };
        assert_eq!(
            slower.lines()[..3],
            [
                "1.000 GB in 24.00 s (25.00 MB/s), 400.0 MB of it were there",
                "planned 150 blocks of 4.000 MB, 64 at once: 8.000 s (7.500 s to 8.500 s)",
                "it took 3.0 times as long",
            ]
        );
        let rest = FileMove { resumed_bytes: Some(998_000_000), ..slower };
        assert!(rest.lines()[1].starts_with("planned 1 block of 4.000 MB, 1 at once: "), "{:?}", rest.lines());
        let empty = FileMove { bytes: 0, plan: None, elapsed_s: Some(0.0026), ..moved() };
        assert_eq!(empty.lines()[0], "0 B in 2.600 ms", "nothing has no rate");
    }

    #[test]
    fn one_is_said_whole_and_several_with_their_sum() {
        let one = moves(Way::Put, vec![moved()]).text(false);
        assert!(one.starts_with("a b → n: 1.000 GB in 8.400 s (119.0 MB/s)\n  planned 250"), "{one}");
        assert_eq!(one.lines().count(), 4, "{one}");
        let several = [moved(), not_moved(Done::Unchanged), not_moved(Done::Failed)];
        assert_eq!(
            moves(Way::Put, several.to_vec()).text(false),
            "a b → n: 1.000 GB in 8.400 s (119.0 MB/s)\n\
             a b → n: left alone, for it is there and the same\n\
             1 of 3 files moved, 1.000 GB in 10.00 s (100.0 MB/s); 1 left alone; 1 not moved\n"
        );
        let dry = [not_moved(Done::DryRun), not_moved(Done::DryRun), not_moved(Done::Exists)];
        assert_eq!(
            moves(Way::Get, dry.to_vec()).text(false),
            "n → a b: 1 B\nn → a b: 1 B\nn → a b: left alone, for it is there\n\
             2 of 3 files would be moved, 2 B; 1 left alone\n"
        );
        let none = moves(Way::Put, vec![not_moved(Done::Exists); 2]).text(false);
        assert!(none.ends_with("0 of 2 files moved, 0 B in 10.00 s; 2 left alone\n"), "{none}");
        assert_eq!(moves(Way::Put, vec![not_moved(Done::Failed); 2]).text(false), "", "each was said where it failed");
        let evil = FileMove { path: "\u{1b}[2J".into(), name: "a\nb".into(), ..not_moved(Done::DryRun) };
        assert_eq!(moves(Way::Get, vec![evil]).text(false), "a\\nb → \\u{1b}[2J: 1 B\n");
    }

    #[test]
    fn of_many_there_is_the_sum_unless_all_are_wanted() {
        let many = moves(Way::Put, vec![moved(); 21]);
        assert_eq!(many.text(false), "21 of 21 files moved, 21.00 GB in 10.00 s (2.100 GB/s)\n");
        assert_eq!(many.text(true).lines().count(), 22);
    }

    #[test]
    fn programs_read_each_file() {
        let json: serde_json::Value =
            serde_json::from_str(&moves(Way::Put, vec![not_moved(Done::DryRun), moved()]).json()).unwrap();
        assert_eq!((&json["schema"], &json["way"]), (&SCHEMA.into(), &"put".into()));
        assert_eq!((&json["files"][0]["done"], &json["files"][1]["done"]), (&"dry-run".into(), &"moved".into()));
        assert_eq!(json["files"][1]["plan"]["connections"], 64);
        assert!(json["files"][0]["crc64"].is_null());
        let moved = Moved { bytes: 7, crc64: Some(0xabc), plan: Some(plan()), ..Moved::default() };
        let outcome = |done| Outcome { path: "a".into(), name: "n".into(), bytes: 7, done };
        let outcomes = [moved.into(), transfer::Done::Failed(transfer::Error::Stopped)].map(outcome);
        let json = Moves::new(Way::Get, false, &outcomes, Duration::from_secs(1)).json();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&json["files"][0]["crc64"], &json["files"][1]["done"]),
            (&"0000000000000abc".into(), &"failed".into())
        );
        let plan = [("block_bytes", 4e6), ("connections", 64.0), ("expected_s", 8.0), ("low_s", 7.5), ("high_s", 8.5)];
        let link = [("fixed_s", 0.1), ("fresh_s", 0.05), ("latency_s", 0.05), ("bytes_per_s", 2e6)];
        for (key, value) in plan.iter().chain(&link) {
            assert_eq!(json["files"][0]["plan"][key].as_f64(), Some(*value), "{key}");
        }
        assert_eq!(json["files"][0]["plan"].as_object().unwrap().len(), 10);
        assert_eq!(json["files"][0]["requests"]["retried"]["slow_down"], 0);
    }

    #[test]
    fn how_far_it_is_has_the_plan_in_it() {
        let plan = plan();
        let progress = Progress {
            name: "n",
            done_bytes: 500_000_000,
            bytes: Some(1_000_000_000),
            elapsed_s: 4.0,
            plan: Some(&plan),
            files: None,
        };
        let with = |bytes, elapsed_s| sentence(&Progress { done_bytes: bytes, elapsed_s, ..progress.clone() });
        let rest = "n: 500.0 MB of 1.000 GB, 125.0 MB/s; 125 blocks of 4.000 MB, 64 at once, 4.000 s left";
        assert_eq!(sentence(&progress), rest);
        assert!(with(500_000_000, 9.0).ends_with("; 125 blocks of 4.000 MB, 64 at once, longer than planned"));
        assert_eq!(with(1_000_000_000, 8.0), "n: 1.000 GB of 1.000 GB, 125.0 MB/s; waiting for its end");
        let unknown = Progress { bytes: None, plan: None, ..progress.clone() };
        assert_eq!((&*sentence(&unknown), share(&unknown)), ("n: 500.0 MB, 125.0 MB/s", 0.0));
        let evil = Progress { name: "\u{1b}[2J", ..unknown };
        assert_eq!(sentence(&evil), r"\u{1b}[2J: 500.0 MB, 125.0 MB/s");
        let many = Progress { files: Some([120, 3000]), ..progress };
        assert_eq!(sentence(&many), "120 of 3000 files, 500.0 MB of 1.000 GB, 125.0 MB/s, 4.000 s left; n");
        let begun = sentence(&Progress { done_bytes: 0, ..many });
        assert_eq!(begun, "120 of 3000 files, 0 B of 1.000 GB, 0 B/s; n");
    }
}
