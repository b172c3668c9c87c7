//! The same command at several revisions: checks out each revision, builds it, and finds its program.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ascertain_engine::command::{BuildPaths, ProgramRevision};
use ascertain_report::identical::IdenticalPrograms;
use ascertain_report::terminal::escape_controls;
use ascertain_sys::interrupt::Stop;

use super::build::Build;
use super::cache::CachedBuild;
use super::git::{Commit, Repository};
use super::program::Line;
use super::same_path;
use super::worktree::Worktree;
use crate::error::{Error, refused};

/// A request to compare a command at several revisions of a repository. The last revision is the user's checkout, with
/// its uncommitted changes.
#[derive(Clone, Debug)]
pub struct Revisions {
    /// The user's folder in the checkout. Builds run in the same folder of each revision.
    pub folder: PathBuf,
    /// Names of revisions such as `main`, `3f2a1c9` or `merge-base:main`. The first one is the reference.
    pub revisions: Vec<String>,
    /// Command line that builds the program, for `sh`; `None` if the program needs no build.
    pub build: Option<String>,
    /// The command line to compare. Its first word is looked up in the folder of each revision.
    pub line: String,
    /// `true` to accept revisions that are the same commit.
    pub same_commit: bool,
    /// Folder for notes about worktrees, from which [`remove_leftovers`](super::remove_leftovers) finds them.
    pub notes: PathBuf,
    /// Folder for the output of failed builds.
    pub logs: PathBuf,
    /// Folder with earlier builds; `None` to build each revision anew, and to keep no build.
    pub cache: Option<PathBuf>,
}

/// A command at several revisions, ready to run. Dropping this value removes the worktrees.
pub struct Sides {
    /// The revisions. The first one is the reference.
    pub sides: Vec<Side>,
    /// The program, as the user wrote it.
    pub program: String,
    repository: Repository,
    worktrees: Vec<Worktree>,
}

/// The command at one revision.
#[derive(Clone, Debug)]
pub struct Side {
    /// Name for people: `main (a1b2c3d)` or `HEAD (3f2a1c9, 2 files changed)`.
    pub name: String,
    /// The command line, which runs the program of this revision.
    pub line: String,
    /// The revision, for the evidence.
    pub revision: ProgramRevision,
    file: PathBuf,
}

/// A revision whose program is not known yet.
struct Checkout {
    name: String,
    commit: Commit,
    changed_files: u64,
    top: PathBuf,
    /// The worktree of the revision; `None` for the user's checkout.
    worktree: Option<Worktree>,
    /// `true` if the build saw the path of the user's checkout.
    has_users_path: bool,
}

impl Revisions {
    /// Checks out the revisions, builds them, and finds their programs. `note` receives messages about the progress.
    ///
    /// # Errors
    /// If a revision can't be found, checked out or built, or if its program is missing or outside of the repository.
    pub fn prepare(&self, stop: &Stop, note: &mut dyn FnMut(&str)) -> Result<Sides, Error> {
        let repository = Repository::of_folder(&self.folder)?;
        let line = Line::parse(&self.line, &repository.top)?;
        let commits = self.revisions.iter().map(|revision| Ok((revision.as_str(), repository.resolve(revision)?)));
        let commits: Vec<(&str, Commit)> = commits.collect::<Result<_, Error>>()?;
        let own = self.own(&repository, &commits)?;
        let mut preparation = Preparation { request: self, repository: &repository, line: &line, stop, note };
        // The user's checkout is built first, because its changes are the most likely to fail.
        if let Some(own) = &own {
            preparation.build(own, None)?;
        }
        let checkouts = commits.iter().map(|(revision, commit)| preparation.check_out(revision, commit));
        let mut checkouts: Vec<Checkout> = checkouts.collect::<Result<_, _>>()?;
        checkouts.extend(own);
        let sides = sides(&checkouts, &line, &repository)?;
        if self.build.is_some() {
            note(&format!("the revisions were built at {}", sides[0].revision.paths.words()));
        }
        let worktrees = checkouts.into_iter().filter_map(|checkout| checkout.worktree).collect();
        Ok(Sides { sides, program: line.program, repository, worktrees })
    }

    /// Returns the user's checkout; `None` if it equals one of several revisions.
    fn own(&self, repository: &Repository, commits: &[(&str, Commit)]) -> Result<Option<Checkout>, Error> {
        let (head, changes) = (repository.head()?, repository.changes()?);
        let changed = match changes.tracked {
            0 => String::new(),
            1 => ", 1 file changed".into(),
            files => format!(", {files} files changed"),
        };
        let name = format!("HEAD ({}{changed})", head.short);
        let same = |[one, other]: [&str; 2], commit: &Commit| {
            let [one, other] = [one, other].map(escape_controls);
            Err(Error::SameCommit { names: [one, other], commit: commit.short.clone() })
        };
        for (index, (revision, commit)) in commits.iter().enumerate().filter(|_| !self.same_commit) {
            if let Some((earlier, _)) = commits[..index].iter().find(|(_, earlier)| earlier == commit) {
                return same([earlier, revision], commit);
            }
        }
        let is_unchanged = changes.tracked + changes.untracked == 0;
        match commits.iter().find(|(_, commit)| is_unchanged && *commit == head) {
            Some(_) if commits.len() > 1 => return Ok(None),
            Some((revision, commit)) if !self.same_commit => return same([revision, "HEAD"], commit),
            _ => {}
        }
        Ok(Some(Checkout {
            name,
            commit: head,
            changed_files: changes.tracked,
            top: repository.top.clone(),
            worktree: None,
            has_users_path: true,
        }))
    }
}

/// The preparation of revisions.
struct Preparation<'a> {
    request: &'a Revisions,
    repository: &'a Repository,
    line: &'a Line<'a>,
    stop: &'a Stop,
    note: &'a mut dyn FnMut(&str),
}

impl Preparation<'_> {
    /// Checks out and builds a revision: at the path of the user's checkout, if that is possible.
    fn check_out(&mut self, revision: &str, commit: &Commit) -> Result<Checkout, Error> {
        let is_short = commit.id.starts_with(revision);
        let name = if is_short { commit.short.clone() } else { format!("{revision} ({})", commit.short) };
        let user_top = &self.repository.top;
        let mut checkout = self.add_worktree(&name, commit)?;
        let worktree = checkout.worktree.as_ref().filter(|_| self.request.build.is_some());
        if let Some(launcher) = worktree.and_then(|worktree| same_path::launcher(worktree, user_top)) {
            self.build(&checkout, Some(&launcher))?;
            let program = self.line.at((&name, &checkout.top.join(&self.repository.prefix), &checkout.top));
            if !program.is_ok_and(|(file, _)| same_path::names_file_in(&file, user_top)) {
                checkout.has_users_path = true;
                return Ok(checkout);
            }
            drop(checkout);
            let why = format!("because the program names files in {}", user_top.display());
            (self.note)(&escape_controls(&format!("{name} is built again, at another path, {why}")));
            checkout = self.add_worktree(&name, commit)?;
        }
        self.build(&checkout, None)?;
        Ok(checkout)
    }

    fn add_worktree(&mut self, name: &str, commit: &Commit) -> Result<Checkout, Error> {
        let added = Worktree::add(self.repository, &commit.id, &self.request.notes);
        if self.stop.is_requested() {
            return refused("interrupted before anything was measured".into());
        }
        let (worktree, empty) = added?;
        for submodule in empty {
            let text = format!("{name}: the submodule {} is empty, as in your checkout", submodule.display());
            (self.note)(&escape_controls(&text));
        }
        let (name, commit, top) = (name.into(), commit.clone(), worktree.path.clone());
        Ok(Checkout { name, commit, changed_files: 0, top, worktree: Some(worktree), has_users_path: false })
    }

    /// Builds a revision. `launcher` has the words that run a command at the path of the user's checkout.
    fn build(&mut self, checkout: &Checkout, launcher: Option<&[OsString]>) -> Result<(), Error> {
        let Checkout { name, commit, top, .. } = checkout;
        let prefix = &self.repository.prefix;
        if !top.join(prefix).is_dir() {
            let folder = prefix.display();
            return refused(format!("{name} has no folder {folder}; run the command in a folder that it has"));
        }
        let Some(command) = &self.request.build else { return Ok(()) };
        let log = &self.request.logs.join(format!("{}-{}.log", commit.short, std::process::id()));
        let elsewhere = launcher.map(|launcher| (self.repository.top.as_path(), launcher));
        let build = Build { command, name, top, prefix, elsewhere, log };
        // The user's checkout has its own earlier build.
        let cache = self.request.cache.as_deref().filter(|_| checkout.worktree.is_some());
        let cached = cache.map(|cache| CachedBuild::of(&build, &commit.id, cache)).transpose()?;
        let name = escape_controls(name);
        if cached.as_ref().is_some_and(|cached| cached.restore(top)) {
            (self.note)(&format!("{name}: using the build of an earlier run"));
            return Ok(());
        }
        (self.note)(&format!("building {name}: {}", escape_controls(command)));
        build.run(self.stop)?;
        if let Some(Err(error)) = cached.map(|cached| cached.store(top)) {
            (self.note)(&escape_controls(&error.to_string()));
        }
        Ok(())
    }
}

/// Finds the program of each revision.
fn sides(checkouts: &[Checkout], line: &Line, repository: &Repository) -> Result<Vec<Side>, Error> {
    let found = checkouts.iter().map(|Checkout { name, top, .. }| line.at((name, &top.join(&repository.prefix), top)));
    let found: Vec<(PathBuf, String)> = found.collect::<Result<_, _>>()?;
    let hashes = repository.hashes(&found.iter().map(|(file, _)| file.as_path()).collect::<Vec<_>>())?;
    let length = |checkout: &Checkout| checkout.top.as_os_str().len();
    let paths = match () {
        () if checkouts.iter().all(|checkout| checkout.has_users_path) => BuildPaths::Same,
        () if checkouts.iter().all(|checkout| length(checkout) == length(&checkouts[0])) => BuildPaths::EqualLength,
        () => BuildPaths::DifferentLengths,
    };
    let sides = checkouts.iter().zip(found).zip(hashes).map(|((checkout, (file, line)), program_hash)| Side {
        name: checkout.name.clone(),
        line,
        revision: ProgramRevision {
            commit: checkout.commit.id.clone(),
            changed_files: checkout.changed_files,
            program_hash,
            paths,
        },
        file,
    });
    Ok(sides.collect())
}

impl Sides {
    /// Removes the revisions whose programs are equal to the reference, byte for byte, and returns them. They need no
    /// measurement.
    pub fn take_identical(&mut self) -> Option<IdenticalPrograms> {
        let hash = self.sides[0].revision.program_hash.clone();
        let is_script = is_script(&self.sides[0].file);
        let (reference, others): (Vec<_>, Vec<_>) =
            self.sides.drain(..).enumerate().partition(|(index, _)| *index == 0);
        let (identical, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(_, side)| side.revision.program_hash == hash);
        let revisions = reference.iter().chain(&identical).map(|(_, side)| side.name.clone()).collect();
        let has_any = !identical.is_empty();
        self.sides = reference.into_iter().chain(others).map(|(_, side)| side).collect();
        has_any.then(|| IdenticalPrograms { program: self.program.clone(), program_hash: hash, is_script, revisions })
    }

    /// Returns the names of the revisions whose programs have changed since they were found.
    ///
    /// # Errors
    /// If a program can't be read any more.
    pub fn changed(&self) -> Result<Vec<&str>, Error> {
        let files: Vec<&Path> = self.sides.iter().map(|side| side.file.as_path()).collect();
        let hashes = self.repository.hashes(&files)?;
        let changed = self.sides.iter().zip(hashes).filter(|(side, now)| side.revision.program_hash != *now);
        Ok(changed.map(|(side, _)| side.name.as_str()).collect())
    }

    /// Removes the worktrees. Returns a message for each worktree that can't be removed.
    #[must_use]
    pub fn remove(self) -> Vec<String> {
        self.worktrees.into_iter().filter_map(|worktree| worktree.remove().err()).collect()
    }
}

/// Returns whether a file is a script, which may read other files of its revision.
fn is_script(file: &Path) -> bool {
    let mut start = [0; 2];
    File::open(file).is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && start == *b"#!")
}
