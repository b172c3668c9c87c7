//! `ascertain ls`: lists the objects of a store.

use std::ffi::OsString;

use anyhow::{Context, anyhow};
use ascertain::Ending;
use ascertain::transfer::{Error, Options, Settings, Stop, list};
use ascertain_report::objects::ObjectList;
use ascertain_sys::interrupt;
use clap::ValueHint;

use crate::options::{Display, seed};
use crate::output;
use crate::transfer::{CREDENTIALS, ProgressLine, RetryOptions, StoreOptions, with_option};

const EXAMPLES: &str = "\
Examples:
  ascertain ls s3://bucket/photos/
      List all objects whose names begin with `photos/`
  ascertain ls --format csv 's3://bucket/logs/2026-*/*.gz'
      List the objects whose names match a pattern, as CSV";

/// List the objects of a store, with their sizes and times
///
/// Exit code 4: no object was found. Exit code 5: the store refused the request.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{CREDENTIALS}"))]
pub struct Args {
    /// Address: s3://BUCKET/NAME, gs://BUCKET/NAME, az://CONTAINER/NAME or a path
    ///
    /// An address that ends with a slash stands for all objects whose names begin with it. Without a slash, it stands
    /// for the object with this name and the objects below a folder with this name. If no object has exactly the given
    /// name, `*`, `**`, `?`, `[ab]` and `{a,b}` in the name are a pattern.
    #[arg(value_name = "ADDRESS", value_hint = ValueHint::AnyPath)]
    address: OsString,
    #[command(flatten)]
    retries: RetryOptions,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    display: Display,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    interrupt::install().context("can't handle Ctrl-C")?;
    let settings = args.retries.settings(Settings { seed: seed(None), ..Settings::default() });
    let options = Options { timeout: Some(settings.timeout), ..args.store.options() };
    let observer = Box::new(ProgressLine::new(!args.display.quiet));
    let objects = match list(&args.address, &options, settings, observer, Stop::default()) {
        Ok(objects) => objects,
        Err(Error::Stopped) => return Ok(Ending::Interrupted),
        Err(error @ Error::Store(_)) => {
            output::note(&format!("error: {}", with_option(&error)));
            return Ok(Ending::TargetFailed);
        }
        Err(error) => return Err(anyhow!("{}", with_option(&error))),
    };
    let list = ObjectList::new(objects);
    output::report(&list, &args.display)?;
    if list.count == 0 {
        output::note("no object was found");
        return Ok(Ending::Nothing);
    }
    Ok(Ending::Done)
}
