//! `ascertain put`: uploads files to a store.

use std::ffi::OsString;

use ascertain::Ending;
use ascertain::transfer::{Attributes, Direction, Settings, TransferRequest};
use clap::ValueHint;

use crate::transfer::{CREDENTIALS, TransferOptions, transfer};

const EXAMPLES: &str = "\
Examples:
  ascertain put backup.tar s3://bucket/backups/
      Upload a file, under its own name
  ascertain put --dry-run --exclude .git --exclude '*.tmp' site s3://bucket/site
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
    #[arg(long, value_name = "TYPE", help_heading = "Objects")]
    content_type: Option<String>,
    /// Metadata of the objects (can be given several times)
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value, help_heading = "Objects")]
    metadata: Vec<(String, String)>,
    /// Cache-Control header of the objects, such as `max-age=3600`
    #[arg(long, value_name = "TEXT", help_heading = "Objects")]
    cache_control: Option<String>,
    /// Storage class, such as `STANDARD_IA` (S3), `NEARLINE` (GCS) or `Cool` (Azure)
    #[arg(long, value_name = "CLASS", help_heading = "Objects")]
    storage_class: Option<String>,
    /// Encryption by the store (S3)
    #[arg(long, value_name = "METHOD", value_parser = ["AES256", "aws:kms", "aws:kms:dsse"], help_heading = "Objects")]
    sse: Option<String>,
    /// Key with which the store encrypts the objects (S3: id or ARN of a KMS key; GCS: name of the key)
    #[arg(long, value_name = "KEY", help_heading = "Objects")]
    sse_kms_key_id: Option<String>,
    /// Predefined access control list, such as `public-read` (S3 and GCS)
    #[arg(long, value_name = "ACL", help_heading = "Objects")]
    acl: Option<String>,
    /// Tags, encoded as in an address: `team=data&stage=test` (S3 and Azure)
    #[arg(long, value_name = "TAGS", help_heading = "Objects")]
    tagging: Option<String>,
    #[command(flatten)]
    options: TransferOptions,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    transfer(&args.request(), &args.options)
}

impl Args {
    fn request(&self) -> TransferRequest {
        let request = self.options.request(Direction::Put, self.from.clone(), self.to.clone());
        let attributes = Attributes {
            content_type: self.content_type.clone(),
            cache_control: self.cache_control.clone(),
            metadata: self.metadata.iter().cloned().collect(),
            storage_class: self.storage_class.clone(),
            sse: self.sse.clone(),
            sse_kms_key_id: self.sse_kms_key_id.clone(),
            acl: self.acl.clone(),
            tagging: self.tagging.clone(),
            modified: None,
        };
        TransferRequest { settings: Settings { attributes, ..request.settings }, ..request }
    }
}

/// Parses a name and a value with `=` between them.
fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` has no `=`; give NAME=VALUE"))?;
    Ok((name.into(), value.into()))
}
