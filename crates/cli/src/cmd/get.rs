//! `ascertain get`: downloads objects from a store.

use std::ffi::OsString;

use ascertain::Ending;
use ascertain::transfer::Direction;
use clap::ValueHint;

use crate::transfer::{CREDENTIALS, TransferOptions, transfer};

const EXAMPLES: &str = "\
Examples:
  ascertain get s3://bucket/backups/backup.tar .
      Download a file into this folder
  ascertain get --skip-unchanged s3://bucket/photos/ photos
      Download everything that is new or has changed
  ascertain get 's3://bucket/logs/2026-*/*.gz' logs
      Download the objects whose names match a pattern";

/// Download objects from a store, in parallel ranges
///
/// A file gets its name only when it is complete. If a download is interrupted, run the same command again to resume
/// it. Exit code 5: the store refused the request, or returned something else.
///
/// `get s3://b/p to` creates `to`, or `to/p` if `to` is a folder. `get s3://b/p/ to` creates `to/x` for each `p/x`.
/// `get 's3://b/p/2026-*/x' to` creates `to/2026-01/x` for the object `p/2026-01/x`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{CREDENTIALS}"))]
pub struct Args {
    /// Source: s3://BUCKET/NAME, gs://BUCKET/NAME, az://CONTAINER/NAME, https://… or a path
    ///
    /// A source that ends with a slash stands for all objects whose names begin with it. If no object has exactly the
    /// given name, `*`, `**`, `?`, `[ab]` and `{a,b}` in the name are a pattern. `\` before a character removes its
    /// special meaning.
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    from: OsString,
    /// Destination: a file, a folder, or `-` for standard output
    #[arg(value_name = "DEST", value_hint = ValueHint::AnyPath)]
    to: OsString,
    #[command(flatten)]
    options: TransferOptions,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let request = args.options.request(Direction::Get, vec![args.from.clone()], args.to.clone());
    transfer(&request, &args.options)
}
