//! The common part of `put` and `get`: options, progress and results. Adds to each error which option solves the
//! problem.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use ascertain::Ending;
use ascertain::transfer::{
    Direction, Environment, Error, Filter, InterruptedTransfer, Kind, Links, Observer, Omission, Options, Outage,
    Pattern, Progress, Resume, STANDARD, Selection, Settings, Stop, TransferRequest, TransferResult, TransferStatus,
    interrupted_transfers, run,
};
use ascertain_engine::evidence;
use ascertain_engine::unit::{Unit, parse_quantity};
use ascertain_report::progress::Line;
use ascertain_report::transfer::{TransferReport, outage_sentence, sentence, share};
use ascertain_sys::interrupt;

use crate::options::{Display, Format, Word, bytes, duration, one_of};
use crate::output;

/// The places from which `put` and `get` take credentials, for `--help`.
pub const CREDENTIALS: &str = "Credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile of ~/.aws; \
    AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN; \
    GOOGLE_APPLICATION_CREDENTIALS or gcloud's login. docs/put-and-get.md lists all of them.";

/// Options that `put` and `get` share.
#[derive(clap::Args)]
pub struct TransferOptions {
    /// Pattern of names to transfer from folders and prefixes, such as `*.{jpg,png}`, `2026/**` or `photos/`
    #[arg(long, value_name = "PATTERN", help_heading = "Files")]
    include: Vec<Pattern>,
    /// Pattern of names to leave out, such as `*.tmp`, `.git` or `node_modules/`; a folder is left out with its content
    #[arg(long, value_name = "PATTERN", help_heading = "Files")]
    exclude: Vec<Pattern>,
    /// List the files that would be transferred or skipped, without transferring them
    #[arg(long, help_heading = "Files")]
    dry_run: bool,
    /// List every file in the summary, even if there are more than 20
    #[arg(long, help_heading = "Files")]
    all: bool,
    /// Skip files that already exist at the destination
    #[arg(long, help_heading = "Files")]
    no_clobber: bool,
    /// Skip files that are the same at the destination, by checksum if the store has one, otherwise by size and time.
    /// In a folder, the checksum is compared only if the time is newer (`put`) or differs (`get`), or with --verify
    #[arg(long, help_heading = "Files")]
    skip_unchanged: bool,
    /// Compare the content again after the transfer: `put` reads the object back, `get` reads it twice
    #[arg(long, help_heading = "Transfer")]
    verify: bool,
    /// Memory limit for parts in flight (plus up to 64 MiB of reusable buffers per direction)
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = bytes, help_heading = "Transfer")]
    memory: u64,
    /// Maximum number of simultaneous requests
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u16).range(1..=1024),
          help_heading = "Transfer")]
    connections: u16,
    /// Minimum number of simultaneous requests, as long as there is enough to transfer and nothing limits the rate or the
    /// memory; by default, chosen during the transfer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Transfer")]
    min_connections: Option<u16>,
    /// Size of the parts of large files, at least 64KiB and within the limits of the store; by default, chosen during the
    /// transfer
    #[arg(long, value_name = "SIZE", value_parser = block_bytes, help_heading = "Transfer")]
    block_size: Option<u64>,
    /// Highest transfer rate, such as `100Mbit/s` or `10MB/s`; `10MB` and `10000000` also mean 10 MB per second
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Transfer")]
    limit: Option<u64>,
    /// Latency that the transfer may add to the network path, to leave room for other traffic; without a value, 20ms
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "20ms",
          value_parser = duration, help_heading = "Transfer")]
    gentle: Option<Duration>,
    #[command(flatten)]
    retries: RetryOptions,
    /// Start interrupted transfers from the beginning, even if they can be resumed
    #[arg(long, conflicts_with = "resume", help_heading = "Transfer")]
    fresh: bool,
    /// Condition for resuming an interrupted transfer
    #[arg(long, value_name = "WHEN", value_parser = one_of(RESUME), default_value = "same", help_heading = "Transfer")]
    resume: Resume,
    /// Follow symbolic links to folders (in local folders; links to files are followed by default)
    #[arg(long, conflicts_with = "skip_links", help_heading = "Files")]
    follow_links: bool,
    /// Skip all symbolic links in local folders
    #[arg(long, help_heading = "Files")]
    skip_links: bool,
    /// Keep no journal and no history; an interrupted transfer can't be resumed
    #[arg(long, conflicts_with_all = ["fresh", "resume"], help_heading = "Transfer")]
    no_journal: bool,
    /// Keep the modification times of files: `put` stores them as metadata in rclone's format, `get` restores them
    #[arg(long, help_heading = "Files")]
    preserve: bool,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    display: Display,
}

/// Options for failed requests and silent stores.
#[derive(clap::Args)]
pub struct RetryOptions {
    /// Maximum number of retries of one request [default: no limit but the time]
    #[arg(long, value_name = "N", help_heading = "Transfer")]
    retries: Option<u64>,
    /// Time for which failed requests are retried while no request succeeds, such as `10m`
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = duration, help_heading = "Transfer")]
    retry_for: Duration,
    /// Time without progress after which a request fails (5 times as long while the store assembles an object)
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration, help_heading = "Transfer")]
    timeout: Duration,
}

impl RetryOptions {
    /// Returns `settings` with the limits on retries.
    pub fn settings(&self, settings: Settings) -> Settings {
        let &Self { retries, retry_for, timeout } = self;
        Settings { retries: retries.unwrap_or(u64::MAX), retry_for, timeout, ..settings }
    }
}

/// Options of all commands that access a store.
#[derive(clap::Args)]
pub struct StoreOptions {
    /// Address of the S3, GCS or Azure store, if it is not the cloud's own
    #[arg(long, value_name = "URL", help_heading = "Store")]
    endpoint_url: Option<String>,
    /// Region of the bucket (S3)
    #[arg(long, help_heading = "Store")]
    region: Option<String>,
    /// Profile in ~/.aws (S3)
    #[arg(long, help_heading = "Store")]
    profile: Option<String>,
    /// Put the bucket's name into the host name, even with --endpoint-url (S3)
    #[arg(long, help_heading = "Store")]
    virtual_hosted: bool,
    /// Send requests without credentials
    #[arg(long, conflicts_with_all = ["profile", "machine_credentials", "requester_pays"], help_heading = "Store")]
    anonymous: bool,
    /// Also request credentials from the metadata service of a cloud machine
    #[arg(long, help_heading = "Store")]
    machine_credentials: bool,
    /// Pay for reading from requester-pays buckets (S3 and GCS)
    #[arg(long, help_heading = "Store")]
    requester_pays: bool,
}

impl StoreOptions {
    /// Returns the settings that are needed to access the store, in addition to its address.
    pub fn options(&self) -> Options {
        Options {
            environment: Environment::from_process(),
            endpoint_url: self.endpoint_url.clone(),
            region: self.region.clone(),
            profile: self.profile.clone(),
            virtual_hosted: self.virtual_hosted,
            anonymous: self.anonymous,
            machine_credentials: self.machine_credentials,
            requester_pays: self.requester_pays,
            ..Options::default()
        }
    }
}

/// Returns the folder for journals of transfers, which is next to the folder of runs.
pub fn journals() -> PathBuf {
    evidence::runs_folder().with_file_name("transfers")
}

/// Parses the size of a part. Sizes below 64 KiB are refused, because the requests would then cost more than the bytes.
fn block_bytes(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        bytes if bytes >= 64 << 10 => Ok(bytes),
        _ => Err(format!("`{text}` is too small for a part; give at least 64KiB")),
    }
}

/// Parses a rate of at least 1 byte per second. A size without a time means this size per second.
fn rate(text: &str) -> Result<u64, String> {
    let rate = parse_quantity(text, Unit::BytePerSecond).ok().or_else(|| bytes(text).ok().map(|bytes| bytes as f64));
    match rate {
        Some(rate) if (1.0..1e18).contains(&rate) => Ok(rate as u64),
        _ => Err(format!("`{text}` is not a transfer rate; give a rate such as 10MB/s, 10MB or 100Mbit/s")),
    }
}

impl TransferOptions {
    /// Returns the request that the options and arguments describe.
    pub fn request(&self, direction: Direction, sources: Vec<OsString>, destination: OsString) -> TransferRequest {
        let filter = Filter { include: self.include.clone(), exclude: self.exclude.clone(), only: None };
        let links = match (self.follow_links, self.skip_links) {
            (true, _) => Links::Follow,
            (_, true) => Links::Skip,
            _ => Links::FilesOnly,
        };
        TransferRequest {
            direction,
            sources,
            destination,
            selection: Selection { filter, links },
            settings: self.retries.settings(Settings {
                memory_bytes: self.memory,
                max_concurrency: self.connections.into(),
                min_concurrency: self.min_connections.unwrap_or(1).into(),
                part_bytes: self.block_size,
                limit_bytes_per_s: self.limit,
                gentle: self.gentle,
                verify: self.verify,
                no_clobber: self.no_clobber,
                skip_unchanged: self.skip_unchanged,
                dry_run: self.dry_run,
                preserve: self.preserve,
                journals: (!self.no_journal).then(journals),
                notes: Some(journals()),
                resume: if self.fresh { Resume::Never } else { self.resume },
                seed: crate::options::seed(None),
                ..Settings::default()
            }),
            store: Options { timeout: Some(self.retries.timeout), ..self.store.options() },
        }
    }
}

/// Transfers files, and prints progress and results.
pub fn transfer(request: &TransferRequest, options: &TransferOptions) -> anyhow::Result<Ending> {
    let TransferOptions { display, .. } = options;
    if matches!(display.format, Format::Csv | Format::Markdown) {
        bail!("`put` and `get` do not support this format; use --format table or --format json");
    }
    let is_output = request.direction == Direction::Get && request.destination == STANDARD;
    if is_output && display.format == Format::Json {
        bail!("--format json can't share standard output with the object; name a file for the object");
    }
    interrupt::install().context("can't handle Ctrl-C")?;
    let observer = ProgressLine::new(!display.quiet);
    let began = Instant::now();
    let results = match run(request, Box::new(observer), Stop::default()) {
        Ok(results) => results,
        Err(error) => return explain_failure(request, options, error, began.elapsed()),
    };
    let (mut stopped, mut halted, mut is_failed, mut is_full) = (0, 0, false, false);
    for result in &results {
        match &result.status {
            TransferStatus::Failed(Error::Stopped) => stopped += 1,
            TransferStatus::Failed(Error::Halted) => halted += 1,
            TransferStatus::Failed(error) => {
                let reason = with_option(error);
                let names_it = reason.starts_with(&result.address);
                let address = if names_it { String::new() } else { format!("{}: ", result.address) };
                output::note(&format!("error: {address}{reason}"));
                is_full |= self::is_full(error);
            }
            _ => {
                if let Some(reason) = &result.restart_reason {
                    output::note(&format!("note: {}: started from the beginning, because {reason}", result.address));
                }
                if let Some(repair) = result.repair_note() {
                    output::note(&format!("note: {}: {repair}", result.address));
                }
                continue;
            }
        }
        is_failed = true;
    }
    // Without a journal and these options, the same command would also transfer the complete files again. There is no
    // journal of a folder if both sides are on this machine.
    let skips = options.skip_unchanged || options.no_clobber;
    let is_remote =
        |place: &OsString| place.to_string_lossy().split_once("://").is_some_and(|(scheme, _)| scheme != "file");
    let has_journal = request.settings.journals.is_some()
        && (request.sources.iter().any(is_remote) || is_remote(&request.destination));
    let and = if skips || has_journal { "" } else { " with --skip-unchanged" };
    if is_full {
        output::note(&format!("there is no room left; free some space, then run the same command{and} to resume"));
    }
    if halted > 0 {
        let of = results.len();
        output::note(&format!("{halted} of {of} files not transferred, because the error above concerns all files"));
    }
    if stopped > 0 {
        let of = results.len();
        output::note(&format!(
            "interrupted: {stopped} of {of} files not transferred; run the same command{and} to resume"
        ));
    }
    let report = TransferReport::new(request.direction, options.dry_run, &results, began.elapsed());
    match display.format {
        Format::Json => output::print(&report.json())?,
        _ if display.quiet => {}
        _ if is_output => output::note(report.text(options.all).trim_end()),
        _ => output::print(&report.text(options.all))?,
    }
    Ok(match results.is_empty() {
        _ if interrupt::requested() => Ending::Interrupted,
        true => {
            output::note("nothing to transfer: no file or object was found");
            Ending::Nothing
        }
        false if is_failed => Ending::TargetFailed,
        false => Ending::Done,
    })
}

/// Prints why nothing was transferred, and how to resume the transfer if that is possible.
fn explain_failure(
    request: &TransferRequest,
    options: &TransferOptions,
    error: Error,
    elapsed: Duration,
) -> anyhow::Result<Ending> {
    let (message, is_full) = (with_option(&error), is_full(&error));
    let ending = match &error {
        Error::Stopped => Some(Ending::Interrupted),
        // The reader has closed the pipe, which is not an error.
        Error::File { source, .. } if request.destination == STANDARD && source.kind() == ErrorKind::BrokenPipe => {
            return Ok(Ending::Done);
        }
        Error::Store(_) | Error::Corrupted(..) | Error::SourceChanged { .. } | Error::CantResume(..) => {
            Some(Ending::TargetFailed)
        }
        _ => None,
    };
    let may_resume = match &error {
        // A transfer can't be resumed if the object has been deleted or has changed.
        Error::Store(failure) => !matches!(failure.kind, Kind::Missing | Kind::Changed),
        Error::Stopped => true,
        _ => is_full,
    };
    let result = request.failed_file(error);
    let has_journal = result.as_ref().is_some_and(|result| has_journal(request, result));
    let resume = match may_resume && has_journal {
        true if is_full => "; free some space, then run the same command again to resume",
        true => "; run the same command again to resume",
        false => "",
    };
    if options.display.format == Format::Json
        && let Some(result) = result
    {
        let report = TransferReport::new(request.direction, options.dry_run, std::slice::from_ref(&result), elapsed);
        output::print(&report.json())?;
    }
    // The message already contains its cause.
    let Some(ending) = ending else { bail!("{message}{resume}") };
    let message = if ending == Ending::Interrupted { "interrupted" } else { &format!("error: {message}") };
    output::note(&format!("{message}{resume}"));
    Ok(ending)
}

/// Returns whether the transfer failed because a disk, a store or a quota is full.
fn is_full(error: &Error) -> bool {
    match error {
        Error::Store(failure) => failure.kind == Kind::Full,
        Error::File { source, .. } | Error::Journal { source, .. } => {
            matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        }
        _ => false,
    }
}

/// Returns whether a journal records that parts of this file have been transferred. The same command then resumes the
/// transfer.
fn has_journal(request: &TransferRequest, result: &TransferResult) -> bool {
    let journals = request.settings.journals.as_deref().map(|folder| interrupted_transfers(folder).0);
    let is_of_file = |transfer: &InterruptedTransfer| transfer.is_resumable && transfer.is_of(result);
    journals.unwrap_or_default().iter().any(|transfer| is_of_file(transfer) && transfer.done_bytes > 0)
}

/// Returns the error's message, followed by the option that solves the problem, if there is one.
pub fn with_option(error: &Error) -> String {
    let way_out = match error {
        Error::CantResume(..) => "; use --fresh to start from the beginning",
        Error::Journal { .. } => "; use --no-journal to transfer without a journal",
        Error::Omitted { reason: Omission::LinkToFolder, .. } => {
            "; use --follow-links to follow such links, or --skip-links to leave out all links"
        }
        Error::Omitted { reason: Omission::BrokenLink, .. } => "; use --skip-links to leave out all links",
        Error::Omitted { reason: Omission::Special | Omission::NotUnicode, .. } | Error::Name { .. } => {
            "; use --exclude PATTERN to leave it out"
        }
        Error::NoCredentials(_) => {
            "; use --anonymous to send requests without credentials, or --machine-credentials to get them from this cloud machine"
        }
        Error::IncompleteList { .. } => "; run the same command again to transfer the rest",
        Error::TooLittleMemory { address, least_bytes } => {
            let least = match least_bytes.div_ceil(1 << 10) {
                kib if kib < 1 << 10 => format!("{kib}KiB"),
                kib => format!("{}MiB", kib.div_ceil(1 << 10)),
            };
            return format!("{address}: one part needs more memory; use --memory {least} or more");
        }
        Error::UnsupportedOption { address, option, store } => {
            return format!("{address}: --{} is not supported by {store}; leave it out", option.replace('_', "-"));
        }
        _ => "",
    };
    format!("{error}{way_out}")
}

/// The words that `--resume` accepts, each with its help text and value.
const RESUME: &[Word<Resume>] = &[
    (&["same"], "Resume if source and destination are unchanged, otherwise start from the beginning", Resume::IfSame),
    (&["only"], "Resume if source and destination are unchanged, otherwise fail", Resume::Only),
];

/// An observer that shows the progress of transfers, and outages, on one line.
pub struct ProgressLine {
    line: Line,
    /// The latest progress that was reported: the share of the work that is done, and a sentence.
    latest: Mutex<(f64, String)>,
}

impl ProgressLine {
    /// Creates the observer. It shows nothing unless `is_shown`.
    pub fn new(is_shown: bool) -> Self {
        Self { line: Line::new(is_shown), latest: Mutex::default() }
    }

    /// Draws the latest progress, after the sentence about an outage if there is one.
    fn redraw(&self, outage: Option<&Outage<'_>>) {
        let (share, progress) = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let outage = outage.map(outage_sentence);
        let parts = [outage, Some(progress).filter(|progress| !progress.is_empty())];
        self.line.draw(share, || parts.into_iter().flatten().collect::<Vec<_>>().join("; "));
    }
}

impl Observer for ProgressLine {
    fn progress(&self, progress: &Progress<'_>) {
        let share = share(progress);
        self.line.draw(share, || {
            let sentence = sentence(progress);
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = (share, sentence.clone());
            sentence
        });
    }

    fn outage(&self, outage: Option<&Outage<'_>>) {
        self.redraw(outage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates() {
        assert_eq!([bytes("256MiB"), bytes("1000"), bytes("1.5 MB")], [Ok(1 << 28), Ok(1000), Ok(1_500_000)]);
        assert!(bytes("0").is_err() && bytes("-1MB").is_err() && bytes("nan").is_err() && bytes("x").is_err());
        assert_eq!([rate("10MB/s"), rate("100Mbit/s")], [Ok(10_000_000), Ok(12_500_000)]);
        assert_eq!([rate("10MB"), rate("10"), rate("1 MiB")], [Ok(10_000_000), Ok(10), Ok(1 << 20)]);
        assert!(rate("0MB/s").is_err() && rate("0").is_err() && rate("10 ms").is_err() && rate("x").is_err());
    }
}
