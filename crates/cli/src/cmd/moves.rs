//! `ascertain put` and `ascertain get`.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use ascertain::Ending;
use ascertain::moving::{
    Done, Environment, Error, Filter, Kind, LeftOut, Links, Many, Move, MoveContext, Observer, Options, Progress,
    Resume, STANDARD, Terms, Way,
};
use ascertain_engine::evidence;
use ascertain_engine::unit::{Unit, parse_quantity};
use ascertain_report::moving::{Moves, sentence, share};
use ascertain_report::progress::Line;
use ascertain_sys::interrupt;
use clap::ValueHint;

use crate::options::{Display, Format, Word, duration, one_of};
use crate::output;
use crate::session;

/// Where a store's are looked up.
const CREDENTIALS: &str = "Credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile of ~/.aws; \
    AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN; \
    GOOGLE_APPLICATION_CREDENTIALS or gcloud's login. The guide has all of them.";

const PUT_EXAMPLES: &str = "\
Examples:
  ascertain put backup.tar s3://bucket/backups/
      Upload a file, under its own name
  ascertain put --dry-run --exclude '*.tmp' photos s3://bucket/photos
      List the files of a folder that would be uploaded";

const GET_EXAMPLES: &str = "\
Examples:
  ascertain get s3://bucket/backups/backup.tar .
      Download a file into this folder
  ascertain get --skip-unchanged s3://bucket/photos/ photos
      Download everything that is new or has changed";

/// Put files into a store, in blocks, as fast as the link and the store go
///
/// A few of the first blocks find out what the link is like; what is planned then is said, followed, and planned again
/// as it goes. What breaks off is gone on with by the same command. Nothing is ever removed: this is no
/// synchronisation. Exit code 5: the store refused it, or stored something else.
///
/// `put a.txt s3://b/p` makes `p`, and `put a.txt s3://b/p/` makes `p/a.txt`. `put dir s3://b/p` makes `p/x` of
/// `dir/x`, with slashes or without.
#[derive(clap::Args)]
#[command(after_help = PUT_EXAMPLES, after_long_help = format!("{PUT_EXAMPLES}\n\n{CREDENTIALS}"))]
pub struct Put {
    /// Files and folders; `-` is standard input; a pipe is read to its end, as that is
    #[arg(value_name = "SOURCE", required = true, value_hint = ValueHint::AnyPath)]
    from: Vec<OsString>,
    /// s3://BUCKET/NAME, gs://BUCKET/NAME, az://CONTAINER/NAME, https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME or
    /// a path; with a slash at its end files keep their names behind it
    #[arg(value_name = "DEST", value_hint = ValueHint::AnyPath)]
    to: OsString,
    /// The media type, instead of what the name's ending says
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    #[command(flatten)]
    moving: Moving,
}

/// Get objects from a store, in ranges, as fast as the link and the store go
///
/// A file has its name once it is whole, and not before. What breaks off is gone on with by the same command. Exit code
/// 5: the store refused it, or gave something else.
///
/// `get s3://b/p to` makes `to`, or `to/p` where `to` is a folder. `get s3://b/p/ to` makes `to/x` of each `p/x`.
#[derive(clap::Args)]
#[command(after_help = GET_EXAMPLES, after_long_help = format!("{GET_EXAMPLES}\n\n{CREDENTIALS}"))]
pub struct Get {
    /// s3://BUCKET/NAME, gs://BUCKET/NAME, az://CONTAINER/NAME, https://… or a path; with a slash at its end everything
    /// whose name begins so
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    from: OsString,
    /// A file or a folder; `-` is standard output
    #[arg(value_name = "DEST", value_hint = ValueHint::AnyPath)]
    to: OsString,
    #[command(flatten)]
    moving: Moving,
}

/// Options of both.
#[derive(clap::Args)]
struct Moving {
    /// Of many, only names that match: `*.log`, `2026/**`
    #[arg(long, value_name = "PATTERN", help_heading = "What")]
    include: Vec<String>,
    /// Of many, not names that match
    #[arg(long, value_name = "PATTERN", help_heading = "What")]
    exclude: Vec<String>,
    /// Say what would be moved, and what left alone, and move nothing
    #[arg(long, help_heading = "What")]
    dry_run: bool,
    /// Of more than 20 files, print each, and not their sum alone
    #[arg(long, help_heading = "What")]
    all: bool,
    /// Leave alone what is there already
    #[arg(long, help_heading = "What")]
    no_clobber: bool,
    /// Leave alone what is there and the same: by its checksum where the store knows it, else by size and time
    #[arg(long, help_heading = "What")]
    skip_unchanged: bool,
    /// Read back what was stored and compare; for get, read it twice
    #[arg(long, help_heading = "How")]
    verify: bool,
    /// What all blocks under way take at most, beside 64 MiB that are kept each way to be used again
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = bytes, help_heading = "How")]
    memory: u64,
    /// So many requests at once, at most
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u16).range(1..=1024),
          help_heading = "How")]
    connections: u16,
    /// No faster than that: `10MB/s`, `10MB`, `10000000` (each second), `100Mbit/s`
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "How")]
    limit: Option<u64>,
    /// Leave others on the same path alone: add no more than that to its latency
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "20ms",
          value_parser = duration, help_heading = "How")]
    gentle: Option<Duration>,
    /// Begin anew what was broken off, also if both sides are still the same
    #[arg(long, conflicts_with = "resume", help_heading = "How")]
    fresh: bool,
    /// How to treat an earlier attempt that was broken off
    #[arg(long, value_name = "WHEN", value_parser = one_of(RESUME), default_value = "same", help_heading = "How")]
    resume: Resume,
    /// Of folders of this machine, follow links to folders too
    #[arg(long, conflicts_with = "skip_links", help_heading = "What")]
    follow_links: bool,
    /// Of folders of this machine, leave out all links
    #[arg(long, help_heading = "What")]
    skip_links: bool,
    /// Keep no journal: what breaks off is given up
    #[arg(long, conflicts_with_all = ["fresh", "resume"], help_heading = "How")]
    no_journal: bool,
    /// s3://, gs://, az://: where the store is, if not where its cloud has it
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
    /// S3 and GCS: pay for what is read
    #[arg(long, help_heading = "Store")]
    requester_pays: bool,
    #[command(flatten)]
    display: Display,
}

impl Put {
    pub fn execute(&self) -> anyhow::Result<Ending> {
        let asked = self.moving.asked(&self.from, &self.to, self.content_type.clone());
        self.moving.carry_out(Way::Put, &asked)
    }
}

impl Get {
    pub fn execute(&self) -> anyhow::Result<Ending> {
        let asked = self.moving.asked(std::slice::from_ref(&self.from), &self.to, None);
        self.moving.carry_out(Way::Get, &asked)
    }
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

/// Bytes a second, at least one; a size is that of a second.
fn rate(text: &str) -> Result<u64, String> {
    let rate = parse_quantity(text, Unit::BytePerSecond).ok().or_else(|| bytes(text).ok().map(|bytes| bytes as f64));
    match rate {
        Some(rate) if (1.0..1e18).contains(&rate) => Ok(rate as u64),
        _ => Err(format!("`{text}` is no rate to move at; give one as 10MB/s, 10MB or 100Mbit/s")),
    }
}

impl Moving {
    /// What is asked for.
    fn asked(&self, from: &[OsString], to: &OsStr, content_type: Option<String>) -> Move {
        Move {
            from: from.to_vec(),
            to: to.into(),
            many: Many {
                filter: Filter { include: self.include.clone(), exclude: self.exclude.clone() },
                dry_run: self.dry_run,
                links: match (self.follow_links, self.skip_links) {
                    (true, _) => Links::Follow,
                    (_, true) => Links::Skip,
                    _ => Links::FilesOnly,
                },
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
                resume: if self.fresh { Resume::Never } else { self.resume },
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
    fn carry_out(&self, way: Way, asked: &Move) -> anyhow::Result<Ending> {
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
        let began = Instant::now();
        let moved = if way == Way::Put { asked.put(context) } else { asked.get(context) };
        let outcomes = match moved {
            Ok(outcomes) => outcomes,
            Err(error) => return self.failed(asked, error, has_moved.load(Relaxed)),
        };
        let mut stopped = 0;
        for outcome in &outcomes {
            match &outcome.done {
                Done::Failed(Error::Stopped) => stopped += 1,
                Done::Failed(error) => {
                    let reason = with_way_out(error);
                    let names_it = reason.starts_with(&outcome.name);
                    let place = if names_it { String::new() } else { format!("{}: ", outcome.name) };
                    output::note(&format!("error: {place}{reason}"));
                }
                Done::Moved(moved) => {
                    if let Some(why) = &moved.begun_anew {
                        output::note(&format!("note: {}: begun anew, because {why}", outcome.name));
                    }
                }
                Done::Said => {}
            }
        }
        if stopped > 0 {
            let of = outcomes.len();
            // What is whole already would be moved again.
            let and = if self.skip_unchanged || self.no_clobber { "" } else { ", with --skip-unchanged," };
            output::note(&format!("interrupted: {stopped} of {of} files not moved; the same command{and} goes on"));
        }
        let moves = Moves::new(way, self.dry_run, &outcomes, began.elapsed());
        match self.display.format {
            Format::Json => output::print(&moves.json())?,
            _ if self.display.quiet => {}
            _ if is_output => output::note(moves.text(self.all).trim_end()),
            _ => output::print(&moves.text(self.all))?,
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
            Error::Store(_) | Error::Corrupted { .. } | Error::SourceChanged { .. } | Error::CantResume { .. } => {
                // Of what is gone or has changed nothing is kept.
                let is_gone = |kind| matches!(kind, Kind::Missing | Kind::Changed);
                let is_kept = matches!(&error, Error::Store(failure) if !is_gone(failure.kind));
                output::note(&format!("error: {}{}", with_way_out(&error), if is_kept { goes_on } else { "" }));
                Ok(Ending::TargetFailed)
            }
            // Its words have its cause in them.
            _ => bail!("{}", with_way_out(&error)),
        }
    }
}

/// An error, and the option that is a way out of it.
fn with_way_out(error: &Error) -> String {
    let way_out = match error {
        Error::CantResume { .. } => "; --fresh begins anew",
        Error::Journal { .. } => "; --no-journal moves without one",
        Error::LeftOut { why: LeftOut::LinkToFolder, .. } => {
            "; --follow-links follows such links, and --skip-links leaves out all links"
        }
        Error::LeftOut { why: LeftOut::BrokenLink, .. } => "; --skip-links leaves out all links",
        Error::LeftOut { why: LeftOut::Special | LeftOut::NotUnicode, .. } | Error::Name { .. } => {
            "; --exclude leaves out what matches a pattern"
        }
        Error::NoCredentials(_) => {
            "; --anonymous goes without credentials, --metadata asks the cloud of this machine for some"
        }
        _ => "",
    };
    format!("{error}{way_out}")
}

/// The values of `--resume`.
const RESUME: &[Word<Resume>] = &[
    (&["same"], "Go on if both sides are still the same, and else begin anew", Resume::IfSame),
    (&["only"], "Go on if both sides are still the same, and else refuse", Resume::Only),
];

/// One line, with the plan in it.
struct Drawn {
    line: Line,
    /// Whether there is anything to go on from.
    has_moved: Arc<AtomicBool>,
}

impl Observer for Drawn {
    fn progress(&self, progress: &Progress<'_>) {
        // A stream of no known length can't be had again, and has no journal.
        self.has_moved.fetch_or(progress.bytes.is_some(), Relaxed);
        self.line.draw(share(progress), || sentence(progress));
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
