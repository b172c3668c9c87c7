//! The repositories of a run, each with one worktree, which the arms with the same files share.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use ascertain_engine::experiment::{Arm, TargetError, Trial};
use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::{Command, Input, Output};

use super::changes::{Changes, Pattern, content, path};
use super::git::{self, Git, failed};
use super::monitors::Monitors;
use super::{EDIT, text};

/// Time between the changes and the first arm of a trial, in which the monitors read their events. A person who edits a
/// file and then runs `git status` takes longer.
const SETTLING: Duration = Duration::from_millis(50);

/// The plain status, with neither a monitor nor the untracked cache. The empty setting turns the monitor off in every
/// version of git; git 2.30 would start a program `false`.
pub const PLAIN_SETTINGS: [&str; 2] = ["core.fsmonitor=", "core.untrackedCache=false"];

/// A repository, its worktree and the monitors that watch it.
pub struct Repository {
    // Dropped first, because the monitors use the other fields' files.
    pub monitors: Monitors,
    pub git: Rc<Git>,
    pub root: PathBuf,
    home: PathBuf,
    files: u64,
    changed: u64,
    pattern: Pattern,
    changes: Changes,
    trial: Option<u64>,
    /// The levels of `untracked` in the arms of this repository, each with plain git's output in this trial.
    reference: Vec<(String, Vec<u8>)>,
    stop: Stop,
}

/// Returns the arguments of `git status`. The format is the same in every version of git, and has no hints.
pub fn status_arguments(untracked: &str) -> [String; 4] {
    ["status".into(), "--porcelain".into(), "-z".into(), format!("-u{untracked}")]
}

impl Repository {
    /// Creates the repository of an arm in a new folder. `home` takes the place of the user's home.
    ///
    /// # Errors
    /// Returns errors of the system and of git.
    pub fn create(
        arm: &Arm,
        git: Rc<Git>,
        (folder, home): (&Path, &Path),
        stop: &Stop,
    ) -> Result<Repository, TargetError> {
        let root = folder.join("worktree");
        fs::create_dir_all(&root).map_err(failed)?;
        let monitors = Monitors::new(&root, folder, home, stop);
        let repository = Repository {
            monitors,
            git,
            root,
            home: home.into(),
            files: arm.integer("files")?,
            changed: arm.integer("changed")?,
            pattern: pattern(arm),
            changes: Changes::default(),
            trial: None,
            reference: Vec::new(),
            stop: stop.clone(),
        };
        repository.fill()?;
        Ok(repository)
    }

    /// Returns the pattern of the changes before each trial.
    pub fn pattern(&self) -> Pattern {
        self.pattern
    }

    /// Returns whether the arm can be measured in this repository.
    pub fn is_for(&self, arm: &Arm, git: &Git) -> bool {
        let has = |factor: &str, value| Ok(value) == arm.integer(factor);
        *self.git == *git && has("files", self.files) && has("changed", self.changed) && self.pattern == pattern(arm)
    }

    /// Commits the files, and checks them out.
    fn fill(&self) -> Result<(), TargetError> {
        const IDENTITY: &str = "A <a@example.com> 1700000000 +0000";
        let mut stream = format!("commit refs/heads/main\ncommitter {IDENTITY}\ndata 5\nfiles\n");
        for file in 0..self.files {
            let content = content(file);
            let (path, length) = (path(file), content.len());
            let _ = writeln!(stream, "M 100644 inline {path}\ndata {length}\n{content}");
        }
        self.run(&["init", "--quiet"], Input::Null)?;
        self.run(&["symbolic-ref", "HEAD", "refs/heads/main"], Input::Null)?;
        self.run(&["fast-import", "--quiet"], Input::Bytes(stream.into_bytes()))?;
        self.run(&["reset", "--quiet", "--hard"], Input::Null)?;
        // Git compares times in whole seconds. If the index has the time of its files, git reads all of them again.
        let into_second = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(failed)?.subsec_nanos();
        sleep(Duration::from_nanos(u64::from(1_000_000_000 - into_second)));
        Ok(())
    }

    fn run(&self, arguments: &[&str], stdin: Input) -> Result<String, TargetError> {
        git::run(Command { stdin, ..self.command(&[], arguments) }, &self.stop)
    }

    /// Returns a command of git in this worktree.
    pub fn command(&self, settings: &[String], arguments: &[&str]) -> Command {
        let root = self.root.to_string_lossy();
        self.git.command(&self.home, settings, &[&["-C", &*root], arguments].concat())
    }

    /// Makes a copy of the index, for an arm or for the reference. The first copy is made before any change.
    pub fn copy_index(&self, to: &Path) -> Result<(), TargetError> {
        fs::copy(self.root.join(".git/index"), to).map(drop).map_err(failed)
    }

    /// Adds an arm's level of `untracked`, for which plain git's output is needed.
    pub fn expect(&mut self, untracked: &str) {
        if self.reference.iter().all(|(known, _)| known != untracked) {
            self.reference.push((untracked.into(), Vec::new()));
        }
    }

    /// Changes files if this is the first arm of the trial.
    pub fn enter(&mut self, trial: &Trial) -> Result<(), TargetError> {
        if self.trial == Some(trial.number) {
            return Ok(());
        }
        self.trial = None;
        self.renew(self.pattern, trial.seed)?;
        self.trial = Some(trial.number);
        Ok(())
    }

    /// Changes files, and runs plain git to learn the right status.
    pub fn renew(&mut self, pattern: Pattern, seed: u64) -> Result<(), TargetError> {
        self.changes.renew(&self.root, (self.files, self.changed), pattern, seed).map_err(failed)?;
        let index = self.home.join("index");
        if !index.exists() {
            self.copy_index(&index)?;
        }
        let output = self.home.join("output");
        for slot in 0..self.reference.len() {
            let untracked = status_arguments(&self.reference[slot].0);
            let settings = PLAIN_SETTINGS.map(String::from);
            let command = self.command(&settings, &untracked.each_ref().map(String::as_str));
            let command = with_index(Command { stdout: Output::File(output.clone()), ..command }, &index);
            let command = Command { stderr: Output::Memory, ..command };
            let prepared = git::prepare(&command, &self.stop)?;
            let usage = prepared.run(Some(git::LIMIT));
            git::succeeded(usage, &command, &String::from_utf8_lossy(&prepared.captured_output()))?;
            self.reference[slot].1 = fs::read(&output).map_err(failed)?;
        }
        sleep(SETTLING);
        Ok(())
    }

    /// Compares an output with plain git's.
    ///
    /// # Errors
    /// Returns [`TargetError::WrongAnswer`], which names the first difference.
    pub fn check(&self, arm: &Arm, output: &[u8]) -> Result<(), TargetError> {
        let untracked = text(arm, "untracked");
        let expected = self.reference.iter().find(|(known, _)| *known == untracked);
        match expected.and_then(|(_, expected)| difference(output, expected)) {
            None => Ok(()),
            Some(difference) => Err(TargetError::WrongAnswer(difference)),
        }
    }
}

fn pattern(arm: &Arm) -> Pattern {
    if text(arm, "changes") == EDIT { Pattern::Edit } else { Pattern::Mixed }
}

/// Makes a git command use a separate index.
pub fn with_index(mut command: Command, index: &Path) -> Command {
    command.env.push(("GIT_INDEX_FILE".into(), index.into()));
    command
}

/// Describes the first difference between the outputs of `git status -z`; `None` if they are equal.
pub fn difference(output: &[u8], plain: &[u8]) -> Option<String> {
    if output == plain {
        return None;
    }
    let entries = |output| <[u8]>::split(output, |byte| *byte == 0).map(String::from_utf8_lossy).collect::<Vec<_>>();
    let (ours, theirs) = (entries(output), entries(plain));
    let extra = ours.iter().find(|entry| !theirs.contains(entry));
    let missing = theirs.iter().find(|entry| !ours.contains(entry));
    Some(match (missing, extra) {
        (Some(entry), _) => format!("`git status` does not report `{entry}`, which plain git reports"),
        (None, Some(entry)) => format!("`git status` reports `{entry}`, which plain git does not report"),
        (None, None) => "`git status` reports the same files as plain git in another order".into(),
    })
}
