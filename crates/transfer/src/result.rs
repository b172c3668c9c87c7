//! The results and the progress of transfers.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use crate::error::Error;
use crate::location::Location;
use crate::model::{Forecast, Shape, TransferPlan};
use crate::store::{Attempt, Failure, Kind};

/// The result of the transfer of one file.
#[derive(Debug, Default)]
pub struct TransferResult {
    /// Path of the file; `-` for a stream.
    pub path: PathBuf,
    /// Address of the object, without secrets.
    pub address: String,
    /// Size of the file in bytes; 0 if it is unknown, for example because a stream was not read.
    pub bytes: u64,
    /// The outcome: transferred, skipped or failed.
    pub status: TransferStatus,
    /// Number of bytes that an earlier, interrupted attempt had already transferred.
    pub resumed_bytes: u64,
    /// The reason why an earlier attempt could not be resumed; `None` if there was no such attempt, or it was resumed.
    pub restart_reason: Option<String>,
    /// The ranges of a download that had wrong bytes, and were fetched again.
    pub repaired: Vec<RepairedRange>,
    /// Number of requests that carried the file's bytes in this attempt.
    pub parts: u64,
    /// Duration of the transfer in seconds. The time to read the object back for verification is excluded.
    pub elapsed_s: f64,
    /// The CRC-64/NVME of the file's bytes; `None` if the file was not transferred.
    pub crc64: Option<u64>,
    /// The tag of the object that was stored or fetched, which changes whenever the object changes. `None` if the store
    /// has no tags, or if the file was not transferred.
    pub etag: Option<String>,
    /// `true` if the object was read back and has the same content as the file.
    pub verified: bool,
    /// Durations and retries of the requests that carried the file's bytes.
    pub requests: RequestSummary,
    /// The first plan of the command, with its first forecast of the duration; `None` if the transfer ended before the
    /// first plan.
    pub plan: Option<TransferPlan>,
    /// Number of bytes that had been transferred when the first plan was made.
    pub probed_bytes: u64,
}

/// The outcome of the transfer of one file.
#[derive(Debug, Default)]
pub enum TransferStatus {
    /// The file would be transferred, but this was a dry run.
    #[default]
    Planned,
    /// The file was transferred.
    Transferred,
    /// The file was skipped, because the target exists and must not be overwritten.
    Exists,
    /// The file was skipped, because the target has the same content.
    Unchanged,
    /// The file was not transferred, because of this error.
    Failed(Error),
}

impl TransferResult {
    pub(crate) fn new(path: &Path, object: &Location, bytes: u64, status: TransferStatus) -> Self {
        Self { path: path.to_path_buf(), address: object.address.clone(), bytes, status, ..Self::default() }
    }

    /// Returns whether the file was transferred.
    #[must_use]
    pub fn is_transferred(&self) -> bool {
        matches!(self.status, TransferStatus::Transferred)
    }

    /// Returns a note about the damaged ranges: "bytes 8388608-16777215 arrived damaged, and were fetched again".
    /// Returns `None` if no range was damaged.
    #[must_use]
    pub fn repair_note(&self) -> Option<String> {
        let is_needed = !self.repaired.is_empty();
        is_needed.then(|| format!("{} arrived damaged, and were fetched again", ranges_text(&self.repaired)))
    }
}

/// A range of a download that had wrong bytes, and was fetched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RepairedRange {
    /// Offset of the first byte of the range.
    pub offset: u64,
    /// Size of the range in bytes.
    pub bytes: u64,
}

impl From<Range<u64>> for RepairedRange {
    fn from(Range { start, end }: Range<u64>) -> Self {
        Self { offset: start, bytes: end - start }
    }
}

/// Returns ranges in words: "bytes 0-99, 200-299 and 4 further ranges".
pub(crate) fn ranges_text(ranges: &[RepairedRange]) -> String {
    const SHOWN: usize = 3;
    let range = |&RepairedRange { offset, bytes }: &RepairedRange| {
        // An empty range has no last byte.
        format!("{offset}-{}", (offset + bytes).saturating_sub(1))
    };
    let shown = ranges.iter().take(SHOWN).map(range).collect::<Vec<_>>().join(", ");
    match ranges.len().saturating_sub(SHOWN) {
        0 => format!("bytes {shown}"),
        1 => format!("bytes {shown} and another range"),
        more => format!("bytes {shown} and {more} further ranges"),
    }
}

/// The progress of a transfer, as an [`Observer`] receives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Name of the object that is transferred.
    pub name: &'a str,
    /// Number of bytes that have been transferred so far. The bytes of an earlier attempt are included.
    pub done_bytes: u64,
    /// Size of the whole file in bytes; `None` if it is unknown.
    pub bytes: Option<u64>,
    /// Time since the start of the transfer, in seconds.
    pub elapsed_s: f64,
    /// The size of the parts that remain, and the number of parts in flight; `None` before the first plan.
    pub shape: Option<Shape>,
    /// The latest forecast of the duration of the command; `None` before there is something to base it on.
    pub forecast: Option<Forecast>,
    /// The number of complete files and the number of all files; `None` for a single file. For several files,
    /// `done_bytes`, `bytes` and `elapsed_s` are totals of all files that are not skipped.
    pub files: Option<[u64; 2]>,
}

/// Receives the progress of transfers.
pub trait Observer: Send + Sync {
    /// Receives the progress after each part and, if there are several files, after each file.
    fn progress(&self, progress: &Progress<'_>);

    /// Receives an outage about once a second while it lasts, and `None` when it has ended. Does nothing by default.
    fn outage(&self, _outage: Option<&Outage<'_>>) {}
}

/// An outage: no bytes of any request move, and no request succeeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Outage<'a> {
    /// Host and port of the server that the latest request was sent to.
    pub host: &'a str,
    /// Time in seconds since bytes of a request last moved or a request last succeeded.
    pub silent_s: f64,
    /// The HTTP status with which the server refused the latest failed request; `None` if it did not answer.
    pub status: Option<u16>,
    /// Time in seconds for which requests will still be retried. `None` for a request that is not simply repeated, such
    /// as a commit.
    pub left_s: Option<f64>,
}

/// An observer that ignores the progress.
impl Observer for () {
    fn progress(&self, _progress: &Progress<'_>) {}
}

/// Durations of the requests that carried a file's bytes, and the number of retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RequestSummary {
    /// Time from the start of a request until TCP and TLS were ready. Covers only requests that opened a connection.
    pub connect_s: Option<Spread>,
    /// Time from an open connection to the arrival of the answer's head. It includes sending the request.
    pub header_s: Option<Spread>,
    /// Time from the arrival of the answer's head to the arrival of the answer's last byte. For `get`, it includes
    /// writing the bytes to the file.
    pub transfer_s: Option<Spread>,
    /// Number of failed attempts, by reason.
    #[serde(rename = "retried")]
    pub retries: RetryCounts,
    /// Number of requests that were sent a second time because the first request was late.
    pub hedged: u64,
}

/// The median and the maximum of several durations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median duration, in seconds.
    pub median: f64,
    /// The longest duration, in seconds.
    pub worst: f64,
}

/// Number of retried requests, by the reason for the retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RetryCounts {
    /// Number of attempts that failed because the store was too busy (status 429 or 503).
    pub slow_down: u64,
    /// Number of attempts that failed because bytes were corrupted on the way or in the store.
    pub corrupted: u64,
    /// Number of attempts that failed because no answer arrived before the timeout.
    pub silent: u64,
    /// Number of attempts that failed because the connection broke, the answer was lost, or the store had an error.
    pub broken: u64,
}

impl RetryCounts {
    /// Counts a failed attempt of a request that is retried. `attempt` is `None` if the attempt reached the timeout.
    pub(crate) fn add(&mut self, failure: &Failure, attempt: Option<&Attempt>) {
        *match attempt {
            None | Some(Attempt { timed_out: true, .. }) => &mut self.silent,
            Some(Attempt { status: Some(429 | 503), .. }) => &mut self.slow_down,
            Some(_) if failure.kind == Kind::Corrupted => &mut self.corrupted,
            Some(_) => &mut self.broken,
        } += 1;
    }
}

/// The durations and the number of retries of a request that finally succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RequestStats {
    /// The time in seconds to open the connection of the first attempt. The outer `None` means that this attempt
    /// failed. The inner `None` means that it used an open connection.
    pub first_try: Option<Option<f64>>,
    /// Three durations of the last attempt in seconds: opening the connection, waiting for the head of the answer, and
    /// receiving the rest. `None` for a phase that did not occur.
    pub phases_s: [Option<f64>; 3],
    /// Number of failed attempts, by reason.
    pub retries: RetryCounts,
    /// `true` if the request was sent a second time because the first request was late.
    pub is_hedged: bool,
}

impl RequestStats {
    /// Marks a request that was sent a second time. Its duration does not measure the link.
    pub fn hedged(self) -> Self {
        Self { first_try: None, is_hedged: true, ..self }
    }

    /// Creates the record of a request whose last attempt succeeded.
    pub fn new(last: &Attempt, retries: RetryCounts) -> Self {
        let between =
            |from: Option<Instant>, to: Option<Instant>| Some(to?.saturating_duration_since(from?).as_secs_f64());
        let sent = last.secured.or(last.connected).or(last.began);
        let phases_s = [last.connecting_s(), between(sent, last.header), between(last.header, last.last_byte)];
        Self {
            first_try: (retries == RetryCounts::default()).then(|| last.connecting_s()),
            phases_s,
            retries,
            is_hedged: false,
        }
    }
}

impl RequestSummary {
    /// Summarises the requests of a transfer.
    pub(crate) fn new(requests: &[RequestStats]) -> Self {
        let spread = |phase: usize| Spread::new(requests.iter().filter_map(|stats| stats.phases_s[phase]).collect());
        let mut retries = RetryCounts::default();
        for RetryCounts { slow_down, corrupted, silent, broken } in requests.iter().map(|stats| stats.retries) {
            retries.slow_down += slow_down;
            retries.corrupted += corrupted;
            retries.silent += silent;
            retries.broken += broken;
        }
        let hedged = requests.iter().filter(|stats| stats.is_hedged).count() as u64;
        Self { connect_s: spread(0), header_s: spread(1), transfer_s: spread(2), retries, hedged }
    }
}

impl Spread {
    fn new(mut times: Vec<f64>) -> Option<Self> {
        times.sort_by(f64::total_cmp);
        Some(Self { median: *times.get(times.len() / 2)?, worst: *times.last()? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_empty_range_has_a_text() {
        let range = |offset, bytes| RepairedRange { offset, bytes };
        assert_eq!(ranges_text(&[range(0, 0), range(2, 3)]), "bytes 0-0, 2-4");
    }

    #[test]
    fn phases_lie_between_the_recorded_times() {
        let began = Instant::now();
        let at = |ms| Some(began + Duration::from_millis(ms));
        let fresh = Attempt { began: at(0), connected: at(10), secured: at(30), header: at(80), ..Attempt::default() };
        let fresh = Attempt { last_byte: at(100), ..fresh };
        let kept = Attempt { connected: None, secured: None, ..fresh.clone() };
        let failure = |kind| Failure::new(kind, "");
        let mut retries = RetryCounts::default();
        retries.add(&failure(Kind::Transient(None)), Some(&Attempt { status: Some(503), ..kept.clone() }));
        retries.add(&failure(Kind::Transient(None)), None);
        retries.add(&failure(Kind::Transient(None)), Some(&fresh));
        retries.add(&failure(Kind::Corrupted), Some(&fresh));
        let none = RetryCounts::default();
        let stats = [(&fresh, retries), (&kept, none), (&fresh, none)];
        let requests = RequestSummary::new(&stats.map(|(attempt, retries)| RequestStats::new(attempt, retries)));
        let spread = |median, worst| Some(Spread { median, worst });
        assert_eq!((requests.connect_s, requests.header_s), (spread(0.03, 0.03), spread(0.05, 0.08)));
        assert_eq!(requests.transfer_s, spread(0.02, 0.02));
        assert_eq!(requests.retries, RetryCounts { slow_down: 1, corrupted: 1, silent: 1, broken: 1 });
        assert_eq!(RequestSummary::new(&[]), RequestSummary::default());
    }
}
