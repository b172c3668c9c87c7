//! Checks out a commit into a folder next to the user's checkout, and removes the folder again.
//!
//! The folder is a git worktree. Its path has the length of the path of the user's checkout, because the length of a
//! path in a program can change the program's speed. It also has the same parent folder, so that build tools which
//! search the parent folders for settings find the same settings.
//!
//! A note in the user's state folder names the worktree before it is created. The note is locked while the worktree is
//! in use, so [`remove_leftovers`] recognises the worktrees of processes that were killed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, process};

use ascertain_sys::clock;

use super::git::{self, Repository};
use crate::error::{Error, refused};

/// A worktree that is removed when this value is dropped.
pub(super) struct Worktree {
    pub path: PathBuf,
    /// The git folder that all worktrees of the repository share.
    pub common_dir: PathBuf,
    note: PathBuf,
    /// The open note, whose lock shows that the worktree is in use.
    _lock: File,
    is_removed: bool,
}

impl Worktree {
    /// Checks out a commit. `notes` is the folder for notes about worktrees. Also returns the submodules that are
    /// empty in the worktree, because they are empty in the user's checkout.
    pub fn add(repository: &Repository, commit: &str, notes: &Path) -> Result<(Worktree, Vec<PathBuf>), Error> {
        let worktree = Worktree::create(repository, commit, notes)?;
        let words = ["worktree", "add", "--quiet", "--detach"].map(OsStr::new);
        let arguments = [&words[..], &[worktree.path.as_os_str(), OsStr::new(commit)]].concat();
        git::output(&repository.top, &arguments).or_else(|error| match error {
            // Git often names only the file that it could not write.
            Error::Request(why) if ["No space left", "unable to write"].iter().any(|text| why.contains(text)) => {
                let folder = worktree.path.parent().unwrap_or(&worktree.path);
                refused(format!("{why}; if the disk is full, free some space in {}", folder.display()))
            }
            error => Err(error),
        })?;
        let empty = add_submodules(&repository.top, &worktree.path)?;
        refuse_pointers(&worktree.path)?;
        Ok((worktree, empty))
    }

    /// Creates the note and an empty folder.
    fn create(repository: &Repository, commit: &str, notes: &Path) -> Result<Worktree, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if let Err(error) = fs::create_dir_all(notes) {
            return cannot_create(notes, &error);
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let note = notes.join(format!("{}-{}-{number}", process::id(), clock::unix_ns()));
        let lock = match File::create_new(&note).and_then(|file| file.lock().map(|()| file)) {
            Ok(lock) => lock,
            Err(error) => return cannot_create(&note, &error),
        };
        let common_dir = repository.common_dir.clone();
        match create_folder(&repository.top, commit, |path| write_note(&note, &common_dir, path)) {
            Ok(path) => Ok(Worktree { path, common_dir, note, _lock: lock, is_removed: false }),
            Err((path, error)) => {
                let _ = fs::remove_file(&note);
                cannot_create(&path, &error)
            }
        }
    }

    /// Creates a file that makes the worktree's path the git folder of its repository, for a namespace in which that
    /// is so. Returns the path of the file, relative to the git folder.
    pub fn link_to_itself(&self) -> Option<PathBuf> {
        let record = record_of(&self.common_dir, &self.path)?;
        let record = record.strip_prefix(&self.common_dir).ok()?;
        let text = [b"gitdir: ", self.path.join(record).as_os_str().as_bytes(), b"\n"].concat();
        let link = record.join("gitdir-in-namespace");
        fs::write(self.common_dir.join(&link), text).ok()?;
        Some(link)
    }

    /// Removes the worktree.
    ///
    /// # Errors
    /// Returns a message that names the folder. The note then stays, so that `ascertain clean` finds the folder.
    pub fn remove(mut self) -> Result<(), String> {
        self.is_removed = true;
        self.remove_now()
    }

    fn remove_now(&self) -> Result<(), String> {
        remove(&self.common_dir, &self.path).map_err(|error| message(&self.path, &error))?;
        fs::remove_file(&self.note).or_else(|error| if_missing((), error)).map_err(|error| message(&self.note, &error))
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        // The note of a folder that can't be removed stays.
        let _ = if self.is_removed { Ok(()) } else { self.remove_now() };
    }
}

/// Creates an empty folder, and returns its path. Before each attempt, `write_note` notes the path.
fn create_folder(
    top: &Path,
    commit: &str,
    write_note: impl Fn(&Path) -> io::Result<()>,
) -> Result<PathBuf, (PathBuf, io::Error)> {
    let length = top.file_name().map_or(LEAST_LETTERS, OsStr::len);
    let mut failed = (top.to_owned(), io::ErrorKind::AlreadyExists.into());
    for parent in [top.parent().unwrap_or(top).to_owned(), env::temp_dir()] {
        // Another folder may have the same name. If every short name is taken, a longer one is used.
        for attempt in 0..200 {
            let path = parent.join(name(length.max(attempt as usize / 20), commit, attempt));
            match write_note(&path).and_then(|()| DirBuilder::new().mode(0o700).create(&path)) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    failed = (path, error);
                    break;
                }
            }
        }
    }
    Err(failed)
}

fn write_note(note: &Path, common_dir: &Path, path: &Path) -> io::Result<()> {
    fs::write(note, [common_dir.as_os_str().as_bytes(), b"\0", path.as_os_str().as_bytes()].concat())
}

/// Returns the git folder and the path of the worktree in a note; `None` if the note is not written yet.
fn parse_note(content: &[u8]) -> Option<[PathBuf; 2]> {
    let end = content.iter().position(|byte| *byte == 0)?;
    Some([&content[..end], &content[end + 1..]].map(|bytes| PathBuf::from(OsString::from_vec(bytes.to_vec()))))
}

fn cannot_create<T>(path: &Path, error: &io::Error) -> Result<T, Error> {
    refused(format!("can't create {}: {error}", path.display()))
}

/// The fewest letters and digits at the end of a worktree's name that are different each time.
const LEAST_LETTERS: usize = 3;

/// Returns a name of `length` bytes for a folder. It starts with `ascertain-`, or the beginning of it if there is no
/// room. It ends with letters and digits that differ for each commit and attempt. The same commit usually gets the same
/// name, so that a build of it can be used again.
fn name(length: usize, commit: &str, attempt: u64) -> String {
    const DIGITS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let start = "ascertain-";
    let start = &start[..start.len().min(length.saturating_sub(LEAST_LETTERS))];
    let of_commit = commit.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
    let mut drawn = of_commit ^ attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut name = start.to_owned();
    while name.len() < length.max(1) {
        // A name of one or two characters starts with a letter, too.
        let kinds = if name.is_empty() { 26 } else { 36 };
        name.push(char::from(DIGITS[(drawn % kinds) as usize]));
        drawn = (drawn / kinds).wrapping_add(drawn.rotate_left(17));
    }
    name
}

/// Removes the worktrees of processes that have ended, and returns a message about each. `notes` is the folder for
/// notes about worktrees.
pub fn remove_leftovers(notes: &Path) -> Vec<Result<String, String>> {
    let entries = match fs::read_dir(notes) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![Err(message(notes, &error))],
    };
    let notes: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let used_paths = notes.iter().filter(|note| is_locked(note).unwrap_or(true));
    let used_paths: Vec<PathBuf> =
        used_paths.filter_map(|note| Some(parse_note(&fs::read(note).ok()?)?[1].clone())).collect();
    let remove_noted = |note: &Path| -> io::Result<Option<PathBuf>> {
        if is_locked(note)? {
            return Ok(None);
        }
        // The note is empty if its process was killed before it created a folder, or is about to write it.
        let Some([common_dir, path]) = parse_note(&fs::read(note)?) else { return Ok(None) };
        let is_there = path.symlink_metadata().is_ok();
        // A process may have been killed just when it found that another process uses the path.
        let is_used = used_paths.contains(&path);
        if !is_used {
            remove(&common_dir, &path)?;
        }
        fs::remove_file(note)?;
        Ok((is_there && !is_used).then_some(path))
    };
    let removed = notes.iter().filter_map(|note| match remove_noted(note) {
        Ok(path) => {
            path.map(|path| Ok(format!("removed the worktree {} of an interrupted comparison", path.display())))
        }
        Err(error) => Some(Err(message(note, &error))),
    });
    removed.collect()
}

/// Returns whether the process that wrote a note still uses its worktree.
fn is_locked(note: &Path) -> io::Result<bool> {
    match File::open(note)?.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes a worktree, and git's record of it. If git has no record of it, only an empty folder is removed: the folder
/// may belong to somebody else.
fn remove(common_dir: &Path, path: &Path) -> io::Result<()> {
    match record_of(common_dir, path) {
        None => fs::remove_dir(path).or_else(|error| if_missing((), error))?,
        Some(record) => {
            remove_tree(path)?;
            fs::remove_dir_all(record)?;
        }
    }
    // Git creates this folder for the first worktree, and removes it with the last one. It stays if it is not empty.
    let _ = fs::remove_dir(common_dir.join("worktrees"));
    Ok(())
}

/// Returns the folder in which git has its record of a worktree.
fn record_of(common_dir: &Path, path: &Path) -> Option<PathBuf> {
    let is_of_path = |record: &PathBuf| {
        let gitdir = fs::read(record.join("gitdir")).unwrap_or_default();
        Path::new(OsStr::from_bytes(gitdir.trim_ascii_end())) == path.join(".git")
    };
    let entries = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).find(is_of_path)
}

/// Removes a folder and everything in it. Some build tools write-protect folders of their caches.
fn remove_tree(path: &Path) -> io::Result<()> {
    let removed = fs::remove_dir_all(path).or_else(|error| if_missing((), error));
    if !removed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        return removed;
    }
    Command::new("chmod").args(["-R", "u+rwX"]).arg(path).status()?;
    fs::remove_dir_all(path)
}

fn if_missing<T>(value: T, error: io::Error) -> io::Result<T> {
    if error.kind() == io::ErrorKind::NotFound { Ok(value) } else { Err(error) }
}

fn message(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Clones the submodules of a worktree from the submodules of the user's checkout, at the commits of the worktree.
/// Nothing is fetched, and no configuration changes. Returns the submodules that are empty in the user's checkout.
fn add_submodules(checkout: &Path, worktree: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut empty = Vec::new();
    for (path, commit) in git::submodules(worktree)? {
        let (from, to) = (checkout.join(&path), worktree.join(&path));
        if !from.join(".git").exists() {
            empty.push(path);
            continue;
        }
        let words = ["clone", "--quiet", "--no-checkout"].map(OsStr::new);
        git::output(worktree, &[&words[..], &[from.as_os_str(), to.as_os_str()]].concat())?;
        if git::output(&to, &[OsStr::new("checkout"), OsStr::new("--quiet"), OsStr::new("--detach"), &commit]).is_err()
        {
            let (path, commit) = (path.display(), commit.display());
            return refused(format!("the submodule {path} lacks commit {commit}; run `git -C {path} fetch`"));
        }
        empty.extend(add_submodules(&from, &to)?.into_iter().map(|below| path.join(below)));
    }
    Ok(empty)
}

/// Beginning of a pointer, the small file that git has in place of a file in LFS (Large File Storage).
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
/// Variable that tells Git LFS to leave pointers in place of files.
const SKIPS_FILES: &str = "GIT_LFS_SKIP_SMUDGE";

/// Refuses a worktree that has pointers in place of files, unless the user has chosen pointers.
fn refuse_pointers(worktree: &Path) -> Result<(), Error> {
    if env::var_os(SKIPS_FILES).is_some_and(|value| !value.is_empty() && value != "0") {
        return Ok(());
    }
    let listed = git::output(worktree, &["ls-files", "-z", "--", ":(attr:filter=lfs)"])?;
    let is_pointer = |path: &PathBuf| {
        let mut start = Vec::new();
        let file = File::open(worktree.join(path));
        let read = file.and_then(|file| file.take(POINTER.len() as u64).read_to_end(&mut start));
        read.is_ok() && start == POINTER
    };
    match git::paths(&listed).find(is_pointer) {
        None => Ok(()),
        Some(path) => refused(format!(
            "{} is in Git LFS, and its checkout has only a pointer; install git-lfs and run `git lfs fetch --all`, or set \
             {SKIPS_FILES}=1 to use the pointers",
            path.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_requested_length_and_differ() {
        for length in 1..40 {
            let name = name(length, "ab", 0);
            assert_eq!(name.len(), length, "{name}");
            assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        }
        assert!(name(20, "ab", 0).starts_with("ascertain-"));
        let names =
            ["0123456789abcdef", "1123456789abcdef"].map(|commit| [1, 2].map(|attempt| name(7, commit, attempt)));
        assert_ne!(names[0], names[1]);
        assert_ne!(names[0][0], names[0][1]);
    }

    /// A note can name a folder that somebody else created at the same moment.
    #[test]
    fn a_folder_without_a_record_in_git_stays_unless_it_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let (common_dir, theirs) = (folder.path().join("git"), folder.path().join("theirs"));
        fs::create_dir_all(theirs.join("precious")).unwrap();
        assert!(remove(&common_dir, &theirs).is_err());
        assert!(theirs.join("precious").exists());
        fs::remove_dir(theirs.join("precious")).unwrap();
        remove(&common_dir, &theirs).unwrap();
        assert!(!theirs.exists());
        remove(&common_dir, &theirs).unwrap();
    }

    /// A process can be killed when it has noted a path, and has not found out yet that another process uses it.
    #[test]
    fn a_path_that_another_process_uses_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [notes, common_dir, path] = ["notes", "git", "tree"].map(|name| folder.path().join(name));
        [&notes, &common_dir, &path].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
        for note in ["used", "left"] {
            write_note(&notes.join(note), &common_dir, &path).unwrap();
        }
        let used = File::open(notes.join("used")).unwrap();
        used.lock().unwrap();
        assert!(remove_leftovers(&notes).is_empty());
        assert!(path.exists() && notes.join("used").exists() && !notes.join("left").exists());
        drop(used);
        assert_eq!(remove_leftovers(&notes).len(), 1);
        assert!(!path.exists() && !notes.join("used").exists());
    }
}
