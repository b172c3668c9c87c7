//! Finds out the git revision of the folder in which a run is started.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ascertain_engine::evidence::Revision;

/// Time limit of a git command. If `git status` takes longer, the revision is recorded without `dirty`.
const LONGEST_WAIT: Duration = Duration::from_secs(if cfg!(test) { 600 } else { 2 });

/// Returns the git revision of a folder; `None` if the folder is not in a repository with a commit, or git is not
/// installed.
///
/// Git must not write anything: it takes no locks, does not refresh its index, looks only at tracked files, and starts
/// no file system monitor.
pub(crate) fn of_folder(folder: &Path) -> Option<Revision> {
    let head = first_line(folder, &["rev-parse", "--verify", "--quiet", "HEAD"])?;
    let commit = head.filter(|line| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let changes = first_line(folder, &["status", "--porcelain", "--untracked-files=no"]);
    Some(Revision { commit, dirty: changes.map(|first| first.is_some()) })
}

/// Runs git and returns the first line that it prints. The inner value is `None` if git prints nothing; the outer value
/// is `None` if git fails or takes too long.
fn first_line(folder: &Path, arguments: &[&str]) -> Option<Option<String>> {
    let mut command = Command::new("git");
    command.args(["--no-optional-locks", "-c", "core.fsmonitor=false"]).args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut git = command.spawn().ok()?;
    let (sender, line) = mpsc::channel();
    let output = git.stdout.take()?;
    // Read in a thread of its own, because a read from a pipe has no time limit.
    let reading = thread::Builder::new().spawn(move || {
        let mut line = Vec::new();
        let read = BufReader::new(output).read_until(b'\n', &mut line);
        // The pipe is closed by now, so git ends even if it would print more. File names need not be UTF-8.
        let line = String::from_utf8_lossy(&line).trim_end_matches('\n').to_string();
        let _ = sender.send(read.is_ok_and(|length| length > 0).then_some(line));
    });
    let line = reading.ok().and_then(|_| line.recv_timeout(LONGEST_WAIT).ok());
    if line.is_none() {
        let _ = git.kill();
    }
    let status = git.wait().ok()?;
    line.filter(|line| line.is_some() || status.success())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;

    /// Runs git in a folder. Returns `false` if git is missing or fails.
    fn git(folder: &Path, arguments: &[&str]) -> bool {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]);
        command.args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    #[test]
    fn a_folder_outside_of_repositories_has_no_revision() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of_folder(folder.path()), None);
        assert_eq!(of_folder(&folder.path().join("missing")), None);
    }

    #[test]
    fn a_revision_is_the_commit_and_whether_tracked_files_differ() {
        let repository = tempfile::tempdir().unwrap();
        let folder = repository.path();
        if !git(folder, &["init", "--quiet"]) {
            return ascertain_sys::testing::left_out("there is no git");
        }
        assert_eq!(of_folder(folder), None, "there is no commit yet");
        fs::create_dir(folder.join("below")).unwrap();
        fs::write(folder.join("below/file"), "1").unwrap();
        assert!(git(folder, &["add", "."]) && git(folder, &["commit", "--quiet", "-m", "first"]));
        fs::write(folder.join("untracked"), "").unwrap();
        let clean = of_folder(&folder.join("below")).unwrap();
        assert!(clean.commit.len() >= 40 && clean.dirty == Some(false), "{clean:?}");
        assert_eq!(clean.to_string(), clean.commit[..10]);
        fs::write(folder.join("below/file"), "2").unwrap();
        let dirty = of_folder(folder).unwrap();
        assert_eq!((&dirty.commit, dirty.dirty), (&clean.commit, Some(true)));
        assert_eq!(dirty.to_string(), format!("{}-dirty", &clean.commit[..10]));
        // With many changes, git prints more lines than a pipe holds, and only the first line is read.
        (0..3_000).for_each(|number| fs::write(folder.join(format!("{number:0>200}")), "").unwrap());
        assert!(git(folder, &["add", "."]));
        assert_eq!(of_folder(folder).unwrap().dirty, Some(true));
    }

    #[test]
    fn git_writes_nothing() {
        let repository = tempfile::tempdir().unwrap();
        let folder = repository.path();
        if !git(folder, &["init", "--quiet"]) {
            return ascertain_sys::testing::left_out("there is no git");
        }
        fs::write(folder.join("file"), "1").unwrap();
        assert!(git(folder, &["add", "."]) && git(folder, &["commit", "--quiet", "-m", "first"]));
        // The index now has an outdated time for the file, which `git status` would normally update.
        let file = fs::File::options().append(true).open(folder.join("file")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        let index = || fs::read(folder.join(".git/index")).unwrap();
        let before = index();
        assert_eq!(of_folder(folder).unwrap().dirty, Some(false));
        assert!(index() == before, "git refreshed its index");
    }
}
