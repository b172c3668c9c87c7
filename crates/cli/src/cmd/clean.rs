//! `ascertain clean`.

use anyhow::Error;
use ascertain::Ending;

use crate::output;

/// Take away what runs that were killed have left at others: records in zones of yours
///
/// Before `run dns-propagation` adds a record to a zone it notes so. What was noted by runs that are over is removed,
/// with the key in TSIG_KEY or TSIG_KEY_FILE, or the credentials of AWS or Google that such a run takes, and named.
#[derive(clap::Args)]
pub struct Args {}

pub fn execute(_: &Args) -> anyhow::Result<Ending> {
    let mut ending = Ending::Done;
    let left = ascertain_experiments::clean().map_err(Error::msg)?;
    if left.is_empty() {
        output::print("nothing is left\n")?;
    }
    for what in left {
        match what {
            Ok(gone) => output::print(&format!("{gone}\n"))?,
            Err(why) => {
                output::note(&why);
                ending = Ending::TargetFailed;
            }
        }
    }
    Ok(ending)
}
