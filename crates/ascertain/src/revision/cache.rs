//! Keeps the files that builds create, so that each revision is built once.
//!
//! A build is a `tar` archive of every file that the build created or changed in the worktree. Its name is a hash of
//! everything on which the build depends. The archives that were not used for the longest time are removed first.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;
use std::{env, process};

use super::build::{Build, cargo_configurations};
use super::git;
use crate::error::{Error, refused};

/// Largest size of all archives together, in bytes. An archive of more than a quarter of this size is not kept.
const MOST_BYTES: u64 = 8 << 30;

/// Environment variables that describe the terminal or the session, and do not affect a build. Those that end with `_`
/// stand for all variables with this beginning.
const SESSION: &[&str] = &[
    "_",
    "COLUMNS",
    "DBUS_",
    "DISPLAY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "LS_COLORS",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SSH_",
    "TERM",
    "TERM_",
    "TMUX",
    "TMUX_",
    "WINDOWID",
    "XDG_SESSION_",
    "XDG_RUNTIME_DIR",
];

/// Programs whose version affects builds, in addition to those that the command line names.
const TOOLS: &[&str] = &[
    "ar", "as", "c++", "cargo", "cc", "clang", "cmake", "g++", "gcc", "go", "java", "javac", "ld", "make", "meson",
    "ninja", "node", "npm", "python3", "rustc", "zig",
];

/// A build in the cache, which may not exist yet.
pub(super) struct CachedBuild {
    archive: PathBuf,
}

impl CachedBuild {
    /// Finds the place of a build of a worktree. `commit` is the commit of the worktree. `folder` is the cache.
    pub fn of(build: &Build, commit: &str, folder: &Path) -> Result<CachedBuild, Error> {
        let mut parts: Vec<OsString> = vec!["1".into(), commit.into(), build.command.into()];
        // The path that the build sees can become a part of the program.
        parts.extend([build.top_seen().into(), build.prefix.into(), build.top.into()]);
        for (submodule, commit) in git::submodules(build.top)? {
            let is_empty = !build.top.join(&submodule).join(".git").exists();
            parts.extend([submodule.into(), commit, is_empty.to_string().into()]);
        }
        let is_of_session = |name: &str| {
            SESSION
                .iter()
                .any(|known| name == *known || known.len() > 1 && known.ends_with('_') && name.starts_with(known))
        };
        let mut variables: Vec<_> =
            env::vars_os().filter(|(name, _)| !is_of_session(&name.to_string_lossy())).collect();
        variables.sort();
        parts.extend(variables.into_iter().flat_map(|(name, value)| [name, value]));
        parts.extend(tools(build.command).into_iter().flat_map(|tool| version(&tool)));
        // `rustup` chooses a compiler by the files of the revision.
        if let Ok(rustc) =
            Command::new("rustc").arg("-vV").current_dir(build.top.join(build.prefix)).stdin(Stdio::null()).output()
        {
            parts.push(OsString::from_vec(rustc.stdout));
        }
        parts.extend(cargo_configurations(build.top).filter_map(|file| fs::read(file).ok()).map(OsString::from_vec));
        let key = git::hash(build.top, parts.join(OsStr::new("\0")).as_bytes())?;
        Ok(CachedBuild { archive: folder.join(format!("{key}.tar")) })
    }

    /// Copies the files of the build into the worktree. Returns `false` if the cache does not have the build.
    pub fn restore(&self, worktree: &Path) -> bool {
        let Ok(archive) = File::open(&self.archive) else { return false };
        // The time shows when the archive was used.
        let _ = archive.set_modified(SystemTime::now());
        let mut tar = Command::new("tar");
        tar.args(["-xf", "-", "-C"]).arg(worktree).stdin(archive).stdout(Stdio::null()).stderr(Stdio::null());
        tar.status().is_ok_and(|status| status.success())
    }

    /// Stores the files that the build created or changed, and removes old archives if all are too large together.
    pub fn store(&self, worktree: &Path) -> Result<(), Error> {
        let Some(files) = created_files(worktree)? else { return Ok(()) };
        let size = |file: &PathBuf| worktree.join(file).symlink_metadata().map_or(0, |metadata| metadata.len());
        if files.iter().map(size).sum::<u64>() > MOST_BYTES / 4 {
            return Ok(());
        }
        let written = self.write(worktree, &files);
        written.or_else(|error| refused(format!("can't keep the build in {}: {error}", self.archive.display())))
    }

    fn write(&self, worktree: &Path, files: &[PathBuf]) -> io::Result<()> {
        let folder = self.archive.parent().unwrap_or(&self.archive);
        fs::create_dir_all(folder)?;
        let draft = self.archive.with_extension(format!("{}.new", process::id()));
        let mut tar = Command::new("tar");
        tar.arg("-cf").arg(&draft).arg("-C").arg(worktree).args(["--null", "-T", "-"]);
        let mut child = tar.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let listed = child.stdin.take().map_or(Ok(()), |mut list| {
            files.iter().try_for_each(|file| list.write_all(&[b"./", file.as_os_str().as_bytes(), b"\0"].concat()))
        });
        let is_written = child.wait()?.success() && listed.is_ok();
        if !is_written {
            fs::remove_file(&draft)?;
            return Err(io::Error::other("tar failed"));
        }
        fs::rename(&draft, &self.archive)?;
        remove_oldest(folder, MOST_BYTES)
    }
}

/// Returns the files of a worktree and its submodules that are not as in the commit; `None` if the build removed files.
fn created_files(worktree: &Path) -> Result<Option<Vec<PathBuf>>, Error> {
    if !git::output(worktree, &["diff", "--name-only", "--diff-filter=D", "-z"])?.is_empty() {
        return Ok(None);
    }
    let changed = git::output(worktree, &["diff", "--name-only", "--ignore-submodules", "-z"])?;
    let created = git::output(worktree, &["ls-files", "--others", "-z"])?;
    // Cargo uses these files only for a next build.
    let is_kept = |file: &PathBuf| !file.components().any(|part| part.as_os_str() == "incremental");
    let mut files: Vec<PathBuf> = git::paths(&changed).chain(git::paths(&created)).filter(is_kept).collect();
    for (submodule, _) in git::submodules(worktree)? {
        let folder = worktree.join(&submodule);
        if folder.join(".git").exists() {
            let Some(below) = created_files(&folder)? else { return Ok(None) };
            files.extend(below.into_iter().map(|file| submodule.join(file)));
        }
    }
    Ok(Some(files))
}

/// Removes the archives that were not used for the longest time, until the others have at most `most_bytes`.
fn remove_oldest(folder: &Path, most_bytes: u64) -> io::Result<()> {
    let mut archives = Vec::new();
    for entry in fs::read_dir(folder)? {
        let metadata = entry.as_ref().map_or_else(|_| None, |entry| entry.metadata().ok());
        if let (Ok(entry), Some(metadata)) = (entry, metadata) {
            archives.push((metadata.modified()?, metadata.len(), entry.path()));
        }
    }
    archives.sort();
    let mut total: u64 = archives.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in archives {
        if total <= most_bytes {
            break;
        }
        fs::remove_file(path)?;
        total -= bytes;
    }
    Ok(())
}

/// Returns the programs in `PATH` that a build probably uses.
fn tools(command: &str) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let words = command.split(|letter: char| letter.is_whitespace() || ";&|()'\"`$".contains(letter));
    let find = |name: &str| env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    TOOLS.iter().copied().chain(words.filter(|word| !word.is_empty())).filter_map(find).collect()
}

/// Returns what identifies the version of a program without starting it: its path, size and time of change.
fn version(tool: &Path) -> Option<OsString> {
    let file = fs::canonicalize(tool).ok()?;
    let metadata = file.metadata().ok()?;
    let identity = format!(" {} {}.{}", metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    Some([file.into_os_string(), identity.into()].into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn archives_that_were_not_used_for_the_longest_time_are_removed_first() {
        let folder = tempfile::tempdir().unwrap();
        for (age_s, name) in ["new", "middle", "old"].into_iter().enumerate() {
            fs::write(folder.path().join(name), [0; 10]).unwrap();
            let file = File::options().append(true).open(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(100 - age_s as u64)).unwrap();
        }
        let names = || {
            let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        };
        remove_oldest(folder.path(), 30).unwrap();
        assert_eq!(names().len(), 3);
        remove_oldest(folder.path(), 25).unwrap();
        assert_eq!(names(), ["middle", "new"]);
        remove_oldest(folder.path(), 0).unwrap();
        assert!(names().is_empty());
    }

    #[test]
    fn the_version_of_a_tool_is_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let tool = folder.path().join("tool");
        assert_eq!(version(&tool), None);
        fs::write(&tool, "1").unwrap();
        let first = version(&tool);
        fs::write(&tool, "12").unwrap();
        assert!(first.is_some() && version(&tool) != first);
        assert!(tools("PATH= sh -c 'make all'").iter().any(|tool| tool.ends_with("sh")));
    }
}
