//! The output of `ascertain put` and `ascertain get`: the progress line, and the result of each file.

use std::fmt::Write;
use std::time::Duration;

use ascertain_engine::unit::Unit;
use ascertain_transfer::model::Shape;
use ascertain_transfer::{Direction, Forecast, Outage, Progress, TransferResult, TransferStatus};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::json;
use crate::text::{counted, escape_controls};

/// The name and version of the JSON schema of [`TransferReport`].
pub const SCHEMA: &str = "ascertain.transfer/1";

/// The largest number of files that are listed one by one, unless the user requests a list of all files.
const MAX_FILES: usize = 20;

/// The results of one `put` or `get`. Unknown values are `null` in JSON.
#[derive(Debug, serde::Serialize)]
pub struct TransferReport<'a> {
    schema: &'static str,
    #[serde(rename = "way")]
    direction: Direction,
    dry_run: bool,
    elapsed_s: f64,
    #[serde(rename = "files", serialize_with = "serialize_files")]
    results: &'a [TransferResult],
}

fn serialize_files<S: Serializer>(results: &&[TransferResult], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(results.iter().map(File))
}

/// Serializes the result of one file.
struct File<'a>(&'a TransferResult);

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let result = self.0;
        let transferred = Some(result).filter(|result| result.is_transferred());
        let error = if let TransferStatus::Failed(error) = &result.status { Some(error.to_string()) } else { None };
        let mut fields = serializer.serialize_struct("File", 14)?;
        fields.serialize_field("path", &result.path.display().to_string())?;
        fields.serialize_field("name", &result.address)?;
        fields.serialize_field("bytes", &result.bytes)?;
        fields.serialize_field("done", word(&result.status))?;
        fields.serialize_field("error", &error)?;
        fields.serialize_field("resumed_bytes", &transferred.map(|result| result.resumed_bytes))?;
        if let Some(reason) = transferred.and_then(|result| result.restart_reason.as_ref()) {
            fields.serialize_field("begun_anew", reason)?;
        }
        if let Some(repaired) = transferred.map(|result| &result.repaired).filter(|repaired| !repaired.is_empty()) {
            fields.serialize_field("repaired", repaired)?;
        }
        fields.serialize_field("blocks", &transferred.map(|result| result.parts))?;
        fields.serialize_field("elapsed_s", &transferred.map(|result| result.elapsed_s))?;
        let crc64 = transferred.and_then(|result| result.crc64).map(|crc64| format!("{crc64:016x}"));
        fields.serialize_field("crc64", &crc64)?;
        fields.serialize_field("requests", &transferred.map(|result| result.requests))?;
        fields.serialize_field("verified", &transferred.map(|result| result.verified))?;
        fields.serialize_field("plan", &transferred.and_then(|result| result.plan))?;
        fields.end()
    }
}

/// Returns the word for a status in JSON.
fn word(status: &TransferStatus) -> &'static str {
    match status {
        TransferStatus::Planned => "dry-run",
        TransferStatus::Transferred => "moved",
        TransferStatus::Exists => "exists",
        TransferStatus::Unchanged => "unchanged",
        TransferStatus::Failed(_) => "failed",
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

/// Returns a duration and, if any bytes were transferred, the rate: "5.400 s (833.0 kB/s)".
fn duration(bytes: u64, seconds: f64) -> String {
    match bytes {
        0 => time(seconds),
        bytes => format!("{} ({})", time(seconds), speed(bytes, seconds)),
    }
}

/// Returns the number and size of the parts of a file, and how many are transferred at once: "375 parts of 4 MB, 64 at
/// once".
fn parts(number: u64, shape: Shape) -> String {
    let at_once = number.min(shape.concurrency as u64);
    format!("{} of {}, {at_once} at once", counted(number, "part"), size(shape.part_bytes))
}

/// Returns the remaining time according to a forecast: "12 s left".
fn left(forecast: &Forecast, elapsed_s: f64) -> String {
    let left = match forecast.expected_s - elapsed_s {
        left_s if left_s > 0.0 => format!("{} left", time(left_s)),
        _ => "taking longer than estimated".into(),
    };
    match forecast.earlier {
        0 => left,
        earlier => format!("{left} (estimated from {earlier} earlier transfers)"),
    }
}

/// Returns the share of the bytes that has been transferred, from 0 to 1; 0 if the total is unknown.
#[must_use]
pub fn share(progress: &Progress<'_>) -> f64 {
    progress.bytes.map_or(0.0, |bytes| progress.done_bytes as f64 / bytes.max(1) as f64)
}

/// Returns the progress in words, for one file or for several:
///
/// ```text
/// data.tar: 0.5 GB of 2 GB, 120 MB/s; 375 parts of 4 MB, 64 at once, 12 s left
/// data.tar: 1 MB of 2 GB, 100 MB/s; 20 s left (estimated from 5 earlier transfers)
/// 120 of 3000 files, 0.5 GB of 2 GB, 120 MB/s, 12 s left; data.tar
/// ```
#[must_use]
pub fn sentence(progress: &Progress<'_>) -> String {
    let &Progress { name, done_bytes, bytes, elapsed_s, shape, ref forecast, files } = progress;
    let name = escape_controls(name);
    let of = bytes.map_or(String::new(), |bytes| format!(" of {}", size(bytes)));
    let done = format!("{}{of}, {}", size(done_bytes), speed(done_bytes, elapsed_s));
    let rest_bytes = bytes.map(|bytes| bytes.saturating_sub(done_bytes));
    let left = forecast.as_ref().filter(|_| rest_bytes != Some(0)).map(|forecast| left(forecast, elapsed_s));
    if let Some([done_files, files]) = files {
        let left = left.map_or(String::new(), |left| format!(", {left}"));
        return format!("{done_files} of {files} files, {done}{left}; {name}");
    }
    let rest = match (rest_bytes, shape) {
        (Some(0), _) => Some("waiting for completion".into()),
        (Some(bytes), Some(shape)) => Some(parts(bytes.div_ceil(shape.part_bytes), shape)),
        _ => None,
    };
    let rest: Vec<String> = rest.into_iter().chain(left).collect();
    if rest.is_empty() { format!("{name}: {done}") } else { format!("{name}: {done}; {}", rest.join(", ")) }
}

/// Returns an outage in words:
///
/// ```text
/// no answer from 127.0.0.1:9000 for 12 s, giving up in 108 s
/// store.example has answered 503 for 12 s, giving up in 108 s
/// ```
#[must_use]
pub fn outage_sentence(outage: &Outage<'_>) -> String {
    let &Outage { host, silent_s, status, left_s } = outage;
    let failing = match status {
        Some(status) => format!("{host} has answered {status} for {silent_s:.0} s"),
        None => format!("no answer from {host} for {silent_s:.0} s"),
    };
    match left_s {
        Some(left_s) if left_s < 1.0 => format!("{failing}, this is the last attempt"),
        Some(left_s) => format!("{failing}, giving up in {left_s:.0} s"),
        None => failing,
    }
}

impl<'a> TransferReport<'a> {
    /// Creates the report for a command that took the time `elapsed`.
    #[must_use]
    pub fn new(direction: Direction, dry_run: bool, results: &'a [TransferResult], elapsed: Duration) -> Self {
        Self { schema: SCHEMA, direction, dry_run, elapsed_s: elapsed.as_secs_f64(), results }
    }

    /// Returns a line for each file, then the total. For more than 20 files there is only the total, unless `all` is
    /// set. For a single file there is no total, but there are lines with its forecast and checksum. Failed files are
    /// not listed, because they were printed when they failed.
    #[must_use]
    pub fn text(&self, all: bool) -> String {
        let mut text = String::new();
        let is_failed = |result: &&TransferResult| matches!(result.status, TransferStatus::Failed(_));
        if all || self.results.len() <= MAX_FILES {
            for result in self.results.iter().filter(|result| !is_failed(result)) {
                let _ = writeln!(text, "{}", self.file(result));
            }
        }
        if self.results.len() > 1 && !self.results.iter().all(|result| is_failed(&result)) {
            let _ = writeln!(text, "{}", self.sum());
        }
        text
    }

    /// Returns the report as JSON, for `--format json`.
    #[must_use]
    pub fn json(&self) -> String {
        json::object(self)
    }

    fn file(&self, result: &TransferResult) -> String {
        let path = result.path.display().to_string();
        // Names may contain characters that control the terminal.
        let [from, to] = match self.direction {
            Direction::Put => [&path, &result.address],
            Direction::Get => [&result.address, &path],
        }
        .map(|name| escape_controls(name));
        let arrow = format!("{from} → {to}");
        match result.status {
            // The size of a stream is unknown before it is read.
            TransferStatus::Planned if self.direction == Direction::Put && path == "-" => arrow,
            TransferStatus::Planned => format!("{arrow}: {}", size(result.bytes)),
            TransferStatus::Exists => format!("{arrow}: skipped, because it exists"),
            TransferStatus::Unchanged => format!("{arrow}: skipped, because it exists and is identical"),
            TransferStatus::Transferred | TransferStatus::Failed(_) => {
                let lines = lines(result);
                let lines = if self.results.len() == 1 { &lines[..] } else { &lines[..1] };
                format!("{arrow}: {}", lines.join("\n  "))
            }
        }
    }

    /// Returns the totals of all files: "3000 of 3000 files transferred, 4.498 MB in 5.400 s (833.0 kB/s)".
    fn sum(&self) -> String {
        let with = |status| self.results.iter().filter(move |result| word(&result.status) == status);
        let count = |status| with(status).count();
        let new_bytes = |status| with(status).map(|result| result.bytes - result.resumed_bytes).sum();
        let files = self.results.len();
        let mut sum = if self.dry_run {
            let planned = count("dry-run");
            format!("{planned} of {files} files would be transferred, {}", size(new_bytes("dry-run")))
        } else {
            let duration = duration(new_bytes("moved"), self.elapsed_s);
            let bytes: u64 = with("moved").map(|result| result.bytes).sum();
            format!("{} of {files} files transferred, {} in {duration}", count("moved"), size(bytes))
        };
        for (count, what) in [(count("exists") + count("unchanged"), "skipped"), (count("failed"), "failed")] {
            if count > 0 {
                let _ = write!(sum, "; {count} {what}");
            }
        }
        sum
    }
}

/// Returns the lines about a file: its size and duration, the forecast with its deviation, and the checksum.
fn lines(result: &TransferResult) -> Vec<String> {
    let rest_bytes = result.bytes - result.resumed_bytes;
    let mut first = format!("{} in {}", size(result.bytes), duration(rest_bytes, result.elapsed_s));
    if result.resumed_bytes > 0 {
        let _ = write!(first, ", resumed after {}", size(result.resumed_bytes));
    }
    let mut lines = vec![first];
    if let Some(plan) = result.plan {
        let parts = parts(rest_bytes.div_ceil(plan.shape.part_bytes), plan.shape);
        let is_long = |forecast: &Forecast| forecast.expected_s.max(result.elapsed_s) >= LEAST_COMPARED_S;
        lines.push(match plan.forecast.filter(is_long) {
            Some(forecast) => format!("{parts}; {}", comparison(&forecast, result.elapsed_s)),
            None => parts,
        });
    }
    if let Some(crc64) = result.crc64 {
        let verified = if result.verified { ", read back and identical" } else { "" };
        lines.push(format!("CRC-64/NVME {crc64:016x}{verified}"));
    }
    lines
}

/// Shortest time in seconds, estimated or actual, for which the result shows the estimate. Nobody waits for shorter
/// transfers.
const LEAST_COMPARED_S: f64 = 1.0;

/// Compares a forecast with the actual duration: "the estimate was 8 s (80 % interval: 7.5 s to 8.5 s), the transfer
/// took 5 % longer".
fn comparison(forecast: &Forecast, elapsed_s: f64) -> String {
    let times = elapsed_s / forecast.expected_s;
    let took = match (times - 1.0) * 100.0 {
        _ if times >= 1.5 => format!("{times:.1} times as long"),
        percent if percent.abs() < 0.5 => "the same time".into(),
        percent if percent < 0.0 => format!("{:.0} % less time", -percent),
        percent => format!("{percent:.0} % longer"),
    };
    let [expected, low, high] = [forecast.expected_s, forecast.low_s, forecast.high_s].map(time);
    format!("the estimate was {expected} (80 % interval: {low} to {high}), the transfer took {took}")
}

#[cfg(test)]
mod tests {
    use ascertain_transfer::model::{Link, TransferPlan};
    use ascertain_transfer::{Error, RepairedRange};

    use super::*;

    fn forecast() -> Forecast {
        Forecast { expected_s: 8.0, low_s: 7.5, high_s: 8.5, earlier: 0 }
    }

    fn plan() -> TransferPlan {
        let shape = Shape { part_bytes: 4_000_000, concurrency: 64 };
        let (fixed_s, fresh_s, latency_s) = (0.1, 0.05, 0.05);
        let link = Link { fixed_s, fresh_s, latency_s, bytes_per_s: 2e6, ceiling_bytes_per_s: None };
        TransferPlan { shape, forecast: Some(forecast()), link }
    }

    fn transferred() -> TransferResult {
        TransferResult {
            path: "a b".into(),
            address: "n".into(),
            bytes: 1_000_000_000,
            status: TransferStatus::Transferred,
            parts: 250,
            elapsed_s: 8.4,
            crc64: Some(0xabc),
            verified: true,
            plan: Some(plan()),
            ..TransferResult::default()
        }
    }

    fn not_transferred(status: TransferStatus) -> TransferResult {
        TransferResult { bytes: 1, status, crc64: None, plan: None, ..transferred() }
    }

    fn text(direction: Direction, results: &[TransferResult], all: bool) -> String {
        let dry_run = results.iter().any(|result| matches!(result.status, TransferStatus::Planned));
        TransferReport::new(direction, dry_run, results, Duration::from_secs(10)).text(all)
    }

    #[test]
    fn a_time_as_estimated_is_the_same_time() {
        let as_estimated = TransferResult { elapsed_s: 8.02, ..transferred() };
        assert!(lines(&as_estimated)[1].ends_with(", the transfer took the same time"), "{:?}", lines(&as_estimated));
    }

    #[test]
    fn a_result_shows_the_rate_the_plan_and_the_error_of_the_estimate() {
        let expected = [
            "1.000 GB in 8.400 s (119.0 MB/s)",
            "250 parts of 4.000 MB, 64 at once; the estimate was 8.000 s (80 % interval: 7.500 s to 8.500 s), the \
             transfer took 5 % longer",
            "CRC-64/NVME 0000000000000abc, read back and identical",
        ];
        assert_eq!(lines(&transferred()), expected);
        let slower = TransferResult { elapsed_s: 24.0, resumed_bytes: 400_000_000, ..transferred() };
        assert_eq!(
            lines(&slower)[..2],
            [
                "1.000 GB in 24.00 s (25.00 MB/s), resumed after 400.0 MB",
                "150 parts of 4.000 MB, 64 at once; the estimate was 8.000 s (80 % interval: 7.500 s to 8.500 s), \
                 the transfer took 3.0 times as long",
            ]
        );
        let rest = lines(&TransferResult { resumed_bytes: 998_000_000, ..slower });
        assert!(rest[1].starts_with("1 part of 4.000 MB, 1 at once; "), "{rest:?}");
        let forecast = Some(Forecast { expected_s: 0.01, low_s: 0.009, high_s: 0.011, earlier: 0 });
        let short =
            TransferResult { plan: Some(TransferPlan { forecast, ..plan() }), elapsed_s: 0.02, ..transferred() };
        assert_eq!(lines(&short)[1], "250 parts of 4.000 MB, 64 at once", "the transfer was too short");
        let unforetold = TransferResult { plan: Some(TransferPlan { forecast: None, ..plan() }), ..transferred() };
        assert_eq!(lines(&unforetold)[1], "250 parts of 4.000 MB, 64 at once");
        let empty = TransferResult { bytes: 0, plan: None, elapsed_s: 0.0026, ..transferred() };
        assert_eq!(lines(&empty)[0], "0 B in 2.600 ms", "without bytes there is no rate");
    }

    #[test]
    fn a_single_file_is_shown_in_full_and_several_with_their_total() {
        let failed = || TransferStatus::Failed(Error::Stopped);
        let one = text(Direction::Put, &[transferred()], false);
        assert!(one.starts_with("a b → n: 1.000 GB in 8.400 s (119.0 MB/s)\n  250 parts"), "{one}");
        assert_eq!(one.lines().count(), 3, "{one}");
        let several = [transferred(), not_transferred(TransferStatus::Unchanged), not_transferred(failed())];
        assert_eq!(
            text(Direction::Put, &several, false),
            "a b → n: 1.000 GB in 8.400 s (119.0 MB/s)\n\
             a b → n: skipped, because it exists and is identical\n\
             1 of 3 files transferred, 1.000 GB in 10.00 s (100.0 MB/s); 1 skipped; 1 failed\n"
        );
        let dry = [TransferStatus::Planned, TransferStatus::Planned, TransferStatus::Exists].map(not_transferred);
        assert_eq!(
            text(Direction::Get, &dry, false),
            "n → a b: 1 B\nn → a b: 1 B\nn → a b: skipped, because it exists\n\
             2 of 3 files would be transferred, 2 B; 1 skipped\n"
        );
        let none = text(Direction::Put, &[(); 2].map(|()| not_transferred(TransferStatus::Exists)), false);
        assert!(none.ends_with("0 of 2 files transferred, 0 B in 10.00 s; 2 skipped\n"), "{none}");
        let none = text(Direction::Put, &[(); 2].map(|()| not_transferred(failed())), false);
        assert_eq!(none, "", "failures were printed when they happened");
        let planned = not_transferred(TransferStatus::Planned);
        let evil = TransferResult { path: "\u{1b}[2J".into(), address: "a\nb".into(), ..planned };
        assert_eq!(text(Direction::Get, &[evil], false), "a\\nb → \\u{1b}[2J: 1 B\n");
    }

    #[test]
    fn many_files_are_shown_as_a_total_unless_all_are_requested() {
        let many = [(); 21].map(|()| transferred());
        assert_eq!(
            text(Direction::Put, &many, false),
            "21 of 21 files transferred, 21.00 GB in 10.00 s (2.100 GB/s)\n"
        );
        assert_eq!(text(Direction::Put, &many, true).lines().count(), 22);
    }

    #[test]
    fn programs_read_each_file() {
        let results = [
            not_transferred(TransferStatus::Planned),
            transferred(),
            not_transferred(TransferStatus::Failed(Error::Stopped)),
        ];
        let json = TransferReport::new(Direction::Put, false, &results, Duration::from_secs(1)).json();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["schema"], &json["way"]), (&SCHEMA.into(), &"put".into()));
        let [planned, transferred, failed] = [0, 1, 2].map(|index| &json["files"][index]);
        assert_eq!([&planned["done"], &transferred["done"], &failed["done"]], ["dry-run", "moved", "failed"]);
        assert_eq!((&failed["error"], &transferred["crc64"]), (&"stopped".into(), &"0000000000000abc".into()));
        assert_eq!((&transferred["blocks"], &transferred["plan"]["connections"]), (&250.into(), &64.into()));
        for key in ["resumed_bytes", "blocks", "elapsed_s", "crc64", "requests", "verified", "plan"] {
            assert!(planned[key].is_null() && !transferred[key].is_null(), "{key}");
        }
        let plan = [("block_bytes", 4e6), ("connections", 64.0), ("expected_s", 8.0), ("low_s", 7.5), ("high_s", 8.5)];
        let link = [("fixed_s", 0.1), ("fresh_s", 0.05), ("latency_s", 0.05), ("bytes_per_s", 2e6)];
        for (key, value) in plan.iter().chain(&link) {
            assert_eq!(transferred["plan"][key].as_f64(), Some(*value), "{key}");
        }
        assert_eq!(transferred["plan"].as_object().unwrap().len(), 10);
        assert_eq!(transferred["requests"]["retried"]["slow_down"], 0);
        assert!(transferred.get("repaired").is_none());
        let repaired = vec![RepairedRange { offset: 8, bytes: 4 }];
        let results = [TransferResult { repaired, ..self::transferred() }];
        let json = TransferReport::new(Direction::Get, false, &results, Duration::from_secs(1)).json();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["files"][0]["repaired"], serde_json::json!([{"offset": 8, "bytes": 4}]));
    }

    #[test]
    fn an_outage_names_the_server_and_the_rest_of_the_time() {
        let outage = Outage { host: "h:9000", silent_s: 12.4, status: None, left_s: Some(107.6) };
        assert_eq!(outage_sentence(&outage), "no answer from h:9000 for 12 s, giving up in 108 s");
        let last = Outage { left_s: Some(0.0), ..outage.clone() };
        assert_eq!(outage_sentence(&last), "no answer from h:9000 for 12 s, this is the last attempt");
        let commit = Outage { left_s: None, ..outage.clone() };
        assert_eq!(outage_sentence(&commit), "no answer from h:9000 for 12 s");
        let busy = Outage { status: Some(503), ..outage };
        assert_eq!(outage_sentence(&busy), "h:9000 has answered 503 for 12 s, giving up in 108 s");
    }

    #[test]
    fn the_progress_sentence_contains_the_plan_and_the_remaining_time() {
        let progress = Progress {
            name: "n",
            done_bytes: 500_000_000,
            bytes: Some(1_000_000_000),
            elapsed_s: 4.0,
            shape: Some(plan().shape),
            forecast: Some(forecast()),
            files: None,
        };
        let with = |bytes, elapsed_s| sentence(&Progress { done_bytes: bytes, elapsed_s, ..progress.clone() });
        let rest = "n: 500.0 MB of 1.000 GB, 125.0 MB/s; 125 parts of 4.000 MB, 64 at once, 4.000 s left";
        assert_eq!(sentence(&progress), rest);
        assert!(with(500_000_000, 9.0).ends_with("; 125 parts of 4.000 MB, 64 at once, taking longer than estimated"));
        assert_eq!(with(1_000_000_000, 8.0), "n: 1.000 GB of 1.000 GB, 125.0 MB/s; waiting for completion");
        let unknown = Progress { bytes: None, shape: None, forecast: None, ..progress.clone() };
        assert_eq!((&*sentence(&unknown), share(&unknown)), ("n: 500.0 MB, 125.0 MB/s", 0.0));
        let evil = Progress { name: "\u{1b}[2J", ..unknown };
        assert_eq!(sentence(&evil), r"\u{1b}[2J: 500.0 MB, 125.0 MB/s");
        let many = Progress { files: Some([120, 3000]), ..progress };
        assert_eq!(sentence(&many), "120 of 3000 files, 500.0 MB of 1.000 GB, 125.0 MB/s, 4.000 s left; n");
        let begun = sentence(&Progress { done_bytes: 0, forecast: None, ..many.clone() });
        assert_eq!(begun, "120 of 3000 files, 0 B of 1.000 GB, 0 B/s; n", "without a forecast there is no time");
        let earlier = Some(Forecast { earlier: 5, ..forecast() });
        let words = "4.000 s left (estimated from 5 earlier transfers)";
        let of_many = sentence(&Progress { forecast: earlier, ..many });
        assert_eq!(of_many, format!("120 of 3000 files, 500.0 MB of 1.000 GB, 125.0 MB/s, {words}; n"));
        let first = Progress { shape: None, forecast: earlier, ..progress.clone() };
        assert_eq!(sentence(&first), format!("n: 500.0 MB of 1.000 GB, 125.0 MB/s; {words}"));
        let planned = Progress { forecast: None, ..progress };
        assert!(sentence(&planned).ends_with("; 125 parts of 4.000 MB, 64 at once"), "{}", sentence(&planned));
    }
}
