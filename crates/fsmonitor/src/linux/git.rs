//! Runs git commands.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::place::Worktree;
use crate::Error;

/// A git command in a folder.
fn in_folder(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// A git command for a worktree, whatever the environment says.
pub fn command(worktree: &Worktree) -> Command {
    let mut command = in_folder(&worktree.root);
    command.env("GIT_DIR", &worktree.git_dir).env("GIT_WORK_TREE", &worktree.root).env_remove("GIT_INDEX_FILE");
    command
}

fn run(mut command: Command, arguments: &[&OsStr]) -> Result<Output, Error> {
    let output = command.args(arguments).output();
    output.map_err(|error| Error::Git { command: shown(arguments), why: format!("could not start git: {error}") })
}

fn shown(arguments: &[&OsStr]) -> String {
    arguments.join(OsStr::new(" ")).to_string_lossy().into_owned()
}

fn words<'a>(arguments: &'a [&str]) -> Vec<&'a OsStr> {
    arguments.iter().map(OsStr::new).collect()
}

/// Returns the standard output of a git command, without the line feed at its end.
pub fn output(worktree: &Worktree, arguments: &[&str]) -> Result<Vec<u8>, Error> {
    output_of(command(worktree), &words(arguments))
}

/// Like [`output`], for a command with its environment and with arguments that need not be UTF-8.
pub fn output_of(command: Command, arguments: &[&OsStr]) -> Result<Vec<u8>, Error> {
    let Output { status, mut stdout, stderr } = run(command, arguments)?;
    if !status.success() {
        let why = String::from_utf8_lossy(&stderr).trim().to_owned();
        let why = if why.is_empty() { status.to_string() } else { why };
        return Err(Error::Git { command: shown(arguments), why });
    }
    if stdout.last() == Some(&b'\n') {
        stdout.pop();
    }
    Ok(stdout)
}

/// Returns the output of `git config`; `None` if the setting does not exist.
pub fn config(worktree: &Worktree, arguments: &[&str]) -> Result<Option<Vec<u8>>, Error> {
    let arguments = [&["config"], arguments].concat();
    let Output { status, stdout, stderr } = run(command(worktree), &words(&arguments))?;
    match status.code() {
        Some(0) => Ok(Some(stdout)),
        Some(1) => Ok(None),
        _ => Err(Error::Git { command: arguments.join(" "), why: String::from_utf8_lossy(&stderr).trim().to_owned() }),
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// Finds the worktree that contains a folder, as git finds it.
pub fn worktree(folder: &Path) -> Result<Worktree, Error> {
    let not_found = |error: Error| match error {
        Error::Git { why, .. } => Error::NotAWorktree { path: folder.to_owned(), why },
        other => other,
    };
    if !folder.is_dir() {
        let why = "there is no such folder".into();
        return Err(Error::NotAWorktree { path: folder.to_owned(), why });
    }
    let ask = |what| output_of(in_folder(folder), &words(&["rev-parse", what])).map_err(not_found);
    let git_dir = path(ask("--absolute-git-dir")?);
    if ask("--is-bare-repository")? == b"true" {
        return Err(Error::Bare(git_dir));
    }
    let root = path(ask("--show-toplevel")?);
    Ok(Worktree { root, git_dir })
}

/// Returns the git folder that all worktrees of a repository share.
pub fn common_dir(worktree: &Worktree) -> Result<PathBuf, Error> {
    let common = path(output(worktree, &["rev-parse", "--git-common-dir"])?);
    Ok(worktree.root.join(common))
}

/// Returns git's version, such as `git version 2.39.5`, and whether it has its own monitor on this system.
pub fn version(worktree: &Worktree) -> Result<(String, bool), Error> {
    let text = String::from_utf8_lossy(&output(worktree, &["version", "--build-options"])?).into_owned();
    let has_builtin = text.lines().any(|line| line.trim() == "feature: fsmonitor--daemon");
    Ok((text.lines().next().unwrap_or_default().to_owned(), has_builtin))
}
