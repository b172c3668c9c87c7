//! Options of `compare` for a command at several revisions of a repository.

use std::env;
use std::path::PathBuf;

use anyhow::Context;
use ascertain::Ending;
use ascertain::revision::{Revisions, Sides};
use ascertain_engine::evidence;
use ascertain_report::plot::escape_controls;
use ascertain_sys::interrupt::{self, Stop};
use clap::ValueHint;

use super::commands::command_line;
use crate::output;

const HEADING: &str = "Revisions";

/// The revisions of the repository at which the command is compared.
#[derive(clap::Args, Clone, Debug)]
pub struct Against {
    /// Revision of the repository with which to compare your checkout, such as `main`, `v1.2` or `merge-base:main`
    ///
    /// The command is measured twice: with the program of the revision, and with that of your checkout, including
    /// uncommitted changes. The revision is checked out into a folder next to your checkout, which is removed at the
    /// end. The first word of the command is looked up in the folder of each revision. The commands run in your folder,
    /// so they read the same files.
    #[arg(long, value_name = "REF", help_heading = HEADING, conflicts_with_all = ["names", "reference"])]
    pub against: Option<String>,
    /// Another revision to compare with --against; repeat the option for several
    #[arg(long = "rev", value_name = "REF", requires = "against", help_heading = HEADING)]
    revisions: Vec<String>,
    /// Command that builds the program; it runs in the folder of each revision
    #[arg(long, value_name = "CMD", requires = "against", value_hint = ValueHint::CommandString, help_heading = HEADING)]
    pub build: Option<String>,
    /// Build each revision anew, instead of using the builds of earlier runs
    #[arg(long, requires = "build", help_heading = HEADING)]
    no_cache: bool,
    /// Measure the programs even if they are equal, byte for byte
    #[arg(long, requires = "against", help_heading = HEADING)]
    pub measure_identical: bool,
}

impl Against {
    /// Checks out and builds the revisions; `None` without --against. `words` is the command.
    pub fn prepare(&self, words: &[String], quiet: bool) -> anyhow::Result<Option<Sides>> {
        let Some(against) = &self.against else { return Ok(None) };
        interrupt::install().context("can't handle Ctrl-C")?;
        let revisions = Revisions {
            folder: env::current_dir().context("can't find the current folder")?,
            revisions: [against].into_iter().chain(&self.revisions).cloned().collect(),
            build: self.build.clone(),
            line: command_line(words),
            same_commit: self.measure_identical,
            notes: notes(),
            logs: evidence::runs_folder().with_file_name("builds"),
            cache: (!self.no_cache).then(builds),
        };
        let mut note = |text: &str| {
            if !quiet {
                output::note(text)
            }
        };
        Ok(Some(revisions.prepare(&Stop::default(), &mut note)?))
    }
}

/// Returns the folder for notes about worktrees, which is next to the folder of runs.
pub fn notes() -> PathBuf {
    evidence::runs_folder().with_file_name("worktrees")
}

/// Returns the folder for builds of revisions: `$XDG_CACHE_HOME/ascertain/builds`, or else `~/.cache/ascertain/builds`.
fn builds() -> PathBuf {
    // The XDG specification requires that relative paths are ignored.
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|cache| cache.is_absolute());
    cache.unwrap_or_else(|| env::home_dir().unwrap_or_default().join(".cache")).join("ascertain/builds")
}

/// Checks that the programs have not changed while they were measured, and removes the worktrees. Prints a message
/// about each problem.
pub fn finish(sides: Sides) -> Ending {
    let mut problems = match sides.changed() {
        Err(error) => vec![format!("can't check whether the programs changed during the run: {error}")],
        Ok(changed) => {
            let problem = |name: &&str| {
                format!("the program of {name} changed during the run; measure again, and do not build meanwhile")
            };
            changed.iter().map(problem).collect()
        }
    };
    let removed = sides.remove().into_iter();
    problems.extend(removed.map(|why| format!("can't remove a worktree: {why}; `ascertain clean` tries again")));
    problems.iter().for_each(|problem| output::note(&format!("error: {}", escape_controls(problem))));
    if problems.is_empty() { Ending::Done } else { Ending::TargetFailed }
}
