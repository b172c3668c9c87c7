//! Calls git for the repository of a folder. No call changes the user's index, refs or configuration, and no hook runs.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fs, io};

use ascertain_engine::names::suggestion;
use ascertain_report::terminal::escape_controls;
use ascertain_sys::process;

use crate::error::{Error, refused};

/// Environment variables that make git use another repository than that of its folder. Git hooks have some of them.
pub(super) const LOCAL_VARIABLES: [&str; 6] =
    ["GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_WORK_TREE"];

/// Settings for every call: no hooks, no file system monitor, warnings about ambiguous names, absolute paths.
const SETTINGS: [&str; 8] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.warnAmbiguousRefs=true",
    "-c",
    "worktree.useRelativePaths=false",
];

/// Prefix of a revision that stands for the merge base with HEAD.
const MERGE_BASE: &str = "merge-base:";

/// A repository, as seen from a folder in its working tree.
pub(super) struct Repository {
    /// The top folder of the working tree.
    pub top: PathBuf,
    /// The path from the top folder to the folder.
    pub prefix: PathBuf,
    /// The git folder that all worktrees of the repository share.
    pub common_dir: PathBuf,
}

/// A commit: its id in hexadecimal digits, and an abbreviation that is unique in the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub id: String,
    pub short: String,
}

/// The number of files in the working tree that differ from the commit that is checked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changes {
    pub tracked: u64,
    /// Untracked files and folders that are not ignored.
    pub untracked: u64,
}

/// Returns a git command in a folder.
fn command<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> Command {
    let mut command = Command::new("git");
    command.arg("--no-optional-locks").args(SETTINGS).args(arguments).current_dir(folder);
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    LOCAL_VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
    command
}

/// Runs git in a folder.
pub(super) fn run<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> Result<Output, Error> {
    command(folder, arguments).output().or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => refused("git was not found in PATH; install git to compare revisions".into()),
        _ => refused(format!("could not start git: {error}")),
    })
}

/// Runs git in a folder and returns its standard output, without the line feed at the end.
pub(super) fn output<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> Result<Vec<u8>, Error> {
    let Output { status, mut stdout, stderr } = run(folder, arguments)?;
    if !status.success() {
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        let why = complaint(&stderr);
        let why = if why.is_empty() { status.to_string() } else { why };
        return refused(format!(
            "`{}` failed: {why}",
            escape_controls(&process::join(&[&["git".into()], &words[..]].concat()))
        ));
    }
    stdout.pop_if(|last| *last == b'\n');
    Ok(stdout)
}

/// Returns the hash of a text, as `git hash-object` computes it.
pub(super) fn hash(folder: &Path, text: &[u8]) -> Result<String, Error> {
    let mut child = command(folder, &["hash-object", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let hash = child.as_mut().map_err(|error| error.to_string()).and_then(|child| {
        let written = child.stdin.take().map(|mut stdin| stdin.write_all(text));
        let mut hash = String::new();
        let read = child.stdout.take().map(|mut stdout| stdout.read_to_string(&mut hash));
        let status = child.wait().map_err(|error| error.to_string())?;
        match (written, read) {
            (Some(Ok(())), Some(Ok(_))) if status.success() => Ok(hash.trim_end().to_owned()),
            _ => Err(status.to_string()),
        }
    });
    hash.or_else(|why| refused(format!("`git hash-object --stdin` failed: {why}")))
}

/// Returns the submodules of a working tree, each with the commit that the index has for it.
pub(super) fn submodules(folder: &Path) -> Result<Vec<(PathBuf, OsString)>, Error> {
    let listed = output(folder, &["ls-files", "--stage", "-z"])?;
    let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 "));
    let submodules = entries.filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let commit = entry[..tab].split(|byte| *byte == b' ').nth(1)?;
        Some((os_string(&entry[tab + 1..]).into(), os_string(commit)))
    });
    Ok(submodules.collect())
}

/// Returns the paths in git output that separates them by NUL.
pub(super) fn paths(output: &[u8]) -> impl Iterator<Item = PathBuf> {
    output.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(|path| PathBuf::from(os_string(path)))
}

fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns git's error messages in one line, without its hints.
fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("hint:"));
    let messages = lines.map(|line| line.trim_start_matches("fatal: ").trim_start_matches("error: "));
    escape_controls(&messages.collect::<Vec<_>>().join("; "))
}

impl Repository {
    /// Finds the repository of a folder.
    pub fn of_folder(folder: &Path) -> Result<Repository, Error> {
        let there = ["rev-parse", "--show-toplevel", "--show-prefix", "--git-common-dir"];
        let Output { status, stdout, stderr } = run(folder, &there)?;
        let shown = folder.canonicalize().unwrap_or_else(|_| folder.into());
        let shown = shown.display();
        if !status.success() {
            let why = complaint(&stderr);
            return refused(match () {
                () if why.contains("dubious ownership") => {
                    let owned = why.split('\'').nth(1).unwrap_or_default();
                    format!(
                        "the repository {owned} belongs to another user, so git does not use it; if you trust it, run `{}`",
                        process::join(&["git", "config", "--global", "--add", "safe.directory", owned])
                    )
                }
                () if why.contains("not a git repository") => {
                    format!("{shown} is not in a git repository; run the command in the repository of the program")
                }
                () if why.contains("must be run in a work tree") => {
                    format!("{shown} is not in the working tree of a repository; run the command in a checkout")
                }
                () => format!("git can't use the repository of {shown}: {why}"),
            });
        }
        let lines: Vec<PathBuf> = stdout.split(|byte| *byte == b'\n').map(|line| os_string(line).into()).collect();
        let [top, prefix, common_dir, ..] = lines.as_slice() else {
            return refused(format!("git does not print the working tree of {shown}"));
        };
        let common_dir = fs::canonicalize(folder.join(common_dir))
            .map_err(|source| Error::Read { path: folder.join(common_dir), source })?;
        Ok(Repository { top: top.clone(), prefix: prefix.clone(), common_dir })
    }

    /// Finds the commit of a revision such as `main`, `v1.2`, `HEAD~3`, `3f2a1c9` or `merge-base:main`.
    pub fn resolve(&self, revision: &str) -> Result<Commit, Error> {
        let id = match revision.strip_prefix(MERGE_BASE) {
            None => self.commit_id(revision)?,
            Some(other) => self.merge_base(other)?,
        };
        let short = text(&self.output(&["rev-parse", "--short=7", &id])?);
        Ok(Commit { id, short })
    }

    /// Returns the commit that is checked out.
    pub fn head(&self) -> Result<Commit, Error> {
        let Ok(id) = self.output(&["rev-parse", "--verify", "HEAD^{commit}"]) else {
            return refused(format!("the repository {} has no commit yet", self.top.display()));
        };
        self.resolve(&text(&id))
    }

    fn commit_id(&self, revision: &str) -> Result<String, Error> {
        if revision.is_empty() || revision.starts_with('-') {
            return refused(format!("`{revision}` is not a revision; name a branch, a tag or a commit"));
        }
        let Output { status, stdout, stderr } =
            run(&self.top, &["rev-parse", "--verify", &format!("{revision}^{{commit}}")])?;
        let why = complaint(&stderr);
        if why.contains(" is ambiguous") {
            return refused(format!("`{revision}` is ambiguous{}", self.meanings(revision)?));
        }
        if !status.success() {
            let shown = escape_controls(revision);
            return refused(match run(&self.top, &["rev-parse", "--verify", "--quiet", revision])?.status.success() {
                true => format!("`{shown}` is not a commit; name a branch, a tag or a commit"),
                false => format!("there is no revision `{shown}`{}", self.way_out(revision)?),
            });
        }
        Ok(text(&stdout).trim().to_owned())
    }

    /// Returns a hint about an ambiguous revision: the refs of this name, or else advice about abbreviated commits.
    fn meanings(&self, revision: &str) -> Result<String, Error> {
        let name = revision.split(['~', '^', '@', ':']).next().unwrap_or_default();
        let refs = ["heads", "tags", "remotes"].map(|kind| format!("refs/{kind}/{name}"));
        let listed = text(&self.output(&[&["for-each-ref".into(), "--format=%(refname)".into()], &refs[..]].concat())?);
        let refs: Vec<&str> = listed.lines().collect();
        Ok(match refs.as_slice() {
            [] => "; write more digits of the commit".into(),
            refs => format!("; write one of these names: {}", escape_controls(&refs.join(", "))),
        })
    }

    /// Returns a hint about a revision that does not exist: a similar name, and the commands that fetch more commits
    /// into a shallow clone.
    fn way_out(&self, revision: &str) -> Result<String, Error> {
        let listed =
            self.output(&["for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes"])?;
        let listed = text(&listed);
        let on_remote = listed.lines().find(|name| name.strip_suffix(revision).is_some_and(|name| name.ends_with('/')));
        let similar = on_remote.map(|name| format!("; did you mean `{name}`?"));
        let similar = similar.or_else(|| suggestion(revision, listed.lines()));
        let is_name = revision.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        let branch = match is_name {
            true => format!(", and `git fetch origin {revision}:{revision}` a branch"),
            false => String::new(),
        };
        let fetch = self
            .is_shallow()?
            .then(|| format!("; this clone is shallow: `git fetch --unshallow` gets all its commits{branch}"));
        Ok(escape_controls(&[fetch, similar].into_iter().flatten().collect::<String>()))
    }

    fn merge_base(&self, revision: &str) -> Result<String, Error> {
        let other = self.commit_id(revision)?;
        let Output { status, stdout, stderr } = run(&self.top, &["merge-base", "HEAD", &other])?;
        match status.code() {
            Some(0) => Ok(text(&stdout).lines().next().unwrap_or_default().to_owned()),
            Some(1) => {
                let fetch =
                    if self.is_shallow()? { "; this clone is shallow: run `git fetch --unshallow`" } else { "" };
                refused(format!("HEAD and `{}` have no common commit{fetch}", escape_controls(revision)))
            }
            _ => refused(format!("`git merge-base` failed: {}", complaint(&stderr))),
        }
    }

    fn is_shallow(&self) -> Result<bool, Error> {
        Ok(self.output(&["rev-parse", "--is-shallow-repository"])? == b"true")
    }

    /// Counts the files of the working tree that differ from HEAD.
    pub fn changes(&self) -> Result<Changes, Error> {
        let status = self.output(&["status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal"])?;
        let entries = status.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        let (untracked, tracked): (Vec<&[u8]>, Vec<&[u8]>) = entries.partition(|entry| entry.starts_with(b"??"));
        Ok(Changes { tracked: tracked.len() as u64, untracked: untracked.len() as u64 })
    }

    /// Returns the hash of each file, as `git hash-object` computes it.
    pub fn hashes(&self, files: &[&Path]) -> Result<Vec<String>, Error> {
        let arguments = ["hash-object", "--no-filters", "--"].map(OsStr::new);
        let files = files.iter().map(|file| file.as_os_str());
        let hashes = self.output(&arguments.into_iter().chain(files).collect::<Vec<_>>())?;
        Ok(text(&hashes).lines().map(str::to_owned).collect())
    }

    fn output<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<Vec<u8>, Error> {
        output(&self.top, arguments)
    }
}
