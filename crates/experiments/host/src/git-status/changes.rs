//! The tracked files, and the changes to them before each trial.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Number of files in each folder.
const PER_FOLDER: u64 = 10;
/// Number of folders in each folder of the top level.
const FOLDERS: u64 = 100;

/// Returns the path of a tracked file, relative to the root of the worktree.
pub fn path(file: u64) -> String {
    let folder = file / PER_FOLDER;
    format!("part{}/folder{}/file{}.txt", folder / FOLDERS, folder % FOLDERS, file % PER_FOLDER)
}

/// Returns the committed content of a file.
pub fn content(file: u64) -> String {
    format!("This is file number {file}.\n")
}

/// The files that change before a trial, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The same files get a new content each time, as files that a person works on.
    Edit,
    /// Other files change each time, in every way, and the changes before are undone.
    Mixed,
}

/// A way in which a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The file is written to.
    Write,
    /// Another file is renamed to the file's name, as many editors do.
    Replace,
    /// The file is removed.
    Remove,
    /// A new file, which git does not track, is created beside the file.
    Create,
    /// A new folder with a file is created beside the file.
    CreateFolder,
}

impl Pattern {
    /// Returns the kinds of ten changes in a row.
    fn turns(self) -> [Kind; 10] {
        use Kind::{Create, CreateFolder, Remove, Replace, Write};
        match self {
            Pattern::Edit => [Write; 10],
            Pattern::Mixed => [Write, Replace, Create, Remove, Write, Write, Replace, Write, CreateFolder, Write],
        }
    }
}

/// The changes that are in effect in a worktree.
#[derive(Debug, Default)]
pub struct Changes {
    pattern: Option<Pattern>,
    files: Vec<(u64, Kind)>,
}

impl Changes {
    /// Changes `changed` of the first `files` files.
    ///
    /// # Errors
    /// Returns the system's error, with the path.
    pub fn renew(&mut self, root: &Path, (files, changed): (u64, u64), pattern: Pattern, seed: u64) -> io::Result<()> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (first, mark) = (rng.random_range(0..files), rng.random());
        if pattern == Pattern::Mixed || self.pattern != Some(pattern) {
            for (file, kind) in std::mem::take(&mut self.files) {
                at(&root.join(path(file)), |path| undo(path, file, kind))?;
            }
            self.pattern = Some(pattern);
            // The files are spread evenly over the folders, from a random first one.
            let changed = changed.min(files);
            let chosen = (0..changed).map(|index| (first + index * files / changed) % files);
            self.files = chosen.zip(pattern.turns().into_iter().cycle()).collect();
        }
        self.files.iter().try_for_each(|&(file, kind)| at(&root.join(path(file)), |path| change(path, kind, mark)))
    }
}

fn at(path: &Path, action: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    action(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn change(path: &Path, kind: Kind, mark: u64) -> io::Result<()> {
    let text = format!("This file was changed: {mark:016x}.\n");
    match kind {
        Kind::Write => fs::write(path, text),
        Kind::Replace => {
            let new = path.with_extension("new");
            fs::write(&new, text)?;
            fs::rename(new, path)
        }
        Kind::Remove => fs::remove_file(path),
        Kind::Create => fs::write(path.with_extension("untracked"), text),
        Kind::CreateFolder => {
            fs::create_dir(new_folder(path))?;
            fs::write(new_folder(path).join("untracked"), text)
        }
    }
}

fn undo(path: &Path, file: u64, kind: Kind) -> io::Result<()> {
    match kind {
        Kind::Write | Kind::Replace | Kind::Remove => fs::write(path, content(file)),
        Kind::Create => fs::remove_file(path.with_extension("untracked")),
        Kind::CreateFolder => fs::remove_dir_all(new_folder(path)),
    }
}

fn new_folder(path: &Path) -> PathBuf {
    path.with_extension("folder")
}
