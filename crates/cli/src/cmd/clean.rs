//! `ascertain clean`: removes files, DNS records, objects, worktrees and uploads of interrupted commands.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use ascertain::transfer::{
    AbortOutcome, Environment, InterruptedTransfer, Options, abort_all, interrupted_transfers, leftovers,
};
use ascertain::{Ending, revision};
use ascertain_engine::unit::Unit;
use ascertain_report::plot::escape_controls;
use ascertain_sys::process::is_left_behind;

use super::against;
use crate::options::duration;
use crate::output;
use crate::transfer::journals;

/// Age at which a file counts as unused. A process that uses a file writes to it more often than this.
const AT_REST: Duration = Duration::from_secs(60 * 60);

const EXAMPLES: &str = "\
Examples:
  ascertain clean
      Remove temporary files, DNS records and objects of interrupted commands
  ascertain clean --give-up 48h ~/backups
      Also abort transfers in this folder that stopped more than two days ago";

/// Remove files, DNS records and objects of interrupted commands
///
/// DNS records: `run dns-propagation` notes each record before it adds the record to a zone. `clean` removes the noted
/// records of runs that have ended. It needs the credentials of the run: TSIG_KEY, TSIG_KEY_FILE, or those of AWS or
/// Google.
///
/// Objects: `run storage` notes each object before it writes the object to a store. `clean` deletes the noted objects
/// of runs that have ended, and no others. It needs the credentials of the run.
///
/// Temporary files: `clean` removes the folders of servers, caches and git repositories if you own them and their
/// process has ended. In folders that you name, it also removes the incomplete files of `put` and `get`. It keeps files
/// with a journal, because the same command can resume the transfer.
///
/// Worktrees: `clean` removes the worktrees of `compare --against` commands that were killed.
///
/// Uploads: `clean` aborts the incomplete uploads that can't be resumed, with the credentials that `put` uses. These
/// are uploads from standard input, and uploads with --no-journal. It lists the transfers that can be resumed;
/// --give-up aborts them too. S3 and GCS delete the uploaded parts when requested; Azure deletes them within a week.
///
/// Other machines: `clean` can only see processes on this machine. It keeps files that were written within the last
/// hour, because another machine or a container may still use them. `clean` does not abort an upload while the
/// uploading process holds its lock in your state folder. Some network file systems do not share locks between
/// machines.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders to search for leftovers [default: the folders for temporary files]
    ///
    /// Subfolders are searched too, but only for incomplete files of `put` and `get`.
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Time without progress after which a resumable transfer is aborted too, such as `48h`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    give_up: Option<Duration>,
    /// Also request credentials from the metadata service of a cloud machine (S3 and GCS)
    #[arg(long)]
    machine_credentials: bool,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let mut ending = Ending::Done;
    let mut left = ascertain_experiments::clean();
    left.extend(revision::remove_leftovers(&against::notes()));
    left.extend(interrupted(args).unwrap_or_else(|error| vec![Err(format!("{error:#}"))]));
    left.extend(found(args).into_iter().filter_map(|found| found.map_or_else(|why| Some(Err(why)), removed)));
    if left.is_empty() {
        output::print("nothing to remove\n")?;
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

/// Aborts the interrupted transfers that can't be resumed, and those that `--give-up` covers; lists all others. Returns
/// a message or an error for each transfer.
fn interrupted(args: &Args) -> anyhow::Result<Vec<Result<String, String>>> {
    let (found, unread) = interrupted_transfers(&journals());
    let is_over =
        |transfer: &InterruptedTransfer| !transfer.is_resumable || args.give_up.is_some_and(|age| transfer.idle >= age);
    let (over, kept): (Vec<_>, Vec<_>) = found.into_iter().partition(is_over);
    let options = Options {
        environment: Environment::from_process(),
        machine_credentials: args.machine_credentials,
        ..Options::default()
    };
    let aborted = abort_all(over, &options)?.into_iter().filter_map(|(transfer, aborted)| {
        let to = escape_controls(&transfer.to);
        match aborted {
            Ok(None) => None,
            Ok(Some(AbortOutcome::Removed)) => Some(Ok(format!("{to}: aborted, {}", source(&transfer)))),
            Ok(Some(AbortOutcome::Expires)) => {
                Some(Ok(format!("{to}: aborted, {}; the store deletes the parts within a week", source(&transfer))))
            }
            Err(why) => Some(Err(format!("{to}: can't abort the transfer: {why}"))),
        }
    });
    let named = kept.iter().map(|transfer| {
        let (to, age) = (escape_controls(&transfer.to), Unit::Nanosecond.human(transfer.idle.as_nanos() as f64));
        let ways = "run the same command again to resume it, or `clean --give-up TIME` to abort it";
        Ok(format!("{to}: incomplete, {}, last progress {age} ago; {ways}", source(transfer)))
    });
    // A path that can't be read is reported only once. If the user named folders, the search of these folders already
    // reports the journals of single files. Only notes of uploads and journals of folders are then reported here.
    let is_said_here = |path: &Path| args.folders.is_empty() || path.extension().is_none_or(|end| end != "journal");
    let unread = unread.into_iter().filter(|(path, _)| is_said_here(path)).map(|(_, error)| Err(error.to_string()));
    Ok(aborted.chain(named).chain(unread).collect())
}

/// Describes the source of an interrupted transfer and its progress: `1 MB of 3 MB from /data/a`. The progress of a
/// folder is `3120 of 5000 files (1 MB of 3 MB) from /data`.
fn source(transfer: &InterruptedTransfer) -> String {
    let size = |bytes: u64| Unit::Byte.human(bytes as f64);
    let from = escape_controls(&transfer.from);
    match transfer.bytes {
        None => "from standard input".into(),
        Some(_) if !transfer.is_resumable => format!("from {from}"),
        Some(bytes) => {
            let done = format!("{} of {}", size(transfer.done_bytes), size(bytes));
            match transfer.files {
                Some([complete, files]) => format!("{complete} of {files} files ({done}) from {from}"),
                None => format!("{done} from {from}"),
            }
        }
    }
}

type Found = Result<(PathBuf, u32), String>;

/// Returns paths that interrupted commands may have left behind, each with the id of the process that created it.
fn found(args: &Args) -> Vec<Found> {
    if args.folders.is_empty() {
        let mut temporary = vec![env::temp_dir(), "/var/tmp".into()];
        temporary.dedup();
        return temporary.iter().flat_map(|folder| of_runs(folder)).collect();
    }
    let of_transfers = |folder: &Path| {
        let (found, unread) = leftovers(folder, &journals());
        let unread = unread.into_iter().map(|(path, error)| Err(message(&path, &error)));
        found.into_iter().map(Ok).chain(unread).collect()
    };
    args.folders.iter().flat_map(|folder| [of_runs(folder), of_transfers(folder)]).flatten().collect()
}

/// Returns the folders that servers and caches of Ascertain left below `folder`, each with the id of the process that
/// created it.
fn of_runs(folder: &Path) -> Vec<Found> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        entries => entries.and_then(Iterator::collect::<io::Result<Vec<_>>>),
    };
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return vec![Err(message(folder, &error))],
    };
    entries.iter().filter_map(|entry| Some(Ok((entry.path(), maker(entry.file_name().to_str()?)?)))).collect()
}

/// Returns the id of the creating process, from a folder name such as `ascertain-netlab-PID-NUMBER`.
fn maker(name: &str) -> Option<u32> {
    let [what, process, number] = *name.strip_prefix("ascertain-")?.split('-').collect::<Vec<_>>() else { return None };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    process.parse().ok().filter(|_| ["cache", "git", "netlab"].contains(&what) && is_number)
}

/// Removes a path that a process left behind, unless a process may still use it. `maker` is the id of the process that
/// created it. Returns a sentence about the removal, or `None` if nothing was removed.
fn removed((path, maker): (PathBuf, u32)) -> Option<Result<String, String>> {
    let shown = path.display();
    let remove = || -> io::Result<Option<String>> {
        if !is_left_behind(&path, maker)? {
            return Ok(None);
        }
        if !is_at_rest(&path)? {
            let why = "it was changed within the last hour, possibly by another machine";
            return Ok(Some(format!("kept {shown} of process {maker}: {why}")));
        }
        let is_folder = !path.is_symlink() && path.is_dir();
        if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }?;
        Ok(Some(format!("removed {shown} of process {maker}, which has ended")))
    };
    match remove() {
        Ok(done) => done.map(Ok),
        // Another process has removed it in the meantime.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(message(&path, &error))),
    }
}

/// Returns whether neither the path nor anything in it has been written to for [`AT_REST`].
fn is_at_rest(path: &Path) -> io::Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    // If the time is in the future, it comes from the clock of another machine.
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

fn message(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_this_program_have_a_maker() {
        assert_eq!(maker("ascertain-netlab-42-0"), Some(42));
        assert_eq!(maker("ascertain-git-42-1"), Some(42));
        assert_eq!(maker("ascertain-cache-42-00ff00ff00ff00ff"), Some(42));
        for theirs in ["ascertain-netlab-42", "ascertain-netlab-x-0", "ascertain-other-42-0", "ascertain-cache-42-x"] {
            assert_eq!(maker(theirs), None, "{theirs}");
        }
    }
}
