//! What `put` and `get` share: options, progress, and what is said in the end.

use std::fmt::Write;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context, bail};
use ascertain::Ending;
use ascertain::moving::{
    Done, Environment, Error, Filter, Kind, Many, Move, MoveContext, Moved, Observer, Options, Outcome, Plan, Progress,
    Requests, STANDARD, Shape, Skipped, Spread, Terms,
};
use ascertain_engine::evidence;
use ascertain_engine::unit::{Unit, parse_quantity};
use ascertain_report::plot::escape_controls;
use ascertain_report::progress::Line;
use ascertain_sys::interrupt;
use serde_json::{Value, json};

use crate::options::{Display, Format, duration};
use crate::output;
use crate::session;

/// Options of both.
#[derive(clap::Args)]
pub struct Moving {
    /// Of many, only names that match: `*.log`, `2026/**`
    #[arg(long, value_name = "PATTERN", help_heading = "What")]
    include: Vec<String>,
    /// Of many, not names that match
    #[arg(long, value_name = "PATTERN", help_heading = "What")]
    exclude: Vec<String>,
    /// Say what would be moved, and move nothing
    #[arg(long, help_heading = "What")]
    dry_run: bool,
    /// Leave alone what is there already
    #[arg(long, help_heading = "What")]
    no_clobber: bool,
    /// Leave alone what is there and the same: by its checksum where the store knows it, else by size and time
    #[arg(long, help_heading = "What")]
    skip_unchanged: bool,
    /// Read back what was stored and compare; for get, read it twice
    #[arg(long, help_heading = "How")]
    verify: bool,
    /// What all blocks under way take at most, beside 32 MiB that are kept each way to be used again
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = bytes, help_heading = "How")]
    memory: u64,
    /// So many requests at once, at most
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u16).range(1..=1024),
          help_heading = "How")]
    connections: u16,
    /// No faster than that: `10MB/s`, `100Mbit/s`
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "How")]
    limit: Option<u64>,
    /// Leave others on the same path alone: add no more than that to its latency
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "20ms",
          value_parser = duration, help_heading = "How")]
    gentle: Option<Duration>,
    /// Begin anew what was broken off, also where either side has changed since
    #[arg(long, help_heading = "How")]
    fresh: bool,
    /// Keep no journal: what breaks off is given up
    #[arg(long, conflicts_with = "fresh", help_heading = "How")]
    no_journal: bool,
    /// Where the store is, if not where its cloud has it
    #[arg(long, value_name = "URL", help_heading = "Store")]
    endpoint_url: Option<String>,
    /// S3: the region
    #[arg(long, help_heading = "Store")]
    region: Option<String>,
    /// S3: the profile of ~/.aws
    #[arg(long, help_heading = "Store")]
    profile: Option<String>,
    /// S3: the bucket is a part of the host's name, also behind --endpoint-url
    #[arg(long, help_heading = "Store")]
    virtual_hosted: bool,
    /// Without credentials
    #[arg(long, conflicts_with_all = ["profile", "metadata", "requester_pays"], help_heading = "Store")]
    anonymous: bool,
    /// Ask the metadata address of a cloud's machine for credentials too
    #[arg(long, help_heading = "Store")]
    metadata: bool,
    /// Pay for what is read
    #[arg(long, help_heading = "Store")]
    requester_pays: bool,
    #[command(flatten)]
    display: Display,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Put,
    Get,
}

/// Where journals are: beside the runs.
pub fn journals() -> PathBuf {
    evidence::runs_folder().with_file_name("transfers")
}

/// A number of bytes, at least one, with a unit or without.
fn bytes(text: &str) -> Result<u64, String> {
    let bytes = text.parse::<f64>().or_else(|_| parse_quantity(text, Unit::Byte)).map_err(|error| error.to_string())?;
    if (1.0..1e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(format!("`{text}` is no size; give one as 256MiB"))
    }
}

/// Bytes a second, at least one.
fn rate(text: &str) -> Result<u64, String> {
    match parse_quantity(text, Unit::BytePerSecond).map_err(|error| error.to_string())? {
        rate if (1.0..1e18).contains(&rate) => Ok(rate as u64),
        _ => Err(format!("`{text}` is no rate to move at; give one as 10MB/s")),
    }
}

impl Moving {
    /// What is asked for.
    pub fn asked(&self, from: &[String], to: &str, content_type: Option<String>) -> Move {
        Move {
            from: from.to_vec(),
            to: to.into(),
            many: Many {
                filter: Filter { include: self.include.clone(), exclude: self.exclude.clone() },
                dry_run: self.dry_run,
            },
            terms: Terms {
                memory_bytes: self.memory,
                max_concurrency: self.connections.into(),
                limit_bytes_per_s: self.limit,
                gentle: self.gentle,
                verify: self.verify,
                no_clobber: self.no_clobber,
                skip_unchanged: self.skip_unchanged,
                content_type,
                journals: (!self.no_journal).then(journals),
                notes: Some(journals()),
                fresh: self.fresh,
                seed: session::seed(None),
                ..Terms::default()
            },
            options: Options {
                environment: Environment::of_process(),
                endpoint_url: self.endpoint_url.clone(),
                region: self.region.clone(),
                profile: self.profile.clone(),
                virtual_hosted: self.virtual_hosted,
                anonymous: self.anonymous,
                metadata: self.metadata,
                requester_pays: self.requester_pays,
                ..Options::default()
            },
        }
    }

    /// Moves it, and prints what came of it.
    pub fn carry_out(&self, way: Way, asked: &Move) -> anyhow::Result<Ending> {
        if matches!(self.display.format, Format::Csv | Format::Markdown) {
            bail!("`put` and `get` print text or --format json");
        }
        let is_output = way == Way::Get && asked.to == STANDARD;
        if is_output && self.display.format == Format::Json {
            bail!("standard output has the object, and no room for --format json");
        }
        interrupt::install().context("Ctrl-C can't be caught")?;
        let has_moved = Arc::new(AtomicBool::new(false));
        let observer = Box::new(Drawn { line: Line::new(!self.display.quiet), has_moved: Arc::clone(&has_moved) });
        let context = MoveContext { stop: interrupt::Stop::default(), observer };
        let moved = if way == Way::Put { asked.put(context) } else { asked.get(context) };
        let outcomes = match moved {
            Ok(outcomes) => outcomes,
            Err(error) => return self.failed(asked, error, has_moved.load(Relaxed)),
        };
        let mut stopped = 0;
        for outcome in &outcomes {
            match &outcome.done {
                Done::Failed(Error::Stopped) => stopped += 1,
                Done::Failed(error) => output::note(&format!("error: {}: {error}", outcome.name)),
                Done::Said | Done::Moved(_) => {}
            }
        }
        if stopped > 0 {
            let of = outcomes.len();
            // What is whole already would be moved again.
            let and = if self.skip_unchanged || self.no_clobber { "" } else { ", with --skip-unchanged," };
            output::note(&format!("interrupted: {stopped} of {of} files not moved; the same command{and} goes on"));
        }
        match self.display.format {
            Format::Json => output::print(&format!("{:#}\n", json(way, &outcomes)))?,
            _ if self.display.quiet => {}
            _ if is_output => output::note(text(way, &outcomes).trim_end()),
            _ => output::print(&text(way, &outcomes))?,
        }
        let is_failed = outcomes.iter().any(|outcome| matches!(outcome.done, Done::Failed(_)));
        Ok(match outcomes.is_empty() {
            _ if interrupt::requested() => Ending::Interrupted,
            true => {
                output::note("there is nothing of that name");
                Ending::Nothing
            }
            false if is_failed => Ending::TargetFailed,
            false => Ending::Done,
        })
    }

    /// Says why nothing was moved, and how it goes on.
    fn failed(&self, asked: &Move, error: Error, has_moved: bool) -> anyhow::Result<Ending> {
        let is_kept = has_moved && asked.terms.journals.is_some() && asked.to != STANDARD;
        let goes_on = if is_kept { "; the same command goes on with it" } else { "" };
        match error {
            Error::Stopped => {
                output::note(&format!("interrupted{goes_on}"));
                Ok(Ending::Interrupted)
            }
            // The reader has seen enough.
            Error::File { source, .. } if asked.to == STANDARD && source.kind() == ErrorKind::BrokenPipe => {
                Ok(Ending::Done)
            }
            Error::Store(_) | Error::Corrupted { .. } | Error::SourceChanged { .. } => {
                // Of what is gone or has changed nothing is kept.
                let is_gone = |kind| matches!(kind, Kind::Missing | Kind::Changed);
                let is_kept = matches!(&error, Error::Store(failure) if !is_gone(failure.kind));
                output::note(&format!("error: {error}{}", if is_kept { goes_on } else { "" }));
                Ok(Ending::TargetFailed)
            }
            // Its words have its cause in them.
            _ => bail!("{error}"),
        }
    }
}

/// One line, with the plan in it.
struct Drawn {
    line: Line,
    /// Whether there is anything to go on from.
    has_moved: Arc<AtomicBool>,
}

impl Observer for Drawn {
    fn progress(&self, progress: &Progress<'_>) {
        let share = progress.bytes.map_or(0.0, |bytes| progress.done_bytes as f64 / bytes.max(1) as f64);
        // A stream of no known length can't be had again, and has no journal.
        self.has_moved.fetch_or(progress.bytes.is_some(), Relaxed);
        self.line.draw(share, || said(progress));
    }
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

/// Blocks, and how many of them go at once.
fn blocks(number: u64, shape: Shape) -> String {
    let blocks = if number == 1 { "block" } else { "blocks" };
    let at_once = number.min(shape.concurrency as u64);
    format!("{number} {blocks} of {}, {at_once} at once", size(shape.block_bytes))
}

/// How far it is: `data.tar: 0.5 GB of 2 GB, 120 MB/s; 375 blocks of 4 MB, 64 at once, 12 s left`.
fn said(progress: &Progress<'_>) -> String {
    let Progress { name, done_bytes, bytes, elapsed_s, plan } = progress;
    let of = bytes.map_or(String::new(), |bytes| format!(" of {}", size(bytes)));
    let name = escape_controls(name);
    let mut said = format!("{name}: {}{of}, {}", size(*done_bytes), speed(*done_bytes, *elapsed_s));
    if let Some(Plan { shape, expected_s, .. }) = plan {
        let left = time((expected_s - elapsed_s).max(0.0));
        let rest = bytes.unwrap_or(0).saturating_sub(*done_bytes).div_ceil(shape.block_bytes);
        let _ = write!(said, "; {}, {left} left", blocks(rest, *shape));
    }
    said
}

/// A line for each file; of one alone the plan and the sum too, and of several how many they were.
fn text(way: Way, outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    let (mut files, mut bytes_moved) = (0, 0);
    for Outcome { path, name, bytes, done } in outcomes {
        let (from, to) = match way {
            Way::Put => (path.display().to_string(), name.clone()),
            Way::Get => (name.clone(), path.display().to_string()),
        };
        // Whoever chose them may have meant to steer a terminal.
        let (from, to) = (escape_controls(&from), escape_controls(&to));
        let _ = match done {
            // How much comes is not known before it has come.
            Done::Said if way == Way::Put && from == "-" => writeln!(text, "{from} → {to}"),
            Done::Said => writeln!(text, "{from} → {to}: {}", size(*bytes)),
            Done::Moved(moved) => {
                if moved.skipped.is_none() {
                    (files, bytes_moved) = (files + 1, bytes_moved + moved.bytes);
                }
                let lines = lines(moved);
                let lines = if outcomes.len() == 1 { &lines[..] } else { &lines[..1] };
                writeln!(text, "{from} → {to}: {}", lines.join("\n  "))
            }
            // Said on standard error.
            Done::Failed(_) => Ok(()),
        };
    }
    if outcomes.len() > 1 && files > 0 {
        let _ = writeln!(text, "{files} of {} files moved, {}", outcomes.len(), size(bytes_moved));
    }
    text
}

/// What came of one file; how right the plan was; and its sum.
fn lines(moved: &Moved) -> Vec<String> {
    match moved.skipped {
        Some(Skipped::Exists) => return vec!["left alone, for it is there".into()],
        Some(Skipped::Unchanged) => return vec!["left alone, for it is there and the same".into()],
        None => {}
    }
    let rest = moved.bytes - moved.resumed_bytes;
    let mut said = format!("{} in {} ({})", size(moved.bytes), time(moved.elapsed_s), speed(rest, moved.elapsed_s));
    if moved.resumed_bytes > 0 {
        let _ = write!(said, ", {} of it were there", size(moved.resumed_bytes));
    }
    let mut lines = vec![said];
    if let Some(Plan { shape, expected_s, low_s, high_s, .. }) = moved.plan {
        let times = moved.elapsed_s / expected_s;
        let took = match (times - 1.0) * 100.0 {
            _ if times > 2.0 => format!("{times:.1} times as long"),
            percent if percent < 0.0 => format!("{:.0} % less", -percent),
            percent => format!("{percent:.0} % more"),
        };
        let blocks = blocks(rest.div_ceil(shape.block_bytes), shape);
        lines.push(format!("planned {blocks}: {} ({} to {})", time(expected_s), time(low_s), time(high_s)));
        lines.push(format!("it took {took}"));
    }
    if let Some(crc64) = moved.crc64 {
        let verified = if moved.verified { ", read back and the same" } else { "" };
        lines.push(format!("CRC-64/NVME {crc64:016x}{verified}"));
    }
    lines
}

fn json(way: Way, outcomes: &[Outcome]) -> Value {
    let files = outcomes.iter().map(|Outcome { path, name, bytes, done }| {
        let moved = if let Done::Moved(moved) = done { Some(&**moved) } else { None };
        let plan = moved.and_then(|moved| moved.plan);
        json!({
            "path": path.display().to_string(),
            "name": name,
            "bytes": bytes,
            "done": match done {
                Done::Said => "dry-run",
                Done::Failed(_) => "failed",
                Done::Moved(moved) => match moved.skipped {
                    Some(Skipped::Exists) => "exists",
                    Some(Skipped::Unchanged) => "unchanged",
                    None => "moved",
                },
            },
            "error": if let Done::Failed(error) = done { Some(error.to_string()) } else { None },
            "resumed_bytes": moved.map(|moved| moved.resumed_bytes),
            "blocks": moved.map(|moved| moved.blocks),
            "elapsed_s": moved.map(|moved| moved.elapsed_s),
            "crc64": moved.and_then(|moved| moved.crc64).map(|crc64| format!("{crc64:016x}")),
            "requests": moved.map(|moved| requests(&moved.requests)),
            "verified": moved.map(|moved| moved.verified),
            "plan": plan.map(|plan| json!({
                "block_bytes": plan.shape.block_bytes,
                "connections": plan.shape.concurrency,
                "expected_s": plan.expected_s,
                "low_s": plan.low_s,
                "high_s": plan.high_s,
                "fixed_s": plan.link.fixed_s,
                "fresh_s": plan.link.fresh_s,
                "latency_s": plan.link.latency_s,
                "bytes_per_s": plan.link.bytes_per_s,
                "ceiling_bytes_per_s": plan.link.ceiling_bytes_per_s,
            })),
        })
    });
    let way = if way == Way::Put { "put" } else { "get" };
    json!({ "schema": "ascertain.transfer/1", "way": way, "files": files.collect::<Vec<_>>() })
}

/// How long the phases of requests took, and what was tried again.
fn requests(Requests { connect_s, header_s, transfer_s, retried }: &Requests) -> Value {
    let spread =
        |spread: &Option<Spread>| spread.map(|Spread { median, worst }| json!({"median": median, "worst": worst}));
    json!({
        "connect_s": spread(connect_s),
        "header_s": spread(header_s),
        "transfer_s": spread(transfer_s),
        "retried": {
            "slow_down": retried.slow_down,
            "corrupted": retried.corrupted,
            "silent": retried.silent,
            "broken": retried.broken,
        },
    })
}

#[cfg(test)]
mod tests {
    use ascertain::moving::Link;

    use super::*;

    fn plan() -> Plan {
        let shape = Shape { block_bytes: 4_000_000, concurrency: 64 };
        let link = Link { fixed_s: 0.1, fresh_s: 0.05, latency_s: 0.05, bytes_per_s: 2e6, ceiling_bytes_per_s: None };
        Plan { shape, expected_s: 8.0, low_s: 7.5, high_s: 8.5, link }
    }

    #[test]
    fn what_came_of_it_and_how_right_the_plan_was() {
        let moved = Moved {
            bytes: 1_000_000_000,
            resumed_bytes: 0,
            blocks: 250,
            elapsed_s: 8.4,
            plan: Some(plan()),
            crc64: Some(0xabc),
            verified: true,
            requests: Requests::default(),
            skipped: None,
        };
        let expected = [
            "1.000 GB in 8.400 s (119.0 MB/s)",
            "planned 250 blocks of 4.000 MB, 64 at once: 8.000 s (7.500 s to 8.500 s)",
            "it took 5 % more",
            "CRC-64/NVME 0000000000000abc, read back and the same",
        ];
        assert_eq!(lines(&moved), expected);
        assert!(expected.iter().all(|line| line.chars().count() <= 78));
        for (elapsed_s, said) in [(7.2, "it took 10 % less"), (80.0, "it took 10.0 times as long")] {
            assert_eq!(lines(&Moved { elapsed_s, ..moved.clone() })[2], said);
        }
        let skipped = Moved { skipped: Some(Skipped::Unchanged), ..moved.clone() };
        assert_eq!(lines(&skipped), ["left alone, for it is there and the same"]);
        let outcome = |done| Outcome { path: "a b".into(), name: "n".into(), bytes: 1, done };
        let outcomes = [outcome(Done::Said), outcome(Done::Moved(Box::new(moved)))];
        let json = json(Way::Put, &outcomes);
        assert_eq!((&json["files"][0]["done"], &json["files"][1]["done"]), (&json!("dry-run"), &json!("moved")));
        assert_eq!(json["files"][1]["plan"]["connections"], 64);
        assert!(json["files"][0]["crc64"].is_null());
        let both = text(Way::Put, &outcomes);
        assert_eq!(both, "a b → n: 1 B\na b → n: 1.000 GB in 8.400 s (119.0 MB/s)\n1 of 2 files moved, 1.000 GB\n");
        let one = text(Way::Put, &outcomes[1..]);
        assert!(
            one.starts_with("a b → n: 1.000 GB in 8.400 s (119.0 MB/s)\n  planned 250") && one.lines().count() == 4
        );
        let evil = Outcome { path: "\u{1b}[2J".into(), name: "a\nb".into(), bytes: 1, done: Done::Said };
        assert_eq!(text(Way::Get, &[evil]), "a\\nb → \\u{1b}[2J: 1 B\n");
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
        };
        assert_eq!(
            said(&progress),
            "n: 500.0 MB of 1.000 GB, 125.0 MB/s; 125 blocks of 4.000 MB, 64 at once, 4.000 s left"
        );
        let unknown = Progress { bytes: None, plan: None, ..progress };
        assert_eq!(said(&Progress { name: "\u{1b}[2J", ..unknown.clone() }), r"\u{1b}[2J: 500.0 MB, 125.0 MB/s");
        assert_eq!(said(&unknown), "n: 500.0 MB, 125.0 MB/s");
    }

    #[test]
    fn sizes_and_rates() {
        assert_eq!([bytes("256MiB"), bytes("1000"), bytes("1.5 MB")], [Ok(1 << 28), Ok(1000), Ok(1_500_000)]);
        assert!(bytes("0").is_err() && bytes("-1MB").is_err() && bytes("nan").is_err() && bytes("x").is_err());
        assert_eq!([rate("10MB/s"), rate("100Mbit/s")], [Ok(10_000_000), Ok(12_500_000)]);
        assert!(rate("0MB/s").is_err() && rate("10").is_err() || rate("10") == Ok(10));
    }
}
