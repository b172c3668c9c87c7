//! `ascertain put`: uploads files to a store.

use std::ffi::OsString;

use ascertain::Ending;
use ascertain::transfer::{Direction, Settings, TransferRequest};
use clap::ValueHint;

use crate::transfer::{CREDENTIALS, TransferOptions, transfer};

const EXAMPLES: &str = "\
Examples:
  ascertain put backup.tar s3://bucket/backups/
      Upload a file, under its own name
  ascertain put --dry-run --exclude '*.tmp' photos s3://bucket/photos
      List the files of a folder that would be uploaded";

/// Upload files to a store, in parallel parts
///
/// The first parts measure the connection. The plan for the rest is printed, and adapted during the upload. If an
/// upload is interrupted, run the same command again to resume it. `put` never removes anything, so it does not
/// synchronise folders. Exit code 5: the store refused the upload, or stored something else.
///
/// `put a.txt s3://b/p` creates `p`, and `put a.txt s3://b/p/` creates `p/a.txt`. `put dir s3://b/p` creates `p/x` for
/// each `dir/x`, with or without a trailing slash.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{CREDENTIALS}"))]
pub struct Args {
    /// Files, folders or pipes to upload; `-` is standard input
    #[arg(value_name = "SOURCE", required = true, value_hint = ValueHint::AnyPath)]
    from: Vec<OsString>,
    /// Destination: an address in a store, or a path
    ///
    /// The address is s3://BUCKET/NAME, gs://BUCKET/NAME, az://CONTAINER/NAME or
    /// https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME. If it ends with a slash, each file's own name is appended.
    #[arg(value_name = "DEST", value_hint = ValueHint::AnyPath)]
    to: OsString,
    /// Media type of the objects [default: from the extension of the name]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    #[command(flatten)]
    options: TransferOptions,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    transfer(&args.request(), &args.options)
}

impl Args {
    fn request(&self) -> TransferRequest {
        let request = self.options.request(Direction::Put, self.from.clone(), self.to.clone());
        TransferRequest {
            settings: Settings { content_type: self.content_type.clone(), ..request.settings },
            ..request
        }
    }
}
