//! The git command that asks.
//!
//! Git 2.32 to 2.42 has a fault in commands that do not refresh the index first, such as `git diff-index`. For each
//! file that the monitor reports as unchanged, these commands use memory that they have never written, and may then
//! report the file as deleted. Such a command gets the answer `/`.
//!
//! Every version has another fault: `git rm` and `git mv` change the file `.gitmodules` after they have asked. They
//! then rely on the answer when they add the file to the index. So the answer names that file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::place;

/// Commands that refresh the index before they use it, or that do not use the times and sizes in it.
const SAFE: &[&str] = &[
    "add",
    "am",
    "checkout",
    "cherry-pick",
    "clean",
    "commit",
    "describe",
    "fetch",
    "grep",
    "ls-files",
    "merge",
    "mv",
    "pull",
    "rebase",
    "reset",
    "restore",
    "revert",
    "rm",
    "sparse-checkout",
    "stash",
    "status",
    "switch",
    "update-index",
    "worktree",
    "write-tree",
];

/// Options of git itself (not of a subcommand) whose value is the next word.
const WITH_VALUE: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix"];

/// Commands that change `.gitmodules` in the worktree and add it to the index, in one process.
const EDITING_MODULES: &[&str] = &["mv", "rm"];

/// A process that asks.
pub struct Asker {
    /// The command line, for people.
    pub line: String,
    /// The command may misread a short answer.
    pub is_misled: bool,
    /// The command may add `.gitmodules` to the index after it has changed the file.
    pub may_edit_modules: bool,
}

/// The programs of git that have asked so far, each with its device and inode, and whether it has the fault.
#[derive(Default)]
pub struct Askers(Vec<((u64, u64), bool)>);

impl Askers {
    /// Looks at the command line of a process.
    pub fn look_up(&mut self, pid: u32) -> Asker {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.strip_suffix(b"\0").unwrap_or(&line).split(|byte| *byte == 0).collect();
        let shown = words.iter().take(12).map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
        let line = shown.chars().filter(|c| !c.is_control()).take(80).collect();
        let is_in =
            |list: &[&str]| command(&words).is_some_and(|command| list.iter().any(|own| own.as_bytes() == command));
        let is_safe = is_in(SAFE);
        // An unknown command may be an alias.
        let may_edit_modules = (!is_safe || is_in(EDITING_MODULES)) && program_is_git(pid);
        Asker { line, is_misled: !is_safe && self.has_fault(pid), may_edit_modules }
    }

    /// Returns whether the program of a process is a git with the fault. Asks each program for its version only once,
    /// and never starts a program other than git.
    fn has_fault(&mut self, pid: u32) -> bool {
        let path = format!("/proc/{pid}/exe");
        if !program_is_git(pid) {
            return false;
        }
        let Ok(there) = fs::metadata(&path) else { return false };
        let identity = place::identity(&there);
        if let Some((_, has_fault)) = self.0.iter().find(|(own, _)| *own == identity) {
            return *has_fault;
        }
        let has_fault = is_faulty(&path);
        self.0.truncate(100);
        self.0.insert(0, (identity, has_fault));
        has_fault
    }
}

/// Returns the subcommand in a command line of git.
fn command<'a>(words: &[&'a [u8]]) -> Option<&'a [u8]> {
    let (program, rest) = words.split_first()?;
    let name = Path::new(OsStr::from_bytes(program)).file_name()?.as_bytes();
    if let Some(command) = name.strip_prefix(b"git-") {
        return Some(command);
    }
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if !word.starts_with(b"-") {
            return Some(word);
        }
        if WITH_VALUE.iter().any(|option| option.as_bytes() == *word) {
            rest.next();
        }
    }
    None
}

fn program_is_git(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| is_git(&program))
}

/// Returns whether a program is git by its name, such as `git`, `git-status` or `.git-wrapped`. The kernel shows a
/// program that was replaced as `git (deleted)`.
fn is_git(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().as_bytes();
    let end = name.strip_prefix(b".").unwrap_or(name).strip_prefix(b"git");
    end.is_some_and(|end| end.first().is_none_or(|byte| b"- ".contains(byte)))
}

fn is_faulty(program: &str) -> bool {
    let mut command = Command::new(program);
    let output = command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.is_ok_and(|output| has_fault(&String::from_utf8_lossy(&output.stdout)))
}

/// Returns whether a version, such as `git version 2.39.5`, has the fault.
fn has_fault(version: &str) -> bool {
    let numbers = version.strip_prefix("git version ").map(|rest| rest.split('.').map(|part| part.parse::<u32>().ok()));
    let mut numbers = numbers.into_iter().flatten();
    let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
    major == Some(2) && minor.is_some_and(|minor| (32..43).contains(&minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subcommand_is_found() {
        let command = |line: &str| {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            command(&words).map(|name| String::from_utf8(name.to_vec()).unwrap())
        };
        assert_eq!(command("git status -s").as_deref(), Some("status"));
        assert_eq!(command("/usr/bin/git -C /x -c a=b --no-pager diff-index HEAD").as_deref(), Some("diff-index"));
        assert_eq!(command("git-diff-files").as_deref(), Some("diff-files"));
        assert_eq!(command("git --git-dir=x status").as_deref(), Some("status"));
        assert_eq!(command("git"), None);
        assert_eq!(command(""), None);
    }

    #[test]
    fn only_git_is_asked_for_its_version() {
        let is_git = |path: &str| is_git(Path::new(path));
        assert!(
            ["/usr/bin/git", "/x/git-diff-index", "/nix/.git-wrapped", "/usr/bin/git (deleted)"].map(is_git)
                == [true; 4]
        );
        assert!(["/usr/bin/ascertain", "/usr/bin/gitui", "/git/bin/sh", "/"].map(is_git) == [false; 4]);
    }

    #[test]
    fn only_some_versions_have_the_fault() {
        let faulty = ["git version 2.32.0", "git version 2.39.5", "git version 2.42.0.rc1"];
        let right =
            ["git version 2.31.1", "git version 2.43.0", "git version 2.55.0", "git version 3.0", "bash 2.39", ""];
        assert!(faulty.iter().all(|version| has_fault(version)));
        assert!(!right.iter().any(|version| has_fault(version)));
    }
}
