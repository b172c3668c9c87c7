//! `ascertain clean`.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use anyhow::Error;
use ascertain::Ending;
use ascertain::moving::{BrokenOff, Environment, GivenUp, Options, broken_off, give_up, unfinished};
use ascertain_engine::unit::Unit;
use ascertain_report::plot::escape_controls;
use ascertain_sys::process::is_left_behind;

use super::moves::journals;
use crate::options::duration;
use crate::output;

/// What is in use is written to more often.
const AT_REST: Duration = Duration::from_secs(60 * 60);

const EXAMPLES: &str = "\
Examples:
  ascertain clean
      Remove temporary files and DNS records left by interrupted commands
  ascertain clean --give-up 48h ~/backups
      Also abort transfers in this folder that stopped more than two days ago";

/// Take away what commands that were killed have left: records in zones of yours, folders, files that are not whole
///
/// Before `run dns-propagation` adds a record to a zone it notes so. What was noted by runs that are over is removed,
/// with the key in TSIG_KEY or TSIG_KEY_FILE, or the credentials of AWS or Google that such a run takes, and named.
///
/// Folders that servers and caches of runs were in, among temporary files, are removed where they are yours and the
/// process that made them is gone. So is what `put` and `get` were killed in, in folders that are named here; what has
/// a journal stays, for the same command goes on with it.
///
/// Uploads into stores that were killed and can't be gone on with, those of standard input and of --no-journal, are
/// given up, with the credentials that `put` takes. Moves that have a journal are named, with how much of them is
/// there; --give-up gives them up too. S3 and GCS are told to forget what was uploaded, Azure does so within a week.
///
/// Known are the processes of this machine. Somebody who shares a folder from another machine or a container looks as
/// if its process were gone: so files that were written to within the last hour stay. An upload into a store is safe
/// while its process holds the lock of its journal or note, which are in your state folder here; some network file
/// systems do not tell other machines of locks.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Look in these for folders of runs, and through all below them for what `put` and `get` left, instead of where
    /// temporary files are
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Give up what `put` and `get` could go on with, where nothing of it was moved for so long: `48h`, say, or `1s`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    give_up: Option<Duration>,
    /// S3 and GCS: ask the metadata address of a cloud's machine for credentials too
    #[arg(long)]
    metadata: bool,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let mut ending = Ending::Done;
    let mut left = ascertain_experiments::clean().map_err(Error::msg)?;
    left.extend(moves(args)?);
    left.extend(found(args).into_iter().filter_map(|found| found.map_or_else(|why| Some(Err(why)), removed)));
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

/// Gives up what nobody can or is to go on with, and names the other moves that were broken off.
fn moves(args: &Args) -> anyhow::Result<Vec<Result<String, String>>> {
    let (found, unread) = broken_off(&journals());
    let is_over = |move_: &BrokenOff| !move_.is_resumable || args.give_up.is_some_and(|age| move_.at_rest >= age);
    let (over, kept): (Vec<_>, Vec<_>) = found.into_iter().partition(is_over);
    let options = Options { environment: Environment::of_process(), metadata: args.metadata, ..Options::default() };
    let given_up = give_up(over, &options)?.into_iter().filter_map(|(move_, given_up)| {
        let to = escape_controls(&move_.to);
        match given_up {
            Ok(None) => None,
            Ok(Some(GivenUp::Gone)) => Some(Ok(format!("{to} is given up, {}", moved(&move_)))),
            Ok(Some(GivenUp::Expires)) => {
                Some(Ok(format!("{to} is given up, {}; the store forgets it within a week", moved(&move_))))
            }
            Err(why) => Some(Err(format!("{to} can't be given up: {why}"))),
        }
    });
    let named = kept.iter().map(|move_| {
        let (to, age) = (escape_controls(&move_.to), Unit::Nanosecond.human(move_.at_rest.as_nanos() as f64));
        let ways = "the same command goes on with it, `clean --give-up TIME` gives it up";
        Ok(format!("{to} is not whole, {}, the last {age} ago: {ways}", moved(move_)))
    });
    // Of others than notes it is said too when folders are looked through.
    let is_said_here = |path: &Path| args.folders.is_empty() || path.extension().is_some_and(|end| end == "note");
    let unread = unread.into_iter().filter(|(path, _)| is_said_here(path)).map(|(_, error)| Err(error.to_string()));
    Ok(given_up.chain(named).chain(unread).collect())
}

/// `1 MB of 3 MB from /data/a`.
fn moved(move_: &BrokenOff) -> String {
    let size = |bytes: u64| Unit::Byte.human(bytes as f64);
    let from = escape_controls(&move_.from);
    match move_.bytes {
        None => "from standard input".into(),
        Some(_) if !move_.is_resumable => format!("from {from}"),
        Some(bytes) => format!("{} of {} from {from}", size(move_.moved_bytes), size(bytes)),
    }
}

type Found = Result<(PathBuf, u32), String>;

/// What looks like ours, and the process that made it.
fn found(args: &Args) -> Vec<Found> {
    if args.folders.is_empty() {
        let mut temporary = vec![env::temp_dir(), "/var/tmp".into()];
        temporary.dedup();
        return temporary.iter().flat_map(|folder| of_runs(folder)).collect();
    }
    let of_moves = |folder: &Path| {
        let (found, unread) = unfinished(folder, &journals());
        let unread = unread.into_iter().map(|(path, error)| Err(said(&path, &error)));
        found.into_iter().map(Ok).chain(unread).collect()
    };
    args.folders.iter().flat_map(|folder| [of_runs(folder), of_moves(folder)]).flatten().collect()
}

/// Folders of servers and caches.
fn of_runs(folder: &Path) -> Vec<Found> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        entries => entries.and_then(Iterator::collect::<io::Result<Vec<_>>>),
    };
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return vec![Err(said(folder, &error))],
    };
    entries.iter().filter_map(|entry| Some(Ok((entry.path(), maker(entry.file_name().to_str()?)?)))).collect()
}

/// The process in a name like `ascertain-netlab-PID-NUMBER`.
fn maker(name: &str) -> Option<u32> {
    let [what, process, number] = *name.strip_prefix("ascertain-")?.split('-').collect::<Vec<_>>() else { return None };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    process.parse().ok().filter(|_| ["cache", "netlab"].contains(&what) && is_number)
}

/// Removes what was left behind, and nothing that is still somebody's.
fn removed((path, maker): (PathBuf, u32)) -> Option<Result<String, String>> {
    let shown = path.display();
    let remove = || -> io::Result<Option<String>> {
        if !is_left_behind(&path, maker)? {
            return Ok(None);
        }
        if !is_at_rest(&path)? {
            let why = "it was written to within the last hour, maybe by another machine";
            return Ok(Some(format!("{shown} stays, of process {maker}: {why}")));
        }
        let is_folder = !path.is_symlink() && path.is_dir();
        if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }?;
        Ok(Some(format!("{shown} is gone, of process {maker}, which is over")))
    };
    match remove() {
        Ok(done) => done.map(Ok),
        // Another one was quicker.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(said(&path, &error))),
    }
}

/// Whether nothing of it was written to for so long.
fn is_at_rest(path: &Path) -> io::Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    // What seems to be of the future is of another machine.
    if !metadata.modified()?.elapsed().is_ok_and(|age| age >= AT_REST) {
        return Ok(false);
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            if !is_at_rest(&entry?.path())? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn said(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_ours_have_a_maker() {
        assert_eq!(maker("ascertain-netlab-42-0"), Some(42));
        assert_eq!(maker("ascertain-cache-42-00ff00ff00ff00ff"), Some(42));
        for theirs in ["ascertain-netlab-42", "ascertain-netlab-x-0", "ascertain-other-42-0", "ascertain-cache-42-x"] {
            assert_eq!(maker(theirs), None, "{theirs}");
        }
    }
}
